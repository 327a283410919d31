//! What trains and predicts in a run: at each device a learner, as on real devices. It is the built-in network or one of the user's. All stages ask here,
//! so that everything else is the same with both.

use std::ops::ControlFlow;
use std::sync::Arc;

use stlf_learn::evaluate::Predictions;
use stlf_learn::{Layout, Params};
use stlf_method::combine::combine_with;
use stlf_method::learner::{Learner, Progress};
use stlf_method::local_training::OwnError;
use stlf_method::student::Owner;
use stlf_planning::plan::Way;
use stlf_protocol::Place;

use super::SeedRun;
use crate::watch::Counter;
use crate::{Error, Learners};

impl SeedRun<'_> {
    /// Names and shapes of the tensors of all models.
    pub(super) fn layout(&self) -> &Layout {
        self.learners.map_or(self.setup.spec.as_ref(), Learners::layout)
    }

    /// Asks whether to go on with a training. A learner of the user's may take long, so that whoever counts is asked too.
    pub(super) fn goes_on(&self, count: &Counter<'_>) -> ControlFlow<()> {
        match self.learners {
            Some(_) => count.asks(),
            None => self.watch.flow(),
        }
    }

    /// What has the samples and labels of a device; the built-in network begins with these values.
    fn learner(&self, device: usize, first: &Arc<Params>) -> Arc<dyn Learner> {
        let own = &self.fleet.devices[device];
        match self.learners {
            Some(learners) => learners.of(device).clone(),
            None => self.setup.built_in(first.clone(), own.inputs.clone(), own.labels.clone()),
        }
    }

    /// Trains the model of a device on its own labels; the built-in network from these values on.
    pub(super) fn train(
        &self,
        device: usize,
        first: &Arc<Params>,
        observer: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Params, Error> {
        self.taught(device, first, None, observer)
    }

    /// Trains a model that was handed to a device, on this way.
    pub(crate) fn train_on(
        &self,
        device: usize,
        way: Way,
        handed: &Params,
        observer: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Params, Error> {
        self.taught(device, &self.first, Some((handed, way)), observer)
    }

    /// What the learner of a device makes of its labels. It may take long, so that an observer is asked whether to go on.
    fn taught(
        &self,
        device: usize,
        first: &Arc<Params>,
        handed: Option<(&Params, Way)>,
        observer: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Params, Error> {
        let place = Place::new(device);
        let rows = self.setup.rows(place, self.fleet.devices[device].labels.len());
        let lesson = self.setup.lesson(place, &rows, handed);
        let trained = self.learner(device, first).train(lesson, &mut |_: Progress| observer());
        trained.map_err(|source| self.failed(device, source))?.ok_or(Error::Stopped)
    }

    /// Returns ε̂ of a device's model, by the labels that were held out from training.
    pub(super) fn own_error(&self, device: usize, model: &Params) -> Result<OwnError, Error> {
        let own = &self.fleet.devices[device];
        let rows = self.setup.rows(Place::new(device), own.labels.len());
        let predictions = self.predict_rows(device, model, rows.measured())?;
        let unlabeled_as = self.setup.unlabeled_as;
        Ok(rows.own_error(&predictions, &own.labels, own.unlabeled, unlabeled_as))
    }

    /// What a model says of all samples of a device.
    pub(super) fn predict(&self, device: usize, model: &Params) -> Result<Predictions, Error> {
        let all: Vec<usize> = (0..self.fleet.devices[device].samples()).collect();
        self.predict_rows(device, model, &all)
    }

    /// What a model says of some samples of a device, by their numbers.
    pub(super) fn predict_rows(
        &self,
        device: usize,
        model: &Params,
        rows: &[usize],
    ) -> Result<Predictions, Error> {
        let learner = self.learner(device, &self.first);
        let predicted = learner.predict(model, rows, &mut |_: Progress| self.watch.flow());
        predicted.map_err(|source| self.failed(device, source))?.ok_or(Error::Stopped)
    }

    /// What a device makes of models with these weights.
    pub(super) fn combine(
        &self,
        device: usize,
        models: &[(&Params, f64)],
    ) -> Result<Predictions, Error> {
        let mut failure = None;
        let made = combine_with(self.setup.combine, models, |_, model| {
            match self.predict(device, model) {
                Ok(predictions) => Ok(Some(predictions)),
                Err(error) => {
                    failure = Some(error);
                    Ok(None)
                }
            }
        })?;
        made.ok_or_else(|| failure.unwrap_or(Error::Stopped))
    }

    /// Returns what has the samples of a device: its learner, or the built-in network.
    pub(super) fn owner(&self, device: usize) -> Owner<'_> {
        let own = &self.fleet.devices[device];
        match self.learners {
            Some(learners) => {
                Owner::Learner { learner: &**learners.of(device), samples: own.samples() }
            }
            None => Owner::Network { spec: &self.setup.spec, inputs: &own.inputs },
        }
    }

    /// The error that something failed at a device, whose learner it is if it has one of the user's.
    pub(super) fn failed(&self, device: usize, source: stlf_planning::Error) -> Error {
        match self.learners {
            Some(_) => Error::Learner { device: self.fleet.devices[device].name.clone(), source },
            None => source.into(),
        }
    }
}
