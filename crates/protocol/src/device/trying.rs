//! Trials of models on this device's labels, before the models go to others, and those that go along with them.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use stlf_data::Class;
use stlf_learn::Params;
use stlf_method::expectation::{Guessing, Trial, Tried};
use stlf_method::handed::{Standard, Verdict};
use stlf_method::learner::{Learner, Watch};
use stlf_method::local_training::OwnError;
use stlf_planning::Error;
use stlf_planning::plan::Way;

use super::Device;
use crate::job::{self, Sign};
use crate::verdict_record::Question;

/// What a device has learned on its own labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Trained {
    /// The parameters of its model, before others continue training it.
    pub model: Params,
    /// The error of the model on its labels.
    pub error: OwnError,
    /// How the model as it is sent does on the labels that were held out; none without any.
    pub trial: Option<Trial>,
}

impl Device {
    /// Returns what it is told of its own model, if that is no better than guessing on its labels.
    pub fn guessing(&self) -> Option<Guessing> {
        Guessing::of_own(self.own_error()?, &self.holdings.labels)
    }

    /// The trials that go along with the model that it sends on this way.
    pub fn tried(&self, way: Way) -> Tried {
        let epoch = self.epoch.as_ref();
        let handed =
            epoch.and_then(|epoch| Some((epoch, epoch.following()?.leg(self.place, way)?)));
        let is_refused = self.following().is_some_and(|following| following.refuses(way));
        match (handed, way) {
            (Some(_), Way::Second) if is_refused => self.tried(Way::First),
            (Some((epoch, leg)), _) if !is_refused => {
                let known = self.handed_on.get(&way);
                let [as_handed, as_sent] = [
                    known.and_then(|known| known.as_handed),
                    known.and_then(|known| known.as_sent),
                ];
                let before = epoch.tried((leg.from, leg.sent));
                before.handed_on(self.place.index(), as_handed, as_sent)
            }
            _ => Tried::alone(self.trained.as_ref().and_then(|trained| trained.trial)),
        }
    }
}

/// A model that came from another device, with all that it takes to try it.
#[derive(Debug)]
pub(super) struct Trying {
    pub(super) learner: Arc<dyn Learner>,
    pub(super) labels: Vec<Class>,
    pub(super) handed: Arc<Params>,
    pub(super) standard: Standard,
    /// What the device has itself, where it has anything.
    pub(super) own: Option<Params>,
}

impl Trying {
    /// Returns what the device makes of the model by all its labels; `None` if `watch` ended it.
    ///
    /// # Errors
    /// The learner cannot use the model.
    pub(super) fn verdict(&self, watch: &mut job::Watch<'_>) -> Result<Option<Verdict>, Error> {
        let Trying { learner, labels, handed, standard, own } = self;
        let all: Vec<usize> = (0..labels.len()).collect();
        let mut on_all =
            |model: &Params| try_out(&**learner, model, labels, &all, &mut |_| watch(Sign::GoesOn));
        let Some(came) = on_all(handed)? else { return Ok(None) };
        let own = match own.as_ref().filter(|_| standard.compares()) {
            Some(own) => on_all(own)?,
            None => Some(None),
        };
        Ok(own.map(|own| standard.verdict(came, own)))
    }

    /// All that the verdict depends on besides the samples.
    pub(super) fn question(&self) -> Question {
        let own = self.own.as_ref().filter(|_| self.standard.compares());
        question_of(&self.standard, [&*self.handed].into_iter().chain(own))
    }
}

/// A question about these models, and all else that its answer depends on besides the samples. Debug formats name every field, so that none is forgotten.
pub(super) fn question_of<'m>(
    standard: &impl std::fmt::Debug,
    models: impl Iterator<Item = &'m Params>,
) -> Question {
    let mut hasher = Sha256::new_with_prefix(format!("{standard:?} "));
    for model in models {
        hasher.update(model.len().to_le_bytes());
        model.iter().for_each(|p| hasher.update(p.to_le_bytes()));
    }
    hasher.finalize().into()
}

/// Returns how a model does on these of a device's labels; nothing on none. `None` if `watch` ended it.
///
/// # Errors
/// The learner cannot use this model.
pub(super) fn try_out(
    learner: &dyn Learner,
    model: &Params,
    labels: &[Class],
    rows: &[usize],
    watch: &mut Watch<'_>,
) -> Result<Option<Option<Trial>>, Error> {
    if rows.is_empty() {
        return Ok(Some(None));
    }
    let true_classes: Vec<Class> = rows.iter().map(|&row| labels[row]).collect();
    let predictions = learner.predict(model, rows, watch)?;
    Ok(predictions.map(|predictions| Trial::of(&predictions, &true_classes)))
}
