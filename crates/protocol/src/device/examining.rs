//! Models of sources that this device tries on its labels for targets that get the same, and may have no labels ([`stlf_planning::examiner`]).
//!
//! Who has tried a model as targets get it, and believes it, tells them what it was offered. So a source cannot have a good model tried and send
//! another one.

use std::sync::Arc;

use stlf_method::handed::{Purpose, Standard, Verdict};
use stlf_planning::Error;
use stlf_planning::plan::Way;

use super::epoch::{Epoch, Following};
use super::trying::Trying;
use super::{Action, Device, Refusal};
use crate::job::{Job, Labour, Watch};
use crate::roster::Place;
use crate::verdict_record::May;
use crate::wire::{Envelope, Message, Offer, SignedOffer};

/// How far an examiner is with the model of one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Examined {
    /// The model has not come yet.
    Awaits,
    /// It is tried.
    Tries,
    /// It was, and the labels contradict it or do not.
    Is(bool),
}

/// A model to try, with all that this takes.
#[derive(Debug)]
pub(crate) struct Examining {
    pub(crate) from: Place,
    trying: Trying,
}

impl Examining {
    /// Returns whether the device believes the model; `None` if `watch` ended it.
    ///
    /// # Errors
    /// The learner cannot use this model.
    pub(crate) fn run(self, watch: &mut Watch<'_>) -> Result<Option<Verdict>, Error> {
        self.trying.verdict(watch)
    }
}

impl Device {
    /// An examiner's part of step 5: it tries the models that have come.
    pub(super) fn examine(&mut self) -> Vec<Action> {
        let Some(epoch) = self.epoch.as_mut() else { return Vec::new() };
        let number = epoch.id.number;
        let came = epoch.following_mut().map(Following::take_examined).unwrap_or_default();
        let mut actions = Vec::new();
        for from in came {
            let Some(trying) = self.trying_sent(from) else { continue };
            actions.extend(match self.may_judge(from, &trying.question()) {
                May::Try => {
                    let labour = Labour::Examine(Box::new(Examining { from, trying }));
                    vec![Action::Compute(Job::new(number, labour))]
                }
                May::Repeat { refused: false } => self.examined(from, false),
                May::Repeat { refused: true } | May::Refuse => {
                    [Action::Distrust(from)].into_iter().chain(self.examined(from, true)).collect()
                }
                May::Abstain => {
                    self.set_examined(from, false);
                    self.finish().into_iter().collect()
                }
            });
        }
        actions
    }

    /// A source's model as its targets get it, with what this device holds it against. One that was trained here on its way is held against this
    /// device's own.
    fn trying_sent(&self, from: Place) -> Option<Trying> {
        let following = self.following()?;
        let handed = following.models.get(&following.examined_model(from))?.clone();
        let mut route = following.plan.route(from);
        let before = route.len();
        route.retain(|place| *place != self.place);
        let way = if route.len() < before { Way::Second } else { Way::First };
        let claims = route.into_iter().map(|place| following.claim(place)).collect();
        let standard = Standard { claims, purpose: Purpose::Examining, way };
        let own = self.own_sent();
        Some(Trying {
            labels: self.holdings.labels.clone(),
            handed,
            standard,
            own,
            learner: Arc::clone(&self.learner),
        })
    }

    /// Takes what came of trying a source's model for its targets.
    ///
    /// # Errors
    /// It was not asked for, or is no model.
    pub(super) fn has_examined(
        &mut self,
        from: Place,
        verdict: Option<Verdict>,
    ) -> Result<Vec<Action>, Refusal> {
        let state = self.following().and_then(|following| following.examined.get(&from));
        let tries = state == Some(&Examined::Tries);
        let Some(trying) = self.trying_sent(from).filter(|_| tries) else {
            return Err(Refusal::Unfit("a trial that nobody asked for"));
        };
        let verdict = verdict.ok_or(Refusal::Unfit("a model that cannot be tried"))?;
        let is_refused = verdict == Verdict::Refused;
        self.has_judged(from, trying.question(), is_refused);
        let kept = self.keeps_verdicts().into_iter();
        Ok(kept.chain(self.examined(from, is_refused)).collect())
    }

    /// Returns what it says of a model that its labels contradict, or do not.
    fn examined(&mut self, from: Place, is_refused: bool) -> Vec<Action> {
        self.set_examined(from, is_refused);
        // The next plan knows that the two are in dispute.
        let mut actions =
            if is_refused { self.model_failed(from) } else { self.tell_believed(from) };
        actions.extend(self.finish());
        actions
    }

    fn set_examined(&mut self, from: Place, is_refused: bool) {
        let following = self.epoch.as_mut().and_then(Epoch::following_mut);
        if let Some(state) = following.and_then(|following| following.examined.get_mut(&from)) {
            *state = Examined::Is(is_refused);
        }
    }

    /// Says to the targets of a source, whose model this device has tried as they get it and believes, what it was offered.
    pub(super) fn tell_believed(&self, from: Place) -> Vec<Action> {
        let Some(epoch) = &self.epoch else { return Vec::new() };
        let Some(following) = epoch.following() else { return Vec::new() };
        let offered = epoch.offers.get(&following.examined_model(from));
        let Some((signed, _)) = offered else { return Vec::new() };
        let envelope = Envelope::new(epoch.id, Message::Believed(from, signed.clone()));
        let links = following.plan.links.iter();
        let others = links.filter(|link| link.from == from && link.to != self.place);
        others.map(|link| Action::Send(link.to, envelope.clone())).collect()
    }

    /// Does without the model of a source that offered it another one than those who have tried theirs.
    pub(super) fn look_for_two_faced(&mut self) -> Vec<Action> {
        let found = self.epoch.as_mut().map(Epoch::take_two_faced).unwrap_or_default();
        let told =
            |from: Place| [Action::Distrust(from)].into_iter().chain(self.model_failed(from));
        found.into_iter().flat_map(told).collect()
    }

    /// An offer of this device's, signed.
    pub fn sign_offer(&self, offer: Offer) -> SignedOffer {
        SignedOffer::sign(offer, self.epoch_id().unwrap_or_default(), &self.identity)
    }

    /// Returns whether this device's labels contradict the model of a source that it tried for others.
    pub fn refuses_as_examiner(&self, from: Place) -> bool {
        let state = self.following().and_then(|following| following.examined.get(&from));
        state == Some(&Examined::Is(true))
    }

    /// Says that its part of the epoch is over, once it is.
    pub(super) fn finish(&self) -> Option<Action> {
        self.is_done().then_some(Action::Finish)
    }
}
