//! Branch and bound, lowest bound first; what the exact searches have in common.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::facility::Opening;
use crate::status::{Leash, Limits, Observer, Progress, Status, Stop, TOLERANCE, relative_gap};

/// What is decided about a facility in some part of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fixing {
    Free,
    Open,
    Closed,
}

/// Decides every facility by its reduced cost f_i − revenue: those fixed open, and free ones that
/// earn more than they cost, are chosen. Returns what the chosen add to the Lagrangian bound.
pub(crate) fn choose(
    opening: &[Opening],
    revenue: &[f64],
    fixing: &[Fixing],
    chosen: &mut [bool],
) -> f64 {
    let mut bound = 0.0;
    for (i, &fixing) in fixing.iter().enumerate() {
        let reduced = opening[i].cost() - revenue[i];
        chosen[i] = match fixing {
            Fixing::Open => true,
            Fixing::Free => reduced < 0.0,
            Fixing::Closed => false,
        };
        if chosen[i] {
            bound += reduced;
        }
    }
    bound
}

/// Fixes each free facility whose other choice would raise the bound by `room` or more, that is,
/// to where nothing better than the incumbent is.
pub(crate) fn fix(opening: &[Opening], revenue: &[f64], fixing: &mut [Fixing], room: f64) {
    for (i, fixing) in fixing.iter_mut().enumerate() {
        if *fixing == Fixing::Free {
            let reduced = opening[i].cost() - revenue[i];
            if reduced >= room {
                *fixing = Fixing::Closed;
            } else if -reduced >= room {
                *fixing = Fixing::Open;
            }
        }
    }
}

/// The best solution known and what is proven about it.
#[derive(Debug)]
pub(crate) struct Incumbent<S> {
    pub(crate) solution: S,
    pub(crate) objective: f64,
    pub(crate) lower_bound: f64,
    pub(crate) nodes: u64,
    /// The least bound of parts that were left without an answer; infinite if there are none.
    pub(crate) unresolved: f64,
}

impl<S> Incumbent<S> {
    pub(crate) fn new(solution: S, objective: f64, lower_bound: f64) -> Incumbent<S> {
        Incumbent { solution, objective, lower_bound, nodes: 0, unresolved: f64::INFINITY }
    }

    pub(crate) fn offer(&mut self, solution: S, objective: f64) {
        if objective < self.objective {
            self.objective = objective;
            self.solution = solution;
        }
    }

    /// A part of the search that ends here without an answer.
    pub(crate) fn leave_open(&mut self, lower_bound: f64) {
        self.unresolved = self.unresolved.min(lower_bound);
    }

    /// Objectives within the tolerance of the incumbent are no improvement.
    pub(crate) fn cutoff(&self) -> f64 {
        self.objective - TOLERANCE * self.objective.abs()
    }

    pub(crate) fn progress(&self) -> Progress {
        Progress {
            objective: self.objective,
            lower_bound: self.lower_bound.min(self.objective),
            nodes: self.nodes,
        }
    }

    /// How the search ended and what it proved, given what stopped it.
    pub(crate) fn verdict(&self, stop: Option<Stop>) -> (Status, f64) {
        match stop {
            Some(stop) if relative_gap(self.objective, self.lower_bound) > TOLERANCE => {
                (Status::Feasible(stop), self.lower_bound)
            }
            _ => (Status::Optimal, self.objective),
        }
    }

    pub(crate) fn within(&self, limits: &Limits) -> bool {
        limits.gap > 0.0 && relative_gap(self.objective, self.lower_bound) <= limits.gap
    }
}

/// A search tree, explored lowest bound first.
pub(crate) trait Tree {
    /// A part of the search, which can be split into smaller ones.
    type Node;

    /// What the search looks for, with a cost that should be least.
    type Solution;

    /// Returns a value that no solution in the node costs less than.
    fn lower_bound(node: &Self::Node) -> f64;

    /// Tightens the node's bound, offers what solutions it meets, and splits the node. Nothing is
    /// returned where the node holds nothing better than the incumbent, or where it was left open.
    /// Cuts its work short, but still splits, once it is told to stop.
    fn split(
        &mut self,
        node: Self::Node,
        incumbent: &mut Incumbent<Self::Solution>,
        leash: &mut Leash<'_>,
    ) -> Vec<Self::Node>;
}

struct Queued<N> {
    lower_bound: f64,
    node: N,
}

impl<N> PartialEq for Queued<N> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl<N> Eq for Queued<N> {}
impl<N> PartialOrd for Queued<N> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<N> Ord for Queued<N> {
    /// The heap gives its greatest first, which must be the lowest bound.
    fn cmp(&self, other: &Self) -> Ordering {
        other.lower_bound.total_cmp(&self.lower_bound)
    }
}

/// Searches below `root`. `None` when the tree is done, that is, the incumbent is proven.
pub(crate) fn search<T: Tree>(
    tree: &mut T,
    root: T::Node,
    incumbent: &mut Incumbent<T::Solution>,
    limits: &Limits,
    observer: &mut Observer<'_>,
) -> Option<Stop> {
    let queued = |node| Queued { lower_bound: T::lower_bound(&node), node };
    let mut queue = BinaryHeap::from([queued(root)]);
    while let Some(Queued { lower_bound, node }) = queue.pop() {
        incumbent.lower_bound = incumbent.lower_bound.max(lower_bound.min(incumbent.unresolved));
        if lower_bound >= incumbent.cutoff() {
            break;
        }
        if incumbent.within(limits) {
            return Some(Stop::GapReached);
        }
        if incumbent.nodes >= limits.nodes {
            return Some(Stop::NodeLimit);
        }
        if observer(&incumbent.progress()).is_break() {
            return Some(Stop::Observer);
        }
        incumbent.nodes += 1;
        let progress = incumbent.progress();
        let mut ask = || observer(&progress).is_continue();
        let mut leash = Leash::new(&mut ask);
        queue.extend(tree.split(node, incumbent, &mut leash).into_iter().map(queued));
        let left = queue.peek().map_or(f64::INFINITY, |queued| queued.lower_bound);
        let left = left.min(incumbent.unresolved);
        if leash.stopped() && left < incumbent.cutoff() {
            incumbent.lower_bound = incumbent.lower_bound.max(left);
            return Some(Stop::Observer);
        }
    }
    if incumbent.unresolved < incumbent.cutoff() {
        incumbent.lower_bound = incumbent.unresolved;
        return Some(Stop::NoProof);
    }
    incumbent.lower_bound = incumbent.objective;
    None
}
