//! Splits one device's part of the objective into its terms.

use std::collections::BTreeMap;

use crate::bound::BoundKind;
use crate::device::Role;
use crate::plan::{Handover, Plan, PlanLink, is_on_ring};
use crate::problem::{Measured, Model, Problem};

/// What a device costs in a plan. The accounts of all devices add up to the objective.
#[derive(Debug, Clone, PartialEq)]
pub struct Account {
    /// The terms, each with its φ; those that are zero are left out.
    pub parts: Vec<Part>,
}

impl Account {
    /// Returns the device's cost, the sum of its parts.
    pub fn total(&self) -> f64 {
        self.parts.iter().map(|p| p.cost).sum()
    }
}

/// One term of a device's cost, with what it amounts to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// The term of the objective that the cost belongs to.
    pub term: Term,
    /// The cost of this term, φ and the link's weight included.
    pub cost: f64,
}

/// The terms of S_i, of T_j and of the energy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Term {
    /// φ^S ε̂_i, a source's own error.
    OwnError,
    /// φ^S 2ρ of a source or φ^T 10ρ of a target, for how rich the models are.
    Complexity,
    /// The deviation of the device's own sample: φ^S 3√… or φ^T 6√….
    OwnSampling,
    /// The deviation of the sources' samples, φ^T 6√….
    SourceSampling,
    /// φ^T α_ij ε̂_i, the error of a source.
    SourceError {
        /// i, the index of the source.
        from: usize,
    },
    /// φ^T α_ij ½ d̂_ij, for how far the target's data are from those of a source.
    Divergence {
        /// i, the index of the source.
        from: usize,
    },
    /// φ^T α_ij ½ d̂_ik: what a model that was last trained at k has forgotten of i's data.
    Forgetting {
        /// i, the index of the source.
        from: usize,
    },
    /// φ^E times the energy of the link from a source.
    Energy {
        /// i, the index of the source.
        from: usize,
    },
    /// φ^E times the energy of the link over which a source takes another's model.
    Handover {
        /// i, the index of the source.
        from: usize,
    },
    /// f_i, what it costs that the device is a source, where costs are raw.
    SourceCost,
    /// α_ij c_ij, where costs are raw.
    LinkCost {
        /// i, the index of the source.
        from: usize,
    },
}

/// Splits a device's cost by term.
pub fn account(problem: &Problem, plan: &Plan, device: usize) -> Account {
    let column = plan.incoming(device);
    let mut parts = match (problem.model(), plan.roles[device]) {
        (Model::Costs(c), Role::Source) => {
            c.source[device].map(|cost| Part { term: Term::SourceCost, cost }).into_iter().collect()
        }
        (Model::Costs(_), Role::Target) => raw_column(problem, column),
        (Model::Measured(m), Role::Source) => source(m, plan, device),
        (Model::Measured(m), Role::Target) if plan.handovers.is_empty() => {
            target(m, plan.bound, device, column)
        }
        (Model::Measured(m), Role::Target) => handed_on(m, plan, device),
    };
    parts.retain(|p| p.cost != 0.0);
    Account { parts }
}

fn raw_column(problem: &Problem, column: &[PlanLink]) -> Vec<Part> {
    let mut parts = Vec::with_capacity(column.len());
    for l in column {
        if let Some(c) = problem.link_cost(l.from, l.to) {
            parts.push(Part { term: Term::LinkCost { from: l.from }, cost: l.weight * c.total() });
        }
    }
    parts
}

fn source(m: &Measured, plan: &Plan, device: usize) -> Vec<Part> {
    let handover = plan.handed_from(device).and_then(|from| {
        let times = plan.times(Handover { from, to: device }) as f64;
        let cost = times * m.energy_cost(m.links.get(from, device)?.energy);
        Some(Part { term: Term::Handover { from }, cost })
    });
    let d = &m.devices[device];
    let phi = m.weights.source;
    let part = |term, value: f64| Part { term, cost: phi * value };
    let mut parts = vec![
        part(Term::OwnError, d.source_error.unwrap_or(f64::INFINITY)),
        part(Term::Complexity, 2.0 * m.bound.complexity.value()),
        part(Term::OwnSampling, 3.0 * m.bound.deviation(d.samples() as f64)),
    ];
    parts.extend(handover);
    parts
}

