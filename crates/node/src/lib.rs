//! One device of a fleet as a peer: who belongs to the fleet, what devices say to each other, and what each does upon it.
//!
//! No server sees data or models. Every device trains on its own labels ([`stlf::local`]), finds out how far its
//! inputs are from the others' ([`stlf::divergence`]), and reports numbers to one of them, the planner of the epoch. Its plan, signed, says who sends whose model to whom.
//!
//! - [`identity`], [`key_file`], [`roster`]: keys, where they are kept, and the signed list of who belongs to the fleet.
//! - [`shared`]: what must be the same on all devices.
//! - [`wire`]: the messages, versioned, of limited size, checked.
//! - [`status`]: how a device stands, for those who ask.
//! - [`exchange`]: a device's part in measuring divergences, by any estimator, as a machine without I/O.
//! - [`membership`]: who takes part, and when an epoch begins anew.
//! - [`device`]: a device as a machine without I/O: a message in, messages out. [`memory`] passes them within one
//!   program.

pub mod device;
pub mod exchange;
pub mod identity;
pub mod key_file;
pub mod membership;
pub mod memory;
#[cfg(feature = "network")]
pub mod network;
mod planning;
pub mod roster;
pub mod shared;
pub mod status;
pub mod wire;

pub use device::{Action, Device, Refusal, Setup};
pub use identity::{Identity, PeerId};
pub use roster::{Member, Roster, SignedRoster};
pub use status::Status;
