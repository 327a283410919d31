//! (𝒫′) over the variables of one instance: its objective at an iterate, and the geometric program that
//! stands for it there.

use stlf_optim::gp::{GeometricProgram, GpError};
use stlf_optim::posynomial::{Monomial, Posynomial, Variable};

use super::approximations::{
    column_above, column_below, hypothesis_noise, link_energy, source_error, target_error,
};
use super::{Instance, Iterate, Settings, TargetTerm};

/// (𝒫′) with a variable for everything that is not fixed. A term whose coefficient is zero has none.
pub(super) struct Relaxation<'a> {
    instance: &'a Instance<'a>,
    settings: &'a Settings,
    devices: Vec<Device>,
    /// The columns of α; `None` for a device that never receives.
    columns: Vec<Option<Column>>,
    variables: usize,
}

enum Device {
    /// `ψ` is fixed to this value.
    Fixed(f64),
    /// `ψ + room ≤ 1`, and every `α` the device sends is at most `room`: this is `α_ij + ψ_i ≤ 1` for all
    /// receivers `j`, with one sum in place of one for each.
    Free { psi: Variable, room: Variable, chi: Option<Variable> },
}

struct Column {
    chi: Variable,
    /// The senders, in the order of the receiver's links.
    carriers: Vec<Carrier>,
}

struct Carrier {
    alpha: Variable,
    /// The variable of the product, where the target's error is written as in the paper.
    chi: Option<Variable>,
    /// The most that the link's error with noise can be: the unit of the floor of `χ`.
    scale: f64,
    noise: Vec<Noise>,
}

/// One summand of the noise of a link: what the receiver's link number `k` adds.
struct Noise {
    k: usize,
    disagreement: f64,
    /// The variable of the product, where the target's error is written as in the paper.
    chi: Option<Variable>,
}

/// The geometric program as it is put together.
#[derive(Default)]
struct Parts {
    objective: Vec<Monomial>,
    at_most_one: Vec<Posynomial>,
    bounds: Vec<(Variable, f64, f64)>,
}

impl<'a> Relaxation<'a> {
    /// Or the device that must be a target and has no link.
    pub(super) fn new(instance: &'a Instance<'a>, settings: &'a Settings) -> Result<Self, usize> {
        let mut variables = 0;
        let mut fresh = || {
            variables += 1;
            Variable(variables - 1)
        };
        let (mut devices, mut columns) = (Vec::new(), Vec::new());
        for (j, links) in instance.links.iter().enumerate() {
            debug_assert!(links.iter().all(|l| l.from != j && instance.source[l.from].is_some()));
            let device = match instance.source[j] {
                None if links.is_empty() => return Err(j),
                None => Device::Fixed(1.0),
                Some(_) if instance.must_be_source[j] || links.is_empty() => {
                    Device::Fixed(settings.floor)
                }
                Some(s) => Device::Free {
                    psi: fresh(),
                    room: fresh(),
                    chi: (instance.weights.source * s > 0.0).then(&mut fresh),
                },
            };
            let receives = matches!(device, Device::Free { .. }) || instance.source[j].is_none();
            let paper = settings.target_term == TargetTerm::Paper;
            devices.push(device);
            columns.push(receives.then(|| {
                Column {
                    chi: fresh(),
                    carriers: (0..links.len())
                        .map(|i| Carrier::new(instance, paper, (i, j), &mut fresh))
                        .collect(),
                }
            }));
        }
        Ok(Self { instance, settings, devices, columns, variables })
    }

    /// A feasible point that favours nobody: `ψ` the same where it is free, and to each receiver every
    /// sender the same share; `ψ` is less where a receiver has so few senders that they must send more.
    pub(super) fn start(&self) -> Iterate {
        let psi = self.devices.iter().map(|device| match *device {
            Device::Fixed(psi) => psi,
            Device::Free { .. } => self.settings.start,
        });
        let mut start = Iterate { psi: psi.collect(), alpha: Vec::new() };
        for (j, links) in self.instance.links.iter().enumerate() {
            let share = match self.columns[j] {
                Some(_) => self.least_sum(start.psi[j]) / links.len() as f64,
                None => 0.0,
            };
            start.alpha.push(vec![share; links.len()]);
        }
        for (link, alpha) in self.instance.links.iter().flatten().zip(start.alpha.iter().flatten())
        {
            start.psi[link.from] = start.psi[link.from].min(1.0 - alpha);
        }
        self.between(&start, &start, 1.0)
    }

