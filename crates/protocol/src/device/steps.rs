//! The steps of an epoch: each is taken once what it needs is known.

use std::collections::BTreeSet;
use std::sync::Arc;

use stlf_method::divergence::sketch::Sketch;
use stlf_planning::plan::Way;
use stlf_planning::witness::Claim;

use super::combining::{Combined, Combining};
use super::epoch::{Epoch, Following, Seat};
use super::phase::{AsTarget, Part, Phase};
use super::{Action, Device, Refusal, Setup};
use crate::divergence_protocol::{Exchange, Step};
use crate::job::{Job, Labour};
use crate::planning::{Grounds, NoPlan, Planned, Planner, Search};
use crate::privacy_ledger::Publication;
use crate::publication_record::{CurrentMeans, SampleNames};
use crate::published_data::PublishedData;
use crate::reply_record::ReplyRecord;
use crate::roster::Place;
use crate::wire::{
    Denial, Envelope, EpochId, Measured, Message, PairReport, Plan, Report, SignedPlan,
    SignedReport,
};

impl Device {
    /// Its part in measuring among these devices.
    pub(super) fn exchange(&self, members: &[Place]) -> Exchange {
        let Setup { shape, divergence, .. } = &self.setup;
        let seed = self.setup.divergence_seed();
        let inputs = self.holdings.inputs.clone();
        let noise_key = self.identity.secret_key("stlf-noise/3");
        Exchange::new(divergence, *shape, seed, noise_key, self.place, members, inputs)
            .publishing(self.published.clone())
            .measuring_by(self.behind.clone())
            .knowing(self.worked_out.clone())
            .replying_by(self.replying.clone())
    }

    /// Returns what it publishes with (ε, δ) in every epoch, whoever takes part; `None` without.
    pub fn publication(&self) -> Option<Publication> {
        self.exchange(&[self.place]).publication()
    }

    /// The means that it publishes with base noise alone in every epoch, whoever takes part, unless it [publishes others](Device::publish); `None` with (ε, δ), or where it
    /// publishes more. Its samples have these [names](Device::sample_names).
    pub fn means(&self, samples: &SampleNames) -> Option<CurrentMeans> {
        self.exchange(&[self.place]).means(samples)
    }

    /// Returns by what its samples are known again in its records: their inputs, or what these were before they were scaled.
    pub fn sample_names(&self, unscaled: Option<&[f64]>) -> SampleNames {
        self.exchange(&[self.place]).sample_names(unscaled, &self.sample_key())
    }

    /// From now on it publishes these means of its data, and no others.
    pub fn publish(&mut self, means: Sketch) {
        (self.published, self.behind) = (Some(Arc::new(means)), None);
    }

    /// From now on it publishes these means again, which are of data that it had before, and [replies](Device::limit_replies) by these data. If nobody knows any more
    /// what they were, it gives no new reply.
    pub fn publish_again(&mut self, means: Sketch, data: Option<PublishedData>) {
        let exchange = self.exchange(&[self.place]);
        self.behind = data.filter(|data| exchange.are_behind(data, &means)).map(Arc::new);
        self.published = Some(Arc::new(means));
        let replying = self.replying.take().map(|replying| match &self.behind {
            Some(data) => replying.about(data),
            None => replying.without_new_ones(),
        });
        self.replying = replying.map(Arc::new);
    }

    /// What is to be kept of its data, of which it publishes these means, so that it can [publish them again](Device::publish_again); `None` where it does not reply by
    /// its data. Its samples have these [names](Device::sample_names).
    pub fn data_behind(&self, means: &Sketch, samples: &SampleNames) -> Option<PublishedData> {
        self.exchange(&[self.place]).data_behind(means, samples)
    }

    /// From now on it tells divergences only as far as this record of what it has told allows; all if nobody learns of its covariance by them. Its samples have
    /// these [names](Device::sample_names).
    pub fn limit_replies(&mut self, record: ReplyRecord, samples: &SampleNames) {
        let replying = self.exchange(&[self.place]).replying(record, samples);
        self.replying = replying.map(Arc::new);
    }

    /// Returns the key by which its samples are known in its records, and nobody else can know them.
    fn sample_key(&self) -> [u8; 32] {
        self.identity.secret_key("stlf-samples/1")
    }

