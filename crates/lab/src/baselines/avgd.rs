//! AvgD, "average degree" (Wang et al.): ST-LF's roles and ST-LF's mean number of links per source without hand-overs,
//! rounded up; which links, and their weights, are random.
//!
//! The paper does not say what becomes of a target that no draw meets. Here every target first gets one source at
//! random, none of them beyond its share, and then every source draws targets until its share is used up. A source
//! with too few links takes all it has; where missing links leave no other way to serve every target, some source
//! gets more.

use rand::RngExt;
use rand::seq::SliceRandom;
use stlf_planning::device::Role;
use stlf_planning::error::Error;

use super::{Assignment, Context, Draw, matching, normalised, rng, with_role};

/// ST-LF's roles and degree with random links and weights.
///
/// # Errors
/// Names a target that no source reaches.
pub fn assign(context: &Context<'_>, seed: u64) -> Result<Assignment, Error> {
    let roles = context.ours().roles.clone();
    let targets: Vec<usize> = with_role(&roles, Role::Target).collect();
    let sources: Vec<usize> = with_role(&roles, Role::Source).collect();
    let senders: Vec<Vec<usize>> =
        targets.iter().map(|&j| context.senders(&roles, j)).collect::<Result<_, _>>()?;
    let degree = context.links_only().links.len().div_ceil(sources.len().max(1));

    let mut random = rng(seed, Draw::Links);
    let first = matching::one_sender_each(&senders, roles.len(), degree, &mut random);
    let mut taken: Vec<Vec<usize>> = first.iter().map(|&i| vec![i]).collect();
    // Positions in `targets` that each source could still serve.
    let mut open = vec![Vec::new(); roles.len()];
    let mut used = vec![0; roles.len()];
    for (at, senders) in senders.iter().enumerate() {
        used[first[at]] += 1;
        senders.iter().filter(|&&i| i != first[at]).for_each(|&i| open[i].push(at));
    }
    for source in sources {
        open[source].shuffle(&mut random);
        for &at in open[source].iter().take(degree.saturating_sub(used[source])) {
            taken[at].push(source);
        }
    }

    let mut random = rng(seed, Draw::Weights);
    let mut links = Vec::new();
    for (&target, senders) in targets.iter().zip(&mut taken) {
        senders.sort_unstable();
        // In (0, 1], so that no link vanishes.
        let weights: Vec<f64> = senders.iter().map(|_| 1.0 - random.random::<f64>()).collect();
        links.extend(normalised(target, senders, &weights));
    }
    Ok(Assignment::new(roles, links))
}
