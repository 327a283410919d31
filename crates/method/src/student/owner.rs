//! What owns a target's samples: a built-in network, or a learner of the user's that trains students in its own way.

use std::ops::ControlFlow;

use stlf_learn::evaluate::{Predictions, predict};
use stlf_learn::{Params, Spec};
use stlf_planning::Error;

use super::{Drawn, Target};
use crate::adapt::TIMES;
use crate::combine::{check_length, combine_with};
use crate::learner::{Adapts, Learner, Progress, Watch};
use crate::local_training::gathered;
use crate::seeds::derive;

/// What has a target's samples, predicts them and trains a student on them.
#[derive(Debug, Clone, Copy)]
pub enum Owner<'a> {
    /// A built-in network.
    Network {
        /// The network.
        spec: &'a Spec,
        /// The inputs of all samples, one after the other.
        inputs: &'a [f32],
    },
    /// A learner of the user's.
    Learner {
        /// What trains and predicts.
        learner: &'a dyn Learner,
        /// How many samples it has.
        samples: usize,
    },
}

impl Owner<'_> {
    /// How many samples there are.
    pub fn samples(&self) -> usize {
        match self {
            Owner::Network { spec, inputs } => inputs.len() / spec.input().len(),
            Owner::Learner { samples, .. } => *samples,
        }
    }

    /// Of so many predictions, those that take long enough to tell how far they are.
    pub(super) fn calls(&self, predictions: usize) -> usize {
        match self {
            Owner::Network { .. } => 0,
            Owner::Learner { .. } => predictions,
        }
    }

    /// What a model says of samples, by their numbers; `None` if `watch` ended it.
    pub(crate) fn predict(
        &self,
        model: &Params,
        rows: &[usize],
        watch: &mut Watch<'_>,
    ) -> Result<Option<Predictions>, Error> {
        match self {
            Owner::Network { spec, inputs } => {
                check_length(spec, model, || "models")?;
                Ok(Some(predict(spec, model, &gathered(inputs, spec.input().len(), rows))))
            }
            Owner::Learner { learner, .. } => learner.predict(model, rows, watch),
        }
    }
}

/// What trains the students of a learner.
///
/// # Errors
/// It trains none.
pub(super) fn adapts(learner: &dyn Learner) -> Result<&dyn Adapts, Error> {
    learner.adapts().ok_or_else(|| Error::missing("learner", "it trains no students"))
}

impl Target<'_> {
    /// What the mixture and a student say of samples that a learner has altered, all of them, again and again; `None` if a watch ended it.
    pub(crate) fn altered(
        &self,
        learner: &dyn Learner,
        student: &Params,
        rows: &[usize],
        calls: &mut Calls<'_, '_>,
    ) -> Result<Option<[Predictions; 2]>, Error> {
        let adapts = adapts(learner)?;
        let (mut of_mixture, mut of_student, mut classes) = (Vec::new(), Vec::new(), 1);
        for time in 0..TIMES {
            let seed = derive(self.draw(Drawn::Alterations), &[time as u64]);
            let mut say =
                |model: &Params| adapts.predict_altered(model, rows, seed, &mut calls.next());
            let mixture = combine_with(self.combine, self.models, |_, model| say(model))?;
            let Some(mixture) = mixture else { return Ok(None) };
            let Some(own) = say(student)? else { return Ok(None) };
            classes = mixture.probabilities().next().map_or(classes, <[f32]>::len);
            of_mixture.extend_from_slice(mixture.as_slice());
            of_student.extend_from_slice(own.as_slice());
        }
        Ok(Some([of_mixture, of_student].map(|all| Predictions::new(all, classes))))
    }
}

/// Several calls of a learner, whose progress is told as that of one.
pub(crate) struct Calls<'w, 'o> {
    watch: &'w mut Watch<'o>,
    begun: usize,
    of: usize,
}

impl<'w, 'o> Calls<'w, 'o> {
    /// Of so many, none has begun.
    pub(crate) fn new(watch: &'w mut Watch<'o>, of: usize) -> Calls<'w, 'o> {
        Calls { watch, begun: 0, of }
    }

    /// What hears the next one.
    pub(crate) fn next(&mut self) -> impl FnMut(Progress) -> ControlFlow<()> + '_ {
        let before = (100 * self.begun) as u64;
        self.begun += 1;
        let total = (100 * self.of.max(self.begun)) as u64;
        move |progress: Progress| {
            (self.watch)(Progress { done: before + u64::from(progress.percent()), total })
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
