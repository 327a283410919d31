//! How a running device stands, as a file in its folder that it renews every second.

use serde::{Deserialize, Serialize};

use crate::Status;

/// The file's name.
pub const FILE: &str = "status.json";

/// A status with its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatusFile {
    /// Since 1970.
    pub seconds: f64,
    /// The most bytes of memory that the device has had so far, where the system tells.
    pub most_memory: Option<u64>,
    /// The status.
    #[serde(flatten)]
    pub status: Status,
}
