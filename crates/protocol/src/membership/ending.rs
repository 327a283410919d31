//! Who ends epochs before they are completed, and how many times that is borne.

use std::time::Duration;

use super::{LEFT_OUT_FOR, Membership};
use crate::roster::Place;

/// A device that starts anew, or ends an epoch otherwise, so many times in a row is left out like one that is silent.
const MOST_ENDED: u32 = 10;

/// In a row is what happens within this part of the patience after the time before, or before any epoch was completed since then.
const IN_A_ROW: u32 = 4;

/// How a device has ended epochs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Ended {
    /// How many times in a row.
    count: u32,
    /// When it did so last.
    last: Duration,
    /// Whether an epoch was completed since.
    is_past: bool,
}

impl Membership {
    /// A device has started anew, or ended an epoch otherwise. However slowly it does so: where no epoch is completed in between, it counts.
    pub(super) fn has_ended(&mut self, place: Place, now: Duration) {
        let in_a_row = self.timing.patience / IN_A_ROW;
        let ended =
            self.ended.entry(place).or_insert(Ended { count: 0, last: now, is_past: false });
        let continues = !ended.is_past || now.saturating_sub(ended.last) <= in_a_row;
        let count = if continues { ended.count.saturating_add(1) } else { 1 };
        *ended = Ended { count, last: now, is_past: false };
        if count >= MOST_ENDED {
            self.left_out.insert(place, now + self.timing.patience * LEFT_OUT_FOR);
            if count == MOST_ENDED {
                self.untold.insert(place);
            }
        }
    }

    /// An epoch is over for all.
    pub(super) fn has_completed(&mut self) {
        self.ended.values_mut().for_each(|ended| ended.is_past = true);
    }

    /// Returns whether a device starts anew, or ends epochs otherwise, all the time.
    pub(super) fn is_restless(&self, place: Place, now: Duration) -> bool {
        self.is_left_out(place, now)
            && self.ended.get(&place).is_some_and(|ended| ended.count >= MOST_ENDED)
    }

    /// No model came over this link, or none of use: the next plans do without it. Whoever else it was counts for both of its ends, of which one is to blame, and
    /// once: whoever blames many counts more than each of them. Whether it is new.
    pub(super) fn do_without(&mut self, (from, to): (Place, Place), now: Duration) -> bool {
        let is_new = self.forbidden.insert((from, to));
        if is_new {
            let others = [from, to].into_iter().filter(|&place| place != self.own);
            others.collect::<Vec<_>>().into_iter().for_each(|place| self.has_ended(place, now));
        }
        is_new
    }
}
