//! Relays: sources that hand their models on to other sources, which train them on with labels of their own.
//!
//! Under the pooled bound a target mixes sources to profit from all their samples, and pays for a link from each.
//! Targets that want the same mixture can have it cheaper: a model that was trained at k, handed on to i and
//! trained on there has learnt from the samples of both, and a target gets it over one link. For the bound it is a
//! mixture of the sources on its way with weights in proportion to their samples, w_k = D̂_k / Σ D̂. But a model forgets: what it
//! learnt from k it keeps as far as the last source, i, has data like k's. So the way to the target leads over i:
//!
//! ```text
//! T_j = Σ_k w_k (ε̂_k + ½ d̂_ki + ½ d̂_kj) + 10ρ + 6√(ln(2/δ)/(2 D̂_j)) + 6√(ln(2/δ)/2 · Σ_k w_k²/D̂_k),   d̂_ii = 0
//! ```
//!
//! A hand-over costs what any link costs. Roles are the plan's. Who takes a model from whom is a forest over the sources,
//! found by local search that begins with the plan, so that it never costs more; nothing proves that no other
//! forest costs less (docs/baselines.md says how near it comes where all can be tried).

use crate::bound::BoundKind;
use crate::device::Role;
use crate::plan::{PlanLink, Terms, evaluate};
use crate::problem::{Measured, Model, Problem};

/// Hand-overs that a model makes at most: each is a training that waits for the one before.
pub const LONGEST: usize = 8;

/// Sources that a source looks at to take a model from: those that are cheapest by error, divergence and energy.
const NEAREST: usize = 16;

/// Rows of sources that the search begins with, beside the plan.
const STARTS: usize = 8;

/// A change must save this much of the objective.
const LEAST: f64 = 1e-9;

/// Who takes a model from whom, and what targets get then.
#[derive(Debug, Clone, PartialEq)]
pub struct Relayed {
    /// One per device: the source whose model it trains on, if any.
    pub before: Vec<Option<usize>>,
    /// Sorted by receiver, then sender; the weights into a target sum to one.
    pub links: Vec<PlanLink>,
    /// What it costs, hand-overs as energy.
    pub terms: Terms,
}

/// The devices that a device's model has been at, itself last.
pub fn way(before: &[Option<usize>], device: usize) -> Vec<usize> {
    let mut way = vec![device];
    while let Some(from) = before[way[way.len() - 1]] {
        way.push(from);
    }
    way.reverse();
    way
}

/// Hand-overs among the sources of a plan, at most `longest` on the way of a model. There are none where the problem
/// has raw costs, which do not say who has how much data, or asks for the paper's bound, which does not reward it.
pub fn relay(problem: &Problem, roles: &[Role], links: &[PlanLink], longest: usize) -> Relayed {
    let kind = problem.bound_kind();
    let alone = Relayed {
        before: vec![None; problem.len()],
        links: links.to_vec(),
        terms: evaluate(problem, kind, roles, links),
    };
    match problem.model() {
        Model::Measured(measured) if kind == BoundKind::Pooled => {
            let search = Search::new(problem, measured, roles, links, longest);
            search.best(&alone).unwrap_or(alone)
        }
        _ => alone,
    }
}

/// What a target pays for the models it takes.
#[derive(Debug, Clone, Copy)]
struct Price {
    /// φ^T T_j.
    error: f64,
    /// φ^E Σ K of its links.
    energy: f64,
}

impl Price {
    fn total(self) -> f64 {
        self.error + self.energy
    }
}

/// A target, and what it can take.
struct Target {
    device: usize,
    /// Its links in the plan.
    planned: Vec<PlanLink>,
    /// A link from each source that it can take alone.
    single: Vec<PlanLink>,
}

/// A forest, with what its models cost each target.
struct Forest {
    before: Vec<Option<usize>>,
    ways: Vec<Vec<usize>>,
    /// One per target: the price of its planned links, then of each single one.
    prices: Vec<Vec<f64>>,
    objective: f64,
}

struct Search<'a> {
    measured: &'a Measured,
    sources: Vec<usize>,
    targets: Vec<Target>,
    /// One per device: whose models it may take, the best first.
    nearest: Vec<Vec<usize>>,
    longest: usize,
}

