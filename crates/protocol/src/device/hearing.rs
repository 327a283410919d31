//! What a device hears: messages, models that it asked for, and what its jobs came to.

use std::collections::BTreeSet;
use std::sync::Arc;

use stlf_learn::Params;
use stlf_planning::plan::Way;

use super::epoch::{Epoch, Seat};
use super::phase::Phase;
use super::steps::in_epoch;
use super::{Action, Device, Refusal, note_of};
use crate::checking::{Answer, Check, Checked, Objection};
use crate::identity::PeerId;
use crate::job::{Computed, Job, Labour, Product};
use crate::roster::Place;
use crate::shared::Fingerprint;
use crate::wire::{Envelope, EpochId, Message, SignedPlan};

/// A device says so much before it needs an answer.
const MOST_EARLY: usize = 4;

/// That a device signs the means of which it tells the planner, who could not pass them on otherwise.
fn is_signed(
    from: Place,
    key: Option<PeerId>,
    message: &Message,
    epoch: EpochId,
    settings: Fingerprint,
) -> Result<(), Refusal> {
    let (digest, signature) = match message {
        Message::Means(means, signature) => (means.digest(), signature),
        Message::Unchanged(digest, signature) => (*digest, signature),
        _ => return Ok(()),
    };
    let is_of = |key| signature.as_ref().is_some_and(|s| s.is_of(key, digest, epoch, settings));
    match key.is_some_and(is_of) {
        true => Ok(()),
        false => Err(Refusal::UnsignedMeans(from)),
    }
}

impl Device {
    /// Takes a message from the device at a place, whose key the connection has proven.
    ///
    /// # Errors
    /// Says why it is not heeded. Nothing has changed then.
    pub fn receive(&mut self, from: Place, envelope: &Envelope) -> Result<Vec<Action>, Refusal> {
        if let Message::Begin(members) = &envelope.message {
            return self.hear_begin(from, envelope.epoch, members);
        }
        let (id, known) = (envelope.epoch, self.epoch().unwrap_or(0));
        if id.number > known {
            return self.keep_for_later(from, envelope);
        }
        let Some(epoch) = self.epoch.as_mut().filter(|e| e.id == id) else {
            return Err(Refusal::Epoch { offered: id.number, known });
        };
        if !epoch.members.contains(&from) {
            return Err(Refusal::Stranger(from));
        }
        if matches!(epoch.seat, Seat::Planner(_)) {
            let key = self.roster.at(from).map(|member| member.key);
            is_signed(from, key, &envelope.message, id, self.settings)?;
        }
        let mut actions = Vec::new();
        match &envelope.message {
            Message::Begin(_) => {}
            Message::Bandwidth(_)
            | Message::Moments(_)
            | Message::Sketch(_)
            | Message::Means(..)
            | Message::Unchanged(..)
            | Message::AskForMeans
            | Message::Turn(_) => {
                let steps = epoch.exchange.receive(from, &envelope.message)?;
                actions.extend(in_epoch(id, steps));
            }
            Message::PassedOn(of, means, signature) => {
                if Device::planner_of(&epoch.members) != Some(from) {
                    return Err(Refusal::NotPlanner(from));
                }
                let key = self.roster.at(*of).map(|member| member.key);
                let is_of = |key| signature.is_of(key, means.digest(), id, self.settings);
                if !key.is_some_and(is_of) {
                    return Err(Objection::Invented(*of).into());
                }
                actions.extend(in_epoch(id, epoch.exchange.hear_passed_on(*of, means)?));
            }
            Message::Report(report) => {
                let Seat::Planner(desk) = &mut epoch.seat else {
                    return Err(Refusal::Unfit("a report for somebody else"));
                };
                let key = self.roster.at(from).map(|member| member.key);
                if !key.is_some_and(|key| report.is_of(key, id, self.settings)) {
                    return Err(Refusal::UnsignedReport(from));
                }
                desk.hear(from, report, self.setup.unlabeled_as)?;
            }
            Message::Plan(signed) => actions.extend(self.hear_plan(from, signed)?),
            Message::NoPlan(denial) => {
                return self.hear_answer(from, Answer::NoPlan(denial.clone()));
            }
            Message::Offer(signed, tried) => {
                let offer = signed.offer;
                let key = self.roster.at(from).map(|member| member.key);
                if !key.is_some_and(|key| signed.is_of(key, id)) {
                    return Err(Refusal::UnsignedOffer(from));
                }
                if offer.bytes > self.learner.layout().most_bytes() {
                    return Err(Refusal::Unfit("a model larger than the network"));
                }
                let takes_part = |at: &usize| epoch.members.iter().any(|m| m.index() == *at);
                if !tried.on_route.keys().all(takes_part) {
                    return Err(Refusal::Unfit("a trial at a device that does not take part"));
                }
                let said = (signed.clone(), tried.clone());
                note_of(&mut epoch.offers, from, (from, offer.way), said)?;
            }
            Message::Believed(source, signed) => {
                let key = self.roster.at(*source).map(|member| member.key);
                if !key.is_some_and(|key| signed.is_of(key, id)) {
                    return Err(Refusal::UnsignedOffer(*source));
                }
                let offers = epoch.believed.entry((*source, signed.offer.way)).or_default();
                // Two are enough to know that one is another than one's own.
                if offers.len() < 2 {
                    offers.insert(signed.offer);
                }
            }
            Message::Failed(source) => {
                let plan = epoch.plan().filter(|_| matches!(epoch.seat, Seat::Planner(_)));
                if !plan.is_some_and(|plan| plan.senders(from).any(|sender| sender == *source)) {
                    return Err(Refusal::Unfit("a failure of a link that is not used"));
                }
                return Ok(vec![Action::Forbid(*source, from)]);
            }
            Message::TrainedOn(percent) => {
                let known = epoch.trained_on.entry(from).or_default();
                *known = (*known).max(*percent);
            }
            Message::Arrived(percent) => {
                let known = epoch.arrived.entry(from).or_default();
                *known = (*known).max(*percent);
            }
            Message::Done
            | Message::Complete
            | Message::Missing(_)
            | Message::Hello(_)
            | Message::Known
            | Message::Probe(_)
            | Message::TakesPart(_)
            | Message::Renewed
            | Message::Roster(_) => {
                return Err(Refusal::Unfit("not a message of an epoch's work"));
            }
        }
        actions.extend(self.go_on());
        Ok(actions)
    }

