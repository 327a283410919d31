//! Who begins or ends epochs again and again, and is left out for it.
//!
//! Two things are counted. How many times in a row, by the clock, a device has started anew or asked for another epoch; and how many epochs
//! came to nothing through one device while none was completed, whatever time that took: through a device that begins them, as those see it
//! that take part, or through a member that is lost or takes part elsewhere, as their planner sees it. When somebody else comes or goes, that
//! may have been the reason, and one epoch less counts. So nobody is left out where many come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{LEFT_OUT_FOR, Membership};
use crate::roster::Place;

/// A device that starts anew, or ends an epoch otherwise, so many times in a row is left out like one that is silent.
const MOST_ENDED: u32 = 10;

/// In a row is what happens within this part of the patience after the time before.
const IN_A_ROW: u32 = 4;

/// A device may begin so many epochs in a row that come to nothing, and one for each device of the roster. It is more than a single member
/// can have an honest planner begin before that leaves the member out, also if the planner starts anew twice and counts from nothing.
const MOST_BEGUN: u32 = 3 * MOST_ENDED;

/// What a device has counted of others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Restless {
    /// How many times in a row a device has started anew, or ended an epoch otherwise, and when it did so last.
    ended: BTreeMap<Place, (u32, Duration)>,
    /// How many epochs came to nothing through a device. Devices that stand before this one begin epochs, those behind it end them.
    in_vain: BTreeMap<Place, u32>,
    /// Those that were left out outside of any look at the clock, and that nobody was told of yet.
    pub(super) untold: BTreeSet<Place>,
}

/// Until when a device is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Out {
    pub(super) until: Duration,
    /// Whether it stays out although it starts anew, or begins an epoch.
    pub(super) is_restless: bool,
}

impl Membership {
    /// Leaves a device out that was silent or cannot be planned for.
    pub(super) fn set_out(&mut self, place: Place, now: Duration) {
        let is_restless = self.is_restless(place, now);
        let until = now + self.timing.patience * LEFT_OUT_FOR;
        self.left_out.insert(place, Out { until, is_restless });
    }

    /// Leaves a device out that does not let epochs end.
    fn set_restless_out(&mut self, place: Place, now: Duration) {
        if !self.is_restless(place, now) {
            self.restless.untold.insert(place);
        }
        let until = now + self.timing.patience * LEFT_OUT_FOR;
        self.left_out.insert(place, Out { until, is_restless: true });
    }

    /// Whether a device is left out.
    pub(super) fn is_out(&self, place: Place, now: Duration) -> bool {
        self.left_out.get(&place).is_some_and(|out| now < out.until)
    }

    /// Whether it is because it does not let epochs end.
    pub(super) fn is_restless(&self, place: Place, now: Duration) -> bool {
        self.left_out.get(&place).is_some_and(|out| now < out.until && out.is_restless)
    }

    /// A device has started anew, or asked for another epoch.
    pub(super) fn has_ended(&mut self, place: Place, now: Duration) {
        let in_a_row = self.timing.patience / IN_A_ROW;
        let (count, last) = self.restless.ended.entry(place).or_insert((0, now));
        let continues = now.saturating_sub(*last) <= in_a_row;
        (*count, *last) = (if continues { *count + 1 } else { 1 }, now);
        if *count >= MOST_ENDED {
            self.set_restless_out(place, now);
        }
    }

    /// As the planner: an epoch comes to nothing through a member.
    pub(super) fn ends_in_vain(&mut self, place: Place, now: Duration) {
        let count = self.restless.in_vain.entry(place).or_default();
        *count += 1;
        if *count >= MOST_ENDED {
            // It gets one more chance when it is taken in again.
            *count = MOST_ENDED - 1;
            self.set_restless_out(place, now);
        }
    }

    /// This device takes part in an epoch of another planner.
    pub(super) fn begins_in_vain(&mut self, planner: Place) {
        let own = self.own;
        self.restless.in_vain.retain(|&place, _| place < own);
        *self.restless.in_vain.entry(planner).or_default() += 1;
    }

    /// Whether a device has begun as many epochs in vain as it may. It is left out then.
    pub(super) fn begins_without_end(&mut self, place: Place, now: Duration) -> bool {
        let most = self.most_begun();
        let count = self.restless.in_vain.get_mut(&place).filter(|count| **count >= most);
        let Some(count) = count else { return false };
        // It gets one more chance when it is heard again.
        *count = most - 1;
        self.set_restless_out(place, now);
        let planned = |r: &&mut super::Running| !r.is_over && r.members.first() == Some(&place);
        if let Some(running) = self.running.as_mut().filter(planned) {
            running.is_broken = true;
        }
        true
    }

    /// Whether others may have given a device up for the epochs that it begins, as they may have counted more of them than this one.
    pub(super) fn may_begin_without_end(&self, place: Place) -> bool {
        self.restless.in_vain.get(&place).is_some_and(|&count| count >= self.most_begun() / 2)
    }

    fn most_begun(&self) -> u32 {
        MOST_BEGUN + self.expected as u32
    }

    /// Somebody has come or gone: others may have begun or ended an epoch because of it.
    pub(super) fn is_a_reason(&mut self, of: Place) {
        self.restless.in_vain.retain(|&place, count| {
            *count -= u32::from(place != of);
            *count > 0
        });
    }

