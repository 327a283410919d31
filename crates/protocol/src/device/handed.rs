//! Models that other sources hand to this device: each is fetched, trained on with the device's own labels, and only then sent.

use std::ops::ControlFlow;

use stlf_learn::Params;
use stlf_method::local_training::Split;

use super::{Action, Device, Refusal};
use crate::setup::Setup;

/// A model that was handed over, and what this device made of it. The same model in a later epoch need not be trained on again.
#[derive(Debug)]
pub(super) struct HandedOn {
    handed: Params,
    trained: Params,
}

/// A model to train on with all that this takes, for a thread of its own.
#[derive(Debug)]
pub struct TrainingOn {
    setup: Setup,
    split: Split,
    place: usize,
    handed: Params,
}

impl TrainingOn {
    /// Trains; `None` if `observer`, which hears how many percent are done, ended it.
    ///
    /// # Errors
    /// Labels that are not of the network, or none.
    pub fn run(
        self,
        observer: &mut dyn FnMut(u8) -> ControlFlow<()>,
    ) -> Result<Option<Params>, stlf_planning::Error> {
        let TrainingOn { setup, split, place, handed } = self;
        let (looks, mut done) = (setup.training.handed_over().looks().max(1), 0);
        let mut look = || {
            done += 1;
            observer((100 * done / looks).min(100) as u8)
        };
        setup.train_on(place, &split, handed, &mut look)
    }
}

impl Device {
    /// Its labels, to train on and to measure on.
    pub(super) fn split(&self) -> Split {
        self.setup.split(self.place, &self.holdings.inputs, &self.holdings.labels)
    }

    /// Whose model it trains on in this epoch, if anybody's.
    pub fn handed_from(&self) -> Option<usize> {
        self.plan()?.handed_from(self.place)
    }

    /// The model that was handed over in this epoch, once it is here.
    fn handed(&self) -> Option<&Params> {
        self.epoch.as_ref()?.models.get(&self.handed_from()?)
    }

    /// What it made of that model, once it has.
    pub(super) fn trained_on(&self) -> Option<&Params> {
        let (known, handed) = (self.handed_on.as_ref()?, self.handed()?);
        (known.handed == *handed).then_some(&known.trained)
    }

    /// Whether it has a model to train on, and has not done so yet.
    pub fn is_training_on(&self) -> bool {
        self.handed().is_some() && self.trained_on().is_none()
    }

    /// What [`Action::TrainOn`] asks for.
    pub fn to_train_on(&self) -> Option<TrainingOn> {
        let handed = self.handed().filter(|_| self.is_training_on())?.clone();
        let (setup, split) = (self.setup.clone(), self.split());
        Some(TrainingOn { setup, split, place: self.place, handed })
    }

    /// So many percent of training on are done. The others are to hear of it, who would lose patience.
    pub fn trains_on(&mut self, percent: u8) {
        if let Some(epoch) = &mut self.epoch {
            epoch.trained_on.insert(self.place, percent);
        }
    }

    /// Takes what came of [`Device::to_train_on`].
    ///
    /// # Errors
    /// It was not asked for, or what was handed over led to no model.
    pub fn has_trained_on(&mut self, trained: Params) -> Result<Vec<Action>, Refusal> {
        let Some(handed) = self.handed().cloned() else {
            return Err(Refusal::Unfit("a training that nobody asked for"));
        };
        self.check_model(&trained)?;
        self.handed_on = Some(HandedOn { handed, trained });
        Ok(self.go_on())
    }

    /// A source's part of step 5: once its model is what the plan makes of it, it is offered to all that need it.
    pub(super) fn train_on_and_offer(&mut self) -> Vec<Action> {
        let (from, is_ready) = (self.handed_from(), self.trained_on().is_some());
        let is_here = self.handed().is_some();
        let Some(epoch) = self.epoch.as_mut() else { return Vec::new() };
        match from {
            Some(_) if !is_here => Vec::new(),
            Some(from) if !is_ready => {
                let has_begun = std::mem::replace(&mut epoch.has_begun_training, true);
                if has_begun { Vec::new() } else { vec![Action::TrainOn(from)] }
            }
            _ if std::mem::replace(&mut epoch.has_followed, true) => Vec::new(),
            _ => {
                let receivers = epoch.plan.iter().flat_map(|plan| plan.receivers(self.place));
                receivers.map(Action::Offer).chain([Action::Finish]).collect()
            }
        }
    }

    /// That these are numbers that a model of the network can have.
    pub(super) fn check_model(&self, params: &Params) -> Result<(), Refusal> {
        if params.len() != self.setup.spec.parameters() {
            return Err(Refusal::Unfit("a model of another network"));
        }
        // The weights of a network that learned anything are far below this.
        if params.iter().any(|p| !p.is_finite() || p.abs() > 1e6) {
            return Err(Refusal::Unfit("a model whose numbers cannot be"));
        }
        Ok(())
    }
}
