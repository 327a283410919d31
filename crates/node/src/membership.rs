//! Who takes part, and when an epoch begins, is over, or is begun anew. A machine without I/O: time comes in as an argument.
//!
//! The first of those that are here plans. An epoch is over when all its devices have said so. It is begun anew, under a new
//! number, when a device is lost, comes back, or stays silent; and, after it is over, when somebody joins or leaves.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// For all to come; then those that came begin.
    pub wait: Duration,
    /// After somebody joined or left, for others to do so too.
    pub settle: Duration,
    /// For the next sign of progress within an epoch.
    pub patience: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            wait: Duration::from_secs(60),
            settle: Duration::from_secs(2),
            patience: Duration::from_secs(30),
        }
    }
}

/// A device that was silent is not asked again for so many times the patience.
const LEFT_OUT_FOR: u32 = 10;

/// A planner that does not act upon complaints is given up after so many times the patience.
const PLANNER_MUST_ACT: u32 = 3;

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// As the planner: begin an epoch.
    Begin {
        /// Above all that were heard of.
        number: u64,
        /// Ascending.
        members: Vec<usize>,
    },
    /// Tell the planner whom this device waits for.
    Complain {
        /// The planner.
        to: usize,
        /// Those it waits for.
        missing: Vec<usize>,
    },
    /// A device was silent for too long and is left out.
    LeaveOut(usize),
}

/// What one device knows of who takes part.
#[derive(Debug, Clone)]
pub struct Membership {
    own: usize,
    timing: Timing,
    /// How many devices the roster has.
    expected: usize,
    started: Duration,
    /// Connected, and this device itself.
    here: BTreeSet<usize>,
    changed: Duration,
    /// The highest number that was heard of.
    epoch: u64,
    running: Option<Running>,
    /// Until when silent devices are left out.
    left_out: BTreeMap<usize, Duration>,
    /// Links over which no model came.
    forbidden: BTreeSet<(usize, usize)>,
}

#[derive(Debug, Clone)]
struct Running {
    number: u64,
    members: BTreeSet<usize>,
    progress: Duration,
    has_complained: bool,
    complaints: BTreeMap<usize, BTreeSet<usize>>,
    done: BTreeSet<usize>,
    is_over: bool,
    is_broken: bool,
}

impl Membership {
    /// A device that has just started. `epoch` is the last one that it knows of.
    pub fn new(
        own: usize,
        expected: usize,
        epoch: u64,
        timing: Timing,
        now: Duration,
    ) -> Membership {
        Membership {
            own,
            timing,
            expected,
            started: now,
            here: BTreeSet::from([own]),
            changed: now,
            epoch,
            running: None,
            left_out: BTreeMap::new(),
            forbidden: BTreeSet::new(),
        }
    }

    /// The highest epoch that was heard of.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The epoch that this device takes part in. Others may know of later ones; that alone changes nothing here.
    pub fn running(&self) -> Option<u64> {
        self.running.as_ref().map(|running| running.number)
    }

    /// Who is here, this device included.
    pub fn here(&self) -> &BTreeSet<usize> {
        &self.here
    }

    /// Who takes part in the running epoch.
    pub fn members(&self) -> Option<&BTreeSet<usize>> {
        self.running.as_ref().map(|running| &running.members)
    }

    /// Who plans the running epoch: the first of those that take part.
    pub fn planner(&self) -> Option<usize> {
        self.members()?.first().copied()
    }

    /// Who has said that the running epoch is over for them; only its planner knows.
    pub fn done(&self) -> Option<&BTreeSet<usize>> {
        self.running.as_ref().map(|running| &running.done)
    }

