//! What a device does alone: it trains on its own labels, also a model that was handed to it, and measures its error ε̂ on labels that
//! it held out.

use std::ops::ControlFlow;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stlf_data::Class;
use stlf_learn::evaluate::{Predictions, source_error};
use stlf_learn::{Augment, Descent, Examples, Layer, Network, Params, Spec, Trainer};
use stlf_planning::error::Error;
use stlf_planning::number_format::short;

use crate::label_noise::weight_decay;
use crate::mingled::mingled;

/// Steps between two looks at whether to stop.
const STRIDE: usize = 500;

/// How a device trains.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Training {
    /// The settings of a step.
    pub descent: Descent,
    /// How the pictures that are trained on are varied. Errors are measured on pictures as they are.
    pub augment: Augment,
    /// The number of steps.
    pub steps: usize,
    /// Whether the result is the mean of the iterates of the second half instead of the last one (Polyak and Juditsky, "Acceleration of stochastic
    /// approximation by averaging", 1992). Worse from random initial values, better from a trained model, of which it keeps more.
    pub averaged: bool,
}

/// The least number of iterates whose mean is taken, if a mean is taken and there are that many.
const AVERAGED: usize = 20;

/// How often a row is trained on at most in a model that was handed over, if it is seen as it is every time. A model that goes round many
/// sources would otherwise learn the few rows of each by heart.
const MOST_EPOCHS: usize = 100;

impl Training {
    /// No more steps than so many rows are good for.
    fn at_most_epochs(self, rows: usize) -> Training {
        let most = (MOST_EPOCHS * rows).div_ceil(self.descent.batch.max(1));
        Training { steps: self.steps.min(most), ..self }
    }

    /// How often an observer is asked whether to stop, in all.
    pub fn looks(&self) -> usize {
        self.steps.div_ceil(self.stride())
    }

    /// Steps between two of these.
    fn stride(&self) -> usize {
        match self.averaged {
            true => (self.steps / (2 * AVERAGED)).clamp(1, STRIDE),
            false => STRIDE,
        }
    }
}

/// Which of a device's labels it trains on, and which it measures on, by their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    /// Those that it trains on.
    pub trained: Vec<usize>,
    /// Those that it holds out; may be none.
    pub held: Vec<usize>,
}

impl Rows {
    /// Holds out this fraction of so many labels, but leaves at least one to train on.
    pub fn new(labels: usize, share: f64, seed: u64) -> Rows {
        let mut order: Vec<usize> = (0..labels).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        for i in (1..order.len()).rev() {
            order.swap(i, rng.random_range(0..=i));
        }
        let held = (order.len() as f64 * share).floor() as usize;
        let held = held.min(order.len().saturating_sub(1));
        let trained = order.split_off(held);
        Rows { trained, held: order }
    }

    /// Those that the error is measured on: where nothing is held out, those that were trained on.
    pub fn measured(&self) -> &[usize] {
        if self.held.is_empty() { &self.trained } else { &self.held }
    }

    /// ε̂ of a model that says this of the labels measured, of which these are all of the device's, where each of so many samples without a label
    /// counts `unlabeled_as`.
    pub fn own_error(
        &self,
        said: &Predictions,
        labels: &[Class],
        unlabeled: usize,
        unlabeled_as: f64,
    ) -> OwnError {
        let truth: Vec<Class> = self.measured().iter().map(|&row| labels[row]).collect();
        let (measured, errors) = (truth.len(), said.errors(&truth));
        let source_error = source_error(errors, measured, labels.len(), unlabeled, unlabeled_as);
        OwnError { measured, errors, source_error }
    }
}

/// Labels that are trained on, with their inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    inputs: Vec<f32>,
    labels: Vec<Class>,
}

/// How often a device's model errs on its own labels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OwnError {
    /// Labels that were looked at.
    pub measured: usize,
    /// The number of errors among these labels.
    pub errors: usize,
    /// ε̂, the device's error over all its samples, 0 to 1.
    pub source_error: f64,
}

impl Split {
    /// These of a device's labels. `inputs` are at least those of the labels, in their order, each of so many numbers.
    pub fn of(inputs: &[f32], labels: &[Class], numbers: usize, rows: &[usize]) -> Split {
        let labels = rows.iter().map(|&row| labels[row]).collect();
        Split { inputs: gathered(inputs, numbers, rows), labels }
    }

