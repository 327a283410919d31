//! Facility location in which a client may be served by a mixture of facilities.
//!
//! ```text
//! minimise  Σ_{i open} f_i + Σ_{j not served by its own}
//!             ( constant_j + min over A ⊆ open, α on the simplex of A of
//!               Σ_i a_ij α_i + √(Σ_i s_i α_i²) + Σ_{i ∈ A} h_ij )
//! ```
//!
//! With s = 0 this is [`crate::facility`]. A positive s rewards mixing, a charge h limits it. The
//! search starts at the best single-source solution, improves it by opening, closing and
//! exchanging facilities, bounds it by Lagrangian prices and branches on what stays open.

mod clients;
mod cover;
mod instance;
mod local_search;
mod mixture;
mod prices;
mod selection;

use std::cell::Cell;
use std::ops::ControlFlow;

pub use instance::{Candidate, Client, Instance};

use crate::best_first::{self, Fixing, Incumbent, Tree};
use crate::facility;
use crate::status::{Leash, Limits, Observer, Progress, Status, Stop, relative_gap};
use local_search::{Neighbours, Search, Served};
use mixture::Part;
use prices::{Node, Prices};

/// Which facilities open, who is served by what mixture, and what is proven.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// Whether each facility is open, one entry per facility.
    pub open: Vec<bool>,
    /// (facility, weight) of each client's mixture; empty where its own facility serves it.
    pub mixtures: Vec<Vec<(u32, f64)>>,
    /// The cost of this solution, opening costs included.
    pub objective: f64,
    /// A value that no solution's cost can be below.
    pub lower_bound: f64,
    /// Whether the solution is proven optimal, or why the search ended without that proof.
    pub status: Status,
    /// The number of branch-and-bound nodes that were explored.
    pub nodes: u64,
}

/// The best mixture over given sources, each with its cost per weight a_i and its spread s_i above 0: the α on the simplex at which
/// Σ a_i α_i + √(Σ s_i α_i²) is least.
pub fn best_mixture(sources: &[(f64, f64)]) -> Vec<f64> {
    let part = |&(slope, spread): &(f64, f64)| Part { slope, inverse_spread: 1.0 / spread };
    let parts: Vec<Part> = sources.iter().map(part).collect();
    let lambda = mixture::value(&mut parts.clone());
    mixture::weights(&parts, lambda)
}

/// How much work goes where; small instances are searched to the end, large ones in outline.
struct Effort {
    /// Branchings for one client's choice of links, when it counts and when it only bounds.
    serve: usize,
    bound: usize,
    root_rounds: usize,
    node_rounds: usize,
}

/// Branchings for one client's choice of links once every facility is decided.
const LEAF_NODES: usize = 100_000;

impl Effort {
    fn of(instance: &Instance) -> Effort {
        if instance.clients() <= 64 {
            Effort { serve: 100_000, bound: 100_000, root_rounds: 60, node_rounds: 20 }
        } else {
            Effort { serve: 40, bound: 40, root_rounds: 60, node_rounds: 20 }
        }
    }
}

