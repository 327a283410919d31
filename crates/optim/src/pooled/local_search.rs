//! Opening, closing and exchanging facilities while that lowers the cost of all mixtures.

use super::clients::{Answer, ask_all};
use super::instance::Instance;
use super::selection::Selector;
use crate::facility::Opening;
use crate::status::Leash;

/// Clients of a facility: those with a link to it and where that is, and those whose own it is.
#[derive(Debug)]
pub(super) struct Neighbours {
    linked: Vec<Vec<(u32, u32)>>,
    owners: Vec<Vec<u32>>,
}

impl Neighbours {
    pub(super) fn new(instance: &Instance) -> Self {
        let mut linked = vec![Vec::new(); instance.facilities()];
        let mut owners = vec![Vec::new(); instance.facilities()];
        for client in 0..instance.clients() {
            for at in instance.list(client) {
                linked[instance.facility[at] as usize].push((client as u32, at as u32));
            }
            if let Some(own) = instance.own[client] {
                owners[own as usize].push(client as u32);
            }
        }
        Neighbours { linked, owners }
    }
}

/// A solution: which facilities are open, and every client's links and cost.
#[derive(Debug)]
pub(super) struct Search<'a> {
    instance: &'a Instance,
    neighbours: &'a Neighbours,
    selector: Selector,
    nodes: usize,
    open: Vec<bool>,
    cost: Vec<f64>,
    used: Vec<Vec<usize>>,
    pub(super) objective: f64,
}

/// Which facilities are open and which links are used, without what that costs.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) open: Vec<bool>,
    /// The links that every client uses.
    pub(super) used: Vec<Vec<usize>>,
}

/// A client's new cost and links.
type Change = (usize, f64, Vec<usize>);

impl<'a> Search<'a> {
    /// Starts from `open`; facilities that must open do, and clients left without any get the one
    /// that alone costs least.
    pub(super) fn new(
        instance: &'a Instance,
        neighbours: &'a Neighbours,
        mut open: Vec<bool>,
        nodes: usize,
        leash: &mut Leash<'_>,
    ) -> Self {
        for (open, opening) in open.iter_mut().zip(&instance.opening) {
            *open = matches!(opening, Opening::Must(_)) || *open && *opening != Opening::Never;
        }
        for client in 0..instance.clients() {
            let served = instance.own[client].is_some_and(|i| open[i as usize])
                || instance.list(client).any(|at| open[instance.facility[at] as usize]);
            if !served {
                let vertex = |at: &usize| instance.vertex(client, *at);
                let nearest = instance.list(client).min_by(|a, b| vertex(a).total_cmp(&vertex(b)));
                let nearest = nearest.map(|at| instance.facility[at]).or(instance.own[client]);
                if let Some(i) = nearest {
                    open[i as usize] = true;
                }
            }
        }
        let mut search = Search {
            instance,
            neighbours,
            selector: Selector::default(),
            nodes,
            cost: vec![0.0; instance.clients()],
            used: vec![Vec::new(); instance.clients()],
            objective: 0.0,
            open,
        };
        search.serve_everybody(leash);
        search.objective = search.total();
        search
    }

