//! What is written down: one row per seed, method and target, and the tables between stages.

use serde::{Deserialize, Serialize};
use stlf_method::expectation::{Basis, Expected, Guessing, Warning};
use stlf_planning::plan::Way;

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
    /// The energy of these in joules, measuring not counted.
    pub joules: f64,
    /// The energy if every source of the method sent to this target.
    pub all_joules: f64,
    /// The bytes that cross the links.
    pub bytes: u64,
    /// What measuring the divergences of all devices cost, where the method needs them, and for ours the trials that go along with models: on
    /// the first target of a seed, so that sums are totals.
    pub measuring_joules: f64,
    /// The bytes that were sent for it.
    pub measuring_bytes: u64,
    /// What averaging the models of all devices with labels cost before each trained its own (`training.warm-up-rounds`), whatever the method, since all use what came of
    /// it: on the first target of a seed. Earlier versions did not count it.
    #[serde(default)]
    pub warm_up_joules: f64,
    /// The bytes that were sent for it.
    #[serde(default)]
    pub warm_up_bytes: u64,
}

/// The samples of one device, and how its own model does on them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TrainingRow {
    /// The name of the device.
    pub device: String,
    /// The number of samples with a label.
    pub labeled: usize,
    /// The number of samples without a label.
    pub unlabeled: usize,
    /// Labels that the error was measured on.
    pub measured: usize,
    /// The number of these labels that the model gets wrong.
    pub errors: usize,
    /// ε̂, the source error, 0 to 1; empty without labels.
    pub source_error: Option<f64>,
    /// The share of its labels that have its most common class; empty without labels, and not written by earlier versions.
    #[serde(default)]
    pub most_common: Option<f64>,
}

impl TrainingRow {
    /// What the device is told of its own model, if that is no better than guessing.
    pub fn guessing(&self) -> Option<Guessing> {
        let right = self.measured.saturating_sub(self.errors);
        Guessing::of(right, self.measured, self.most_common?)
    }
}

/// The measured divergence of two devices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DivergenceRow {
    /// The name of one of the two devices.
    pub from: String,
    /// The name of the other device.
    pub to: String,
    /// d̂, the divergence of the two, 0 to 2.
    pub divergence: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end of its interval.
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
    /// The number of bytes that the device sent.
    pub bytes: u64,
    /// What that costs over its mean link.
    pub joules: f64,
    /// ε of the noise on what it published; none where it added none.
    #[serde(default)]
    pub epsilon: Option<f64>,
}

/// How well the others' scouts did at a device with labels, under one scale of features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ScaleRow {
    /// The seed of the repetition.
    pub seed: u64,
    /// The name of the scale.
    pub scale: String,
    /// The name of the device.
    pub device: String,
    /// The share of its labels that they gave.
    pub accuracy: f64,
}

/// How one target of a method came to use a student, or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StudentRow {
    /// The seed of the repetition.
    pub seed: u64,
    /// The name of the method.
    pub method: String,
    /// The name of the target.
    pub target: String,
    /// The number of the target's samples.
    pub samples: usize,
    /// The labels of these that it knows.
    #[serde(default)]
    pub labels: usize,
    /// What came of it, in a few words.
    pub outcome: String,
    /// Whether the target trained a student.
    pub tried: bool,
    /// The share of held-out samples of which the student says the same after a part was covered.
    pub stability: Option<f64>,
    /// The share of held-out samples of which the mixture alone says the same after a part was
    /// covered.
    pub mixture_stability: Option<f64>,
    /// By how much the guard asks the student to be more stable than the mixture.
    #[serde(default)]
    pub threshold: Option<f64>,
    /// How many of the labels that were held out are right with the student.
    #[serde(default)]
    pub labels_right: Option<usize>,
    /// How many of the labels that were held out are right with the mixture alone.
    #[serde(default)]
    pub mixture_labels_right: Option<usize>,
    /// Whether the guard or, where there are some, labels accept the student.
    pub accepted: bool,
    /// Whether the target uses the student.
    pub used: bool,
    /// The accuracy of the mixture alone, where the truth is known.
    pub mixture_accuracy: Option<f64>,
    /// The accuracy with the student, used or not.
    pub student_accuracy: Option<f64>,
    /// The billions of floating-point operations of its training, where a built-in network trained.
    pub gflop: Option<f64>,
    /// What these cost, where that is asked for.
    pub joules: Option<f64>,
}

