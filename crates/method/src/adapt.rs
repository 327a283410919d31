//! Whether a target trains a student, and whether it uses it beside the mixture.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use stlf_data::Shape;
use stlf_learn::augment::Scratch;
use stlf_learn::evaluate::{Predictions, predict};
use stlf_learn::{Params, View};
use stlf_planning::Error;

use crate::guard::{Guard, Seen, Verdict, cover};
use crate::student::{Drawn, Target};

/// Whether targets train students.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Adapt {
    /// They use the mixture.
    Off,
    /// They train one, and use it if the guard accepts it.
    #[default]
    Guarded,
    /// They train one and use it, whatever the guard says.
    Always,
}

/// Why a target trains no student.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// A strong view of a row of a table means nothing.
    NoPictures,
    /// A student of so few samples would learn them by heart.
    FewSamples(usize),
}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Obstacle::NoPictures => write!(f, "its samples are no pictures"),
            Obstacle::FewSamples(samples) => {
                write!(f, "it has {samples} samples, and a student needs {LEAST_SAMPLES}")
            }
        }
    }
}

impl Obstacle {
    /// What keeps a target with so many samples of this shape from training a student, if anything does.
    pub fn of(shape: Shape, samples: usize) -> Option<Obstacle> {
        match shape.is_picture() {
            false => Some(Obstacle::NoPictures),
            true => (samples < LEAST_SAMPLES).then_some(Obstacle::FewSamples(samples)),
        }
    }
}

/// What came of a target's wish for a student.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tried {
    /// It trained none.
    Not(Obstacle),
    /// It trained one.
    Trained {
        /// What the guard says of it.
        verdict: Verdict,
        /// Whether the target uses it.
        is_used: bool,
    },
}

impl std::fmt::Display for Tried {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (margin, end) = match self {
            Tried::Not(obstacle) => return write!(f, "not tried: {obstacle}"),
            Tried::Trained { verdict, is_used: false } => (verdict.margin(), "refused"),
            Tried::Trained { verdict, .. } if verdict.accepted => (verdict.margin(), "used"),
            Tried::Trained { verdict, .. } => {
                (verdict.margin(), "used, though the guard refuses it")
            }
        };
        write!(f, "{end} ({margin:+.3})")
    }
}

/// A target with fewer samples does not try.
pub const LEAST_SAMPLES: usize = 300;

/// How often each held-out sample is altered.
const TIMES: usize = 4;

/// A student beside the mixture.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// What the mixture says of all samples.
    pub mixture: Predictions,
    /// What the mean of mixture and student says of them.
    pub with_student: Predictions,
    /// What every guard says of the student, by the samples that were held out.
    verdicts: [Verdict; Guard::ALL.len()],
}

impl Judged {
    /// What a guard says of the student, by the samples that were held out.
    pub fn verdict(&self, guard: Guard) -> Verdict {
        self.verdicts[guard as usize]
    }

    /// Whether the target uses the student.
    pub fn is_used(&self, adapt: Adapt) -> bool {
        match adapt {
            Adapt::Off => false,
            Adapt::Guarded => self.verdict(Guard::default()).accepted,
            Adapt::Always => true,
        }
    }

    /// What came of the student, for a table or a sentence.
    pub fn tried(&self, adapt: Adapt) -> Tried {
        Tried::Trained { verdict: self.verdict(Guard::default()), is_used: self.is_used(adapt) }
    }

    /// What the target ends with.
    pub fn predictions(self, adapt: Adapt) -> Predictions {
        if self.is_used(adapt) { self.with_student } else { self.mixture }
    }
}

impl Target<'_> {
    /// Judges a student of this target by the samples that it was not trained on. It is judged alone, although it is used together with the
    /// mixture: a mean of two models is always a bit more stable than each.
    ///
    /// # Errors
    /// No model, or models or inputs of another network.
    pub fn judge(&self, student: &Params) -> Result<Judged, Error> {
        let (held_out, _) = self.split();
        let plain: Vec<f32> =
            held_out.iter().flat_map(|&sample| self.input(sample)).copied().collect();
        let mut rng = ChaCha8Rng::seed_from_u64(self.draw(Drawn::Alterations));
        let (shape, mut scratch) = (self.spec.input(), Scratch::new(self.spec.input()));
        let mut altered = |alter: &mut dyn FnMut(&mut [f32], &mut ChaCha8Rng)| {
            let mut inputs = plain.repeat(TIMES);
            inputs.chunks_exact_mut(shape.len()).for_each(|input| alter(input, &mut rng));
            inputs
        };
        let covered = altered(&mut |input, rng| cover(input, shape, rng));
        let views = altered(&mut |input, rng| View::STRONG.apply(input, &mut scratch, rng));
        let both = |inputs: &[f32]| -> Result<[Predictions; 2], Error> {
            Ok([self.mixture(inputs)?, predict(self.spec, student, inputs)])
        };
        let (plain, covered, views) = (both(&plain)?, both(&covered)?, both(&views)?);
        let [of_mixture, of_student] = [0, 1].map(|whose| Seen {
            plain: &plain[whose],
            covered: &covered[whose],
            views: &views[whose],
        });
        let verdicts = Guard::ALL.map(|guard| guard.judge(of_student, of_mixture));
        let [mixture, own] = both(self.inputs)?;
        let with_student = Predictions::mix([(&mixture, 1.0), (&own, 1.0)])
            .ok_or_else(|| Error::field("student", "there is nothing to mix"))?;
        Ok(Judged { mixture, with_student, verdicts })
    }
}
