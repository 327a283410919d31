//! How plans for the page are made.

use stlf_planning::Plan;
use stlf_planning::Problem;
use stlf_planning::planner::{self, Observer, Outcome};

use crate::Error;

/// The exact planner, with hand-overs where they are asked for.
pub(super) fn settings(hands_on: bool) -> planner::Settings {
    planner::Settings::default().handing_on(hands_on)
}

/// The plan of a problem, the best that is known where `observer` ends the search.
pub(super) fn planned(
    problem: &Problem,
    seed: u64,
    settings: &planner::Settings,
    observer: &mut Observer<'_>,
) -> Result<Box<Plan>, Error> {
    match planner::plan(problem, settings, observer) {
        Outcome::Planned(plan) => Ok(plan),
        Outcome::Infeasible(reason) => Err(Error::Infeasible { seed, reason: reason.to_string() }),
    }
}
