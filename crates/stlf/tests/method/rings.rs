//! Rings of sources, against all partitions of small fleets and against the mixture that they stand for.

use std::ops::ControlFlow;

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stlf_planning::bound::{Bound, BoundKind, Share};
use stlf_planning::explain::account;
use stlf_planning::plan::{
    Handover, Plan, PlanLink, check_handovers, evaluate, is_on_ring, route, times,
};
use stlf_planning::planner::handover::{Forms, with_handovers};
use stlf_planning::planner::{Limits, Outcome, optimum};
use stlf_planning::problem::{EnergyUnit, Links, Model, Parts, Source, Weights};
use stlf_planning::{Device, Problem, Role};

/// Rings alone, without chains or trees.
const RINGS: Forms = Forms { longest: 0, ring: 32 };

fn problem(devices: Vec<Device>, links: Links, energy: f64) -> Option<Problem> {
    let pins = vec![None; devices.len()];
    let source = Source::Measured {
        links,
        weights: Weights { source: 1.0, target: 1.0, energy },
        bound: Bound::default().with(|s| s.kind = BoundKind::Pooled),
        energy_epsilon: 1e-3,
        energy_unit: EnergyUnit::MeanLink,
        disagreement: None,
    };
    let (forbidden, required) = (Vec::new(), Vec::new());
    Problem::new(Parts { devices, source, pins, forbidden, required }).ok()
}

/// So many devices with few labels and as many without; divergences around `apart`.
fn fleet(labeled: usize, apart: f64, energy: f64, missing: f64, seed: u64) -> Option<Problem> {
    let n = 2 * labeled;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let devices = (0..n).map(|i| Device {
        name: format!("d{i}"),
        labeled: if i < labeled { rng.random_range(50..400) } else { 0 },
        unlabeled: rng.random_range(50..200),
        source_error: (i < labeled).then(|| rng.random_range(0.0..0.2)),
    });
    let devices: Vec<Device> = devices.collect();
    let divergence = (0..n * n).map(|_| apart * rng.random_range(0.5..1.0)).collect();
    let energies = (0..n * n).map(|_| match rng.random_bool(missing) {
        true => f64::NAN,
        false => rng.random_range(1.0..2.0),
    });
    problem(devices, Links::from_rows(n, divergence, energies.collect()), energy)
}

fn planned(problem: &Problem) -> Option<Plan> {
    match optimum(problem) {
        Outcome::Planned(plan) => Some(*plan),
        Outcome::Infeasible(_) => None,
    }
}

fn found(problem: &Problem, plan: &Plan, forms: Forms) -> Plan {
    let go_on = &mut |_: &_| ControlFlow::Continue(());
    with_handovers(problem, plan.clone(), forms, &Limits::default(), go_on)
}

/// The objective of rings, written down once more: a target of a ring has the pooled bound of the mixture of its sources by their
/// samples, every hand-over counts twice but the one that closes the ring.
fn objective(problem: &Problem, roles: &[Role], handovers: &[Handover], links: &[PlanLink]) -> f64 {
    let Model::Measured(m) = problem.model() else { unreachable!() };
    let samples = |i: usize| m.devices[i].samples() as f64;
    let hop = |from: usize, to: usize| m.energy_cost(m.links.get(from, to).unwrap().energy);
    let sources = (0..roles.len()).filter(|&i| roles[i] == Role::Source);
    let mut cost: f64 = sources.map(|i| problem.source_cost(i).unwrap()).sum();
    for h in handovers {
        let closes = links.iter().any(|link| link.from == h.from);
        cost += if closes { 1.0 } else { 2.0 } * hop(h.from, h.to);
    }
    for column in links.chunk_by(|a, b| a.to == b.to) {
        let mut shares: Vec<Share> = Vec::new();
        for link in column {
            cost += hop(link.from, link.to);
            let mut members = vec![link.from];
            while let Some(h) = handovers.iter().find(|h| h.to == members[members.len() - 1])
                && h.from != link.from
            {
                members.push(h.from);
            }
            let all: f64 = members.iter().map(|&i| samples(i)).sum();
            shares.extend(members.iter().map(|&i| Share {
                weight: link.weight * samples(i) / all,
                source_error: m.devices[i].source_error.unwrap(),
                divergence: m.links.get(i, link.to).unwrap().divergence,
                samples: samples(i),
            }));
        }
        cost += m.weights.target * m.bound.pooled_target(&shares, samples(column[0].to));
    }
    cost
}

