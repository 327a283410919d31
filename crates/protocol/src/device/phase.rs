//! The phases of an epoch at one device, and its part in a plan.

use stlf_planning::plan::Way;

use super::combining::Combined;
use super::epoch::Following;
use crate::roster::Place;
use crate::wire::{Leg, Measured};

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
    Following(Box<Following>),
}

/// A device's part in a plan.
#[derive(Debug)]
pub enum Part {
    /// Others get its model.
    Source(AsSource),
    /// It gets others' models.
    Target(AsTarget),
}

/// How far a source is. Whatever it has made so far may be fetched: when it awaits the second way, the model of the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsSource {
    /// A model is to be handed to it.
    Awaits(Leg),
    /// It trains on the model that was.
    TrainsOn(Leg),
    /// Its model is what the plan makes of it, and may be fetched.
    Offers,
}

impl AsSource {
    /// The way on which the source has not handed its model on yet; none once it has on all.
    pub(super) fn way(&self) -> Option<Way> {
        match self {
            AsSource::Awaits(leg) | AsSource::TrainsOn(leg) => Some(leg.taken),
            AsSource::Offers => None,
        }
    }

    fn order(&self) -> u8 {
        match self {
            AsSource::Awaits(leg) => 2 * leg.taken as u8,
            AsSource::TrainsOn(leg) => 2 * leg.taken as u8 + 1,
            AsSource::Offers => 4,
        }
    }
}

/// How far a target is.
#[derive(Debug, Clone, PartialEq)]
pub enum AsTarget {
    /// Some model has not come yet.
    Awaits,
    /// All are here, and are combined; a student may be trained.
    Combines,
    /// What its inputs came to.
    Has(Box<Combined>),
}

impl Phase {
    /// Returns how far this is: within an epoch it never becomes less.
    pub fn order(&self) -> u8 {
        match self {
            Phase::Measuring => 0,
            Phase::MeasuringLinks(_) => 1,
            Phase::Collecting | Phase::Reported => 2,
            Phase::Searching => 3,
            Phase::Following(following) => match &following.part {
                Part::Source(source) => 4 + source.order(),
                Part::Target(AsTarget::Awaits) => 4,
                Part::Target(AsTarget::Combines) => 5,
                Part::Target(AsTarget::Has(_)) => 8,
            },
            Phase::Unplannable(_) | Phase::Unplanned(_) => 8,
        }
    }

    /// Returns whether the device's part of the epoch is over.
    pub fn is_done(&self) -> bool {
        match self {
            Phase::Unplanned(_) => true,
            Phase::Following(following) => {
                let is_at_end = matches!(
                    following.part,
                    Part::Source(AsSource::Offers) | Part::Target(AsTarget::Has(_))
                );
                is_at_end && following.has_examined_all()
            }
            _ => false,
        }
    }
}
