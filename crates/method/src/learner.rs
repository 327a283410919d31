//! A learner owns a device's samples and its model. It trains, also from a model that was handed over, and predicts; everything else is the
//! device's: which labels are held out, how errors are counted, how models are mixed, handed on and checked.
//!
//! Built-in networks are one kind of learner ([`BuiltIn`]). A program or a class that a user brings is another ([`UserLearner`]).

use std::fmt::Debug;
use std::ops::ControlFlow;
use std::sync::Arc;

use stlf_data::{Class, Shape};
use stlf_learn::evaluate::{Predictions, predict};
use stlf_learn::{Layout, Params, Spec};
use stlf_planning::error::{Error, Reason};

use crate::combine::check_length;
use crate::local_training::{Split, Training, gathered};

/// The weights of a built-in network that learned anything are far below this.
const MOST_OF_BUILT_IN: f32 = 1e6;

/// How far a training is: so much of so much, in whatever the learner counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// What is done.
    pub done: u64,
    /// What there is to do; 0 if the learner does not know.
    pub total: u64,
}

impl Progress {
    /// Returns the whole percents that are done, 0 to 100.
    pub fn percent(self) -> u8 {
        let percent = u128::from(self.done) * 100 / u128::from(self.total.max(1));
        percent.min(100) as u8
    }
}

/// Hears how far a learner is, and answers whether it is to go on.
pub type Watch<'w> = dyn FnMut(Progress) -> ControlFlow<()> + 'w;

/// What a learner is to train on.
#[derive(Debug, Clone, Copy)]
pub struct Lesson<'a> {
    /// The samples, all of which have labels, by their numbers.
    pub rows: &'a [usize],
    /// The model to go on from, which another source handed over; `None` for the learner's own first values.
    pub start: Option<&'a Params>,
    /// Everything that is drawn comes from this.
    pub seed: u64,
}

/// What a learner is to train a student on: samples of its own, with what the mixture says of them.
#[derive(Debug, Clone, Copy)]
pub struct Adaptation<'a> {
    /// The samples, by their numbers. Some may have labels; all others are held out to judge the student by.
    pub rows: &'a [usize],
    /// What the mixture says of each of them, in the same order.
    pub teacher: &'a Predictions,
    /// The model to go on from: of those that the target received, the one that is nearest to the mixture.
    pub start: &'a Params,
    /// Everything that is drawn comes from this.
    pub seed: u64,
}

/// What owns a device's samples and makes models of them. Samples are numbered from 0, those with a label first.
pub trait Learner: Debug + Send + Sync {
    /// Names and shapes of its models' tensors, the same on all devices of a fleet.
    fn layout(&self) -> &Layout;

    /// Returns the largest magnitude that a number of its models can have.
    fn most(&self) -> f32 {
        f32::MAX
    }

    /// Trains; `None` if `watch` ended it.
    ///
    /// # Errors
    /// The learner cannot train on this, or has failed for good.
    fn train(&self, lesson: Lesson<'_>, watch: &mut Watch<'_>) -> Result<Option<Params>, Error>;

    /// Returns the probabilities of all classes that a model gives these samples; `None` if `watch` ended it.
    ///
    /// # Errors
    /// The learner cannot use this model, or has failed for good.
    fn predict(
        &self,
        model: &Params,
        rows: &[usize],
        watch: &mut Watch<'_>,
    ) -> Result<Option<Predictions>, Error>;

    /// Returns what trains students, if this learner can. One that cannot is never asked to.
    fn adapts(&self) -> Option<&dyn Adapts> {
        None
    }
}

