//! The planning problem (P) in its well-posed form: devices, links, weights, pins.

mod checks;
mod costs;
mod links;
mod strangers;

pub use checks::{Parts, Source};
pub use costs::{Costs, LinkCost};
pub use links::{Link, Links};
pub(crate) use strangers::is_far;
pub use strangers::{FAR, Strangers};

pub use checks::non_negative;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::bound::{Bound, BoundKind, Complexity};
use crate::device::{Device, Role};

/// The weights φ^S, φ^T and φ^E of the objective's terms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// φ^S, before the sources' bounds S_i.
    pub source: f64,
    /// φ^T, before the targets' bounds T_j.
    pub target: f64,
    /// φ^E, before the link energies K_ij.
    pub energy: f64,
}

/// The unit in which K_ij enters the objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EnergyUnit {
    /// The joules of a link, as given.
    #[default]
    Joules,
    /// Divided by the mean over the links of all devices with labels, the others being of no use, so
    /// that an average link costs φ^E. Forbidden links and fixed roles change nothing about it.
    MeanLink,
}

/// The default of ε_E of `eq:def_E_i`: so small that any weight uses a whole link.
pub const ENERGY_EPSILON: f64 = 1e-3;

/// A set of settings under one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// φ = (1, 1, 0.05), ρ = 0, energy in mean links: errors, divergences and links of one magnitude.
    Balanced,
    /// φ = (1, 5, 1), ρ = √(2 ln 2), energy in joules.
    Paper,
}

impl Preset {
    /// Returns the preset's φ^S, φ^T and φ^E.
    pub fn weights(self) -> Weights {
        match self {
            Preset::Balanced => Weights { source: 1.0, target: 1.0, energy: 0.05 },
            Preset::Paper => Weights { source: 1.0, target: 5.0, energy: 1.0 },
        }
    }

    /// Returns the preset's ρ, the complexity of the hypothesis class.
    pub fn complexity(self) -> Complexity {
        match self {
            Preset::Balanced => Complexity::None,
            Preset::Paper => Complexity::Massart,
        }
    }

    /// Returns the unit in which the preset counts K_ij, the energy of a link.
    pub fn energy_unit(self) -> EnergyUnit {
        match self {
            Preset::Balanced => EnergyUnit::MeanLink,
            Preset::Paper => EnergyUnit::Joules,
        }
    }
}

/// How often two sources' models disagree on a target's data, for the noise term of `T_ij`.
#[derive(Debug, Clone, PartialEq)]
pub struct Disagreement {
    pub(crate) devices: usize,
    /// How often models k and i disagree at a receiver, as `[receiver][k][i]`, row-major.
    pub(crate) values: Vec<f64>,
}

impl Disagreement {
    /// mean over `receiver`'s data of |h_k − h_i|.
    pub fn at(&self, receiver: usize, k: usize, i: usize) -> f64 {
        self.values[(receiver * self.devices + k) * self.devices + i]
    }
}

/// What devices and links cost, from measurements or given outright.
#[derive(Debug, Clone, PartialEq)]
pub enum Model {
    /// Errors, divergences and energies, turned into costs by the bound.
    Measured(Box<Measured>),
    /// Raw costs: facility location as such.
    Costs(Costs),
}

/// Measurements and the settings that weigh them.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The devices with what was measured on each, in file order.
    pub devices: Vec<Device>,
    /// d̂_ij and K_ij of every usable link.
    pub links: Links,
    /// Forbidden links as they were measured, each with its receiver: they count in the mean.
    pub forbidden: Vec<(Link, usize)>,
    /// φ, the weights of the objective's terms.
    pub weights: Weights,
    /// The settings of the bound: its kind, δ, ρ and the calibration.
    pub bound: Bound,
    /// ε_E of `eq:def_E_i`, above 0, which makes a link's energy a smooth function of its weight.
    pub energy_epsilon: f64,
    /// The unit of K_ij in the objective.
    pub energy_unit: EnergyUnit,
    /// The mean of [`EnergyUnit::MeanLink`], and of how many links.
    pub(crate) mean_link: (f64, usize),
    /// [`Bound::sender`] of every device, infinite without labels: each link needs it.
    pub(crate) sender: Vec<f64>,
    /// The disagreement of models, for the noise term, which only the successive planner uses.
    pub disagreement: Option<Disagreement>,
    /// Whether no source is near a device, so that all of them count alike for it; empty if there is none such.
    pub(crate) strangers: Vec<bool>,
    /// Whether the fleet wants all links to a device, so that all sources count alike for it; empty if there is none such.
    pub(crate) all_alike: Vec<bool>,
    /// Whether a device takes no part in hand-overs because of a [dispute](Problem::with_disputes); empty if all may.
    pub(crate) in_dispute: Vec<bool>,
}

/// A planning problem whose parts [`Problem::new`] has checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    names: Vec<String>,
    pins: Vec<Option<Role>>,
    required: Vec<(usize, usize)>,
    model: Model,
}

