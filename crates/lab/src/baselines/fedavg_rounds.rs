//! FedAvg as it was published (McMahan et al., "Communication-efficient learning of deep networks from decentralized data", 2017): sources
//! train for a while, one of them averages their models by data size, all continue from the average, and so on. In the end all sources have
//! the same model, and every target gets it from the source that reaches it with the least energy.

use stlf_planning::Problem;
use stlf_planning::device::Role;
use stlf_planning::error::Error;

use super::{Assignment, Context, with_role};

/// ST-LF's roles, and one link into every target.
///
/// # Errors
/// Names a target that no source reaches.
pub fn assign(context: &Context<'_>) -> Result<Assignment, Error> {
    context.cheapest_link(context.ours().roles.clone())
}

/// What sources send to each other in one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Round {
    /// The source that gets the models of all others and averages them.
    pub centre: usize,
    /// Models sent: one to the centre and one back for every other source.
    pub models: usize,
    /// The energy of sending all these models, in joules.
    pub joules: f64,
}

impl Round {
    /// A round with the centre that costs least; of equals, the first.
    ///
    /// # Errors
    /// No source has links to and from all others.
    pub fn new(problem: &Problem, roles: &[Role]) -> Result<Round, Error> {
        Round::among(problem, roles).ok_or_else(|| {
            Error::missing("fedavg-rounds", "no source has links to and from all other sources")
                .with_hint("leave this method out of compare.methods")
        })
    }

    /// The same; none if no source has links to and from all others.
    pub fn among(problem: &Problem, roles: &[Role]) -> Option<Round> {
        let sources: Vec<usize> = with_role(roles, Role::Source).collect();
        let with_centre = |&centre: &usize| {
            let others = sources.iter().filter(|&&i| i != centre);
            let both = |&i: &usize| {
                Some(problem.link_energy(i, centre)? + problem.link_energy(centre, i)?)
            };
            let joules: Option<f64> = others.map(both).sum();
            joules.map(|joules| Round { centre, models: 2 * (sources.len() - 1), joules })
        };
        let rounds = sources.iter().filter_map(with_centre);
        rounds.min_by(|a, b| a.joules.total_cmp(&b.joules))
    }
}
