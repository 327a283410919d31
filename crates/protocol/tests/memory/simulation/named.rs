//! The schedules that findings about fleets of real devices were made by.

use std::time::Duration;

use stlf_protocol::Place;

use super::faults::Fault;
use super::invariants::CONVERGED_AMONG_LIARS_AFTER;
use super::liars::{Kind, Lie};
use super::random::Random;
use super::{Simulation, TIMING, ms};

/// All have one plan again this long after whatever went wrong, if nobody lies.
const SOON: Duration = Duration::from_secs(10);

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn place(index: usize) -> Place {
    Place::new(index)
}

/// Devices that have completed an epoch together, in several orders of what happens.
fn fleets(devices: usize, liars: &[(usize, Lie)]) -> impl Iterator<Item = Simulation> {
    (0..5).map(move |seed| {
        let mut fleet = Simulation::new(seed, devices, liars).traced();
        is_fine(&mut fleet, Duration::ZERO, CONVERGED_AMONG_LIARS_AFTER);
        fleet
    })
}

/// All converge within this time after the last fault.
fn is_fine(fleet: &mut Simulation, last: Duration, most: Duration) {
    if let Err(what) = fleet.converge(last, most) {
        panic!("{}\n{what}", fleet.trace());
    }
}

/// Something happens and is over after a while. All complete a later epoch together soon after it.
fn all_are_back(mut fleet: Simulation, begins: Fault, lasts: Duration, ends: Fault) {
    let before = fleet.converged();
    let now = fleet.now;
    fleet.at(now, begins);
    fleet.at(now + lasts, ends);
    fleet.run_until(now + lasts + ms(1));
    is_fine(&mut fleet, now + lasts, SOON);
    // A device that never was seen to be gone may complete what it was at; only then the others notice.
    let end = fleet.now + secs(8);
    fleet.run_until(end);
    is_fine(&mut fleet, end, Duration::ZERO);
    assert!(fleet.converged() > before, "{}", fleet.trace());
}

#[test]
fn a_member_is_no_planner_while_an_earlier_one_is_here() {
    for liar in 1..4 {
        for mut fleet in fleets(4, &[(liar, Lie::new(Kind::Begins))]) {
            // When a device has just started it may know nobody before the liar.
            let (before, end) = (fleet.epochs_of_liars(), fleet.now + secs(60));
            fleet.run_until(end);
            is_fine(&mut fleet, end, CONVERGED_AMONG_LIARS_AFTER);
            assert_eq!(fleet.epochs_of_liars(), before, "{}", fleet.trace());
        }
    }
}

#[test]
fn whoever_says_the_same_again_is_left_out_like_one_that_is_silent() {
    for kind in [Kind::Repeats, Kind::IsSilent, Kind::IsNeverDone] {
        for fleet in fleets(4, &[(3, Lie::new(kind))]) {
            let patience = TIMING.patience;
            assert!(fleet.now < 4 * patience, "{kind:?}: {:?}\n{}", fleet.now, fleet.trace());
        }
    }
}

#[test]
fn who_is_done_too_early_or_never_and_blames_others_holds_nobody_up_for_long() {
    for (kind, most) in [
        (Kind::IsDoneAtOnce, 2),
        (Kind::WaitsForNothing, 4),
        (Kind::FramesBeforePlan, 2),
        // It is given up link by link.
        (Kind::FramesUnderPlan, 5),
    ] {
        for devices in 3..6 {
            for liar in 1..devices {
                for mut fleet in fleets(devices, &[(liar, Lie::new(kind))]) {
                    let (first, most) = (fleet.now, most * TIMING.patience);
                    assert!(first < most, "{kind:?}: {first:?}\n{}", fleet.trace());
                    let end = fleet.now + secs(60);
                    fleet.run_until(end);
                    is_fine(&mut fleet, end, Duration::ZERO);
                    assert!(!fleet.takes_part(place(liar)), "{}", fleet.trace());
                }
            }
        }
    }
}

