//! A student: a model that a target trains for itself, on its own samples, with the mixture of what it received as the first teacher.
//!
//! Only what the teacher is confident of is learned (pseudo-labels: Lee, "Pseudo-Label: The Simple and Efficient Semi-Supervised Learning
//! Method for Deep Neural Networks", 2013). The teacher sees a sample as it is, and the student learns its class on a strong view (Sohn et al.,
//! "FixMatch", 2020). Bit by bit the student's own moving average becomes the teacher (Tarvainen and Valpola, "Mean teachers are better
//! role models", 2017). Samples whose labels the target knows are learned with these. A student may do harm, so that a guard decides whether it
//! is used ([`crate::adapt`]). All this is of built-in networks; a learner of the user's that says it can trains students in its own way.

use std::collections::HashMap;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stlf_data::Class;
use stlf_learn::augment::Scratch;
use stlf_learn::evaluate::{Predictions, likeliest};
use stlf_learn::loss::softmax;
use stlf_learn::{Descent, Examples, Mode, Network, Params, Spec, Trainer, View};
use stlf_planning::Error;

use crate::combine::{Combine, combine_with};
use crate::known::{Known, shares};
use crate::learner::{Adaptation, Progress, Watch};
use crate::seeds::derive;

mod owner;

pub(crate) use owner::Calls;
pub use owner::Owner;

/// The teacher's least probability of a class that is learned.
const CONFIDENT: f64 = 0.7;

/// The weight of the past in the moving average, at every step.
const PAST: f32 = 0.999;

/// The shares of the steps after which the moving average begins to teach, and from which on it teaches alone.
const TAKES_OVER: (f64, f64) = (0.2, 0.6);

/// One of so many samples is held out from training.
const HELD_OUT_OF: usize = 3;

/// Where labels are known, one of so many samples of a step has one.
const LABELED_OF: usize = 3;

/// Steps between two looks at whether to stop.
const STRIDE: usize = 100;

/// What is drawn from a target's seed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Drawn {
    /// The samples that are held out.
    HeldOut,
    /// What dropout leaves out.
    Training,
    /// The samples of each step, and their views.
    Lessons,
    /// The altered samples by which guards judge.
    Alterations,
}

/// A target with the models that it received.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// What has its samples, predicts them and trains a student.
    pub owner: Owner<'a>,
    /// The models, with their weights.
    pub models: &'a [(&'a Params, f64)],
    /// How it combines them.
    pub combine: Combine,
    /// The samples whose labels it knows.
    pub known: &'a [Known],
    /// Whether no source of the plan is near it, so that its domain is at none.
    pub is_stranger: bool,
    /// Everything that is drawn comes from this.
    pub seed: u64,
}

/// A student that a target uses.
#[derive(Debug, Clone, PartialEq)]
pub struct Student {
    /// Its parameters.
    pub params: Params,
    /// Its share of what the target says; the rest is the mixture's.
    pub share: f64,
}

/// The share of a student that has learned from the mixture alone, and of one that has learned from labels too.
const SHARES: (f64, f64) = (0.5, 0.75);

/// How a student trains.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schooling {
    /// The settings of a step.
    pub descent: Descent,
    /// The number of steps.
    pub steps: usize,
}

impl Schooling {
    /// The usual number of steps, with these settings of each.
    pub fn new(descent: Descent) -> Schooling {
        Schooling { descent, steps: 4_000 }
    }

    /// The weight of the moving average in the teacher at a step, 0 to 1; the rest is the mixture's.
    fn own_weight(&self, step: usize) -> f64 {
        let (from, until) = TAKES_OVER;
        let done = step as f64 / self.steps as f64;
        ((done - from) / (until - from)).clamp(0.0, 1.0)
    }

    /// How often an observer is asked whether to stop, in all.
    pub fn looks(&self) -> usize {
        self.steps.div_ceil(STRIDE)
    }

    /// Floating-point operations of training, if every sample is learned: a step of training on each, and once the moving average teaches, what
    /// that says of it. What the mixture and a guard take is a hundredth of that, and not counted.
    pub fn operations(&self, spec: &Spec) -> u64 {
        let taught = (0..self.steps).filter(|&step| self.own_weight(step) > 0.0).count();
        let (batch, forward) = (self.descent.batch, spec.forward_operations_per_sample());
        (batch * (self.steps * spec.operations_per_sample() + taught * forward)) as u64
    }
}