    /// Whether the epoch is over for all.
    pub fn is_over(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.is_over)
    }

    /// Links over which no model came.
    pub fn forbidden(&self) -> &BTreeSet<(usize, usize)> {
        &self.forbidden
    }

    /// The roster has so many devices now.
    pub fn expect(&mut self, devices: usize) {
        self.expected = devices;
    }

    /// A device came. If it was here before it has started anew, and does not know what it knew.
    pub fn came(&mut self, place: usize, now: Duration) {
        if !self.here.insert(place) {
            self.lost(place, now);
            self.here.insert(place);
        }
        self.left_out.remove(&place);
        self.forbidden.retain(|&(from, to)| from != place && to != place);
        self.changed = now;
    }

    /// A device is lost.
    pub fn lost(&mut self, place: usize, now: Duration) {
        self.here.remove(&place);
        self.changed = now;
        if let Some(running) = self.running.as_mut().filter(|r| !r.is_over)
            && running.members.contains(&place)
        {
            running.is_broken = true;
        }
    }

    /// A number that another device knows of.
    pub fn heard_of(&mut self, epoch: u64) {
        self.epoch = self.epoch.max(epoch);
    }

    /// This device takes part in an epoch.
    pub fn enter(&mut self, number: u64, members: &[usize], now: Duration) {
        self.heard_of(number);
        self.running = Some(Running {
            number,
            members: members.iter().copied().collect(),
            progress: now,
            has_complained: false,
            complaints: BTreeMap::new(),
            done: BTreeSet::new(),
            is_over: false,
            is_broken: false,
        });
    }

    /// Something of the running epoch arrived.
    pub fn progressed(&mut self, now: Duration) {
        if let Some(running) = &mut self.running {
            running.progress = now;
            running.has_complained = false;
        }
    }

    /// As the planner: a device says that the epoch is over for it. Whether it now is for all.
    pub fn hear_done(&mut self, from: usize) -> bool {
        let Some(running) = self.running.as_mut().filter(|r| !r.is_over) else { return false };
        if running.members.contains(&from) {
            running.done.insert(from);
        }
        running.is_over = running.done == running.members;
        running.is_over
    }

    /// The planner says that the epoch is over.
    pub fn hear_complete(&mut self) {
        if let Some(running) = &mut self.running {
            running.is_over = true;
        }
    }

    /// As the planner: a device waits for others.
    pub fn hear_missing(&mut self, from: usize, missing: &[usize]) {
        if let Some(running) = self.running.as_mut().filter(|r| r.members.contains(&from)) {
            let named = missing.iter().copied().filter(|place| running.members.contains(place));
            running.complaints.insert(from, named.collect());
        }
    }

    /// As the planner: no model came over this link; the next plan does without it.
    pub fn forbid(&mut self, from: usize, to: usize) {
        self.forbidden.insert((from, to));
        if let Some(running) = &mut self.running {
            running.is_broken = true;
            running.is_over = false;
        }
    }

    /// As the planner: nothing can be planned for this device as things are.
    pub fn leave_out(&mut self, place: usize, now: Duration) {
        self.left_out.insert(place, now + self.timing.patience * LEFT_OUT_FOR);
        if let Some(running) = &mut self.running {
            running.is_broken = true;
        }
    }

    /// Whoever is here and not left out.
    fn candidates(&self, now: Duration) -> BTreeSet<usize> {
        let out = |place: &usize| self.left_out.get(place).is_some_and(|until| now < *until);
        self.here.iter().copied().filter(|place| !out(place)).collect()
    }

    /// What is to be done now. `missing` are those that this device waits for.
    pub fn tick(&mut self, now: Duration, missing: &[usize]) -> Vec<Decision> {
        let mut decisions = self.lose_patience(now, missing);
        let candidates = self.candidates(now);
        let begins = match &self.running {
            None => {
                let all = self.here.len() >= self.expected;
                let waited = now.saturating_sub(self.started) >= self.timing.wait;
                (all || waited) && candidates.len() > 1
            }
            Some(running) if running.is_over => {
                let settled = now.saturating_sub(self.changed) >= self.timing.settle;
                candidates != running.members && settled && candidates.len() > 1
            }
            Some(running) => running.is_broken && candidates.len() > 1,
        };
        if begins && candidates.first() == Some(&self.own) {
            let (number, members) = (self.epoch + 1, candidates.into_iter().collect());
            decisions.push(Decision::Begin { number, members });
        }
        decisions
    }

    /// Nothing has arrived for long: the planner leaves out who is silent, the others tell it whom they wait for.
    fn lose_patience(&mut self, now: Duration, missing: &[usize]) -> Vec<Decision> {
        let patience = self.timing.patience;
        let Some(running) = self.running.as_mut().filter(|r| !r.is_over && !r.is_broken) else {
            return Vec::new();
        };
        let silence = now.saturating_sub(running.progress);
        let planner = running.members.first().copied().unwrap_or(self.own);
        if silence < patience {
            return Vec::new();
        }
        let mut decisions = Vec::new();
        let out: BTreeSet<usize> = if planner == self.own {
            // Complaints that set out at the same time need a moment to arrive.
            if silence < patience + patience / 4 {
                return Vec::new();
            }
            let waits = running.members.iter().filter(|m| !running.done.contains(m)).copied();
            suspects(self.own, missing, &running.complaints, waits.collect())
        } else if silence >= patience * PLANNER_MUST_ACT {
            BTreeSet::from([planner])
        } else {
            if !running.has_complained {
                running.has_complained = true;
                decisions.push(Decision::Complain { to: planner, missing: missing.to_vec() });
            }
            return decisions;
        };
        running.is_broken = true;
        for place in out {
            self.left_out.insert(place, now + patience * LEFT_OUT_FOR);
            decisions.push(Decision::LeaveOut(place));
        }
        decisions
    }
}