impl<'a> Search<'a> {
    fn new(
        problem: &'a Problem,
        measured: &'a Measured,
        roles: &[Role],
        links: &[PlanLink],
        longest: usize,
    ) -> Search<'a> {
        let all = |role: Role| (0..roles.len()).filter(move |&i| roles[i] == role);
        let sources: Vec<usize> = all(Role::Source).collect();
        let target = |device: usize| {
            let required = problem.required_into(device);
            let may_be_alone = |from: &&usize| required.iter().all(|asked| asked == *from);
            let link = |&from: &usize| PlanLink { from, to: device, weight: 1.0 };
            Target {
                device,
                planned: links.iter().filter(|l| l.to == device).copied().collect(),
                single: sources.iter().filter(may_be_alone).map(link).collect(),
            }
        };
        let nearest = |to: usize| {
            let incoming = measured.links.incoming(to).filter(|l| roles[l.from] == Role::Source);
            let mut by_cost: Vec<(f64, usize)> = incoming
                .map(|l| {
                    let error = measured.mixing_cost(l.from, l.divergence);
                    (error + measured.energy_cost(l.energy), l.from)
                })
                .collect();
            by_cost.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            by_cost.into_iter().take(NEAREST).map(|(_, from)| from).collect()
        };
        Search {
            measured,
            targets: all(Role::Target).map(target).collect(),
            nearest: (0..roles.len()).map(nearest).collect(),
            sources,
            longest,
        }
    }

    /// The best of several ends, one from the plan and others from sources in rows; nothing where the plan itself is
    /// broken.
    fn best(&self, plan: &Relayed) -> Option<Relayed> {
        let mut best = self.improved(self.forest(plan.before.clone())?)?;
        for &first in self.sources.iter().take(STARTS) {
            let Some(rows) = self.forest(self.rows(first, plan.before.len())) else { continue };
            let other = self.improved(rows)?;
            if other.objective < best.objective - LEAST {
                best = other;
            }
        }
        self.relayed(best, plan.terms.source)
    }

    /// Sources in rows of the longest length, each after the one whose link to it is the cheapest.
    fn rows(&self, first: usize, devices: usize) -> Vec<Option<usize>> {
        let mut before = vec![None; devices];
        let mut left: Vec<usize> = self.sources.iter().copied().filter(|&s| s != first).collect();
        let mut start = Some(first);
        while let Some(first) = start {
            let mut last = first;
            for _ in 0..self.longest {
                let costs = left.iter().enumerate().filter_map(|(place, &to)| {
                    Some((self.measured.links.get(last, to)?.energy, place))
                });
                let Some((_, place)) = costs.min_by(|a, b| a.0.total_cmp(&b.0)) else { break };
                let next = left.remove(place);
                before[next] = Some(last);
                last = next;
            }
            start = left.pop();
        }
        before
    }

    /// Changes the place of one source after the other, as long as that helps.
    fn improved(&self, mut forest: Forest) -> Option<Forest> {
        loop {
            let start = forest.objective;
            for &source in &self.sources {
                let mut best: Option<(f64, Vec<Option<usize>>)> = None;
                for change in self.changes(&forest, source) {
                    let Some(cost) = self.cost(&forest, &change) else { continue };
                    if cost < best.as_ref().map_or(forest.objective - LEAST, |b| b.0) {
                        best = Some((cost, change));
                    }
                }
                if let Some((_, change)) = best {
                    forest = self.forest(change)?;
                }
            }
            if forest.objective > start - LEAST {
                return Some(forest);
            }
        }
    }

    /// Other places of a source: with those that follow it or without them, at the end or in the middle of a way.
    fn changes(&self, forest: &Forest, source: usize) -> Vec<Vec<Option<usize>>> {
        let put = |before: &[Option<usize>], from: Option<usize>| {
            let mut changed = before.to_vec();
            changed[source] = from;
            changed
        };
        let follow = |before: &[Option<usize>], left: usize, taken: Option<usize>| {
            let next = |from: &Option<usize>| if *from == Some(left) { taken } else { *from };
            before.iter().map(next).collect::<Vec<_>>()
        };
        let lifted = put(&follow(&forest.before, source, forest.before[source]), None);
        let mut changes = vec![put(&forest.before, None), lifted.clone()];
        for &near in &self.nearest[source] {
            if !forest.ways[near].contains(&source) {
                changes.push(put(&forest.before, Some(near)));
            }
            changes.push(put(&lifted, Some(near)));
            changes.push(put(&follow(&lifted, near, Some(source)), Some(near)));
            let mut ahead = put(&lifted, lifted[near]);
            ahead[near] = Some(source);
            changes.push(ahead);
        }
        changes
    }

    fn forest(&self, before: Vec<Option<usize>>) -> Option<Forest> {
        let ways: Vec<Vec<usize>> = (0..before.len()).map(|i| way(&before, i)).collect();
        let price = |t: &Target, links: &[PlanLink]| {
            self.price(&ways, links, t.device).map_or(f64::INFINITY, Price::total)
        };
        let prices: Vec<Vec<f64>> = (self.targets.iter())
            .map(|t| {
                let alone = t.single.iter().map(|link| price(t, std::slice::from_ref(link)));
                std::iter::once(price(t, &t.planned)).chain(alone).collect()
            })
            .collect();
        let least = |prices: &Vec<f64>| prices.iter().copied().fold(f64::INFINITY, f64::min);
        let objective = self.hand_overs(&before)? + prices.iter().map(least).sum::<f64>();
        objective.is_finite().then_some(Forest { before, ways, prices, objective })
    }

    /// What another forest costs: only models with another way are priced anew. Nothing where a way is
    /// too long or lacks a link.
    fn cost(&self, now: &Forest, before: &[Option<usize>]) -> Option<f64> {
        let mut cost = self.hand_overs(before)?;
        let ways: Vec<Vec<usize>> = (0..before.len()).map(|i| way(before, i)).collect();
        if ways.iter().any(|way| way.len() > self.longest + 1) {
            return None;
        }
        let is_new = |link: &PlanLink| ways[link.from] != now.ways[link.from];
        for (target, known) in self.targets.iter().zip(&now.prices) {
            let single = target.single.iter().map(std::slice::from_ref);
            let offers = std::iter::once(target.planned.as_slice()).chain(single);
            let price = |(links, &known): (&[PlanLink], &f64)| match links.iter().any(is_new) {
                true => self.price(&ways, links, target.device).map_or(f64::INFINITY, Price::total),
                false => known,
            };
            cost += offers.zip(known).map(price).fold(f64::INFINITY, f64::min);
        }
        Some(cost)
    }

    /// φ^E Σ K over all hand-overs; nothing where a link is missing.
    fn hand_overs(&self, before: &[Option<usize>]) -> Option<f64> {
        let hops = before.iter().enumerate().filter_map(|(to, from)| Some(((*from)?, to)));
        hops.map(|(from, to)| {
            let link = self.measured.links.get(from, to)?;
            Some(self.measured.energy_cost(link.energy))
        })
        .sum()
    }

    /// What a target pays for these models, each a mixture of the sources on its way; nothing without a model.
    fn price(&self, ways: &[Vec<usize>], links: &[PlanLink], target: usize) -> Option<Price> {
        if links.is_empty() {
            return None;
        }
        let m = self.measured;
        let samples = |i: usize| m.devices[i].samples() as f64;
        let (mut error, mut energy) = (0.0, 0.0);
        // α of every source whose samples are in some model.
        let mut weights: Vec<(usize, f64)> = Vec::new();
        for link in links {
            energy += m.energy_cost(m.links.get(link.from, target)?.energy);
            let way = &ways[link.from];
            let all: f64 = way.iter().map(|&i| samples(i)).sum();
            for &i in way {
                let moved = match i == link.from {
                    true => 0.0,
                    false => m.links.get(i, link.from)?.divergence,
                };
                let divergence = m.links.get(i, target)?.divergence + moved;
                let weight = link.weight * samples(i) / all;
                error += weight * (m.devices[i].source_error? + 0.5 * divergence);
                match weights.iter_mut().find(|(source, _)| *source == i) {
                    Some((_, sum)) => *sum += weight,
                    None => weights.push((i, weight)),
                }
            }
        }
        let spread = weights.iter().map(|(i, weight)| weight * weight / samples(*i)).sum();
        let bound = m.bound.pooled(error, spread, samples(target));
        Some(Price { error: m.weights.target * bound, energy })
    }

    /// What targets take of a forest.
    fn relayed(&self, forest: Forest, source: f64) -> Option<Relayed> {
        let energy = self.hand_overs(&forest.before)?;
        let mut terms = Terms { source, target: 0.0, energy };
        let mut links = Vec::new();
        for (target, prices) in self.targets.iter().zip(&forest.prices) {
            let cheapest = (0..prices.len()).min_by(|&a, &b| prices[a].total_cmp(&prices[b]))?;
            let taken = match cheapest {
                0 => target.planned.as_slice(),
                single => std::slice::from_ref(&target.single[single - 1]),
            };
            let price = self.price(&forest.ways, taken, target.device)?;
            terms.target += price.error;
            terms.energy += price.energy;
            links.extend_from_slice(taken);
        }
        Some(Relayed { before: forest.before, links, terms })
    }
}