    /// The value of every variable at an iterate, each `χ` the least that is allowed.
    pub(super) fn point(&self, iterate: &Iterate) -> Vec<f64> {
        let floor = self.settings.floor;
        let mut point = vec![f64::NAN; self.variables];
        for (i, device) in self.devices.iter().enumerate() {
            if let Device::Free { psi, room, chi } = device {
                point[psi.0] = iterate.psi[i];
                point[room.0] = 1.0 - iterate.psi[i];
                if let (Some(chi), Some(s)) = (chi, self.instance.source[i]) {
                    point[chi.0] = (1.0 - iterate.psi[i]) * s;
                }
            }
        }
        for (j, column) in self.columns.iter().enumerate() {
            let Some(column) = column else { continue };
            let (links, alpha) = (&self.instance.links[j], &iterate.alpha[j]);
            let sent = |k: usize| iterate.psi[j] * (1.0 - iterate.psi[links[k].from]) * alpha[k];
            for (i, carrier) in column.carriers.iter().enumerate() {
                point[carrier.alpha.0] = alpha[i];
                let Some(chi) = carrier.chi else { continue };
                let mut error = links[i].error;
                for noise in &carrier.noise {
                    let value = sent(noise.k).max(floor) * noise.disagreement;
                    error += value;
                    if let Some(chi) = noise.chi {
                        point[chi.0] = value;
                    }
                }
                point[chi.0] = (sent(i) * error).max(floor * carrier.scale);
            }
            point[column.chi.0] = self.excess(iterate, j).max(floor);
        }
        point
    }

    /// The objective of (𝒫′), `app_eq:prob_prime`: the terms of (𝒫) and the penalty `N Σ_j χ^C_j`.
    pub(super) fn objective(&self, iterate: &Iterate) -> f64 {
        let receivers = (0..self.columns.len()).filter(|&j| self.columns[j].is_some());
        let chi: f64 = receivers.map(|j| self.excess(iterate, j).max(self.settings.floor)).sum();
        self.terms(iterate) + self.devices.len() as f64 * chi
    }

    /// The terms of (𝒫), `app_eq:obj_fxn_full`, at the relaxed point.
    pub(super) fn terms(&self, iterate: &Iterate) -> f64 {
        let Instance { source, links, weights, energy_epsilon, .. } = self.instance;
        let Iterate { psi, alpha } = iterate;
        let costs = source.iter().zip(psi);
        let mut total: f64 =
            costs.map(|(s, psi)| weights.source * (1.0 - psi) * s.unwrap_or(0.0)).sum();
        for (j, column) in self.columns.iter().enumerate() {
            let Some(column) = column else { continue };
            let heard = |k: usize| match self.settings.target_term {
                TargetTerm::Paper => psi[j] * (1.0 - psi[links[j][k].from]) * alpha[j][k],
                TargetTerm::Tight => alpha[j][k],
            };
            for (i, (link, carrier)) in links[j].iter().zip(&column.carriers).enumerate() {
                let noise: f64 = carrier.noise.iter().map(|n| heard(n.k) * n.disagreement).sum();
                let sent = match self.settings.target_term {
                    TargetTerm::Paper => heard(i),
                    TargetTerm::Tight => psi[j] * alpha[j][i],
                };
                let energy = link.energy * alpha[j][i] / (alpha[j][i] + energy_epsilon);
                total += weights.target * sent * (link.error + noise) + weights.energy * energy;
            }
        }
        total
    }

    /// The geometric program that stands for (𝒫′) at `point`; none if nothing is left to decide.
    pub(super) fn condensed(&self, point: &[f64]) -> Result<Option<GeometricProgram>, GpError> {
        let mut parts = Parts::default();
        for (i, device) in self.devices.iter().enumerate() {
            let &Device::Free { psi, room, chi } = device else {
                continue;
            };
            parts.at_most_one.push(Monomial::from(psi) + Monomial::from(room));
            parts.bounds.push((psi, self.settings.floor, f64::INFINITY));
            if let (Some(chi), Some(s)) = (chi, self.instance.source[i]) {
                let f = source_error(psi.into(), chi.into(), s)?.condense(point);
                parts.at_most_one.push(f.powf(-1.0).into());
                parts.objective.push(Monomial::new(self.instance.weights.source, [(chi, 1.0)])?);
            }
        }
        for (j, column) in self.columns.iter().enumerate() {
            let Some(column) = column else { continue };
            for i in 0..column.carriers.len() {
                self.link(column, (i, j), point, &mut parts)?;
            }
            self.column(column, j, point, &mut parts)?;
        }
        if parts.objective.is_empty() {
            return Ok(None);
        }
        let objective = Posynomial::sum(parts.objective)?;
        let mut program = GeometricProgram::new(self.variables, objective)?;
        for posynomial in parts.at_most_one {
            program.at_most_one(posynomial)?;
        }
        for (variable, lower, upper) in parts.bounds {
            program.bound(variable, lower, upper)?;
        }
        Ok(Some(program))
    }

