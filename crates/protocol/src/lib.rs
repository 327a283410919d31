//! What the devices of a fleet say to each other and do upon it, without I/O: bytes, time and results of long work come in as arguments.
//!
//! No server sees data or models. Every device trains on its own labels ([`stlf_method::local_training`]), finds out how far its
//! inputs are from the others' ([`stlf_method::divergence`]), and reports numbers to one of them, the planner of the epoch. Its plan,
//! signed, says who sends whose model to whom.
//!
//! - [`identity`], [`roster`]: keys, and the signed list of who belongs to the fleet.
//! - [`setup`]: what all devices share, and what a device computes in each step of an epoch.
//! - [`shared`]: what must be the same on all devices.
//! - [`ticket`], [`invitations`], [`terms`]: how a device joins: what it is given, what the owner keeps of it, what all agree on.
//! - [`wire`]: the messages, versioned, of limited size, checked.
//! - [`divergence_protocol`]: a device's part in measuring divergences, by any estimator.
//! - [`membership`]: who takes part, and when an epoch begins anew.
//! - [`participant`]: a device among the others: what both a real network and a simulated one drive.
//! - [`device`]: a device in an epoch: a message in, actions out.
//! - [`privacy_ledger`]: what a device has published with noise, and what that spent.
//! - [`publication_record`]: what a device has published with base noise alone, and when it may publish something else.
//! - [`published_data`]: the data behind means that a device publishes again, by which it replies.
//! - [`reply_record`]: which divergences a device has told, and whether it may tell more.
//! - [`verdict_record`]: what a device has answered to models that others chose, and whether it may answer more.
//! - [`checking`]: whether a plan follows from the signed reports that it carries.
//! - [`job`]: work that takes long, done apart from the device that needs it.

pub mod checking;
pub mod device;
pub mod divergence_protocol;
pub mod identity;
pub mod invitations;
pub mod job;
pub mod membership;
pub mod participant;
mod planning;
pub mod privacy_ledger;
pub mod publication_record;
pub mod published_data;
pub mod reply_record;
pub mod roster;
pub mod setup;
pub mod shared;
pub mod terms;
pub mod ticket;
mod told;
pub mod verdict_record;
pub mod wire;

pub use device::{Action, Device, Phase, Refusal};
pub use identity::{Identity, PeerId};
pub use job::{Computed, Job};
pub use participant::{Participant, Surroundings};
pub use roster::{Member, Place, Roster, SignedRoster};
pub use setup::Setup;
pub use ticket::Ticket;
