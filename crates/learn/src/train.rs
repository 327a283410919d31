//! Stochastic gradient descent on one model's own data.

use std::ops::ControlFlow;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stlf_data::Class;

use crate::Error;
use crate::augment::{Augment, Scratch, View};
use crate::layers::Mode;
use crate::loss::cross_entropy;
use crate::network::Network;
use crate::params::Params;
use crate::spec::Spec;

/// Inputs, one after the other, with a label each.
#[derive(Debug, Clone, Copy)]
pub struct Examples<'a> {
    /// The inputs, as many numbers per example as the network takes.
    pub inputs: &'a [f32],
    /// The class of each example, in the order of the inputs.
    pub labels: &'a [Class],
}

impl Examples<'_> {
    /// Returns the number of examples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Returns whether there is no example.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Checks that these are examples for this network.
    pub fn check(&self, spec: &Spec) -> Result<(), Error> {
        let numbers = spec.input().len();
        if self.is_empty() {
            return Err(Error::Training("there is no example to train on".to_owned()));
        }
        if self.inputs.len() != self.len() * numbers {
            return Err(Error::Training(format!(
                "{} numbers are not {} inputs of {}",
                self.inputs.len(),
                self.len(),
                spec.input()
            )));
        }
        let classes = spec.output().len();
        match self.labels.iter().position(|&label| label as usize >= classes) {
            None => Ok(()),
            Some(at) => Err(Error::Training(format!(
                "example {at} has label {}, but the network has {classes} classes",
                self.labels[at]
            ))),
        }
    }
}

/// How to descend.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `batch` | 10 | examples per step | ≥ 1 |
/// | `learning_rate` | 0.01 | step length | > 0 |
/// | `momentum` | 0 | fraction of the last step kept | 0 ≤ m < 1 |
/// | `weight_decay` | 0 | pull of every parameter to zero | ≥ 0 |
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Descent {
    /// The number of examples per step, at least 1.
    pub batch: usize,
    /// The learning rate, the length of a step along the gradient; above 0.
    pub learning_rate: f32,
    /// The momentum: the fraction of the last step that is kept, 0 ≤ m < 1.
    pub momentum: f32,
    /// Pull of every parameter to zero.
    pub weight_decay: f32,
}

impl Default for Descent {
    fn default() -> Descent {
        Descent { batch: 10, learning_rate: 0.01, momentum: 0.0, weight_decay: 0.0 }
    }
}

impl Descent {
    /// Checks that all settings are within their ranges.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |message: String| Err(Error::Training(message));
        if self.batch == 0 {
            return wrong("batch: a step needs at least one example".to_owned());
        }
        if !(self.learning_rate > 0.0 && self.learning_rate.is_finite()) {
            return wrong(format!(
                "learning-rate: {} is not a finite number above 0",
                self.learning_rate
            ));
        }
        if !(0.0..1.0).contains(&self.momentum) {
            return wrong(format!("momentum: {} is not in 0 ≤ m < 1", self.momentum));
        }
        if !(self.weight_decay >= 0.0 && self.weight_decay.is_finite()) {
            return wrong(format!(
                "weight-decay: {} is not a finite number of at least 0",
                self.weight_decay
            ));
        }
        Ok(())
    }

    /// One step of the parameters, as PyTorch's SGD makes it: v ← m·v + g + d·p, p ← p − r·v.
    pub fn step(&self, params: &mut [f32], velocity: &mut [f32], gradients: &[f32]) {
        let Descent { learning_rate, momentum, weight_decay, .. } = *self;
        for ((p, v), &g) in params.iter_mut().zip(velocity).zip(gradients) {
            *v = momentum * *v + g + weight_decay * *p;
            *p -= learning_rate * *v;
        }
    }
}

/// One model being trained on one device's examples: everything random comes from its own seed, so the
/// result is the same whatever else runs beside it.
#[derive(Debug, Clone)]
pub struct Trainer {
    /// The parameters of the model as trained so far.
    pub params: Params,
    descent: Descent,
    velocity: Params,
    gradients: Params,
    rng: ChaCha8Rng,
    views: Option<Views>,
    /// A shuffled round through the examples, and how far it got.
    order: Vec<u32>,
    next: usize,
}

/// The random stream of views; that of order and dropout is 0.
const VIEWS: u64 = 1;

/// The random views of its examples that a model sees.
#[derive(Debug, Clone)]
struct Views {
    view: View,
    scratch: Scratch,
    rng: ChaCha8Rng,
}

