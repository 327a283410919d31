//! Finds hand-overs that make a plan cheaper, by local search.

use super::{Found, Watch};
use crate::device::Role;
use crate::plan::{Handover, PlanLink, Terms, handed_on_cost, incoming};
use crate::problem::{Measured, Problem};

/// Sources that a source looks at to take a model from: those that are cheapest by error, divergence and energy.
const NEAREST: usize = 16;

/// Chains of sources that the search begins with, beside the plan: many sources make each search long.
fn starts(sources: usize) -> usize {
    match sources {
        few if few <= NEAREST => 8,
        some if some <= 1_000 => 1,
        _ => 0,
    }
}

/// How often the search looks at a target, in all: some ten seconds. Up to about 300 devices it ends before.
const EFFORT: usize = 10_000_000;

/// The least fraction of the objective that a change must save.
const LEAST: f64 = 1e-9;

/// The sources that a source's model has been at, the source itself last.
fn route(handed_from: &[Option<usize>], source: usize) -> Vec<usize> {
    let mut route = Vec::new();
    follow(handed_from, source, &mut route);
    route
}

/// Writes the same into a list that is there.
fn follow(handed_from: &[Option<usize>], source: usize, route: &mut Vec<usize>) {
    route.clear();
    let mut next = Some(source);
    while let Some(source) = next {
        route.push(source);
        next = handed_from[source];
    }
    route.reverse();
}

/// A target, and what it can take.
struct Target {
    device: usize,
    /// The links that it has in the plan that the search starts from.
    planned: Vec<PlanLink>,
    /// A link from each source that it can take alone, ascending.
    single: Vec<PlanLink>,
}

impl Target {
    /// Returns what it can take: first the plan's links, then each single one.
    fn offer(&self, number: usize) -> &[PlanLink] {
        match number {
            0 => &self.planned,
            _ => std::slice::from_ref(&self.single[number - 1]),
        }
    }

    /// Returns the number of the offer that is one source's model alone, if there is such an offer.
    fn single_from(&self, source: usize) -> Option<usize> {
        self.single.binary_search_by_key(&source, |link| link.from).ok().map(|place| place + 1)
    }
}

/// A forest, with what its models cost each target.
struct Forest {
    handed_from: Vec<Option<usize>>,
    routes: Vec<Vec<usize>>,
    /// The price of each offer, by target.
    prices: Vec<Vec<f64>>,
    /// The offers in the order of their price, the cheapest first, by target.
    ranked: Vec<Vec<usize>>,
    objective: f64,
}

impl Forest {
    /// Returns what the objective of a better forest must be below.
    fn goal(&self) -> f64 {
        self.objective - LEAST * self.objective.abs()
    }
}

