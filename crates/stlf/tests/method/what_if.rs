//! What `explain` and `sweep` claim, checked by planning again on either side of every claim.

use std::ops::ControlFlow;

use proptest::prelude::*;
use stlf_formats::{LinkEnds, ProblemFile};
use stlf_planning::Device;
use stlf_planning::Problem;
use stlf_planning::Role;
use stlf_planning::bound::{Bound, BoundKind, Complexity};
use stlf_planning::diff::{Decisions, diff};
use stlf_planning::explain::{Alternative, Explanation, Impossible, Quantity, account, explain};
use stlf_planning::plan::{Plan, PlanLink, evaluate};
use stlf_planning::planner::{Limits, Outcome, Settings, optimum};
use stlf_planning::problem::{EnergyUnit, Link, Links, Model, Parts, Source, Weights};
use stlf_planning::sweep::{Sweep, sweep, sweep_at_most};

/// Small fleets in which roles, links and mixtures are all in question.
fn fleet() -> impl Strategy<Value = Problem> {
    (2usize..=5).prop_flat_map(|n| {
        let energies = prop_oneof![8 => 0.05..4.0f64, 1 => Just(0.0), 1 => Just(f64::NAN)];
        (
            prop::collection::vec((0u64..3, 1u64..2000, 0.0..1.0f64), n),
            prop::collection::vec(0.0..2.0f64, n * n),
            prop::collection::vec(energies, n * n),
            (0.2..2.0f64, 0.2..3.0f64, prop_oneof![Just(0.0), 0.001..0.5f64]),
            prop_oneof![Just(BoundKind::Paper), Just(BoundKind::Pooled)],
            prop_oneof![Just(EnergyUnit::Joules), Just(EnergyUnit::MeanLink)],
            prop_oneof![3 => Just(0.0), 1 => 0.0..0.1f64],
        )
            .prop_map(
                move |(devices, divergence, energy, weights, kind, energy_unit, rho)| {
                    let devices = devices
                        .into_iter()
                        .enumerate()
                        .map(|(i, (label, samples, error))| {
                            // The first device is always labeled, two of three of the others.
                            let labeled = if i == 0 || label > 0 { samples } else { 0 };
                            Device {
                                name: format!("d{i}"),
                                labeled,
                                unlabeled: 50,
                                source_error: (labeled > 0).then_some(error),
                            }
                        })
                        .collect();
                    let source = Source::Measured {
                        links: Links::from_rows(n, divergence, energy),
                        weights: Weights {
                            source: weights.0,
                            target: weights.1,
                            energy: weights.2,
                        },
                        bound: Bound::default().with(|s| {
                            s.kind = kind;
                            s.complexity = Complexity::Value(rho);
                        }),
                        energy_epsilon: 1e-3,
                        energy_unit,
                        disagreement: None,
                    };
                    let (forbidden, required) = (Vec::new(), Vec::new());
                    let parts = Parts { devices, source, pins: vec![None; n], forbidden, required };
                    Problem::new(parts).unwrap()
                },
            )
    })
}

fn planned(problem: &Problem) -> Option<Plan> {
    match optimum(problem) {
        Outcome::Planned(plan) => Some(*plan),
        Outcome::Infeasible(_) => None,
    }
}

fn explained(problem: &Problem, plan: &Plan, device: usize) -> Explanation {
    explain(problem, plan, device, &Limits::default(), &mut |_| ControlFlow::Continue(()))
}

fn swept(problem: &Problem, low: f64, high: f64) -> Sweep {
    let go_on = &mut |_: &_| ControlFlow::Continue(());
    sweep(problem, low..=high, &Settings::default(), go_on).unwrap()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-8 * a.abs().max(b.abs()).max(1e-9)
}

/// The optimum with one measurement moved to `value`.
fn moved(problem: &Problem, e: &Explanation, quantity: Quantity, value: f64) -> Plan {
    let Model::Measured(m) = problem.model() else { panic!("the fleets are measured") };
    let changed = match quantity {
        Quantity::SourceError => problem.with_source_error(e.device, value),
        _ => {
            let link = e.main_link.as_ref().unwrap().link;
            let now = m.links.get(link.from, link.to).unwrap();
            let link = match quantity {
                Quantity::Divergence => Link { divergence: value, ..now },
                _ => Link { energy: value, ..now },
            };
            problem.with_link(link, e.device)
        }
    };
    planned(&changed).unwrap()
}

