//! What is written down: one row per seed, method and target, and the tables between stages.

use serde::{Deserialize, Serialize};

/// How a method served one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Row {
    /// The seed.
    pub seed: u64,
    /// The method's name.
    pub method: String,
    /// The target's name.
    pub target: String,
    /// Share of the target's own samples that are given their true class; empty where the truth is not known, or where
    /// the target has no model at all.
    pub accuracy: Option<f64>,
    /// The target's samples.
    pub samples: usize,
    /// Links into the target.
    pub links: usize,
    /// Their energy.
    pub joules: f64,
    /// The energy if every source of the method sent to this target.
    pub all_joules: f64,
    /// The bytes that cross the links.
    pub bytes: u64,
}

/// One device's own model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TrainingRow {
    /// The device.
    pub device: String,
    /// Samples with a label.
    pub labeled: usize,
    /// Samples without one.
    pub unlabeled: usize,
    /// Labels that the error was measured on.
    pub measured: usize,
    /// Errors on these.
    pub errors: usize,
    /// ε̂; empty without labels.
    pub source_error: Option<f64>,
}

/// The measured divergence of two devices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DivergenceRow {
    /// One device.
    pub from: String,
    /// The other.
    pub to: String,
    /// d̂.
    pub divergence: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
    /// Whether the interval excludes no difference at all.
    pub signal: bool,
}

/// One link of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LinkRow {
    /// Sender.
    pub from: String,
    /// Receiver.
    pub to: String,
    /// α.
    pub weight: f64,
    /// K.
    pub joules: Option<f64>,
    /// d̂.
    pub divergence: Option<f64>,
}
