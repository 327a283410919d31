//! Primal local search: open, close and swap facilities while that lowers the cost.
//!
//! For every client the cheapest and the second cheapest open candidate are known, and for every
//! facility what opening it would save or closing it would lose; both are kept up to date
//! (Whitaker 1983; Resende and Werneck 2006), so that a move is judged without trying it.

use super::instance::{Instance, Opening, Served};
use crate::status::Leash;

const NONE: u32 = u32::MAX;

/// A solution and the value of every move from it.
#[derive(Debug)]
pub(super) struct Search<'a> {
    instance: &'a Instance,
    served: &'a Served,
    open: Vec<bool>,
    /// Position of the cheapest and the second cheapest open candidate of each client.
    nearest: Vec<(u32, u32)>,
    /// Σ_j (c_1j − c_ij)⁺ of a closed facility.
    saving: Vec<f64>,
    /// Σ (c_2j − c_1j) over the clients of an open facility that have a second.
    loss: Vec<f64>,
    /// Clients of an open facility that have no second.
    sole: Vec<u32>,
    /// Working memory of [`Search::best_swap`], kept so that nothing is allocated anew.
    relief: Vec<(f64, u32)>,
    touched: Vec<u32>,
}

impl<'a> Search<'a> {
    /// Starts from `open`; clients it leaves unserved get their cheapest candidate opened.
    pub(super) fn new(instance: &'a Instance, served: &'a Served, mut open: Vec<bool>) -> Self {
        for (open, opening) in open.iter_mut().zip(&instance.opening) {
            *open = match opening {
                Opening::May(_) => *open,
                Opening::Must(_) => true,
                Opening::Never => false,
            };
        }
        for client in 0..instance.clients() {
            if instance.cheapest_open(client, &open).is_none() {
                open[instance.facility[instance.first[client]] as usize] = true;
            }
        }
        let facilities = instance.facilities();
        let mut search = Search {
            instance,
            served,
            nearest: vec![(NONE, NONE); instance.clients()],
            saving: vec![0.0; facilities],
            loss: vec![0.0; facilities],
            sole: vec![0; facilities],
            relief: vec![(0.0, 0); facilities],
            touched: Vec::new(),
            open,
        };
        for client in 0..instance.clients() {
            let first = search.next_open(client, instance.first[client] as u32);
            let second = if first == NONE { NONE } else { search.next_open(client, first + 1) };
            search.nearest[client] = (first, second);
            search.credit_saving(client, 1.0);
            search.credit_loss(client, 1.0);
        }
        search
    }

    /// Runs to a local optimum of opening and closing and, if `swaps`, of exchanging.
    pub(super) fn descend(mut self, swaps: bool, leash: &mut Leash<'_>) -> Vec<bool> {
        // Tiny moves may be rounding alone; every move must gain more than that.
        let epsilon = 1e-10 * self.instance.objective(&self.open).abs().max(1e-300);
        loop {
            let mut moved = false;
            for i in 0..self.open.len() {
                let toggled = self.try_toggle(i, epsilon);
                moved |= toggled;
                if (toggled || i % 256 == 0) && !leash.go_on() {
                    return self.open;
                }
            }
            if !moved && swaps {
                for i in 0..self.open.len() {
                    if i % 256 == 0 && !leash.go_on() {
                        return self.open;
                    }
                    if let Some(out) = self.best_swap(i, epsilon) {
                        self.toggle_open(i);
                        self.toggle_closed(out);
                        moved = true;
                    }
                }
            }
            if !moved || !leash.go_on() {
                return self.open;
            }
        }
    }

    fn try_toggle(&mut self, i: usize, epsilon: f64) -> bool {
        let Opening::May(cost) = self.instance.opening[i] else {
            return false;
        };
        if self.open[i] {
            let worth = self.sole[i] == 0 && self.loss[i] + epsilon < cost;
            if worth {
                self.toggle_closed(i);
            }
            worth
        } else {
            let worth = self.saving[i] > cost + epsilon;
            if worth {
                self.toggle_open(i);
            }
            worth
        }
    }

