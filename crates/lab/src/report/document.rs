//! `stlf-report/1`: what the report page is given.

use std::collections::BTreeMap;

use serde::Serialize;
use stlf_formats::ScaleEntry;
use stlf_planning::bound::BoundKind;
use stlf_planning::device::Role;

use crate::summary;

/// Everything that the page shows, as its scripts read it.
#[derive(Debug, Clone, Serialize)]
pub struct Document {
    /// The format's name and version, `stlf-report/1`.
    pub format: &'static str,
    /// The heading of the page.
    pub title: String,
    /// The version of the program that made the page.
    pub version: &'static str,
    /// Present where a server answers to edits.
    pub live: Option<Live>,
    /// One, or two side by side.
    pub runs: Vec<Run>,
}

/// That a server answers to edits.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Live {}

/// One run, plan or problem on the page.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    /// The name of the run's folder, or of the file that is shown.
    pub name: String,
    /// Whether the run is finished.
    pub finished: bool,
    /// The configuration of the run, by section.
    pub settings: Vec<Section>,
    /// The methods side by side, one line for each.
    pub summary: Vec<Line>,
    /// What measuring divergences cost, where that is known.
    pub measuring: Option<Measuring>,
    /// The names of the classes.
    pub classes: Vec<String>,
    /// The results of each seed.
    pub seeds: Vec<Seed>,
}

/// A section of the configuration, with its keys.
#[derive(Debug, Clone, Serialize)]
pub struct Section {
    /// Empty for keys outside of any.
    pub section: String,
    /// The keys of the section and their values, written as TOML.
    pub keys: Vec<(String, String)>,
}

/// The results of a method over all seeds.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// The name of the method as users type it.
    pub method: String,
    /// The name of the method as people read it.
    pub label: String,
    /// Share of samples given their class.
    pub accuracy: Option<Spread>,
    /// The number of targets of a seed.
    pub targets: Spread,
    /// The number of links of a seed.
    pub links: Spread,
    /// Energy of the links, and of measuring where the method needs it.
    pub joules: Spread,
    /// As a share of all links, which need no measuring: above 1 where it costs more than it saves.
    pub energy_share: Option<Spread>,
    /// The bytes of a seed, with measuring where the method needs it.
    pub bytes: Spread,
}

/// A mean over seeds with its 95 % interval.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Spread {
    /// The mean over seeds.
    pub mean: f64,
    /// Half of its interval; none of a single seed.
    pub half: Option<f64>,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Spread {
    /// Returns a share whose interval does not reach beyond 0 to 1.
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
    /// The name of the estimator.
    pub estimator: String,
    /// The bytes of all messages of a seed.
    pub bytes: f64,
    /// The energy of all messages, in joules.
    pub joules: f64,
    /// What protects the samples behind what was published, in a sentence.
    pub protection: String,
}

/// One seed of a run, or one problem.
#[derive(Debug, Clone, Serialize)]
pub struct Seed {
    /// The seed of the repetition.
    pub seed: u64,
    /// The devices of the fleet.
    pub devices: Vec<Device>,
    /// What errors and divergences may be.
    pub scale: ScaleEntry,
    /// d̂ as a square, where the fleet is not too large for it.
    pub divergence: Option<Divergence>,
    /// The plans for several weights of energy, the one in use among them.
    pub plans: Vec<Plan>,
    /// The index of the plan in use.
    pub chosen: usize,
    /// Whether sources may hand models on.
    pub hands_on: bool,
    /// Why no plan of this problem has hand-overs, where that is so.
    pub no_handovers: Option<&'static str>,
    /// The objective per iteration, by solver.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<Trace>,
    /// How targets fared under every method.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<Target>,
    /// How often each target took one class for another.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub confusion: Vec<Confusion>,
}

/// A device of the fleet.
#[derive(Debug, Clone, Serialize)]
pub struct Device {
    /// The name of the device.
    pub name: String,
    /// Samples with a label; none with raw costs.
    pub labeled: u64,
    /// The number of samples without a label.
    pub unlabeled: u64,
    /// ε̂, the error of its own model, 0 to 1.
    pub source_error: Option<f64>,
    /// Whether it may be a source.
    pub eligible: bool,
    /// A role that the user fixed.
    pub pin: Option<Role>,
    /// What it is told of its own model, if that is no better than guessing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guessing: Option<String>,
}

