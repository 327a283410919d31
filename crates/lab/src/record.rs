//! What is written down: one row per seed, method and target, and the tables between stages.

use serde::{Deserialize, Serialize};
use stlf_data::Class;
use stlf_learn::evaluate::Predictions;

/// How a method served one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Row {
    /// The seed of the repetition.
    pub seed: u64,
    /// The name of the method.
    pub method: String,
    /// The name of the target.
    pub target: String,
    /// Share of the target's own samples that are given their true class; empty where the truth is not known, or where
    /// the target has no model at all.
    pub accuracy: Option<f64>,
    /// The number of the target's samples.
    pub samples: usize,
    /// Links into the target, and hand-overs between sources that no target before it profits from.
    pub links: usize,
    /// Their energy, measuring not counted.
    pub joules: f64,
    /// The energy if every source of the method sent to this target.
    pub all_joules: f64,
    /// The bytes that cross the links.
    pub bytes: u64,
    /// What measuring the divergences of all devices cost, where the method needs them: on the first target of a seed, so that
    /// sums are totals.
    pub measuring_joules: f64,
    /// The bytes of that.
    pub measuring_bytes: u64,
}

/// One device's own model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TrainingRow {
    /// The name of the device.
    pub device: String,
    /// Samples with a label.
    pub labeled: usize,
    /// The number of samples without a label.
    pub unlabeled: usize,
    /// Labels that the error was measured on.
    pub measured: usize,
    /// The number of errors on these labels.
    pub errors: usize,
    /// ε̂; empty without labels.
    pub source_error: Option<f64>,
}

/// The measured divergence of two devices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DivergenceRow {
    /// The name of one device.
    pub from: String,
    /// The name of the other device.
    pub to: String,
    /// d̂ of the two devices, 0 to 2.
    pub divergence: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
    /// Whether the interval excludes no difference at all.
    pub signal: bool,
}

/// What one device sent for its data to be measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MeasuringRow {
    /// The seed of the repetition.
    pub seed: u64,
    /// The name of the device.
    pub device: String,
    /// The number of bytes that it sent.
    pub bytes: u64,
    /// What that costs over its mean link.
    pub joules: f64,
}

/// What a target makes of one of its samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PredictionRow {
    /// The sample's place in the data set, from 0.
    pub sample: usize,
    /// The class with the highest probability.
    pub class: String,
    /// The probability of that class, 0 to 1.
    pub probability: f32,
}

impl PredictionRow {
    /// What is made of the samples at these places.
    pub fn all(
        predictions: &Predictions,
        places: &[usize],
        classes: &[String],
    ) -> Vec<PredictionRow> {
        let predicted = predictions.classes().zip(predictions.probabilities()).zip(places);
        let row = |((class, probabilities), &sample): ((Class, &[f32]), &usize)| PredictionRow {
            sample,
            class: classes[usize::from(class)].clone(),
            probability: probabilities[usize::from(class)],
        };
        predicted.map(row).collect()
    }
}

/// How often samples of one class were given another, or the same, at one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ConfusionRow {
    /// The name of the target.
    pub target: String,
    /// The class that it is.
    pub class: String,
    /// The class that it was given.
    pub given: String,
    /// The number of samples of these two classes.
    pub samples: usize,
}

/// The optimal plan at one weight of energy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FrontierRow {
    /// φ^E, the weight of energy.
    pub energy_weight: f64,
    /// Whether it is proven to be the best.
    pub proven: bool,
    /// The source and target terms of its objective.
    pub error_bound: f64,
    /// The number of sources.
    pub sources: usize,
    /// The number of links in use.
    pub links: usize,
    /// The energy of the links, in joules.
    pub joules: Option<f64>,
    /// As a share of every source sending to every target.
    pub energy_share: Option<f64>,
    /// Mean accuracy of its targets.
    pub accuracy: Option<f64>,
}

/// Both sides of the paper's inequalities at one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BoundRow {
    /// The name of the target.
    pub target: String,
    /// What is bounded: the error of its mixture, by the hidden labels.
    pub error: f64,
    /// Σ α ε̂ of its sources.
    pub source_error: f64,
    /// Σ α ½ d̂.
    pub half_divergence: f64,
    /// Σ α times how often the mixture and a source disagree here.
    pub noise: f64,
    /// The right side of Theorem 2: the three terms before.
    pub theorem_2: f64,
    /// The right side of Corollary 1, with the complexity of the published numbers.
    pub corollary_1: f64,
}

/// One hand-over between sources, or one link to a target, of ST-LF with relays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RelayRow {
    /// The name of the sender.
    pub from: String,
    /// The name of the receiver.
    pub to: String,
    /// α; empty for a hand-over.
    pub weight: Option<f64>,
    /// K, the energy of the link in joules.
    pub joules: Option<f64>,
}

/// One link of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LinkRow {
    /// The name of the sender.
    pub from: String,
    /// The name of the receiver.
    pub to: String,
    /// α, the weight of the sender's model.
    pub weight: f64,
    /// K, the energy of the link in joules.
    pub joules: Option<f64>,
    /// d̂ of the two devices, 0 to 2.
    pub divergence: Option<f64>,
}
