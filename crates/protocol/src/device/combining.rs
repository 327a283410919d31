//! What a target makes of the models that it received: their mixture and, where all agreed to adapt, a student of it.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use stlf_learn::Params;
use stlf_learn::evaluate::Predictions;
use stlf_method::adapt::{self, Adapt, Judged, Obstacle};
use stlf_method::combine::combine_with;
use stlf_method::expectation::{Expected, Received, Tried, Warning, doubt, expected};
use stlf_method::known::Known;
use stlf_method::learner::{Learner, Progress};
use stlf_method::student::{Owner, Student, Target};
use stlf_method::trust::{Heard, Trust, among_compared, compared, trust_sent};
use stlf_planning::Error;
use stlf_planning::witness::Claim;

use super::epoch::WHOLE;
use super::trying::question_of;
use crate::job::{Sign, Watch};
use crate::roster::Place;
use crate::setup::Setup;
use crate::verdict_record::Question;

/// Models that a target received, with all that it takes to combine them.
#[derive(Debug)]
pub(crate) struct Combining {
    pub(super) setup: Setup,
    pub(super) place: Place,
    pub(super) inputs: Arc<[f32]>,
    pub(super) known: Vec<Known>,
    pub(super) learner: Arc<dyn Learner>,
    /// Whether that is the user's, which then trains students too.
    pub(super) has_user_learner: bool,
    /// The numbers of all its samples.
    pub(super) rows: Vec<usize>,
    /// Who sent each, the model and its weight.
    pub(super) models: Vec<(Place, Arc<Params>, f64)>,
    /// What the source of each claims.
    pub(super) claims: Vec<Claim>,
    /// Whether no source of the plan is near this device.
    pub(super) is_stranger: bool,
    /// How each did at sources that tried it.
    pub(super) tried: Vec<Tried>,
    /// Of a target that has labels, the model that it trained on them, and what it claims of it: a witness that costs nothing.
    pub(super) own: Option<(Params, Claim)>,
    /// How many other devices could send their model.
    pub(super) others: usize,
    /// The student that was trained last.
    pub(super) schooled: Option<Arc<Schooled>>,
}

/// A student as its target trained it, whether or not it is used.
#[derive(Debug, Clone, PartialEq)]
pub struct Schooled {
    /// A hash of all that it was made of: models, weights, samples, labels and settings.
    pub of: [u8; 32],
    /// The student's parameters.
    pub student: Params,
}

/// Why models cannot be combined, and whose model that is, where it is one's.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) from: Option<Place>,
    pub(crate) why: Error,
}

impl From<Error> for Failed {
    fn from(why: Error) -> Failed {
        Failed { from: None, why }
    }
}

/// What a target ends with.
#[derive(Debug, Clone, PartialEq)]
pub struct Combined {
    /// What its samples came to.
    pub predictions: Predictions,
    /// What came of its student, where targets train any.
    pub tried: Option<adapt::Tried>,
    /// The student, if it is used.
    pub student: Option<Student>,
    /// The student, if one was trained, so that it need not be trained again of the same.
    pub schooled: Option<Arc<Schooled>>,
    /// The weights of the models that it received, after it checked them and known labels were seen.
    pub weights: Vec<f64>,
    /// Whose models it refuses, because others or labels contradict them.
    pub refused: Vec<Place>,
    /// The accuracy that it may expect on its samples; nothing if models were tried on too few labels to say.
    pub expected: Option<Expected>,
    /// Whether they were.
    pub has_too_few_labels: bool,
    /// Whether no source of the plan is near it.
    pub is_stranger: bool,
}

impl Combined {
    /// Returns what the device is told if that is little, or little is known of it.
    pub fn warning(&self) -> Option<Warning> {
        if self.has_too_few_labels {
            return Some(Warning::TooFewLabels);
        }
        let classes = self.predictions.probabilities().next()?.len();
        self.expected?.warning(classes, self.is_stranger)
    }
}