    /// Returns what it has told of divergences; `None` without a limit.
    pub fn told(&self) -> Option<&ReplyRecord> {
        self.replying.as_ref().map(|replying| replying.record())
    }

    /// Returns those that get no new divergence in this epoch, though their means are new: they, or all together, have asked too often.
    pub fn withheld(&self) -> impl Iterator<Item = Place> + '_ {
        self.epoch.iter().flat_map(|epoch| epoch.exchange.withheld().iter().copied())
    }

    /// Takes up what measuring has told of this device, if it is more than before; that is to be kept first.
    pub(super) fn count_replies(&mut self) -> Option<Action> {
        let told = self.epoch.as_ref().and_then(|epoch| epoch.exchange.told());
        let is_known = match (told, &self.replying) {
            (Some(told), Some(known)) => Arc::ptr_eq(told, known),
            _ => true,
        };
        if is_known {
            return None;
        }
        self.replying = told.cloned();
        Some(Action::KeepReplies)
    }

    /// Step 1: what measuring begins with.
    pub(super) fn enter(
        &mut self,
        id: EpochId,
        members: Vec<Place>,
        forbidden: &BTreeSet<(Place, Place)>,
    ) -> Vec<Action> {
        self.take_fresh_data();
        let (plan, mut remembered) = self.epoch.take().map(Epoch::end).unwrap_or_default();
        self.last_plan = plan.or(self.last_plan.take());
        remembered.retain(|place| self.is_present(place));
        let mut exchange = self.exchange(&members).remembering(remembered).signing(
            self.identity.clone(),
            id,
            self.settings,
        );
        let seat = match Device::planner_of(&members) {
            Some(planner) if planner != self.place => Seat::Reporter(planner),
            _ => Seat::Planner(Planner::new(&members, &self.setup.divergence, forbidden)),
        };
        let mut actions = in_epoch(id, exchange.start());
        self.epoch = Some(Epoch::new(id, members, seat, exchange));
        actions.extend(self.go_on());
        for (from, kept) in std::mem::take(&mut self.early) {
            let (now, later): (Vec<_>, Vec<_>) =
                kept.into_iter().partition(|envelope| envelope.epoch == id);
            let later = later.into_iter().filter(|envelope| envelope.epoch.number > id.number);
            self.early.insert(from, later.collect());
            for envelope in now {
                // What is wrong with it is no fault of the epoch's.
                match self.receive(from, &envelope) {
                    Ok(said) => actions.extend(said),
                    Err(refusal) => actions.push(Action::Refuse(from, refusal)),
                }
            }
        }
        actions
    }

    /// Everything that can be done with what is known.
    pub(super) fn go_on(&mut self) -> Vec<Action> {
        let mut actions = self.report();
        actions.extend(self.search());
        actions.extend(self.fetch());
        actions.extend(self.train_on());
        actions.extend(self.examine());
        actions.extend(self.look_for_two_faced());
        actions.extend(self.combine());
        actions
    }

    /// Step 3, once everything is measured (step 2): that, and what else the planner needs.
    fn report(&mut self) -> Vec<Action> {
        let Some(epoch) = self.epoch.as_mut() else { return Vec::new() };
        let pairs = match epoch.phase() {
            Phase::Measuring => epoch.exchange.pairs(),
            Phase::MeasuringLinks(pairs) if self.has_measured_links => Some(pairs.clone()),
            _ => None,
        };
        let Some(pairs) = pairs else { return Vec::new() };
        if self.setup.measures_links && matches!(epoch.phase(), Phase::Measuring) {
            self.joules.clear();
            self.has_measured_links = false;
            epoch.go_to(Phase::MeasuringLinks(pairs));
            return vec![Action::MeasureLinks];
        }
        let report = self.report_on(pairs);
        let (place, Some(epoch)) = (self.place, self.epoch.as_mut()) else { return Vec::new() };
        let report = SignedReport::sign(report, epoch.id, self.settings, &self.identity);
        match &mut epoch.seat {
            Seat::Planner(desk) => {
                // One's own report is heard like any other.
                let _ = desk.hear(place, &report, self.setup.unlabeled_as);
                epoch.go_to(Phase::Collecting);
                Vec::new()
            }
            Seat::Reporter(planner) => {
                let message = Envelope::new(epoch.id, Message::Report(report));
                let to = *planner;
                epoch.go_to(Phase::Reported);
                vec![Action::Send(to, message)]
            }
        }
    }

    /// Returns what the planner hears of this device.
    fn report_on(&self, pairs: Vec<(Place, Measured)>) -> Report {
        let known = self.joules.len();
        let mean = (known > 0).then(|| self.joules.values().sum::<f64>() / known as f64);
        let pairs = pairs.into_iter().map(|(peer, measured)| PairReport {
            peer,
            measured,
            // A device that joined later is taken to be as far as the others are on average.
            joules: self.joules.get(&peer).copied().or(mean),
        });
        Report {
            labeled: self.holdings.labels.len() as u64,
            unlabeled: self.holdings.unlabeled as u64,
            source_error: self.own_error().map(|error| error.source_error),
            pairs: pairs.collect(),
        }
    }

    /// Step 4, at the planner, once all have reported.
    fn search(&mut self) -> Vec<Action> {
        let Some(epoch) = self.epoch.as_mut() else { return Vec::new() };
        let (Phase::Collecting, Seat::Planner(desk)) = (epoch.phase(), &epoch.seat) else {
            return Vec::new();
        };
        if !desk.is_complete() {
            return Vec::new();
        }
        let (desk, number, last) = (desk.clone(), epoch.id.number, self.last_plan.clone());
        epoch.go_to(Phase::Searching);
        let (roster, setup) = (self.roster.clone(), self.setup.clone());
        let search = Search { epoch: number, place: self.place, desk, roster, setup, last };
        vec![Action::Compute(Job::new(number, Labour::Plan(Box::new(search))))]
    }

    /// Takes what came of the search, which all hear of.
    pub(super) fn has_planned(
        &mut self,
        planned: Result<Planned, NoPlan>,
    ) -> Result<Vec<Action>, Refusal> {
        let place = self.place;
        let searches = |epoch: &&mut Epoch| matches!(epoch.phase(), Phase::Searching);
        let Some(epoch) = self.epoch.as_mut().filter(searches) else {
            return Err(Refusal::Unfit("a plan that nobody asked for"));
        };
        match planned {
            Ok((plan, grounds)) => {
                let reports = match &epoch.seat {
                    Seat::Planner(desk) => desk.signed_reports(),
                    Seat::Reporter(_) => Vec::new(),
                };
                let signed = SignedPlan::sign(plan.clone(), reports, &self.identity);
                let mut actions = self.to_all_others(&Message::Plan(signed));
                actions.extend(self.follow(plan, grounds));
                Ok(actions)
            }
            Err(NoPlan::Without(out)) if out != place => {
                epoch.go_to(Phase::Unplannable(out));
                Ok(vec![Action::LeaveOut(out)])
            }
            Err(why) => {
                let reports = match &epoch.seat {
                    Seat::Planner(desk) => desk.signed_reports(),
                    Seat::Reporter(_) => Vec::new(),
                };
                let denial = Denial::new(why.told(&self.roster), reports);
                epoch.go_to(Phase::Unplanned(denial.reason.clone()));
                let mut actions = self.to_all_others(&Message::NoPlan(denial));
                actions.push(Action::Finish);
                Ok(actions)
            }
        }
    }

    /// Begins to follow a plan: a source to which nothing is handed over on the first way has its model for others at once, and so has a
    /// target that is a witness.
    pub(super) fn follow(&mut self, plan: Plan, grounds: Grounds) -> Vec<Action> {
        let Some(epoch) = self.epoch.as_mut() else { return Vec::new() };
        let claims = epoch.with_own_divergences(grounds.claims, &self.setup.divergence);
        let grounds = Grounds { claims, ..grounds };
        let following = Following::new(plan, grounds, self.place);
        let has_made = following.has_made(Way::First);
        let checked = match following.part {
            Part::Target(_) => following.as_witness(self.place),
            Part::Source(_) => Vec::new(),
        };
        epoch.go_to(Phase::Following(Box::new(following)));
        if has_made {
            return self.offer(Way::First);
        }
        checked.into_iter().map(|to| Action::Offer(to, Way::First)).collect()
    }

    /// Step 5, once there is a plan: what is offered is fetched by those that need it.
    fn fetch(&mut self) -> Vec<Action> {
        let new = self.epoch.as_mut().map(Epoch::take_offers).unwrap_or_default();
        new.into_iter().map(|(from, offer)| Action::Fetch(from, offer)).collect()
    }

    /// Step 6, at a target, once all models are there.
    fn combine(&mut self) -> Vec<Action> {
        let awaits =
            matches!(self.following().map(Following::part), Some(Part::Target(AsTarget::Awaits)));
        let Some(combining) = self.combining().filter(|_| awaits) else { return Vec::new() };
        let Some(epoch) = self.epoch.as_mut() else { return Vec::new() };
        let number = epoch.id.number;
        if let Some(following) = epoch.following_mut() {
            following.part = Part::Target(AsTarget::Combines);
        }
        vec![Action::Compute(Job::new(number, Labour::Combine(Box::new(combining))))]
    }

    /// The models that it has received as a target, with all that it takes to combine them, once all are there.
    fn combining(&self) -> Option<Combining> {
        let (place, epoch) = (self.place, self.epoch.as_ref()?);
        let following = epoch.following()?;
        let models = following.to_combine(place).filter(|models| !models.is_empty())?;
        let claims = models.iter().map(|(from, ..)| following.claim(*from)).collect();
        let tried = models.iter().map(|(from, ..)| epoch.tried(following.sent_to_target(*from)));
        let tried = tried.collect();
        let (others, is_stranger) = (following.others_than(&models), following.is_stranger());
        let (setup, inputs) = (self.setup.clone(), self.holdings.inputs.clone());
        let known = self.holdings.known();
        let (learner, rows) = (self.learner.clone(), self.holdings.rows());
        let (schooled, has_user_learner) = (self.schooled.clone(), self.has_user_learner);
        let own = self.trained.as_ref().map(|trained| (trained.model.clone(), self.own_claim()));
        Some(Combining {
            setup,
            place,
            inputs,
            known,
            learner,
            has_user_learner,
            rows,
            models,
            claims,
            is_stranger,
            tried,
            own,
            others,
            schooled,
        })
    }

    /// Returns what it claims of its own model on its own samples.
    fn own_claim(&self) -> Claim {
        let error = self.own_error().map_or(1.0, |error| error.source_error);
        Claim { error, samples: self.holdings.rows().len() as f64, divergence: 0.0 }
    }

    /// Takes what came of that.
    pub(super) fn has_combined(
        &mut self,
        combined: Option<Combined>,
    ) -> Result<Vec<Action>, Refusal> {
        let asked = self.combining().map(|combining| (combining.question(), combining.senders()));
        let following = self.epoch.as_mut().and_then(Epoch::following_mut);
        let (
            Some((question, received)),
            Some(Following { part: part @ Part::Target(AsTarget::Combines), .. }),
        ) = (asked, following)
        else {
            return Err(Refusal::Unfit("predictions that nobody asked for"));
        };
        let combined = combined.ok_or(Refusal::Unfit("models that cannot be combined"))?;
        let refused = combined.refused.clone();
        self.schooled = combined.schooled.clone().or(self.schooled.take());
        *part = Part::Target(AsTarget::Has(Box::new(combined)));
        let said = self.says_of_received(question, &received, &refused);
        let mut actions: Vec<Action> = self.keeps_verdicts().into_iter().collect();
        // Who has labels has tried what it got on these.
        let believed = said.believed.into_iter().filter(|_| self.trained.is_some());
        actions.extend(believed.flat_map(|from| self.tell_believed(from)));
        // The next plan does without these.
        actions.extend(said.refused.into_iter().flat_map(|from| self.model_failed(from)));
        actions.extend(self.finish());
        Ok(actions)
    }

    /// To all other devices of the epoch.
    fn to_all_others(&self, message: &Message) -> Vec<Action> {
        let epoch = self.epoch.iter();
        epoch.flat_map(|epoch| self.to_others(&epoch.members, epoch.id, message)).collect()
    }
}

/// Returns what measuring asks for, as actions.
pub(super) fn in_epoch(id: EpochId, steps: Vec<Step>) -> Vec<Action> {
    let action = |step: Step| match step {
        Step::Say(to, message) => Action::Send(to, Envelope::new(id, message)),
        Step::Compute(work) => Action::Compute(Job::new(id.number, Labour::Measure(work))),
    };
    steps.into_iter().map(action).collect()
}
