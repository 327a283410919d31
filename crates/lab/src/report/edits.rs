//! "What if": a problem with some of its measurements and settings changed, planned at once.

use std::ops::Bound::{Included, Unbounded};

use serde::{Deserialize, Deserializer};
use stlf_formats::{ProblemFile, ScaleEntry, WeightsEntry};
use stlf_planning::Problem;
use stlf_planning::Role;
use stlf_planning::bound::BoundKind;
use stlf_planning::error::{Error as ValueError, Field, Named, Range, Reason};
use stlf_planning::planner::Observer;
use stlf_planning::planner::handover::refusal;
use stlf_planning::problem::Link;

use super::build::{devices, divergence};
use super::document::Seed;
use super::explained;
use super::planning::{planned, settings};
use crate::Error;

/// Everything that differs from the problem as it was.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Edits {
    /// The seed whose problem is edited; the first one if not given.
    pub seed: Option<u64>,
    /// The weights φ that the problem gets.
    pub weights: Option<WeightsEntry>,
    /// The bound under which the problem is planned.
    pub bound: Option<BoundKind>,
    /// Whether sources may hand models on.
    pub handovers: Option<bool>,
    /// The devices about which something differs.
    pub devices: Vec<DeviceEdit>,
    /// The links about which something differs.
    pub links: Vec<LinkEdit>,
}

/// What differs about a device; what is left out stays.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceEdit {
    /// The name of the device.
    pub name: String,
    /// The number of samples with a label.
    pub labeled: Option<u64>,
    /// The number of samples without a label.
    pub unlabeled: Option<u64>,
    /// ε̂, the error of its own model, 0 to 1.
    pub source_error: Option<f64>,
    /// A fixed role; null frees it.
    #[serde(default, deserialize_with = "given")]
    pub pin: Option<Option<Role>>,
}

/// What differs about a link; what is left out stays.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkEdit {
    /// The name of the sender.
    pub from: String,
    /// The name of the receiver.
    pub to: String,
    /// d̂ of the two devices, 0 to 2.
    pub divergence: Option<f64>,
    /// K, the energy of the link in joules.
    pub energy: Option<f64>,
    /// Whether the link may never be used.
    #[serde(default)]
    pub forbidden: bool,
}

/// Tells a field that is null from one that is left out.
fn given<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Option<Role>>, D::Error> {
    Option::deserialize(input).map(Some)
}

/// The problem with these edits.
///
/// # Errors
/// Names the device or link that is not there, or the value out of its range.
pub fn apply(file: &ProblemFile, edits: &Edits) -> Result<Problem, Error> {
    let mut file = file.clone();
    if let Some(weights) = edits.weights {
        let mut all = file.weights.unwrap_or_default();
        all.source = weights.source.or(all.source);
        all.target = weights.target.or(all.target);
        all.energy = weights.energy.or(all.energy);
        file.weights = Some(all);
    }
    if let Some(kind) = edits.bound {
        file.bound.get_or_insert_default().kind = Some(kind);
    }
    for edit in &edits.devices {
        let devices = file.devices.as_deref_mut().unwrap_or_default();
        let device = devices.iter_mut().find(|device| device.name == edit.name);
        let device = device.ok_or_else(|| unknown("devices", &edit.name))?;
        device.labeled = edit.labeled.or(device.labeled);
        device.unlabeled = edit.unlabeled.or(device.unlabeled);
        device.source_error = edit.source_error.or(device.source_error);
        if device.labeled == Some(0) {
            device.source_error = None;
        }
        if let Some(pin) = edit.pin {
            device.role = pin;
        }
    }
    let scale = file.scale.unwrap_or_default();
    let mut problem = file.into_problem(None)?;
    for edit in &edits.links {
        let place = |name: &str| problem.find(name).ok_or_else(|| unknown("links", name));
        let (from, to) = (place(&edit.from)?, place(&edit.to)?);
        problem = change_link(&problem, edit, scale, from, to)?;
    }
    Ok(problem)
}

