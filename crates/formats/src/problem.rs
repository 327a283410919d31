//! `stlf-problem/1`: a fleet's measurements and what is asked of its plan.

mod from_problem;
mod into_problem;
mod scale;

use std::io;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stlf_planning::bound::{BoundKind, Complexity};
use stlf_planning::device::Role;
use stlf_planning::error::Error as ValueError;
use stlf_planning::problem::{EnergyUnit, Preset, Weights};

use super::document::{Kind, parse};
use super::{Error, LinkTable, Matrix};

pub(crate) use into_problem::device;
pub use scale::ScaleEntry;

const KIND: Kind = Kind { format: "stlf-problem/1", earlier: &[], noun: "problem" };

/// A planning problem: devices with what was measured on them, links with what they cost, and how
/// much each counts. Instead of measurements it may hold raw `costs`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schemars(title = "stlf-problem/1")]
pub struct ProblemFile {
    /// The version of this format.
    pub format: ProblemFormat,
    /// Settings under one name, for whatever of weights, complexity and energy_unit is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<PresetEntry>,
    /// The devices. With raw costs only names and roles count, and the list may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices: Option<Vec<DeviceEntry>>,
    /// How different two devices' data are, 0 to 2 (but see scale); null only where there is no link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divergence: Option<Matrix>,
    /// Joules to send a model, row = sender; null where there is no link. The diagonal is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_energy: Option<Matrix>,
    /// The links as a list, instead of the two matrices; a pair that is not listed has no link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<LinkTable>,
    /// How much errors and energy count; source 1, target 1, energy 0.05 where not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<WeightsEntry>,
    /// The generalisation bound and its settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<BoundEntry>,
    /// How small a weight still uses a whole link; 0.001 where not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_epsilon: Option<f64>,
    /// The unit in which energies enter the objective; joules where not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_unit: Option<EnergyUnitEntry>,
    /// What errors and divergences may be; `unit` where not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<ScaleEntry>,
    /// Raw costs, instead of all measurements and settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub costs: Option<CostsEntry>,
    /// Links never to be used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forbidden_links: Vec<LinkEnds>,
    /// Links that must be used: the sender becomes a source, the receiver a target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_links: Vec<LinkEnds>,
    /// For each receiver a matrix: the fraction of its data on which two devices' models disagree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disagreement: Option<Vec<Matrix>>,
}

/// The version of the problem format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ProblemFormat {
    /// The only one so far.
    #[serde(rename = "stlf-problem/1")]
    V1,
}

/// Settings under one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PresetEntry {
    /// Weights 1, 1, 0.05; no complexity; energy in mean links.
    Balanced,
    /// Weights 1, 5, 1; Massart's complexity; energy in joules.
    Paper,
}

impl From<PresetEntry> for Preset {
    fn from(preset: PresetEntry) -> Preset {
        match preset {
            PresetEntry::Balanced => Preset::Balanced,
            PresetEntry::Paper => Preset::Paper,
        }
    }
}

/// One device and what was measured on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with name, labeled, unlabeled and source_error"
)]
pub struct DeviceEntry {
    /// Its name, unlike any other's.
    pub name: String,
    /// Samples with a label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labeled: Option<u64>,
    /// The number of samples without a label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlabeled: Option<u64>,
    /// The fraction of its own data on which its own model errs, 0 to 1 (but see scale); not needed without labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_error: Option<f64>,
    /// Fixes the device's role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Whether no source is near it: then all sources count alike for it under the pooled bound.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stranger: bool,
    /// Whether the fleet wants all links to it: then all sources count alike for it, whatever their errors, under the pooled bound.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_links: bool,
    /// Whether it takes no part in hand-overs, because it is in dispute with another source about a model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_dispute: bool,
}

/// The weights of the objective's three terms, each at least 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with source, target and energy")]
pub struct WeightsEntry {
    /// φ^S, the weight of the sources' error bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<f64>,
    /// φ^T, the weight of the targets' error bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
    /// φ^E, the weight of the links' energies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<f64>,
}

impl From<Weights> for WeightsEntry {
    fn from(weights: Weights) -> WeightsEntry {
        WeightsEntry {
            source: Some(weights.source),
            target: Some(weights.target),
            energy: Some(weights.energy),
        }
    }
}

/// The generalisation bound and its settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with kind, delta, complexity and calibration")]
pub struct BoundEntry {
    /// `pooled` (where not given): a target may have several sources. `paper`: one source is always best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<BoundKind>,
    /// The bound holds with probability 1 − delta; 0.001 where not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// The Rademacher complexity; `none` where not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complexity: Option<ComplexityEntry>,
    /// The share of half a divergence that counts, above 0 and at most 1; 1 where not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<f64>,
}

