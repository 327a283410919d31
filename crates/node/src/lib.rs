//! One device of a fleet as a peer: the [protocol](stlf_protocol) over a real network.
//!
//! - [`key_file`]: where a device keeps its key.
//! - [`status`]: how a device stands, for those who ask.
//! - `network`: QUIC between keys that the roster knows, behind the feature of that name.

pub mod key_file;
#[cfg(feature = "network")]
pub mod network;
pub mod status;

pub use status::Status;
