//! The Lagrangian bound, and what it decides without branching.
//!
//! With "every client is served" priced at v_j, each facility stands alone:
//!
//! ```text
//! L(v) = Σ_j v_j + Σ_i min(0, f_i − Σ_j (v_j − c_ij)⁺)
//! ```
//!
//! is a lower bound for any v, and its maximum is that of the linear relaxation. A subgradient
//! method (Polyak's step, directions deflected as by Camerini, Fratta and Maffioli 1975) climbs it
//! from the dual-ascent prices. Where L plus a facility's reduced cost exceeds the incumbent, no
//! better solution has that facility the other way, and it is fixed.

use super::instance::Instance;
use crate::best_first::{self, Fixing};
use crate::status::{Leash, PULSE};

/// Prices in one part of the search and the bound they give.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) fixing: Vec<Fixing>,
    pub(super) value: Vec<f64>,
    pub(super) lower_bound: f64,
    /// How much of Polyak's step is taken; falls as the climb nears the top.
    pub(super) agility: f64,
}

impl Node {
    /// Whether further steps would be too short to matter.
    pub(super) fn exhausted(&self) -> bool {
        self.agility < 5e-3
    }
}

/// The subgradient method with its working memory.
#[derive(Debug)]
pub(super) struct Lagrangian<'a> {
    instance: &'a Instance,
    /// Σ_j (v_j − c_ij)⁺ of each facility: what clients would pay to have it open.
    profit: Vec<f64>,
    /// Facilities open in the Lagrangian solution.
    chosen: Vec<bool>,
    /// How often each facility was chosen lately, 0..1.
    pub(super) frequency: Vec<f64>,
    direction: Vec<f64>,
    value: Vec<f64>,
}

impl<'a> Lagrangian<'a> {
    pub(super) fn new(instance: &'a Instance) -> Self {
        let facilities = instance.facilities();
        Lagrangian {
            instance,
            profit: vec![0.0; facilities],
            chosen: vec![false; facilities],
            frequency: vec![0.0; facilities],
            direction: vec![0.0; instance.clients()],
            value: vec![0.0; instance.clients()],
        }
    }

    /// The facilities open in the Lagrangian solution at the node's prices.
    pub(super) fn chosen_at(&mut self, node: &Node) -> Vec<bool> {
        self.value.copy_from_slice(&node.value);
        self.evaluate(&node.fixing);
        self.chosen.clone()
    }

    /// Climbs for at most `rounds` steps, as long as the bound is worth `raising`, keeping the best
    /// prices in `node` and fixing what they decide. True if the node holds nothing that costs less
    /// than `cutoff`.
    pub(super) fn climb(
        &mut self,
        node: &mut Node,
        cutoff: f64,
        rounds: usize,
        leash: &mut Leash<'_>,
        mut raising: impl FnMut(f64) -> bool,
    ) -> bool {
        const PATIENCE: usize = 12;
        let asking = (PULSE / self.instance.links().max(1)).clamp(1, 32);
        self.value.copy_from_slice(&node.value);
        self.direction.fill(0.0);
        for (frequency, fixing) in self.frequency.iter_mut().zip(&node.fixing) {
            *frequency = if *fixing == Fixing::Open { 1.0 } else { 0.0 };
        }
        let mut waited = 0;
        for round in 0..rounds {
            let bound = self.evaluate(&node.fixing);
            if bound > node.lower_bound {
                if bound - node.lower_bound > 1e-4 * (cutoff - node.lower_bound) {
                    waited = 0;
                }
                node.lower_bound = bound;
                node.value.copy_from_slice(&self.value);
                if bound >= cutoff {
                    return true;
                }
                let room = cutoff - node.lower_bound;
                best_first::fix(&self.instance.opening, &self.profit, &mut node.fixing, room);
            }
            waited += 1;
            if waited > PATIENCE {
                node.agility *= 0.6;
                waited = 0;
                if node.exhausted() {
                    break;
                }
                self.value.copy_from_slice(&node.value);
                self.direction.fill(0.0);
                self.evaluate(&node.fixing);
            }
            let bound = if waited == 0 { node.lower_bound } else { bound };
            if !self.step(1.05 * (cutoff - bound) * node.agility) {
                node.agility = 0.0;
                break;
            }
            if (round % 32 == 31 && !raising(node.lower_bound))
                || (round % asking == asking - 1 && !leash.go_on())
            {
                break;
            }
            let memory = 0.85;
            for (frequency, &chosen) in self.frequency.iter_mut().zip(&self.chosen) {
                *frequency = memory * *frequency + (1.0 - memory) * f64::from(u8::from(chosen));
            }
        }
        false
    }

    /// L(v) at the current prices; leaves the profits and the chosen facilities behind.
    fn evaluate(&mut self, fixing: &[Fixing]) -> f64 {
        let instance = self.instance;
        self.profit.fill(0.0);
        let mut bound = 0.0;
        for (client, &v) in self.value.iter().enumerate() {
            bound += v;
            for at in instance.list(client) {
                let c = instance.cost[at];
                if c >= v {
                    break;
                }
                self.profit[instance.facility[at] as usize] += v - c;
            }
        }
        bound + best_first::choose(&instance.opening, &self.profit, fixing, &mut self.chosen)
    }

    /// Moves the prices along the deflected subgradient, whose entry is 1 − (times a client is
    /// served). False where every client is served just once: the prices are optimal.
    fn step(&mut self, distance: f64) -> bool {
        let instance = self.instance;
        let (mut along, mut old_norm) = (0.0, 0.0);
        let mut gradient_norm = 0.0;
        let mut gradient = std::mem::take(&mut self.direction);
        let mut fresh = vec![0.0; gradient.len()];
        for (client, &v) in self.value.iter().enumerate() {
            let mut times = 0;
            for at in instance.list(client) {
                if instance.cost[at] >= v {
                    break;
                }
                times += i32::from(self.chosen[instance.facility[at] as usize]);
            }
            let g = f64::from(1 - times);
            let stuck = g > 0.0 && v >= instance.tail[client];
            let g = if stuck { 0.0 } else { g };
            fresh[client] = g;
            gradient_norm += g * g;
            along += g * gradient[client];
            old_norm += gradient[client] * gradient[client];
        }
        if gradient_norm == 0.0 {
            self.direction = gradient;
            return false;
        }
        let deflection = if along < 0.0 && old_norm > 0.0 { -1.5 * along / old_norm } else { 0.0 };
        let mut norm = 0.0;
        for (d, g) in gradient.iter_mut().zip(&fresh) {
            *d = g + deflection * *d;
            norm += *d * *d;
        }
        let length = distance / norm.max(f64::MIN_POSITIVE);
        for (client, (v, d)) in self.value.iter_mut().zip(&gradient).enumerate() {
            // Where the cheapest candidates are closed, what the list leaves out may cost less than all that is on it.
            let tail = instance.tail[client];
            let lowest = instance.cost[instance.first[client]].min(tail);
            *v = (*v + length * d).clamp(lowest, tail);
        }
        self.direction = gradient;
        true
    }
}
