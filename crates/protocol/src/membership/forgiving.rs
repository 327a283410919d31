//! What is held against a device, and when it is dropped.

use std::time::Duration;

use super::{LEFT_OUT_FOR, Membership};
use crate::roster::Place;

impl Membership {
    /// Whoever comes back after a silence has another chance, and whoever starts anew may have another model; a connection that breaks says nothing
    /// about a model. That holds once within the time for which silent devices are left out: whoever comes and goes at will could otherwise never be left
    /// out for long. Those that start anew all the time get no other chance. Whether it may take part.
    ///
    /// Of whom it complained a device that starts anew does not know, and would [object](crate::checking::Objection::Unasked) to a plan that does without
    /// links into it: these are dropped each time. That gives others another chance, and not the device.
    pub(super) fn forgive(&mut self, place: Place, is_new: bool, now: Duration) -> bool {
        if is_new {
            self.forbidden.retain(|&(_, to)| to != place);
        }
        let least = self.timing.patience * LEFT_OUT_FOR;
        let is_again =
            self.forgiven.get(&place).is_some_and(|last| now.saturating_sub(*last) < least);
        if !is_again && !self.is_restless(place, now) {
            let (was_out, links) = (self.is_left_out(place, now), self.forbidden.len());
            self.left_out.remove(&place);
            if is_new {
                self.forbidden.retain(|&(from, _)| from != place);
            }
            if was_out || self.forbidden.len() < links {
                self.forgiven.insert(place, now);
            }
        }
        !self.is_left_out(place, now)
    }

    /// Returns whether a device is not asked to take part for now.
    pub(super) fn is_left_out(&self, place: Place, now: Duration) -> bool {
        self.left_out.get(&place).is_some_and(|until| now < *until)
    }
}
