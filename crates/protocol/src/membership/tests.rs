mod world;

use super::*;

const TIMING: Timing = Timing {
    wait: Duration::from_secs(10),
    settle: Duration::from_secs(2),
    patience: Duration::from_secs(4),
};

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const ALL: [Place; 4] = [Place::new(0), Place::new(1), Place::new(2), Place::new(3)];

fn with(own: usize, others: &[usize]) -> Membership {
    let mut membership = Membership::new(ALL[own], 4, 0, TIMING, at(0));
    others.iter().for_each(|&other| membership.came(ALL[other], 1, 0, at(1)));
    membership
}

fn begin(number: u64, members: &[usize]) -> Vec<Decision> {
    vec![Decision::Begin { number, members: members.iter().map(|&member| ALL[member]).collect() }]
}

/// There is a plan, and then all of these are done.
fn complete(first: &mut Membership, members: &[Place]) {
    first.planned(BTreeSet::new(), at(0));
    assert_eq!(members.iter().filter(|&&place| first.hear_done(place)).count(), 1);
}

fn links(of: &[(usize, usize)]) -> BTreeSet<(Place, Place)> {
    of.iter().map(|&(from, to)| (ALL[from], ALL[to])).collect()
}

#[test]
fn the_first_begins_when_all_are_here_or_after_a_while() {
    assert_eq!(with(0, &[1, 2, 3]).tick(at(1), &[]), begin(1, &[0, 1, 2, 3]));
    assert_eq!(with(1, &[0, 2, 3]).tick(at(1), &[]), []);
    let mut some = with(0, &[2]);
    assert_eq!(some.tick(at(9), &[]), []);
    some.heard_of(6);
    assert_eq!(some.tick(at(10), &[]), begin(7, &[0, 2]));
    assert_eq!(with(0, &[]).tick(at(99), &[]), []);
}

#[test]
fn joining_and_leaving_begin_a_new_epoch_once_the_old_one_is_over() {
    let mut first = with(0, &[1, 2]);
    first.enter(1, &ALL[..3], at(10));
    first.came(ALL[3], 1, 0, at(11));
    assert_eq!(first.tick(at(11), &[]), []);
    first.planned(BTreeSet::new(), at(11));
    assert!(ALL[..2].iter().all(|&place| !first.hear_done(place)));
    assert!(first.hear_done(ALL[2]));
    assert_eq!(first.tick(at(12), &[]), []);
    assert_eq!(first.tick(at(13), &[]), begin(2, &[0, 1, 2, 3]));
    first.enter(2, &ALL, at(13));
    complete(&mut first, &ALL);
    assert_eq!(first.tick(at(20), &[]), []);
    first.lost(ALL[2], at(20));
    assert_eq!(first.tick(at(21), &[]), []);
    assert_eq!(first.tick(at(22), &[]), begin(3, &[0, 1, 3]));
}

#[test]
fn other_data_begin_an_epoch_once_the_old_one_is_over_and_not_for_ever() {
    let timing = Timing { patience: at(40), ..TIMING };
    let mut first = Membership::new(ALL[0], 3, 0, timing, at(0));
    ALL[1..3].iter().for_each(|&other| first.came(other, 1, 0, at(1)));
    first.enter(1, &ALL[..3], at(10));
    first.hear_renewed(ALL[2], at(11));
    assert_eq!(first.tick(at(14), &[]), []);
    complete(&mut first, &ALL[..3]);
    // Who takes no part has no data that matter.
    first.hear_renewed(ALL[3], at(15));
    assert_eq!(first.tick(at(18), &[]), []);
    first.hear_renewed(ALL[0], at(20));
    first.hear_renewed(ALL[1], at(21));
    assert_eq!(first.tick(at(22), &[]), []);
    assert_eq!(first.tick(at(23), &[]), begin(2, &[0, 1, 2]));
    // Who asks for one again and again is left out.
    for asked in 1..=10 {
        let now = 30 + 3 * asked;
        first.enter(1 + asked, &ALL[..3], at(now));
        complete(&mut first, &ALL[..3]);
        first.hear_renewed(ALL[2], at(now));
        let expected = match asked {
            10 => [vec![Decision::LeaveOut(ALL[2])], begin(2 + asked, &[0, 1])].concat(),
            _ => begin(2 + asked, &[0, 1, 2]),
        };
        assert_eq!(first.tick(at(now + 2), &[]), expected, "{asked}");
    }
}

