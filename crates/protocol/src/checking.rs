//! A plan, checked by those that are to follow it: a planner cannot invent or alter what others reported, nor have models sent that the
//! reports do not call for.
//!
//! Whoever hears a plan has the signed reports that it was made from. It computes what the plan costs, and what the best plan
//! costs. A plan may cost as much more as planners accept in order to change little. Whoever hears that there is no plan has the reports, too,
//! and looks whether that is so.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use stlf_planning::Problem;
use stlf_planning::bound::BoundKind;
use stlf_planning::plan::Status;
use stlf_planning::planner::handover::floor;
use stlf_planning::planner::{Infeasible, Outcome};

use crate::device::Refusal;
use crate::job::{Sign, Watch};
use crate::planning::{Grounds, Planner, WORTH_NO_CHANGE, watched};
use crate::roster::{Place, Roster};
use crate::setup::Setup;
use crate::shared::Fingerprint;
use crate::wire::{Denial, EpochId, MOST_REPORTS, Plan, SignedPlan, SignedReport};

/// For so few devices every machine finds the best plan in time.
const MOST_EASY: usize = 16;

/// How much dearer than what was found here a plan may be, where neither is proven to be best.
const UNPROVEN: f64 = 0.05;

/// How far two computations of one cost may be apart, as a share of it.
const ROUNDING: f64 = 1e-6;

/// Returns whether a plan costs less than what is proven to be the least. Then it is not one of those that were compared, or its cost not what it costs.
pub(crate) fn beats_proof(stated: f64, best: &stlf_planning::Plan) -> bool {
    let least = best.objective();
    best.status == Status::Optimal && stated < least - ROUNDING * least.abs().max(1.0)
}

/// Returns whether a plan costs more than this share above the least.
fn is_dearer(stated: f64, least: f64, most: f64) -> bool {
    stated > least + most * least.abs() + ROUNDING
}

/// Why a plan is not followed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Objection {
    /// It cannot be read.
    #[error("a plan that cannot be read: {0}")]
    Garbled(String),
    /// A signature that is not the planner's.
    #[error("the plan is not signed by its planner")]
    Unsigned,
    /// It says that it is of another epoch than the message that it came in.
    #[error("the plan is of another epoch")]
    Elsewhere,
    /// It does not carry the reports that it was made from.
    #[error("the plan does not carry a report of every device")]
    WithoutReports,
    /// A report is not signed by the device that it is of, for this epoch and the settings that all share.
    #[error("{}", self.about(&at(.0)))]
    Forged(Place),
    /// The planner passes on means that are not signed by the device that they are of, for this epoch and the settings that all share.
    #[error("{}", self.about(&at(.0)))]
    Invented(Place),
    /// The reports say what no device can measure.
    #[error("the plan carries a report of place {0} that cannot be: {1}")]
    Impossible(Place, Box<Refusal>),
    /// There is a plan, or would be one without a device that nothing can be planned for.
    #[error("the planner says that there is no plan, where its reports allow one")]
    Denied,
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
    /// It does without a link into the device that checks, which has not complained of the sender. A planner that could do so could be the only
    /// source that is left to a target.
    #[error("{}", self.about(&at(.0)))]
    Unasked(Place),
    /// A better plan is known.
    #[error("the plan costs {stated:.4}, where its reports allow one of {best:.4}")]
    Dearer {
        /// The cost of the plan.
        stated: f64,
        /// What a better one costs.
        best: f64,
    },
}

impl Objection {
    /// Returns the same sentence as `Display`, with the device's name from the roster instead of its place.
    pub fn told(&self, roster: &Roster) -> String {
        match self {
            Objection::Forged(place) | Objection::Invented(place) | Objection::Unasked(place) => {
                self.about(&roster.name_of(*place))
            }
            Objection::Impossible(place, why) => {
                let why = why.told(roster);
                format!(
                    "the plan carries a report of {} that cannot be: {why}",
                    roster.name_of(*place)
                )
            }
            _ => self.to_string(),
        }
    }

    /// The sentence about a device that is called so.
    fn about(&self, who: &str) -> String {
        match self {
            Objection::Forged(_) => format!(
                "the plan carries a report that {who} did not sign for this epoch and these settings"
            ),
            Objection::Invented(_) => {
                format!("the planner passes on means that {who} did not sign for this epoch")
            }
            _ => format!(
                "the plan does without the link from {who}, of which this device has not complained"
            ),
        }
    }
}

/// A device whose name is not known.
fn at(place: &Place) -> String {
    format!("place {place}")
}

/// What a planner comes to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    Plan(SignedPlan),
    NoPlan(Denial),
}

/// What whoever has checked that knows.
#[derive(Debug)]
pub(crate) enum Checked {
    /// The plan is followed.
    Plan(Grounds),
    /// There is none, for this reason.
    NoPlan(String),
}

