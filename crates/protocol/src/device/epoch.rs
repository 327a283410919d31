//! What a device knows of an epoch, and how far it is with the plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use stlf_learn::Params;
use stlf_method::divergence::Settings;
use stlf_method::expectation::Tried;
use stlf_planning::plan::{Terms, Way};
use stlf_planning::witness::Claim;
use stlf_planning::{Problem, Role};

use super::examining::Examined;
use super::phase::{AsSource, AsTarget, Part, Phase};
use crate::checking::Answer;
use crate::divergence_protocol::{Exchange, Remembered, divergence};
use crate::planning::{Claims, Grounds, Planner};
use crate::roster::Place;
use crate::wire::{EpochId, Leg, Offer, Plan, SignedOffer};

/// The percent of a whole training on a model. On the second way they are counted on from here.
pub(super) const WHOLE: u8 = 100;

/// An epoch at one device. What others may say at any time, again or before it is needed, stands beside the phase.
#[derive(Debug)]
pub(super) struct Epoch {
    pub(super) id: EpochId,
    /// Ascending.
    pub(super) members: Vec<Place>,
    pub(super) seat: Seat,
    pub(super) exchange: Exchange,
    /// The models that are offered, with the trials that go along with them.
    pub(super) offers: BTreeMap<Sent, (SignedOffer, Tried)>,
    /// What those were offered who have tried a model of a source and believe it.
    pub(super) believed: BTreeMap<Sent, BTreeSet<Offer>>,
    /// How many percent those have done that train on a model, above 100 those of the second way, that train a student, or that predict.
    pub(super) trained_on: BTreeMap<Place, u8>,
    /// How many percent of the models that are sent to others have come to each of them.
    pub(super) arrived: BTreeMap<Place, u8>,
    /// What the planner has come to, as it says.
    pub(super) answer: Option<Box<Answer>>,
    phase: Phase,
}

/// What a device is to the others in an epoch.
#[derive(Debug)]
pub(super) enum Seat {
    /// It plans, and hears what the others report.
    Planner(Planner),
    /// It reports to the planner at this place.
    Reporter(Place),
}

/// A model as a source sends it: whose it is, and the way that it has been on there.
pub(super) type Sent = (Place, Way);

/// A plan, and how far a device is with it.
#[derive(Debug)]
pub struct Following {
    pub(super) plan: Plan,
    /// What is known of it from the reports that it follows from.
    grounds: Grounds,
    /// The models that are sent over the plan's hand-overs.
    legs: Vec<Leg>,
    /// The models that the device needs.
    needed: BTreeSet<Sent>,
    /// Those of them that were asked for.
    fetched: BTreeSet<Sent>,
    /// Those of them that have come.
    pub(super) models: BTreeMap<Sent, Arc<Params>>,
    /// The ways on which a source does not believe the model that was handed to it.
    pub(super) refused: BTreeSet<Way>,
    /// The sources whose models the device tries for targets, and how far it is with each.
    pub(super) examined: BTreeMap<Place, Examined>,
    /// The sources that offered others another model than this device.
    pub(super) two_faced: BTreeSet<Place>,
    pub(super) part: Part,
}

impl Following {
    /// Returns what the device at a place begins with under a plan.
    pub(super) fn new(plan: Plan, grounds: Grounds, place: Place) -> Following {
        let legs = plan.legs();
        let needed = plan.incoming(place).map(|link| (link.from, plan.way_to_targets(link.from)));
        let witness = |from: Place| (from, plan.way_of_witness(from));
        let needed = needed.chain(plan.witnesses_of(place).map(witness));
        let handed = legs.iter().filter(|leg| leg.to == place);
        let needed = needed.chain(handed.clone().map(|leg| (leg.from, leg.sent)));
        let examined: BTreeMap<Place, Examined> =
            plan.examined_by(place).map(|from| (from, Examined::Awaits)).collect();
        let to_try = examined.keys().map(|&from| (from, plan.way_to_targets(from)));
        let needed = needed.chain(to_try).collect();
        let part = match plan.role(place) {
            Some(Role::Source) => Part::Source(match handed.min_by_key(|leg| leg.taken) {
                Some(&first) => AsSource::Awaits(first),
                None => AsSource::Offers,
            }),
            Some(Role::Target) | None => Part::Target(AsTarget::Awaits),
        };
        let (fetched, models, refused) = (BTreeSet::new(), BTreeMap::new(), BTreeSet::new());
        let two_faced = BTreeSet::new();
        Following {
            plan,
            grounds,
            legs,
            needed,
            fetched,
            models,
            refused,
            examined,
            two_faced,
            part,
        }
    }

