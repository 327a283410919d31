//! From what is known of devices to what they should do: roles ψ, link weights α and hand-overs, of least cost.
//!
//! The way of the data: [`problem`] (S and T by [`bound`], energies) → [`planner`] → [`plan`] → [`explain`], [`sweep`], [`diff`].
//!
//! Planning needs mathematics alone: no data, no training, no file, no random number.

pub mod bound;
mod conspicuous;
pub mod device;
pub mod diff;
pub mod energy;
pub mod error;
pub mod examiner;
pub mod explain;
pub mod number_format;
pub mod plan;
pub mod planner;
pub mod problem;
pub mod sweep;
pub mod witness;

pub use device::{Device, Role};
pub use error::Error;
pub use plan::Plan;
pub use problem::Problem;