impl Combining {
    /// Returns what the target ends with; `None` if `watch`, which hears how many percent of the student's training are done, ended it.
    ///
    /// # Errors
    /// These models cannot be combined.
    pub(crate) fn run(self, watch: &mut Watch<'_>) -> Result<Option<Combined>, Failed> {
        let Some(Trust { weights: trusted, refused, .. }) = self.trust(watch)? else {
            return Ok(None);
        };
        let Combining { setup, place, known, learner, rows, models: sent, .. } = &self;
        let is_stranger = self.is_stranger;
        let owner = self.owner();
        let refused = refused.into_iter().map(|at| sent[at].0).collect();
        let planned: Vec<(&Params, f64)> =
            sent.iter().zip(trusted).map(|((_, model, _), weight)| (&**model, weight)).collect();
        let models = match setup.adapt {
            Adapt::Off => planned.clone(),
            _ => {
                let target = setup.target(*place, owner, &planned, known, is_stranger);
                match target.informed(&mut |_| watch(Sign::GoesOn)) {
                    Ok(Some(informed)) => informed,
                    Ok(None) => return Ok(None),
                    // Whose model it is that cannot be used is found out below.
                    Err(_) => planned.clone(),
                }
            }
        };
        let weights: Vec<f64> = models.iter().map(|(_, weight)| *weight).collect();
        let came = weights.iter().zip(&self.claims).zip(&self.tried);
        let received: Vec<Received> = came
            .map(|((&weight, claim), tried)| Received {
                weight,
                divergence: claim.divergence,
                tried: tried.clone(),
            })
            .collect();
        let expect = |predictions: &Predictions| {
            let known = expected(predictions, &received);
            let has_too_few_labels =
                known.as_ref().is_some_and(|(_, basis)| basis.has_too_few_labels());
            (
                known.filter(|_| !has_too_few_labels).map(|(expected, _)| expected),
                has_too_few_labels,
            )
        };
        let target = setup.target(*place, owner, &models, known, is_stranger);
        let obstacle = match setup.adapt {
            Adapt::Off => None,
            _ => match Obstacle::of(owner, known.len()) {
                Some(obstacle) => Some(obstacle),
                None => match self.with_student(&target, watch) {
                    Ok(Some((schooled, judged))) => {
                        let (tried, is_used) =
                            (judged.tried(setup.adapt), judged.is_used(setup.adapt));
                        let (share, predictions) = (judged.share, judged.predictions(setup.adapt));
                        let params = || schooled.student.clone();
                        let (expected, has_too_few_labels) = expect(&predictions);
                        return Ok(Some(Combined {
                            expected,
                            has_too_few_labels,
                            predictions,
                            tried: Some(tried),
                            student: is_used.then(|| Student { params: params(), share }),
                            schooled: Some(schooled),
                            weights,
                            refused,
                            is_stranger,
                        }));
                    }
                    Ok(None) => return Ok(None),
                    // A target does without a student that its learner cannot train.
                    Err(why) => Some(Obstacle::Failed(why.to_string())),
                },
            },
        };
        let (mut used, mut begun) = (None, 0);
        let predicted = combine_with(setup.combine, &models, |at, model| {
            (used, begun) = (at, begun + 1);
            let percent = |progress: Progress| {
                let done = usize::from(WHOLE) * (begun - 1) + usize::from(progress.percent());
                (done / models.len()).min(usize::from(WHOLE)) as u8
            };
            learner.predict(model, rows, &mut |p| watch(Sign::Percent(percent(p))))
        });
        let blame = |why| Failed { from: used.map(|at| sent[at].0), why };
        let Some(predictions) = predicted.map_err(blame)? else { return Ok(None) };
        let (student, schooled) = (None, None);
        let (expected, has_too_few_labels) = expect(&predictions);
        let tried = obstacle.map(adapt::Tried::Not);
        Ok(Some(Combined {
            predictions,
            tried,
            student,
            schooled,
            weights,
            refused,
            expected,
            has_too_few_labels,
            is_stranger,
        }))
    }

    /// Returns who sent the models.
    pub(super) fn senders(&self) -> Vec<Place> {
        self.models.iter().map(|(from, ..)| *from).collect()
    }

    /// All that it depends on besides the samples which of the models the target refuses.
    pub(super) fn question(&self) -> Question {
        let Combining { models, claims, tried, own, others, .. } = self;
        let weights: Vec<(Place, f64)> =
            models.iter().map(|(from, _, weight)| (*from, *weight)).collect();
        let own_claim = own.as_ref().map(|(_, claim)| claim);
        let standard = (weights, claims, tried, own_claim, *others > 0);
        let own = own.iter().map(|(model, _)| model);
        question_of(&standard, models.iter().map(|(_, model, _)| &**model).chain(own))
    }

