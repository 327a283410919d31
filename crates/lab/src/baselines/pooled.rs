//! Pooled training (not in the paper): one network on the labels of all of ST-LF's sources, as if data could move. No method that leaves
//! data where they are knows as much; it says what is possible, and costs what no total contains.

use stlf_planning::error::Error;

use super::{Assignment, Context};

/// ST-LF's roles. Every source is taken to have the network, and one of them is the link of a target, which costs nothing.
///
/// # Errors
/// Names a target that no source reaches.
pub fn assign(context: &Context<'_>) -> Result<Assignment, Error> {
    context.cheapest_link(context.ours().roles.clone())
}
