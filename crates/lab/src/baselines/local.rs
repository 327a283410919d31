//! Local (not in the paper): nobody sends anything.
//!
//! A labeled device keeps the model it trained itself. A device without labels has nothing to train on, so it has no
//! model, and no link brings one: what it gets is chance, 1 / classes. This is the line below which a transfer is worth
//! nothing.

use super::{Assignment, Context};

/// Every device that may be a source is one, for itself; there is no link.
pub fn assign(context: &Context<'_>) -> Assignment {
    Assignment::new(context.all_eligible(), Vec::new())
}
