//! Every check a problem must pass before a planner sees it.

use std::collections::{HashMap, HashSet};

use super::{
    Costs, Disagreement, ENERGY_EPSILON, EnergyUnit, Links, Measured, Model, Preset, Problem,
    Weights,
};
use crate::bound::{Bound, BoundKind, Complexity};
use crate::device::{Device, Role};
use crate::error::Error;

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
            return Err(Error::field("devices", "there are none").with_hint("list at least one"));
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
                return Err(Error::field(
                    format!("devices[{device}].role"),
                    format!("{} has no labeled data and cannot be a source", self.name(device)),
                )
                .with_hint("leave the role out, or give the device labels"));
            }
        }
        for (k, &(from, to)) in self.required.iter().enumerate() {
            if self.link_cost(from, to).is_none() {
                return Err(Error::field(
                    format!("required_links[{k}]"),
                    format!("there is no link {} → {}", self.name(from), self.name(to)),
                )
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
        Some(other) if other != role => Err(Error::field(
            at,
            format!("needs {} to be a {role}, but it is fixed as a {other}", names[device]),
        )
        .with_hint("drop one of the two")),
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
            return Err(Error::field(format!("devices[{i}].name"), "is empty"));
        }
        if let Some(first) = seen.insert(name.as_str(), i) {
            return Err(Error::field(
                format!("devices[{i}].name"),
                format!("{name:?} is also the name of devices[{first}]"),
            )
            .with_hint("names must differ"));
        }
    }
    Ok(())
}

fn check_devices(devices: &[Device]) -> Result<(), Error> {
    for (i, device) in devices.iter().enumerate() {
        let at = |field: &str| format!("devices[{i}].{field} ({})", device.name);
        match device.labeled.checked_add(device.unlabeled) {
            None => {
                return Err(Error::field(at("labeled"), "labeled + unlabeled is too large")
                    .with_hint("they count samples"));
            }
            Some(0) => {
                return Err(Error::field(at("labeled"), "the device has no samples")
                    .with_hint("labeled + unlabeled must be at least 1"));
            }
            Some(_) => {}
        }
        match device.source_error {
            None if device.labeled > 0 => {
                return Err(Error::field(at("source_error"), "is missing for a labeled device")
                    .with_hint("measure the device's own model on its own labels"));
            }
            Some(error) => non_negative(error, || at("source_error"))?,
            None => {}
        }
    }
    Ok(())
}

fn check_settings(weights: &Weights, bound: &Bound, energy_epsilon: f64) -> Result<(), Error> {
    non_negative(weights.source, || "weights.source".into())?;
    non_negative(weights.target, || "weights.target".into())?;
    non_negative(weights.energy, || "weights.energy".into())?;
    if !(bound.delta > 0.0 && bound.delta < 1.0) {
        return Err(Error::field("bound.delta", format!("{} is not between 0 and 1", bound.delta))
            .with_hint("the bound holds with probability 1 − delta; 0.001 is usual"));
    }
    // So that 2/δ is a number.
    if bound.delta < LEAST_DELTA {
        return Err(Error::field("bound.delta", format!("{:e} is too small", bound.delta))
            .with_hint("it must be at least 1e-300; 0.001 is usual"));
    }
    if let Complexity::Value(rho) = bound.complexity {
        non_negative(rho, || "bound.complexity".into())?;
    }
    if !(bound.calibration > 0.0 && bound.calibration <= 1.0) {
        let message = format!("{} is not above 0 and at most 1", bound.calibration);
        return Err(Error::field("bound.calibration", message)
            .with_hint("it is the share of half a divergence that counts; 1 is usual"));
    }
    if !(energy_epsilon.is_finite() && energy_epsilon > 0.0) {
        return Err(Error::field("energy_epsilon", format!("{energy_epsilon} is not above 0"))
            .with_hint("0.001 is usual"));
    }
    Ok(())
}

fn check_links(links: &Links, names: &[String]) -> Result<(), Error> {
    for (to, receiver) in names.iter().enumerate() {
        for link in links.incoming(to) {
            let at = |field: &str| {
                let from = link.from;
                format!("{field}[{from}][{to}] ({} → {receiver})", names[from])
            };
            if link.divergence.is_nan() {
                return Err(Error::field(at("divergence"), "is missing for a link that exists")
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
    if let Some(k) = values.iter().position(|v| !(0.0..=1.0).contains(v)) {
        let (j, rest) = (k / (n * n), k % (n * n));
        return Err(Error::field(
            format!("disagreement[{j}][{}][{}] ({})", rest / n, rest % n, names[j]),
            format!("{} is not between 0 and 1", values[k]),
        ));
    }
    Ok(Disagreement { devices: n, values })
}

fn check_costs(source: &[Option<f64>], link: &[f64], names: &[String]) -> Result<(), Error> {
    let n = names.len();
    for (i, cost) in source.iter().enumerate() {
        if let Some(cost) = *cost {
            non_negative(cost, || format!("costs.source[{i}] ({})", names[i]))?;
        }
    }
    for (k, &cost) in link.iter().enumerate() {
        let (from, to) = (k / n, k % n);
        if from != to && !cost.is_nan() {
            non_negative(cost, || {
                format!("costs.link[{from}][{to}] ({} → {})", names[from], names[to])
            })?;
        }
    }
    Ok(())
}

const LEAST_DELTA: f64 = 1e-300;

/// Far above any measurement, far below where products of two such numbers overflow.
const LARGEST: f64 = 1e100;

/// That a number is at least 0 and no more than can be calculated with; `field` says which one it is.
pub fn non_negative(value: f64, field: impl Fn() -> String) -> Result<(), Error> {
    let (message, hint) = if value.is_nan() {
        ("is not a number", "it must be at least 0")
    } else if value < 0.0 {
        ("is negative", "it must be at least 0")
    } else if value > LARGEST {
        ("is too large", "it must be at most 1e100")
    } else {
        return Ok(());
    };
    let shown = if value.abs() < 1e15 { value.to_string() } else { format!("{value:e}") };
    Err(Error::field(field(), format!("{shown} {message}")).with_hint(hint))
}