    /// Takes a model that was asked for, as it was offered: whose it is, and the way that it has been on.
    ///
    /// # Errors
    /// It was not asked for, or is not a model of this learner.
    pub fn receive_model(
        &mut self,
        from: Place,
        way: Way,
        params: Params,
    ) -> Result<Vec<Action>, Refusal> {
        if !self.following().is_some_and(|following| following.needs((from, way))) {
            return Err(Refusal::Unfit("a model that nobody asked for"));
        }
        self.check_model(&params)?;
        if let Some(following) = self.epoch.as_mut().and_then(Epoch::following_mut) {
            note_of(&mut following.models, from, (from, way), Arc::new(params))?;
        }
        Ok(self.go_on())
    }

    /// Takes what a [job](Action::Compute) came to. What is of another epoch is of no use any more.
    ///
    /// # Errors
    /// It is not what this device waits for, or led to nothing.
    pub fn computed(&mut self, computed: Computed) -> Result<Vec<Action>, Refusal> {
        let of_this = |epoch: &&mut Epoch| epoch.id.number == computed.epoch;
        let Some(epoch) = self.epoch.as_mut().filter(of_this) else { return Ok(Vec::new()) };
        let mut actions = match computed.product {
            Product::Measured(finding) => {
                let steps = in_epoch(epoch.id, epoch.exchange.computed(finding)?);
                self.count_replies().into_iter().chain(steps).collect()
            }
            Product::Planned(planned) => self.has_planned(planned)?,
            Product::Checked(checked) => self.has_checked(checked)?,
            Product::TrainedOn(trained) => self.has_trained_on(trained)?,
            Product::Examined(from, verdict) => self.has_examined(from, verdict)?,
            Product::Combined(combined) => self.has_combined(combined)?,
        };
        actions.extend(self.go_on());
        Ok(actions)
    }

    fn hear_plan(&mut self, from: Place, signed: &SignedPlan) -> Result<Vec<Action>, Refusal> {
        let Some(epoch) = self.epoch.as_mut() else {
            return Err(Refusal::Unfit("a plan outside of any epoch"));
        };
        if Device::planner_of(&epoch.members) != Some(from) {
            return Err(Refusal::NotPlanner(from));
        }
        let plan = &signed.plan;
        let key = self.roster.at(from).map(|member| member.key);
        if !key.is_some_and(|key| signed.is_of(key)) {
            return Err(Objection::Unsigned.into());
        }
        if plan.epoch != epoch.id.number {
            return Err(Objection::Elsewhere.into());
        }
        let mut listed: Vec<Place> = plan.sources.iter().chain(&plan.targets).copied().collect();
        listed.sort_unstable();
        if listed != epoch.members {
            return Err(Objection::Unfounded("it is not of this epoch's devices").into());
        }
        self.hear_answer(from, Answer::Plan(signed.clone()))
    }

