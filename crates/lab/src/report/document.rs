//! `stlf-report/1`: what the report page is given.

use std::collections::BTreeMap;

use serde::Serialize;
use stlf_formats::ScaleEntry;
use stlf_planning::bound::BoundKind;
use stlf_planning::device::Role;

use crate::summary;

/// The whole page.
#[derive(Debug, Clone, Serialize)]
pub struct Document {
    /// `stlf-report/1`.
    pub format: &'static str,
    /// The heading.
    pub title: String,
    /// Of the program.
    pub version: &'static str,
    /// Present where a server answers to edits.
    pub live: Option<Live>,
    /// One, or two side by side.
    pub runs: Vec<Run>,
}

/// That a server answers to edits.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Live {}

/// One run.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    /// Its folder's name.
    pub name: String,
    /// Whether it is finished.
    pub finished: bool,
    /// Its configuration.
    pub settings: Vec<Section>,
    /// Methods side by side.
    pub summary: Vec<Line>,
    /// What measuring cost.
    pub measuring: Option<Measuring>,
    /// Names of the classes.
    pub classes: Vec<String>,
    /// One per seed.
    pub seeds: Vec<Seed>,
}

/// A section of the configuration.
#[derive(Debug, Clone, Serialize)]
pub struct Section {
    /// Empty for keys outside of any.
    pub section: String,
    /// Keys and values as TOML.
    pub keys: Vec<(String, String)>,
}

/// A method over all seeds.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// As users type it.
    pub method: String,
    /// As people write it.
    pub label: String,
    /// Share of samples given their class.
    pub accuracy: Option<Spread>,
    /// Targets of a seed.
    pub targets: Spread,
    /// Links of a seed.
    pub links: Spread,
    /// Energy of the links, and of measuring where the method needs it.
    pub joules: Spread,
    /// As a share of all links, which need no measuring: above 1 where it costs more than it saves.
    pub energy_share: Option<Spread>,
    /// Bytes sent, counted alike.
    pub bytes: Spread,
}

/// A mean over seeds with its 95 % interval.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// Half of its interval; none of a single seed.
    pub half: Option<f64>,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Spread {
    /// Of a share, whose interval cannot reach beyond 0 to 1.
    pub fn within_one(self) -> Spread {
        Spread { low: self.low.max(0.0), high: self.high.min(1.0), ..self }
    }
}

impl From<summary::Spread> for Spread {
    fn from(spread: summary::Spread) -> Spread {
        let (low, high) = spread.interval();
        let half = (spread.count > 1).then(|| spread.half_interval());
        Spread { mean: spread.mean, half, low, high }
    }
}

/// What measuring divergences cost, per seed.
#[derive(Debug, Clone, Serialize)]
pub struct Measuring {
    /// The estimator.
    pub estimator: String,
    /// All messages.
    pub bytes: f64,
    /// Their energy.
    pub joules: f64,
}

/// One seed of a run, or one problem.
#[derive(Debug, Clone, Serialize)]
pub struct Seed {
    /// The seed.
    pub seed: u64,
    /// The fleet.
    pub devices: Vec<Device>,
    /// What errors and divergences may be.
    pub scale: ScaleEntry,
    /// d̂ as a square, where the fleet is not too large for it.
    pub divergence: Option<Divergence>,
    /// Along the weight of energy.
    pub plans: Vec<Plan>,
    /// The one in use.
    pub chosen: usize,
    /// Whether sources may hand models on.
    pub hands_on: bool,
    /// Why no plan of this problem has hand-overs, where that is so.
    pub no_handovers: Option<&'static str>,
    /// Objective per iteration.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<Trace>,
    /// How targets fared under every method.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<Target>,
    /// What was taken for what.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub confusion: Vec<Confusion>,
}

/// A device.
#[derive(Debug, Clone, Serialize)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Samples with a label; none with raw costs.
    pub labeled: u64,
    /// Samples without.
    pub unlabeled: u64,
    /// ε̂.
    pub source_error: Option<f64>,
    /// Whether it may be a source.
    pub eligible: bool,
    /// A role that the user fixed.
    pub pin: Option<Role>,
}

/// Squares, row by row.
#[derive(Debug, Clone, Serialize)]
pub struct Divergence {
    /// d̂.
    pub values: Vec<Vec<Option<f64>>>,
    /// Lower ends.
    pub low: Option<Vec<Vec<Option<f64>>>>,
    /// Upper ends.
    pub high: Option<Vec<Vec<Option<f64>>>>,
}

/// A plan.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    /// φ^E.
    pub phi_e: f64,
    /// All three weights.
    pub weights: Weights,
    /// Under which bound.
    pub bound: BoundKind,
    /// `optimal` where proven, else `feasible`.
    pub status: &'static str,
    /// What it costs.
    pub objective: f64,
    /// No plan costs less.
    pub lower_bound: f64,
    /// Relative.
    pub gap: f64,
    /// By term.
    pub terms: Terms,
    /// One per device.
    pub roles: Vec<Role>,
    /// The links in use.
    pub links: Vec<Link>,
    /// Sources that train on with another source's model.
    pub handovers: Vec<Handover>,
    /// Energy of links and hand-overs.
    pub joules: f64,
    /// As a share of every source sending to every target.
    pub energy_share: Option<f64>,
    /// Mean accuracy of its targets.
    pub accuracy: Option<f64>,
    /// Why each device has its role.
    pub explanations: Option<Vec<String>>,
}

/// φ.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Weights {
    /// φ^S.
    pub source: f64,
    /// φ^T.
    pub target: f64,
    /// φ^E.
    pub energy: f64,
}

/// The objective by term.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Terms {
    /// Of the sources.
    pub source: f64,
    /// Of the targets.
    pub target: f64,
    /// Of links and hand-overs.
    pub energy: f64,
}

/// A link in use; devices by number.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Link {
    /// Sender.
    pub from: usize,
    /// Receiver.
    pub to: usize,
    /// α.
    pub weight: f64,
    /// K.
    pub joules: Option<f64>,
    /// d̂.
    pub divergence: Option<f64>,
}

/// A source's model that another source trains on; devices by number.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Handover {
    /// Whose model it is.
    pub from: usize,
    /// The source that continues training it.
    pub to: usize,
    /// K.
    pub joules: Option<f64>,
    /// d̂.
    pub divergence: Option<f64>,
}

/// A line of the chart of objectives.
#[derive(Debug, Clone, Serialize)]
pub struct Trace {
    /// What it is.
    pub name: String,
    /// One per iteration; a single one is a level.
    pub values: Vec<f64>,
    /// Whether they are costs of plans; relaxed roles make no plan, and cost less than one may.
    pub valid: bool,
}

/// A target.
#[derive(Debug, Clone, Serialize)]
pub struct Target {
    /// The device.
    pub name: String,
    /// Its samples.
    pub samples: usize,
    /// Links into it, under ours' plan.
    pub links: usize,
    /// Their energy.
    pub joules: f64,
    /// By method, for those that have it as a target.
    pub accuracies: BTreeMap<String, Option<f64>>,
}

/// What one target took for what.
#[derive(Debug, Clone, Serialize)]
pub struct Confusion {
    /// The target.
    pub target: String,
    /// Row: the class that it is; column: the class that it was given.
    pub counts: Vec<Vec<usize>>,
}