#[test]
fn complaints_have_no_honest_device_left_out() {
    for devices in 3..6 {
        for liar in 1..devices {
            for mut fleet in fleets(devices, &[(liar, Lie::new(Kind::Frames))]) {
                let end = fleet.now + secs(120);
                fleet.run_until(end);
                is_fine(&mut fleet, end, CONVERGED_AMONG_LIARS_AFTER);
            }
        }
    }
}

#[test]
fn a_planner_that_was_cut_off_or_suspended_is_back_in_one_plan_with_all() {
    for fleet in fleets(4, &[]) {
        all_are_back(fleet, Fault::Suspend(place(0)), secs(30), Fault::Wake(place(0)));
    }
    for mut fleet in fleets(4, &[]) {
        let now = fleet.now;
        for other in 1..3 {
            fleet.at(now, Fault::Cut(place(0), place(other)));
            fleet.at(now + secs(15), Fault::Mend(place(0), place(other)));
        }
        all_are_back(
            fleet,
            Fault::Cut(place(0), place(3)),
            secs(15),
            Fault::Mend(place(0), place(3)),
        );
    }
}

#[test]
fn a_device_that_starts_again_at_once_does_not_wait_for_ever() {
    for device in 0..4 {
        for after in [ms(10), ms(500), secs(2), secs(6)] {
            for fleet in fleets(4, &[]) {
                let end = Fault::End { place: place(device), says_so: after == secs(2) };
                all_are_back(fleet, end, after, Fault::Start(place(device)));
            }
        }
    }
}

#[test]
fn after_a_kill_and_a_late_joiner_nobody_healthy_is_out() {
    for killed in 0..4 {
        for mut fleet in fleets(5, &[]) {
            let now = fleet.now;
            fleet.at(now, Fault::End { place: place(4), says_so: true });
            fleet.run_until(now + secs(3));
            fleet.at(now + secs(3), Fault::End { place: place(killed), says_so: false });
            let again = Fault::Start(place(killed));
            all_are_back(fleet, again, ms(500), Fault::Start(place(4)));
        }
    }
}

#[test]
fn who_has_other_settings_takes_no_part_until_they_are_equal() {
    for seed in 0..5 {
        let mut fleet = Simulation::new(seed, 4, &[]).with_settings(place(2), "storm, calm");
        is_fine(&mut fleet, secs(1), SOON);
        assert_eq!(fleet.epoch_of(place(2)), None);
        let now = fleet.now;
        fleet.at(now, Fault::End { place: place(2), says_so: true });
        fleet.run_until(now + ms(1));
        let mut fleet = fleet.with_settings(place(2), "calm, storm");
        fleet.at(now + secs(1), Fault::Start(place(2)));
        is_fine(&mut fleet, now + secs(1), SOON);
    }
}

#[test]
fn numbers_far_ahead_use_none_up() {
    for mut fleet in fleets(4, &[(2, Lie::new(Kind::IsFarAhead))]) {
        let end = fleet.now + secs(60);
        fleet.run_until(end);
        is_fine(&mut fleet, end, CONVERGED_AMONG_LIARS_AFTER);
        assert!(fleet.converged().unwrap().number < 1 << 36);
    }
}

#[test]
fn who_starts_anew_all_the_time_holds_nobody_up() {
    for kind in [Kind::Restarts, Kind::IsElsewhere] {
        for mut fleet in fleets(5, &[(3, Lie::new(kind))]) {
            let now = fleet.now;
            fleet.at(now, Fault::End { place: place(4), says_so: true });
            fleet.at(now + secs(20), Fault::Start(place(4)));
            is_fine(&mut fleet, now + secs(21), CONVERGED_AMONG_LIARS_AFTER);
        }
    }
}

#[test]
fn who_starts_anew_in_every_epoch_ends_no_more_than_ten() {
    for liar in 1..4 {
        for fleet in fleets(4, &[(liar, Lie::new(Kind::RestartsSlowly))]) {
            assert!(fleet.now < secs(60), "{:?}\n{}", fleet.now, fleet.trace());
        }
    }
}