    /// Takes what the planner has come to, once: it is heeded when it is checked.
    fn hear_answer(&mut self, from: Place, answer: Answer) -> Result<Vec<Action>, Refusal> {
        let Some(epoch) = self.epoch.as_mut() else { return Ok(Vec::new()) };
        if Device::planner_of(&epoch.members) != Some(from) {
            return Err(Refusal::NotPlanner(from));
        }
        match &epoch.answer {
            Some(known) if **known == answer => return Ok(Vec::new()),
            Some(_) => return Err(Refusal::Twice(from)),
            None => epoch.answer = Some(Box::new(answer.clone())),
        }
        let check = Check {
            planner: from,
            place: self.place,
            epoch: epoch.id,
            members: epoch.members.clone(),
            answer,
            roster: self.roster.clone(),
            setup: self.setup.clone(),
            settings: self.settings,
            complained_of: self.complained_of.clone(),
        };
        let labour = Labour::Check(Box::new(check));
        Ok(vec![Action::Compute(Job::new(epoch.id.number, labour))])
    }

    /// Follows the plan that was heard, or ends without one, if that follows from the reports.
    fn has_checked(&mut self, checked: Result<Checked, Objection>) -> Result<Vec<Action>, Refusal> {
        let checked = checked?;
        let waits = |epoch: &&mut Epoch| {
            !matches!(epoch.phase(), Phase::Following(_) | Phase::Unplanned(_))
        };
        let epoch = self.epoch.as_mut().filter(waits);
        let nobody_waits = Refusal::Unfit("a plan that nobody waits for");
        let epoch = epoch.ok_or(nobody_waits.clone())?;
        match (epoch.answer.as_deref(), checked) {
            (Some(Answer::Plan(signed)), Checked::Plan(grounds)) => {
                let plan = signed.plan.clone();
                Ok(self.follow(plan, grounds))
            }
            (Some(Answer::NoPlan(_)), Checked::NoPlan(reason)) => {
                epoch.go_to(Phase::Unplanned(reason));
                Ok(vec![Action::Finish])
            }
            _ => Err(nobody_waits),
        }
    }

    /// Others may have heard of an epoch before this device has.
    fn keep_for_later(&mut self, from: Place, envelope: &Envelope) -> Result<Vec<Action>, Refusal> {
        if !self.is_present(from) {
            return Err(Refusal::Stranger(from));
        }
        let kept = self.early.entry(from).or_default();
        // Messages overtake each other. What the sender says of its latest epoch counts, also if an older one's comes after it.
        if kept.iter().any(|other| other.epoch.number > envelope.epoch.number) {
            return Ok(Vec::new());
        }
        kept.retain(|other| other.epoch == envelope.epoch);
        if kept.contains(envelope) {
            return Ok(Vec::new());
        }
        if kept.len() == MOST_EARLY {
            return Err(Refusal::Unfit("too much before the epoch began"));
        }
        kept.push(envelope.clone());
        Ok(Vec::new())
    }

    pub(super) fn is_present(&self, place: Place) -> bool {
        self.roster.at(place).is_some_and(|member| member.present)
    }

    fn hear_begin(
        &mut self,
        from: Place,
        id: EpochId,
        members: &[Place],
    ) -> Result<Vec<Action>, Refusal> {
        let (number, known) = (id.number, self.epoch().unwrap_or(0));
        // It is said again on a new connection.
        if self.epoch.as_ref().is_some_and(|e| e.id == id && e.members == members) {
            return Ok(Vec::new());
        }
        if number <= known {
            return Err(Refusal::Epoch { offered: number, known });
        }
        if Device::planner_of(members) != Some(from) {
            return Err(Refusal::NotPlanner(from));
        }
        let all_present = members.iter().all(|&m| self.is_present(m));
        if !members.contains(&self.place) || !all_present {
            return Err(Refusal::Unfit("an epoch with strangers, or without this device"));
        }
        Ok(self.enter(id, members.to_vec(), &BTreeSet::new()))
    }
}
