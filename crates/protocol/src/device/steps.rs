//! The steps of an epoch: each is taken once what it needs is known.

use std::collections::{BTreeMap, BTreeSet};

use stlf_learn::Params;
use stlf_planning::Role;

use super::{Action, Device, Epoch, Refusal, Setup, in_epoch};
use crate::divergence_protocol::Exchange;
use crate::planning::{NoPlan, PLAN, Planner};
use crate::wire::{Envelope, Message, PairReport, Report, SignedPlan};

impl Device {
    /// Step 1: what measuring begins with.
    pub(super) fn enter(
        &mut self,
        number: u64,
        members: Vec<usize>,
        forbidden: &BTreeSet<(usize, usize)>,
    ) -> Vec<Action> {
        if let Some(plan) = self.epoch.take().and_then(|epoch| epoch.plan) {
            self.last_plan = Some(plan);
        }
        let Setup { shape, divergence, .. } = &self.setup;
        let seed = self.setup.divergence_seed();
        let inputs = self.holdings.inputs.clone();
        let noise_key = self.identity.secret_key("stlf-noise/2");
        let mut exchange =
            Exchange::new(divergence, *shape, seed, noise_key, self.place, &members, inputs);
        let is_planner = Device::planner_of(&members) == Some(self.place);
        let actions = in_epoch(number, exchange.start());
        self.epoch = Some(Epoch {
            number,
            exchange,
            has_reported: false,
            has_asked_for_links: false,
            planner: is_planner.then(|| Planner::new(&members, &self.setup.divergence, forbidden)),
            plan: None,
            no_plan: None,
            offers: BTreeMap::new(),
            fetched: BTreeSet::new(),
            models: BTreeMap::new(),
            outcome: None,
            has_followed: false,
            has_begun_training: false,
            trained_on: BTreeMap::new(),
            members,
        });
        let mut actions: Vec<Action> = actions.chain(self.go_on()).collect();
        for (from, kept) in std::mem::take(&mut self.early) {
            for envelope in kept.iter().filter(|envelope| envelope.epoch == number) {
                // What is wrong with it is no fault of the epoch's.
                actions.extend(self.receive(from, envelope).unwrap_or_default());
            }
        }
        actions
    }

    /// Everything that can be done with what is known.
    pub(super) fn go_on(&mut self) -> Vec<Action> {
        let mut actions = self.report();
        actions.extend(self.make_plan());
        actions.extend(self.follow_plan());
        actions.extend(self.combine());
        actions
    }

    /// Step 3, once everything is measured (step 2): that, and what else the planner needs.
    fn report(&mut self) -> Vec<Action> {
        let place = self.place;
        let Some(epoch) = self.epoch.as_mut().filter(|epoch| !epoch.has_reported) else {
            return Vec::new();
        };
        let Some(pairs) = epoch.exchange.pairs() else { return Vec::new() };
        if self.setup.measures_links && !epoch.has_asked_for_links {
            epoch.has_asked_for_links = true;
            self.joules.clear();
            return vec![Action::MeasureLinks];
        }
        if self.setup.measures_links && self.joules.is_empty() {
            return Vec::new();
        }
        let known = self.joules.len();
        let mean = (known > 0).then(|| self.joules.values().sum::<f64>() / known as f64);
        let pairs = pairs.into_iter().map(|(peer, measured)| PairReport {
            peer: peer as u32,
            measured,
            // A device that joined later is taken to be as far as the others are on average.
            joules: self.joules.get(&peer).copied().or(mean),
        });
        let report = Report {
            labeled: self.holdings.labels.len() as u64,
            unlabeled: self.holdings.unlabeled as u64,
            source_error: self.trained.as_ref().map(|(_, error)| error.source_error),
            pairs: pairs.collect(),
        };
        epoch.has_reported = true;
        match &mut epoch.planner {
            Some(planner) => {
                // One's own report is heard like any other.
                let _ = planner.hear(place, &report);
                Vec::new()
            }
            None => {
                let to = Device::planner_of(&epoch.members).unwrap_or(place);
                vec![Action::Send(to, Envelope::new(epoch.number, Message::Report(report)))]
            }
        }
    }

