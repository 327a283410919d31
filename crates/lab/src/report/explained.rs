//! A plan as the page shows it, with words about every device.

use stlf_planning::Problem;
use stlf_planning::Role;
use stlf_planning::explain::{Sentences, account, explain};
use stlf_planning::number_format::{clean, mixture, short};
use stlf_planning::plan::Status;
use stlf_planning::planner::{Limits, Observer};
use stlf_planning::problem::Model;

use super::document::{Handover, Link, Plan, Terms, Weights};

/// With more devices than this, only the plan in use is explained: a page holds some forty plans.
const MOST_IN_EVERY_PLAN: usize = 200;

/// With more devices than this the runners-up take too long to plan; the live page asks for those of one device.
const MOST_IN_FULL: usize = 60;

/// A plan for the page. If it is the one in use, each device's explanation also says what came second and what would change it, as long
/// as there are not too many of them and `observer` does not end the search for that.
pub(super) fn plan(
    problem: &Problem,
    plan: &stlf_planning::Plan,
    in_use: bool,
    observer: &mut Observer<'_>,
) -> Plan {
    let mut in_full = in_use && problem.len() <= MOST_IN_FULL;
    let explanations = (in_use || problem.len() <= MOST_IN_EVERY_PLAN).then(|| {
        let each = |device| {
            let further = if in_full { further(problem, plan, device, observer) } else { None };
            in_full &= further.is_some();
            words(problem, plan, device, further)
        };
        (0..problem.len()).map(each).collect()
    });
    let weights = match problem.model() {
        Model::Measured(m) => {
            let w = m.weights;
            Weights { source: w.source, target: w.target, energy: w.energy }
        }
        Model::Costs(_) => Weights { source: 1.0, target: 1.0, energy: 1.0 },
    };
    let divergence = |from, to| match problem.model() {
        Model::Measured(m) => m.links.get(from, to).map(|link| link.divergence),
        Model::Costs(_) => None,
    };
    let joules = plan.joules(problem);
    let all = plan.all_to_all_joules(problem).filter(|all| *all > 0.0);
    let (source, target, energy) = (plan.terms.source, plan.terms.target, plan.terms.energy);
    Plan {
        phi_e: weights.energy,
        weights,
        bound: plan.bound,
        status: if plan.status == Status::Optimal { "optimal" } else { "feasible" },
        objective: plan.objective(),
        lower_bound: plan.lower_bound,
        gap: plan.gap(),
        terms: Terms { source, target, energy },
        roles: plan.roles.clone(),
        links: plan
            .links
            .iter()
            .map(|link| Link {
                from: link.from,
                to: link.to,
                weight: link.weight,
                joules: problem.link_energy(link.from, link.to),
                divergence: divergence(link.from, link.to),
            })
            .collect(),
        handovers: plan
            .handovers
            .iter()
            .map(|handover| Handover {
                from: handover.from,
                to: handover.to,
                joules: plan.handover_joules(problem, *handover),
                divergence: divergence(handover.from, handover.to),
            })
            .collect(),
        joules: joules.unwrap_or(0.0),
        energy_share: joules.zip(all).map(|(joules, all)| joules / all),
        accuracy: None,
        explanations,
        in_full,
    }
}

/// What there is to say in full; `None` where the observer ended the search for it.
pub(super) fn further(
    problem: &Problem,
    plan: &stlf_planning::Plan,
    device: usize,
    observer: &mut Observer<'_>,
) -> Option<Vec<String>> {
    let words = Sentences { problem, plan };
    let mut ended = false;
    let e = explain(problem, plan, device, &Limits::default(), &mut |progress| {
        let flow = observer(progress);
        ended |= flow.is_break();
        flow
    });
    (!ended).then(|| std::iter::once(words.role(&e)).chain(words.further(&e)).collect())
}

/// Why a device has its role, one sentence or term a line.
fn words(
    problem: &Problem,
    plan: &stlf_planning::Plan,
    device: usize,
    further: Option<Vec<String>>,
) -> String {
    let words = Sentences { problem, plan };
    let mut account = account(problem, plan, device);
    let mut lines = further.unwrap_or_else(|| {
        let name = clean(problem.name(device));
        let role = match plan.roles[device] {
            Role::Source => format!("{name} is a source: it trains on its own labels."),
            Role::Target => {
                let models = if plan.incoming(device).len() == 1 { "model" } else { "models" };
                let from = clean(&mixture(problem, plan.incoming(device)));
                format!("{name} is a target: it uses the {models} of {from}.")
            }
        };
        let handovers = words.trains_on(device).into_iter().chain(words.hands_on(device));
        std::iter::once(role).chain(handovers).collect()
    });
    account.parts.sort_by(|a, b| b.cost.total_cmp(&a.cost));
    lines.push(format!("It costs {}:", short(account.total())));
    lines.extend(account.parts.iter().map(|p| format!("{} {}", short(p.cost), words.term(p.term))));
    lines.join("\n")
}
