//! Branching on whether a facility opens.

use super::instance::{Instance, Served};
use super::lagrangian::{Lagrangian, Node};
use super::local_search::Search;
use crate::best_first::{Fixing, Incumbent, Tree};
use crate::status::Leash;

/// The number of climbing steps at each node.
const ROUNDS: usize = 60;

/// The tree of open and closed facilities.
pub(super) struct Openings<'a> {
    instance: &'a Instance,
    served: &'a Served,
    lagrangian: Lagrangian<'a>,
}

impl<'a> Openings<'a> {
    pub(super) fn new(instance: &'a Instance, served: &'a Served) -> Self {
        Openings { instance, served, lagrangian: Lagrangian::new(instance) }
    }

    /// The free facility about which the climb was least decided; the more expensive one on a tie.
    fn branching_facility(&self, node: &Node) -> Option<usize> {
        let doubt = |i: usize| (self.lagrangian.frequency[i] - 0.5).abs();
        let cost = |i: usize| self.instance.opening[i].cost();
        (0..node.fixing.len())
            .filter(|&i| node.fixing[i] == Fixing::Free)
            .min_by(|&a, &b| doubt(a).total_cmp(&doubt(b)).then(cost(b).total_cmp(&cost(a))))
    }

    /// Whether every client of a facility just closed may still be served, be it by a facility
    /// that its list leaves out.
    fn serves_all(&self, node: &Node, closed: usize) -> bool {
        self.served.by(closed).iter().all(|&(client, _)| {
            let client = client as usize;
            let is_closed = |at| node.fixing[self.instance.facility[at] as usize] == Fixing::Closed;
            self.instance.tail[client] < f64::INFINITY || !self.instance.list(client).all(is_closed)
        })
    }
}

impl Tree for Openings<'_> {
    type Node = Node;
    type Solution = Vec<bool>;

    fn lower_bound(node: &Node) -> f64 {
        node.lower_bound
    }

    fn split(
        &mut self,
        mut node: Node,
        incumbent: &mut Incumbent<Vec<bool>>,
        leash: &mut Leash<'_>,
    ) -> Vec<Node> {
        node.agility = 1.0;
        if self.lagrangian.climb(&mut node, incumbent.cutoff(), ROUNDS, leash, |_| true) {
            return Vec::new();
        }
        if !leash.stopped() {
            let chosen = self.lagrangian.chosen_at(&node);
            improve(self.instance, self.served, chosen, incumbent, leash);
        }
        let Some(facility) = self.branching_facility(&node) else {
            let open: Vec<bool> = node.fixing.iter().map(|&f| f == Fixing::Open).collect();
            let (objective, lower_bound) = self.instance.objective_and_bound(&open);
            incumbent.offer(open, objective);
            // What the lists leave out may be cheaper, and branching cannot tell.
            if lower_bound < objective {
                incumbent.leave_open(lower_bound.max(node.lower_bound));
            }
            return Vec::new();
        };
        let mut closed = node.clone();
        closed.fixing[facility] = Fixing::Closed;
        let mut children = Vec::with_capacity(2);
        if self.serves_all(&closed, facility) {
            children.push(closed);
        }
        node.fixing[facility] = Fixing::Open;
        children.push(node);
        children
    }
}

/// Tries the Lagrangian solution, repaired, as an incumbent.
pub(super) fn improve(
    instance: &Instance,
    served: &Served,
    chosen: Vec<bool>,
    incumbent: &mut Incumbent<Vec<bool>>,
    leash: &mut Leash<'_>,
) {
    let open = Search::new(instance, served, chosen).descend(false, leash);
    // Exchanging costs more; it is worth it only near the incumbent.
    if instance.objective(&open) < 1.02 * incumbent.objective {
        let open = Search::new(instance, served, open).descend(true, leash);
        let objective = instance.objective(&open);
        incumbent.offer(open, objective);
    }
}
