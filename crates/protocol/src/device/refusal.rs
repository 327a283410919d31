//! Why a message is not heeded.

use std::collections::BTreeMap;

use crate::checking::Objection;
use crate::roster::{Place, Roster};

/// Why a message is not heeded; counted, and otherwise without effect.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// Of an epoch that is not this one.
    #[error("message for epoch {offered}; this device is in epoch {known}")]
    Epoch {
        /// The epoch that the message is of.
        offered: u64,
        /// The epoch that the device is in.
        known: u64,
    },
    /// From a device that does not take part.
    #[error("place {} {}", .0, self.conduct())]
    Stranger(Place),
    /// From a device that has no say in this.
    #[error("place {} {}", .0, self.conduct())]
    NotPlanner(Place),
    /// From a device that has said something else about the same before.
    #[error("place {} {}", .0, self.conduct())]
    Twice(Place),
    /// Of another size than all agreed on, or without what it must have.
    #[error("{0}")]
    Unfit(&'static str),
    /// A report without the signature of who sent it.
    #[error("place {} {}", .0, self.conduct())]
    UnsignedReport(Place),
    /// Means without the signature of whose they are, which the planner could not pass on.
    #[error("place {} {}", .0, self.conduct())]
    UnsignedMeans(Place),
    /// An offer without the signature of whose model it is.
    #[error("place {} {}", .0, self.conduct())]
    UnsignedOffer(Place),
    /// A plan that does not follow from what devices reported, or another lie of the planner's that only it can have told.
    #[error(transparent)]
    Plan(#[from] Objection),
}

impl Refusal {
    /// Returns the same sentence as `Display`, with the device's name from the roster instead of its place.
    pub fn told(&self, roster: &Roster) -> String {
        match self {
            Refusal::Stranger(place)
            | Refusal::NotPlanner(place)
            | Refusal::Twice(place)
            | Refusal::UnsignedReport(place)
            | Refusal::UnsignedMeans(place)
            | Refusal::UnsignedOffer(place) => {
                format!("{} {}", roster.name_of(*place), self.conduct())
            }
            Refusal::Plan(objection) => objection.told(roster),
            Refusal::Epoch { .. } | Refusal::Unfit(_) => self.to_string(),
        }
    }

    /// What the device does that a refusal is about.
    fn conduct(&self) -> &'static str {
        match self {
            Refusal::Stranger(_) => "does not take part",
            Refusal::NotPlanner(_) => "is not the planner",
            Refusal::Twice(_) => "says two things",
            Refusal::UnsignedReport(_) => "has not signed its report for this epoch",
            Refusal::UnsignedMeans(_) => "has not signed its means for this epoch",
            Refusal::UnsignedOffer(_) => "has not signed what it offers in this epoch",
            Refusal::Epoch { .. } | Refusal::Unfit(_) | Refusal::Plan(_) => "is refused",
        }
    }
}

/// Notes what a device said; twice the same is fine, two things are not. Whether it is new.
pub(crate) fn note<T: PartialEq>(
    known: &mut BTreeMap<Place, T>,
    from: Place,
    said: T,
) -> Result<bool, Refusal> {
    note_of(known, from, from, said)
}

/// The same of one of several things that a device says.
pub(crate) fn note_of<K: Ord, T: PartialEq>(
    known: &mut BTreeMap<K, T>,
    from: Place,
    of: K,
    said: T,
) -> Result<bool, Refusal> {
    match known.get(&of) {
        Some(before) if *before != said => Err(Refusal::Twice(from)),
        Some(_) => Ok(false),
        None => {
            known.insert(of, said);
            Ok(true)
        }
    }
}