/// The divergences of all pairs of devices as square tables, row by row.
#[derive(Debug, Clone, Serialize)]
pub struct Divergence {
    /// d̂ of each pair, 0 to 2.
    pub values: Vec<Vec<Option<f64>>>,
    /// The lower ends of the intervals.
    pub low: Option<Vec<Vec<Option<f64>>>>,
    /// The upper ends of the intervals.
    pub high: Option<Vec<Vec<Option<f64>>>>,
}

/// A plan as the page shows it.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    /// φ^E, the weight of energy in this plan.
    pub phi_e: f64,
    /// The weights of all three terms.
    pub weights: Weights,
    /// The bound under which it was planned.
    pub bound: BoundKind,
    /// `optimal` where proven, else `feasible`.
    pub status: &'static str,
    /// The objective of the plan, which is its cost.
    pub objective: f64,
    /// A value that no plan's objective can be below.
    pub lower_bound: f64,
    /// The relative gap, 0 if proven optimal.
    pub gap: f64,
    /// The terms that add up to the objective.
    pub terms: Terms,
    /// The role of each device, in the order of the devices.
    pub roles: Vec<Role>,
    /// The links in use.
    pub links: Vec<Link>,
    /// Sources that train on with another source's model.
    pub handovers: Vec<Handover>,
    /// The energy of links and hand-overs, in joules.
    pub joules: f64,
    /// The energy as a share of that if every source sent to every target.
    pub energy_share: Option<f64>,
    /// The mean accuracy of the plan's targets, if it is known.
    pub accuracy: Option<f64>,
    /// Why each device has its role.
    pub explanations: Option<Vec<String>>,
    /// Whether they say what came second and what would change the choice.
    pub in_full: bool,
}

/// The weights φ of the objective's terms.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Weights {
    /// φ^S, the weight of the sources' bounds.
    pub source: f64,
    /// φ^T, the weight of the targets' bounds.
    pub target: f64,
    /// φ^E, the weight of energy.
    pub energy: f64,
}

/// The terms of the objective, each with its φ.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Terms {
    /// The term of the sources' bounds.
    pub source: f64,
    /// The term of the targets' bounds.
    pub target: f64,
    /// The term of the energy, of links and hand-overs.
    pub energy: f64,
}

/// A link in use; devices by number.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Link {
    /// The index of the sender.
    pub from: usize,
    /// The index of the receiver.
    pub to: usize,
    /// α, the weight of the sender's model.
    pub weight: f64,
    /// K, the energy of the link in joules.
    pub joules: Option<f64>,
    /// d̂ of the two devices, 0 to 2.
    pub divergence: Option<f64>,
}

/// A source's model that another source trains on; devices by number.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Handover {
    /// The index of the source whose model it is.
    pub from: usize,
    /// The source that continues training it.
    pub to: usize,
    /// K, the energy of the link in joules.
    pub joules: Option<f64>,
    /// d̂ of the two devices, 0 to 2.
    pub divergence: Option<f64>,
}

/// A line of the chart of objectives.
#[derive(Debug, Clone, Serialize)]
pub struct Trace {
    /// The name of the curve.
    pub name: String,
    /// The objective after each iteration; a single value is a level.
    pub values: Vec<f64>,
    /// Whether they are costs of plans; relaxed roles make no plan, and cost less than one may.
    pub valid: bool,
}

/// A target and its results under all methods.
#[derive(Debug, Clone, Serialize)]
pub struct Target {
    /// The name of the device.
    pub name: String,
    /// The number of its samples.
    pub samples: usize,
    /// Links into it, under ST-LF's plan.
    pub links: usize,
    /// The energy of its links, in joules.
    pub joules: f64,
    /// The accuracy by method, for the methods that have it as a target.
    pub accuracies: BTreeMap<String, Option<f64>>,
    /// The accuracy that it may expect under ST-LF's plan without any label: the lower end of the interval, the middle, the upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<[f64; 3]>,
    /// What came of its student under ST-LF's plan, where targets train any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub student: Option<String>,
    /// What that student took in computing, in billions of floating-point operations, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub student_gflop: Option<f64>,
    /// The energy of that in joules, where computing has a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub student_joules: Option<f64>,
}

/// What one target took for what.
#[derive(Debug, Clone, Serialize)]
pub struct Confusion {
    /// The name of the target.
    pub target: String,
    /// Row: the class that it is; column: the class that it was given.
    pub counts: Vec<Vec<usize>>,
}