/// The accuracy that a target may expect without any label, and what it turned out to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ExpectedRow {
    /// The seed of the repetition.
    pub seed: u64,
    /// The name of the target.
    pub target: String,
    /// The accuracy that the target may expect, 0 to 1.
    pub expected: f64,
    /// The lower end of the 90 % interval of that.
    pub low: f64,
    /// The upper end of the 90 % interval of that.
    pub high: f64,
    /// The accuracy, where the truth is known.
    pub accuracy: Option<f64>,
    /// What the target is told, if it may expect little or little is known of it.
    #[serde(default)]
    pub warning: Option<Warning>,
    /// The doubt of its mixture; this and all that follows are what the expectation rests on, and were not written by earlier versions.
    #[serde(default)]
    pub doubt: Option<f64>,
    /// The bias that the fleet has in common, in log odds.
    #[serde(default)]
    pub bias: Option<f64>,
    /// The standard deviation of that bias.
    #[serde(default)]
    pub bias_deviation: Option<f64>,
    /// The standard deviation of what is a device's own.
    #[serde(default)]
    pub own_deviation: Option<f64>,
    /// How many models are mixed in effect: 1 / Σ α².
    #[serde(default)]
    pub models: Option<f64>,
    /// The number of trials at senders.
    #[serde(default)]
    pub trials_at_senders: Option<usize>,
    /// The number of trials at sources that a model was handed to.
    #[serde(default)]
    pub trials_on_routes: Option<usize>,
    /// The labels of all trials.
    #[serde(default)]
    pub trial_labels: Option<u64>,
}

impl ExpectedRow {
    /// Returns the row of a target, from what it may expect and what that rests on.
    pub fn new(
        seed: u64,
        target: String,
        expected: Expected,
        accuracy: Option<f64>,
        warning: Option<Warning>,
        basis: Basis,
    ) -> ExpectedRow {
        let Expected { accuracy: middle, low, high } = expected;
        ExpectedRow {
            seed,
            target,
            expected: middle,
            low,
            high,
            accuracy,
            warning,
            doubt: Some(basis.doubt),
            bias: Some(basis.bias),
            bias_deviation: Some(basis.bias_deviation),
            own_deviation: Some(basis.own_deviation),
            models: Some(basis.models),
            trials_at_senders: Some(basis.at_senders),
            trials_on_routes: Some(basis.on_routes),
            trial_labels: Some(basis.labels),
        }
    }

    /// What the expectation rests on; nothing in a table of an earlier version.
    pub fn basis(&self) -> Option<Basis> {
        Some(Basis {
            doubt: self.doubt?,
            bias: self.bias?,
            bias_deviation: self.bias_deviation?,
            own_deviation: self.own_deviation?,
            models: self.models?,
            at_senders: self.trials_at_senders?,
            on_routes: self.trials_on_routes?,
            labels: self.trial_labels.unwrap_or_default(),
        })
    }

    /// The expected accuracy with its interval, as the target is told; nothing where too few labels tried its models to say one.
    pub fn said(&self) -> Option<Expected> {
        let is_said = self.warning != Some(Warning::TooFewLabels);
        is_said.then_some(Expected { accuracy: self.expected, low: self.low, high: self.high })
    }

    /// Whether the accuracy is in the interval, where both are known.
    pub fn holds(&self) -> Option<bool> {
        let Expected { low, high, .. } = self.said()?;
        Some((low..=high).contains(&self.accuracy?))
    }
}