#[test]
fn who_starts_anew_whenever_it_is_left_out_is_not_always_asked_again() {
    for liar in 1..4 {
        for mut fleet in fleets(4, &[(liar, Lie::new(Kind::RestartsWhenOut))]) {
            let before = fleet.converged().unwrap().number;
            let end = fleet.now + 40 * TIMING.patience;
            fleet.run_until(end);
            is_fine(&mut fleet, end, 2 * TIMING.patience);
            // It is asked again four times, each time for one epoch in vain.
            let epochs = fleet.converged().unwrap().number - before;
            assert!(epochs <= 10, "{epochs}\n{}", fleet.trace());
        }
    }
}

#[test]
fn who_has_no_use_for_any_model_ends_epochs_only_while_there_are_links_to_it() {
    for devices in 3..7 {
        for liar in (1..devices).step_by(2) {
            for fleet in fleets(devices, &[(liar, Lie::new(Kind::FailsModels))]) {
                assert!(fleet.now < secs(60), "{:?}\n{}", fleet.now, fleet.trace());
            }
        }
    }
}

#[test]
fn who_takes_no_probes_has_nobody_left_out() {
    for devices in [3, 4, 5] {
        for liar in 0..devices {
            for mut fleet in fleets(devices, &[(liar, Lie::new(Kind::TakesNoProbes))]) {
                let first = fleet.now;
                assert!(first < TIMING.patience, "{first:?}\n{}", fleet.trace());
                // Nobody waits for it again.
                let now = fleet.now;
                fleet.at(now, Fault::Renew(place(0)));
                fleet.run_until(now + ms(200));
                is_fine(&mut fleet, now + ms(200), secs(4));
                let end = fleet.now + secs(60);
                fleet.run_until(end);
                is_fine(&mut fleet, end, Duration::ZERO);
            }
        }
    }
}

#[test]
fn a_first_device_that_does_nothing_is_not_waited_for() {
    for fleet in fleets(4, &[(0, Lie::new(Kind::IsSilent))]) {
        assert!(fleet.converged().is_some());
    }
}

#[test]
fn a_first_device_that_ends_epochs_before_anything_is_done_is_not_waited_for() {
    for mut fleet in fleets(4, &[(0, Lie::new(Kind::EndsEpochs))]) {
        let plan = fleet.converged().unwrap();
        let end = fleet.now + secs(60);
        fleet.run_until(end);
        is_fine(&mut fleet, end, CONVERGED_AMONG_LIARS_AFTER);
        assert!(fleet.converged().unwrap() >= plan, "{}", fleet.trace());
    }
}

#[test]
fn a_planner_that_has_models_sent_to_itself_gets_none_and_is_done_without() {
    for devices in [4, 5, 7] {
        for mut fleet in fleets(devices, &[(0, Lie::new(Kind::TakesModels))]) {
            let plan = fleet.converged().unwrap();
            let end = fleet.now + secs(60);
            fleet.run_until(end);
            is_fine(&mut fleet, end, CONVERGED_AMONG_LIARS_AFTER);
            assert!(fleet.converged().unwrap() >= plan, "{}", fleet.trace());
        }
    }
}

/// A lie that shows who lies has the others do without the planner at once: they do not wait for it, and do not have it back soon.
fn is_done_without_at_once(kind: Kind) {
    for devices in [4, 5, 6] {
        for mut fleet in fleets(devices, &[(0, Lie::new(kind))]) {
            let is_without = fleet.now < TIMING.patience && !fleet.takes_part(place(0));
            assert!(is_without, "{kind:?}: {:?}\n{}", fleet.now, fleet.trace());
            let end = fleet.now + secs(60);
            fleet.run_until(end);
            is_fine(&mut fleet, end, Duration::ZERO);
            assert!(!fleet.takes_part(place(0)), "{}", fleet.trace());
        }
    }
}