    /// The model that is handed to the device at a place on this way, if any.
    pub(super) fn leg(&self, to: Place, way: Way) -> Option<Leg> {
        self.legs.iter().copied().find(|leg| (leg.to, leg.taken) == (to, way))
    }

    /// Returns who needs the model of the device at a place as it is after this way.
    pub(super) fn receivers(&self, from: Place, way: Way) -> Vec<Place> {
        let handed = self.legs.iter().filter(|leg| (leg.from, leg.sent) == (from, way));
        let sends = way == self.plan.way_to_targets(from);
        let links = self.plan.links.iter().filter(|link| sends && link.from == from);
        let tried = self.plan.examinations.iter().filter(|one| sends && one.from == from);
        let links = links.map(|link| link.to).chain(tried.map(|one| one.to));
        let checked =
            self.as_witness(from).into_iter().filter(|_| way == self.plan.way_of_witness(from));
        links.chain(checked).chain(handed.map(|leg| leg.to)).collect()
    }

    /// The targets that get a device's model to check others against.
    pub(super) fn as_witness(&self, from: Place) -> Vec<Place> {
        self.plan.witnesses.iter().filter(|w| w.from == from).map(|w| w.to).collect()
    }

    /// Returns whether a source has made its model of this way, if the plan has it make one.
    pub(super) fn has_made(&self, way: Way) -> bool {
        match self.part {
            Part::Source(source) => source.way().is_none_or(|next| way < next),
            Part::Target(_) => false,
        }
    }

    /// Returns whether a source does not believe the model that was handed to it on this way.
    pub(super) fn refuses(&self, way: Way) -> bool {
        self.refused.contains(&way)
    }

    /// The model of a source that the device tries for its targets.
    pub(super) fn examined_model(&self, from: Place) -> Sent {
        (from, self.plan.way_to_targets(from))
    }

    /// Takes up those of these models that have come, each once.
    pub(super) fn take_examined(&mut self) -> Vec<Place> {
        let has_come = |from: &Place| self.models.contains_key(&self.examined_model(*from));
        let awaited = self.examined.iter().filter(|(_, state)| **state == Examined::Awaits);
        let came: Vec<Place> = awaited.map(|(&from, _)| from).filter(has_come).collect();
        self.examined.extend(came.iter().map(|&from| (from, Examined::Tries)));
        came
    }

    /// Returns whether it has tried all of them.
    pub(super) fn has_examined_all(&self) -> bool {
        self.examined.values().all(|state| matches!(state, Examined::Is(_)))
    }

