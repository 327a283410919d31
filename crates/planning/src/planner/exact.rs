//! The global optimum with a proof.
//!
//! Under the paper's bound every target takes exactly one source at the optimum (its cost is
//! concave in its column of weights, and a concave function on a simplex is least at a vertex), so
//! (P) is facility location in which a source serves itself for free. Under the pooled bound a
//! target may take several, and the same problem is solved over mixtures.

use stlf_optim::facility::{self, Candidate, Instance, Opening};
use stlf_optim::pooled;

use crate::bound::BoundKind;
use crate::device::Role;
use crate::plan::{Plan, PlanLink, Solver, Status, evaluate};
use crate::problem::{Link, Measured, Model, Problem};

use super::{Limits, Observer};

/// Plans a feasible problem to the limits.
pub(super) fn plan(problem: &Problem, limits: &Limits, observer: &mut Observer<'_>) -> Plan {
    match problem.model() {
        Model::Measured(measured) if measured.bound.kind == BoundKind::Pooled => {
            mixtures(problem, measured, limits, observer)
        }
        _ => single_sources(problem, limits, observer),
    }
}

/// The paper's bound, or raw costs: one source per target.
fn single_sources(problem: &Problem, limits: &Limits, observer: &mut Observer<'_>) -> Plan {
    let instance = facility_instance(problem);
    let mut solution = facility::solve(&instance, limits, observer);
    if !instance.is_complete() {
        assign_anew(problem, &mut solution);
    }
    let links = (0..problem.len())
        .filter(|&j| !solution.open[j])
        .map(|j| PlanLink { from: solution.assigned[j] as usize, to: j, weight: 1.0 })
        .collect();
    let found = Found {
        open: solution.open,
        links,
        lower_bound: solution.lower_bound,
        status: solution.status,
        nodes: solution.nodes,
    };
    found.into_plan(problem, BoundKind::Paper)
}

/// Gives every target the best of all open sources, where the search saw only some of the links.
fn assign_anew(problem: &Problem, solution: &mut facility::Solution) {
    let senders = problem.senders();
    let mut list: Vec<Candidate> = Vec::new();
    for to in 0..problem.len() {
        if solution.open[to] || !problem.required_into(to).is_empty() {
            continue;
        }
        list.clear();
        let candidate = |facility, cost| Candidate { facility, cost };
        problem.extend_with_costs(&senders, to, &mut list, candidate);
        let open = list.iter().filter(|c| solution.open[c.facility as usize]);
        if let Some(best) = open.min_by(|a, b| a.cost.total_cmp(&b.cost)) {
            solution.assigned[to] = best.facility;
        }
    }
}

/// f_i = φ^S S_i, c_ij = φ^T T_ij + φ^E K_ij/(1 + ε_E), c_ii = 0.
pub(super) fn facility_instance(problem: &Problem) -> Instance {
    let senders = problem.senders();
    let candidates = |to: usize, list: &mut Vec<Candidate>| {
        if problem.eligible(to) {
            list.push(Candidate { facility: to as u32, cost: 0.0 });
        }
        if problem.pin(to) == Some(Role::Source) {
            return;
        }
        let candidate = |facility, cost| Candidate { facility, cost };
        let required = problem.required_into(to);
        if required.is_empty() {
            problem.extend_with_costs(&senders, to, list, candidate);
        } else {
            let links = required.iter().filter_map(|&from| problem.link_cost(from, to));
            list.extend(links.map(|link| candidate(link.from as u32, link.total())));
        }
    };
    // Problem::new has checked every cost, and the planner that every target can be reached.
    Instance::new(openings(problem), problem.len(), candidates)
        .expect("a checked, feasible problem is a facility location problem")
}

fn openings(problem: &Problem) -> Vec<Opening> {
    (0..problem.len())
        .map(|i| match (problem.source_cost(i), problem.pin(i)) {
            (None, _) => Opening::Never,
            (Some(cost), Some(Role::Source)) => Opening::Must(cost),
            (Some(cost), _) => Opening::May(cost),
        })
        .collect()
}

/// The pooled bound: a mixture of sources per target.
fn mixtures(
    problem: &Problem,
    measured: &Measured,
    limits: &Limits,
    observer: &mut Observer<'_>,
) -> Plan {
    let instance = pooled_instance(problem, measured, |to| pooled_client(problem, measured, to));
    let solution = pooled::solve(&instance, limits, observer);
    let links = solution
        .mixtures
        .iter()
        .enumerate()
        .filter(|(to, _)| !solution.open[*to])
        .flat_map(|(to, mixture)| {
            mixture.iter().map(move |&(from, weight)| PlanLink { from: from as usize, to, weight })
        })
        .collect();
    let found = Found {
        open: solution.open,
        links,
        lower_bound: solution.lower_bound,
        status: solution.status,
        nodes: solution.nodes,
    };
    found.into_plan(problem, BoundKind::Pooled)
}

/// The problem as pooled location: every device is a facility, and a client as `client` makes it.
pub(super) fn pooled_instance(
    problem: &Problem,
    measured: &Measured,
    client: impl Fn(usize) -> pooled::Client,
) -> pooled::Instance {
    let scale = measured.weights.target * measured.bound.pooling_scale();
    let spread = |i: usize| scale * scale / measured.devices[i].samples() as f64;
    let spreads = (0..problem.len()).map(spread).collect();
    pooled::Instance::new(openings(problem), spreads, problem.len(), client)
}

/// A device as a client that any source with a link to it may serve.
pub(super) fn pooled_client(problem: &Problem, measured: &Measured, to: usize) -> pooled::Client {
    let is_source = problem.pin(to) == Some(Role::Source);
    let senders = measured.links.incoming(to).filter(|link| problem.eligible(link.from));
    let candidate = |link: Link| pooled::Candidate {
        facility: link.from as u32,
        slope: measured.mixing_cost(link.from, to, link.divergence),
        charge: measured.energy_cost(link.energy),
    };
    pooled::Client {
        constant: measured.target_constant_cost(to),
        own: problem.eligible(to).then_some(to as u32),
        required: problem.required_into(to).iter().map(|&i| i as u32).collect(),
        candidates: senders.filter(|_| !is_source).map(candidate).collect(),
    }
}

/// What either search found, before it is a plan.
struct Found {
    open: Vec<bool>,
    links: Vec<PlanLink>,
    lower_bound: f64,
    status: Status,
    nodes: u64,
}

impl Found {
    fn into_plan(mut self, problem: &Problem, bound: BoundKind) -> Plan {
        self.links.sort_unstable_by_key(|link| (link.to, link.from));
        let role = |&open: &bool| if open { Role::Source } else { Role::Target };
        let roles: Vec<Role> = self.open.iter().map(role).collect();
        let terms = evaluate(problem, bound, &roles, &self.links, &[]);
        let lower_bound = match self.status {
            // Proven: the two differ by rounding alone.
            Status::Optimal => terms.total(),
            Status::Feasible(_) => self.lower_bound.min(terms.total()),
        };
        Plan {
            roles,
            links: self.links,
            handovers: Vec::new(),
            terms,
            lower_bound,
            status: self.status,
            bound,
            solver: Solver {
                name: "exact",
                iterations: self.nodes,
                trace: Vec::new(),
                successive: None,
            },
        }
    }
}
