//! A plan, checked by those that are to follow it: a planner cannot invent or alter what others reported, nor have models sent that the
//! reports do not call for.
//!
//! Whoever hears a plan has the signed reports that it was made from. It computes what the plan costs, and what the best plan
//! costs. A plan may cost as much more as planners accept in order to change little.

use std::collections::BTreeSet;

use stlf_planning::Problem;
use stlf_planning::bound::BoundKind;
use stlf_planning::plan::Status;
use stlf_planning::planner::Outcome;
use stlf_planning::planner::handover::floor;

use crate::job::{Sign, Watch};
use crate::planning::{Grounds, Planner, WORTH_NO_CHANGE, watched};
use crate::roster::{Place, Roster};
use crate::setup::Setup;
use crate::shared::Fingerprint;
use crate::wire::{EpochId, MOST_REPORTS, SignedPlan};

/// For so few devices every machine finds the best plan in time.
const MOST_EASY: usize = 16;

/// How much dearer than what was found here a plan may be, where neither is proven to be best.
const UNPROVEN: f64 = 0.05;

/// How far two computations of one cost may be apart, as a share of it.
const ROUNDING: f64 = 1e-6;

/// Whether a plan costs less than what is proven to be the least. Then it is not one of those that were compared, or its cost not what it costs.
pub(crate) fn beats_proof(stated: f64, best: &stlf_planning::Plan) -> bool {
    let least = best.objective();
    best.status == Status::Optimal && stated < least - ROUNDING * least.abs().max(1.0)
}

/// Whether a plan costs more than this share above the least.
fn is_dearer(stated: f64, least: f64, most: f64) -> bool {
    stated > least + most * least.abs() + ROUNDING
}

/// Why a plan is not followed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Objection {
    /// It does not carry the reports that it was made from.
    #[error("the plan does not carry a report of every device")]
    WithoutReports,
    /// A report is not signed by the device that it is of, for this epoch and the settings that all share.
    #[error(
        "the plan carries a report that place {0} did not sign for this epoch and these settings"
    )]
    Forged(Place),
    /// The reports say what no device can measure.
    #[error("the plan carries a report of place {0} that cannot be: {1}")]
    Impossible(Place, String),
    /// No plan can be made from these reports.
    #[error("no plan follows from the reports that this one carries: {0}")]
    NoProblem(String),
    /// It uses links that these reports do not have, or lacks some that all plans must have.
    #[error("the plan does not follow from its reports: {0}")]
    Unfounded(&'static str),
    /// It costs something else than it says.
    #[error("the plan costs {found:.4} by its reports, and says that it costs {stated:.4}")]
    Misstated {
        /// The cost that the plan says it has.
        stated: f64,
        /// The cost that follows from its reports.
        found: f64,
    },
    /// A better plan is known.
    #[error("the plan costs {stated:.4}, where its reports allow one of {best:.4}")]
    Dearer {
        /// The cost of the plan.
        stated: f64,
        /// What a better one costs.
        best: f64,
    },
}

/// A plan that is to be checked, with all that it takes.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) planner: Place,
    /// Who checks.
    pub(crate) place: Place,
    pub(crate) epoch: EpochId,
    /// Ascending.
    pub(crate) members: Vec<Place>,
    pub(crate) signed: SignedPlan,
    pub(crate) roster: Roster,
    pub(crate) setup: Setup,
    /// Of the settings that all are to share.
    pub(crate) settings: Fingerprint,
}

impl Check {
    /// What the device that checks learns of the plan, if it follows from its reports; nothing in large fleets.
    pub(crate) fn run(&self, watch: &mut Watch<'_>) -> Result<Grounds, Objection> {
        let Check { place, members, signed, roster, setup, .. } = self;
        if members.len() > MOST_REPORTS {
            return Ok(Grounds::default());
        }
        let desk = self.desk()?;
        let problem =
            desk.problem(roster, setup).map_err(|why| Objection::NoProblem(why.to_string()))?;
        self.is_founded(&desk, &problem)?;
        if desk.with_checks(signed.plan.clone(), &problem, setup) != signed.plan {
            return Err(Objection::Unfounded("its witnesses or examiners are others"));
        }
        self.is_good(&problem, watch)?;
        Ok(desk.grounds(&problem, &signed.plan, *place))
    }

