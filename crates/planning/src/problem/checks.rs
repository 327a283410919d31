//! Every check a problem must pass before a planner sees it.

use std::collections::{HashMap, HashSet};
use std::ops::Bound::{Excluded, Included};

use super::{
    Costs, Disagreement, ENERGY_EPSILON, EnergyUnit, Links, Measured, Model, Preset, Problem,
    Weights,
};
use crate::bound::{Bound, BoundKind, Complexity};
use crate::device::{Device, Role};
use crate::error::{Error, Field, Range, Reason};

/// What a problem is made of, unchecked.
#[derive(Debug, Clone)]
pub struct Parts {
    /// The devices; with raw costs only their names count.
    pub devices: Vec<Device>,
    /// What costs are computed from: measurements, or raw costs.
    pub source: Source,
    /// A role per device that the user fixed.
    pub pins: Vec<Option<Role>>,
    /// Links never to be used, as (sender, receiver).
    pub forbidden: Vec<(usize, usize)>,
    /// Links that must be used, as (sender, receiver).
    pub required: Vec<(usize, usize)>,
}

impl Parts {
    /// Measurements with the usual settings: every link may be used, no device is pinned, and a preset gives ρ and the unit of energy.
    pub fn measured(
        devices: Vec<Device>,
        links: Links,
        preset: Preset,
        weights: Weights,
        kind: BoundKind,
    ) -> Parts {
        let complexity = preset.complexity();
        Parts {
            pins: vec![None; devices.len()],
            devices,
            source: Source::Measured {
                links,
                weights,
                bound: Bound { kind, complexity, ..Bound::default() },
                energy_epsilon: ENERGY_EPSILON,
                energy_unit: preset.energy_unit(),
                disagreement: None,
            },
            forbidden: Vec::new(),
            required: Vec::new(),
        }
    }

    /// Returns the same parts where this share of ½ d̂ counts ([`Bound::calibration`]).
    #[must_use]
    pub fn calibrated(mut self, calibration: f64) -> Parts {
        if let Source::Measured { bound, .. } = &mut self.source {
            bound.calibration = calibration;
        }
        self
    }
}

/// What the costs of a plan are computed from.
#[derive(Debug, Clone)]
pub enum Source {
    /// The bound turns measurements into costs.
    Measured {
        /// d̂ and K of every link.
        links: Links,
        /// φ, the weights of the objective's terms.
        weights: Weights,
        /// δ, ρ and the kind of bound.
        bound: Bound,
        /// ε_E of the energy term, above 0.
        energy_epsilon: f64,
        /// The unit of K in the objective.
        energy_unit: EnergyUnit,
        /// How often two models differ on a receiver's data, as `[receiver][k][i]`.
        disagreement: Option<Vec<f64>>,
    },
    /// f_i, and c_ij with row = sender and NaN for no link.
    Costs {
        /// f_i, or `None` where device i cannot be a source.
        source: Vec<Option<f64>>,
        /// c_ij with row = sender, NaN where there is no link.
        link: Vec<f64>,
    },
}

