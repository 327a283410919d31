//! What can be seen of a device's epoch: how far it is, its plan, and what came of it.

use std::sync::Arc;

use stlf_learn::Params;
use stlf_learn::evaluate::Predictions;
use stlf_planning::Problem;
use stlf_planning::plan::Terms;

use super::epoch::Epoch;
use super::{AsTarget, Combined, Device, Part, Phase};
use crate::roster::Place;
use crate::wire::{EpochId, Plan};

impl Device {
    /// Returns which epoch it takes part in.
    pub fn epoch_id(&self) -> Option<EpochId> {
        self.epoch.as_ref().map(|epoch| epoch.id)
    }

    /// The number of the epoch that it takes part in.
    pub fn epoch(&self) -> Option<u64> {
        self.epoch_id().map(|id| id.number)
    }

    /// Returns what it is at in its epoch.
    pub fn phase(&self) -> Option<&Phase> {
        self.epoch.as_ref().map(Epoch::phase)
    }

    /// Returns whether its part of the epoch is over.
    pub fn is_done(&self) -> bool {
        self.phase().is_some_and(Phase::is_done)
    }

    /// Returns why there is no plan in this epoch.
    pub fn no_plan(&self) -> Option<&str> {
        match self.phase()? {
            Phase::Unplanned(reason) => Some(reason),
            _ => None,
        }
    }

    /// Returns what its samples came to under the epoch's plan; `None` as long as there is nothing, and for a source.
    pub fn outcome(&self) -> Option<&Predictions> {
        self.combined().map(|combined| &combined.predictions)
    }

    /// The same with what came of its student.
    pub fn combined(&self) -> Option<&Combined> {
        match self.following()?.part() {
            Part::Target(AsTarget::Has(combined)) => Some(combined),
            _ => None,
        }
    }

    /// The models that it combines as a target, with who sent each and its weight, once all of them are there; `None` for a source.
    pub fn received(&self) -> Option<Vec<(Place, Arc<Params>, f64)>> {
        self.following()?.to_combine(self.place).filter(|received| !received.is_empty())
    }

    /// Returns what the epoch's plan costs, term by term. In large fleets, whose plans do not carry the reports that they follow from, only the planner knows.
    pub fn plan_terms(&self) -> Option<Terms> {
        self.following()?.terms()
    }

    /// The problem that the epoch's plan solves: what all devices reported. In large fleets only the planner knows it.
    pub fn problem(&self) -> Option<&Problem> {
        self.following()?.problem()
    }

    /// Returns the plan of the epoch, once the device has one that it follows.
    pub fn plan(&self) -> Option<&Plan> {
        self.epoch.as_ref()?.plan()
    }
}
