//! What a device decides when it looks at the clock.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{LEFT_OUT_FOR, Membership, PLANNER_MUST_ACT, Running};
use crate::roster::Place;

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// As the planner: begin an epoch.
    Begin {
        /// Above all that were heard of.
        number: u64,
        /// Ascending.
        members: Vec<Place>,
    },
    /// Tell the planner whom this device waits for.
    Complain {
        /// The planner.
        to: Place,
        /// Those it waits for.
        missing: Vec<Place>,
    },
    /// Tell the first that is here which epoch this device takes part in: it should have begun another one, and may not know why.
    Remind(Place),
    /// A device was silent for too long, or never lets an epoch end, and is left out.
    LeaveOut(Place),
    /// As the planner: one device waits for another's model, which says that it has done its part. The next plan does without this link.
    Forbid {
        /// Who was to send it.
        from: Place,
        /// Who waits for it.
        to: Place,
    },
}

/// When an epoch should begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// At once.
    Now,
    /// When nobody has come or gone for a while.
    Settled,
}

impl Membership {
    /// Returns what is to be done now. `missing` are those that this device waits for.
    pub fn tick(&mut self, now: Duration, missing: &[Place]) -> Vec<Decision> {
        let insisting = self.numbers.come_nearer(self.timing.patience, now);
        // A member that takes part in a later epoch could not come along to this one.
        let own = self.own;
        let mine = |r: &&mut Running| r.members.first() == Some(&own) && !r.is_over;
        if let Some(running) = self.running.as_mut().filter(mine) {
            running.is_broken |= insisting.iter().any(|place| running.members.contains(place));
        }
        let untold = std::mem::take(&mut self.untold);
        let mut decisions: Vec<Decision> = untold.into_iter().map(Decision::LeaveOut).collect();
        decisions.extend(self.lose_patience(now, missing));
        let candidates = self.candidates(now);
        let Some(now_or_settled) = self.wanted(&candidates, now).filter(|_| candidates.len() > 1)
        else {
            (self.due, self.has_reminded) = (None, false);
            return decisions;
        };
        let since = now.saturating_sub(*self.due.get_or_insert(now));
        let is_overdue = since >= self.timing.patience * PLANNER_MUST_ACT;
        let settled = now.saturating_sub(self.changed) >= self.timing.settle;
        let first = candidates.first().copied().unwrap_or(self.own);
        if first == self.own {
            // Somebody may come and go all the time.
            if now_or_settled == Wanted::Now || settled || is_overdue {
                let (number, members) = (self.epoch() + 1, candidates.into_iter().collect());
                decisions.push(Decision::Begin { number, members });
            }
        } else if is_overdue && self.planner() != Some(first) {
            // Whoever should begin and does not is not waited for. What the planner of this epoch thinks of others is its own affair.
            self.left_out.insert(first, now + self.timing.patience * LEFT_OUT_FOR);
            decisions.push(Decision::LeaveOut(first));
        } else if since >= self.timing.patience && !self.has_reminded {
            self.has_reminded = true;
            decisions.push(Decision::Remind(first));
        }
        decisions
    }

    /// Returns whether the first of these should begin an epoch, as far as this device can tell.
    fn wanted(&self, candidates: &BTreeSet<Place>, now: Duration) -> Option<Wanted> {
        match &self.running {
            None => {
                let all = self.here.len() + self.unlike.len() >= self.expected;
                let waited = now.saturating_sub(self.started) >= self.timing.wait;
                // Where the others are at work already, this device has come back to them.
                let back = self.others_work.then_some(Wanted::Settled);
                if all || waited { Some(Wanted::Now) } else { back }
            }
            Some(running) if running.is_over => {
                let differs = *candidates != running.members || running.is_broken;
                differs.then_some(Wanted::Settled)
            }
            Some(running) => running.is_broken.then_some(Wanted::Now),
        }
    }
}