/// What an observer is told of one epoch of training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Epoch {
    /// The number of the epoch, counted from 1.
    pub number: usize,
    /// The mean loss of its steps, each before the step was made.
    pub loss: f32,
}

impl Trainer {
    /// Returns a trainer that starts from these parameters.
    pub fn new(spec: &Spec, params: Params, descent: Descent, seed: u64) -> Result<Trainer, Error> {
        descent.check()?;
        if params.len() != spec.parameters() {
            let (has, needs) = (params.len(), spec.parameters());
            return Err(Error::Params(format!("{has} numbers for a network of {needs}")));
        }
        Ok(Trainer {
            params,
            descent,
            velocity: Params::zeros(spec),
            gradients: Params::zeros(spec),
            rng: ChaCha8Rng::seed_from_u64(seed),
            views: None,
            order: Vec::new(),
            next: 0,
        })
    }

    /// The same trainer, but every step sees its pictures as new random views. They are drawn from a stream of their own, so that
    /// order and dropout are the same with and without them.
    ///
    /// # Errors
    /// Inputs that are no pictures.
    pub fn augmented(mut self, spec: &Spec, augment: Augment) -> Result<Trainer, Error> {
        augment.check(spec.input())?;
        self.views = augment.view().map(|view| {
            let mut rng = self.rng.clone();
            rng.set_stream(VIEWS);
            Views { view, scratch: Scratch::new(spec.input()), rng }
        });
        Ok(self)
    }

    /// One step on these examples; returns their loss before it. Allocates nothing.
    pub fn step(&mut self, network: &mut Network, examples: Examples<'_>, batch: &[u32]) -> f32 {
        let numbers = examples.inputs.len() / examples.len();
        let mut labels = [0; 256];
        let mut long;
        let labels = if batch.len() <= labels.len() {
            &mut labels[..batch.len()]
        } else {
            long = vec![0; batch.len()];
            &mut long[..]
        };
        let inputs = network.inputs(batch.len()).chunks_exact_mut(numbers);
        for ((&at, input), label) in batch.iter().zip(inputs).zip(labels.iter_mut()) {
            let at = at as usize;
            input.copy_from_slice(&examples.inputs[at * numbers..(at + 1) * numbers]);
            if let Some(Views { view, scratch, rng }) = &mut self.views {
                view.apply(input, scratch, rng);
            }
            *label = examples.labels[at];
        }
        network.forward(&self.params, Mode::Train(&mut self.rng));
        let (outputs, gradients) = network.outputs_and_gradients();
        let loss = cross_entropy(outputs, labels, gradients);
        self.gradients.fill(0.0);
        network.backward(&self.params, &mut self.gradients, false);
        self.descent.step(&mut self.params, &mut self.velocity, &self.gradients);
        loss
    }

    /// `count` steps, going through the examples in shuffled rounds; returns the mean loss.
    pub fn steps(&mut self, network: &mut Network, examples: Examples<'_>, count: usize) -> f32 {
        let mut sum = 0.0;
        for _ in 0..count {
            if self.order.len() != examples.len() {
                self.order = (0..examples.len() as u32).collect();
                self.next = self.order.len();
            }
            if self.next == self.order.len() {
                self.shuffle();
            }
            let end = (self.next + self.descent.batch).min(self.order.len());
            let order = std::mem::take(&mut self.order);
            sum += self.step(network, examples, &order[self.next..end]);
            self.order = order;
            self.next = end;
        }
        sum / count.max(1) as f32
    }

    /// Returns the number of steps in one pass over this many examples.
    pub fn steps_per_epoch(&self, examples: usize) -> usize {
        examples.div_ceil(self.descent.batch)
    }

    /// Whole passes through the examples. The observer may end the training after any.
    pub fn epochs(
        &mut self,
        network: &mut Network,
        examples: Examples<'_>,
        count: usize,
        observer: &mut dyn FnMut(Epoch) -> ControlFlow<()>,
    ) {
        for number in 1..=count {
            let steps = self.steps_per_epoch(examples.len());
            let loss = self.steps(network, examples, steps);
            if observer(Epoch { number, loss }).is_break() {
                break;
            }
        }
    }

    /// Begins a new round through the examples.
    fn shuffle(&mut self) {
        for i in (1..self.order.len()).rev() {
            self.order.swap(i, self.rng.random_range(0..=i));
        }
        self.next = 0;
    }
}
