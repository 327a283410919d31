//! One device of a fleet as a peer: the [protocol](stlf_protocol) over a real network.
//!
//! - [`key_file`]: where a device keeps its key.
//! - [`status`]: how a device stands, for those who ask.
//! - [`status_file`]: the same with its time, as a running device writes it.
//! - `network`: QUIC between keys that the roster knows, behind the feature of that name.
//! - `service`: all that a device does and keeps, from a configuration to its end; behind the same feature.

pub mod key_file;
#[cfg(feature = "network")]
pub mod network;
#[cfg(feature = "network")]
pub mod service;
pub mod status;
pub mod status_file;

pub use status::Status;