/// The optimum of the problem as a file with something changed, read and planned anew.
fn anew(problem: &Problem, change: impl FnOnce(&mut ProblemFile)) -> Option<Plan> {
    let mut file = ProblemFile::from_problem(problem);
    change(&mut file);
    let again = file.into_problem(None).unwrap();
    // What was read says the same when it is written and read once more.
    assert_eq!(ProblemFile::from_problem(&again).into_problem(None).unwrap(), again);
    planned(&again)
}

fn set_energy(file: &mut ProblemFile, from: usize, to: usize, energy: f64) {
    let old = ProblemFile::clone(file).into_problem(None).unwrap();
    let Model::Measured(m) = old.model() else { panic!("the fleets are measured") };
    let link = Link { energy, ..m.links.get(from, to).unwrap() };
    *file = ProblemFile::from_problem(&old.with_link(link, to));
}

/// Two sources and a target at raw costs: opening 3 and 4, serving 5 and 7 (6 from 0 to 1).
fn raw() -> Problem {
    let none = f64::NAN;
    let device =
        |name: &str| Device { name: name.to_owned(), labeled: 0, unlabeled: 0, source_error: None };
    Problem::new(Parts {
        devices: ["a", "b", "c"].map(device).to_vec(),
        source: Source::Costs {
            source: vec![Some(3.0), Some(4.0), None],
            link: vec![none, 6.0, 5.0, 9.0, none, 7.0, none, none, none],
        },
        pins: vec![None; 3],
        forbidden: Vec::new(),
        required: Vec::new(),
    })
    .unwrap()
}

#[test]
fn raw_costs_flip_where_the_difference_is_made_up() {
    let problem = raw();
    let plan = planned(&problem).unwrap();
    assert_eq!(plan.roles, [Role::Source, Role::Source, Role::Target]);
    // b as a target takes 6 from a instead of its own 4.
    let flip = explained(&problem, &plan, 1).role_flip.unwrap();
    assert_eq!((flip.quantity, flip.now, flip.at), (Quantity::SourceCost, 4.0, Some(6.0)));
    // c takes 5 from a, or 7 from b.
    let main = explained(&problem, &plan, 2).main_link.unwrap();
    assert_eq!((main.link.from, main.flips[0].now, main.flips[0].at), (0, 5.0, Some(7.0)));
    let other = explained(&problem, &plan, 2).other_role;
    assert_eq!(other, Alternative::Impossible(Impossible::NoLabels));
}