impl<'a> Target<'a> {
    /// Trains a student; `None` if `watch` ended it.
    ///
    /// # Errors
    /// No model or no sample, models or inputs of another network, or what a learner says that cannot train one.
    pub fn student(
        &self,
        schooling: Schooling,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Params>, Error> {
        let (_, samples) = self.split();
        if samples.is_empty() {
            return Err(Error::no_samples("inputs", "a student needs samples"));
        }
        let all: Vec<usize> = (0..self.owner.samples()).collect();
        let mut calls = Calls::new(watch, 1 + self.owner.calls(2 * self.models.len()));
        let Some(mixture) = self.mixture(&all, &mut calls)? else { return Ok(None) };
        let Some(start) = self.nearest(&mixture, &all, &mut calls)? else { return Ok(None) };
        match self.owner {
            Owner::Network { spec, inputs } => {
                let lessons = Lessons { spec, inputs, mixture: &mixture, samples: &samples };
                self.trained(lessons, start.clone(), schooling, &mut calls.next())
            }
            Owner::Learner { learner, .. } => {
                let teacher = mixture.of_all(&samples);
                let (rows, teacher, seed) = (&samples[..], &teacher, self.draw(Drawn::Training));
                let adaptation = Adaptation { rows, teacher, start, seed };
                owner::adapts(learner)?.adapt(adaptation, &mut calls.next())
            }
        }
    }

    /// Trains a student of a built-in network; `None` if `watch` ended it. The student is the moving average, which varies less than the last
    /// iterate.
    fn trained(
        &self,
        lessons: Lessons<'_>,
        start: Params,
        schooling: Schooling,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Params>, Error> {
        let Lessons { spec, mixture, samples, .. } = lessons;
        let batch = schooling.descent.batch;
        let mut average = start.clone();
        let mut trainer = Trainer::new(spec, start, schooling.descent, self.draw(Drawn::Training))
            .map_err(|e| Error::other("student", e.to_string()))?;
        let mut rng = ChaCha8Rng::seed_from_u64(self.draw(Drawn::Lessons));
        let (mut network, mut scratch) = (Network::new(spec, batch), Scratch::new(spec.input()));
        let known: HashMap<usize, Class> = self.known.iter().copied().collect();
        let labeled: Vec<usize> =
            samples.iter().copied().filter(|sample| known.contains_key(sample)).collect();
        let mut progress = Progress { done: 0, total: schooling.looks() as u64 };
        for step in 0..schooling.steps {
            let of_labeled = if labeled.is_empty() { 0 } else { of_labeled(batch, step) };
            let drawn: Vec<usize> = (0..batch)
                .map(|at| if at < of_labeled { &labeled[..] } else { samples })
                .map(|from| from[rng.random_range(0..from.len())])
                .collect();
            let weight = schooling.own_weight(step);
            let own = (weight > 0.0).then(|| lessons.taught(&average, &drawn, &mut network));
            let (mut inputs, mut labels) = (Vec::new(), Vec::new());
            for (at, &sample) in drawn.iter().enumerate() {
                let mixture = mixture.of(sample);
                let own = own.as_ref().map(|own| &own[at * mixture.len()..][..mixture.len()]);
                let known = known.get(&sample).copied();
                let Some(class) = known.or_else(|| label(mixture, own, weight)) else { continue };
                labels.push(class);
                inputs.extend_from_slice(lessons.input(sample));
                let from = inputs.len() - spec.input().len();
                if spec.input().is_picture() {
                    View::STRONG.apply(&mut inputs[from..], &mut scratch, &mut rng);
                }
            }
            if !labels.is_empty() {
                let all: Vec<u32> = (0..labels.len() as u32).collect();
                let examples = Examples { inputs: &inputs, labels: &labels };
                trainer.step(&mut network, examples, &all);
            }
            for (average, &now) in average.iter_mut().zip(trainer.params.iter()) {
                *average = PAST * *average + (1.0 - PAST) * now;
            }
            if (step + 1) % STRIDE == 0 || step + 1 == schooling.steps {
                progress.done += 1;
                if watch(progress).is_break() {
                    return Ok(None);
                }
            }
        }
        Ok(Some(average))
    }

    /// The models with the weights that they have after the known labels were seen; as planned where none is, or where parameters are
    /// averaged. `None` if `watch` ended it.
    ///
    /// # Errors
    /// Models or inputs of another network, or what a learner says that cannot predict.
    pub fn informed(&self, watch: &mut Watch<'_>) -> Result<Option<Vec<(&'a Params, f64)>>, Error> {
        if self.known.is_empty() || self.combine == Combine::Parameters {
            return Ok(Some(self.models.to_vec()));
        }
        let samples: Vec<usize> = self.known.iter().map(|(sample, _)| *sample).collect();
        let mut told = vec![Vec::new(); self.known.len()];
        for &(model, _) in self.models {
            let said = self.owner.predict(model, &samples, watch)?;
            let Some(said) = said else { return Ok(None) };
            for ((told, said), (_, class)) in
                told.iter_mut().zip(said.probabilities()).zip(self.known)
            {
                told.push(f64::from(said[usize::from(*class)]));
            }
        }
        let planned: Vec<f64> = self.models.iter().map(|(_, weight)| *weight).collect();
        let shares = shares(&planned, &told);
        let models = self.models.iter().zip(shares).map(|(&(model, _), share)| (model, share));
        Ok(Some(models.collect()))
    }

    /// The share of a student of this target in what the target says.
    pub(crate) fn share(&self) -> f64 {
        if self.known.is_empty() { SHARES.0 } else { SHARES.1 }
    }

    /// What the mixture says of samples.
    pub(crate) fn mixture(
        &self,
        rows: &[usize],
        calls: &mut Calls<'_, '_>,
    ) -> Result<Option<Predictions>, Error> {
        let predict = |_, model: &Params| self.owner.predict(model, rows, &mut calls.next());
        combine_with(self.combine, self.models, predict)
    }

    /// The received model that most often says what the mixture says of these samples: a student starts from it.
    fn nearest(
        &self,
        mixture: &Predictions,
        rows: &[usize],
        calls: &mut Calls<'_, '_>,
    ) -> Result<Option<&'a Params>, Error> {
        let classes: Vec<Class> = mixture.classes().collect();
        let mut nearest: Option<(usize, &'a Params)> = None;
        for &(model, _) in self.models.iter().filter(|(_, weight)| *weight > 0.0) {
            let said = self.owner.predict(model, rows, &mut calls.next())?;
            let Some(said) = said else { return Ok(None) };
            let errors = said.errors(&classes);
            if nearest.is_none_or(|(fewest, _)| errors < fewest) {
                nearest = Some((errors, model));
            }
        }
        let none = || Error::missing("models", "a student needs a model to start from");
        nearest.map(|(_, model)| Some(model)).ok_or_else(none)
    }

    /// The samples that are held out, and those that are trained on.
    pub(crate) fn split(&self) -> (Vec<usize>, Vec<usize>) {
        let count = self.owner.samples();
        let mut order: Vec<usize> = (0..count).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(self.draw(Drawn::HeldOut));
        for i in (1..order.len()).rev() {
            order.swap(i, rng.random_range(0..=i));
        }
        let trained_on = order.split_off(count / HELD_OUT_OF);
        (order, trained_on)
    }

    /// The seed of something that is drawn.
    pub(crate) fn draw(&self, what: Drawn) -> u64 {
        derive(self.seed, &[what as u64])
    }
}

/// What a student of a built-in network learns from.
#[derive(Clone, Copy)]
struct Lessons<'a> {
    spec: &'a Spec,
    inputs: &'a [f32],
    mixture: &'a Predictions,
    /// The samples that are trained on.
    samples: &'a [usize],
}

impl<'a> Lessons<'a> {
    /// The input of a sample.
    fn input(&self, sample: usize) -> &'a [f32] {
        let numbers = self.spec.input().len();
        &self.inputs[sample * numbers..(sample + 1) * numbers]
    }

