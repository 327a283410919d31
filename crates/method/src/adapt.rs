//! Whether a target trains a student, and whether it uses it beside the mixture.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use stlf_learn::augment::Scratch;
use stlf_learn::evaluate::{Predictions, predict};
use stlf_learn::{Params, Spec, View};
use stlf_planning::Error;

use crate::combine::combine;
use crate::guard::{Guard, Seen, Standard, Verdict, cover};
use crate::known::{Known, right};
use crate::learner::Watch;
use crate::local_training::gathered;
use crate::student::{Calls, Drawn, Owner, Target};

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// A strong view of a row of a table means nothing, and without views there is no guard.
    NoPictures,
    /// A student of so few samples would learn them by heart.
    FewSamples(usize),
    /// Its learner, which is the user's, does not say that it can.
    CannotAdapt,
    /// Its learner says that it can, and has failed.
    Failed(String),
}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Obstacle::NoPictures => {
                write!(f, "it has no pictures, and fewer than {LEAST_LABELS} labels")
            }
            Obstacle::FewSamples(samples) => {
                write!(
                    f,
                    "it has {samples} samples, fewer than {LEAST_SAMPLES}, and fewer than {LEAST_LABELS} labels"
                )
            }
            Obstacle::CannotAdapt => write!(f, "its learner trains no students"),
            Obstacle::Failed(why) => write!(f, "{why}"),
        }
    }
}

impl Obstacle {
    /// What keeps a target whose samples have this owner, and which knows so many labels, from training a student, if anything does.
    pub fn of(owner: Owner<'_>, labels: usize) -> Option<Obstacle> {
        let has_views = match owner {
            Owner::Network { spec, .. } => spec.input().is_picture(),
            Owner::Learner { learner, .. } if learner.adapts().is_none() => {
                return Some(Obstacle::CannotAdapt);
            }
            Owner::Learner { .. } => true,
        };
        match (has_views, owner.samples()) {
            _ if labels >= LEAST_LABELS => None,
            (false, _) => Some(Obstacle::NoPictures),
            (true, samples) => (samples < LEAST_SAMPLES).then_some(Obstacle::FewSamples(samples)),
        }
    }
}

/// What came of a target's wish for a student.
#[derive(Debug, Clone, PartialEq)]
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
    /// By the guard, where there are no such labels, or few on which both are level.
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
            Judgement::Guard(verdict) => {
                let but = if verdict.has_collapsed() { "; but collapsed" } else { "" };
                write!(f, "{:+.3}; asked {:+.3}{but}", verdict.margin(), verdict.threshold)
            }
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

/// Where a target knows fewer labels, one to three of them judge, and both being right on as many tells nothing. With so many and more, what
/// labels bring is measured (`docs/ask.md`).
const TELLING_LABELS: usize = 10;

/// How often each held-out sample is altered.
pub(crate) const TIMES: usize = 4;

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
    /// How many labels the target knows, held out or not.
    labels: usize,
}

impl Judged {
    /// What a guard says of the student, by the samples that were held out; nothing of rows of a table.
    pub fn verdict(&self, guard: Guard) -> Option<Verdict> {
        self.verdicts.map(|verdicts| verdicts[guard as usize])
    }

