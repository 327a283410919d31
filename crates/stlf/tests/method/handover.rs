//! Hand-overs among sources, against the plan that they begin with and against all forests.

use std::ops::ControlFlow;

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stlf_planning::Device;
use stlf_planning::Problem;
use stlf_planning::Role;
use stlf_planning::bound::{Bound, BoundKind, Share};
use stlf_planning::explain::{account, explain};
use stlf_planning::plan::{Handover, Plan, PlanLink, evaluate, route};
use stlf_planning::planner::handover::{Forms, floor, with_handovers};
use stlf_planning::planner::{Limits, Outcome, optimum};
use stlf_planning::problem::{EnergyUnit, Links, Model, Parts, Source, Weights};

/// Devices with labels and as many without; divergences up to `spread`, some links missing.
fn fleet(labeled: usize, spread: f64, energy: f64, missing: f64, seed: u64) -> Option<Problem> {
    let n = 2 * labeled;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let devices: Vec<Device> = (0..n)
        .map(|i| Device {
            name: format!("d{i}"),
            labeled: if i < labeled { rng.random_range(100..2000) } else { 0 },
            unlabeled: rng.random_range(100..500),
            source_error: (i < labeled).then(|| rng.random_range(0.0..0.2)),
        })
        .collect();
    let energies = (0..n * n)
        .map(|_| match rng.random_bool(missing) {
            true => f64::NAN,
            false if rng.random_bool(0.1) => 0.0,
            false => rng.random_range(1.0..2.0),
        })
        .collect();
    let divergence = (0..n * n).map(|_| rng.random_range(0.0..=spread)).collect();
    let weights = Weights { source: 1.0, target: 1.5, energy };
    problem(devices, Links::from_rows(n, divergence, energies), weights).ok()
}

fn problem(
    devices: Vec<Device>,
    links: Links,
    weights: Weights,
) -> Result<Problem, stlf_planning::Error> {
    let pins = vec![None; devices.len()];
    let source = Source::Measured {
        links,
        weights,
        bound: Bound::default().with(|s| s.kind = BoundKind::Pooled),
        energy_epsilon: 1e-3,
        energy_unit: EnergyUnit::MeanLink,
        disagreement: None,
    };
    let (forbidden, required) = (Vec::new(), Vec::new());
    Problem::new(Parts { devices, source, pins, forbidden, required })
}

/// Devices that are all alike: `sources` with labels, `targets` without.
fn alike(sources: usize, targets: usize, energy: f64) -> Problem {
    let n = sources + targets;
    let devices = (0..n).map(|i| Device {
        name: format!("d{i}"),
        labeled: if i < sources { 500 } else { 0 },
        unlabeled: 100,
        source_error: (i < sources).then_some(0.1),
    });
    let links = Links::from_rows(n, vec![0.0; n * n], vec![1.0; n * n]);
    problem(devices.collect(), links, Weights { source: 1.0, target: 1.0, energy }).unwrap()
}

fn planned(problem: &Problem) -> Option<Box<Plan>> {
    match optimum(problem) {
        Outcome::Planned(plan) => Some(plan),
        Outcome::Infeasible(_) => None,
    }
}

fn handed_on(problem: &Problem, plan: &Plan, longest: usize) -> Plan {
    let go_on = &mut |_: &_| ControlFlow::Continue(());
    let forest = Forms { longest, ring: 0 };
    with_handovers(problem, plan.clone(), forest, &Limits::default(), go_on)
}

/// Returns the source whose model each device takes, by device.
fn by_device(handovers: &[Handover], devices: usize) -> Vec<Option<usize>> {
    (0..devices).map(|to| handovers.iter().find(|h| h.to == to).map(|h| h.from)).collect()
}

/// The sources that a model has been at, by following hand-overs backwards.
fn way(before: &[Option<usize>], device: usize) -> Vec<usize> {
    let mut way: Vec<usize> = std::iter::successors(Some(device), |&at| before[at]).collect();
    way.reverse();
    way
}

