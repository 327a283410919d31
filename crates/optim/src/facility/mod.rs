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
mod local_search;

use std::borrow::Cow;

pub use instance::{Candidate, FacilityError, Instance, Opening};

use crate::best_first::{self, Fixing, Incumbent};
use crate::status::{Limits, Observer, Progress, Status, Stop, TOLERANCE, relative_gap};
use branch::Openings;
use instance::Served;
use lagrangian::{Lagrangian, Node};
use local_search::Search;

/// Climbing steps at the root between two attempts at a better solution.
const ROOT_ROUNDS: usize = 50;

/// Which facilities open, who serves whom, and what is proven.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// One per facility.
    pub open: Vec<bool>,
    /// The facility that serves each client.
    pub assigned: Vec<u32>,
    /// Cost of this solution.
    pub objective: f64,
    /// No solution costs less.
    pub lower_bound: f64,
    /// Proven optimal, or why not.
    pub status: Status,
    /// Branch-and-bound nodes.
    pub nodes: u64,
}

/// Solves to the limits; by default to a proof.
pub fn solve(instance: &Instance, limits: &Limits, observer: &mut Observer<'_>) -> Solution {
    let prices = dual_ascent::ascend(instance);
    let served = instance.served();
    // Facilities without slack are those that the prices pay for in full.
    let paid = |i: usize| prices.slack[i] <= TOLERANCE * instance.opening[i].cost().max(1e-300);
    let start = (0..instance.facilities()).map(paid).collect();
    let begun = Progress { objective: f64::INFINITY, lower_bound: prices.lower_bound, nodes: 0 };
    let open =
        Search::new(instance, &served, start).descend(true, &mut || observer(&begun).is_continue());
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
pub fn descend(instance: &Instance, open: Vec<bool>) -> Solution {
    let served = instance.served();
    let open = Search::new(instance, &served, open).descend(true, &mut || true);
    let objective = instance.objective(&open);
    finish(instance, Incumbent::new(open, objective, f64::NEG_INFINITY), Some(Stop::NoProof))
}

/// Proves the incumbent or finds better; `None` once proven.
fn close_gap(
    instance: &Instance,
    mut served: Served,
    mut root: Node,
    incumbent: &mut Incumbent,
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
        let mut progress = incumbent.progress();
        let mut stopped = observer(&progress).is_break();
        let mut lagrangian = Lagrangian::new(&reduced);
        let done = lagrangian.climb(&mut root, incumbent.cutoff(), ROOT_ROUNDS, |lower_bound| {
            progress.lower_bound = progress.lower_bound.max(lower_bound);
            stopped = stopped || observer(&progress).is_break();
            !stopped && relative_gap(objective, lower_bound) > limits.gap
        });
        if done {
            return None;
        }
        incumbent.lower_bound = incumbent.lower_bound.max(root.lower_bound);
        if stopped {
            return Some(Stop::Observer);
        }
        let often = lagrangian.frequency.iter().map(|&share| share > 0.5).collect();
        for open in [lagrangian.chosen_at(&root), often] {
            let mut go_on = || observer(&progress).is_continue();
            branch::improve(&reduced, &served, open, incumbent, &mut go_on);
        }
        let left = count_free(&root);
        if left * 10 < free * 9 {
            free = left;
            let closed: Vec<bool> = root.fixing.iter().map(|&f| f == Fixing::Closed).collect();
            reduced = Cow::Owned(reduced.without(&closed));
            if (0..reduced.clients()).any(|client| reduced.list(client).is_empty()) {
                return None;
            }
            served = reduced.served();
        }
    }
    let mut tree = Openings::new(&reduced, &served);
    best_first::search(&mut tree, root, incumbent, limits, observer)
}

/// Dual-ascent prices v_j, one per client.
pub(crate) fn prices(instance: &Instance) -> Vec<f64> {
    dual_ascent::ascend(instance).value
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

fn finish(instance: &Instance, incumbent: Incumbent, stop: Option<Stop>) -> Solution {
    let assigned = (0..instance.clients())
        .map(|client| {
            let at = instance.cheapest_open(client, &incumbent.open);
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
        open: incumbent.open,
    }
}

#[cfg(test)]
mod tests;