impl Problem {
    /// Checks the parts and puts them together.
    ///
    /// # Errors
    /// Names the first field (and device) that cannot be used.
    pub fn new(parts: Parts) -> Result<Problem, Error> {
        let Parts { devices, source, mut pins, forbidden, mut required } = parts;
        // Who asks for a link twice wants it once.
        let mut seen = HashSet::with_capacity(required.len());
        required.retain(|&link| seen.insert(link));
        let n = devices.len();
        if n == 0 {
            return Err(Error::missing("devices", "there are none").with_hint("list at least one"));
        }
        let names: Vec<String> = devices.iter().map(|d| d.name.clone()).collect();
        check_names(&names)?;
        let model = match source {
            Source::Measured {
                mut links,
                weights,
                bound,
                energy_epsilon,
                energy_unit,
                disagreement,
            } => {
                check_devices(&devices)?;
                check_settings(&weights, &bound, energy_epsilon)?;
                check_links(&links, &names)?;
                // Before anything is forbidden or pinned, so that neither changes the unit.
                let mean_link = links.mean_energy(|from| devices[from].labeled > 0);
                let mut removed = Vec::new();
                for &(from, to) in &forbidden {
                    removed.extend(links.get(from, to).map(|link| (link, to)));
                    links.remove(from, to);
                }
                let disagreement =
                    disagreement.map(|v| check_disagreement(v, &names)).transpose()?;
                let sender = super::senders(&devices, &bound);
                Model::Measured(Box::new(Measured {
                    devices,
                    links,
                    forbidden: removed,
                    weights,
                    bound,
                    energy_epsilon,
                    energy_unit,
                    mean_link,
                    sender,
                    disagreement,
                    strangers: Vec::new(),
                    all_alike: Vec::new(),
                    in_dispute: Vec::new(),
                }))
            }
            Source::Costs { source, mut link } => {
                check_costs(&source, &link, &names)?;
                super::links::transpose(n, &mut link);
                for &(from, to) in &forbidden {
                    link[to * n + from] = f64::NAN;
                }
                Model::Costs(Costs { source, link })
            }
        };
        for (k, &(from, to)) in required.iter().enumerate() {
            let at = format!("required_links[{k}]");
            fix(&mut pins, &names, from, Role::Source, &at)?;
            fix(&mut pins, &names, to, Role::Target, &at)?;
        }
        let problem = Problem { names, pins, required, model };
        problem.check_pins()?;
        Ok(problem)
    }

    fn check_pins(&self) -> Result<(), Error> {
        for device in 0..self.len() {
            if self.pins[device] == Some(Role::Source) && !self.eligible(device) {
                let reason = Reason::NoLabels { device: self.name(device).to_owned() };
                return Err(Error::new(format!("devices[{device}].role"), reason)
                    .with_hint("leave the role out, or give the device labels"));
            }
        }
        for (k, &(from, to)) in self.required.iter().enumerate() {
            if self.link_cost(from, to).is_none() {
                let [from, to] = [from, to].map(|device| self.name(device).to_owned());
                let reason = Reason::NoLink { from, to };
                return Err(Error::new(format!("required_links[{k}]"), reason)
                    .with_hint("a required link must exist and not be forbidden"));
            }
        }
        Ok(())
    }
}

fn fix(
    pins: &mut [Option<Role>],
    names: &[String],
    device: usize,
    role: Role,
    at: &str,
) -> Result<(), Error> {
    match pins[device] {
        Some(fixed) if fixed != role => {
            let device = names[device].clone();
            let reason = Reason::TwoRoles { device, needed: role, fixed };
            Err(Error::new(at, reason).with_hint("drop one of the two"))
        }
        _ => {
            pins[device] = Some(role);
            Ok(())
        }
    }
}

fn check_names(names: &[String]) -> Result<(), Error> {
    let mut seen = HashMap::with_capacity(names.len());
    for (i, name) in names.iter().enumerate() {
        if name.trim().is_empty() {
            return Err(Error::missing(format!("devices[{i}].name"), "is empty"));
        }
        if let Some(first) = seen.insert(name.as_str(), i) {
            let reason = Reason::SameName { name: name.clone(), first };
            return Err(
                Error::new(format!("devices[{i}].name"), reason).with_hint("names must differ")
            );
        }
    }
    Ok(())
}

fn check_devices(devices: &[Device]) -> Result<(), Error> {
    for (i, device) in devices.iter().enumerate() {
        let at =
            |field: &str| Field::of_device(format!("devices[{i}].{field}"), device.name.clone());
        let &Device { labeled, unlabeled, .. } = device;
        match labeled.checked_add(unlabeled) {
            None => {
                let reason = Reason::TooManySamples { labeled, unlabeled };
                return Err(Error::new(at("labeled"), reason).with_hint("they count samples"));
            }
            Some(0) => {
                return Err(Error::no_samples(at("labeled"), "the device has no samples")
                    .with_hint("labeled + unlabeled must be at least 1"));
            }
            Some(_) => {}
        }
        match device.source_error {
            None if device.labeled > 0 => {
                return Err(Error::missing(at("source_error"), "is missing for a labeled device")
                    .with_hint("measure the device's own model on its own labels"));
            }
            Some(error) => non_negative(error, || at("source_error"))?,
            None => {}
        }
    }
    Ok(())
}

