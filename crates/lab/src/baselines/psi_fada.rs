//! ψ-FADA (Peng et al., 2020; roles as Wang et al.): the random roles of Rnd-ψ, and weights as FADA.

use stlf_planning::error::Error;

use super::{Assignment, Context, fada, rnd_psi};

/// Random roles with the weights of federated adversarial domain adaptation.
///
/// # Errors
/// Names a target that no device which may be a source reaches, or what is wrong with the data.
pub fn assign(context: &Context<'_>, seed: u64) -> Result<Assignment, Error> {
    fada::adapted_weights(context, rnd_psi::roles(context, seed)?, seed)
}