    /// `Σ_i α_ij = ψ_j` as two inequalities, and the penalty.
    fn column(
        &self,
        column: &Column,
        j: usize,
        point: &[f64],
        parts: &mut Parts,
    ) -> Result<(), GpError> {
        let epsilon = self.settings.column_epsilon;
        let (psi, chi) = (self.psi(j)?, Monomial::from(column.chi));
        let alphas = || column.carriers.iter().map(|carrier| Monomial::from(carrier.alpha));
        let above = column_above(chi.clone(), epsilon, psi.clone())?.condense(point);
        parts.at_most_one.push(Posynomial::sum(alphas())? / above);
        let below = column_below(alphas(), epsilon)?.condense(point);
        parts.at_most_one.push((chi.clone() + psi) / below);
        parts.bounds.push((column.chi, self.settings.floor, f64::INFINITY));
        parts.objective.push(chi * (self.devices.len() as f64).try_into()?);
        Ok(())
    }

    /// What the link number `i` into `j` costs, and that only sources send.
    fn link(
        &self,
        column: &Column,
        (i, j): (usize, usize),
        point: &[f64],
        parts: &mut Parts,
    ) -> Result<(), GpError> {
        let Instance { links, weights, energy_epsilon, .. } = self.instance;
        let (carrier, link) = (&column.carriers[i], &links[j][i]);
        let (floor, alpha) = (self.settings.floor, Monomial::from(carrier.alpha));
        let most = match self.devices[link.from] {
            Device::Free { room, .. } => {
                parts.at_most_one.push((alpha.clone() / room.into()).into());
                f64::INFINITY
            }
            Device::Fixed(_) => 1.0,
        };
        parts.bounds.push((carrier.alpha, floor, most));
        if weights.energy * link.energy > 0.0 {
            let j_hat = link_energy(alpha.clone(), *energy_epsilon)?.condense(point);
            let k: Monomial = (weights.energy * link.energy).try_into()?;
            parts.objective.push(k * alpha.clone() / j_hat);
        }
        if weights.target * carrier.scale <= 0.0 {
            return Ok(());
        }
        let mut error: Vec<Monomial> = Vec::new();
        if link.error > 0.0 {
            error.push(link.error.try_into()?);
        }
        let psi_j = self.psi(j)?;
        for noise in &carrier.noise {
            let alpha_k = Monomial::from(column.carriers[noise.k].alpha);
            let Some(chi) = noise.chi else {
                error.push(alpha_k * noise.disagreement.try_into()?);
                continue;
            };
            let (psi_k, psi_j) = (self.psi(links[j][noise.k].from)?, psi_j.clone());
            let g = hypothesis_noise(psi_k, chi.into(), psi_j, alpha_k, noise.disagreement)?;
            parts.at_most_one.push(g.condense(point).powf(-1.0).into());
            parts.bounds.push((chi, floor * noise.disagreement, f64::INFINITY));
            error.push(chi.into());
        }
        let (error, phi) = (Posynomial::sum(error)?, Monomial::try_from(weights.target)?);
        if let Some(chi) = carrier.chi {
            let h = target_error(self.psi(link.from)?, error.clone(), chi.into(), psi_j, alpha);
            parts.at_most_one.push(error / h.condense(point));
            parts.bounds.push((chi, floor * carrier.scale, f64::INFINITY));
            parts.objective.push(phi * chi.into());
        } else {
            parts.objective.extend_from_slice((error * (phi * psi_j * alpha)).terms());
        }
        Ok(())
    }

    /// Returns the iterate that the values of the variables describe.
    pub(super) fn iterate(&self, values: &[f64]) -> Iterate {
        let psi = self.devices.iter().map(|device| match *device {
            Device::Fixed(psi) => psi,
            Device::Free { psi, .. } => values[psi.0],
        });
        let alpha =
            self.instance.links.iter().zip(&self.columns).map(|(links, column)| match column {
                Some(column) => column.carriers.iter().map(|c| values[c.alpha.0]).collect(),
                None => vec![0.0; links.len()],
            });
        Iterate { psi: psi.collect(), alpha: alpha.collect() }
    }

