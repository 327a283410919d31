//! Who may begin an epoch, as another device sees it.

use std::time::Duration;

use super::{Membership, PLANNER_MUST_ACT};
use crate::roster::Place;
use crate::wire::EpochId;

/// What a device does when another begins an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Beginning {
    /// It takes part, if the epoch can be one.
    Enter,
    /// It takes part already.
    Again,
    /// It waits: somebody who stands before the beginner is here, and may be about to be lost.
    Untimely {
        /// Whether the beginner had begun another one that waits.
        again: bool,
    },
    /// It takes part in this one, whose number is as high or higher. The beginner is to know.
    Late(EpochId),
}

impl Membership {
    /// Returns whether a device may begin an epoch: nobody who stands before it in the roster is here, but for those that were silent for too
    /// long. Who has lied as the planner may not.
    pub fn may_begin(&self, place: Place, now: Duration) -> bool {
        let is_first = self.candidates(now).first().is_none_or(|&first| place <= first);
        is_first && !self.is_convicted(place, now)
    }

    /// Returns whether a device may begin an epoch although somebody before it is here: it is the next, has given that one up, and this device is about
    /// to. Devices that give up at different times would otherwise leave each other out.
    fn may_take_over(&self, place: Place, now: Duration) -> bool {
        let candidates = self.candidates(now);
        let is_next = candidates.iter().nth(1).is_some_and(|&second| place <= second);
        let patience = self.timing.patience;
        let does_nothing = match &self.running {
            Some(running) if !running.is_over && running.members.first() == candidates.first() => {
                now.saturating_sub(running.progress) >= patience * (PLANNER_MUST_ACT - 1)
            }
            // The planner of its own epoch has given that one up, and the epoch with it.
            Some(running) if !running.is_over && running.members.first() == Some(&place) => {
                now.saturating_sub(running.progress) >= patience
            }
            _ => self.due.is_some_and(|due| now.saturating_sub(due) >= patience),
        };
        is_next && does_nothing && !self.is_convicted(place, now)
    }

    /// Returns what this device does about an epoch that another begins.
    pub fn hear_begin(
        &mut self,
        from: Place,
        id: EpochId,
        members: &[Place],
        now: Duration,
    ) -> Beginning {
        match self.running_id() {
            Some(own) if own == id => Beginning::Again,
            Some(own) if own.number >= id.number => Beginning::Late(own),
            _ if self.may_begin(from, now) || self.may_take_over(from, now) => Beginning::Enter,
            _ => {
                let before = self.untimely.insert(from, (id, members.to_vec()));
                Beginning::Untimely { again: before.is_some_and(|(before, _)| before != id) }
            }
        }
    }

    /// An epoch that came at the wrong time, once it may begin; who began it, and with whom.
    ///
    /// What a planner begins while it is done without for a lie has long gone on without this device when that ends.
    pub fn timely(&mut self, now: Duration) -> Option<(Place, EpochId, Vec<Place>)> {
        let convicted = &self.convicted;
        self.untimely.retain(|from, _| convicted.get(from).is_none_or(|until| now >= *until));
        let is_timely = |(from, (id, _)): &(&Place, &(EpochId, Vec<Place>))| {
            let may_begin = self.may_begin(**from, now) || self.may_take_over(**from, now);
            may_begin && self.is_near(id.number, now)
        };
        let from = *self.untimely.iter().find(is_timely)?.0;
        let (id, members) = self.untimely.remove(&from)?;
        Some((from, id, members))
    }

    /// Keeps an epoch that somebody may begin, but whose number is too far away, until that is believed.
    pub fn keep_far_begin(&mut self, from: Place, id: EpochId, members: &[Place]) {
        self.untimely.insert(from, (id, members.to_vec()));
    }
}
