//! Planners that have provably lied, and for how long they are done without.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{LEFT_OUT_FOR, Membership, Timing};
use crate::roster::Place;

impl Timing {
    /// Returns for how long a planner that has lied is done without.
    pub fn conviction(&self) -> Duration {
        self.patience * LEFT_OUT_FOR
    }
}

impl Membership {
    /// The planner of the running epoch has lied as one, such as by a plan that does not follow from its reports. All others can see that at about the
    /// same time, so that nobody waits for it any longer: whoever comes next begins anew. No honest planner lies so, and therefore no new start and no
    /// new connection is another chance.
    pub fn convict_planner(&mut self, now: Duration) {
        let Some(planner) = self.planner().filter(|planner| *planner != self.own) else { return };
        if self.is_convicted(planner, now) {
            return;
        }
        self.convicted.insert(planner, now + self.timing.conviction());
        self.untold.insert(planner);
        if let Some(running) = &mut self.running {
            running.is_broken = true;
        }
    }

    /// Holds against others what this device has found out before it was started again, each for so long from its start on, and never for longer than
    /// a conviction lasts.
    pub fn recall_convicted(&mut self, convicted: &BTreeMap<Place, Duration>) {
        let (own, most, started) = (self.own, self.timing.conviction(), self.started);
        let others = convicted.iter().filter(|(place, _)| **place != own);
        self.convicted.extend(others.map(|(&place, &rest)| (place, started + rest.min(most))));
    }

    /// Returns the planners that have lied, with the time up to which they are done without, which may be over.
    pub fn convicted(&self) -> &BTreeMap<Place, Duration> {
        &self.convicted
    }

    /// Returns whether a device has lied as the planner not long ago.
    pub(super) fn is_convicted(&self, place: Place, now: Duration) -> bool {
        self.convicted.get(&place).is_some_and(|until| now < *until)
    }
}
