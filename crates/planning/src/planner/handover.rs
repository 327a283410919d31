//! Hand-overs: sources hand their models on to other sources, which continue training them on their own labels.
//!
//! Under the pooled bound a target mixes sources to profit from all their samples, and pays for a link from each. Targets that want the
//! same mixture can have it cheaper: a model that was trained at k, handed on to i and trained on there has learnt from the samples of
//! both, and a target gets it over one link. [`crate::plan::evaluate`] has the bound of such a model.
//!
//! A hand-over costs what any link costs. Roles are the plan's. Who takes a model from whom is a forest over the sources (`search`) or
//! rings of them (`rings`), found by local search that begins with the plan, so that it never costs more. How much less
//! another choice could cost is bounded by a relaxation, which proves the plan optimal only where the two meet (docs/relays.md says how
//! near the search comes where all can be tried).

mod rings;
mod search;

use std::ops::ControlFlow;

use stlf_optim::pooled;
use stlf_optim::status::{Stop, relative_gap};

use super::exact::{pooled_client, pooled_instance};
use super::{Limits, Observer, Progress};
use crate::bound::BoundKind;
use crate::device::Role;
use crate::plan::{Handover, Plan, PlanLink, Status, Terms, evaluate};
use crate::problem::{Measured, Model, Problem};
use search::Search;

/// How models may be handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forms {
    /// Hand-overs that a model makes at most in a forest: each is a training that waits for the one before.
    pub longest: usize,
    /// The most sources of a ring; fewer than two: no rings.
    pub ring: usize,
}

impl Forms {
    /// Chains, trees and rings, as long as makes sense.
    pub const ALL: Forms = Forms { longest: 8, ring: 32 };
}

/// An objective this near its lower bound, relative, is the least.
const PROVEN: f64 = 1e-9;

/// Why no plan of a problem has hand-overs, where that is so.
pub fn refusal(problem: &Problem) -> Option<&'static str> {
    match (problem.model(), problem.bound_kind()) {
        (Model::Costs(_), _) => Some("raw costs do not say how much data each device has"),
        (_, BoundKind::Paper) => Some("the paper's bound does not reward them; use the pooled one"),
        (_, BoundKind::Pooled) => None,
    }
}

/// A plan with hand-overs of these forms among its sources. There are none where the problem has raw
/// costs, which do not say who has how much data, or asks for the paper's bound, which does not reward them.
pub fn with_handovers(
    problem: &Problem,
    plan: Plan,
    forms: Forms,
    limits: &Limits,
    observer: &mut Observer<'_>,
) -> Plan {
    let Model::Measured(measured) = problem.model() else { return plan };
    if problem.bound_kind() != BoundKind::Pooled {
        return plan;
    }
    let (objective, nodes) = (plan.objective(), plan.solver.iterations);
    let mut is_stopped = false;
    let mut watch = || {
        let flow = observer(&Progress { objective, lower_bound: 0.0, nodes });
        is_stopped |= flow.is_break();
        flow
    };
    let found = search(problem, &plan.roles, &plan.links, forms, None, &mut watch);
    // Without any, the plan's own sums stand: another order of adding rounds otherwise.
    let found = found.filter(|f| !f.handovers.is_empty()).unwrap_or_else(|| Found::none(&plan));
    let lower_bound = lower_bound(problem, measured, limits, observer).min(found.terms.total());
    let is_proven = relative_gap(found.terms.total(), lower_bound) <= PROVEN;
    let Found { handovers, links, terms } = found;
    let status = match (is_proven, plan.status) {
        (true, _) => Status::Optimal,
        (false, Status::Optimal) if is_stopped => Status::Feasible(Stop::Observer),
        (false, Status::Optimal) => Status::Feasible(Stop::NoProof),
        (false, stopped) => stopped,
    };
    Plan { handovers, links, terms, lower_bound, status, ..plan }
}

/// What no plan with hand-overs costs less than, which is known long before a plan is; none where no plan of a problem has any. The problem must
/// have a plan.
pub fn floor(problem: &Problem, limits: &Limits, observer: &mut Observer<'_>) -> Option<f64> {
    let Model::Measured(measured) = problem.model() else { return None };
    let hands_on = problem.bound_kind() == BoundKind::Pooled;
    hands_on.then(|| lower_bound(problem, measured, limits, observer))
}

/// The best hand-overs that a search found, with the links and the cost of the plan that has them.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The hand-overs of that plan, sorted by receiver.
    pub handovers: Vec<Handover>,
    /// The links of that plan, sorted by receiver, then sender.
    pub links: Vec<PlanLink>,
    /// What they cost, with the sources.
    pub terms: Terms,
}

impl Found {
    fn none(plan: &Plan) -> Found {
        Found { handovers: Vec::new(), links: plan.links.clone(), terms: plan.terms }
    }
}

/// Says whether to continue; asked for every source that is looked at.
pub type Watch<'a> = dyn FnMut() -> ControlFlow<()> + 'a;

/// The best hand-overs that local search finds among sources, `without` not being one of them; none where the problem has raw costs or
/// the paper's bound. Targets take one model, or mix those of the links given. A forest and rings are not combined: the cheaper is taken.
pub fn search(
    problem: &Problem,
    roles: &[Role],
    links: &[PlanLink],
    forms: Forms,
    without: Option<Handover>,
    watch: &mut Watch<'_>,
) -> Option<Found> {
    let Model::Measured(measured) = problem.model() else { return None };
    if measured.bound.kind != BoundKind::Pooled {
        return None;
    }
    let source = evaluate(problem, BoundKind::Pooled, roles, &[], &[]).source;
    let search = Search::new(problem, measured, roles, links, forms.longest, without);
    let forest = search.best(roles.len(), source, watch)?;
    let rings = rings::best(problem, measured, roles, links, forms.ring, without, watch);
    let is_cheaper = |rings: &Found| rings.terms.total() < forest.terms.total();
    Some(rings.filter(is_cheaper).unwrap_or(forest))
}

/// No plan with hand-overs costs less: whatever models are handed on, a target's bound is at least that of the best mixture of sources
/// with nothing forgotten, and at least its cheapest link is paid. What sources cost is as ever.
fn lower_bound(
    problem: &Problem,
    measured: &Measured,
    limits: &Limits,
    observer: &mut Observer<'_>,
) -> f64 {
    let instance = pooled_instance(problem, measured, |to| {
        let mut client = pooled_client(problem, measured, to);
        let charges = client.candidates.iter().map(|candidate| candidate.charge);
        client.constant += charges.min_by(f64::total_cmp).unwrap_or(0.0);
        client.required.clear();
        for candidate in &mut client.candidates {
            candidate.charge = 0.0;
        }
        client
    });
    pooled::solve(&instance, limits, observer).lower_bound
}