    /// What the planner knew, by signed reports.
    fn desk(&self) -> Result<Planner, Objection> {
        let Check { members, signed, roster, setup, settings, epoch, .. } = self;
        if signed.reports.len() != members.len() {
            return Err(Objection::WithoutReports);
        }
        let forbidden: BTreeSet<(Place, Place)> = signed.plan.forbidden.iter().copied().collect();
        let mut desk = Planner::new(members, &setup.divergence, &forbidden);
        for (&member, report) in members.iter().zip(&signed.reports) {
            let key = roster.at(member).map(|entry| entry.key);
            if !key.is_some_and(|key| report.is_of(key, *epoch, *settings)) {
                return Err(Objection::Forged(member));
            }
            let heard = desk.hear(member, report, setup.unlabeled_as);
            heard.map_err(|refusal| Objection::Impossible(member, refusal.to_string()))?;
        }
        Ok(desk)
    }

    /// That roles, links and hand-overs are possible, and that the plan costs what it says.
    fn is_founded(&self, desk: &Planner, problem: &Problem) -> Result<(), Objection> {
        let plan = &self.signed.plan;
        let Some(links) = desk.links(plan) else {
            return Err(Objection::Unfounded("it is not of these devices"));
        };
        if plan.sources.iter().any(|&s| !desk.index(s).is_some_and(|s| problem.eligible(s))) {
            return Err(Objection::Unfounded("a source has no labels"));
        }
        // By the paper's bound the energy of a link goes to 0 with its weight, so that links could be had for nothing.
        let is_split = links.windows(2).any(|two| two[0].to == two[1].to);
        if problem.bound_kind() == BoundKind::Paper && is_split {
            return Err(Objection::Unfounded("a target has two sources, by the paper's bound"));
        }
        let is_used =
            |&(from, to): &(usize, usize)| links.iter().any(|l| (l.from, l.to) == (from, to));
        if !problem.required().iter().all(is_used) {
            return Err(Objection::Unfounded("a link is missing that all plans have"));
        }
        let found = desk.terms(problem, plan);
        let found = found.ok_or(Objection::Unfounded("it is not of these devices"))?.total();
        // Links that do not exist cost infinitely much.
        if !found.is_finite() {
            return Err(Objection::Unfounded("it uses a link that cannot be used"));
        }
        let stated = plan.objective;
        match (found - stated).abs() <= ROUNDING * found.abs().max(1.0) {
            true => Ok(()),
            false => Err(Objection::Misstated { stated, found }),
        }
    }

    /// That it is about as good as the best.
    fn is_good(&self, problem: &Problem, watch: &mut Watch<'_>) -> Result<(), Objection> {
        let plan = &self.signed.plan;
        if self.is_near_floor(problem, watch) {
            return Ok(());
        }
        let best = match watched(&self.setup, problem, watch) {
            Outcome::Planned(best) => *best,
            Outcome::Infeasible(why) => return Err(Objection::NoProblem(why.to_string())),
        };
        let (stated, least) = (plan.objective, best.objective());
        if beats_proof(stated, &best) {
            return Err(Objection::Unfounded("it costs less than any plan can"));
        }
        // The planner may be a slower machine, but not so slow that it cannot plan for few devices.
        let is_easy = self.members.len() <= MOST_EASY || plan.optimal;
        let most = match best.status {
            Status::Optimal if is_easy => WORTH_NO_CHANGE,
            _ => UNPROVEN,
        };
        match is_dearer(stated, least, most) {
            true => Err(Objection::Dearer { stated, best: least }),
            false => Ok(()),
        }
    }

    /// Whether a bound from below, which takes a tenth of the time of a search, shows already that no plan is much better. Plans for few devices
    /// are searched for in any case.
    fn is_near_floor(&self, problem: &Problem, watch: &mut Watch<'_>) -> bool {
        let (plan, settings) = (&self.signed.plan, &self.setup.planner);
        if self.members.len() <= MOST_EASY || settings.handovers.is_none() {
            return false;
        }
        let most = if plan.optimal { WORTH_NO_CHANGE } else { UNPROVEN };
        let _ = watch(Sign::Searches(self.setup.planning));
        let least = floor(problem, &settings.limits, &mut |_| watch(Sign::GoesOn));
        let is_below = |least: f64| plan.objective < least - ROUNDING * least.abs().max(1.0);
        least.is_some_and(|least| !is_dearer(plan.objective, least, most) && !is_below(least))
    }
}