impl Problem {
    /// Returns the number of devices, those without labels included.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Never true for a checked problem; for completeness beside [`Problem::len`].
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the name of the device with this index.
    pub fn name(&self, device: usize) -> &str {
        &self.names[device]
    }

    /// Returns the index of the device with this name, if there is one.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|n| n == name)
    }

    /// Returns the role that the user fixed for a device, if any.
    pub fn pin(&self, device: usize) -> Option<Role> {
        self.pins[device]
    }

    /// Links that must be used, as (sender, receiver).
    pub fn required(&self) -> &[(usize, usize)] {
        &self.required
    }

    /// Senders whose link into `receiver` must be used.
    pub fn required_into(&self, receiver: usize) -> Vec<usize> {
        self.required.iter().filter(|(_, to)| *to == receiver).map(|(from, _)| *from).collect()
    }

    /// Returns what costs are computed from: measurements, or raw costs.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Which bound the problem asks for; raw costs are facility location, the paper's form.
    pub fn bound_kind(&self) -> BoundKind {
        match &self.model {
            Model::Measured(m) => m.bound.kind,
            Model::Costs(_) => BoundKind::Paper,
        }
    }

    /// Whether a device may be a source: it has labels (or a source cost) and is not pinned away.
    pub fn eligible(&self, device: usize) -> bool {
        self.pins[device] != Some(Role::Target)
            && match &self.model {
                Model::Measured(m) => m.devices[device].labeled > 0,
                Model::Costs(c) => c.source[device].is_some(),
            }
    }

    /// f_i = φ^S S_i, or `None` where the device may not be a source.
    pub fn source_cost(&self, device: usize) -> Option<f64> {
        if !self.eligible(device) {
            return None;
        }
        match &self.model {
            Model::Measured(m) => m.source_cost(device),
            Model::Costs(c) => c.source[device],
        }
    }

    /// Whether some device that may be a source has a link to `receiver`.
    pub fn can_be_reached(&self, receiver: usize) -> bool {
        match &self.model {
            Model::Measured(m) => m.links.incoming(receiver).any(|link| self.eligible(link.from)),
            Model::Costs(c) => c.incoming(receiver).any(|from| self.eligible(from)),
        }
    }

    /// Returns K_ij in joules; `None` without such a link, and with raw costs.
    pub fn link_energy(&self, from: usize, to: usize) -> Option<f64> {
        match &self.model {
            Model::Measured(m) => m.links.get(from, to).map(|l| l.energy),
            Model::Costs(_) => None,
        }
    }

    /// The same problem with one device's role fixed, for asking what the other role would cost.
    pub fn with_pin(mut self, device: usize, role: Role) -> Problem {
        self.pins[device] = Some(role);
        self
    }

    /// The same problem with another φ^E; raw costs have none and stay as they are.
    pub fn with_energy_weight(&self, energy: f64) -> Problem {
        let mut problem = self.clone();
        if let Model::Measured(m) = &mut problem.model {
            m.weights.energy = energy;
        }
        problem
    }

    /// The same problem where this share of ½ d̂ counts ([`Bound::calibration`]); raw costs stay as they are.
    pub fn with_calibration(&self, calibration: f64) -> Problem {
        let mut problem = self.clone();
        if let Model::Measured(m) = &mut problem.model {
            m.bound.calibration = calibration;
        }
        problem
    }

    /// The same problem under another bound; raw costs have none and stay as they are.
    pub fn with_bound(&self, kind: BoundKind) -> Problem {
        let mut problem = self.clone();
        if let Model::Measured(m) = &mut problem.model {
            m.bound.kind = kind;
        }
        problem
    }

    /// The same problem with another ε̂_i; raw costs have none and stay as they are.
    pub fn with_source_error(&self, device: usize, error: f64) -> Problem {
        let mut problem = self.clone();
        if let Model::Measured(m) = &mut problem.model {
            m.devices[device].source_error = Some(error);
            m.sender = senders(&m.devices, &m.bound);
        }
        problem
    }

    /// The same problem with another d̂_ij and K_ij of a link that exists, in the unit that it has
    /// with them. Raw costs have neither and stay as they are.
    pub fn with_link(&self, link: Link, to: usize) -> Problem {
        let mut problem = self.clone();
        if let Model::Measured(m) = &mut problem.model
            && let Some(before) = m.links.get(link.from, to)
        {
            m.links.set(link, to);
            if m.devices[link.from].labeled > 0 {
                m.mean_link.0 += (link.energy - before.energy) / m.mean_link.1 as f64;
            }
        }
        problem
    }

    /// Returns the same problem, in which devices take no part in hand-overs that are in dispute: the second of a pair had no use for a model of
    /// the first, both have labels, and nobody knows which of the two is wrong. Of a device that is in dispute with several it is clear enough:
    /// it takes no part, and the others do. So a device that accuses others keeps one of them from hand-overs at most.
    #[must_use]
    pub fn with_disputes(self, pairs: impl IntoIterator<Item = (usize, usize)>) -> Problem {
        let n = self.len();
        let Model::Measured(m) = &self.model else { return self };
        let mut others = vec![BTreeSet::new(); n];
        for (from, to) in pairs {
            if m.devices[from].labeled > 0 && m.devices[to].labeled > 0 {
                others[from].insert(to);
                others[to].insert(from);
            }
        }
        let is_clear = |device: &usize| others[*device].len() > 1;
        let takes_no_part = |device: usize| {
            is_clear(&device) || others[device].iter().any(|other| !is_clear(other))
        };
        let in_dispute: Vec<usize> = (0..n).filter(|&device| takes_no_part(device)).collect();
        self.with_in_dispute(&in_dispute)
    }

    /// Returns the same problem, in which these devices take no part in hand-overs.
    #[must_use]
    pub fn with_in_dispute(mut self, devices: &[usize]) -> Problem {
        let n = self.len();
        if let Model::Measured(m) = &mut self.model {
            m.in_dispute = match devices {
                [] => Vec::new(),
                _ => (0..n).map(|device| devices.contains(&device)).collect(),
            };
        }
        self
    }

    /// Returns the devices that take no part in hand-overs because of a [dispute](Problem::with_disputes).
    pub fn in_dispute(&self) -> Vec<usize> {
        match &self.model {
            Model::Measured(m) => (0..self.len()).filter(|&i| !m.hands_on(i)).collect(),
            Model::Costs(_) => Vec::new(),
        }
    }

    /// Returns the same problem with this link forbidden.
    pub fn without_link(mut self, from: usize, to: usize) -> Problem {
        match &mut self.model {
            Model::Measured(m) => {
                m.forbidden.extend(m.links.get(from, to).map(|link| (link, to)));
                m.links.remove(from, to);
            }
            Model::Costs(c) => c.remove(from, to),
        }
        self
    }
}