    /// An epoch with a plan is over for all, and for this device too: it was not in vain.
    pub fn was_of_use(&mut self) {
        if let Some(planner) = self.planner() {
            self.restless.in_vain.remove(&planner);
        }
    }

    /// As the planner: an epoch is over for all.
    pub(super) fn was_completed(&mut self) {
        self.restless.in_vain.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Beginning, Decision, Timing};
    use super::*;
    use crate::wire::EpochId;

    const TIMING: Timing = Timing {
        wait: Duration::from_secs(10),
        settle: Duration::ZERO,
        patience: Duration::from_secs(4),
    };

    const ALL: [Place; 4] = [Place::new(0), Place::new(1), Place::new(2), Place::new(3)];

    /// How many epochs a device may begin in vain in these fleets.
    const MOST: u64 = MOST_BEGUN as u64 + 4;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn with_all(own: usize) -> Membership {
        let mut membership = Membership::new(ALL[own], 4, 0, TIMING, at(0));
        let others = ALL.iter().filter(|&&other| other != ALL[own]);
        others.for_each(|&other| membership.came(other, 1, 0, at(0)));
        membership
    }

    /// The first device begins an epoch; whether this one takes part.
    fn takes_part(device: &mut Membership, number: u64, now: Duration) -> bool {
        let id = EpochId { number, begun: 9 };
        let enters = device.hear_begin(ALL[0], id, &ALL, now) == Beginning::Enter;
        if enters {
            device.enter(id, &ALL, now);
        }
        enters
    }

    #[test]
    fn who_begins_without_end_is_left_out_at_any_pace_and_has_one_chance_later() {
        for pace in [0, 1, 3, 11] {
            let mut second = with_all(1);
            for number in 1..=MOST {
                assert!(takes_part(&mut second, number, at(number * pace)), "{number}");
            }
            let then = at((MOST + 1) * pace);
            assert!(!takes_part(&mut second, MOST + 1, then));
            let begin = Decision::Begin { number: MOST + 1, members: ALL[1..].to_vec() };
            // Where epochs are long in coming, it also complains to the one that it leaves out, as it does of any that is late.
            let mut decisions = second.tick(then, &[]);
            decisions.retain(|decision| !matches!(decision, Decision::Complain { .. }));
            assert_eq!(decisions, [Decision::LeaveOut(ALL[0]), begin]);
            // It stays out when it starts anew, and is heard again after ten times the patience.
            second.came(ALL[0], 2, 0, then + at(1));
            assert!(!takes_part(&mut second, MOST + 2, then + at(2)));
            assert!(takes_part(&mut second, MOST + 3, then + at(40)));
            assert!(!takes_part(&mut second, MOST + 4, then + at(41)));
            // Had it been of use then, it would have all its chances again.
            assert!(takes_part(&mut second, MOST + 5, then + at(90)));
            second.was_of_use();
            for number in 1..=MOST {
                assert!(takes_part(&mut second, MOST + 5 + number, then + at(91)), "{number}");
            }
        }
    }

    #[test]
    fn who_has_a_reason_may_begin_as_often_as_it_has() {
        let mut second = with_all(1);
        for number in 1..=10 * MOST {
            assert!(takes_part(&mut second, number, at(number)));
            match number % 2 {
                0 => second.came(ALL[3], number, 0, at(number)),
                _ => second.lost(ALL[3], at(number)),
            }
        }
        // That it comes and goes itself is none.
        let mut second = with_all(1);
        let begun = (1..=10 * MOST).take_while(|&number| {
            second.lost(ALL[0], at(number));
            second.came(ALL[0], 1, 0, at(number));
            takes_part(&mut second, number, at(number))
        });
        assert_eq!(begun.count() as u64, MOST);
    }

    /// The ways in which the last member can have the first device begin anew, in every mixture that a seed gives. The others see nothing of it.
    #[test]
    fn a_member_that_lets_no_epoch_end_is_left_out_before_others_give_its_planner_up() {
        for seed in 0..200_u64 {
            let (mut first, mut second) = (with_all(0), with_all(1));
            let (mut random, mut out) = (seed, None);
            for second_of_time in (0..).step_by(1 + (seed % 7) as usize).take(100) {
                let now = at(second_of_time);
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(seed | 1);
                let running = first.running_id().unwrap_or_default();
                let beside = EpochId { number: running.number, begun: 7 };
                match random >> 33 & 3 {
                    0 => first.hear_takes_part(ALL[3], beside, now),
                    1 => {
                        first.lost(ALL[3], now);
                        first.came(ALL[3], 1, 0, now);
                    }
                    2 => first.came(ALL[3], 1, beside, now),
                    _ => first.came(ALL[3], random, 0, now),
                }
                for decision in first.tick(now, &[]) {
                    match decision {
                        Decision::Begin { number, members } => {
                            first.enter(number, &members, now);
                            let begun = second.hear_begin(ALL[0], number.into(), &members, now);
                            assert_eq!(begun, Beginning::Enter, "seed {seed}, epoch {number}");
                            second.enter(number, &members, now);
                        }
                        Decision::LeaveOut(place) => out = Some(place),
                        other => panic!("{other:?}"),
                    }
                }
                if out.is_some() {
                    break;
                }
            }
            assert_eq!(out, Some(ALL[3]), "seed {seed}");
        }
    }
}
