//! Branching on whether a facility opens.

use super::instance::{Instance, Served};
use super::lagrangian::{Lagrangian, Node};
use super::local_search::Search;
use crate::best_first::{Fixing, Incumbent, Tree};

/// Climbing steps at each node.
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

    /// The free facility about which the climb was least of one mind; the dearer on a tie.
    fn branching_facility(&self, node: &Node) -> Option<usize> {
        let doubt = |i: usize| (self.lagrangian.frequency[i] - 0.5).abs();
        let cost = |i: usize| self.instance.opening[i].cost();
        (0..node.fixing.len())
            .filter(|&i| node.fixing[i] == Fixing::Free)
            .min_by(|&a, &b| doubt(a).total_cmp(&doubt(b)).then(cost(b).total_cmp(&cost(a))))
    }

    /// Whether every client of a facility just closed still has a candidate.
    fn serves_all(&self, node: &Node, closed: usize) -> bool {
        self.served.by(closed).iter().all(|&(client, _)| {
            self.instance
                .list(client as usize)
                .any(|at| node.fixing[self.instance.facility[at] as usize] != Fixing::Closed)
        })
    }
}

impl Tree for Openings<'_> {
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
        node.agility = 1.0;
        if self.lagrangian.climb(&mut node, incumbent.cutoff(), ROUNDS, |_| go_on()) {
            return Vec::new();
        }
        let chosen = self.lagrangian.chosen_at(&node);
        improve(self.instance, self.served, chosen, incumbent, go_on);
        let Some(facility) = self.branching_facility(&node) else {
            let open: Vec<bool> = node.fixing.iter().map(|&f| f == Fixing::Open).collect();
            let objective = self.instance.objective(&open);
            incumbent.offer(open, objective);
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
    incumbent: &mut Incumbent,
    go_on: &mut dyn FnMut() -> bool,
) {
    let open = Search::new(instance, served, chosen).descend(false, &mut *go_on);
    // Exchanging costs more; it is worth it only near the incumbent.
    if instance.objective(&open) < 1.02 * incumbent.objective {
        let open = Search::new(instance, served, open).descend(true, go_on);
        let objective = instance.objective(&open);
        incumbent.offer(open, objective);
    }
}