    /// Returns those of these sources whose models its labels contradict.
    pub(super) fn refused_as_examiner(&self) -> impl Iterator<Item = Place> + '_ {
        let refused = self.examined.iter().filter(|(_, state)| **state == Examined::Is(true));
        refused.map(|(&from, _)| from)
    }

    /// Returns whether the device needs this model.
    pub(super) fn needs(&self, sent: Sent) -> bool {
        self.needed.contains(&sent)
    }

    /// The model of a source, or of a witness, as a target gets it.
    pub(super) fn sent_to_target(&self, from: Place) -> Sent {
        (from, self.plan.way_of_witness(from))
    }

    /// The models that a target combines, with who sent each and its weight, which is 0 of a witness, once all of them are there.
    pub(super) fn to_combine(&self, target: Place) -> Option<Vec<(Place, Arc<Params>, f64)>> {
        let links = self.plan.incoming(target);
        let links = links.map(|link| (link.from, self.plan.way_to_targets(link.from), link.weight));
        let witnesses = self.plan.witnesses_of(target);
        let witnesses = witnesses.map(|from| (from, self.plan.way_of_witness(from), 0.0));
        let model =
            |(from, way, weight)| Some((from, self.models.get(&(from, way))?.clone(), weight));
        links.chain(witnesses).map(model).collect()
    }

    /// Returns what the plan costs, term by term, where that is known.
    pub(super) fn terms(&self) -> Option<Terms> {
        self.grounds.terms
    }

    /// The problem that the plan solves, where that is known.
    pub(super) fn problem(&self) -> Option<&Problem> {
        self.grounds.problem.as_deref()
    }

    /// Returns what a source claims of its model here.
    pub(super) fn claim(&self, from: Place) -> Claim {
        self.grounds.claims.get(&from).copied().unwrap_or(Claim::NOTHING)
    }

    /// Returns whether no source of the plan is near this device.
    pub(super) fn is_stranger(&self) -> bool {
        self.plan.sources.iter().all(|source| self.claim(*source).is_far())
    }

    /// Returns what those sources claim here that a model has been at when it comes over a leg.
    pub(super) fn claims_before(&self, leg: &Leg) -> Vec<Claim> {
        self.plan.been_at(leg).into_iter().map(|place| self.claim(place)).collect()
    }

    /// Returns how many devices claim something of their models here, besides those that sent these.
    pub(super) fn others_than(&self, sent: &[(Place, Arc<Params>, f64)]) -> usize {
        let has_sent = |place: &Place| sent.iter().any(|(from, ..)| from == place);
        self.grounds.claims.keys().filter(|place| !has_sent(place)).count()
    }

    /// Returns whom the device waits for: a source for one at a time.
    fn missing(&self) -> Vec<Place> {
        let is_missing = |sent: &Sent| !self.models.contains_key(sent);
        match &self.part {
            Part::Source(AsSource::Awaits(leg)) => Some((leg.from, leg.sent))
                .filter(is_missing)
                .map(|(from, _)| from)
                .into_iter()
                .collect(),
            Part::Source(AsSource::TrainsOn(_)) => Vec::new(),
            Part::Source(AsSource::Offers) => {
                let awaited = self.examined.keys().copied();
                awaited.filter(|from| is_missing(&self.examined_model(*from))).collect()
            }
            Part::Target(_) => {
                self.needed.iter().filter(|sent| is_missing(sent)).map(|(from, _)| *from).collect()
            }
        }
    }

    /// Returns how many percent of the models that are sent to devices have come to them, all added up, as far as they say so. Those to which none is sent have nothing to say.
    fn arrived(&self, arrived: &BTreeMap<Place, u8>) -> usize {
        let told = arrived.iter().filter(|(place, _)| self.plan.senders(**place).next().is_some());
        told.map(|(_, &percent)| usize::from(percent)).sum()
    }

    /// Returns how much of this plan was carried out, as far as it was heard: models that came, and percents of training on, of students and of predictions.
    fn known(&self, trained_on: &BTreeMap<Place, u8>, targets_tell: bool) -> usize {
        let percent = |leg: &Leg| {
            let told = trained_on.get(&leg.to).copied().unwrap_or_default();
            told.saturating_sub(WHOLE * leg.taken as u8).min(WHOLE)
        };
        let targets = self.plan.targets.iter().filter(|_| targets_tell);
        let combined = targets.filter_map(|target| trained_on.get(target));
        let of_targets = combined.map(|&percent| usize::from(percent.min(WHOLE))).sum::<usize>();
        let of_legs = self.legs.iter().map(|leg| usize::from(percent(leg))).sum::<usize>();
        self.models.len() + of_legs + of_targets
    }

    /// Returns the plan that the device follows.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The device's part in it.
    pub fn part(&self) -> &Part {
        &self.part
    }
}

impl Epoch {
    /// One that begins.
    pub(super) fn new(id: EpochId, members: Vec<Place>, seat: Seat, exchange: Exchange) -> Epoch {
        Epoch {
            id,
            members,
            seat,
            exchange,
            offers: BTreeMap::new(),
            believed: BTreeMap::new(),
            trained_on: BTreeMap::new(),
            arrived: BTreeMap::new(),
            answer: None,
            phase: Phase::Measuring,
        }
    }

    pub(super) fn phase(&self) -> &Phase {
        &self.phase
    }

    /// Goes forward to another phase.
    pub(super) fn go_to(&mut self, next: Phase) {
        debug_assert!(next.order() >= self.phase.order(), "{next:?} after {:?}", self.phase);
        self.phase = next;
    }

    pub(super) fn following(&self) -> Option<&Following> {
        match &self.phase {
            Phase::Following(following) => Some(following),
            _ => None,
        }
    }

    pub(super) fn following_mut(&mut self) -> Option<&mut Following> {
        match &mut self.phase {
            Phase::Following(following) => Some(following),
            _ => None,
        }
    }

    pub(super) fn plan(&self) -> Option<&Plan> {
        self.following().map(Following::plan)
    }

    /// Its plan, and what measuring it remembers, when another epoch takes its place.
    pub(super) fn end(self) -> (Option<Plan>, Remembered) {
        let plan = match self.phase {
            Phase::Following(following) => Some(following.plan),
            _ => None,
        };
        (plan, self.exchange.into_remembered())
    }

