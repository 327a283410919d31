//! Rnd-α (Wang, Hosseinalipour, Brinton, "Multi-source to multi-target decentralized federated domain adaptation"): ST-LF's
//! roles, and every target weighs all sources at random, by a draw from Dirichlet(1, …, 1).

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use stlf_planning::device::Role;
use stlf_planning::error::Error;

use super::{Assignment, Context, Draw, rng};

/// ST-LF's roles with random weights.
///
/// # Errors
/// Names a target that no source reaches.
pub fn assign(context: &Context<'_>, seed: u64) -> Result<Assignment, Error> {
    random_weights(context, context.ours().roles.clone(), seed)
}

/// Gives these roles links with random weights, drawn from the seed.
pub(super) fn random_weights(
    context: &Context<'_>,
    roles: Vec<Role>,
    seed: u64,
) -> Result<Assignment, Error> {
    let mut rng = rng(seed, Draw::Weights);
    context.every_link(roles, |_, senders| Ok(exponential(&mut rng, senders.len())))
}

/// Independent exponential draws; divided by their sum, they are a draw from Dirichlet(1, …, 1).
fn exponential(rng: &mut ChaCha8Rng, count: usize) -> Vec<f64> {
    // 1 − u is never zero, so the logarithm is finite; u = 0 gives no weight at all, once in 2⁵³.
    (0..count)
        .map(|_| -(1.0 - rng.random::<f64>()).ln())
        .map(|e| e.max(f64::MIN_POSITIVE))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_a_flat_dirichlet() {
        let mut rng = rng(5, Draw::Weights);
        let (mut sum, mut squares) = (0.0, 0.0);
        const DRAWS: usize = 20_000;
        for _ in 0..DRAWS {
            let draws = exponential(&mut rng, 4);
            let share = draws[2] / draws.iter().sum::<f64>();
            sum += share;
            squares += share * share;
        }
        // Each share of Dirichlet(1,1,1,1) is Beta(1, 3): mean 1/4, mean square 2/(4·5).
        assert!((sum / DRAWS as f64 - 0.25).abs() < 0.005);
        assert!((squares / DRAWS as f64 - 0.1).abs() < 0.004);
    }
}
