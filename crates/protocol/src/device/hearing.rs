//! What a device hears: messages, models that it asked for, and what its jobs came to.

use std::collections::BTreeSet;
use std::sync::Arc;

use stlf_learn::Params;
use stlf_planning::plan::Way;

use super::epoch::{Epoch, Seat};
use super::phase::Phase;
use super::steps::in_epoch;
use super::{Action, Device, Refusal, note_of};
use crate::checking::{Check, Objection};
use crate::job::{Computed, Job, Labour, Product};
use crate::planning::Grounds;
use crate::roster::Place;
use crate::wire::{Envelope, EpochId, Message, SignedPlan};

/// A device says so much before it needs an answer.
const MOST_EARLY: usize = 4;

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
        let mut actions = Vec::new();
        match &envelope.message {
            Message::Begin(_) => {}
            Message::Bandwidth(_)
            | Message::Moments(_)
            | Message::Sketch(_)
            | Message::Means(_)
            | Message::Unchanged(_)
            | Message::AskForMeans
            | Message::Turn(_) => {
                let steps = epoch.exchange.receive(from, &envelope.message)?;
                actions.extend(in_epoch(id, steps));
            }
            Message::PassedOn(of, means) => {
                if Device::planner_of(&epoch.members) != Some(from) {
                    return Err(Refusal::NotPlanner(from));
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
            Message::NoPlan(reason) => return self.hear_no_plan(from, reason),
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
            return Err(Refusal::Unsigned);
        }
        if plan.epoch != epoch.id.number {
            let (offered, known) = (plan.epoch, epoch.id.number);
            return Err(Refusal::Epoch { offered, known });
        }
        let mut listed: Vec<Place> = plan.sources.iter().chain(&plan.targets).copied().collect();
        listed.sort_unstable();
        if listed != epoch.members {
            return Err(Refusal::Unfit("a plan that is not of this epoch's devices"));
        }
        match epoch.phase() {
            Phase::Following(following) if following.plan() == plan => Ok(Vec::new()),
            Phase::Following(_) | Phase::Unplanned(_) => Err(Refusal::Twice(from)),
            _ => match &epoch.plan_heard {
                Some(known) if **known == *signed => Ok(Vec::new()),
                Some(_) => Err(Refusal::Twice(from)),
                None => {
                    epoch.plan_heard = Some(Box::new(signed.clone()));
                    let check = Check {
                        planner: from,
                        place: self.place,
                        epoch: epoch.id,
                        members: epoch.members.clone(),
                        signed: signed.clone(),
                        roster: self.roster.clone(),
                        setup: self.setup.clone(),
                        settings: self.settings,
                    };
                    let labour = Labour::Check(Box::new(check));
                    Ok(vec![Action::Compute(Job::new(epoch.id.number, labour))])
                }
            },
        }
    }

    /// Follows the plan that was heard, if it follows from its reports.
    fn has_checked(&mut self, checked: Result<Grounds, Objection>) -> Result<Vec<Action>, Refusal> {
        let grounds = checked?;
        let heard = self.epoch.as_ref().and_then(|epoch| epoch.plan_heard.as_ref());
        let waits =
            |epoch: &Epoch| !matches!(epoch.phase(), Phase::Following(_) | Phase::Unplanned(_));
        match heard.filter(|_| self.epoch.as_ref().is_some_and(waits)) {
            Some(signed) => {
                let plan = signed.plan.clone();
                Ok(self.follow(plan, grounds))
            }
            None => Err(Refusal::Unfit("a plan that nobody waits for")),
        }
    }

    fn hear_no_plan(&mut self, from: Place, reason: &str) -> Result<Vec<Action>, Refusal> {
        let Some(epoch) = self.epoch.as_mut() else { return Ok(Vec::new()) };
        if Device::planner_of(&epoch.members) != Some(from) {
            return Err(Refusal::NotPlanner(from));
        }
        match epoch.phase() {
            Phase::Unplanned(known) if known == reason => {}
            Phase::Following(_) | Phase::Unplanned(_) => return Err(Refusal::Twice(from)),
            _ => epoch.go_to(Phase::Unplanned(reason.to_owned())),
        }
        Ok(vec![Action::Finish])
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
