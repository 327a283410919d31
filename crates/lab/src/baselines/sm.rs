//! SM, "single matching" (Wang et al., after Zhao et al., 2019): one source per target, drawn at random, none used
//! more than ⌈targets/sources⌉ times.
//!
//! Every device that may be a source is one: the energy that the paper gives for SM is the same in all its settings and
//! that of one link per unlabeled device. Where missing links allow no matching within that limit, it is raised by
//! one until there is one.

use stlf_planning::device::Role;
use stlf_planning::error::Error;
use stlf_planning::plan::PlanLink;

use super::{Assignment, Context, Draw, matching, rng, with_role};

/// One random source per target.
///
/// # Errors
/// Names a target that no source reaches.
pub fn assign(context: &Context<'_>, seed: u64) -> Result<Assignment, Error> {
    let roles = context.all_eligible();
    let targets: Vec<usize> = with_role(&roles, Role::Target).collect();
    let senders: Vec<Vec<usize>> =
        targets.iter().map(|&j| context.senders(&roles, j)).collect::<Result<_, _>>()?;
    let sources = with_role(&roles, Role::Source).count();
    let most = targets.len().div_ceil(sources.max(1));
    let mut rng = rng(seed, Draw::Links);
    let matched = matching::one_sender_each(&senders, roles.len(), most, &mut rng);
    let links = targets.iter().zip(matched);
    let links = links.map(|(&to, from)| PlanLink { from, to, weight: 1.0 }).collect();
    Ok(Assignment::new(roles, links))
}
