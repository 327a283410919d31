//! Uncapacitated facility location, solved to proven optimality.
//!
//! ```text
//! minimise   Σ_i f_i y_i + Σ_ij c_ij x_ij
//! such that  Σ_i x_ij = 1,   0 ≤ x_ij ≤ y_i,   y_i ∈ {0, 1}
//! ```
//!
//! for clients j, facilities i with opening costs f_i, and service costs c_ij over each client's
//! candidates. Dual ascent gives a first lower bound, local search a first solution, the
//! Lagrangian bound closes most of what is left and fixes facilities, and branch and bound does
//! the rest. Whatever ends the search, the lower bound and the gap are true.

mod branch;
mod dual_ascent;
mod instance;
mod lagrangian;
mod lists;
mod local_search;

use std::borrow::Cow;
use std::cell::Cell;

pub use instance::{Candidate, FacilityError, Instance, Opening};

use crate::best_first::{self, Fixing, Incumbent};
use crate::status::{Leash, Limits, Observer, Progress, Status, Stop, TOLERANCE, relative_gap};
use branch::Openings;
use instance::{Reduced, Served};
use lagrangian::{Lagrangian, Node};
use local_search::Search;

/// Climbing steps at the root between two attempts at a better solution.
const ROOT_ROUNDS: usize = 50;

/// Which facilities open, who serves whom, and what is proven.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// Whether each facility is open, one entry per facility.
    pub open: Vec<bool>,
    /// The facility that serves each client.
    pub assigned: Vec<u32>,
    /// The cost of this solution: opening costs and costs of serving clients.
    pub objective: f64,
    /// A value that no solution's cost can be below.
    pub lower_bound: f64,
    /// Whether the solution is proven optimal, or why the search ended without that proof.
    pub status: Status,
    /// The number of branch-and-bound nodes that were explored.
    pub nodes: u64,
}

/// Solves to the limits; by default to a proof.
pub fn solve(instance: &Instance, limits: &Limits, observer: &mut Observer<'_>) -> Solution {
    let progress = Cell::new(Progress { objective: f64::INFINITY, lower_bound: 0.0, nodes: 0 });
    let mut ask = || observer(&progress.get()).is_continue();
    let mut leash = Leash::new(&mut ask);
    let prices = dual_ascent::ascend(instance, &mut leash);
    progress.set(Progress { lower_bound: prices.lower_bound, ..progress.get() });
    let served = instance.served();
    // Facilities without slack are those that the prices pay for in full.
    let paid = |i: usize| prices.slack[i] <= TOLERANCE * instance.opening[i].cost().max(1e-300);
    let start = (0..instance.facilities()).map(paid).collect();
    let open = Search::new(instance, &served, start).descend(true, &mut leash);
    let objective = instance.objective(&open);
    let mut incumbent = Incumbent::new(open, objective, prices.lower_bound);
    let root = Node {
        fixing: instance.opening.iter().map(|&o| fixing(o)).collect(),
        value: prices.value,
        lower_bound: prices.lower_bound,
        agility: 1.0,
    };
    let stop = close_gap(instance, served, root, &mut incumbent, limits, observer);
    finish(instance, incumbent, stop)
}

/// Opens, closes and swaps facilities from `open` to a local optimum, without proof.
pub fn descend(instance: &Instance, open: Vec<bool>, go_on: &mut dyn FnMut() -> bool) -> Solution {
    let served = instance.served();
    let open = Search::new(instance, &served, open).descend(true, &mut Leash::new(go_on));
    let objective = instance.objective(&open);
    finish(instance, Incumbent::new(open, objective, f64::NEG_INFINITY), Some(Stop::NoProof))
}

/// Proves the incumbent or finds better; `None` once proven.
fn close_gap(
    instance: &Instance,
    mut served: Served,
    mut root: Node,
    incumbent: &mut Incumbent<Vec<bool>>,
    limits: &Limits,
    observer: &mut Observer<'_>,
) -> Option<Stop> {
    let mut reduced = Cow::Borrowed(instance);
    let mut free = count_free(&root);
    while !root.exhausted() {
        if root.lower_bound >= incumbent.cutoff() {
            return None;
        }
        if incumbent.within(limits) {
            return Some(Stop::GapReached);
        }
        let objective = incumbent.objective;
        let progress = Cell::new(incumbent.progress());
        let mut ask = || observer(&progress.get()).is_continue();
        let mut leash = Leash::new(&mut ask);
        if !leash.go_on() {
            return Some(Stop::Observer);
        }
        let mut lagrangian = Lagrangian::new(&reduced);
        let raising = |lower_bound: f64| {
            let seen = progress.get();
            progress.set(Progress { lower_bound: seen.lower_bound.max(lower_bound), ..seen });
            relative_gap(objective, lower_bound) > limits.gap
        };
        let cutoff = incumbent.cutoff();
        if lagrangian.climb(&mut root, cutoff, ROOT_ROUNDS, &mut leash, raising) {
            return None;
        }
        incumbent.lower_bound = incumbent.lower_bound.max(root.lower_bound);
        let often = lagrangian.frequency.iter().map(|&share| share > 0.5).collect();
        for open in [lagrangian.chosen_at(&root), often] {
            if leash.stopped() {
                return Some(Stop::Observer);
            }
            branch::improve(&reduced, &served, open, incumbent, &mut leash);
        }
        let left = count_free(&root);
        if left * 10 < free * 9 {
            free = left;
            let closed: Vec<bool> = root.fixing.iter().map(|&f| f == Fixing::Closed).collect();
            match reduced.without(&closed) {
                Reduced::Instance(smaller) => {
                    served = smaller.served();
                    reduced = Cow::Owned(smaller);
                }
                Reduced::Unservable => return None,
                // Only what the list leaves out may serve this client: nothing is proven, and the
                // search for solutions needs the longer list.
                Reduced::ServedElsewhere => {}
            }
        }
    }
    let mut tree = Openings::new(&reduced, &served);
    best_first::search(&mut tree, root, incumbent, limits, observer)
}

/// Returns the prices v_j of dual ascent, one per client.
pub(crate) fn prices(instance: &Instance, leash: &mut Leash<'_>) -> Vec<f64> {
    dual_ascent::ascend(instance, leash).value
}

/// What an opening says before the search begins.
pub(crate) fn fixing(opening: Opening) -> Fixing {
    match opening {
        Opening::May(_) => Fixing::Free,
        Opening::Must(_) => Fixing::Open,
        Opening::Never => Fixing::Closed,
    }
}

fn count_free(node: &Node) -> usize {
    node.fixing.iter().filter(|&&f| f == Fixing::Free).count()
}

fn finish(instance: &Instance, incumbent: Incumbent<Vec<bool>>, stop: Option<Stop>) -> Solution {
    let assigned = (0..instance.clients())
        .map(|client| {
            let at = instance.cheapest_open(client, &incumbent.solution);
            // Local search starts from, and keeps, solutions that serve every client.
            instance.facility[at.expect("every client is served")]
        })
        .collect();
    let (status, lower_bound) = incumbent.verdict(stop);
    Solution {
        assigned,
        objective: incumbent.objective,
        lower_bound,
        status,
        nodes: incumbent.nodes,
        open: incumbent.solution,
    }
}

#[cfg(test)]
mod tests;