/// What one device computes for ST-LF.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ComputingRow {
    /// The seed of the repetition.
    pub seed: u64,
    /// The name of the device.
    pub device: String,
    /// The billions of floating-point operations to train its own model.
    pub training_gflop: f64,
    /// The billions of floating-point operations to train on models that it was handed.
    pub handed_gflop: f64,
    /// The billions of floating-point operations to train a student.
    pub student_gflop: f64,
    /// The energy of all these operations, in joules.
    pub joules: f64,
}

/// What one guard says of a target's student.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GuardRow {
    /// The name of the target.
    pub target: String,
    /// The name of the guard.
    pub guard: String,
    /// The score that the guard gives the student.
    pub score: f64,
    /// The score of the mixture alone.
    pub of_mixture: f64,
    /// By how much the guard asks the score to exceed the mixture's.
    #[serde(default)]
    pub threshold: Option<f64>,
    /// Whether the guard accepts the student.
    pub accepted: bool,
    /// What the student adds to the accuracy, where the truth is known.
    pub gain: Option<f64>,
}

/// How often samples of one class were given another, or the same, at one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ConfusionRow {
    /// The name of the target.
    pub target: String,
    /// The class that the samples are of.
    pub class: String,
    /// The class that it was given.
    pub given: String,
    /// The number of samples of which both are so.
    pub samples: usize,
}

/// How often one class is there, and how often it is predicted, in one seed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ClassRow {
    /// The name of the class.
    pub class: String,
    /// The labels that have it, on all devices.
    pub labels: usize,
    /// The samples of targets that are given it.
    pub predicted: usize,
    /// The samples of targets that are of it, of those whose truth is known.
    pub samples: usize,
    /// The number of these that are given it.
    pub right: usize,
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
    /// The number of devices that are sources.
    pub sources: usize,
    /// The number of links in use.
    pub links: usize,
    /// The energy of the plan, in joules.
    pub joules: Option<f64>,
    /// The energy as a share of that if every source sent to every target.
    pub energy_share: Option<f64>,
    /// The mean accuracy of the plan's targets, if it is known.
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
    /// Σ α ½ d̂ of its sources.
    pub half_divergence: f64,
    /// Σ α times how often the mixture and a source disagree here.
    pub noise: f64,
    /// The right side of Theorem 2: the three terms before.
    pub theorem_2: f64,
    /// The right side of Corollary 1, with the complexity of the published numbers.
    pub corollary_1: f64,
}

/// One hand-over between sources, or one link to a target, of ours with relays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RelayRow {
    /// The name of the sender.
    pub from: String,
    /// The name of the receiver.
    pub to: String,
    /// α, the weight of the sender's model; empty for a hand-over.
    pub weight: Option<f64>,
    /// K, the energy of the link in joules.
    pub joules: Option<f64>,
}

/// A model that a source, or an examiner, refused because its labels contradict it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RefusedRow {
    /// Whose model it is: who handed it on, or sent it to targets.
    pub from: String,
    /// Who refused it: the source that it was handed to, or the examiner.
    pub to: String,
    /// The way that the model was on; none at an examiner.
    pub way: Option<Way>,
    /// The number of labels that it was tried on.
    pub labels: u32,
    /// The number of these labels that the model gets wrong.
    pub errors: u32,
}

impl RefusedRow {
    /// Returns what the one who tried the model is told, without a full stop.
    pub fn told(&self) -> String {
        let RefusedRow { from, labels, errors, way, .. } = self;
        let wrong = format!("which gets {errors} of its {labels} labels wrong");
        match way {
            Some(_) => format!(
                "it refused the model that {from} handed to it, {wrong}, and passed on its own instead"
            ),
            None => {
                format!("as an examiner it refused the model that {from} sends to targets, {wrong}")
            }
        }
    }
}

/// One link of the plan with what it costs.
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
