//! FedAvg (McMahan et al., "Communication-efficient learning of deep networks from decentralized data", 2017): ST-LF's
//! roles, and every target weighs the sources by how much data they have.

use stlf_planning::device::Role;
use stlf_planning::error::Error;

use super::{Assignment, Context};

/// ST-LF's roles with weights in proportion to D̂_i.
///
/// # Errors
/// Names a target that no source reaches; or the problem has raw costs and no counts.
pub fn assign(context: &Context<'_>) -> Result<Assignment, Error> {
    by_size(context, context.ours().roles.clone())
}

/// Gives these roles links with weights in proportion to D̂_i.
pub(super) fn by_size(context: &Context<'_>, roles: Vec<Role>) -> Result<Assignment, Error> {
    context.every_link(roles, |_, senders| {
        senders.iter().map(|&i| Ok(context.samples(i)? as f64)).collect()
    })
}
