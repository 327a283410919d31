//! What a device answers to models that others chose: only as often as its record of that allows ([`crate::verdict_record`]).

use stlf_method::expectation::Trial;

use super::{Action, Device};
use crate::publication_record::SampleNames;
use crate::roster::Place;
use crate::verdict_record::{Judging, May, Question, Tried, VerdictRecord};
use crate::wire::Leg;

/// What a target says of the models that it got, of each that it says anything of.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) believed: Vec<Place>,
    pub(super) refused: Vec<Place>,
}

impl Device {
    /// From now on it judges models of others only as far as this record of what it has answered allows. Its samples have these [names](Device::sample_names).
    pub fn limit_verdicts(&mut self, record: VerdictRecord, samples: &SampleNames) {
        self.judging = Some(Judging::new(record, samples.all.clone()));
    }

    /// Returns what it has answered to models of others; `None` without a limit.
    pub fn judged(&self) -> Option<&VerdictRecord> {
        self.judging.as_ref().map(Judging::record)
    }

    /// Returns what it does about a model of the device at a place.
    pub(super) fn may_judge(&self, from: Place, question: &Question) -> May {
        self.judging.as_ref().map_or(May::Try, |judging| judging.may(from, question))
    }

    /// Counts what it has found of a model, if that was not said before.
    pub(super) fn has_judged(&mut self, from: Place, question: Question, refused: bool) {
        let is_new = self.may_judge(from, &question) == May::Try;
        if let Some(judging) = self.judging.as_mut().filter(|_| is_new) {
            judging.judged(from, question, refused);
        }
    }

    /// What was counted is to be kept before anything is said.
    pub(super) fn keeps_verdicts(&mut self) -> Option<Action> {
        self.judging.as_mut().is_some_and(Judging::take_new).then_some(Action::KeepVerdicts)
    }

    /// Returns what it tells of how a model, of which this is a hash, did as it was handed over, and of what it made of it.
    pub(super) fn tells_of(
        &mut self,
        leg: &Leg,
        handed: [u8; 32],
        trials: [Option<Trial>; 2],
    ) -> [Option<Trial>; 2] {
        let Some(judging) = self.judging.as_mut() else { return trials };
        let mut told = |what: Tried, trial: Option<Trial>| {
            judging.tells(leg.from, (leg.taken, what), handed, trial?)
        };
        let [as_handed, as_sent] = trials;
        [told(Tried::AsHanded, as_handed), told(Tried::AsSent, as_sent)]
    }

    /// As a target, what it says of each of these models that it asked itself about at once, of which it refuses some.
    pub(super) fn says_of_received(
        &mut self,
        question: Question,
        received: &[Place],
        refused: &[Place],
    ) -> Said {
        let mut said = Said::default();
        for &from in received {
            let is_refused = match self.may_judge(from, &question) {
                May::Try => {
                    let is_refused = refused.contains(&from);
                    self.has_judged(from, question, is_refused);
                    is_refused
                }
                May::Repeat { refused } => refused,
                May::Refuse => true,
                May::Abstain => continue,
            };
            if is_refused { said.refused.push(from) } else { said.believed.push(from) }
        }
        said
    }
}