#[test]
fn sources_that_are_all_far_from_everybody_go_round_together() {
    let n = 12;
    let devices = (0..n).map(|i| Device {
        name: format!("d{i}"),
        labeled: if i < 6 { 100 } else { 0 },
        unlabeled: 10,
        source_error: (i < 6).then_some(0.1),
    });
    let links = Links::from_rows(n, vec![1.8; n * n], vec![1.0; n * n]);
    let problem = problem(devices.collect(), links, 0.05).unwrap();
    let plan = planned(&problem).unwrap();
    // A chain would forget; nothing is handed on in a forest.
    assert!(found(&problem, &plan, Forms { ring: 0, ..Forms::ALL }).handovers.is_empty());
    let found = found(&problem, &plan, Forms::ALL);
    assert_eq!(found.handovers.len(), 6);
    let last = found.links[0].from;
    assert!(found.links.iter().all(|link| link.from == last && link.weight == 1.0));
    assert!((0..6).all(|i| is_on_ring(&found.handovers, i)));
    assert_eq!((found.route(last).len(), found.models_sent()), (6, 11 + 6));
    // The bound is that of the mixture of all, at 17 links instead of 36.
    let all =
        (6..12).flat_map(|to| (0..6).map(move |from| PlanLink { from, to, weight: 1.0 / 6.0 }));
    let mixed = evaluate(&problem, BoundKind::Pooled, &plan.roles, &all.collect::<Vec<_>>(), &[]);
    assert!((mixed.target - found.terms.target).abs() < 1e-9);
    assert!((mixed.energy * 17.0 / 36.0 - found.terms.energy).abs() < 1e-9);
    assert!((found.joules(&problem).unwrap() - 17.0).abs() < 1e-9);
    let handovers = found.handovers.iter().map(|&h| found.handover_joules(&problem, h).unwrap());
    assert!((handovers.sum::<f64>() - 11.0).abs() < 1e-9);
}

#[test]
fn two_worlds_have_two_rings_and_a_near_source_none() {
    // Sources 0 to 3 and targets 8 to 11 are alike, and 4 to 7 with 12 to 15; the worlds are far apart.
    let n = 16;
    let world = |i: usize| i % 8 / 4;
    let devices = (0..n).map(|i| Device {
        name: format!("d{i}"),
        labeled: if i < 8 { 60 } else { 0 },
        unlabeled: 10,
        source_error: (i < 8).then_some(0.05),
    });
    let apart = |i: usize| if world(i / n) == world(i % n) { 0.5 } else { 2.0 };
    let links = Links::from_rows(n, (0..n * n).map(apart).collect(), vec![1.0; n * n]);
    let problem = problem(devices.collect(), links, 0.02).unwrap();
    let found = found(&problem, &planned(&problem).unwrap(), RINGS);
    for link in &found.links {
        let route = found.route(link.from);
        assert_eq!(route.len(), 4, "{found:?}");
        assert!(route.iter().all(|&i| world(i) == world(link.to)), "{found:?}");
    }
}

#[test]
fn a_ring_is_refused_that_nobody_could_carry_out() {
    let h = |from, to| Handover { from, to };
    let link = |from, to| PlanLink { from, to, weight: 1.0 };
    let ring = [h(2, 0), h(0, 1), h(1, 2)];
    assert_eq!(check_handovers(&ring, &[link(2, 5)]), Ok(()));
    assert_eq!(times(&ring, &[link(2, 5)], h(2, 0)), 1);
    assert_eq!(times(&ring, &[link(2, 5)], h(0, 1)), 2);
    assert_eq!(route(&ring, 2), [0, 1, 2]);
    // Nobody sends, two send, the ring hands on.
    assert!(check_handovers(&ring, &[]).is_err());
    assert!(check_handovers(&ring, &[link(2, 5), link(1, 6)]).is_err());
    let tail = [h(2, 0), h(0, 1), h(1, 2), h(2, 3)];
    assert!(check_handovers(&tail, &[link(2, 5), link(3, 6)]).is_err());
    assert_eq!(check_handovers(&[h(0, 1), h(1, 2)], &[]), Ok(()));
}