#[test]
fn an_epoch_is_begun_anew_when_a_device_is_lost_or_comes_back_in_it() {
    let mut first = with(0, &[1, 2]);
    first.enter(1, &ALL[..3], at(10));
    first.lost(ALL[2], at(11));
    assert_eq!(first.tick(at(11), &[]), begin(2, &[0, 1]));
    first.enter(2, &ALL[..2], at(11));
    // It never seemed gone, but has started anew.
    first.came(ALL[1], 2, 0, at(12));
    assert_eq!(first.tick(at(12), &[]), begin(3, &[0, 1]));
    // The planner is lost: the next one begins.
    let mut second = with(1, &[0, 2]);
    second.enter(4, &ALL[..3], at(10));
    second.lost(ALL[0], at(11));
    assert_eq!(second.tick(at(11), &[]), begin(5, &[1, 2]));
}

#[test]
fn who_is_silent_is_left_out_and_who_waits_is_not() {
    let mut first = with(0, &[1, 2, 3]);
    first.enter(1, &ALL, at(10));
    assert_eq!(first.tick(at(14), &ALL[1..]), []);
    first.hear_missing(ALL[1], &[ALL[3]]);
    first.hear_missing(ALL[2], &[ALL[3]]);
    let mut expected = vec![Decision::LeaveOut(ALL[3])];
    expected.extend(begin(2, &[0, 1, 2]));
    assert_eq!(first.tick(at(15), &ALL[1..]), expected);
    first.enter(2, &ALL[..3], at(15));
    complete(&mut first, &ALL[..3]);
    // It is given another chance only much later.
    assert_eq!(first.tick(at(50), &[]), []);
    assert_eq!(first.tick(at(56), &[]), begin(3, &[0, 1, 2, 3]));
}

/// The first is to hand its model to the second, the second to the third; only the first waits for nobody, though it says so.
#[test]
fn of_sources_in_a_row_the_one_that_all_wait_for_is_left_out() {
    let mut first = with(0, &[1, 2, 3]);
    first.enter(1, &ALL, at(10));
    first.planned(links(&[(1, 2), (2, 3), (2, 0)]), at(10));
    first.hear_missing(ALL[1], &[]);
    first.hear_missing(ALL[2], &[ALL[1]]);
    first.hear_missing(ALL[3], &[ALL[2]]);
    let mut expected = vec![Decision::LeaveOut(ALL[1])];
    expected.extend(begin(2, &[0, 2, 3]));
    assert_eq!(first.tick(at(15), &[ALL[2]]), expected);
}

#[test]
fn who_says_that_it_is_done_before_there_is_a_plan_is_left_out_if_it_does_not_report() {
    let mut first = with(0, &[1, 2, 3]);
    let out = left_out_after(&mut first, |first, now| {
        first.enter(first.epoch() + 1, &ALL, now);
        assert!(!first.hear_done(ALL[3]) && first.done() == Some(&BTreeSet::new()));
        vec![ALL[3]]
    });
    assert_eq!(out, (1, vec![ALL[3]]));
}

#[test]
fn who_waits_for_one_that_is_done_is_left_out_once_it_has_no_link_from_there() {
    let mut first = with(0, &[1, 2, 3]);
    let out = left_out_after(&mut first, |first, now| {
        first.enter(first.epoch() + 1, &ALL, now);
        first.planned(&links(&[(1, 3), (1, 2)]) - &first.forbidden().clone(), now);
        assert!(ALL[..3].iter().all(|&place| !first.hear_done(place)));
        first.hear_missing(ALL[3], &[ALL[1]]);
        Vec::new()
    });
    assert_eq!(out, (2, vec![ALL[3]]));
    assert_eq!(*first.forbidden(), links(&[(1, 3)]));
    // So is one whose next plan has the link all the same.
    let mut first = with(0, &[1, 2, 3]);
    first.forbid(ALL[1], ALL[3], at(1));
    let out = left_out_after(&mut first, |first, now| {
        first.enter(first.epoch() + 1, &ALL, now);
        first.planned(links(&[(1, 3)]), now);
        assert!(ALL[..3].iter().all(|&place| !first.hear_done(place)));
        first.hear_missing(ALL[3], &[ALL[1]]);
        Vec::new()
    });
    assert_eq!(out, (1, vec![ALL[3]]));
}