    /// Takes up the offers of models that the device needs, each once.
    pub(super) fn take_offers(&mut self) -> Vec<(Place, Offer)> {
        let Phase::Following(following) = &mut self.phase else { return Vec::new() };
        let Following { needed, fetched, .. } = &mut **following;
        let offered =
            needed.iter().filter_map(|sent| Some((*sent, self.offers.get(sent)?.0.offer)));
        let new = offered.filter(|(sent, _)| fetched.insert(*sent));
        new.map(|((from, _), offer)| (from, offer)).collect()
    }

    /// Returns how many percent of the models that the device needs have come, where so many bytes of some have come that are on their way; none if that is so of none.
    pub(super) fn percent_arrived(&self, arriving: &BTreeMap<Sent, u64>) -> Option<u8> {
        let Following { needed, models, .. } = self.following()?;
        if !arriving.keys().any(|sent| needed.contains(sent) && !models.contains_key(sent)) {
            return None;
        }
        let percent = |sent: &Sent| {
            if models.contains_key(sent) {
                return u64::from(WHOLE);
            }
            let all = self.offers.get(sent).map_or(0, |(signed, _)| signed.offer.bytes);
            let came = arriving.get(sent).copied().unwrap_or_default().min(all);
            came.saturating_mul(WHOLE.into()) / all.max(1)
        };
        let percent = needed.iter().map(percent).sum::<u64>() / needed.len().max(1) as u64;
        u8::try_from(percent).ok()
    }

    /// Takes up the sources that offered this device another model than those who believe theirs, each once. Both offers are signed.
    pub(super) fn take_two_faced(&mut self) -> Vec<Place> {
        let Phase::Following(following) = &mut self.phase else { return Vec::new() };
        let Following { needed, two_faced, .. } = &mut **following;
        let is_other = |sent: &&Sent| {
            let own = self.offers.get(sent).map(|(signed, _)| signed.offer);
            let others = self.believed.get(sent).into_iter().flatten();
            own.is_some_and(|own| others.into_iter().any(|other| *other != own))
        };
        let found = needed.iter().filter(is_other).map(|(from, _)| *from);
        found.filter(|from| two_faced.insert(*from)).collect()
    }

    /// The trials that came with a model. Where the plan does not have it go, nobody has tried it.
    pub(super) fn tried(&self, (from, way): Sent) -> Tried {
        let offered = self.offers.get(&(from, way)).map(|(_, tried)| tried.clone());
        let (mut tried, route) = (offered.unwrap_or_default(), self.plan().map(|p| p.route(from)));
        let is_on_route = |at: &usize| route.iter().flatten().any(|place| place.index() == *at);
        tried.on_route.retain(|at, _| is_on_route(at));
        tried
    }

    /// Returns what sources claim here, and of those of which nothing is known, as in a large fleet, the divergence that the device itself
    /// measured.
    pub(super) fn with_own_divergences(&self, mut claims: Claims, settings: &Settings) -> Claims {
        for (peer, measured) in self.exchange.pairs().unwrap_or_default() {
            let own = divergence(settings, [measured; 2]);
            let own = own.map(|divergence| Claim { divergence, ..Claim::NOTHING });
            claims.entry(peer).or_insert(own.unwrap_or(Claim::NOTHING));
        }
        claims
    }

    /// Returns those that the device at `own` waits for.
    pub(super) fn missing(&self, own: Place) -> Vec<Place> {
        match (&self.phase, &self.seat) {
            (Phase::Measuring | Phase::MeasuringLinks(_), _) => self.exchange.missing(),
            (Phase::Collecting, Seat::Planner(desk)) => {
                self.members.iter().copied().filter(|&m| m != own && !desk.has_heard(m)).collect()
            }
            (Phase::Reported, Seat::Reporter(planner)) => vec![*planner],
            (Phase::Following(following), _) => following.missing(),
            _ => Vec::new(),
        }
    }

    /// Returns how much others have told, in a fleet whose targets tell how far they are with students or predictions, or do not. Only what makes it more is progress; what is said again
    /// is not.
    pub(super) fn known(&self, targets_tell: bool) -> usize {
        let reports = match &self.seat {
            Seat::Planner(desk) => desk.heard(),
            Seat::Reporter(_) => 0,
        };
        let planned = match &self.phase {
            Phase::Unplanned(_) => 1,
            Phase::Following(following) => {
                let offered = following.needed.iter().filter(|sent| self.offers.contains_key(sent));
                let arrived = following.arrived(&self.arrived);
                1 + offered.count() + arrived + following.known(&self.trained_on, targets_tell)
            }
            _ => 0,
        };
        self.exchange.known() + reports + planned
    }
}