/// Solves to the limits; by default to a proof.
///
/// Every client must have a candidate that may open, or an own facility that may.
pub fn solve(instance: &Instance, limits: &Limits, observer: &mut Observer<'_>) -> Solution {
    let effort = Effort::of(instance);
    let neighbours = Neighbours::new(instance);
    let single = instance.single_sources();
    let rough = Limits { gap: limits.gap.max(1e-3), ..*limits };
    let mut stopped = false;
    let start = facility::solve(&single, &rough, &mut |progress| {
        // The single-source problem bounds the mixtures from above only.
        let seen = Progress { lower_bound: 0.0, ..*progress };
        stopped = stopped || observer(&seen).is_break();
        if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let begun = Progress { objective: start.objective, lower_bound: 0.0, nodes: 0 };
    let mut ask = || !stopped && observer(&begun).is_continue();
    let mut leash = Leash::new(&mut ask);
    let mut search = Search::new(instance, &neighbours, start.open, effort.serve, &mut leash);
    search.descend(true, &mut leash);
    let objective = search.objective;
    let mut incumbent = Incumbent::new(search.into_served(), objective, f64::NEG_INFINITY);
    let mut root = Node::root(instance, &facility::prices(&single, &mut leash));
    let mut tree = Mixtures {
        instance,
        neighbours: &neighbours,
        prices: Prices::new(instance, effort.bound),
        effort,
    };
    let stop = if leash.stopped() {
        // One evaluation, so that even then there is a bound.
        tree.prices.climb(&mut root, incumbent.cutoff(), 1, &mut leash, |_| true);
        incumbent.lower_bound = root.lower_bound;
        Some(Stop::Observer)
    } else {
        tree.close_gap(root, &mut incumbent, limits, observer)
    };
    let (status, lower_bound) = incumbent.verdict(stop);
    // Whoever said stop is not kept waiting for the last digits of every mixture.
    if stop != Some(Stop::Observer) {
        let progress = incumbent.progress();
        let mut ask = || observer(&progress).is_continue();
        let (open, leash) = (incumbent.solution.open.clone(), &mut Leash::new(&mut ask));
        let end = Search::new(instance, &neighbours, open, LEAF_NODES, leash);
        let objective = end.objective;
        incumbent.offer(end.into_served(), objective);
    }
    let Served { open, used } = incumbent.solution;
    Solution {
        mixtures: used.iter().map(|used| instance.weights(used)).collect(),
        objective: incumbent.objective,
        lower_bound: lower_bound.min(incumbent.objective),
        status,
        nodes: incumbent.nodes,
        open,
    }
}

/// The tree of open and closed facilities, bounded by prices.
struct Mixtures<'a> {
    instance: &'a Instance,
    neighbours: &'a Neighbours,
    prices: Prices<'a>,
    effort: Effort,
}

impl Mixtures<'_> {
    fn close_gap(
        &mut self,
        mut root: Node,
        incumbent: &mut Incumbent<Served>,
        limits: &Limits,
        observer: &mut Observer<'_>,
    ) -> Option<Stop> {
        let progress = Cell::new(incumbent.progress());
        let mut ask = || observer(&progress.get()).is_continue();
        let mut leash = Leash::new(&mut ask);
        let (objective, cutoff) = (incumbent.objective, incumbent.cutoff());
        let raising = |lower_bound: f64| {
            progress.set(Progress { lower_bound, ..progress.get() });
            relative_gap(objective, lower_bound) > limits.gap
        };
        let rounds = self.effort.root_rounds;
        let proven = self.prices.climb(&mut root, cutoff, rounds, &mut leash, raising);
        incumbent.lower_bound = root.lower_bound;
        if proven {
            return None;
        }
        if leash.stopped() {
            return Some(Stop::Observer);
        }
        self.improve(incumbent, &mut leash);
        best_first::search(self, root, incumbent, limits, observer)
    }

    /// Tries the facilities that the prices chose, repaired, as an incumbent.
    fn improve(&self, incumbent: &mut Incumbent<Served>, leash: &mut Leash<'_>) {
        let chosen = self.prices.chosen();
        let nodes = self.effort.serve;
        let mut search = Search::new(self.instance, self.neighbours, chosen, nodes, leash);
        search.descend(false, leash);
        let objective = search.objective;
        incumbent.offer(search.into_served(), objective);
    }
}

impl Tree for Mixtures<'_> {
    type Node = Node;
    type Solution = Served;

    fn lower_bound(node: &Node) -> f64 {
        node.lower_bound
    }

    fn split(
        &mut self,
        mut node: Node,
        incumbent: &mut Incumbent<Served>,
        leash: &mut Leash<'_>,
    ) -> Vec<Node> {
        let rounds = self.effort.node_rounds;
        if self.prices.climb(&mut node, incumbent.cutoff(), rounds, leash, |_| true) {
            return Vec::new();
        }
        if !leash.stopped() {
            self.improve(incumbent, leash);
        }
        let doubt = |i: &usize| (self.prices.frequency[*i] - 0.5).abs();
        let free = (0..node.fixing.len()).filter(|&i| node.fixing[i] == Fixing::Free);
        match free.min_by(|a, b| doubt(a).total_cmp(&doubt(b))) {
            Some(i) => [Fixing::Open, Fixing::Closed]
                .into_iter()
                .map(|fixing| {
                    let mut child = node.clone();
                    child.fixing[i] = fixing;
                    child
                })
                .collect(),
            None => {
                let open: Vec<bool> = node.fixing.iter().map(|&f| f == Fixing::Open).collect();
                let search = Search::new(self.instance, self.neighbours, open, LEAF_NODES, leash);
                let objective = search.objective;
                incumbent.offer(search.into_served(), objective);
                // With every facility decided, only the limit on choosing links leaves a gap, and
                // branching cannot close that.
                self.prices.nodes = LEAF_NODES;
                let cutoff = incumbent.cutoff();
                let proven = self.prices.climb(&mut node, cutoff, 1, leash, |_| true);
                self.prices.nodes = self.effort.bound;
                if !proven {
                    incumbent.leave_open(node.lower_bound);
                }
                Vec::new()
            }
        }
    }
}

#[cfg(test)]
mod tests;