/// The objective of a forest and links, written down once more: every target's bound is that of the mixture of all samples on
/// the ways of its models, and half their distance to the last sources more; every link and hand-over costs its energy.
/// Infinite where a link is missing.
fn objective(
    problem: &Problem,
    roles: &[Role],
    before: &[Option<usize>],
    links: &[PlanLink],
) -> f64 {
    let Model::Measured(m) = problem.model() else { unreachable!() };
    let samples = |i: usize| m.devices[i].samples() as f64;
    let hop = |from: usize, to: usize| {
        m.links.get(from, to).map_or(f64::INFINITY, |link| m.energy_cost(link.energy))
    };
    let mut cost: f64 = (0..roles.len())
        .filter(|&i| roles[i] == Role::Source)
        .map(|i| problem.source_cost(i).unwrap())
        .sum();
    cost += (0..roles.len()).filter_map(|i| Some(hop(before[i]?, i))).sum::<f64>();
    for column in links.chunk_by(|a, b| a.to == b.to) {
        let to = column[0].to;
        let apart = |from, to| m.links.get(from, to).map_or(f64::INFINITY, |l| l.divergence);
        let mut weights = vec![0.0; roles.len()];
        let mut forgotten = 0.0;
        for link in column {
            cost += hop(link.from, to);
            let way = way(before, link.from);
            let all: f64 = way.iter().map(|&i| samples(i)).sum();
            for &i in &way {
                let weight = link.weight * samples(i) / all;
                weights[i] += weight;
                if i != link.from {
                    forgotten += weight * 0.5 * apart(i, link.from);
                }
            }
        }
        let mut shares = Vec::new();
        for i in (0..roles.len()).filter(|&i| weights[i] > 0.0) {
            let Some(link) = m.links.get(i, to) else { return f64::INFINITY };
            let source_error = m.devices[i].source_error.unwrap();
            let (weight, divergence) = (weights[i], link.divergence);
            shares.push(Share { weight, source_error, divergence, samples: samples(i) });
        }
        cost += m.weights.target * (m.bound.pooled_target(&shares, samples(to)) + forgotten);
    }
    cost
}

/// The best over all forests, where each target takes the plan's links or one.
fn best_of_all(problem: &Problem, plan: &Plan, longest: usize) -> f64 {
    let sources: Vec<usize> = plan.with_role(Role::Source).collect();
    let targets: Vec<usize> = plan.with_role(Role::Target).collect();
    let choices = sources.len() + 1;
    let mut best = f64::INFINITY;
    'forests: for code in 0..choices.pow(sources.len() as u32) {
        let mut before = vec![None; problem.len()];
        let mut rest = code;
        for &source in &sources {
            before[source] = sources.get(rest % choices).copied();
            rest /= choices;
        }
        for &source in &sources {
            let (mut at, mut steps) = (source, 0);
            while let Some(from) = before[at] {
                (at, steps) = (from, steps + 1);
                if steps > longest.min(sources.len()) {
                    continue 'forests;
                }
            }
        }
        let only = |links: &[PlanLink]| objective(problem, &plan.roles, &before, links);
        let nothing = only(&[]);
        let of_target = |&to: &usize| {
            let single = sources.iter().map(|&from| only(&[PlanLink { from, to, weight: 1.0 }]));
            single.fold(only(plan.incoming(to)), f64::min) - nothing
        };
        best = best.min(nothing + targets.iter().map(of_target).sum::<f64>());
    }
    best
}

#[test]
fn sources_that_are_alike_hand_one_model_on_to_all() {
    let problem = alike(5, 5, 0.05);
    let plan = planned(&problem).unwrap();
    let found = handed_on(&problem, &plan, 8);
    assert_eq!(found.handovers.len(), 4);
    let last = found.links[0].from;
    assert_eq!(found.route(last).len(), 5);
    assert!(found.links.iter().all(|link| link.from == last && link.weight == 1.0));
    // The same mixture over 25 links has the same bound: five sources with a fifth of all samples each.
    let all: Vec<PlanLink> =
        (5..10).flat_map(|to| (0..5).map(move |from| PlanLink { from, to, weight: 0.2 })).collect();
    let mixed = evaluate(&problem, BoundKind::Pooled, &plan.roles, &all, &[]);
    assert!((mixed.target - found.terms.target).abs() < 1e-9);
    assert!((mixed.energy * 9.0 / 25.0 - found.terms.energy).abs() < 1e-9);
}

#[test]
fn a_search_that_is_stopped_ends_at_once_and_says_so() {
    let problem = alike(5, 5, 0.05);
    let plan = planned(&problem).unwrap();
    let stop = &mut |_: &_| ControlFlow::Break(());
    let found = with_handovers(&problem, *plan.clone(), Forms::ALL, &Limits::default(), stop);
    assert!(found.objective() <= plan.objective() + 1e-9);
    assert!(matches!(found.status, stlf_planning::plan::Status::Feasible(_)), "{:?}", found.status);
    assert!(found.lower_bound < found.objective());
}

