//! The paper's method made into a plan: run it, round it, polish it, and say how far it came.

use std::ops::ControlFlow;

use stlf_optim::facility;
use stlf_optim::status::{Stop, TOLERANCE, relative_gap};

use crate::bound::BoundKind;
use crate::device::Role;
use crate::plan::{Plan, PlanLink, Solver, Status, SuccessiveReport, evaluate};
use crate::problem::{Disagreement, Model, Problem, Weights};

use super::successive::{self, Link, Rounded};
use super::{Limits, Observer, Progress, Settings, exact};

/// Weights below this are not worth sending a model for.
const THRESHOLD: f64 = 0.01;

/// Runs the successive method on a feasible problem under the paper's bound.
pub(super) fn plan(problem: &Problem, settings: &Settings, observer: &mut Observer<'_>) -> Plan {
    let numbers = Numbers::new(problem);
    let noise = numbers.disagreement.map(|d| move |j, k, i| d.at(j, k, i));
    let instance = successive::Instance {
        source: &numbers.source,
        must_be_source: &numbers.must_be_source,
        links: &numbers.links,
        weights: numbers.weights,
        energy_epsilon: numbers.energy_epsilon,
        disagreement: noise.as_ref().map(|noise| noise as &dyn Fn(usize, usize, usize) -> f64),
    };
    let mut hear = |iteration: &successive::Iteration| -> ControlFlow<()> {
        let objective = iteration.objective;
        let nodes = iteration.index as u64;
        observer(&Progress { objective, lower_bound: f64::NEG_INFINITY, nodes })
    };
    let outcome = successive::solve(&instance, &settings.successive, &mut hear)
        // Problem::new has checked every number.
        .expect("a checked problem has only finite, non-negative numbers");
    let rounded = successive::round(&instance, &outcome, THRESHOLD);
    let rounded_links = links(&rounded, &numbers.links);
    let rounded_terms = evaluate(problem, BoundKind::Paper, &rounded.roles, &rounded_links, &[]);

    let facilities = exact::facility_instance(problem);
    let optimum = facility::solve(&facilities, &Limits::default(), observer);
    let (roles, links) = if settings.polish {
        let told =
            Progress { objective: optimum.objective, lower_bound: optimum.lower_bound, nodes: 0 };
        polish(&facilities, &rounded.roles, &mut || observer(&told).is_continue())
    } else {
        (rounded.roles, rounded_links)
    };
    let terms = evaluate(problem, BoundKind::Paper, &roles, &links, &[]);
    let proven = optimum.status == Status::Optimal;
    let optimal = proven && relative_gap(terms.total(), optimum.objective) <= TOLERANCE;
    Plan {
        roles,
        links,
        handovers: Vec::new(),
        terms,
        lower_bound: if optimal { terms.total() } else { optimum.lower_bound },
        status: if optimal { Status::Optimal } else { Status::Feasible(Stop::NoProof) },
        bound: BoundKind::Paper,
        solver: Solver {
            name: "successive",
            iterations: outcome.iterations as u64,
            trace: outcome.trace,
            successive: Some(SuccessiveReport {
                relaxed_objective: outcome.relaxed,
                rounded_objective: rounded_terms.total(),
                exact_objective: optimum.objective,
                exact_is_proven: proven,
                stop: outcome.stop,
            }),
        },
    }
}

/// Opens, closes and swaps sources from the rounded roles, each target with its best source.
fn polish(
    facilities: &facility::Instance,
    roles: &[Role],
    go_on: &mut dyn FnMut() -> bool,
) -> (Vec<Role>, Vec<PlanLink>) {
    let open = roles.iter().map(|&role| role == Role::Source).collect();
    let polished = facility::descend(facilities, open, go_on);
    let role = |&open: &bool| if open { Role::Source } else { Role::Target };
    let links = polished
        .assigned
        .iter()
        .enumerate()
        .filter(|&(to, _)| !polished.open[to])
        .map(|(to, &from)| PlanLink { from: from as usize, to, weight: 1.0 })
        .collect();
    (polished.open.iter().map(role).collect(), links)
}

fn links(rounded: &Rounded, incoming: &[Vec<Link>]) -> Vec<PlanLink> {
    let columns = incoming.iter().zip(&rounded.alpha).enumerate();
    columns
        .flat_map(|(to, (links, alpha))| {
            let used = links.iter().zip(alpha).filter(|&(_, &weight)| weight > 0.0);
            used.map(move |(link, &weight)| PlanLink { from: link.from, to, weight })
        })
        .collect()
}

/// The problem as the successive core wants it: S_i, T_ij, K_ij and the weights apart.
struct Numbers<'a> {
    source: Vec<Option<f64>>,
    must_be_source: Vec<bool>,
    links: Vec<Vec<Link>>,
    weights: Weights,
    energy_epsilon: f64,
    disagreement: Option<&'a Disagreement>,
}

impl<'a> Numbers<'a> {
    fn new(problem: &'a Problem) -> Numbers<'a> {
        let devices = 0..problem.len();
        let must_be_source =
            devices.clone().map(|i| problem.pin(i) == Some(Role::Source)).collect();
        let (weights, energy_epsilon) = match problem.model() {
            Model::Measured(m) => (m.weights, m.energy_epsilon),
            // Raw costs are weighted already and have no energy.
            Model::Costs(_) => (Weights { source: 1.0, target: 1.0, energy: 0.0 }, 1e-3),
        };
        let source = devices
            .clone()
            .map(|i| {
                problem.eligible(i).then(|| match problem.model() {
                    Model::Measured(m) => m.source_bound(i),
                    Model::Costs(c) => c.source[i],
                })?
            })
            .collect();
        let links = devices
            .map(|to| {
                if problem.pin(to) == Some(Role::Source) {
                    return Vec::new();
                }
                let required = problem.required_into(to);
                let mut links = incoming(problem, to);
                links.retain(|link| required.is_empty() || required.contains(&link.from));
                links
            })
            .collect();
        let disagreement = match problem.model() {
            Model::Measured(m) => m.disagreement.as_ref(),
            Model::Costs(_) => None,
        };
        Numbers { source, must_be_source, links, weights, energy_epsilon, disagreement }
    }
}

fn incoming(problem: &Problem, to: usize) -> Vec<Link> {
    match problem.model() {
        Model::Measured(m) => m
            .links
            .incoming(to)
            .filter(|link| problem.eligible(link.from))
            .map(|link| Link {
                from: link.from,
                error: m.target_bound(link, to),
                energy: m.scaled_energy(link.energy),
            })
            .collect(),
        Model::Costs(_) => (0..problem.len())
            .filter_map(|from| problem.link_cost(from, to))
            .map(|link| Link { from: link.from, error: link.error, energy: 0.0 })
            .collect(),
    }
}