    fn serve_everybody(&mut self, leash: &mut Leash<'_>) {
        let Search { instance, ref open, nodes, .. } = *self;
        let serve =
            |client: usize, nodes: usize, selector: &mut Selector, leash: &mut Leash<'_>| {
                instance.serve(client, |i| open[i], nodes, selector, leash);
                let best = &selector.best;
                let is_final = best.lower_bound >= best.cost;
                Answer { value: (client, best.cost, best.used.clone()), is_final }
            };
        let everybody = ask_all(instance, nodes, &mut self.selector, leash, serve);
        self.apply(everybody);
    }

    fn total(&self) -> f64 {
        let open = (0..self.open.len()).filter(|&i| self.open[i]);
        open.map(|i| self.instance.opening[i].cost()).sum::<f64>() + self.cost.iter().sum::<f64>()
    }

    /// Returns the solution as it stands.
    pub(super) fn into_served(self) -> Served {
        Served { open: self.open, used: self.used }
    }

    fn serve(&mut self, client: usize, leash: &mut Leash<'_>) -> Change {
        let open = &self.open;
        self.instance.serve(client, |i| open[i], self.nodes, &mut self.selector, leash);
        (client, self.selector.best.cost, self.selector.best.used.clone())
    }

    fn apply(&mut self, changes: Vec<Change>) {
        for (client, cost, used) in changes {
            self.cost[client] = cost;
            self.used[client] = used;
        }
    }

    /// Runs to a local optimum, or until told to stop.
    pub(super) fn descend(&mut self, swaps: bool, leash: &mut Leash<'_>) {
        let epsilon = 1e-10 * self.objective.abs().max(1e-300);
        loop {
            let mut moved = false;
            for i in 0..self.open.len() {
                let before = self.objective;
                if self.may_toggle(i) {
                    self.toggle(i, before - epsilon, leash);
                }
                moved |= self.objective < before;
                if i % 64 == 63 {
                    leash.go_on();
                }
                if leash.stopped() {
                    return;
                }
            }
            if !moved && swaps {
                moved = self.exchange(epsilon, leash);
            }
            if !moved || !leash.go_on() {
                return;
            }
        }
    }

    fn may_toggle(&self, i: usize) -> bool {
        let Opening::May(cost) = self.instance.opening[i] else {
            return false;
        };
        self.open[i] || self.optimistic_saving(i) > cost
    }

    /// More than opening a facility can save: a client that uses it pays at least the link's
    /// constant, slope and charge.
    fn optimistic_saving(&self, i: usize) -> f64 {
        let own: f64 = self.neighbours.owners[i].iter().map(|&j| self.cost[j as usize]).sum();
        let linked = self.neighbours.linked[i].iter().map(|&(client, at)| {
            let client = client as usize;
            (self.cost[client] - self.instance.least(client, at as usize)).max(0.0)
        });
        own + linked.sum::<f64>()
    }

    /// Opens or closes a facility if the objective then is below `below`; else changes nothing.
    fn toggle(&mut self, i: usize, below: f64, leash: &mut Leash<'_>) -> bool {
        let (changes, objective) = self.try_toggle(i, leash);
        if objective < below {
            self.apply(changes);
            self.objective = objective;
        } else {
            self.open[i] = !self.open[i];
        }
        objective < below
    }

    /// Opens or closes a facility and works out what that changes, without applying it. Told to
    /// stop, it gives up, with no change and a cost that nobody wants.
    fn try_toggle(&mut self, i: usize, leash: &mut Leash<'_>) -> (Vec<Change>, f64) {
        let opening = !self.open[i];
        self.open[i] = opening;
        let sign = if opening { 1.0 } else { -1.0 };
        let mut objective = self.objective + sign * self.instance.opening[i].cost();
        let mut changes = Vec::new();
        let neighbours = self.neighbours;
        let mut serve_again = |search: &mut Self, client: usize, leash: &mut Leash<'_>| {
            let change = search.serve(client, leash);
            objective += change.1 - search.cost[client];
            changes.push(change);
        };
        for &client in &neighbours.owners[i] {
            serve_again(self, client as usize, leash);
        }
        for &(client, at) in &neighbours.linked[i] {
            if leash.stopped() {
                return (Vec::new(), f64::INFINITY);
            }
            let (client, at) = (client as usize, at as usize);
            let concerned = if opening {
                self.instance.least(client, at) < self.cost[client]
            } else {
                self.used[client].contains(&at)
            };
            if concerned {
                serve_again(self, client, leash);
            }
        }
        (changes, objective)
    }

    /// Closes one facility and opens another that its clients could use, where both together pay.
    fn exchange(&mut self, epsilon: f64, leash: &mut Leash<'_>) -> bool {
        const TRIED: usize = 8;
        let mut moved = false;
        for out in 0..self.open.len() {
            let closable = matches!(self.instance.opening[out], Opening::May(_));
            if !self.open[out] || !closable {
                continue;
            }
            if !leash.go_on() {
                break;
            }
            let before = self.objective;
            for i in self.substitutes(out, TRIED) {
                // Opening first keeps every client served.
                let (changes, _) = self.try_toggle(i, leash);
                let kept: Vec<Change> =
                    changes.iter().map(|c| (c.0, self.cost[c.0], self.used[c.0].clone())).collect();
                let opened = self.objective
                    + self.instance.opening[i].cost()
                    + changes.iter().map(|c| c.1 - self.cost[c.0]).sum::<f64>();
                self.apply(changes);
                self.objective = opened;
                if self.toggle(out, before - epsilon, leash) {
                    moved = true;
                    break;
                }
                self.apply(kept);
                self.open[i] = false;
                self.objective = before;
                if leash.stopped() {
                    return moved;
                }
            }
        }
        moved
    }

    /// Closed facilities that clients of `out` could use, most wanted first.
    fn substitutes(&self, out: usize, most: usize) -> Vec<usize> {
        let mut wanted = std::collections::BTreeMap::<usize, f64>::new();
        let neighbours = self.neighbours;
        let users = neighbours.linked[out]
            .iter()
            .filter(|&&(client, at)| self.used[client as usize].contains(&(at as usize)));
        let concerned = users.map(|(client, _)| client).chain(&neighbours.owners[out]);
        for client in concerned.map(|&client| client as usize) {
            for at in self.instance.list(client) {
                let i = self.instance.facility[at] as usize;
                let gain = self.cost[client] - self.instance.least(client, at);
                let may = matches!(self.instance.opening[i], Opening::May(_));
                if !self.open[i] && may && gain > 0.0 {
                    *wanted.entry(i).or_default() += gain;
                }
            }
        }
        let mut wanted: Vec<(f64, usize)> = wanted.into_iter().map(|(i, gain)| (gain, i)).collect();
        wanted.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        wanted.truncate(most);
        wanted.into_iter().map(|(_, i)| i).collect()
    }
}