    /// What the student is judged by.
    pub fn judgement(&self) -> Judgement {
        match (self.by_labels, self.verdict(Guard::default())) {
            (Some(ByLabels { right, of_mixture, .. }), Some(verdict))
                if right == of_mixture && self.labels < TELLING_LABELS =>
            {
                Judgement::Guard(verdict)
            }
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
    /// Judges a student of this target by the samples that it was not trained on; `None` if `watch` ended it.
    ///
    /// # Errors
    /// No model, models or inputs of another network, or what a learner says that cannot predict.
    pub fn judge(&self, student: &Params, watch: &mut Watch<'_>) -> Result<Option<Judged>, Error> {
        let (held_out, _) = self.split();
        let all: Vec<usize> = (0..self.owner.samples()).collect();
        let models = 1 + self.models.len();
        let mut calls = Calls::new(watch, (1 + TIMES) * models);
        let mixture = self.mixture(&all, &mut calls)?;
        let Some(mixture) = mixture else { return Ok(None) };
        let own = self.owner.predict(student, &all, &mut calls.next())?;
        let Some(own) = own else { return Ok(None) };
        let verdicts =
            match self.owner {
                Owner::Network { spec, inputs } if spec.input().is_picture() => Some(
                    self.verdicts(spec, student, &gathered(inputs, spec.input().len(), &held_out))?,
                ),
                Owner::Network { .. } => None,
                Owner::Learner { learner, .. } => {
                    let altered = self.altered(learner, student, &held_out, &mut calls)?;
                    let Some(altered) = altered else { return Ok(None) };
                    let plain = [&mixture, &own].map(|said| said.of_all(&held_out));
                    Some(compared(&plain, &altered, &altered, self.standard()))
                }
            };
        let share = self.share();
        let with_student = Predictions::mix([(&mixture, 1.0 - share), (&own, share)])
            .ok_or_else(|| Error::missing("student", "there is nothing to mix"))?;
        let known: Vec<Known> =
            self.known.iter().copied().filter(|(sample, _)| held_out.contains(sample)).collect();
        let by_labels = (!known.is_empty()).then(|| ByLabels {
            held_out: known.len(),
            right: right(&with_student, &known),
            of_mixture: right(&mixture, &known),
        });
        let labels = self.known.len();
        Ok(Some(Judged { mixture, with_student, share, verdicts, by_labels, labels }))
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

    /// How much guards ask of a student of this target. Those of learners of the user's often do harm to strangers as well, and nothing is known
    /// of how they alter samples.
    fn standard(&self) -> Standard {
        match self.owner {
            Owner::Network { .. } if self.is_stranger => Standard::Stranger,
            Owner::Network { .. } | Owner::Learner { .. } => Standard::Usual,
        }
    }

    /// What every guard says of a student of a built-in network, by the inputs that were held out.
    fn verdicts(
        &self,
        spec: &Spec,
        student: &Params,
        plain: &[f32],
    ) -> Result<[Verdict; Guard::ALL.len()], Error> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.draw(Drawn::Alterations));
        let (shape, mut scratch) = (spec.input(), Scratch::new(spec.input()));
        let mut altered = |alter: &mut dyn FnMut(&mut [f32], &mut ChaCha8Rng)| {
            let mut inputs = plain.repeat(TIMES);
            inputs.chunks_exact_mut(shape.len()).for_each(|input| alter(input, &mut rng));
            inputs
        };
        let covered = altered(&mut |input, rng| cover(input, shape, rng));
        let views = altered(&mut |input, rng| View::STRONG.apply(input, &mut scratch, rng));
        let both = |inputs: &[f32]| -> Result<[Predictions; 2], Error> {
            let mixture = combine(self.combine, spec, self.models, inputs)?;
            Ok([mixture, predict(spec, student, inputs)])
        };
        Ok(compared(&both(plain)?, &both(&covered)?, &both(&views)?, self.standard()))
    }
}

/// What every guard says of a student, by what first the mixture and then the student say of samples as they are, covered, and in views. The
/// student is judged alone, although it is used together with the mixture: a mean of two models is always a bit more stable than each.
fn compared(
    plain: &[Predictions; 2],
    covered: &[Predictions; 2],
    views: &[Predictions; 2],
    standard: Standard,
) -> [Verdict; Guard::ALL.len()] {
    let [of_mixture, of_student] = [0, 1].map(|whose| Seen {
        plain: &plain[whose],
        covered: &covered[whose],
        views: &views[whose],
    });
    Guard::ALL.map(|guard| guard.judge(of_student, of_mixture, standard))
}
