//! ψ-FedAvg (McMahan et al., 2017; roles as Wang et al.): the random roles of Rnd-ψ, and weights as FedAvg.

use stlf_planning::error::Error;

use super::{Assignment, Context, fedavg, rnd_psi};

/// Random roles with weights in proportion to D̂_i.
///
/// # Errors
/// Names a target that no device which may be a source reaches; or the problem has raw costs and no counts.
pub fn assign(context: &Context<'_>, seed: u64) -> Result<Assignment, Error> {
    fedavg::by_size(context, rnd_psi::roles(context, seed)?)
}
