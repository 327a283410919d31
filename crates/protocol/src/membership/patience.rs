//! What a device does when nothing new has arrived for long.

use std::collections::BTreeSet;
use std::time::Duration;

use super::blame::Blame;
use super::{COMPLAINS_IN_PATIENCE, Decision, LEFT_OUT_FOR, Membership, PLANNER_MUST_ACT, Running};
use crate::roster::Place;

impl Membership {
    /// Returns whether nothing new has arrived in the running epoch for as long as patience lasts.
    pub fn has_waited(&self, now: Duration) -> bool {
        let running = self.running.as_ref().filter(|running| !running.is_over);
        running.is_some_and(|r| now.saturating_sub(r.progress) >= self.timing.patience)
    }

    /// Nothing has arrived for long: the planner leaves out who is silent, the others tell it whom they wait for.
    pub(super) fn lose_patience(&mut self, now: Duration, missing: &[Place]) -> Vec<Decision> {
        let patience = self.timing.patience;
        let Some(running) = self.running.as_mut().filter(|r| !r.is_over) else {
            return Vec::new();
        };
        let silence = now.saturating_sub(running.progress);
        let planner = running.members.first().copied().unwrap_or(self.own);
        // A planner that knows of it begins anew. The others can only complain: theirs may be the one connection that broke.
        if running.is_broken && planner == self.own {
            return Vec::new();
        }
        let mut decisions = Vec::new();
        let Blame { out, links } = if planner == self.own {
            // Complaints that set out at the same time need a moment to arrive.
            if silence < patience + patience / 4 {
                return Vec::new();
            }
            running.blame(self.own, missing, &self.forbidden)
        } else if silence >= patience * PLANNER_MUST_ACT {
            let is_out = self.left_out.get(&planner).is_some_and(|until| now < *until);
            let is_out = is_out || self.convicted.get(&planner).is_some_and(|until| now < *until);
            if is_out || !self.here.contains(&planner) {
                return decisions;
            }
            Blame { out: BTreeSet::from([planner]), links: BTreeSet::new() }
        } else {
            let complains = running.complains(missing, patience, now);
            let complaint = Decision::Complain { to: planner, missing: missing.to_vec() };
            return complains.then_some(complaint).into_iter().collect();
        };
        running.is_broken = true;
        for place in out {
            self.left_out.insert(place, now + patience * LEFT_OUT_FOR);
            decisions.push(Decision::LeaveOut(place));
        }
        for (from, to) in links {
            self.do_without((from, to), now);
            decisions.push(Decision::Forbid { from, to });
        }
        decisions
    }
}

impl Running {
    /// Returns whether a device says now whom it waits for. Who waits at all says so in time, by when its epoch or the plan began: if it were by what it heard
    /// last, another one could tell it just enough to have it blamed as silent.
    fn complains(&mut self, missing: &[Place], patience: Duration, now: Duration) -> bool {
        let is_new = match &self.complained {
            None => !missing.is_empty(),
            Some((when, told)) => {
                told != missing && now.saturating_sub(*when) >= patience / COMPLAINS_IN_PATIENCE
            }
        };
        let complains = is_new && now.saturating_sub(self.since) >= patience;
        if complains {
            self.complained = Some((now, missing.to_vec()));
        }
        complains
    }
}