pub(super) struct Search<'a> {
    measured: &'a Measured,
    sources: Vec<usize>,
    targets: Vec<Target>,
    /// The sources whose models a device may take, the best first, by device.
    nearest: Vec<Vec<usize>>,
    longest: usize,
    /// A hand-over that is not to be.
    without: Option<Handover>,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        problem: &'a Problem,
        measured: &'a Measured,
        roles: &[Role],
        links: &[PlanLink],
        longest: usize,
        without: Option<Handover>,
    ) -> Search<'a> {
        let all = |role: Role| (0..roles.len()).filter(move |&i| roles[i] == role);
        let sources: Vec<usize> = all(Role::Source).filter(|&i| measured.hands_on(i)).collect();
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
            let hands_on = |from: usize| roles[from] == Role::Source && measured.hands_on(from);
            let incoming = measured.links.incoming(to).filter(|l| hands_on(l.from));
            let mut by_cost: Vec<(f64, usize)> = incoming
                .map(|l| {
                    let error = measured.mixing_cost(l.from, to, l.divergence);
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
            without,
        }
    }

    /// The best of several ends, one from the plan and others from sources in chains; nothing where the plan itself is
    /// broken.
    pub(super) fn best(&self, devices: usize, source: f64, watch: &mut Watch<'_>) -> Option<Found> {
        let mut effort = EFFORT;
        let mut best = self.improved(self.forest(vec![None; devices])?, &mut effort, watch)?;
        for &first in self.sources.iter().take(starts(self.sources.len())) {
            let Some(chains) = self.forest(self.chains(first, devices)) else { continue };
            let other = self.improved(chains, &mut effort, watch)?;
            if other.objective < best.goal() {
                best = other;
            }
        }
        self.found(best, source)
    }

    /// Sources in chains of the longest length, each followed by the one that it reaches most cheaply.
    fn chains(&self, first: usize, devices: usize) -> Vec<Option<usize>> {
        let mut handed_from = vec![None; devices];
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
                handed_from[next] = Some(last);
                last = next;
            }
            start = left.pop();
        }
        handed_from
    }

    /// Changes the place of one source after the other, as long as that helps and there is effort left.
    fn improved(
        &self,
        mut forest: Forest,
        effort: &mut usize,
        watch: &mut Watch<'_>,
    ) -> Option<Forest> {
        loop {
            let goal = forest.goal();
            for &source in &self.sources {
                if watch().is_break() {
                    return Some(forest);
                }
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

    /// Other places of a source: with those that follow it or without them, at the end or in the middle of a route.
    fn changes(&self, forest: &Forest, source: usize) -> Vec<Vec<Option<usize>>> {
        let put = |handed_from: &[Option<usize>], from: Option<usize>| {
            let mut changed = handed_from.to_vec();
            changed[source] = from;
            changed
        };
        let follow = |handed_from: &[Option<usize>], left: usize, taken: Option<usize>| {
            let next = |from: &Option<usize>| if *from == Some(left) { taken } else { *from };
            handed_from.iter().map(next).collect::<Vec<_>>()
        };
        let lifted = put(&follow(&forest.handed_from, source, forest.handed_from[source]), None);
        let mut changes = vec![put(&forest.handed_from, None), lifted.clone()];
        for &near in &self.nearest[source] {
            if !forest.routes[near].contains(&source) {
                changes.push(put(&forest.handed_from, Some(near)));
            }
            changes.push(put(&lifted, Some(near)));
            changes.push(put(&follow(&lifted, near, Some(source)), Some(near)));
            let mut ahead = put(&lifted, lifted[near]);
            ahead[near] = Some(source);
            changes.push(ahead);
        }
        changes
    }

    fn forest(&self, handed_from: Vec<Option<usize>>) -> Option<Forest> {
        let routes: Vec<Vec<usize>> =
            (0..handed_from.len()).map(|i| route(&handed_from, i)).collect();
        let price = |target: &Target, offer: usize| {
            let route = |source: usize| &routes[source];
            let price = self.price(route, target.offer(offer), target.device);
            price.map_or(f64::INFINITY, |(error, energy)| error + energy)
        };
        let mut objective = self.handover_energy(&handed_from)?;
        let (mut prices, mut ranked) = (Vec::new(), Vec::new());
        for target in &self.targets {
            let offers: Vec<f64> = (0..=target.single.len()).map(|o| price(target, o)).collect();
            let mut order: Vec<usize> = (0..offers.len()).collect();
            order.sort_by(|&a, &b| offers[a].total_cmp(&offers[b]));
            objective += offers[order[0]];
            prices.push(offers);
            ranked.push(order);
        }
        objective.is_finite().then_some(Forest { handed_from, routes, prices, ranked, objective })
    }

    /// Returns the cost of another forest: only models with another route are priced again. Nothing where a route is
    /// too long or lacks a link.
    fn cost(&self, now: &Forest, handed_from: &[Option<usize>]) -> Option<f64> {
        let mut cost = self.handover_energy(handed_from)?;
        // One per source whose route is another. Most are as before.
        let mut changed: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut is_new = vec![false; handed_from.len()];
        let mut route = Vec::with_capacity(self.longest + 2);
        for &source in &self.sources {
            follow(handed_from, source, &mut route);
            if route.len() > self.longest + 1 {
                return None;
            }
            if route != now.routes[source] {
                is_new[source] = true;
                changed.push((source, route.clone()));
            }
        }
        let changed_to = |source: usize| changed.iter().find(|(of, _)| *of == source);
        let route = |source| changed_to(source).map_or(&now.routes[source], |(_, route)| route);
        for ((target, known), ranked) in self.targets.iter().zip(&now.prices).zip(&now.ranked) {
            let stays = |offer: usize| target.offer(offer).iter().all(|l| !is_new[l.from]);
            let stay = ranked.iter().find(|&&offer| stays(offer));
            let mut least = stay.map_or(f64::INFINITY, |&offer| known[offer]);
            let singles = changed.iter().filter_map(|(from, _)| target.single_from(*from));
            for offer in std::iter::once(0).filter(|&planned| !stays(planned)).chain(singles) {
                let price = self.price(route, target.offer(offer), target.device);
                if let Some((error, energy)) = price {
                    least = least.min(error + energy);
                }
            }
            cost += least;
        }
        Some(cost)
    }

    /// φ^E Σ K over all hand-overs; nothing where a link is missing.
    fn handover_energy(&self, handed_from: &[Option<usize>]) -> Option<f64> {
        let hops = handed_from.iter().enumerate().filter_map(|(to, from)| Some(((*from)?, to)));
        hops.map(|(from, to)| {
            let link = self.measured.links.get(from, to)?;
            if self.without == Some(Handover { from, to }) {
                return None;
            }
            Some(self.measured.energy_cost(link.energy))
        })
        .sum()
    }

    /// What a target pays for these models: φ^T T_j and φ^E Σ K of its links; nothing without a model.
    fn price<'r>(
        &self,
        route: impl Fn(usize) -> &'r Vec<usize>,
        links: &[PlanLink],
        target: usize,
    ) -> Option<(f64, f64)> {
        if links.is_empty() {
            return None;
        }
        handed_on_cost(self.measured, links, target, |source| &route(source)[..], |_| true)
    }

    /// What targets take of a forest, without hand-overs that nobody profits from.
    fn found(&self, mut forest: Forest, source: f64) -> Option<Found> {
        let mut terms = Terms { source, ..Terms::default() };
        let mut links = Vec::new();
        let mut is_used = vec![false; forest.handed_from.len()];
        for (target, ranked) in self.targets.iter().zip(&forest.ranked) {
            let taken = target.offer(ranked[0]);
            let route = |source: usize| &forest.routes[source];
            let (error, energy) = self.price(route, taken, target.device)?;
            terms.target += error;
            terms.energy += energy;
            links.extend_from_slice(taken);
            taken.iter().flat_map(|l| &forest.routes[l.from]).for_each(|&i| is_used[i] = true);
        }
        for (from, _) in forest.handed_from.iter_mut().zip(is_used).filter(|(_, is_used)| !is_used)
        {
            *from = None;
        }
        terms.energy += self.handover_energy(&forest.handed_from)?;
        let handovers = forest.handed_from.iter().enumerate();
        let handovers = handovers.filter_map(|(to, from)| Some(Handover { from: (*from)?, to }));
        Some(Found { handovers: handovers.collect(), links, terms })
    }
}
