//! Rounds the relaxed solution to roles and weights.

use super::{Instance, Outcome};
use crate::device::Role;

/// Roles, and weights by receiver in the order of its links.
#[derive(Debug, Clone, PartialEq)]
pub struct Rounded {
    /// The role of each device, by its index.
    pub roles: Vec<Role>,
    /// A target's sum to 1, a source's to 0, and only sources send.
    pub alpha: Vec<Vec<f64>>,
}

/// Rounds: `ψ ≥ ½` is a target, weights under `threshold` are none, and columns sum to 1 again.
///
/// Should a target have no source within reach, whichever is most nearly a source becomes one, of itself
/// (if it may) and the devices with a link to it. Should it have no link left, it takes the source that had
/// the largest weight; of equal ones, the one with the least error.
pub fn round(instance: &Instance<'_>, relaxed: &Outcome, threshold: f64) -> Rounded {
    let roles = roles(instance, &relaxed.psi);
    let columns = instance.links.iter().zip(&relaxed.alpha).enumerate();
    let alpha = columns.map(|(j, (links, alpha))| {
        let mut rounded = vec![0.0; links.len()];
        if roles[j] == Role::Source {
            return rounded;
        }
        let senders = (0..links.len()).filter(|&i| roles[links[i].from] == Role::Source);
        for i in senders.clone().filter(|&i| alpha[i] >= threshold) {
            rounded[i] = alpha[i];
        }
        let total: f64 = rounded.iter().sum();
        if total > 0.0 {
            rounded.iter_mut().for_each(|weight| *weight /= total);
        } else {
            let strongest = senders.max_by(|&a, &b| {
                let weight = alpha[a].total_cmp(&alpha[b]);
                weight.then(links[b].error.total_cmp(&links[a].error))
            });
            strongest.into_iter().for_each(|i| rounded[i] = 1.0);
        }
        rounded
    });
    Rounded { alpha: alpha.collect(), roles }
}

fn roles(instance: &Instance<'_>, psi: &[f64]) -> Vec<Role> {
    let mut roles: Vec<Role> = psi
        .iter()
        .enumerate()
        .map(|(i, &psi)| match instance.source[i] {
            Some(_) if instance.must_be_source[i] || psi < 0.5 => Role::Source,
            _ => Role::Target,
        })
        .collect();
    for (j, links) in instance.links.iter().enumerate() {
        let senders = links.iter().map(|link| link.from);
        if roles[j] == Role::Source || senders.clone().any(|i| roles[i] == Role::Source) {
            continue;
        }
        let candidates = senders.chain(instance.source[j].map(|_| j));
        if let Some(nearest) = candidates.min_by(|&a, &b| psi[a].total_cmp(&psi[b])) {
            roles[nearest] = Role::Source;
        }
    }
    roles
}