/// Returns how many times patience is lost until somebody is left out, and who that is, in epochs that go like this; whom the planner itself waits for.
fn left_out_after(
    first: &mut Membership,
    mut epoch: impl FnMut(&mut Membership, Duration) -> Vec<Place>,
) -> (u64, Vec<Place>) {
    for times in 1..10 {
        let missing = epoch(first, at(10 * times));
        let decided = first.tick(at(10 * times + 5), &missing);
        let out = |decision| match decision {
            Decision::LeaveOut(place) => Some(place),
            _ => None,
        };
        let out: Vec<Place> = decided.into_iter().filter_map(out).collect();
        if !out.is_empty() {
            return (times, out);
        }
    }
    (10, Vec::new())
}

#[test]
fn who_has_reported_is_not_left_out_for_what_another_says() {
    let mut first = with(0, &[1, 2, 3]);
    let out = left_out_after(&mut first, |first, now| {
        first.enter(first.epoch() + 1, &ALL, now);
        ALL[1..3].iter().for_each(|&place| first.hear_report(place));
        ALL[1..3].iter().for_each(|&place| first.hear_missing(place, &ALL[..1]));
        first.hear_missing(ALL[3], &ALL);
        vec![ALL[3]]
    });
    assert_eq!(out, (1, vec![ALL[3]]));
}

#[test]
fn who_waits_says_so_in_time_whatever_it_is_told_meanwhile() {
    let mut second = with(1, &[0, 2, 3]);
    let complaint =
        |missing: &[Place]| vec![Decision::Complain { to: ALL[0], missing: missing.to_vec() }];
    second.enter(1, &ALL, at(10));
    second.progressed(at(13));
    assert_eq!(second.tick(at(13), &ALL[2..]), []);
    assert_eq!(second.tick(at(14), &ALL[2..]), complaint(&ALL[2..]));
    // It is said again if it is not so any more, but not all the time.
    assert_eq!(second.tick(at(14), &ALL[3..]), []);
    assert_eq!(second.tick(at(15), &ALL[3..]), complaint(&ALL[3..]));
    assert_eq!(second.tick(at(19), &ALL[3..]), []);
    assert_eq!(second.tick(at(20), &[]), complaint(&[]));
    // Under the plan it is counted anew, and from when the device itself has nothing else to do.
    second.planned(links(&[(3, 1)]), at(21));
    second.progressed(at(24));
    second.was_busy(at(23));
    assert_eq!(second.tick(at(26), &ALL[3..]), []);
    assert_eq!(second.tick(at(27), &ALL[3..]), complaint(&ALL[3..]));
}

#[test]
fn others_complain_to_the_planner_and_give_it_up_if_it_does_nothing() {
    let mut second = with(1, &[0, 2]);
    second.enter(1, &ALL[..3], at(10));
    let complaint = Decision::Complain { to: ALL[0], missing: vec![ALL[2]] };
    assert_eq!(second.tick(at(14), &[ALL[2]]), [complaint]);
    assert_eq!(second.tick(at(15), &[ALL[2]]), []);
    let mut expected = vec![Decision::LeaveOut(ALL[0])];
    expected.extend(begin(2, &[1, 2]));
    assert_eq!(second.tick(at(22), &[ALL[2]]), expected);
}

#[test]
fn a_planner_whose_plan_does_not_follow_from_its_reports_is_done_without_at_once() {
    let mut second = with(1, &[0, 2]);
    second.enter(1, &ALL[..3], at(10));
    second.convict_planner(at(11));
    let mut expected = vec![Decision::LeaveOut(ALL[0])];
    expected.extend(begin(2, &[1, 2]));
    assert_eq!(second.tick(at(11), &[ALL[2]]), expected);
    // The others wait for the next one, and believe it.
    let mut third = with(2, &[0, 1]);
    third.enter(1, &ALL[..3], at(10));
    assert!(!third.may_begin(ALL[1], at(11)));
    third.convict_planner(at(11));
    assert_eq!(third.tick(at(11), &[ALL[1]]), [Decision::LeaveOut(ALL[0])]);
    assert!(third.may_begin(ALL[1], at(11)));
}