    /// The open facility to close for `i`, if that exchange pays.
    fn best_swap(&mut self, i: usize, epsilon: f64) -> Option<usize> {
        let Opening::May(cost) = self.instance.opening[i] else {
            return None;
        };
        if self.open[i] {
            return None;
        }
        let served = self.served;
        for &(client, at) in served.by(i) {
            let (first, second) = self.nearest[client as usize];
            if at > second {
                continue;
            }
            let c = self.instance.cost[at as usize];
            let c1 = self.instance.cost[first as usize];
            let r = self.instance.facility[first as usize] as usize;
            if self.relief[r] == (0.0, 0) {
                self.touched.push(r as u32);
            }
            if second == NONE {
                self.relief[r].0 -= c.max(c1) - c1;
                self.relief[r].1 += 1;
            } else {
                self.relief[r].0 += self.instance.cost[second as usize] - c.max(c1);
            }
        }
        let gain = self.saving[i] - cost;
        let mut best = (epsilon, None);
        for r in self.touched.drain(..) {
            let r = r as usize;
            let (relief, covered) = std::mem::take(&mut self.relief[r]);
            if let Opening::May(freed) = self.instance.opening[r]
                && covered == self.sole[r]
            {
                let profit = gain + freed - self.loss[r] + relief;
                if profit > best.0 {
                    best = (profit, Some(r));
                }
            }
        }
        best.1
    }

    fn toggle_open(&mut self, i: usize) {
        self.open[i] = true;
        let served = self.served;
        for &(client, at) in served.by(i) {
            let client = client as usize;
            let (first, second) = self.nearest[client];
            if at < first {
                self.credit_saving(client, -1.0);
                self.credit_loss(client, -1.0);
                self.nearest[client] = (at, first);
                self.credit_saving(client, 1.0);
                self.credit_loss(client, 1.0);
            } else if at < second {
                self.credit_loss(client, -1.0);
                self.nearest[client] = (first, at);
                self.credit_loss(client, 1.0);
            }
        }
        self.saving[i] = 0.0;
    }

    fn toggle_closed(&mut self, i: usize) {
        self.open[i] = false;
        let served = self.served;
        for &(client, at) in served.by(i) {
            let client = client as usize;
            let (first, second) = self.nearest[client];
            if at == first {
                self.credit_saving(client, -1.0);
                self.credit_loss(client, -1.0);
                let third = if second == NONE { NONE } else { self.next_open(client, second + 1) };
                self.nearest[client] = (second, third);
                self.credit_saving(client, 1.0);
                self.credit_loss(client, 1.0);
            } else if at == second {
                self.credit_loss(client, -1.0);
                self.nearest[client] = (first, self.next_open(client, second + 1));
                self.credit_loss(client, 1.0);
            }
        }
        self.loss[i] = 0.0;
    }

    fn next_open(&self, client: usize, from: u32) -> u32 {
        (from..self.instance.first[client + 1] as u32)
            .find(|&at| self.open[self.instance.facility[at as usize] as usize])
            .unwrap_or(NONE)
    }

    /// Adds (or takes back) what a client would save at each closed facility before its cheapest.
    fn credit_saving(&mut self, client: usize, sign: f64) {
        let (first, _) = self.nearest[client];
        let list = self.instance.list(client);
        let (end, c1) = if first == NONE {
            return;
        } else {
            (first as usize, self.instance.cost[first as usize])
        };
        for at in list.start..end {
            let i = self.instance.facility[at] as usize;
            self.saving[i] += sign * (c1 - self.instance.cost[at]);
        }
    }

    fn credit_loss(&mut self, client: usize, sign: f64) {
        let (first, second) = self.nearest[client];
        if first == NONE {
            return;
        }
        let r = self.instance.facility[first as usize] as usize;
        if second == NONE {
            self.sole[r] = self.sole[r].wrapping_add_signed(sign as i32);
        } else {
            let c = &self.instance.cost;
            self.loss[r] += sign * (c[second as usize] - c[first as usize]);
        }
    }
}