/// Who holds an epoch up: those that others wait for and that do not themselves wait for anybody. If there is none, those that
/// most wait for; without any complaint, those that have not said that they are done.
fn suspects(
    own: usize,
    missing: &[usize],
    complaints: &BTreeMap<usize, BTreeSet<usize>>,
    not_done: BTreeSet<usize>,
) -> BTreeSet<usize> {
    let mut named: BTreeMap<usize, usize> = BTreeMap::new();
    for &place in missing.iter().chain(complaints.values().flatten()) {
        if place != own {
            *named.entry(place).or_default() += 1;
        }
    }
    let silent: BTreeSet<usize> =
        named.keys().copied().filter(|place| !complaints.contains_key(place)).collect();
    if !silent.is_empty() {
        return silent;
    }
    match named.values().max() {
        Some(most) => {
            let worst = named.iter().filter(|(_, count)| *count == most);
            worst.map(|(&place, _)| place).collect()
        }
        None => not_done.into_iter().filter(|&place| place != own).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMING: Timing = Timing {
        wait: Duration::from_secs(10),
        settle: Duration::from_secs(2),
        patience: Duration::from_secs(4),
    };

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn with(own: usize, others: &[usize]) -> Membership {
        let mut membership = Membership::new(own, 4, 0, TIMING, at(0));
        others.iter().for_each(|&place| membership.came(place, at(1)));
        membership
    }

    fn begin(number: u64, members: &[usize]) -> Vec<Decision> {
        vec![Decision::Begin { number, members: members.to_vec() }]
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
        first.enter(1, &[0, 1, 2], at(10));
        first.came(3, at(11));
        assert_eq!(first.tick(at(11), &[]), []);
        assert!([0, 1].into_iter().all(|place| !first.hear_done(place)));
        assert!(first.hear_done(2));
        assert_eq!(first.tick(at(12), &[]), []);
        assert_eq!(first.tick(at(13), &[]), begin(2, &[0, 1, 2, 3]));
        first.enter(2, &[0, 1, 2, 3], at(13));
        assert_eq!((0..4).filter(|&place| first.hear_done(place)).count(), 1);
        assert_eq!(first.tick(at(20), &[]), []);
        first.lost(2, at(20));
        assert_eq!(first.tick(at(21), &[]), []);
        assert_eq!(first.tick(at(22), &[]), begin(3, &[0, 1, 3]));
    }

    #[test]
    fn an_epoch_is_begun_anew_when_a_device_is_lost_or_comes_back_in_it() {
        let mut first = with(0, &[1, 2]);
        first.enter(1, &[0, 1, 2], at(10));
        first.lost(2, at(11));
        assert_eq!(first.tick(at(11), &[]), begin(2, &[0, 1]));
        first.enter(2, &[0, 1], at(11));
        // It never seemed gone, but has started anew.
        first.came(1, at(12));
        assert_eq!(first.tick(at(12), &[]), begin(3, &[0, 1]));
        // The planner is lost: the next one begins.
        let mut second = with(1, &[0, 2]);
        second.enter(4, &[0, 1, 2], at(10));
        second.lost(0, at(11));
        assert_eq!(second.tick(at(11), &[]), begin(5, &[1, 2]));
    }

    #[test]
    fn who_is_silent_is_left_out_and_who_waits_is_not() {
        let mut first = with(0, &[1, 2, 3]);
        first.enter(1, &[0, 1, 2, 3], at(10));
        assert_eq!(first.tick(at(14), &[1, 2, 3]), []);
        first.hear_missing(1, &[3]);
        first.hear_missing(2, &[3]);
        let mut expected = vec![Decision::LeaveOut(3)];
        expected.extend(begin(2, &[0, 1, 2]));
        assert_eq!(first.tick(at(15), &[1, 2, 3]), expected);
        first.enter(2, &[0, 1, 2], at(15));
        assert_eq!((0..3).filter(|&place| first.hear_done(place)).count(), 1);
        // It is given another chance only much later.
        assert_eq!(first.tick(at(50), &[]), []);
        assert_eq!(first.tick(at(56), &[]), begin(3, &[0, 1, 2, 3]));
    }

    #[test]
    fn others_complain_to_the_planner_and_give_it_up_if_it_does_nothing() {
        let mut second = with(1, &[0, 2]);
        second.enter(1, &[0, 1, 2], at(10));
        let complaint = Decision::Complain { to: 0, missing: vec![2] };
        assert_eq!(second.tick(at(14), &[2]), [complaint]);
        assert_eq!(second.tick(at(15), &[2]), []);
        let mut expected = vec![Decision::LeaveOut(0)];
        expected.extend(begin(2, &[1, 2]));
        assert_eq!(second.tick(at(22), &[2]), expected);
    }

    #[test]
    fn a_later_number_that_somebody_claims_stops_nothing() {
        let mut first = with(0, &[1, 2]);
        first.enter(1, &[0, 1, 2], at(10));
        first.heard_of(900);
        assert_eq!((first.running(), first.epoch()), (Some(1), 900));
        assert_eq!((0..3).filter(|&place| first.hear_done(place)).count(), 1);
        first.came(3, at(11));
        assert_eq!(first.tick(at(13), &[]), begin(901, &[0, 1, 2, 3]));
    }

    #[test]
    fn a_link_without_a_model_is_forbidden_until_one_of_its_ends_comes_anew() {
        let mut first = with(0, &[1, 2, 3]);
        first.enter(1, &[0, 1, 2, 3], at(10));
        first.forbid(1, 2);
        assert_eq!(first.tick(at(10), &[]), begin(2, &[0, 1, 2, 3]));
        assert!(first.forbidden().contains(&(1, 2)));
        first.came(1, at(11));
        assert!(first.forbidden().is_empty());
    }
}