proptest! {
    #[test]
    fn what_is_found_can_be_carried_out_and_costs_what_it_says(
        labeled in 1..12usize, apart in 0.0..2.0f64, energy in prop_oneof![Just(0.0), 0.001..0.2f64], missing in 0.0..0.3f64,
        seed in 0..u64::MAX,
    ) {
        let Some(problem) = fleet(labeled, apart, energy, missing, seed) else { return Ok(()) };
        let Some(plan) = planned(&problem) else { return Ok(()) };
        let found = found(&problem, &plan, RINGS);
        prop_assert_eq!(check_handovers(&found.handovers, &found.links), Ok(()));
        let again = objective(&problem, &found.roles, &found.handovers, &found.links);
        prop_assert!((again - found.objective()).abs() < 1e-9, "{again} {:?}", found.terms);
        prop_assert!(found.objective() <= plan.objective() + 1e-9);
        prop_assert!(found.lower_bound <= found.objective() + 1e-9);
        let accounts: f64 = (0..problem.len()).map(|i| account(&problem, &found, i).total()).sum();
        prop_assert!((accounts - found.objective()).abs() < 1e-9);
    }
}

/// All ways to put four sources on rings: permutations, cut into pieces of two or more and single ones.
fn best_of_all(problem: &Problem, plan: &Plan) -> f64 {
    let sources: Vec<usize> = plan.with_role(Role::Source).collect();
    let mut best = plan.objective();
    let mut orders: Vec<Vec<usize>> = vec![Vec::new()];
    for &source in &sources {
        orders = orders
            .iter()
            .flat_map(|order| {
                (0..=order.len()).map(move |at| {
                    let mut order = order.clone();
                    order.insert(at, source);
                    order
                })
            })
            .collect();
    }
    for order in &orders {
        for cuts in 0..1u32 << (order.len() - 1) {
            let mut pieces: Vec<Vec<usize>> = vec![Vec::new()];
            for (at, &source) in order.iter().enumerate() {
                if at > 0 && cuts >> (at - 1) & 1 == 1 {
                    pieces.push(Vec::new());
                }
                pieces.last_mut().unwrap().push(source);
            }
            let rings: Vec<&Vec<usize>> = pieces.iter().filter(|piece| piece.len() > 1).collect();
            let hops = |ring: &&Vec<usize>| -> Vec<Handover> {
                let next = ring.iter().cycle().skip(1);
                ring.iter().zip(next).map(|(&from, &to)| Handover { from, to }).collect()
            };
            let mut handovers: Vec<Handover> = rings.iter().flat_map(hops).collect();
            handovers.sort_unstable_by_key(|h| h.to);
            let senders: Vec<usize> = pieces.iter().map(|piece| piece[piece.len() - 1]).collect();
            let single = |to: usize| {
                let cost = |&from: &usize| {
                    let link = [PlanLink { from, to, weight: 1.0 }];
                    evaluate(problem, BoundKind::Pooled, &plan.roles, &link, &handovers).total()
                };
                senders.iter().copied().min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap()
            };
            let links: Vec<PlanLink> = (plan.with_role(Role::Target))
                .map(|to| PlanLink { from: single(to), to, weight: 1.0 })
                .collect();
            if check_handovers(&handovers, &links).is_ok() {
                let terms = evaluate(problem, BoundKind::Pooled, &plan.roles, &links, &handovers);
                best = best.min(terms.total());
            }
        }
    }
    best
}

#[test]
fn mostly_no_rings_are_better_and_never_by_much() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let (mut best, mut tried) = (0, 0);
    for seed in 0..300 {
        let (apart, energy) = (rng.random_range(0.1..2.0), rng.random_range(0.0..0.1));
        let Some(problem) = fleet(4, apart, energy, 0.0, seed) else { continue };
        let plan = planned(&problem).unwrap();
        let (ours, least) =
            (found(&problem, &plan, RINGS).objective(), best_of_all(&problem, &plan));
        assert!(ours <= 1.02 * least, "{ours} {least}");
        tried += 1;
        best += usize::from(ours <= least + 1e-9);
    }
    println!("{best} of {tried} fleets have no better rings");
    assert!(best * 10 >= tried * 8, "{best} of {tried}");
}