#[test]
fn a_planner_that_lied_is_done_without_whatever_it_starts_or_connects_anew() {
    let mut third = with(2, &[0, 1]);
    third.enter(1, &ALL[..3], at(10));
    third.convict_planner(at(11));
    assert_eq!(third.tick(at(11), &[]), [Decision::LeaveOut(ALL[0])]);
    // It is told once.
    third.convict_planner(at(11));
    assert_eq!(third.tick(at(11), &[]), []);
    for (start, now) in [(1, 12), (1, 20), (2, 30), (3, 50)] {
        third.lost(ALL[0], at(now));
        third.came(ALL[0], start, 0, at(now));
        assert!(!third.may_begin(ALL[0], at(now)) && third.may_begin(ALL[1], at(now)), "{now}");
        let begun = EpochId { number: 9, begun: start as u32 };
        let heard = third.hear_begin(ALL[0], begun, &ALL[..3], at(now));
        assert!(matches!(heard, Beginning::Untimely { .. }), "{now}");
        assert_eq!(third.timely(at(now)), None);
    }
    assert!(third.may_begin(ALL[0], at(51)) && !third.may_begin(ALL[1], at(51)));
    assert_eq!(third.timely(at(51)), None, "that epoch has gone on without it");
}

#[test]
fn what_a_device_held_against_planners_it_holds_again_after_a_start_and_not_for_longer() {
    let mut third = with(2, &[0, 1]);
    third.enter(1, &ALL[..3], at(10));
    third.convict_planner(at(11));
    assert_eq!(third.convicted(), &BTreeMap::from([(ALL[0], at(51))]));
    for (rest, ends) in [(at(25), 25), (at(900), 40)] {
        let mut again = Membership::new(ALL[2], 4, 1, TIMING, at(0));
        again.recall_convicted(&BTreeMap::from([(ALL[0], rest), (ALL[2], rest)]));
        (0..2).for_each(|other| again.came(ALL[other], 1, 1, at(1)));
        assert!(!again.may_begin(ALL[0], at(ends - 1)) && again.may_begin(ALL[1], at(ends - 1)));
        assert!(again.may_begin(ALL[0], at(ends)) && !again.may_begin(ALL[1], at(ends)));
        assert_eq!(again.convicted().len(), 1, "nobody convicts itself");
    }
}

#[test]
fn a_later_number_that_somebody_claims_stops_nothing() {
    let mut first = with(0, &[1, 2]);
    first.enter(1, &ALL[..3], at(10));
    first.heard_of(900);
    assert_eq!((first.running(), first.epoch()), (Some(1), 900));
    complete(&mut first, &ALL[..3]);
    first.came(ALL[3], 1, 0, at(11));
    assert_eq!(first.tick(at(13), &[]), begin(901, &[0, 1, 2, 3]));
}

#[test]
fn a_link_without_a_model_is_forbidden_until_one_of_its_ends_starts_anew() {
    let mut first = with(0, &[1, 2, 3]);
    first.enter(1, &ALL, at(10));
    first.forbid(ALL[1], ALL[2], at(10));
    assert_eq!(first.tick(at(10), &[]), begin(2, &[0, 1, 2, 3]));
    assert!(first.forbidden().contains(&(ALL[1], ALL[2])));
    // A connection that breaks says nothing about a model.
    first.came(ALL[1], 1, 0, at(11));
    assert!(first.forbidden().contains(&(ALL[1], ALL[2])));
    first.came(ALL[1], 2, 0, at(12));
    assert!(first.forbidden().is_empty());
}

