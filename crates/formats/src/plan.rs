//! `stlf-plan/2`: roles, weighted links, hand-overs, what they cost and how sure that is. `stlf-plan/1`, which had no hand-overs, is read.

mod followed;
mod read_back;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stlf_optim::status::Stop;
use stlf_planning::bound::BoundKind;
use stlf_planning::device::Role;
use stlf_planning::plan::{Plan, Status, Terms};
use stlf_planning::planner::{Infeasible, Method, successive};
use stlf_planning::problem::{Model, Problem};

use super::problem::{ComplexityEntry, EnergyUnitEntry, ProblemFile, WeightsEntry};

pub use followed::Followed;

/// A problem with more links than this is not repeated in its plan.
pub const MAX_EMBEDDED_LINKS: usize = 250_000;

/// A plan: who trains, who receives whose model with what weight, and what that costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schemars(title = "stlf-plan/2")]
pub struct PlanFile {
    /// The version of this format.
    pub format: PlanFormat,
    /// Whether the plan is proven to be the best, or the problem to have none.
    pub status: PlanStatus,
    /// Why there is no plan, where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the plan costs: the sum of the terms. Null where there is no plan.
    pub objective: Option<f64>,
    /// No plan costs less. Null where nothing is known.
    pub lower_bound: Option<f64>,
    /// (objective − lower_bound) / objective.
    pub gap: Option<f64>,
    /// The objective's terms, each with its weight.
    pub terms: Option<TermsEntry>,
    /// The devices that train.
    pub sources: Vec<String>,
    /// The devices that receive.
    pub targets: Vec<String>,
    /// The links in use, by receiver.
    pub links: Vec<PlanLinkEntry>,
    /// Sources that train on with another source's model, by receiver; none in stlf-plan/1.
    #[serde(default)]
    pub handovers: Vec<HandoverEntry>,
    /// The generalisation bound that the target term used.
    pub bound: BoundKind,
    /// What sending takes; absent with raw costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<Energy>,
    /// What the terms were weighed with; absent with raw costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<SettingsEntry>,
    /// How the plan was found.
    pub solver: SolverEntry,
    /// The problem as it was planned; absent where it has more than 250,000 links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<ProblemFile>,
}

/// The version of the plan format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PlanFormat {
    /// Without hand-overs; read, and no longer written.
    #[serde(rename = "stlf-plan/1")]
    V1,
    /// With hand-overs; the version that is written.
    #[serde(rename = "stlf-plan/2")]
    V2,
}

/// How the search for a plan ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PlanStatus {
    /// Proven: the lower bound meets the objective.
    Optimal,
    /// A plan with a gap.
    Feasible,
    /// There is no plan for the problem.
    Infeasible,
}

/// The terms of the objective.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with source, target and energy")]
pub struct TermsEntry {
    /// The sources' error bounds.
    pub source: f64,
    /// The targets' error bounds.
    pub target: f64,
    /// The energy of links and hand-overs.
    pub energy: f64,
}

impl From<Terms> for TermsEntry {
    fn from(terms: Terms) -> TermsEntry {
        TermsEntry { source: terms.source, target: terms.target, energy: terms.energy }
    }
}

impl From<TermsEntry> for Terms {
    fn from(terms: TermsEntry) -> Terms {
        Terms { source: terms.source, target: terms.target, energy: terms.energy }
    }
}

/// A link in use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with from, to, weight and energy")]
pub struct PlanLinkEntry {
    /// The sender, a source.
    pub from: String,
    /// The receiver, a target.
    pub to: String,
    /// The weight of the sender's model at the receiver; the weights of a receiver add up to 1.
    pub weight: f64,
    /// Joules to send the model; null with raw costs.
    pub energy: Option<f64>,
}

/// A source that continues training another source's model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with from, to and energy")]
pub struct HandoverEntry {
    /// The source whose model it is.
    pub from: String,
    /// The source that continues training it.
    pub to: String,
    /// Joules to send the model.
    pub energy: Option<f64>,
}

/// The energy of sending the models.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with joules and percent_of_all_to_all")]
pub struct Energy {
    /// The joules of all links in use and all hand-overs.
    pub joules: f64,
    /// The percentage of the energy if every source sent to every target; null where that is 0.
    pub percent_of_all_to_all: Option<f64>,
}

