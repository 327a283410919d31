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
    /// Returns the other role: target for a source, source for a target.
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

/// What was measured on one device.
#[derive(Debug, Clone, PartialEq)]
pub struct Device {
    /// The name used in files and tables.
    pub name: String,
    /// The number of samples with a label.
    pub labeled: u64,
    /// The number of samples without a label.
    pub unlabeled: u64,
    /// ε̂_i: the fraction of its own data on which the device's own model errs, 0 to 1. Absent without labels.
    pub source_error: Option<f64>,
}

impl Device {
    /// Returns D̂_i, the number of samples with and without a label.
    pub fn samples(&self) -> u64 {
        self.labeled + self.unlabeled
    }
}
