//! A plan as a device knows that follows it: who does what, and what it costs. The problem is not part of it.

use stlf_planning::bound::BoundKind;
use stlf_planning::plan::Terms;

use super::{
    HandoverEntry, PlanFile, PlanFormat, PlanLinkEntry, PlanStatus, SolverEntry, SolverName, finite,
};

/// What a device knows of a plan, by names.
#[derive(Debug, Clone, PartialEq)]
pub struct Followed {
    /// The names of the devices that train and send models.
    pub sources: Vec<String>,
    /// The names of the devices that receive models.
    pub targets: Vec<String>,
    /// Sender, receiver and weight of every link, by receiver.
    pub links: Vec<(String, String, f64)>,
    /// Whose model is handed on to whom, by receiver.
    pub handovers: Vec<(String, String)>,
    /// The objective of the plan.
    pub objective: f64,
    /// The same term by term, where the device knows.
    pub terms: Option<Terms>,
    /// Whether it is proven that no plan costs less.
    pub optimal: bool,
    /// The bound under which the plan was made.
    pub bound: BoundKind,
}

impl From<Followed> for PlanFile {
    fn from(plan: Followed) -> PlanFile {
        let Followed { sources, targets, links, handovers, objective, terms, optimal, bound } =
            plan;
        let link = |(from, to, weight)| PlanLinkEntry { from, to, weight, energy: None };
        let handover = |(from, to)| HandoverEntry { from, to, energy: None };
        let proven = |value: f64| finite(value).filter(|_| optimal);
        PlanFile {
            format: PlanFormat::V2,
            status: if optimal { PlanStatus::Optimal } else { PlanStatus::Feasible },
            reason: None,
            objective: finite(objective),
            lower_bound: proven(objective),
            gap: proven(0.0),
            terms: terms.map(Into::into),
            sources,
            targets,
            links: links.into_iter().map(link).collect(),
            handovers: handovers.into_iter().map(handover).collect(),
            bound,
            energy: None,
            settings: None,
            solver: SolverEntry::new(SolverName::Exact, 0.0),
            problem: None,
        }
    }
}
