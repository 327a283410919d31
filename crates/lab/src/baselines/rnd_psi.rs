//! Rnd-ψ (Wang et al.): roles at random, and weights as Rnd-α.
//!
//! Each device that may be a source stays one with probability 0.75, and at least one does. Pinned devices
//! keep their role. Where missing links would leave a target without any source, the target becomes a source itself if
//! it may, else one of the devices that could serve it does, at random.

use rand::RngExt;
use rand::seq::IndexedRandom;
use stlf_planning::device::Role;
use stlf_planning::error::Error;

use super::{Assignment, Context, Draw, rnd_alpha, rng, with_role};

/// How likely an eligible device stays a source.
pub const STAYS: f64 = 0.75;

/// Random roles with random weights.
///
/// # Errors
/// Names a target that no device which may be a source reaches.
pub fn assign(context: &Context<'_>, seed: u64) -> Result<Assignment, Error> {
    rnd_alpha::random_weights(context, roles(context, seed)?, seed)
}

/// The random roles that Rnd-ψ, ψ-FedAvg and ψ-FADA share.
pub(super) fn roles(context: &Context<'_>, seed: u64) -> Result<Vec<Role>, Error> {
    let problem = context.problem();
    let mut rng = rng(seed, Draw::Roles);
    let mut roles = vec![Role::Target; problem.len()];
    let eligible: Vec<usize> = (0..problem.len()).filter(|&i| problem.eligible(i)).collect();
    for &device in &eligible {
        let stays = rng.random_bool(STAYS);
        if stays || problem.pin(device) == Some(Role::Source) {
            roles[device] = Role::Source;
        }
    }
    if !roles.contains(&Role::Source) {
        let Some(&device) = eligible.choose(&mut rng) else {
            return Err(Error::missing("devices", "no device may be a source")
                .with_hint("a source needs labels and must not be fixed as a target"));
        };
        roles[device] = Role::Source;
    }
    for target in with_role(&roles.clone(), Role::Target) {
        let senders = context.eligible_senders(target);
        if senders.iter().any(|&i| roles[i] == Role::Source) {
            continue;
        }
        if problem.eligible(target) {
            roles[target] = Role::Source;
        } else if let Some(&sender) = senders.choose(&mut rng) {
            roles[sender] = Role::Source;
        }
    }
    Ok(roles)
}