/// What a learner can do that trains students.
pub trait Adapts {
    /// Trains a student; `None` if `watch` ended it.
    ///
    /// # Errors
    /// The learner cannot train on this, or has failed for good.
    fn adapt(
        &self,
        adaptation: Adaptation<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Params>, Error>;

    /// Returns the probabilities of all classes that a model gives these samples after each was altered; `None` if `watch` ended it. How they
    /// are altered is drawn from the seed, whatever the model: guards compare models by whether they say the same as before.
    ///
    /// # Errors
    /// The learner cannot use this model, or has failed for good.
    fn predict_altered(
        &self,
        model: &Params,
        rows: &[usize],
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Predictions>, Error>;
}

/// A built-in network with a device's inputs and labels.
#[derive(Debug, Clone)]
pub struct BuiltIn {
    /// The network.
    pub spec: Spec,
    /// How it trains.
    pub training: Training,
    /// The first values that all models start from.
    pub first: Arc<Params>,
    /// All inputs, those with a label first.
    pub inputs: Arc<[f32]>,
    /// The labels.
    pub labels: Vec<Class>,
}

impl Learner for BuiltIn {
    fn layout(&self) -> &Layout {
        self.spec.as_ref()
    }

    fn most(&self) -> f32 {
        MOST_OF_BUILT_IN
    }

    fn train(&self, lesson: Lesson<'_>, watch: &mut Watch<'_>) -> Result<Option<Params>, Error> {
        let split = Split::of(&self.inputs, &self.labels, self.spec.input().len(), lesson.rows);
        let (spec, training, seed) = (&self.spec, self.training, lesson.seed);
        let looks = lesson.start.map_or(training, |_| split.handed_over(spec, training)).looks();
        let mut progress = Progress { done: 0, total: looks as u64 };
        let mut look = || {
            progress.done += 1;
            watch(progress)
        };
        match lesson.start {
            Some(handed) => split.train_on(spec, handed.clone(), training, seed, &mut look),
            None => split.train(spec, (*self.first).clone(), training, seed, &mut look),
        }
    }

    fn predict(
        &self,
        model: &Params,
        rows: &[usize],
        _watch: &mut Watch<'_>,
    ) -> Result<Option<Predictions>, Error> {
        check_length(&self.spec, model, || "model")?;
        let inputs = gathered(&self.inputs, self.spec.input().len(), rows);
        Ok(Some(predict(&self.spec, model, &inputs)))
    }
}

/// A learner that a user brings, with what a device must know of its samples.
#[derive(Debug, Clone)]
pub struct UserLearner {
    /// Its name and version, the same on all devices of a fleet.
    pub name: String,
    /// The names of all classes, the same on all devices of a fleet.
    pub classes: Vec<String>,
    /// The features of all samples, those with a label first. Divergences are measured on them.
    pub features: Vec<f32>,
    /// The labels.
    pub labels: Vec<Class>,
    /// The true classes of all samples, where the learner tells them: for evaluation alone.
    pub told_truth: Option<Vec<Class>>,
    /// Where each sample stands in the user's own order.
    pub places: Vec<usize>,
    /// What trains and predicts.
    pub learner: Arc<dyn Learner>,
}

impl UserLearner {
    /// Returns the shape of a sample's features.
    pub fn shape(&self) -> Shape {
        Shape { channels: 1, height: 1, width: self.width() }
    }

    /// Returns how many features each sample has; 0 without samples.
    pub fn width(&self) -> usize {
        self.features.len() / self.places.len().max(1)
    }

    /// Returns the true classes of all samples, if they are known: they are told, or all samples have labels.
    pub fn truth(&self) -> Option<&[Class]> {
        let labels = Some(&self.labels[..]).filter(|labels| labels.len() == self.places.len());
        self.told_truth.as_deref().or(labels)
    }

    /// Checks that what the learner tells of its samples can be.
    ///
    /// # Errors
    /// Says what cannot, and what is needed.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |reason: Reason| Err(Error::new("learner", reason));
        let (samples, labels, classes) = (self.places.len(), self.labels.len(), self.classes.len());
        if classes == 0 {
            return Err(Error::missing("learner", "names no class"));
        }
        if samples == 0 || labels > samples {
            let message = format!("has {samples} samples and {labels} labels");
            let (present, needed) = (samples as u64, labels.max(1) as u64);
            return wrong(Reason::TooFewSamples { present, needed, message });
        }
        if let Some(label) = self.labels.iter().find(|label| usize::from(**label) >= classes) {
            return wrong(Reason::UnknownClass { label: (*label).into(), classes });
        }
        if let Some(truth) = &self.told_truth {
            let is_class = |class: &Class| usize::from(*class) < classes;
            if truth.len() != samples
                || !truth.iter().all(is_class)
                || truth[..labels] != self.labels
            {
                let message = "tells true classes that are none, or not those of its labels";
                return Err(Error::other("learner", message));
            }
        }
        if self.features.is_empty() || !self.features.len().is_multiple_of(samples) {
            let message = format!("gives {} features for {samples} samples", self.features.len());
            let hint = "a fleet compares devices by features: give each sample the same number of them, at least 1, \
                        on the same scale on all devices";
            return Err(Error::other("learner", message).with_hint(hint));
        }
        match self.features.iter().position(|feature| !feature.is_finite()) {
            Some(at) => {
                let (sample, value) = (self.places[at / self.width()], self.features[at]);
                wrong(Reason::NotFinite { value: value.into(), sample, feature: at % self.width() })
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use stlf_learn::{Augment, Descent};

    use super::*;
    use crate::local_training::Rows;

    #[test]
    fn a_built_in_network_learns_what_a_split_of_the_same_rows_does() {
        let spec = Spec::mlp(Shape { channels: 1, height: 1, width: 2 }, 2).unwrap();
        let labels: Vec<Class> = (0..40).map(|k| k % 2).collect();
        let inputs: Vec<f32> = (0..100).map(|k| (k % 7) as f32).collect();
        let training = Training {
            descent: Descent::default(),
            augment: Augment::None,
            steps: 700,
            averaged: false,
        };
        let first = Params::initial(&spec, 3);
        let rows = Rows::new(labels.len(), 0.25, 9);
        let split = Split::of(&inputs, &labels, 2, &rows.trained);
        let learner = BuiltIn {
            spec: spec.clone(),
            training,
            first: Arc::new(first.clone()),
            inputs: inputs.as_slice().into(),
            labels,
        };
        let mut go_on = || ControlFlow::Continue(());
        let mut percents = Vec::new();
        let mut watch = |progress: Progress| {
            percents.push(progress.percent());
            ControlFlow::Continue(())
        };
        let lesson = Lesson { rows: &rows.trained, start: None, seed: 5 };
        let own = learner.train(lesson, &mut watch).unwrap().unwrap();
        assert_eq!(own, split.train(&spec, first, training, 5, &mut go_on).unwrap().unwrap());
        assert_eq!(percents, [50, 100]);
        let handed = Params::initial(&spec, 4);
        let lesson = Lesson { start: Some(&handed), ..lesson };
        let on = learner.train(lesson, &mut |_| ControlFlow::Continue(())).unwrap().unwrap();
        assert_eq!(
            on,
            split.train_on(&spec, handed.clone(), training, 5, &mut go_on).unwrap().unwrap()
        );
        assert!(learner.train(lesson, &mut |_| ControlFlow::Break(())).unwrap().is_none());

        let mut go_on = |_| ControlFlow::Continue(());
        let predicted = learner.predict(&own, rows.measured(), &mut go_on).unwrap().unwrap();
        assert_eq!(predicted, predict(&spec, &own, &gathered(&inputs, 2, &rows.held)));
        let other = Params::from(vec![0.0; 3]);
        assert!(learner.predict(&other, &[0], &mut go_on).is_err());
    }

    #[test]
    fn percents_are_whole_and_never_above_a_hundred() {
        let percent = |done, total| Progress { done, total }.percent();
        assert_eq!([percent(0, 0), percent(1, 3), percent(7, 7), percent(9, 7)], [0, 33, 100, 100]);
        assert_eq!(percent(u64::MAX, u64::MAX), 100);
    }
}
