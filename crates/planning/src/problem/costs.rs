//! What a link costs, c_ij: one link, or all that lead to a receiver.

use super::links::Row;
use super::{Model, Problem};
use crate::device::Role;

/// What serving a target over one link costs under the paper's bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkCost {
    /// The index of the sender.
    pub from: usize,
    /// φ^T T_ij, the weighted error bound.
    pub error: f64,
    /// φ^E K_ij / (1 + ε_E).
    pub energy: f64,
}

impl LinkCost {
    /// Returns c_ij, error and energy together.
    pub fn total(&self) -> f64 {
        self.error + self.energy
    }
}

/// Raw costs, given instead of measurements.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    /// f_i, or `None` where device i cannot be a source.
    pub source: Vec<Option<f64>>,
    /// c_ij, receiver-major, NaN where there is no link. The diagonal says nothing.
    pub link: Vec<f64>,
}

impl Costs {
    /// c_ij by sender; infinite where there is no link.
    fn row(&self, receiver: usize) -> impl Fn(usize) -> f64 + '_ {
        let n = self.source.len();
        let row = &self.link[receiver * n..(receiver + 1) * n];
        move |from| if row[from].is_nan() || from == receiver { f64::INFINITY } else { row[from] }
    }

    /// Returns the senders of the links into `receiver`.
    pub(super) fn incoming(&self, receiver: usize) -> impl Iterator<Item = usize> + '_ {
        let cost = self.row(receiver);
        (0..self.source.len()).filter(move |&from| cost(from) < f64::INFINITY)
    }

    pub(super) fn remove(&mut self, from: usize, to: usize) {
        let n = self.source.len();
        self.link[to * n + from] = f64::NAN;
    }
}

impl Problem {
    /// Returns the devices that may be sources, ascending.
    pub fn senders(&self) -> Vec<u32> {
        (0..self.len()).filter(|&i| self.eligible(i)).map(|i| i as u32).collect()
    }

    /// c_ij, where the link exists and its sender may be a source.
    pub fn link_cost(&self, from: usize, to: usize) -> Option<LinkCost> {
        if from == to || !self.eligible(from) {
            return None;
        }
        match &self.model {
            Model::Measured(m) => {
                let link = m.links.get(from, to)?;
                let error = m.weights.target * m.target_bound(link, to);
                Some(LinkCost { from, error, energy: m.energy_cost(link.energy) })
            }
            Model::Costs(c) => {
                let error = c.row(to)(from);
                error.is_finite().then_some(LinkCost { from, error, energy: 0.0 })
            }
        }
    }

    /// Appends `make(i, c_ij)` for each link into `receiver` from one of `senders`, which are
    /// [`Problem::senders`]: [`Problem::link_cost`] with what links share worked out once. A link
    /// that does not exist is left out or has infinite cost.
    pub fn extend_with_costs<T>(
        &self,
        senders: &[u32],
        receiver: usize,
        list: &mut Vec<T>,
        make: impl Fn(u32, f64) -> T,
    ) {
        match &self.model {
            Model::Measured(m) => {
                let constant = m.bound.target_constant(m.samples(receiver));
                let (weight, per_joule) = (m.weights.target, m.energy_cost(1.0));
                let cost = |sender: f64, divergence: f64, energy: f64| {
                    let error = weight * (sender + m.bound.transfer(divergence) + constant);
                    if energy.is_nan() { f64::INFINITY } else { error + per_joule * energy }
                };
                let Row { senders: listed, divergence, energy } = m.links.row(receiver);
                let sender = m.sender.as_slice();
                match listed {
                    None => list.extend(senders.iter().map(|&from| {
                        let i = from as usize;
                        make(from, cost(sender[i], divergence[i], energy[i]))
                    })),
                    Some(listed) => {
                        let values = listed.iter().zip(divergence.iter().zip(energy));
                        list.extend(values.filter_map(|(&from, (&divergence, &energy))| {
                            let sender = sender[from as usize];
                            let may_send = self.pins[from as usize] != Some(Role::Target);
                            (sender.is_finite() && may_send)
                                .then(|| make(from, cost(sender, divergence, energy)))
                        }));
                    }
                }
            }
            Model::Costs(c) => {
                let cost = c.row(receiver);
                list.extend(senders.iter().map(|&from| make(from, cost(from as usize))));
            }
        }
    }
}
