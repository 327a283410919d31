//! Oracle (not in the paper): every target takes the one source that is best on its data by the hidden labels.
//!
//! No method may know this. It is the limit of what one source per target can give; a mixture can do better.
//! Every device that may be a source is one, so that no choice of roles keeps a good source away.

use stlf_planning::device::Role;
use stlf_planning::error::{Error, Field};
use stlf_planning::plan::PlanLink;

use super::{Assignment, Context, with_role};

/// The best single source of every target; of equals, the first.
///
/// # Errors
/// Without accuracies, or with none for a target; names a target that no source reaches.
pub fn assign(context: &Context<'_>) -> Result<Assignment, Error> {
    let n = context.problem().len();
    let accuracies = context
        .accuracies
        .ok_or_else(|| Error::missing("accuracies", "the oracle needs the hidden labels"))?;
    if accuracies.len() != n || accuracies.iter().any(|row| row.len() != n) {
        return Err(Error::other("accuracies", format!("not a square of {n} devices")));
    }
    let roles = context.all_eligible();
    let mut links = Vec::new();
    for to in with_role(&roles, Role::Target) {
        let senders = context.senders(&roles, to)?;
        let known = senders.into_iter().filter(|&from| !accuracies[from][to].is_nan());
        // `max_by` keeps the last of equals.
        let best = known.rev().max_by(|&a, &b| accuracies[a][to].total_cmp(&accuracies[b][to]));
        let Some(from) = best else {
            let field = Field::of_device("accuracies", context.problem().name(to));
            return Err(Error::missing(field, "no source has an accuracy on its data"));
        };
        links.push(PlanLink { from, to, weight: 1.0 });
    }
    Ok(Assignment::new(roles, links))
}
