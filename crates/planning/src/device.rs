//! A device as the planner sees it: counts and an error, never data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a device does, the paper's ψ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Trains on its own labels and may send its model (ψ = 0).
    Source,
    /// Receives a weighted mixture of sources' models (ψ = 1).
    Target,
}

impl Role {
    /// The other role.
    pub fn opposite(self) -> Role {
        match self {
            Role::Source => Role::Target,
            Role::Target => Role::Source,
        }
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Role::Source => "source",
            Role::Target => "target",
        })
    }
}

/// One device's measurements.
#[derive(Debug, Clone, PartialEq)]
pub struct Device {
    /// The name used in files and tables.
    pub name: String,
    /// Samples with a label.
    pub labeled: u64,
    /// Samples without one.
    pub unlabeled: u64,
    /// ε̂_i: share of errors of the device's own model on its own data. Absent without labels.
    pub source_error: Option<f64>,
}

impl Device {
    /// D̂_i, all samples.
    pub fn samples(&self) -> u64 {
        self.labeled + self.unlabeled
    }
}
