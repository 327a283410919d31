//! What a device knows of an epoch, and the phase that it is in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use stlf_learn::Params;
use stlf_learn::evaluate::Predictions;
use stlf_planning::Role;

use crate::divergence_protocol::{Exchange, Remembered};
use crate::planning::Planner;
use crate::roster::Place;
use crate::wire::{Measured, Offer, Plan};

/// An epoch at one device. What others may say at any time, again or before it is needed, stands beside the phase.
#[derive(Debug)]
pub(super) struct Epoch {
    pub(super) number: u64,
    /// Ascending.
    pub(super) members: Vec<Place>,
    pub(super) seat: Seat,
    pub(super) exchange: Exchange,
    pub(super) offers: BTreeMap<Place, Offer>,
    /// How many percent those have done that train on a model.
    pub(super) trained_on: BTreeMap<Place, u8>,
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

/// What a device is at in an epoch, with what it has come to by then. It only goes forward.
#[derive(Debug)]
pub enum Phase {
    /// It measures divergences with the others.
    Measuring,
    /// It has these, and does not know yet what its links cost.
    MeasuringLinks(Vec<(Place, Measured)>),
    /// As the planner: it has measured everything, and waits for what others report.
    Collecting,
    /// As any other: it has reported, and waits for the plan.
    Reported,
    /// As the planner: a plan is searched for.
    Searching,
    /// As the planner: no plan can have the device at this place in it. An epoch without it will follow.
    Unplannable(Place),
    /// There is no plan, for this reason.
    Unplanned(String),
    /// There is a plan, in which this device has its part.
    Following(Following),
}

/// A plan, and how far a device is with it.
#[derive(Debug)]
pub struct Following {
    pub(super) plan: Plan,
    /// Those whose models were asked for.
    pub(super) fetched: BTreeSet<Place>,
    pub(super) models: BTreeMap<Place, Arc<Params>>,
    pub(super) part: Part,
}

/// A device's part in a plan.
#[derive(Debug)]
pub enum Part {
    /// Others get its model.
    Source(AsSource),
    /// It gets others' models.
    Target(AsTarget),
}

/// How far a source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsSource {
    /// The device at this place is to hand its model over.
    Awaits(Place),
    /// It trains on the model of the device at this place.
    TrainsOn(Place),
    /// Its model is what the plan makes of it, and may be fetched.
    Offers,
}

/// How far a target is.
#[derive(Debug, Clone, PartialEq)]
pub enum AsTarget {
    /// Some model has not come yet.
    Awaits,
    /// All are here, and are combined.
    Combines,
    /// What its inputs came to.
    Has(Predictions),
}

impl Phase {
    /// How far this is: within an epoch it never becomes less.
    pub fn order(&self) -> u8 {
        match self {
            Phase::Measuring => 0,
            Phase::MeasuringLinks(_) => 1,
            Phase::Collecting | Phase::Reported => 2,
            Phase::Searching => 3,
            Phase::Following(following) => match &following.part {
                Part::Source(AsSource::Awaits(_)) | Part::Target(AsTarget::Awaits) => 4,
                Part::Source(AsSource::TrainsOn(_)) | Part::Target(AsTarget::Combines) => 5,
                Part::Source(AsSource::Offers) | Part::Target(AsTarget::Has(_)) => 6,
            },
            Phase::Unplannable(_) | Phase::Unplanned(_) => 6,
        }
    }

    /// Whether the device's part of the epoch is over.
    pub fn is_done(&self) -> bool {
        match self {
            Phase::Unplanned(_) => true,
            Phase::Following(following) => matches!(
                following.part,
                Part::Source(AsSource::Offers) | Part::Target(AsTarget::Has(_))
            ),
            _ => false,
        }
    }
}

impl Following {
    /// What the device at a place begins with under a plan.
    pub(super) fn new(plan: Plan, place: Place) -> Following {
        let part = match (plan.role(place), plan.handed_from(place)) {
            (Some(Role::Source), Some(from)) => Part::Source(AsSource::Awaits(from)),
            (Some(Role::Source), None) => Part::Source(AsSource::Offers),
            (Some(Role::Target) | None, _) => Part::Target(AsTarget::Awaits),
        };
        Following { plan, fetched: BTreeSet::new(), models: BTreeMap::new(), part }
    }

    /// The plan.
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
    pub(super) fn new(number: u64, members: Vec<Place>, seat: Seat, exchange: Exchange) -> Epoch {
        let (offers, trained_on) = (BTreeMap::new(), BTreeMap::new());
        Epoch { number, members, seat, exchange, offers, trained_on, phase: Phase::Measuring }
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

    /// Takes up the offers of models that the device at `own` needs, each once.
    pub(super) fn take_offers(&mut self, own: Place) -> Vec<(Place, Offer)> {
        let Phase::Following(Following { plan, fetched, .. }) = &mut self.phase else {
            return Vec::new();
        };
        let offered = plan.senders(own).filter_map(|from| Some((from, *self.offers.get(&from)?)));
        offered.filter(|(from, _)| fetched.insert(*from)).collect()
    }

    /// Those that the device at `own` waits for.
    pub(super) fn missing(&self, own: Place) -> Vec<Place> {
        match (&self.phase, &self.seat) {
            (Phase::Measuring | Phase::MeasuringLinks(_), _) => self.exchange.missing(),
            (Phase::Collecting, Seat::Planner(desk)) => {
                self.members.iter().copied().filter(|&m| m != own && !desk.has_heard(m)).collect()
            }
            (Phase::Reported, Seat::Reporter(planner)) => vec![*planner],
            (Phase::Following(Following { plan, models, .. }), _) => {
                plan.senders(own).filter(|from| !models.contains_key(from)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// How much others have told. Only what makes it more is progress; what is said again is not.
    pub(super) fn known(&self) -> usize {
        let reports = match &self.seat {
            Seat::Planner(desk) => desk.heard(),
            Seat::Reporter(_) => 0,
        };
        let planned = match &self.phase {
            Phase::Unplanned(_) => 1,
            Phase::Following(Following { plan, models, .. }) => {
                let trained = plan.handovers.iter().filter_map(|h| self.trained_on.get(&h.to));
                1 + models.len() + trained.map(|&percent| usize::from(percent)).sum::<usize>()
            }
            _ => 0,
        };
        self.exchange.known() + reports + planned + self.offers.len()
    }
}