#[test]
fn what_is_held_against_a_device_is_dropped_once_in_ten_times_the_patience() {
    // By new starts, and where it was silent, also by new connections alone.
    for starts_anew in [true, false] {
        let mut first = with(0, &[1, 2, 3]);
        let mut is_in = Vec::new();
        for round in 1..=8 {
            let now = at(10 * round);
            first.enter(round, &ALL, now);
            first.planned(BTreeSet::new(), now);
            assert!(ALL[..3].iter().all(|&place| !first.hear_done(place)));
            first.tick(now + at(5), &[]);
            first.lost(ALL[3], now + at(6));
            first.came(ALL[3], if starts_anew { 1 + round } else { 1 }, 0, now + at(7));
            is_in.push(first.candidates(now + at(7)).contains(&ALL[3]));
        }
        // It comes back after 17 seconds, and again 40 seconds later.
        assert_eq!(is_in, [true, false, false, false, true, false, false, false], "{starts_anew}");
    }
    let mut first = with(0, &[1, 2, 3]);
    let mut forbidden = Vec::new();
    for start in 2..=7 {
        let now = at(10 * start);
        first.forbid(ALL[3], ALL[1], now);
        first.came(ALL[3], start, 0, now);
        forbidden.push(!first.forbidden().is_empty());
    }
    assert_eq!(forbidden, [false, true, true, true, false, true]);
    // Of its own complaints it does not know any more, however soon it starts anew.
    let mut first = with(0, &[1, 2, 3]);
    for start in 2..=4 {
        first.forbid(ALL[1], ALL[3], at(10 + start));
        first.came(ALL[3], start, 0, at(10 + start));
        assert!(first.forbidden().is_empty(), "{start}");
    }
}

#[test]
fn a_planner_that_did_nothing_is_not_back_soon_whatever_it_starts_or_connects_anew() {
    let mut third = with(2, &[0, 1]);
    third.enter(1, &ALL[..3], at(10));
    assert_eq!(third.tick(at(22), &[ALL[1]]), [Decision::LeaveOut(ALL[0])]);
    let comes = |third: &mut Membership, start: u64, now: u64| {
        third.lost(ALL[0], at(now));
        third.came(ALL[0], start, 0, at(now));
        // The next one may begin only while it is left out.
        !third.may_begin(ALL[1], at(now))
    };
    assert!(comes(&mut third, 2, 23));
    third.enter(2, &ALL[..3], at(24));
    assert_eq!(third.tick(at(36), &[ALL[1]]), [Decision::LeaveOut(ALL[0])]);
    let times = [(3, 37), (3, 50), (4, 62), (4, 63)];
    let is_back = times.map(|(start, now)| comes(&mut third, start, now));
    assert_eq!(is_back, [false, false, false, true]);
}

/// Returns whether the last of four devices is left out, when an epoch that it takes part in is ended like this every so many seconds. A patience is 4 of them.
fn is_out(every: u64, completes: bool, ends: impl Fn(&mut Membership, u64, Duration)) -> bool {
    let mut first = with(0, &[1, 2, 3]);
    for number in 1..=10 {
        let now = at(10 + every * number);
        first.enter(number, &ALL, now);
        if completes {
            complete(&mut first, &ALL);
        }
        ends(&mut first, number, now);
        if first.tick(now, &[]).contains(&Decision::LeaveOut(ALL[3])) {
            return number == 10;
        }
    }
    false
}

#[test]
fn who_ends_every_epoch_is_left_out_however_slowly_unless_one_is_completed_in_between() {
    let restarts = |first: &mut Membership, number: u64, now: Duration| {
        first.came(ALL[3], 100 + number, 0, now);
    };
    assert!(is_out(1, false, restarts) && is_out(3, false, restarts));
    assert!(is_out(1, true, restarts) && !is_out(3, true, restarts));
    let is_elsewhere = |first: &mut Membership, number: u64, now: Duration| {
        first.hear_takes_part(ALL[3], EpochId { number, begun: 9 }, now);
    };
    assert!(is_out(3, false, is_elsewhere) && is_out(1, true, is_elsewhere));
    assert!(!is_out(3, true, is_elsewhere));
    let greets_from_elsewhere = |first: &mut Membership, number: u64, now: Duration| {
        first.came(ALL[3], 1, EpochId { number, begun: 9 }, now);
    };
    assert!(is_out(3, false, greets_from_elsewhere) && is_out(1, true, greets_from_elsewhere));
    let is_lost = |first: &mut Membership, number: u64, now: Duration| {
        first.lost(ALL[3], now);
        first.came(ALL[3], 1, number, now);
    };
    // Whoever is lost once an epoch is over ends none.
    assert!(is_out(3, false, is_lost) && !is_out(1, true, is_lost));
}

