//! Data that change while a device runs: whether the change matters, and from when on the device takes part with them.

use std::sync::Arc;

use stlf_method::divergence::drift;

use super::Device;

/// What a device goes by while it takes part, which new data are held against.
#[derive(Debug, Clone)]
pub struct GoesBy {
    data: drift::GoesBy,
    has_labels: bool,
}

/// How the data of a device differ from those that it goes by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// How far its inputs are from what the device has published.
    pub in_inputs: drift::Change,
    /// Whether the device has labels now and had none, or has none any more.
    pub in_labels: bool,
}

impl Change {
    /// Returns whether the fleet should measure and plan again: the [sketch has moved beyond its noise](drift::Change::matters), or the device can be a source
    /// now and could not before, or the other way round.
    pub fn matters(&self) -> bool {
        self.in_labels || self.in_inputs.matters()
    }
}

impl Device {
    /// Returns what it goes by; nothing with settings that nobody can measure with.
    pub fn goes_by(&self) -> Option<GoesBy> {
        let data = self.exchange(&[self.place]).goes_by()?;
        Some(GoesBy { data, has_labels: !self.holdings.labels.is_empty() })
    }

    /// Returns how its data differ from those that a device at its place, which is to get them, goes by.
    pub fn change_from(&self, before: &GoesBy) -> Change {
        Change {
            in_inputs: before.data.change(&self.holdings.inputs),
            in_labels: before.has_labels == self.holdings.labels.is_empty(),
        }
    }

    /// From the next epoch on it has the data of another device of the same place and settings, with what that made of them: its model, and what it
    /// publishes. Until then nothing changes, so that an epoch is about the same data from its beginning to its end.
    pub fn renew(&mut self, fresh: Device) {
        self.fresh = Some(Box::new(fresh));
    }

    /// Returns whether it is to have other data from the next epoch on.
    pub fn awaits_renewal(&self) -> bool {
        self.fresh.is_some()
    }

    /// Returns how often it has got other data.
    pub fn renewals(&self) -> usize {
        self.renewals
    }

    /// An epoch begins: it takes the data that it is to have from now on. What it made of models that were handed to it was made with the old
    /// ones.
    pub(super) fn take_fresh_data(&mut self) {
        let Some(fresh) = self.fresh.take() else { return };
        let Device {
            holdings,
            learner,
            trained,
            published,
            behind,
            worked_out,
            replying,
            judging,
            ..
        } = *fresh;
        self.worked_out = worked_out;
        (self.holdings, self.learner) = (holdings, learner);
        (self.trained, self.published, self.behind) = (trained, published, behind);
        // It may have told more since the fresh one was made.
        let told = self.replying.take();
        self.replying = replying.map(|own| match told {
            Some(told) => Arc::new(own.after(told.record().clone())),
            None => own,
        });
        let judged = self.judging.take();
        self.judging = judging.map(|own| match judged {
            Some(judged) => own.after(judged.record().clone()),
            None => own,
        });
        self.handed_on.clear();
        self.renewals += 1;
    }
}
