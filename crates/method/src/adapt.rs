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
use crate::known::{Known, right};
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

/// Why a target trains no student, if it knows too few labels to judge one by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// A strong view of a row of a table means nothing, and without views there is no guard.
    NoPictures,
    /// A student of so few samples would learn them by heart.
    FewSamples(usize),
}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Obstacle::NoPictures => {
                write!(f, "it has no pictures, and under {LEAST_LABELS} labels")
            }
            Obstacle::FewSamples(samples) => {
                write!(
                    f,
                    "it has {samples} samples, under {LEAST_SAMPLES}, and under {LEAST_LABELS} labels"
                )
            }
        }
    }
}

impl Obstacle {
    /// What keeps a target with so many samples of this shape, and so many known labels, from training a student, if anything does.
    pub fn of(shape: Shape, samples: usize, labels: usize) -> Option<Obstacle> {
        match shape.is_picture() {
            _ if labels >= LEAST_LABELS => None,
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
        /// What it was judged by.
        judgement: Judgement,
        /// Whether the target uses it.
        is_used: bool,
    },
}

/// What a student is judged by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Judgement {
    /// By labels that it was not trained on.
    Labels(ByLabels),
    /// By the guard, where there are no such labels.
    Guard(Verdict),
    /// By nothing: rows of a table, and no label that was held out.
    Nothing,
}

/// How many labels that were held out are right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByLabels {
    /// How many there are.
    pub held_out: usize,
    /// With the student.
    pub right: usize,
    /// With the mixture alone.
    pub of_mixture: usize,
}

impl Judgement {
    /// Whether the student should be used. Labels must not speak against it; the guard must speak for it.
    pub fn accepts(&self) -> bool {
        match self {
            Judgement::Labels(labels) => labels.right >= labels.of_mixture,
            Judgement::Guard(verdict) => verdict.accepted,
            Judgement::Nothing => false,
        }
    }
}

impl std::fmt::Display for Judgement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Judgement::Labels(ByLabels { held_out, right, of_mixture }) => {
                write!(f, "right on {right} of {held_out} labels, the mixture on {of_mixture}")
            }
            Judgement::Guard(verdict) => write!(f, "{:+.3}", verdict.margin()),
            Judgement::Nothing => write!(f, "nothing to judge it by"),
        }
    }
}

impl std::fmt::Display for Tried {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (judgement, end) = match self {
            Tried::Not(obstacle) => return write!(f, "not tried: {obstacle}"),
            Tried::Trained { judgement, is_used: false } => (judgement, "refused"),
            Tried::Trained { judgement, .. } if judgement.accepts() => (judgement, "used"),
            Tried::Trained { judgement, .. } => (judgement, "used, though the guard refuses it"),
        };
        write!(f, "{end} ({judgement})")
    }
}

/// A target with fewer samples does not try, unless it knows labels.
pub const LEAST_SAMPLES: usize = 300;

/// A target that knows so many labels tries in any case: some of them are held out and judge the student.
pub const LEAST_LABELS: usize = 5;

/// How often each held-out sample is altered.
const TIMES: usize = 4;

/// A student beside the mixture.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// What the mixture says of all samples.
    pub mixture: Predictions,
    /// What mixture and student together say of them.
    pub with_student: Predictions,
    /// The student's share in that.
    pub share: f64,
    /// What every guard says of the student, by the samples that were held out; none for rows of a table.
    verdicts: Option<[Verdict; Guard::ALL.len()]>,
    /// What the labels among these samples say, if there are any.
    by_labels: Option<ByLabels>,
}

impl Judged {
    /// What a guard says of the student, by the samples that were held out; nothing of rows of a table.
    pub fn verdict(&self, guard: Guard) -> Option<Verdict> {
        self.verdicts.map(|verdicts| verdicts[guard as usize])
    }

    /// What the student is judged by.
    pub fn judgement(&self) -> Judgement {
        match (self.by_labels, self.verdict(Guard::default())) {
            (Some(labels), _) => Judgement::Labels(labels),
            (None, Some(verdict)) => Judgement::Guard(verdict),
            (None, None) => Judgement::Nothing,
        }
    }

    /// Whether the target uses the student.
    pub fn is_used(&self, adapt: Adapt) -> bool {
        match adapt {
            Adapt::Off => false,
            Adapt::Guarded => self.judgement().accepts(),
            Adapt::Always => true,
        }
    }

    /// What came of the student, for a table or a sentence.
    pub fn tried(&self, adapt: Adapt) -> Tried {
        Tried::Trained { judgement: self.judgement(), is_used: self.is_used(adapt) }
    }

    /// What the target ends with.
    pub fn predictions(self, adapt: Adapt) -> Predictions {
        if self.is_used(adapt) { self.with_student } else { self.mixture }
    }
}

impl Target<'_> {
    /// Judges a student of this target by the samples that it was not trained on.
    ///
    /// # Errors
    /// No model, or models or inputs of another network.
    pub fn judge(&self, student: &Params) -> Result<Judged, Error> {
        let (held_out, _) = self.split();
        let is_picture = self.spec.input().is_picture();
        let verdicts = is_picture.then(|| self.verdicts(student, &held_out)).transpose()?;
        let [mixture, own] = self.both(student, self.inputs)?;
        let share = self.share();
        let with_student = Predictions::mix([(&mixture, 1.0 - share), (&own, share)])
            .ok_or_else(|| Error::field("student", "there is nothing to mix"))?;
        let known: Vec<Known> =
            self.known.iter().copied().filter(|(sample, _)| held_out.contains(sample)).collect();
        let by_labels = (!known.is_empty()).then(|| ByLabels {
            held_out: known.len(),
            right: right(&with_student, &known),
            of_mixture: right(&mixture, &known),
        });
        Ok(Judged { mixture, with_student, share, verdicts, by_labels })
    }

    /// How much each sample counts when somebody who knows the truth measures what a student of this target is worth. Samples whose labels it
    /// was trained on do not count. Those of the other known samples that were held out count for them too: which are held out is drawn, so that
    /// the measure is that of all samples (Horvitz and Thompson, 1952).
    pub fn evaluation_weights(&self) -> Vec<f64> {
        let (held_out, trained_on) = self.split();
        let all = held_out.len() + trained_on.len();
        let mut weights = vec![1.0; all];
        let held_out_weight = all as f64 / held_out.len() as f64;
        for (sample, _) in self.known {
            weights[*sample] = if held_out.contains(sample) { held_out_weight } else { 0.0 };
        }
        weights
    }

    /// What every guard says of a student. It is judged alone, although it is used together with the mixture: a mean of two models is always
    /// a bit more stable than each.
    fn verdicts(
        &self,
        student: &Params,
        held_out: &[usize],
    ) -> Result<[Verdict; Guard::ALL.len()], Error> {
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
        let both = |inputs: &[f32]| self.both(student, inputs);
        let (plain, covered, views) = (both(&plain)?, both(&covered)?, both(&views)?);
        let [of_mixture, of_student] = [0, 1].map(|whose| Seen {
            plain: &plain[whose],
            covered: &covered[whose],
            views: &views[whose],
        });
        Ok(Guard::ALL.map(|guard| guard.judge(of_student, of_mixture)))
    }

    /// What the mixture and a student say of inputs.
    fn both(&self, student: &Params, inputs: &[f32]) -> Result<[Predictions; 2], Error> {
        Ok([self.mixture(inputs)?, predict(self.spec, student, inputs)])
    }
}