fn change_link(
    problem: &Problem,
    edit: &LinkEdit,
    scale: ScaleEntry,
    from: usize,
    to: usize,
) -> Result<Problem, Error> {
    let field = |path: &str| Field::of_link(path, edit.from.clone(), edit.to.clone());
    let stlf_planning::problem::Model::Measured(measured) = problem.model() else {
        let message = "raw costs have no measured links";
        return Err(ValueError::conflict(field("links"), "costs", message).into());
    };
    if edit.forbidden {
        return Ok(problem.clone().without_link(from, to));
    }
    let Some(known) = measured.links.get(from, to) else {
        let reason = Reason::NoLink { from: edit.from.clone(), to: edit.to.clone() };
        return Err(ValueError::new("links", reason).into());
    };
    for (what, value) in [("divergence", edit.divergence), ("energy", edit.energy)] {
        if let Some(value) = value {
            let range = Range::new(Included(0.0), Unbounded);
            range.check(value, || field(&format!("links.{what}")))?;
        }
    }
    if let Some(divergence) = edit.divergence {
        scale.check_divergence(divergence, || field("links.divergence"))?;
    }
    let link = Link {
        from,
        divergence: edit.divergence.unwrap_or(known.divergence),
        energy: edit.energy.unwrap_or(known.energy),
    };
    Ok(problem.with_link(link, to))
}

fn unknown(field: &str, name: &str) -> Error {
    let (what, given) = (Named::Device, name.to_owned());
    ValueError::new(field, Reason::Unknown { what, given, meant: None }).into()
}

/// A device of the edited problem, about which everything is asked.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The name of the device.
    pub device: String,
    /// What differs from the problem as it was.
    #[serde(default)]
    pub edits: Edits,
}

/// What came second for a device, and what would change its role and links, one sentence a line; `None` if `observer` ended the search.
///
/// # Errors
/// As [`answer`], and where there is no such device.
pub fn explain(
    file: &ProblemFile,
    question: &Question,
    hands_on: bool,
    observer: &mut Observer<'_>,
) -> Result<Option<String>, Error> {
    let problem = apply(file, &question.edits)?;
    let device = problem.find(&question.device);
    let device = device.ok_or_else(|| unknown("device", &question.device))?;
    let seed = question.edits.seed.unwrap_or_default();
    let settings = settings(question.edits.handovers.unwrap_or(hands_on));
    let plan = planned(&problem, seed, &settings, observer)?;
    Ok(explained::further(&problem, &plan, device, observer).map(|lines| lines.join("\n")))
}

/// The edited problem, planned as well as the planner can or as far as `observer` lets it, as the page shows it. `hands_on` says whether
/// sources may hand models on where the edits do not.
///
/// # Errors
/// As [`apply`], where no plan exists, and where the edits ask for hand-overs that the problem cannot have.
pub fn answer(
    file: &ProblemFile,
    edits: &Edits,
    hands_on: bool,
    observer: &mut Observer<'_>,
) -> Result<Seed, Error> {
    let seed = edits.seed.unwrap_or_default();
    let problem = apply(file, edits)?;
    let no_handovers = refusal(&problem);
    if let (Some(true), Some(reason)) = (edits.handovers, no_handovers) {
        return Err(ValueError::conflict("handovers", "bound", reason).into());
    }
    let hands_on = edits.handovers.unwrap_or(hands_on);
    let plan = planned(&problem, seed, &settings(hands_on), observer)?;
    Ok(Seed {
        seed,
        devices: devices(&problem),
        scale: file.scale.unwrap_or_default(),
        divergence: divergence(&problem, None),
        plans: vec![explained::plan(&problem, &plan, true, observer)],
        chosen: 0,
        hands_on,
        no_handovers,
        traces: Vec::new(),
        targets: Vec::new(),
        confusion: Vec::new(),
    })
}
