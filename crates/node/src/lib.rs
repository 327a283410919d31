//! One device of a fleet as a peer of the others: the [protocol](stlf_protocol) over a real network.
//!
//! - [`key_file`]: the file in which a device keeps its key.
//! - [`status`]: the status of a device, for people and programs.
//! - [`computing`]: what a device's student cost in computing.
//! - [`data_change`]: what has become of a device's data since the device read them.
//! - [`protection`]: what protects the samples behind what a device publishes.
//! - [`status_file`]: the status with its time, as a running device writes it to a file.
//! - `network`: QUIC connections between keys that are in the roster, behind the feature of that name.
//! - `door`, `joining`: how devices join by tickets: the owner's side and the device's; behind the same feature.
//! - `service`: everything that a device does and keeps, from reading its configuration until it stops; behind the same feature.

pub mod computing;
pub mod data_change;
#[cfg(feature = "network")]
pub mod door;
#[cfg(feature = "network")]
pub mod joining;
pub mod key_file;
#[cfg(feature = "network")]
pub mod network;
pub mod protection;
#[cfg(feature = "network")]
pub mod service;
pub mod status;
pub mod status_file;

pub use status::Status;