/// A target of models that were handed on, as [`crate::plan::evaluate`] prices it: each is a mixture of the sources on its route.
fn handed_on(m: &Measured, plan: &Plan, device: usize) -> Vec<Part> {
    let phi = m.weights.target;
    let samples = |device: usize| m.devices[device].samples() as f64;
    let apart = |from: usize, to: usize| m.links.get(from, to).map_or(0.0, |link| link.divergence);
    let mut parts = Vec::new();
    // By source: its weight, and that times the divergence from where the model was last.
    let mut mixture: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for link in plan.incoming(device) {
        let from = link.from;
        let energy = m.links.get(from, device).map_or(0.0, |link| m.energy_cost(link.energy));
        parts.push(Part { term: Term::Energy { from }, cost: energy });
        let route = plan.route(from);
        let all: f64 = route.iter().map(|&i| samples(i)).sum();
        for i in route {
            let weight = link.weight * samples(i) / all;
            let forgets = i != from && !is_on_ring(&plan.handovers, from);
            let forgotten = if forgets { apart(i, from) } else { 0.0 };
            let (sum, moved) = mixture.entry(i).or_default();
            *sum += weight;
            *moved += weight * forgotten;
        }
    }
    for (&from, &(weight, moved)) in &mixture {
        let error = m.devices[from].source_error.unwrap_or(f64::INFINITY);
        parts.extend([
            Part { term: Term::SourceError { from }, cost: phi * weight * error },
            Part {
                term: Term::Divergence { from },
                cost: weight * (m.mixing_cost(from, device, apart(from, device)) - phi * error),
            },
            Part { term: Term::Forgetting { from }, cost: phi * m.bound.transfer(moved) },
        ]);
    }
    let spread: f64 = mixture.iter().map(|(&i, (weight, _))| weight * weight / samples(i)).sum();
    let scale = m.bound.pooling_scale();
    parts.extend([
        Part { term: Term::SourceSampling, cost: phi * scale * spread.sqrt() },
        Part { term: Term::OwnSampling, cost: phi * 6.0 * m.bound.deviation(samples(device)) },
        Part { term: Term::Complexity, cost: phi * 10.0 * m.bound.complexity.value() },
    ]);
    parts
}

fn target(m: &Measured, bound: BoundKind, device: usize, column: &[PlanLink]) -> Vec<Part> {
    let phi = m.weights.target;
    let samples = |device: usize| m.devices[device].samples() as f64;
    let mut parts = Vec::with_capacity(3 * column.len() + 3);
    for l in column {
        let (from, weight) = (l.from, l.weight);
        let Some(link) = m.links.get(from, l.to) else {
            continue;
        };
        let error = phi * m.devices[from].source_error.unwrap_or(f64::INFINITY);
        let energy = match bound {
            BoundKind::Paper => m.energy_cost_at(link.energy, weight),
            BoundKind::Pooled => m.energy_cost(link.energy),
        };
        parts.push(Part { term: Term::SourceError { from }, cost: weight * error });
        parts.push(Part {
            term: Term::Divergence { from },
            cost: weight * (m.mixing_cost(from, l.to, link.divergence) - error),
        });
        parts.push(Part { term: Term::Energy { from }, cost: energy });
    }
    let spread = match bound {
        BoundKind::Pooled => {
            column.iter().map(|l| l.weight * l.weight / samples(l.from)).sum::<f64>().sqrt()
        }
        BoundKind::Paper => column.iter().map(|l| l.weight / samples(l.from).sqrt()).sum(),
    };
    let complexity = phi * 10.0 * m.bound.complexity.value();
    parts.push(Part { term: Term::SourceSampling, cost: phi * m.bound.pooling_scale() * spread });
    parts.push(Part {
        term: Term::OwnSampling,
        cost: phi * 6.0 * m.bound.deviation(samples(device)),
    });
    parts.push(Part { term: Term::Complexity, cost: complexity });
    parts
}