#[test]
fn nobody_takes_a_model_whose_last_source_is_far() {
    // d0 and d1 are near to their own targets, d2 and d3, and far from the other's.
    let devices = (0..4).map(|i| Device {
        name: format!("d{i}"),
        labeled: if i < 2 { 500 } else { 0 },
        unlabeled: 100,
        source_error: (i < 2).then_some(0.1),
    });
    let mut divergence = vec![0.4; 16];
    for (from, to) in [(0, 2), (1, 3)] {
        divergence[from * 4 + to] = 0.0;
    }
    let links = Links::from_rows(4, divergence, vec![1.0; 16]);
    let weights = Weights { source: 1.0, target: 1.0, energy: 0.06 };
    let problem = problem(devices.collect(), links, weights).unwrap();
    let found = handed_on(&problem, &planned(&problem).unwrap(), 8);
    let ends: Vec<(usize, usize)> = found.links.iter().map(|link| (link.from, link.to)).collect();
    assert_eq!(ends, [(0, 2), (1, 3)]);
}

#[test]
fn nobody_hands_on_what_costs_more_than_it_brings() {
    let problem = alike(5, 5, 1.0);
    let plan = planned(&problem).unwrap();
    let found = handed_on(&problem, &plan, 8);
    assert!(found.handovers.is_empty());
    assert_eq!(found.links, plan.links);
    assert!((found.terms.total() - plan.objective()).abs() < 1e-9);
}

#[test]
fn the_papers_bound_and_a_limit_of_none_leave_the_plan_as_it_is() {
    let problem = alike(4, 4, 0.05);
    let paper = problem.with_bound(BoundKind::Paper);
    for (problem, longest) in [(&paper, 8), (&problem, 0)] {
        let plan = planned(problem).unwrap();
        let found = handed_on(problem, &plan, longest);
        assert!(found.handovers.is_empty());
        assert!((found.terms.total() - plan.objective()).abs() < 1e-9);
    }
}

#[test]
fn the_size_of_the_weights_does_not_matter() {
    let found = |scale: f64| {
        let problem = alike(5, 5, 0.05);
        let Model::Measured(m) = problem.model() else { unreachable!() };
        let Weights { source, target, energy } = m.weights;
        let weights =
            Weights { source: scale * source, target: scale * target, energy: scale * energy };
        let problem = self::problem(m.devices.clone(), m.links.clone(), weights).unwrap();
        handed_on(&problem, &planned(&problem).unwrap(), 8)
    };
    let plain = found(1.0);
    for scale in [1e9, 1e-9] {
        let scaled = found(scale);
        assert_eq!((&scaled.handovers, &scaled.links), (&plain.handovers, &plain.links), "{scale}");
    }
}

#[test]
fn required_links_stay() {
    let problem = alike(3, 3, 0.05);
    let Model::Measured(m) = problem.model() else { unreachable!() };
    let source = Source::Measured {
        links: m.links.clone(),
        weights: m.weights,
        bound: m.bound,
        energy_epsilon: m.energy_epsilon,
        energy_unit: m.energy_unit,
        disagreement: None,
    };
    let (pins, forbidden) = (vec![None; 6], Vec::new());
    let required = vec![(0, 4), (1, 5), (2, 5)];
    let parts = Parts { devices: m.devices.clone(), source, pins, forbidden, required };
    let problem = Problem::new(parts).unwrap();
    let found = handed_on(&problem, &planned(&problem).unwrap(), 8);
    for (from, to) in [(0, 4), (1, 5), (2, 5)] {
        assert!(found.links.iter().any(|l| (l.from, l.to) == (from, to)), "{:?}", found.links);
    }
}

