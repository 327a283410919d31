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

mod cover;
mod instance;
mod local_search;
mod mixture;
mod prices;
mod selection;

use std::ops::ControlFlow;

pub use instance::{Candidate, Client, Instance};

use crate::best_first::{self, Fixing, Incumbent, Tree};
use crate::facility;
use crate::status::{Limits, Observer, Progress, Status, Stop, relative_gap};
use local_search::{Neighbours, Search};
use prices::{Node, Prices};

/// Which facilities open, who is served by what mixture, and what is proven.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// One per facility.
    pub open: Vec<bool>,
    /// (facility, weight) of each client's mixture; empty where its own facility serves it.
    pub mixtures: Vec<Vec<(u32, f64)>>,
    /// Cost of this solution.
    pub objective: f64,
    /// No solution costs less.
    pub lower_bound: f64,
    /// Proven optimal, or why not.
    pub status: Status,
    /// Branch-and-bound nodes.
    pub nodes: u64,
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

/// From this many clients on they are asked in parallel.
const PARALLEL: usize = 256;

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
    let mut search = Search::new(instance, &neighbours, start.open, effort.serve);
    search.descend(true, &mut || {
        let objective = start.objective;
        let seen = Progress { objective, lower_bound: 0.0, nodes: 0 };
        stopped = stopped || observer(&seen).is_break();
        !stopped
    });
    let mut incumbent = Incumbent::new(search.open, search.objective, f64::NEG_INFINITY);
    let mut root = Node::root(instance, &facility::prices(&single));
    let mut tree = Mixtures {
        instance,
        neighbours: &neighbours,
        prices: Prices::new(instance, effort.bound),
        effort,
    };
    let stop = if stopped {
        // One evaluation, so that even then there is a bound.
        tree.prices.climb(&mut root, incumbent.cutoff(), 1, |_| true);
        incumbent.lower_bound = root.lower_bound;
        Some(Stop::Observer)
    } else {
        tree.close_gap(root, &mut incumbent, limits, observer)
    };
    let (status, lower_bound) = incumbent.verdict(stop);
    // Whoever said stop is not kept waiting for the last digits of every mixture.
    let nodes = if stop == Some(Stop::Observer) { tree.effort.serve } else { LEAF_NODES };
    let end = Search::new(instance, &neighbours, incumbent.open, nodes);
    Solution {
        mixtures: end.mixtures(),
        objective: end.objective,
        lower_bound: lower_bound.min(end.objective),
        status,
        nodes: incumbent.nodes,
        open: end.open,
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
        incumbent: &mut Incumbent,
        limits: &Limits,
        observer: &mut Observer<'_>,
    ) -> Option<Stop> {
        let mut progress = incumbent.progress();
        let mut stopped = false;
        let objective = incumbent.objective;
        let rounds = self.effort.root_rounds;
        let proven = self.prices.climb(&mut root, incumbent.cutoff(), rounds, |lower_bound| {
            progress.lower_bound = lower_bound;
            stopped = stopped || observer(&progress).is_break();
            !stopped && relative_gap(objective, lower_bound) > limits.gap
        });
        incumbent.lower_bound = root.lower_bound;
        if proven {
            return None;
        }
        if stopped {
            return Some(Stop::Observer);
        }
        self.improve(incumbent, &mut || observer(&progress).is_continue());
        best_first::search(self, root, incumbent, limits, observer)
    }

    /// Tries the facilities that the prices chose, repaired, as an incumbent.
    fn improve(&self, incumbent: &mut Incumbent, go_on: &mut dyn FnMut() -> bool) {
        let chosen = self.prices.chosen();
        let mut search = Search::new(self.instance, self.neighbours, chosen, self.effort.serve);
        search.descend(false, go_on);
        incumbent.offer(search.open, search.objective);
    }
}

impl Tree for Mixtures<'_> {
    type Node = Node;

    fn lower_bound(node: &Node) -> f64 {
        node.lower_bound
    }

    fn split(
        &mut self,
        mut node: Node,
        incumbent: &mut Incumbent,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Vec<Node> {
        let rounds = self.effort.node_rounds;
        if self.prices.climb(&mut node, incumbent.cutoff(), rounds, |_| go_on()) {
            return Vec::new();
        }
        self.improve(incumbent, go_on);
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
                let search = Search::new(self.instance, self.neighbours, open, LEAF_NODES);
                incumbent.offer(search.open, search.objective);
                // With every facility decided, only the limit on choosing links leaves a gap, and
                // branching cannot close that.
                self.prices.nodes = LEAF_NODES;
                let proven = self.prices.climb(&mut node, incumbent.cutoff(), 1, |_| true);
                self.prices.nodes = self.effort.bound;
                if !proven {
                    incumbent.unresolved = incumbent.unresolved.min(node.lower_bound);
                }
                Vec::new()
            }
        }
    }
}

#[cfg(test)]
mod tests;