/// A planner's answer that is to be checked, with all that it takes.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) planner: Place,
    /// Who checks.
    pub(crate) place: Place,
    pub(crate) epoch: EpochId,
    /// Ascending.
    pub(crate) members: Vec<Place>,
    pub(crate) answer: Answer,
    pub(crate) roster: Roster,
    pub(crate) setup: Setup,
    /// Of the settings that all are to share.
    pub(crate) settings: Fingerprint,
    /// Those of whom the device that checks has said that nothing of use comes from them.
    pub(crate) complained_of: BTreeSet<Place>,
}

impl Check {
    /// Returns what the device that checks learns of the answer, if it follows from its reports. In large fleets that is what the planner says.
    pub(crate) fn run(&self, watch: &mut Watch<'_>) -> Result<Checked, Objection> {
        let is_large = self.members.len() > MOST_REPORTS;
        match &self.answer {
            Answer::Plan(_) if is_large => Ok(Checked::Plan(Grounds::default())),
            Answer::NoPlan(denial) if is_large => Ok(Checked::NoPlan(denial.reason.clone())),
            Answer::Plan(signed) => self.grounds(signed, watch).map(Checked::Plan),
            Answer::NoPlan(denial) => self.reason(denial).map(Checked::NoPlan),
        }
    }

    fn grounds(&self, signed: &SignedPlan, watch: &mut Watch<'_>) -> Result<Grounds, Objection> {
        let Check { place, roster, setup, complained_of, .. } = self;
        let plan = &signed.plan;
        let mut into_own = plan.forbidden.iter().filter(|(_, to)| to == place);
        if let Some((from, _)) = into_own.find(|(from, _)| !complained_of.contains(from)) {
            return Err(Objection::Unasked(*from));
        }
        let forbidden: BTreeSet<(Place, Place)> = plan.forbidden.iter().copied().collect();
        let desk = self.desk(&signed.reports, &forbidden)?;
        let problem =
            desk.problem(roster, setup).map_err(|why| Objection::NoProblem(why.told(roster)))?;
        is_founded(plan, &desk, &problem)?;
        if desk.with_checks(plan.clone(), &problem, setup) != *plan {
            return Err(Objection::Unfounded("its witnesses or examiners are others"));
        }
        self.is_good(plan, &problem, watch)?;
        Ok(desk.grounds(&problem, plan, *place))
    }

    /// Returns why there is no plan. Links that the planner would call forbidden do not count: it could forbid all. A planner without labels that no link is left to has
    /// to be done without, like any other device of which that is so; it would leave out each of these itself, so that none of them is a reason.
    fn reason(&self, denial: &Denial) -> Result<String, Objection> {
        let Check { members, roster, setup, planner, .. } = self;
        let desk = self.desk(&denial.reports, &BTreeSet::new())?;
        let problem = match desk.problem(roster, setup) {
            Ok(problem) => problem,
            Err(why) => return Ok(why.to_string()),
        };
        // Whether there is one is known before anything is searched for.
        match setup.plan(&problem, &mut |_| ControlFlow::Break(())) {
            Outcome::Infeasible(Infeasible::Unreachable { device, .. })
                if members[device] != *planner =>
            {
                Err(Objection::Denied)
            }
            Outcome::Infeasible(why) => Ok(why.to_string()),
            Outcome::Planned(_) => Err(Objection::Denied),
        }
    }

    /// Returns what the planner knew, by signed reports.
    fn desk(
        &self,
        reports: &[SignedReport],
        forbidden: &BTreeSet<(Place, Place)>,
    ) -> Result<Planner, Objection> {
        let Check { members, roster, setup, settings, epoch, .. } = self;
        if reports.len() != members.len() {
            return Err(Objection::WithoutReports);
        }
        let mut desk = Planner::new(members, &setup.divergence, forbidden);
        for (&member, report) in members.iter().zip(reports) {
            let key = roster.at(member).map(|entry| entry.key);
            if !key.is_some_and(|key| report.is_of(key, *epoch, *settings)) {
                return Err(Objection::Forged(member));
            }
            let heard = desk.hear(member, report, setup.unlabeled_as);
            heard.map_err(|refusal| Objection::Impossible(member, Box::new(refusal)))?;
        }
        Ok(desk)
    }

    /// That it is about as good as the best.
    fn is_good(
        &self,
        plan: &Plan,
        problem: &Problem,
        watch: &mut Watch<'_>,
    ) -> Result<(), Objection> {
        if self.is_near_floor(plan, problem, watch) {
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

    /// Returns whether a bound from below, which takes a tenth of the time of a search, shows already that no plan is much better. Plans for few devices
    /// are searched for in any case.
    fn is_near_floor(&self, plan: &Plan, problem: &Problem, watch: &mut Watch<'_>) -> bool {
        let settings = &self.setup.planner;
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

/// That roles, links and hand-overs are possible, and that the plan costs what it says.
fn is_founded(plan: &Plan, desk: &Planner, problem: &Problem) -> Result<(), Objection> {
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
    let is_used = |&(from, to): &(usize, usize)| links.iter().any(|l| (l.from, l.to) == (from, to));
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