    /// The labels of several devices in one place, as if data could move.
    pub fn pooled<'s>(splits: impl IntoIterator<Item = &'s Split>) -> Split {
        let mut all = Split { inputs: Vec::new(), labels: Vec::new() };
        for split in splits {
            all.inputs.extend_from_slice(&split.inputs);
            all.labels.extend_from_slice(&split.labels);
        }
        all
    }

    /// Whether there is nothing to train on.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// How many labels are trained on.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// What is trained on.
    pub fn examples(&self) -> Examples<'_> {
        Examples { inputs: &self.inputs, labels: &self.labels }
    }

    /// Trains from these parameters on; `None` if `observer` ended it.
    ///
    /// # Errors
    /// Labels or inputs that are not of this network.
    pub fn train(
        &self,
        spec: &Spec,
        start: Params,
        training: Training,
        seed: u64,
        observer: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<Params>, Error> {
        self.examples().check(spec).map_err(wrong)?;
        let trainer = Trainer::new(spec, start, training.descent, seed).map_err(wrong)?;
        let mut trainer = trainer.augmented(spec, training.augment).map_err(wrong)?;
        let mut network = Network::new(spec, training.descent.batch);
        let stride = training.stride();
        let (mut sum, mut points) = (vec![0.0f64; spec.parameters()], 0u32);
        let mut left = training.steps;
        while left > 0 {
            let some = left.min(stride);
            trainer.steps(&mut network, self.examples(), some);
            left -= some;
            if training.averaged && left < training.steps.div_ceil(2) {
                sum.iter_mut().zip(trainer.params.iter()).for_each(|(s, p)| *s += f64::from(*p));
                points += 1;
            }
            if observer().is_break() {
                return Ok(None);
            }
        }
        if points > 0 {
            let mean = sum.iter().map(|s| (s / f64::from(points)) as f32);
            trainer.params.iter_mut().zip(mean).for_each(|(p, mean)| *p = mean);
        }
        match trainer.params.iter().all(|p| p.is_finite()) {
            true => Ok(Some(trainer.params)),
            false => Err(diverged(training.descent.learning_rate)),
        }
    }

    /// Returns the training of a model that another source handed over: averaged, and as long as that of an own model, but with few rows that
    /// are the same each time no longer than a hundred epochs.
    pub fn handed_over(&self, spec: &Spec, training: Training) -> Training {
        let averaged = Training { averaged: true, ..training };
        match sees_mingled(spec, training) {
            true => averaged.at_most_epochs(self.len()),
            false => averaged,
        }
    }

    /// Trains on a model that another source handed over, as it was sent; `None` if `observer` ended it. A network that takes
    /// rows as a whole sees them [mingled](crate::mingled), so that a crafted model reads none, and is pulled to zero where their classes overlap.
    ///
    /// # Errors
    /// Labels, inputs or a model that are not of this network.
    pub fn train_on(
        &self,
        spec: &Spec,
        handed: Params,
        training: Training,
        seed: u64,
        observer: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<Params>, Error> {
        let training = self.handed_over(spec, training);
        if !sees_mingled(spec, training) {
            return self.train(spec, handed, training, seed, observer);
        }
        self.examples().check(spec).map_err(wrong)?;
        let numbers = spec.input().len();
        let inputs = mingled(&self.inputs, &self.labels, numbers);
        let decay = weight_decay(&inputs, &self.labels, numbers);
        let descent =
            Descent { weight_decay: training.descent.weight_decay.max(decay), ..training.descent };
        let seen = Split { inputs, ..self.clone() };
        seen.train(spec, handed, Training { descent, ..training }, seed, observer)
    }
}

/// Whether training sees rows mingled: where the first layer is linear, and what is trained on are no random views. Convolutions look for shapes,
/// which rows that are mingled do not have.
fn sees_mingled(spec: &Spec, training: Training) -> bool {
    let first = spec.layers().next().map(|(layer, _)| layer);
    training.augment == Augment::None && matches!(first, Some(Layer::Linear { .. }))
}

/// Says that the parameters grew beyond all numbers.
fn diverged(learning_rate: f32) -> Error {
    let message =
        format!("training diverged at a learning rate of {}", short(learning_rate.into()));
    let hint = format!(
        "choose a smaller one; the default is {}",
        short(Descent::default().learning_rate.into())
    );
    Error::other("training.learning-rate", message).with_hint(hint)
}

/// Says that training cannot do with this.
fn wrong(e: stlf_learn::Error) -> Error {
    Error::other("training", e.to_string())
}

/// The inputs of these samples, each of so many numbers, in this order.
pub(crate) fn gathered(inputs: &[f32], numbers: usize, rows: &[usize]) -> Vec<f32> {
    let chosen = rows.iter().flat_map(|&row| &inputs[row * numbers..(row + 1) * numbers]);
    chosen.copied().collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use stlf_data::Shape;
    use stlf_learn::evaluate::predict;

    #[test]
    fn training_that_diverges_says_so_and_names_the_setting() {
        let spec = Spec::mlp(Shape { channels: 1, height: 1, width: 2 }, 2).unwrap();
        let inputs = [1.0, -2.0, 0.5, 3.0, -1.0, 2.0, 0.3, -0.7];
        let split = Split::of(&inputs, &[0, 1, 0, 1], 2, &[0, 1, 2, 3]);
        let descent = Descent { learning_rate: 1e9, ..Descent::default() };
        let training = Training { descent, augment: Augment::None, steps: 100, averaged: false };
        let start = Params::initial(&spec, 0);
        let go_on = &mut || ControlFlow::Continue(());
        let error = split.train(&spec, start, training, 0, go_on).unwrap_err();
        assert!(
            error.to_string().starts_with("training.learning-rate: training diverged"),
            "{error}"
        );
        assert_eq!(error.hint(), Some("choose a smaller one; the default is 0.01"));
    }

    fn plain(steps: usize, averaged: bool) -> Training {
        Training { descent: Descent::default(), augment: Augment::None, steps, averaged }
    }

    #[test]
    fn rows_hold_out_a_share_and_lose_nothing() {
        let labels: Vec<Class> = (0..10).collect();
        let inputs: Vec<f32> = (0..20).map(|x| x as f32).collect();
        let rows = Rows::new(10, 0.25, 3);
        assert_eq!((rows.trained.len(), rows.held.len()), (8, 2));
        let mut all = [&rows.trained[..], &rows.held].concat();
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
        // Every label kept its input.
        let split = Split::of(&inputs, &labels, 2, &rows.trained);
        for (label, input) in split.labels.iter().zip(split.inputs.chunks(2)) {
            assert_eq!(input, [2.0 * f32::from(*label), 2.0 * f32::from(*label) + 1.0]);
        }
        assert_eq!(Rows::new(1, 0.9, 3).trained, [0]);
        assert!(Rows::new(0, 0.5, 0).trained.is_empty());
    }

    #[test]
    fn training_can_be_ended_and_errors_are_counted_on_what_was_held_out() {
        let spec = Spec::mlp(Shape { channels: 1, height: 1, width: 2 }, 2).unwrap();
        let labels: Vec<Class> = (0..40).map(|k| k % 2).collect();
        let inputs: Vec<f32> =
            labels.iter().flat_map(|&l| [f32::from(l), 1.0 - f32::from(l)]).collect();
        let rows = Rows::new(40, 0.5, 1);
        let split = Split::of(&inputs, &labels, 2, &rows.trained);
        let training = plain(2_000, false);
        let start = Params::initial(&spec, 0);
        let mut end = || ControlFlow::Break(());
        assert!(split.train(&spec, start.clone(), training, 1, &mut end).unwrap().is_none());
        let mut go_on = || ControlFlow::Continue(());
        let trained = split.train(&spec, start, training, 1, &mut go_on).unwrap().unwrap();
        let said = predict(&spec, &trained, &gathered(&inputs, 2, &rows.held));
        let error = rows.own_error(&said, &labels, 40, 1.0);
        assert_eq!((error.measured, error.errors), (20, 0));
        // Without an error on labels, the samples without one are half of all.
        assert!((error.source_error - 0.5).abs() < 1e-12);
    }

    #[test]
    fn averaged_it_is_the_mean_of_the_second_half_of_the_way() {
        let spec = Spec::mlp(Shape { channels: 1, height: 1, width: 2 }, 2).unwrap();
        let labels: Vec<Class> = (0..40).map(|k| k % 2).collect();
        let inputs: Vec<f32> = (0..80).map(|k| (k % 7) as f32).collect();
        let split = Split::of(&inputs, &labels, 2, &Rows::new(40, 0.0, 1).trained);
        let train = |steps: usize, averaged: bool| {
            let training = plain(steps, averaged);
            let start = Params::initial(&spec, 0);
            split
                .train(&spec, start, training, 1, &mut || ControlFlow::Continue(()))
                .unwrap()
                .unwrap()
        };
        let points: Vec<Params> = (21..=40).map(|steps| train(steps, false)).collect();
        let mean = Params::average(points.iter().map(|p| (p, 1.0))).unwrap();
        assert_eq!(train(40, true), mean);
        assert_ne!(train(40, true), train(40, false));
        assert_eq!(train(1, true), train(1, false));
    }

    #[test]
    fn views_are_for_training_alone_and_for_handed_models_too() {
        let spec = Spec::mlp(Shape::grey(6), 2).unwrap();
        let labels: Vec<Class> = (0..40).map(|k| k % 2).collect();
        let inputs: Vec<f32> = (0..40 * 36).map(|k| (k % 7) as f32 / 7.0).collect();
        let split = Split::of(&inputs, &labels, 36, &Rows::new(40, 0.0, 1).trained);
        let start = Params::initial(&spec, 0);
        let mut go_on = || ControlFlow::Continue(());
        for augment in [Augment::Shift, Augment::Convolutions, Augment::Both] {
            let varied = Training { augment, ..plain(50, false) };
            let mut train = |training| split.train(&spec, start.clone(), training, 1, &mut go_on);
            let trained = train(varied).unwrap().unwrap();
            assert_eq!(train(varied).unwrap().unwrap(), trained);
            assert_ne!(train(plain(50, false)).unwrap().unwrap(), trained);
            assert_eq!(split.handed_over(&spec, varied).augment, augment);
        }
        let table = Spec::mlp(Shape { channels: 1, height: 1, width: 36 }, 2).unwrap();
        let training = Training { augment: Augment::Both, ..plain(50, false) };
        let refused = split.train(&table, Params::initial(&table, 0), training, 1, &mut go_on);
        assert!(refused.unwrap_err().to_string().contains("is for pictures"));
    }

    #[test]
    fn a_model_that_was_handed_over_is_trained_as_long_and_averaged() {
        let spec = Spec::mlp(Shape { channels: 1, height: 1, width: 2 }, 2).unwrap();
        let labels: Vec<Class> = (0..40).map(|k| k % 2).collect();
        let inputs: Vec<f32> = (0..80).map(|k| (k % 7) as f32).collect();
        let split = Split::of(&inputs, &labels, 2, &Rows::new(40, 0.0, 1).trained);
        let inputs = mingled(&split.inputs, &split.labels, 2);
        let decay = weight_decay(&inputs, &split.labels, 2);
        assert!(decay > 0.0, "these rows say nothing of their classes");
        let seen = Split { inputs, ..split.clone() };
        for steps in [1, 39, 40, 399] {
            let training = plain(steps, false);
            let averaged = split.handed_over(&spec, training);
            assert_eq!(averaged, plain(steps, true));
            let handed = Params::initial(&spec, 4);
            let mut looks = 0;
            let mut look = || {
                looks += 1;
                ControlFlow::Continue(())
            };
            let trained = split.train_on(&spec, handed.clone(), training, 7, &mut look).unwrap();
            assert_eq!(looks, averaged.looks());
            let mut go_on = || ControlFlow::Continue(());
            let descent = Descent { weight_decay: decay, ..averaged.descent };
            let pulled = Training { descent, ..averaged };
            let alike = seen.train(&spec, handed, pulled, 7, &mut go_on).unwrap();
            assert_eq!(trained, alike);
        }
    }

    #[test]
    fn few_rows_are_seen_a_hundred_times_in_a_model_that_was_handed_over() {
        let table = Spec::mlp(Shape { channels: 1, height: 1, width: 4 }, 2).unwrap();
        let split = |rows: usize| Split { inputs: vec![0.5; rows * 4], labels: vec![0; rows] };
        let steps =
            |rows: usize, steps: usize| split(rows).handed_over(&table, plain(steps, false)).steps;
        let batch = Descent::default().batch;
        assert_eq!(steps(40, 10_000) * batch, 40 * MOST_EPOCHS);
        assert_eq!(steps(1, 10_000), MOST_EPOCHS.div_ceil(batch));
        assert_eq!(steps(40, 30), 30);
        assert_eq!(steps(5_000, 10_000), 10_000);
        // Where every epoch shows other views of a picture, nothing is learned by heart.
        let pictures = Spec::cnn(Shape::grey(28), 2).unwrap();
        let varied = Training { augment: Augment::Both, ..plain(10_000, false) };
        assert_eq!(split(40).handed_over(&pictures, varied).steps, 10_000);
    }

    #[test]
    fn random_views_and_what_convolutions_see_is_not_mingled() {
        let (pictures, series) = (Shape::grey(28), Shape { channels: 3, height: 1, width: 32 });
        let as_they_are = plain(10, false);
        let views = Training { augment: Augment::Both, ..as_they_are };
        let [mlp, cnn] = [Spec::mlp(pictures, 2), Spec::cnn(pictures, 2)].map(Result::unwrap);
        let series = Spec::series_cnn(series.channels, series.width, 2).unwrap();
        assert!(sees_mingled(&mlp, as_they_are) && !sees_mingled(&mlp, views));
        assert!(!sees_mingled(&cnn, as_they_are) && !sees_mingled(&series, as_they_are));
    }
}