/// The settings of the objective.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with weights, delta, complexity, calibration, energy_epsilon and energy_unit"
)]
pub struct SettingsEntry {
    /// The weight of each term of the objective.
    pub weights: WeightsEntry,
    /// The bound holds with probability 1 − delta.
    pub delta: f64,
    /// The Rademacher complexity of the models.
    pub complexity: ComplexityEntry,
    /// The share of half a divergence that counts; 1 where not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<f64>,
    /// How small a weight still uses a whole link.
    pub energy_epsilon: f64,
    /// The unit in which energies enter the objective.
    pub energy_unit: EnergyUnitEntry,
}

/// How a plan was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with name, iterations, seconds and trace")]
pub struct SolverEntry {
    /// The solver that found the plan.
    pub name: SolverName,
    /// Nodes of the exact search, or iterations of the successive method.
    pub iterations: u64,
    /// Time spent planning, without reading and writing.
    pub seconds: f64,
    /// The objective after each iteration, where the method records it.
    pub trace: Vec<f64>,
    /// What ended the search before a proof.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<StoppedBy>,
    /// Successive only: the objective of the relaxed problem where the iteration ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relaxed_objective: Option<f64>,
    /// Successive only: the objective with roles and weights rounded, before polishing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounded_objective: Option<f64>,
    /// Successive only: the optimum, or a lower bound of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact_objective: Option<f64>,
    /// Successive only: whether exact_objective is proven to be the optimum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact_is_proven: Option<bool>,
    /// Successive only: why the iteration ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration_ended: Option<IterationEnded>,
}

impl SolverEntry {
    /// A solver that took so long, of which nothing else is known.
    pub(crate) fn new(name: SolverName, seconds: f64) -> SolverEntry {
        SolverEntry {
            name,
            iterations: 0,
            seconds,
            trace: Vec::new(),
            stopped_by: None,
            relaxed_objective: None,
            rounded_objective: None,
            exact_objective: None,
            exact_is_proven: None,
            iteration_ended: None,
        }
    }
}

/// A method by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SolverName {
    /// The optimum with proof.
    Exact,
    /// The paper's successive convex approximation.
    Successive,
}

impl From<Method> for SolverName {
    fn from(method: Method) -> SolverName {
        match method {
            Method::Exact => SolverName::Exact,
            Method::Successive => SolverName::Successive,
        }
    }
}

/// What ended a search before a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StoppedBy {
    /// The requested gap was reached.
    Gap,
    /// The time limit was reached.
    TimeLimit,
    /// The limit on branch-and-bound nodes was reached.
    NodeLimit,
    /// The user stopped the search.
    Interrupt,
    /// The method makes no proof.
    NoProof,
}

/// Why the successive iteration ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IterationEnded {
    /// Roles and weights no longer moved.
    Converged,
    /// The limit on iterations was reached.
    IterationLimit,
    /// A time limit or the user.
    Stopped,
    /// No inner problem led any further.
    Stalled,
}

impl From<successive::Stop> for IterationEnded {
    fn from(stop: successive::Stop) -> IterationEnded {
        match stop {
            successive::Stop::Converged => IterationEnded::Converged,
            successive::Stop::IterationLimit => IterationEnded::IterationLimit,
            successive::Stop::Observer => IterationEnded::Stopped,
            successive::Stop::Stalled(_) | successive::Stop::Unreachable(_) => {
                IterationEnded::Stalled
            }
        }
    }
}

/// What only the caller of a planner knows about its run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    /// Time that planning took.
    pub seconds: f64,
    /// Whether the observer stopped it because the user asked, and not because time was up.
    pub interrupted: bool,
}

impl Run {
    /// What ended the search for this plan before a proof; `None` where it is proven.
    pub fn stopped_by(self, plan: &Plan) -> Option<StoppedBy> {
        let Status::Feasible(stop) = plan.status else { return None };
        Some(match stop {
            Stop::GapReached => StoppedBy::Gap,
            Stop::NodeLimit => StoppedBy::NodeLimit,
            Stop::Observer if self.interrupted => StoppedBy::Interrupt,
            Stop::Observer => StoppedBy::TimeLimit,
            Stop::NoProof => StoppedBy::NoProof,
        })
    }
}