impl Measured {
    /// Whether a device may take part in hand-overs.
    pub(crate) fn hands_on(&self, device: usize) -> bool {
        !self.in_dispute.get(device).copied().unwrap_or_default()
    }

    fn samples(&self, device: usize) -> f64 {
        self.devices[device].samples() as f64
    }

    /// Returns S_i; `None` if the device has no labels.
    pub fn source_bound(&self, device: usize) -> Option<f64> {
        let error = self.devices[device].source_error?;
        Some(self.bound.source(error, self.samples(device)))
    }

    /// Returns φ^S S_i; `None` if the device has no labels.
    pub fn source_cost(&self, device: usize) -> Option<f64> {
        Some(self.weights.source * self.source_bound(device)?)
    }

    /// Returns one over the unit of energy, in joules.
    pub(crate) fn energy_scale(&self) -> f64 {
        match (self.energy_unit, self.mean_link.0) {
            (EnergyUnit::MeanLink, mean) if mean > 0.0 => 1.0 / mean,
            _ => 1.0,
        }
    }

    /// Returns an energy K_ij, given in joules, in the problem's unit.
    pub fn scaled_energy(&self, energy: f64) -> f64 {
        self.energy_scale() * energy
    }

    /// φ^E K_ij / (1 + ε_E): a whole link (α = 1) by `eq:def_E_i`.
    pub fn energy_cost(&self, energy: f64) -> f64 {
        self.energy_cost_at(energy, 1.0)
    }

    /// φ^E K_ij α / (α + ε_E), `eq:def_E_i`.
    pub fn energy_cost_at(&self, energy: f64, weight: f64) -> f64 {
        let used = weight / (weight + self.energy_epsilon);
        self.weights.energy * self.scaled_energy(energy) * used
    }

    /// φ^T (10ρ + 6√(ln(2/δ)/(2 D̂_j))), the part of a target's bound that no choice changes.
    pub fn target_constant_cost(&self, receiver: usize) -> f64 {
        self.weights.target * self.bound.target_constant(self.samples(receiver))
    }

    /// φ^T (ε̂_i + ½ d̂_ij), the part of a target's bound that grows with a link's weight; φ^T for a stranger, and where the fleet wants all links.
    pub fn mixing_cost(&self, from: usize, to: usize, divergence: f64) -> f64 {
        self.weights.target
            * (self.error_at(from, to, divergence) + self.bound.transfer(divergence))
    }

    /// Returns T_ij, which is [`Bound::target`] put together from its parts.
    pub fn target_bound(&self, link: Link, receiver: usize) -> f64 {
        self.sender[link.from]
            + self.bound.transfer(link.divergence)
            + self.bound.target_constant(self.samples(receiver))
    }
}

/// Returns [`Bound::sender`] of every device, infinite without labels.
fn senders(devices: &[Device], bound: &Bound) -> Vec<f64> {
    devices
        .iter()
        .map(|d| match d.source_error {
            Some(error) if d.labeled > 0 => bound.sender(error, d.samples() as f64),
            _ => f64::INFINITY,
        })
        .collect()
}
