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
//! forest costs less (docs/relays.md says how near it comes where all can be tried).

use crate::bound::BoundKind;
use crate::device::Role;
use crate::plan::{PlanLink, Terms, evaluate, incoming};
use crate::problem::{Measured, Model, Problem};

/// Hand-overs that a model makes at most: each is a training that waits for the one before.
pub const LONGEST: usize = 8;

/// Sources that a source looks at to take a model from: those that are cheapest by error, divergence and energy.
const NEAREST: usize = 16;

/// Rows of sources that the search begins with, beside the plan: many sources make each search long.
fn starts(sources: usize) -> usize {
    match sources {
        few if few <= NEAREST => 8,
        some if some <= 1_000 => 1,
        _ => 0,
    }
}

/// How often the search looks at a target, in all: some ten seconds. Up to about 300 devices it ends before.
const EFFORT: usize = 10_000_000;

/// A change must save this share of the objective.
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
    /// A link from each source that it can take alone, ascending.
    single: Vec<PlanLink>,
}

impl Target {
    /// What it can take: first the plan's links, then each single one.
    fn offer(&self, number: usize) -> &[PlanLink] {
        match number {
            0 => &self.planned,
            _ => std::slice::from_ref(&self.single[number - 1]),
        }
    }

    /// The offer of one source's model alone.
    fn single_from(&self, source: usize) -> Option<usize> {
        self.single.binary_search_by_key(&source, |link| link.from).ok().map(|place| place + 1)
    }
}

/// A forest, with what its models cost each target.
struct Forest {
    before: Vec<Option<usize>>,
    ways: Vec<Vec<usize>>,
    /// One per target: the price of each offer.
    prices: Vec<Vec<f64>>,
    /// One per target: the cheapest offer.
    best: Vec<usize>,
    objective: f64,
}

impl Forest {
    /// What a better one must be below.
    fn goal(&self) -> f64 {
        self.objective - LEAST * self.objective.abs()
    }
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
            let senders = measured.links.incoming(device).map(|link| link.from).filter(|&from| {
                roles[from] == Role::Source && required.iter().all(|&asked| asked == from)
            });
            Target {
                device,
                planned: incoming(links, device).to_vec(),
                single: senders.map(|from| PlanLink { from, to: device, weight: 1.0 }).collect(),
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
        let mut effort = EFFORT;
        let mut best = self.improved(self.forest(plan.before.clone())?, &mut effort)?;
        for &first in self.sources.iter().take(starts(self.sources.len())) {
            let Some(rows) = self.forest(self.rows(first, plan.before.len())) else { continue };
            let other = self.improved(rows, &mut effort)?;
            if other.objective < best.goal() {
                best = other;
            }
        }
        self.relayed(best, plan.terms.source)
    }

    /// Sources in rows of the longest length, each followed by the one that it reaches most cheaply.
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

    /// Changes the place of one source after the other, as long as that helps and there is effort left.
    fn improved(&self, mut forest: Forest, effort: &mut usize) -> Option<Forest> {
        loop {
            let goal = forest.goal();
            for &source in &self.sources {
                let mut best: Option<(f64, Vec<Option<usize>>)> = None;
                let changes = self.changes(&forest, source);
                match effort.checked_sub(changes.len() * self.targets.len()) {
                    Some(left) => *effort = left,
                    None => return Some(forest),
                }
                for change in changes {
                    let Some(cost) = self.cost(&forest, &change) else { continue };
                    if cost < best.as_ref().map_or(forest.goal(), |b| b.0) {
                        best = Some((cost, change));
                    }
                }
                if let Some((_, change)) = best {
                    forest = self.forest(change)?;
                }
            }
            if forest.objective >= goal {
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
        let price = |target: &Target, offer: usize| {
            let price = self.price(&ways, target.offer(offer), target.device);
            price.map_or(f64::INFINITY, Price::total)
        };
        let mut objective = self.hand_overs(&before)?;
        let (mut prices, mut best) = (Vec::new(), Vec::new());
        for target in &self.targets {
            let offers: Vec<f64> = (0..=target.single.len()).map(|o| price(target, o)).collect();
            let least = (0..offers.len()).min_by(|&a, &b| offers[a].total_cmp(&offers[b]))?;
            objective += offers[least];
            prices.push(offers);
            best.push(least);
        }
        objective.is_finite().then_some(Forest { before, ways, prices, best, objective })
    }

    /// What another forest costs: only models with another way are priced anew. Nothing where a way is
    /// too long or lacks a link.
    fn cost(&self, now: &Forest, before: &[Option<usize>]) -> Option<f64> {
        let mut cost = self.hand_overs(before)?;
        let ways: Vec<Vec<usize>> = (0..before.len()).map(|i| way(before, i)).collect();
        if ways.iter().any(|way| way.len() > self.longest + 1) {
            return None;
        }
        let is_new: Vec<bool> = ways.iter().zip(&now.ways).map(|(new, old)| new != old).collect();
        let changed: Vec<usize> = self.sources.iter().copied().filter(|&i| is_new[i]).collect();
        for ((target, known), &best) in self.targets.iter().zip(&now.prices).zip(&now.best) {
            let stays = |offer: usize| target.offer(offer).iter().all(|l| !is_new[l.from]);
            let mut least = match stays(best) {
                true => known[best],
                false => (0..known.len())
                    .filter(|&offer| stays(offer))
                    .map(|offer| known[offer])
                    .fold(f64::INFINITY, f64::min),
            };
            let singles = changed.iter().filter_map(|&from| target.single_from(from));
            for offer in std::iter::once(0).filter(|&planned| !stays(planned)).chain(singles) {
                if let Some(price) = self.price(&ways, target.offer(offer), target.device) {
                    least = least.min(price.total());
                }
            }
            cost += least;
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

    /// What targets take of a forest, without hand-overs that nobody profits from.
    fn relayed(&self, mut forest: Forest, source: f64) -> Option<Relayed> {
        let mut terms = Terms { source, ..Terms::default() };
        let mut links = Vec::new();
        let mut is_used = vec![false; forest.before.len()];
        for (target, &best) in self.targets.iter().zip(&forest.best) {
            let taken = target.offer(best);
            let price = self.price(&forest.ways, taken, target.device)?;
            terms.target += price.error;
            terms.energy += price.energy;
            links.extend_from_slice(taken);
            taken.iter().flat_map(|l| &forest.ways[l.from]).for_each(|&i| is_used[i] = true);
        }
        for (from, _) in forest.before.iter_mut().zip(is_used).filter(|(_, is_used)| !is_used) {
            *from = None;
        }
        terms.energy += self.hand_overs(&forest.before)?;
        Some(Relayed { before: forest.before, links, terms })
    }
}
