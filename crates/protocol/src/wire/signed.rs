//! What devices sign: each its report and what it offers, and the planner the plan, which carries the reports that it was made from.

use serde::{Deserialize, Serialize};

use super::{EpochId, LONGEST_REASON, Malformed, Offer, Plan, Report};
use crate::identity::{Identity, PeerId};
use crate::shared::Fingerprint;

/// What a signature of a report is for.
const REPORT: &str = "stlf-report/2";

/// What a signature of a plan is for.
const PLAN: &str = "stlf-plan-message/3";

/// What a signature of an offer is for.
const OFFER: &str = "stlf-offer/1";

/// A plan carries the reports of so many devices at most. In larger fleets they would be most of what is sent.
pub const MOST_REPORTS: usize = 64;

/// A report with the signature of the device that it is of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SignedReport {
    /// What the device reports.
    pub report: Report,
    /// Of the epoch, the fleet's settings and the report.
    pub signature: Vec<u8>,
}

impl SignedReport {
    /// Signs a report for an epoch, found by these settings; it is none for another epoch, or by others.
    pub fn sign(
        report: Report,
        epoch: EpochId,
        settings: Fingerprint,
        identity: &Identity,
    ) -> SignedReport {
        let signature = identity.sign(REPORT, &bytes(epoch, settings, &report));
        SignedReport { report, signature }
    }

    /// Returns whether the device with this key has signed it for this epoch and these settings.
    pub fn is_of(&self, key: PeerId, epoch: EpochId, settings: Fingerprint) -> bool {
        key.has_signed(REPORT, &bytes(epoch, settings, &self.report), &self.signature)
    }
}

/// The settings are not sent: whoever checks a signature knows its own.
fn bytes(epoch: EpochId, settings: Fingerprint, report: &Report) -> Vec<u8> {
    postcard::to_allocvec(&(epoch, settings, report)).unwrap_or_default()
}

/// An offer with the signature of the device whose model it is, so that others can show that it offers each of them another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SignedOffer {
    /// The model that is offered.
    pub offer: Offer,
    /// Of the epoch and the offer.
    pub signature: Vec<u8>,
}

impl SignedOffer {
    /// Signs an offer of an epoch.
    pub fn sign(offer: Offer, epoch: EpochId, identity: &Identity) -> SignedOffer {
        let bytes = postcard::to_allocvec(&(epoch, offer)).unwrap_or_default();
        SignedOffer { offer, signature: identity.sign(OFFER, &bytes) }
    }

    /// Returns whether the device with this key has signed it for this epoch.
    pub fn is_of(&self, key: PeerId, epoch: EpochId) -> bool {
        let bytes = postcard::to_allocvec(&(epoch, self.offer)).unwrap_or_default();
        key.has_signed(OFFER, &bytes, &self.signature)
    }
}

/// That there is no plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Denial {
    /// Why, as text for people.
    pub reason: String,
    /// What that follows from, device by device of the epoch; none in a fleet of more than [`MOST_REPORTS`] devices.
    pub reports: Vec<SignedReport>,
}

impl Denial {
    /// With as much of the reason as may be sent.
    pub fn new(mut reason: String, reports: Vec<SignedReport>) -> Denial {
        reason.truncate(reason.floor_char_boundary(LONGEST_REASON));
        Denial { reason, reports }
    }

    pub(super) fn check(&self) -> Result<(), Malformed> {
        if self.reason.len() > LONGEST_REASON {
            return Err(Malformed::Absurd("a long reason"));
        }
        self.reports.iter().try_for_each(|signed| signed.report.check())
    }
}

/// A plan with the planner's signature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SignedPlan {
    /// What everyone is to do in the epoch.
    pub plan: Plan,
    /// What it was made from, device by device of the epoch; none in a fleet of more than [`MOST_REPORTS`] devices.
    pub reports: Vec<SignedReport>,
    /// The planner's signature of [`Plan::bytes`].
    pub signature: Vec<u8>,
}

impl SignedPlan {
    /// Signs a plan with the key of its planner.
    pub fn sign(plan: Plan, reports: Vec<SignedReport>, identity: &Identity) -> SignedPlan {
        let signature = identity.sign(PLAN, &plan.bytes());
        SignedPlan { plan, reports, signature }
    }

    /// Returns whether the planner with this key has signed it.
    pub fn is_of(&self, key: PeerId) -> bool {
        key.has_signed(PLAN, &self.plan.bytes(), &self.signature)
    }

    pub(super) fn check(&self) -> Result<(), Malformed> {
        self.plan.check()?;
        self.reports.iter().try_for_each(|signed| signed.report.check())
    }
}