#[test]
fn a_sweep_of_raw_costs_is_one_segment() {
    let sweep = swept(&raw(), 0.0, 10.0);
    assert_eq!((sweep.segments.len(), sweep.solves), (1, 2));
    assert_eq!((sweep.segments[0].from, sweep.segments[0].to), (0.0, 10.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn accounts_add_up_to_the_objective(problem in fleet()) {
        let Some(plan) = planned(&problem) else { return Ok(()) };
        let sum: f64 = (0..problem.len()).map(|i| account(&problem, &plan, i).total()).sum();
        prop_assert!(close(sum, plan.objective()), "{sum} against {}", plan.objective());
    }

    #[test]
    fn a_role_flips_exactly_where_explain_says(problem in fleet()) {
        let Some(plan) = planned(&problem) else { return Ok(()) };
        for device in 0..problem.len() {
            let e = explained(&problem, &plan, device);
            prop_assert!(e.proven);
            let Some(flip) = e.role_flip else {
                prop_assert!(matches!(e.other_role, Alternative::Impossible(_)));
                continue;
            };
            let role_at = |error: f64| moved(&problem, &e, flip.quantity, error).roles[device];
            let Some(at) = flip.at else {
                prop_assert_eq!((e.role, role_at(0.0)), (Role::Target, Role::Target));
                continue;
            };
            let step = 1e-6 * at.max(1.0);
            if at > step {
                prop_assert_eq!(role_at(at - step), Role::Source);
            }
            prop_assert_eq!(role_at(at + step), Role::Target);
            prop_assert_eq!(e.role == Role::Source, flip.now <= at + step);
        }
    }

    #[test]
    fn a_link_is_dropped_exactly_where_explain_says(problem in fleet()) {
        let Some(plan) = planned(&problem) else { return Ok(()) };
        for device in 0..problem.len() {
            let e = explained(&problem, &plan, device);
            let Some(main) = &e.main_link else { continue };
            let Alternative::Possible(rival) = &main.without else {
                prop_assert!(main.flips.is_empty());
                continue;
            };
            let without = plan.objective() + rival.extra;
            let Model::Measured(m) = problem.model() else { panic!("the fleets are measured") };
            for flip in &main.flips {
                let used = |plan: &Plan| {
                    plan.incoming(device).iter().any(|l| l.from == main.link.from)
                };
                let Some(at) = flip.at else {
                    prop_assert!(used(&moved(&problem, &e, flip.quantity, 1e6)));
                    continue;
                };
                prop_assert!(at >= flip.now * (1.0 - 1e-9), "{at} below {}", flip.now);
                let met = moved(&problem, &e, flip.quantity, at);
                // In mean links the other plan costs something else there, too.
                if flip.quantity != Quantity::Energy || m.energy_unit == EnergyUnit::Joules {
                    prop_assert!(close(met.objective(), without), "{} {without}", met.objective());
                }
                let step = match (flip.quantity, problem.bound_kind()) {
                    (Quantity::Energy, _) => 1e-7 * without / m.energy_cost(1.0),
                    (_, BoundKind::Paper) => 1e-7 * without / (0.5 * m.weights.target),
                    // The weight may fade to nothing, and the gain with its square.
                    (_, BoundKind::Pooled) => 1e-3 * at.max(1.0),
                };
                prop_assert!(!used(&moved(&problem, &e, flip.quantity, at + step)));
                prop_assert!(at < step || used(&moved(&problem, &e, flip.quantity, at - step)));
            }
        }
    }

    #[test]
    fn planning_anew_agrees_with_explain_in_every_unit(problem in fleet()) {
        let Some(plan) = planned(&problem) else { return Ok(()) };
        for device in 0..problem.len() {
            let e = explained(&problem, &plan, device);
            let Some(main) = &e.main_link else { continue };
            let (from, to) = (main.link.from, main.link.to);
            if let Alternative::Possible(rival) = &main.without {
                let ends = LinkEnds {
                    from: problem.name(from).to_owned(),
                    to: problem.name(to).to_owned(),
                };
                let best = anew(&problem, |file| file.forbidden_links.push(ends)).unwrap();
                prop_assert!(close(best.objective(), plan.objective() + rival.extra));
            }
            let Some(flip) = main.flips.iter().find(|f| f.quantity == Quantity::Energy) else {
                continue;
            };
            let uses = |energy: f64| {
                let used = |l: &PlanLink| l.from == from;
                let plan = anew(&problem, |file| set_energy(file, from, to, energy)).unwrap();
                plan.incoming(to).iter().any(used)
            };
            match flip.at {
                Some(at) if at > 1e-3 => {
                    prop_assert!(!uses(at * 1.01), "{at} J");
                    prop_assert!(uses(at * 0.99), "{at} J");
                }
                Some(_) => {}
                None => prop_assert!(uses(1e6)),
            }
        }
    }

    #[test]
    fn the_scale_of_the_weights_is_that_of_the_objective(problem in fleet(), power in -14i32..15) {
        let Some(plan) = planned(&problem) else { return Ok(()) };
        let scale = 10f64.powi(power);
        let scaled = anew(&problem, |file| {
            let weights = file.weights.as_mut().unwrap();
            for weight in [&mut weights.source, &mut weights.target, &mut weights.energy] {
                *weight = weight.map(|w| w * scale);
            }
        })
        .unwrap();
        prop_assert!(close(scaled.objective() / scale, plan.objective()));
        let same = evaluate(&problem, scaled.bound, &scaled.roles, &scaled.links, &[]).total();
        prop_assert!(close(same, plan.objective()));
    }

    #[test]
    fn links_that_no_plan_can_use_change_nothing(problem in fleet()) {
        let Some(plan) = planned(&problem) else { return Ok(()) };
        let unlabeled: Vec<usize> = (0..problem.len()).filter(|&i| !problem.eligible(i)).collect();
        let name = |i: usize| problem.name(i).to_owned();
        for from in unlabeled {
            for to in (0..problem.len()).filter(|&to| to != from) {
                let ends = LinkEnds { from: name(from), to: name(to) };
                let other = anew(&problem, |file| file.forbidden_links.push(ends)).unwrap();
                prop_assert_eq!(other.objective(), plan.objective());
                prop_assert_eq!((&other.roles, &other.links), (&plan.roles, &plan.links));
            }
        }
    }

    #[test]
    fn the_other_role_is_the_best_plan_with_that_role(problem in fleet()) {
        let Some(plan) = planned(&problem) else { return Ok(()) };
        for device in 0..problem.len() {
            let e = explained(&problem, &plan, device);
            let pinned = problem.clone().with_pin(device, e.role.opposite());
            match e.other_role {
                Alternative::Possible(rival) => {
                    let best = planned(&pinned).unwrap();
                    prop_assert!(rival.extra >= -1e-9 * plan.objective());
                    prop_assert!(close(best.objective(), plan.objective() + rival.extra));
                }
                Alternative::Impossible(Impossible::NoLabels) => {
                    prop_assert!(!pinned.eligible(device));
                }
                Alternative::Impossible(_) => prop_assert!(planned(&pinned).is_none()),
            }
        }
    }

    #[test]
    fn a_sweep_agrees_with_a_plan_at_every_weight(problem in fleet()) {
        if planned(&problem).is_none() {
            return Ok(());
        }
        let (low, high) = (1e-3, 1e3);
        let sweep = swept(&problem, low, high);
        prop_assert!(sweep.proven);
        let segments = &sweep.segments;
        prop_assert_eq!((segments[0].from, segments[segments.len() - 1].to), (low, high));
        for k in 0..=60 {
            let weight = low * (high / low).powf(f64::from(k) / 60.0);
            let best = planned(&problem.with_energy_weight(weight)).unwrap().objective();
            let on = segments.iter().find(|s| s.to >= weight).unwrap_or(&segments[segments.len() - 1]);
            prop_assert!(close(on.objective(weight), best), "{weight}: {} {best}", on.objective(weight));
        }
    }

    #[test]
    fn a_sweep_of_few_plans_says_so_and_is_never_better(problem in fleet()) {
        if planned(&problem).is_none() {
            return Ok(());
        }
        let whole = swept(&problem, 1e-3, 1e3);
        for most in [2, 3, 5, whole.solves] {
            let go_on = &mut |_: &_| ControlFlow::Continue(());
            let some =
                sweep_at_most(most, &problem, 1e-3..=1e3, &Settings::default(), go_on).unwrap();
            prop_assert!(some.solves <= most);
            prop_assert_eq!(some.proven, some.solves == whole.solves);
            let least = |sweep: &Sweep, weight: f64| {
                let costs = sweep.segments.iter().map(|s| s.objective(weight));
                costs.fold(f64::INFINITY, f64::min)
            };
            for weight in [1e-3, 0.1, 1.0, 1e3] {
                let (some, whole) = (least(&some, weight), least(&whole, weight));
                prop_assert!(some >= whole || close(some, whole));
                let is_end = weight == 1e-3 || weight == 1e3;
                prop_assert!(!is_end || close(some, whole), "{} {}", some, whole);
            }
        }
    }

    #[test]
    fn a_sweep_is_concave_and_trades_energy_for_error(problem in fleet()) {
        if planned(&problem).is_none() {
            return Ok(());
        }
        let sweep = swept(&problem, 1e-3, 1e3);
        prop_assert!(sweep.solves <= 2 * sweep.segments.len() + 1);
        for pair in sweep.segments.windows(2) {
            let (a, b) = (&pair[0], &pair[1]);
            prop_assert!(a.from < a.to && a.to == b.from && b.from < b.to);
            prop_assert!(close(a.objective(a.to), b.objective(b.from)));
            // The slope of the optimum, hence concave; joules differ from it by a factor only.
            prop_assert!(b.energy < a.energy && b.joules < a.joules);
            prop_assert!(b.error_bound > a.error_bound);
            prop_assert!((&a.roles, &a.links) != (&b.roles, &b.links));
        }
    }

    #[test]
    fn a_diff_mirrors_and_nothing_differs_from_itself(a in fleet(), b in fleet()) {
        let (Some(p), Some(q)) = (planned(&a), planned(&b)) else { return Ok(()) };
        let decisions = |plan: Plan| Decisions {
            names: (0..plan.roles.len()).map(|i| format!("d{i}")).collect(),
            roles: plan.roles,
            handovers: plan.handovers,
            links: plan.links,
            terms: plan.terms,
        };
        let (p, q) = (decisions(p), decisions(q));
        prop_assert!(diff(&p, &p, 0.0).same_plan());
        let (there, back) = (diff(&p, &q, 0.01), diff(&q, &p, 0.01));
        prop_assert_eq!(&there.added_devices, &back.removed_devices);
        prop_assert_eq!(&there.removed_devices, &back.added_devices);
        prop_assert_eq!((there.before, there.after), (back.after, back.before));
        prop_assert_eq!(there.roles.len(), back.roles.len());
        for (x, y) in there.roles.iter().zip(&back.roles) {
            prop_assert_eq!((&x.device, x.before, x.after), (&y.device, y.after, y.before));
        }
        prop_assert_eq!(there.links.len(), back.links.len());
        for (x, y) in there.links.iter().zip(&back.links) {
            prop_assert_eq!((&x.from, &x.to), (&y.from, &y.to));
            prop_assert_eq!((x.before, x.after), (y.after, y.before));
        }
    }
}