proptest! {
    #[test]
    fn what_is_found_is_as_good_as_it_says_and_never_above_the_plan(
        labeled in 1..12usize, spread in 0.0..1.0f64, energy in prop_oneof![Just(0.0), 0.001..0.3f64], missing in 0.0..0.4f64,
        longest in 0..9usize, seed in 0..u64::MAX,
    ) {
        let Some(problem) = fleet(labeled, spread, energy, missing, seed) else { return Ok(()) };
        let Some(plan) = planned(&problem) else { return Ok(()) };
        let found = handed_on(&problem, &plan, longest);
        let again = objective(&problem, &plan.roles, &by_device(&found.handovers, problem.len()), &found.links);
        prop_assert!((again - found.terms.total()).abs() < 1e-9, "{again} {:?}", found.terms);
        prop_assert!(found.terms.total() <= plan.objective() + 1e-9);
        let evaluated = evaluate(&problem, BoundKind::Pooled, &found.roles, &found.links, &found.handovers);
        prop_assert!((again - evaluated.total()).abs() < 1e-9, "{again} {evaluated:?}");
        prop_assert!(found.lower_bound <= found.objective() + 1e-9);
        let least = floor(&problem, &Limits::default(), &mut |_| ControlFlow::Continue(()));
        prop_assert_eq!(least.map(|least| least.min(found.objective())), Some(found.lower_bound));
        for &Handover { from, to } in &found.handovers {
            prop_assert!(plan.roles[from] == Role::Source && plan.roles[to] == Role::Source);
            prop_assert!(problem.link_energy(from, to).is_some());
            prop_assert!(found.route(to).len() <= longest + 1);
            prop_assert_eq!(found.route(to), way(&by_device(&found.handovers, problem.len()), to));
            // Somebody takes what was handed on.
            let used = found.links.iter().any(|l| route(&found.handovers, l.from).contains(&to));
            prop_assert!(used, "{found:?}");
        }
        for target in plan.with_role(Role::Target) {
            let links = found.links.iter().filter(|l| l.to == target);
            prop_assert!((links.map(|l| l.weight).sum::<f64>() - 1.0).abs() < 1e-9);
        }
    }
}

proptest! {
    #[test]
    fn accounts_add_up_and_a_hand_over_is_worth_what_explain_says(
        labeled in 2..7usize, spread in 0.0..0.4f64, energy in 0.01..0.2f64, seed in 0..u64::MAX,
    ) {
        let Some(problem) = fleet(labeled, spread, energy, 0.1, seed) else { return Ok(()) };
        let Some(alone) = planned(&problem) else { return Ok(()) };
        let plan = with_handovers(&problem, *alone.clone(), Forms::ALL, &Limits::default(), &mut |_: &_| ControlFlow::Continue(()));
        let total: f64 = (0..problem.len()).map(|i| account(&problem, &plan, i).total()).sum();
        prop_assert!((total - plan.objective()).abs() < 1e-9, "{total} {}", plan.objective());
        let go_on = &mut |_: &_| ControlFlow::Continue(());
        for device in 0..problem.len() {
            let explained = explain(&problem, &plan, device, &Limits::default(), go_on);
            let taken = explained.takes.map(|taken| (taken.handover.from, taken.extra));
            prop_assert_eq!(taken.map(|(from, _)| from), plan.handed_from(device));
            // Without any hand-over the plan is the one that was there before.
            prop_assert!(taken.is_none_or(|(_, extra)| plan.objective() + extra <= alone.objective() + 1e-9));
            let to = plan.handovers.iter().filter(|h| h.from == device).map(|h| h.to);
            prop_assert_eq!(explained.hands_to, to.collect::<Vec<_>>());
        }
    }
}

#[test]
fn nearly_always_no_forest_is_better() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (mut fleets, mut best_found, mut gaps, mut worst) = (0u32, 0u32, 0.0, 0.0f64);
    for seed in 0..400 {
        let (spread, energy) = (rng.random_range(0.0..0.6), rng.random_range(0.01..0.2));
        let (missing, longest) = (rng.random_range(0.0..0.3), rng.random_range(1..5));
        let Some(problem) = fleet(4, spread, energy, missing, seed) else { continue };
        let Some(plan) = planned(&problem) else { continue };
        let plan_found = handed_on(&problem, &plan, longest);
        let (found, bound) = (plan_found.objective(), plan_found.lower_bound);
        let best = best_of_all(&problem, &plan, longest);
        assert!(bound <= best + 1e-9, "{bound} is no lower bound: {best} exists");
        assert!(found >= best - 1e-9, "{found} is below the best of all, {best}");
        let gap = found / best - 1.0;
        fleets += 1;
        best_found += u32::from(gap < 1e-9);
        gaps += gap;
        worst = worst.max(gap);
    }
    let mean = gaps / f64::from(fleets);
    assert!(fleets > 380 && best_found * 100 > 98 * fleets, "{best_found} of {fleets}");
    assert!(mean < 1e-4 && worst < 0.02, "{mean} {worst}");
}