    /// Returns what has the samples of this target.
    fn owner(&self) -> Owner<'_> {
        match self.has_user_learner {
            true => Owner::Learner { learner: &*self.learner, samples: self.rows.len() },
            false => Owner::Network { spec: &self.setup.spec, inputs: &self.inputs },
        }
    }

    /// The student of this target, which is not trained again of the same, and what it is judged by; `None` if `watch`, which hears how many
    /// percent are done, ended it.
    fn with_student(
        &self,
        target: &Target<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<Option<(Arc<Schooled>, Judged)>, Error> {
        // A learner may take long to judge, too.
        let share = if self.has_user_learner { WHOLE / 2 } else { WHOLE };
        let part =
            |p: Progress| (u16::from(p.percent()) * u16::from(share) / u16::from(WHOLE)) as u8;
        let of = self.made_of(target);
        let schooled = match self.schooled.as_ref().filter(|schooled| schooled.of == of) {
            Some(schooled) => schooled.clone(),
            None => {
                let mut look = |p: Progress| watch(Sign::Percent(part(p)));
                match target.student(self.setup.schooling, &mut look)? {
                    Some(student) => Arc::new(Schooled { of, student }),
                    None => return Ok(None),
                }
            }
        };
        let mut look = |p: Progress| watch(Sign::Percent(share + part(p)));
        let judged = target.judge(&schooled.student, &mut look)?;
        Ok(judged.map(|judged| (schooled, judged)))
    }

    /// A hash of all that the student of this target depends on.
    fn made_of(&self, target: &Target<'_>) -> [u8; 32] {
        // Whether the target is a stranger changes only what the guard asks, which judges every time.
        let Target { owner: _, models, combine, known, is_stranger: _, seed } = target;
        let Setup { spec, schooling, .. } = &self.setup;
        let mut hasher = Sha256::new();
        // Debug formats name every field, so that no setting is forgotten. Of a learner, its features stand for its samples.
        hasher.update(format!("{spec:?} {combine:?} {seed} {schooling:?} {known:?} "));
        hasher.update(format!("{} {} ", models.len(), self.inputs.len()));
        for (params, weight) in *models {
            hasher.update(weight.to_le_bytes());
            params.iter().for_each(|x| hasher.update(x.to_le_bytes()));
        }
        self.inputs.iter().for_each(|x| hasher.update(x.to_le_bytes()));
        hasher.finalize().into()
    }

    /// Returns which models the target believes; `None` if `watch` ended it.
    fn trust(&self, watch: &mut Watch<'_>) -> Result<Option<Trust>, Failed> {
        let Combining { known, models, claims, tried, own, .. } = self;
        let samples = compared(self.rows.len(), known);
        let mut sent = Vec::with_capacity(models.len());
        for (((from, model, weight), &claim), tried) in models.iter().zip(claims).zip(tried) {
            let said = self.said(Some(*from), model, &samples, watch)?;
            let Some(said) = said else { return Ok(None) };
            let doubt = doubt(&said).unwrap_or_default() - tried.modesty();
            let classes = said.classes().collect();
            sent.push(Heard { classes, doubt, weight: *weight, claim });
        }
        let own = match own {
            Some((model, claim)) => {
                let Some(said) = self.said(None, model, &samples, watch)? else { return Ok(None) };
                Some(Heard::own(said.classes().collect(), *claim))
            }
            None => None,
        };
        let known = among_compared(&samples, known);
        Ok(Some(trust_sent(sent, own, self.others > 0, &known)))
    }

    /// Returns what a model says of these samples; `None` if `watch` ended it.
    fn said(
        &self,
        from: Option<Place>,
        model: &Params,
        samples: &[usize],
        watch: &mut Watch<'_>,
    ) -> Result<Option<Predictions>, Failed> {
        let said = self.learner.predict(model, samples, &mut |_| watch(Sign::GoesOn));
        said.map_err(|why| Failed { from, why })
    }
}