#[test]
fn a_planner_whose_plans_are_none_is_done_without_at_once() {
    is_done_without_at_once(Kind::GarblesPlans);
}

#[test]
fn a_planner_that_denies_plans_is_done_without_at_once() {
    is_done_without_at_once(Kind::DeniesPlans);
}

#[test]
fn a_planner_that_invents_means_is_done_without_at_once() {
    is_done_without_at_once(Kind::InventsMeans);
}

#[test]
fn a_planner_that_lied_is_done_without_though_it_connects_anew() {
    for devices in [4, 5] {
        for mut fleet in fleets(devices, &[(0, Lie::new(Kind::ComesBack))]) {
            let (before, plan) = (fleet.epochs_of_liars(), fleet.converged());
            let end = fleet.now + secs(60);
            fleet.run_until(end);
            is_fine(&mut fleet, end, Duration::ZERO);
            assert_eq!(fleet.converged(), plan, "{}", fleet.trace());
            assert_eq!(fleet.epochs_of_liars(), before, "{}", fleet.trace());
        }
    }
}

#[test]
fn a_plan_that_is_none_convicts_nobody_if_it_is_not_the_planners() {
    for liar in 1..4 {
        for mut fleet in fleets(4, &[(liar, Lie::new(Kind::GarblesPlans))]) {
            let plan = fleet.converged();
            let end = fleet.now + secs(60);
            fleet.run_until(end);
            is_fine(&mut fleet, end, Duration::ZERO);
            assert_eq!(fleet.converged(), plan, "{}", fleet.trace());
            assert!((0..4).all(|at| fleet.takes_part(place(at))), "{}", fleet.trace());
        }
    }
}

/// Ten devices, five minutes, 174 kills without a word.
#[test]
fn ten_devices_that_are_killed_for_five_minutes_have_one_plan_ten_seconds_later() {
    for seed in 0..3 {
        let mut random = Random::new(seed);
        let mut fleet = Simulation::new(seed, 10, &[]).traced();
        let mut last = Duration::ZERO;
        for _ in 0..174 {
            let (when, killed) = (random.within(secs(300)), place(random.below(10) as usize));
            let again = when + random.within(secs(2));
            fleet.at(when, Fault::End { place: killed, says_so: false });
            fleet.at(again, Fault::Start(killed));
            last = last.max(again);
        }
        is_fine(&mut fleet, last, SOON);
    }
}

#[test]
fn who_gets_other_data_gets_one_epoch_and_so_do_several_at_once() {
    for devices in 2..5 {
        for renewed in 1..=devices {
            for mut fleet in fleets(devices, &[]) {
                let before = fleet.converged().unwrap();
                let now = fleet.now;
                (0..renewed)
                    .for_each(|k| fleet.at(now + ms(30 * k as u64), Fault::Renew(place(k))));
                fleet.run_until(now + ms(200));
                is_fine(&mut fleet, now + ms(200), SOON);
                let end = fleet.now + secs(20);
                fleet.run_until(end);
                let after = fleet.converged().unwrap();
                assert_eq!(after.number, before.number + 1, "{}", fleet.trace());
            }
        }
    }
}

#[test]
fn other_data_in_the_middle_of_an_epoch_count_from_the_next_one_on() {
    for mut fleet in fleets(3, &[]) {
        let before = fleet.converged().unwrap();
        let now = fleet.now;
        // An epoch begins without the one that is gone; its middle is soon after that is noticed.
        fleet.at(now, Fault::End { place: place(2), says_so: true });
        fleet.at(now + ms(1_250), Fault::Renew(place(1)));
        fleet.at(now + secs(4), Fault::Start(place(2)));
        fleet.run_until(now + secs(4) + ms(1));
        is_fine(&mut fleet, now + secs(4), SOON);
        assert!(fleet.converged().unwrap().number > before.number, "{}", fleet.trace());
    }
}