fn check_settings(weights: &Weights, bound: &Bound, energy_epsilon: f64) -> Result<(), Error> {
    non_negative(weights.source, || "weights.source")?;
    non_negative(weights.target, || "weights.target")?;
    non_negative(weights.energy, || "weights.energy")?;
    let delta = |range: Range| range.check(bound.delta, || "bound.delta");
    delta(Range::BETWEEN_ZERO_AND_ONE)
        .map_err(|e| e.with_hint("the bound holds with probability 1 − delta; 0.001 is usual"))?;
    delta(LARGE_DELTA).map_err(|e| e.with_hint("it must be at least 1e-300; 0.001 is usual"))?;
    if let Complexity::Value(rho) = bound.complexity {
        non_negative(rho, || "bound.complexity")?;
    }
    Range::SHARE_ABOVE_ZERO
        .check(bound.calibration, || "bound.calibration")
        .map_err(|e| e.with_hint("it is the share of half a divergence that counts; 1 is usual"))?;
    Range::ABOVE_ZERO
        .check(energy_epsilon, || "energy_epsilon")
        .map_err(|e| e.with_hint("0.001 is usual"))
}

fn check_links(links: &Links, names: &[String]) -> Result<(), Error> {
    for (to, receiver) in names.iter().enumerate() {
        for link in links.incoming(to) {
            let at = |field: &str| {
                let from = link.from;
                let path = format!("{field}[{from}][{to}]");
                Field::of_link(path, names[from].clone(), receiver.clone())
            };
            if link.divergence.is_nan() {
                return Err(Error::missing(at("divergence"), "is missing for a link that exists")
                    .with_hint("give a number, or make the link's energy null"));
            }
            non_negative(link.divergence, || at("divergence"))?;
            non_negative(link.energy, || at("link_energy"))?;
        }
    }
    Ok(())
}

fn check_disagreement(values: Vec<f64>, names: &[String]) -> Result<Disagreement, Error> {
    let n = names.len();
    for (k, &value) in values.iter().enumerate() {
        Range::SHARE.check(value, || {
            let (j, rest) = (k / (n * n), k % (n * n));
            let path = format!("disagreement[{j}][{}][{}]", rest / n, rest % n);
            Field::of_device(path, names[j].clone())
        })?;
    }
    Ok(Disagreement { devices: n, values })
}

fn check_costs(source: &[Option<f64>], link: &[f64], names: &[String]) -> Result<(), Error> {
    let n = names.len();
    for (i, cost) in source.iter().enumerate() {
        if let Some(cost) = *cost {
            non_negative(cost, || {
                Field::of_device(format!("costs.source[{i}]"), names[i].clone())
            })?;
        }
    }
    for (k, &cost) in link.iter().enumerate() {
        let (from, to) = (k / n, k % n);
        if from != to && !cost.is_nan() {
            non_negative(cost, || {
                let path = format!("costs.link[{from}][{to}]");
                Field::of_link(path, names[from].clone(), names[to].clone())
            })?;
        }
    }
    Ok(())
}

/// With a smaller δ, 2/δ is no number.
const LARGE_DELTA: Range = Range::new(Included(1e-300), Excluded(1.0));

/// That a number is at least 0 and no more than can be calculated with; `field` says which one it is.
///
/// # Errors
/// It is not, with a hint of what it must be.
pub fn non_negative<F: Into<Field>>(value: f64, field: impl FnOnce() -> F) -> Result<(), Error> {
    let hint = match value > 0.0 {
        true => "it must be at most 1e100",
        false => "it must be at least 0",
    };
    Range::NOT_NEGATIVE.check(value, field).map_err(|e| e.with_hint(hint))
}