#[test]
fn of_links_without_models_the_end_that_all_of_them_have_counts_most() {
    let timing = Timing { patience: at(40), ..TIMING };
    let mut first = Membership::new(ALL[0], 4, 0, timing, at(0));
    ALL[1..].iter().for_each(|&other| first.came(other, 1, 0, at(1)));
    let mut out = Vec::new();
    for number in 1..=10 {
        // It starts anew as seldom as the links are then free again.
        let now = at(1 + 400 * number);
        first.enter(number, &ALL, now);
        // What is said again does not count again.
        for from in [ALL[1], ALL[2], ALL[2]] {
            first.forbid(from, ALL[3], now);
        }
        first.came(ALL[3], 1 + number, 0, now);
        out = first.tick(now, &[]);
        if matches!(out[..], [Decision::LeaveOut(_), ..]) {
            break;
        }
    }
    assert_eq!(out[..1], [Decision::LeaveOut(ALL[3])]);
    assert_eq!(out[1..], begin(5, &[0, 1, 2]));
}

#[test]
fn only_the_first_that_is_here_may_begin() {
    let mut third = with(2, &[0, 1, 3]);
    assert!(
        third.may_begin(ALL[0], at(1))
            && !third.may_begin(ALL[1], at(1))
            && !third.may_begin(ALL[3], at(1))
    );
    third.lost(ALL[0], at(2));
    assert!(third.may_begin(ALL[1], at(2)));
    // A planner that does nothing is not waited for.
    let mut third = with(2, &[0, 1]);
    third.enter(1, &ALL[..3], at(10));
    assert_eq!(third.tick(at(22), &[ALL[1]]), [Decision::LeaveOut(ALL[0])]);
    assert!(third.may_begin(ALL[1], at(22)));
    assert_eq!(third.tick(at(23), &[ALL[1]]), [], "it is left out once");
    assert!(!third.may_begin(ALL[1], at(99)));
}

#[test]
fn numbers_far_away_are_not_believed() {
    let mut first = Membership::new(ALL[0], 4, 7, TIMING, at(0));
    assert!(!first.heard_of(7 + (1 << 32)) && !first.is_near(7 + (1 << 32), at(0)));
    assert_eq!(first.epoch(), 7);
    // It may have been away for long, but what others say does not add up.
    assert!(first.heard_of(1_000_000) && !first.heard_of(2_000_000));
    assert!(first.is_near(1_000_001, at(0)));
    // Whoever knows of no epoch joins a fleet of any age.
    let mut new = Membership::new(ALL[0], 4, 0, TIMING, at(0));
    assert!(!new.heard_of(1 << 32) && !new.is_near(1 << 32, at(0)) && new.heard_of(50_000_000));
}

#[test]
fn who_lost_a_member_complains_too() {
    let mut third = with(2, &[0, 1, 3]);
    third.enter(1, &ALL, at(10));
    third.lost(ALL[3], at(11));
    assert_eq!(third.tick(at(13), &[ALL[3]]), []);
    assert_eq!(
        third.tick(at(14), &[ALL[3]]),
        [Decision::Complain { to: ALL[0], missing: vec![ALL[3]] }]
    );
}

#[test]
fn a_broken_connection_alone_does_not_end_an_epoch() {
    let mut first = with(0, &[1, 2]);
    first.enter(1, &ALL[..3], at(10));
    first.came(ALL[2], 1, 1, at(11));
    assert_eq!(first.tick(at(12), &[]), []);
    complete(&mut first, &ALL[..3]);
    first.came(ALL[2], 1, 1, at(13));
    assert_eq!(first.tick(at(20), &[]), []);
}

#[test]
fn who_has_other_settings_is_not_waited_for() {
    let mut first = with(0, &[1, 2]);
    assert_eq!(first.tick(at(1), &[]), []);
    let setting = "data.classes".to_owned();
    first.set_apart(ALL[3], Difference { setting, here: None, there: None }, at(1));
    assert_eq!(first.tick(at(1), &[]), begin(1, &[0, 1, 2]));
    // It is started again with the right ones.
    first.enter(1, &ALL[..3], at(1));
    complete(&mut first, &ALL[..3]);
    first.came(ALL[3], 2, 0, at(2));
    assert!(first.unlike().is_empty());
    assert_eq!(first.tick(at(4), &[]), begin(2, &[0, 1, 2, 3]));
}