/// A complexity: a number, or one of two names.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "is neither a number nor \"massart\" nor \"none\"")]
pub enum ComplexityEntry {
    /// Any number of at least 0.
    Number(f64),
    /// One of the named complexities.
    Name(ComplexityName),
}

/// A complexity by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ComplexityName {
    /// √(2 ln 2), by Massart's lemma.
    Massart,
    /// 0: the complexity term is left out.
    None,
}

impl From<ComplexityEntry> for Complexity {
    fn from(entry: ComplexityEntry) -> Complexity {
        match entry {
            ComplexityEntry::Number(rho) => Complexity::Value(rho),
            ComplexityEntry::Name(ComplexityName::Massart) => Complexity::Massart,
            ComplexityEntry::Name(ComplexityName::None) => Complexity::None,
        }
    }
}

impl From<Complexity> for ComplexityEntry {
    fn from(complexity: Complexity) -> ComplexityEntry {
        match complexity {
            Complexity::Value(rho) => ComplexityEntry::Number(rho),
            Complexity::Massart => ComplexityEntry::Name(ComplexityName::Massart),
            Complexity::None => ComplexityEntry::Name(ComplexityName::None),
        }
    }
}

/// The unit in which energies enter the objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EnergyUnitEntry {
    /// Joules, as given.
    Joules,
    /// Divided by the mean over the links of all devices with labels, forbidden ones included.
    MeanLink,
}

impl From<EnergyUnitEntry> for EnergyUnit {
    fn from(unit: EnergyUnitEntry) -> EnergyUnit {
        match unit {
            EnergyUnitEntry::Joules => EnergyUnit::Joules,
            EnergyUnitEntry::MeanLink => EnergyUnit::MeanLink,
        }
    }
}

impl From<EnergyUnit> for EnergyUnitEntry {
    fn from(unit: EnergyUnit) -> EnergyUnitEntry {
        match unit {
            EnergyUnit::Joules => EnergyUnitEntry::Joules,
            EnergyUnit::MeanLink => EnergyUnitEntry::MeanLink,
        }
    }
}

/// Raw costs: facility location as such.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with source and link")]
pub struct CostsEntry {
    /// What each device costs as a source; null where it cannot be one.
    pub source: Vec<Option<f64>>,
    /// What serving a receiver from a sender costs, row = sender; null where there is no link.
    pub link: Matrix,
}

/// A link by its two ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with from and to")]
pub struct LinkEnds {
    /// The name of the sender.
    pub from: String,
    /// The name of the receiver.
    pub to: String,
}

/// Settings that replace a problem's own.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Overrides {
    /// Replaces weights, complexity and energy unit.
    pub preset: Option<PresetEntry>,
    /// Replaces each weight that is given.
    pub weights: WeightsEntry,
    /// Replaces the kind of bound.
    pub bound: Option<BoundKind>,
}

impl ProblemFile {
    /// Reads a problem.
    ///
    /// # Errors
    /// Says what is wrong, where, and what to do about it.
    pub fn read(bytes: &[u8]) -> Result<ProblemFile, Error> {
        parse(&KIND, || Ok(serde_json::Deserializer::from_slice(bytes)))
    }

    /// Reads a problem too large to hold as text. `open` starts from the beginning; it is called
    /// again to find out what is wrong with a bad file.
    ///
    /// # Errors
    /// As [`ProblemFile::read`].
    pub fn read_from<R: io::Read>(
        mut open: impl FnMut() -> io::Result<R>,
    ) -> Result<ProblemFile, Error> {
        parse(&KIND, || {
            let reader =
                open().map_err(|e| ValueError::other("file", format!("cannot be read: {e}")))?;
            Ok(serde_json::Deserializer::from_reader(io::BufReader::with_capacity(1 << 18, reader)))
        })
    }

    /// Replaces weights, complexity and energy unit by those of a preset.
    pub fn set_preset(&mut self, preset: PresetEntry) {
        self.preset = Some(preset);
        self.weights = None;
        self.energy_unit = None;
        if let Some(bound) = &mut self.bound {
            bound.complexity = None;
        }
    }

    /// Replaces what is given.
    pub fn set(&mut self, overrides: &Overrides) {
        if let Some(preset) = overrides.preset {
            self.set_preset(preset);
        }
        let WeightsEntry { source, target, energy } = overrides.weights;
        if source.or(target).or(energy).is_some() {
            let own = self.weights.get_or_insert_default();
            own.source = source.or(own.source);
            own.target = target.or(own.target);
            own.energy = energy.or(own.energy);
        }
        if let Some(kind) = overrides.bound {
            self.bound.get_or_insert_default().kind = Some(kind);
        }
    }

    /// Whether the file says which bound to use.
    pub fn bound_kind(&self) -> Option<BoundKind> {
        self.bound.and_then(|bound| bound.kind)
    }
}