    /// The iterate that goes this part of the way, moved inside `floor ≤ ψ, α` and `α_ij + ψ_i ≤ 1`, with
    /// no column larger than it must be: less weight never costs more. Beyond the end of the way go only
    /// the devices whose role or column moved by more than the tolerance: stretching what the solver left
    /// undecided would make its noise the decision.
    ///
    /// All constraints of (𝒫′) are linear in `ψ` and `α`, so a part up to 1 is as feasible as the ends.
    pub(super) fn between(&self, from: &Iterate, to: &Iterate, part: f64) -> Iterate {
        let floor = self.settings.floor;
        let parts = from
            .moves(to)
            .map(|moved| if moved > self.settings.tolerance { part } else { part.min(1.0) });
        let parts: Vec<f64> = parts.collect();
        let psi = self.devices.iter().enumerate().map(|(i, device)| match *device {
            Device::Fixed(psi) => psi,
            Device::Free { .. } => {
                let psi = from.psi[i] + parts[i] * (to.psi[i] - from.psi[i]);
                psi.clamp(floor, 1.0 - floor)
            }
        });
        let mut mixed = Iterate { psi: psi.collect(), alpha: Vec::new() };
        for (j, links) in self.instance.links.iter().enumerate() {
            if self.columns[j].is_none() {
                mixed.alpha.push(vec![0.0; links.len()]);
                continue;
            }
            let ends = from.alpha[j].iter().zip(&to.alpha[j]);
            let alpha = ends.zip(links).map(|((a, b), link)| {
                (a + parts[j] * (b - a)).clamp(floor, 1.0 - mixed.psi[link.from])
            });
            let mut alpha: Vec<f64> = alpha.collect();
            let above: f64 = alpha.iter().map(|a| a - floor).sum();
            let needed = self.least_sum(mixed.psi[j]) - floor * links.len() as f64;
            if above > needed.max(0.0) {
                let shrink = needed.max(0.0) / above;
                alpha.iter_mut().for_each(|a| *a = floor + (*a - floor) * shrink);
            }
            mixed.alpha.push(alpha);
        }
        mixed
    }

    /// Returns by how much some column falls short of its role, beyond `ε_C`.
    pub(super) fn shortfall(&self, iterate: &Iterate) -> f64 {
        let receivers = (0..self.columns.len()).filter(|&j| self.columns[j].is_some());
        let short = receivers
            .map(|j| self.least_sum(iterate.psi[j]) - iterate.alpha[j].iter().sum::<f64>());
        short.fold(0.0, f64::max)
    }

    /// The least sum of a column: `ψ_j + χ^C_j - ε_C` with `χ^C_j` at its floor.
    fn least_sum(&self, psi: f64) -> f64 {
        psi + self.settings.floor - self.settings.column_epsilon
    }

    /// The least `χ^C_j` with `Σ_i α_ij - ψ_j ≤ χ^C_j + ε_C`.
    fn excess(&self, iterate: &Iterate, j: usize) -> f64 {
        iterate.alpha[j].iter().sum::<f64>() - iterate.psi[j] - self.settings.column_epsilon
    }

    fn psi(&self, device: usize) -> Result<Monomial, GpError> {
        match self.devices[device] {
            Device::Fixed(psi) => psi.try_into(),
            Device::Free { psi, .. } => Ok(psi.into()),
        }
    }
}

impl Carrier {
    fn new(
        instance: &Instance<'_>,
        paper: bool,
        (i, j): (usize, usize),
        fresh: &mut impl FnMut() -> Variable,
    ) -> Self {
        let links = &instance.links[j];
        let alpha = fresh();
        let mut noise = Vec::new();
        if let Some(disagreement) = instance.disagreement {
            for k in (0..links.len()).filter(|&k| k != i) {
                let disagreement = disagreement(j, links[k].from, links[i].from);
                if disagreement > 0.0 {
                    noise.push(Noise { k, disagreement, chi: paper.then(&mut *fresh) });
                }
            }
        }
        let scale = links[i].error + noise.iter().map(|n| n.disagreement).sum::<f64>();
        let chi = (paper && instance.weights.target * scale > 0.0).then(fresh);
        Self { alpha, chi, scale, noise }
    }
}
