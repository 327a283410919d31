//! Computes what a plan costs, from its roles, links and hand-overs.

use super::{Handover, PlanLink, Terms, is_on_ring, route, times};
use crate::bound::{BoundKind, Share};
use crate::device::Role;
use crate::problem::{Measured, Model, Problem};

/// The objective of `eq:obj_fxn_1` at given roles and weights, under the given bound, with the energy of hand-overs.
pub fn evaluate(
    problem: &Problem,
    bound: BoundKind,
    roles: &[Role],
    links: &[PlanLink],
    handovers: &[Handover],
) -> Terms {
    let source = (0..roles.len())
        .filter(|&i| roles[i] == Role::Source)
        .map(|i| problem.source_cost(i).unwrap_or(f64::INFINITY))
        .sum();
    let (mut target, mut energy) = (0.0, handover_energy(problem, links, handovers));
    for column in links.chunk_by(|a, b| a.to == b.to) {
        let (t, e) = column_cost(problem, bound, column, handovers);
        target += t;
        energy += e;
    }
    Terms { source, target, energy }
}

/// φ^E Σ K of hand-overs; infinite where a link is missing, or one of its ends takes no part in any.
fn handover_energy(problem: &Problem, links: &[PlanLink], handovers: &[Handover]) -> f64 {
    let Model::Measured(m) = problem.model() else {
        return if handovers.is_empty() { 0.0 } else { f64::INFINITY };
    };
    let energy = |h: &Handover| {
        let link = m.links.get(h.from, h.to).filter(|_| m.hands_on(h.from) && m.hands_on(h.to))?;
        Some(times(handovers, links, *h) as f64 * m.energy_cost(link.energy))
    };
    // An empty sum of floats is −0.
    0.0 + handovers.iter().map(|h| energy(h).unwrap_or(f64::INFINITY)).sum::<f64>()
}

/// What one target costs: its weighted bound, and the energy of its links.
pub fn column_cost(
    problem: &Problem,
    bound: BoundKind,
    column: &[PlanLink],
    handovers: &[Handover],
) -> (f64, f64) {
    let m = match problem.model() {
        Model::Measured(m) => m,
        Model::Costs(_) => {
            let cost = |l: &PlanLink| {
                let known = problem.link_cost(l.from, l.to);
                l.weight * known.map_or(f64::INFINITY, |c| c.total())
            };
            return (column.iter().map(cost).sum(), 0.0);
        }
    };
    if let Some(first) = column.first().filter(|_| !handovers.is_empty()) {
        let routes: Vec<(usize, Vec<usize>)> =
            column.iter().map(|l| (l.from, route(handovers, l.from))).collect();
        let of = |source| routes.iter().find(|(from, _)| *from == source).map_or(&[][..], |r| &r.1);
        let forgets = |source| !is_on_ring(handovers, source);
        return handed_on_cost(m, column, first.to, of, forgets).unwrap_or((f64::INFINITY, 0.0));
    }
    let mut energy = 0.0;
    let mut shares = Vec::with_capacity(column.len());
    for l in column {
        let Some(link) = m.links.get(l.from, l.to) else { return (f64::INFINITY, 0.0) };
        energy += match bound {
            BoundKind::Paper => m.energy_cost_at(link.energy, l.weight),
            BoundKind::Pooled => m.energy_cost(link.energy),
        };
        shares.push(m.share(l, link.divergence));
    }
    let samples = column.first().map_or(1.0, |l| m.devices[l.to].samples() as f64);
    let target = match bound {
        BoundKind::Pooled => m.bound.pooled_target(&shares, samples),
        BoundKind::Paper => shares
            .iter()
            .map(|s| s.weight * m.bound.target(s.source_error, s.divergence, s.samples, samples))
            .sum(),
    };
    (m.weights.target * target, energy)
}

/// What a target pays under the pooled bound for models that were handed on, φ^T T_j and φ^E Σ K of its links; nothing where a link is
/// missing.
///
/// A model that was trained along a route k → … → i is for the bound a mixture of the sources on it, in proportion to their samples:
/// w_k = D̂_k / Σ D̂. But a model forgets: what it learnt from k it keeps as far as the last source, i, has data like k's. So the way
/// to the target leads over i:
///
/// ```text
/// T_j = Σ_k w_k (ε̂_k + ½ d̂_ki + ½ d̂_kj) + 10ρ + 6√(ln(2/δ)/(2 D̂_j)) + 6√(ln(2/δ)/2 · Σ_k w_k²/D̂_k),   d̂_ii = 0
/// ```
///
/// On a ring nothing is forgotten: the term d̂_ki is left out where the source does not [forget](super::Handover).
pub(crate) fn handed_on_cost<'r>(
    m: &Measured,
    links: &[PlanLink],
    target: usize,
    route: impl Fn(usize) -> &'r [usize],
    forgets: impl Fn(usize) -> bool,
) -> Option<(f64, f64)> {
    let samples = |i: usize| m.devices[i].samples() as f64;
    let (mut error, mut energy, mut spread) = (0.0, 0.0, 0.0);
    // α of every source whose samples are in several models.
    let mut weights: Vec<(usize, f64)> = Vec::new();
    for link in links {
        energy += m.energy_cost(m.links.get(link.from, target)?.energy);
        let route = route(link.from);
        let all: f64 = route.iter().map(|&i| samples(i)).sum();
        for &i in route {
            let forgotten = match i != link.from && forgets(link.from) {
                false => 0.0,
                true => m.links.get(i, link.from)?.divergence,
            };
            let own = m.links.get(i, target)?.divergence;
            let weight = link.weight * samples(i) / all;
            error += weight * (m.error_at(i, target, own) + m.bound.transfer(own + forgotten));
            // A route has each source once, two routes may have the same ones.
            match weights.iter_mut().find(|(source, _)| *source == i) {
                _ if links.len() == 1 => spread += weight * weight / samples(i),
                Some((_, sum)) => *sum += weight,
                None => weights.push((i, weight)),
            }
        }
    }
    spread += weights.iter().map(|(i, weight)| weight * weight / samples(*i)).sum::<f64>();
    let bound = m.bound.pooled(error, spread, samples(target));
    Some((m.weights.target * bound, energy))
}

impl Measured {
    fn share(&self, link: &PlanLink, divergence: f64) -> Share {
        let sender = &self.devices[link.from];
        Share {
            weight: link.weight,
            source_error: self.error_at(link.from, link.to, divergence),
            divergence,
            samples: sender.samples() as f64,
        }
    }
}
