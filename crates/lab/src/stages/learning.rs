//! What trains and predicts in a run: the built-in network, or learners of the user's. All stages ask here, so that everything else is the
//! same with both.

use stlf_learn::evaluate::{Predictions, predict};
use stlf_learn::{Layout, Params};
use stlf_method::combine::combine_with;
use stlf_method::learner::{Lesson, Progress};
use stlf_method::local_training::{OwnError, Split};
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

    /// Trains the model of a device on its own labels; the built-in network from these values on. A learner may take long, so that whoever
    /// counts is asked whether to go on.
    pub(super) fn train(
        &self,
        device: usize,
        split: &Split,
        start: &Params,
        count: &Counter<'_>,
    ) -> Result<Params, Error> {
        let place = Place::new(device);
        let trained = match self.learners {
            Some(learners) => self.taught(learners, device, None, count)?,
            None => self.setup.train(place, split, start.clone(), &mut || self.watch.flow())?,
        };
        trained.ok_or(Error::Stopped)
    }

    /// Trains a model that was handed to a device, on this way.
    pub(super) fn train_on(
        &self,
        device: usize,
        way: Way,
        split: &Split,
        handed: &Params,
        count: &Counter<'_>,
    ) -> Result<Params, Error> {
        let trained = match self.learners {
            Some(learners) => self.taught(learners, device, Some((handed, way)), count)?,
            None => {
                let (place, mut flow) = (Place::new(device), || self.watch.flow());
                self.setup.train_on(place, way, split, handed.clone(), &mut flow)?
            }
        };
        trained.ok_or(Error::Stopped)
    }

    /// What the learner of a device makes of its labels; `None` if the run was stopped.
    fn taught(
        &self,
        learners: &Learners,
        device: usize,
        handed: Option<(&Params, Way)>,
        count: &Counter<'_>,
    ) -> Result<Option<Params>, Error> {
        let place = Place::new(device);
        let rows = self.setup.rows(place, self.fleet.devices[device].labels.len()).trained;
        let (start, way) = handed.unzip();
        let lesson = Lesson { rows: &rows, start, seed: self.setup.training_seed(place, way) };
        let trained = learners.of(device).train(lesson, &mut |_: Progress| count.asks());
        trained.map_err(|source| self.failed(device, source))
    }

    /// Returns ε̂ of a device's model, by the labels that were held out from training.
    pub(super) fn own_error(
        &self,
        device: usize,
        split: &Split,
        model: &Params,
    ) -> Result<OwnError, Error> {
        let own = &self.fleet.devices[device];
        let Some(learners) = self.learners else {
            return Ok(self.setup.own_error(split, model, own.unlabeled));
        };
        let rows = self.setup.rows(Place::new(device), own.labels.len());
        let predictions = self.predicted(learners, device, model, rows.measured())?;
        let labels: Vec<_> = rows.measured().iter().map(|&row| own.labels[row]).collect();
        let errors = predictions.errors(&labels);
        Ok(rows.own_error(errors, own.unlabeled, self.setup.unlabeled_as))
    }

    /// What a model says of all samples of a device.
    pub(super) fn predict(&self, device: usize, model: &Params) -> Result<Predictions, Error> {
        let own = &self.fleet.devices[device];
        match self.learners {
            Some(learners) => {
                let rows: Vec<usize> = (0..own.samples()).collect();
                self.predicted(learners, device, model, &rows)
            }
            None => Ok(predict(&self.setup.spec, model, &own.inputs)),
        }
    }

    /// What a model says of some samples of a device, by their numbers.
    pub(super) fn predict_rows(
        &self,
        device: usize,
        model: &Params,
        rows: &[usize],
    ) -> Result<Predictions, Error> {
        if let Some(learners) = self.learners {
            return self.predicted(learners, device, model, rows);
        }
        let (own, numbers) = (&self.fleet.devices[device], self.setup.spec.input().len());
        let input = |&row: &usize| &own.inputs[row * numbers..(row + 1) * numbers];
        let inputs: Vec<f32> = rows.iter().flat_map(input).copied().collect();
        Ok(predict(&self.setup.spec, model, &inputs))
    }

    /// What a device makes of models with these weights.
    pub(super) fn combine(
        &self,
        device: usize,
        models: &[(&Params, f64)],
    ) -> Result<Predictions, Error> {
        if self.learners.is_none() {
            return Ok(self.setup.combine(models, &self.fleet.devices[device].inputs)?);
        }
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

    /// What the learner of a device says of some of its samples with a model.
    fn predicted(
        &self,
        learners: &Learners,
        device: usize,
        model: &Params,
        rows: &[usize],
    ) -> Result<Predictions, Error> {
        let predicted =
            learners.of(device).predict(model, rows, &mut |_: Progress| self.watch.flow());
        predicted.map_err(|source| self.failed(device, source))?.ok_or(Error::Stopped)
    }

    /// The error that something failed at a device, whose learner it is if it has one of the user's.
    pub(super) fn failed(&self, device: usize, source: stlf_planning::Error) -> Error {
        match self.learners {
            Some(_) => Error::Learner { device: self.fleet.devices[device].name.clone(), source },
            None => source.into(),
        }
    }
}