    /// What the moving average says of samples.
    fn taught(&self, average: &Params, samples: &[usize], network: &mut Network) -> Vec<f32> {
        let plain = network.inputs(samples.len()).chunks_exact_mut(self.spec.input().len());
        plain.zip(samples).for_each(|(to, &sample)| to.copy_from_slice(self.input(sample)));
        let mut outputs = network.forward(average, Mode::Evaluate).to_vec();
        outputs.chunks_exact_mut(self.spec.output().len()).for_each(softmax);
        outputs
    }
}

/// How many samples of a step are drawn from those with a label. Of a batch that is smaller than one of them needs, it is one in some steps.
fn of_labeled(batch: usize, step: usize) -> usize {
    match batch / LABELED_OF {
        0 => (step + 1) * batch / LABELED_OF - step * batch / LABELED_OF,
        some => some,
    }
}

/// The class that is learned of a sample, if the teacher is confident: the mixture, and with this weight the moving average.
fn label(mixture: &[f32], own: Option<&[f32]>, weight: f64) -> Option<Class> {
    let own = own.unwrap_or(mixture);
    let taught: Vec<f32> = (mixture.iter().zip(own))
        .map(|(&m, &o)| ((1.0 - weight) * f64::from(m) + weight * f64::from(o)) as f32)
        .collect();
    let (class, probability) = likeliest(&taught);
    (f64::from(probability) >= CONFIDENT).then_some(class)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