impl PlanFile {
    /// Returns the file of a plan, with the problem that it solves.
    pub fn new(problem: &Problem, plan: &Plan, run: Run) -> PlanFile {
        let name = |device: usize| problem.name(device).to_owned();
        let successive = plan.solver.successive.as_ref();
        let links = plan.links.iter().map(|link| PlanLinkEntry {
            from: name(link.from),
            to: name(link.to),
            weight: link.weight,
            energy: problem.link_energy(link.from, link.to),
        });
        let handovers = plan.handovers.iter().map(|handover| HandoverEntry {
            from: name(handover.from),
            to: name(handover.to),
            energy: plan.handover_joules(problem, *handover),
        });
        PlanFile {
            format: PlanFormat::V2,
            status: match plan.status {
                Status::Optimal => PlanStatus::Optimal,
                Status::Feasible(_) => PlanStatus::Feasible,
            },
            reason: None,
            objective: finite(plan.objective()),
            lower_bound: finite(plan.lower_bound),
            gap: finite(plan.gap()),
            terms: Some(plan.terms.into()),
            sources: plan.with_role(Role::Source).map(name).collect(),
            targets: plan.with_role(Role::Target).map(name).collect(),
            links: links.collect(),
            handovers: handovers.collect(),
            bound: plan.bound,
            energy: energy(problem, plan),
            settings: settings(problem),
            solver: SolverEntry {
                name: if successive.is_some() { SolverName::Successive } else { SolverName::Exact },
                iterations: plan.solver.iterations,
                seconds: run.seconds,
                trace: plan.solver.trace.iter().copied().filter(|v| v.is_finite()).collect(),
                stopped_by: run.stopped_by(plan),
                relaxed_objective: successive.and_then(|s| finite(s.relaxed_objective)),
                rounded_objective: successive.and_then(|s| finite(s.rounded_objective)),
                exact_objective: successive.and_then(|s| finite(s.exact_objective)),
                exact_is_proven: successive.map(|s| s.exact_is_proven),
                iteration_ended: successive.map(|s| s.stop.into()),
            },
            problem: embedded(problem),
        }
    }

    /// The file that says why there is no plan.
    pub fn infeasible(
        problem: &Problem,
        reason: &Infeasible,
        method: Method,
        run: Run,
    ) -> PlanFile {
        PlanFile {
            format: PlanFormat::V2,
            status: PlanStatus::Infeasible,
            reason: Some(reason.to_string()),
            objective: None,
            lower_bound: None,
            gap: None,
            terms: None,
            sources: Vec::new(),
            targets: Vec::new(),
            links: Vec::new(),
            handovers: Vec::new(),
            bound: problem.bound_kind(),
            energy: None,
            settings: settings(problem),
            solver: SolverEntry::new(method.into(), run.seconds),
            problem: embedded(problem),
        }
    }
}

/// Returns the value if JSON can express it: there is no infinity in JSON.
fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn energy(problem: &Problem, plan: &Plan) -> Option<Energy> {
    let joules = plan.joules(problem)?;
    let all = plan.all_to_all_joules(problem)?;
    let percent_of_all_to_all = (all > 0.0).then(|| 100.0 * joules / all);
    Some(Energy { joules, percent_of_all_to_all })
}

fn settings(problem: &Problem) -> Option<SettingsEntry> {
    let Model::Measured(m) = problem.model() else { return None };
    Some(SettingsEntry {
        weights: m.weights.into(),
        delta: m.bound.delta,
        complexity: m.bound.complexity.into(),
        calibration: Some(m.bound.calibration).filter(|&share| share != 1.0),
        energy_epsilon: m.energy_epsilon,
        energy_unit: m.energy_unit.into(),
    })
}

fn embedded(problem: &Problem) -> Option<ProblemFile> {
    let links = match problem.model() {
        Model::Measured(m) => m.links.count(),
        Model::Costs(_) => problem.len() * problem.len(),
    };
    (links <= MAX_EMBEDDED_LINKS).then(|| ProblemFile::from_problem(problem))
}