    /// Step 4, at the planner, once all have reported.
    fn make_plan(&mut self) -> Vec<Action> {
        let Some(epoch) = self.epoch.as_mut() else { return Vec::new() };
        let unplanned = epoch.plan.is_none() && epoch.no_plan.is_none();
        let Some(planner) = epoch.planner.as_ref().filter(|p| unplanned && p.is_complete()) else {
            return Vec::new();
        };
        let planned =
            planner.plan(epoch.number, &self.roster, &self.setup, self.last_plan.as_ref());
        let (members, number) = (epoch.members.clone(), epoch.number);
        let plan = match planned {
            Ok(plan) => plan,
            Err(NoPlan::Without(place)) if place != self.place => {
                return vec![Action::LeaveOut(place)];
            }
            Err(why) => {
                let reason = why.to_string();
                epoch.no_plan = Some(reason.clone());
                let mut actions = self.to_others(&members, number, &Message::NoPlan(reason));
                actions.push(Action::Finish);
                return actions;
            }
        };
        let signature = self.identity.sign(PLAN, &plan.bytes());
        let message = Message::Plan(SignedPlan { plan: plan.clone(), signature });
        epoch.plan = Some(plan);
        self.to_others(&members, number, &message)
    }

    pub(super) fn hear_plan(&mut self, from: usize, signed: &SignedPlan) -> Result<(), Refusal> {
        let Some(epoch) = self.epoch.as_mut() else {
            return Err(Refusal::Unfit("a plan outside of any epoch"));
        };
        if Device::planner_of(&epoch.members) != Some(from) {
            return Err(Refusal::NotPlanner(from));
        }
        let plan = &signed.plan;
        let key = self.roster.devices.get(from).map(|member| member.key);
        if !key.is_some_and(|key| key.has_signed(PLAN, &plan.bytes(), &signed.signature)) {
            return Err(Refusal::Unsigned);
        }
        if plan.epoch != epoch.number {
            let (offered, known) = (plan.epoch, epoch.number);
            return Err(Refusal::Epoch { offered, known });
        }
        let mut listed: Vec<usize> =
            plan.sources.iter().chain(&plan.targets).map(|&p| p as usize).collect();
        listed.sort_unstable();
        if listed != epoch.members {
            return Err(Refusal::Unfit("a plan that is not of this epoch's devices"));
        }
        match &epoch.plan {
            Some(known) if known != plan => Err(Refusal::Twice(from)),
            Some(_) => Ok(()),
            None => {
                epoch.plan = Some(plan.clone());
                Ok(())
            }
        }
    }

    /// Step 5, once there is a plan: what is offered is fetched by those that need it, and sources offer what they have, or what they
    /// made of a model that was handed to them.
    fn follow_plan(&mut self) -> Vec<Action> {
        let Some(epoch) = self.epoch.as_mut() else { return Vec::new() };
        let Some(plan) = &epoch.plan else { return Vec::new() };
        let is_source = plan.role(self.place) == Some(Role::Source);
        let senders = plan.senders(self.place);
        let offered = senders.filter_map(|from| Some((from, *epoch.offers.get(&from)?)));
        let new = offered.filter(|(from, _)| epoch.fetched.insert(*from));
        let mut actions: Vec<Action> =
            new.map(|(from, offer)| Action::Fetch(from, offer)).collect();
        if is_source {
            actions.extend(self.train_on_and_offer());
        }
        actions
    }

    /// Step 6, at a target, once all models are there.
    fn combine(&mut self) -> Vec<Action> {
        let Some(epoch) = self.epoch.as_mut() else { return Vec::new() };
        let Some(plan) = epoch.plan.as_ref().filter(|_| epoch.outcome.is_none()) else {
            return Vec::new();
        };
        let links: Vec<_> = plan.incoming(self.place).collect();
        let models: Vec<(&Params, f64)> = (links.iter())
            .filter_map(|link| Some((epoch.models.get(&(link.from as usize))?, link.weight)))
            .collect();
        if links.is_empty() || models.len() < links.len() {
            return Vec::new();
        }
        epoch.outcome = self.setup.combine(&models, &self.holdings.inputs).ok();
        epoch.outcome.as_ref().map(|_| Action::Finish).into_iter().collect()
    }
}
