//! The status of a running device, as a file in its folder that it rewrites every second.

use serde::{Deserialize, Serialize};

use crate::Status;
use crate::computing::Computing;
use crate::data_change::DataChange;
use crate::protection::Protection;

/// The name of the status file within the device's folder.
pub const FILE: &str = "status.json";

/// The file beside it that has the plan by names, with the problem that it solves: what people and `stlf explain` read.
pub const FULL_PLAN: &str = "full-plan.json";

/// A device's status, with the time at which it was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatusFile {
    /// The time of writing, in seconds since 1970.
    pub seconds: f64,
    /// The most bytes of memory that the device has had so far, if the operating system tells.
    pub most_memory: Option<u64>,
    /// What protects the samples behind what the device publishes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protection: Option<Protection>,
    /// What has become of the device's data since the device read them, if they have changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataChange>,
    /// What the student of a target cost, if it trained one and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub student_cost: Option<Computing>,
    /// The device's status at that time.
    #[serde(flatten)]
    pub status: Status,
}
