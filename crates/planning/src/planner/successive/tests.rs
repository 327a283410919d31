#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::program::Relaxation;
use super::*;
use crate::device::Role;

/// The paper's network (spec §8): ten devices, the first five labeled; φ = (1, 5, 1) and ρ by Massart.
struct Network {
    source: Vec<Option<f64>>,
    must_be_source: Vec<bool>,
    links: Vec<Vec<Link>>,
    weights: Weights,
}

const DEVICES: usize = 10;
const LABELED: usize = 5;

impl Network {
    fn new(
        errors: [f64; LABELED],
        divergence: impl Fn(usize, usize) -> f64,
        mut energy: impl FnMut(usize, usize) -> f64,
    ) -> Self {
        let rho = (2.0 * 2f64.ln()).sqrt();
        let sampling = |device: usize| {
            let samples = if device < LABELED { 1800.0 } else { 1000.0 };
            ((2.0 / 1e-3f64).ln() / (2.0 * samples)).sqrt()
        };
        let source = (0..DEVICES).map(|i| errors.get(i).map(|e| e + 2.0 * rho + 3.0 * sampling(i)));
        let mut link = |i: usize, j: usize| Link {
            from: i,
            error: errors[i]
                + 10.0 * rho
                + 0.5 * divergence(i, j)
                + 6.0 * (sampling(i) + sampling(j)),
            energy: energy(i, j),
        };
        let links =
            (0..DEVICES).map(|j| (0..LABELED).filter(|&i| i != j).map(|i| link(i, j)).collect());
        Self {
            links: links.collect(),
            source: source.collect(),
            must_be_source: vec![false; DEVICES],
            weights: Weights { source: 1.0, target: 5.0, energy: 1.0 },
        }
    }

    fn random(seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let errors = [(); LABELED].map(|()| random.random_range(0.0..0.6));
        let divergences: Vec<f64> =
            (0..DEVICES * DEVICES).map(|_| random.random_range(0.0..2.0)).collect();
        let divergence = |i: usize, j: usize| divergences[i.min(j) * DEVICES + i.max(j)];
        Self::new(errors, divergence, |_, _| random.random_range(2.4..5.0))
    }

    fn instance(&self) -> Instance<'_> {
        Instance {
            source: &self.source,
            must_be_source: &self.must_be_source,
            links: &self.links,
            weights: self.weights,
            energy_epsilon: 1e-3,
            disagreement: None,
        }
    }
}

fn run(instance: &Instance<'_>, settings: &Settings) -> Outcome {
    let mut heard = Vec::new();
    let outcome = solve(instance, settings, &mut |iteration| {
        heard.push(*iteration);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(outcome.iterations + 1, outcome.trace.len());
    assert_eq!(heard.len(), outcome.iterations);
    for (iteration, objective) in heard.iter().zip(&outcome.trace[1..]) {
        assert_eq!(iteration.objective, *objective);
    }
    outcome
}

fn assert_descends_to_a_feasible_point(instance: &Instance<'_>, outcome: &Outcome) {
    assert!(outcome.trace.windows(2).all(|pair| pair[1] <= pair[0]), "{:?}", outcome.trace);
    assert_eq!(outcome.objective, outcome.trace[outcome.iterations]);
    assert!(outcome.relaxed <= outcome.objective);
    for (j, (links, alpha)) in instance.links.iter().zip(&outcome.alpha).enumerate() {
        let sum: f64 = alpha.iter().sum();
        assert!((sum - outcome.psi[j]).abs() < 1.1e-2, "column {j} is {alpha:?}");
        for (link, alpha) in links.iter().zip(alpha) {
            assert!(alpha + outcome.psi[link.from] <= 1.0 + 1e-9 && *alpha >= 0.0);
        }
    }
}

#[test]
fn the_objective_never_rises() {
    for seed in 0..5 {
        let network = Network::random(seed);
        for doublings in [0, 10] {
            for target_term in [TargetTerm::Tight, TargetTerm::Paper] {
                let settings =
                    Settings { doublings, target_term, max_iterations: 20, ..Settings::default() };
                let outcome = run(&network.instance(), &settings);
                assert_descends_to_a_feasible_point(&network.instance(), &outcome);
                assert!(outcome.objective < 0.9 * outcome.trace[0]);
            }
        }
    }
}

#[test]
fn doubling_saves_most_iterations() {
    let network = Network::random(1);
    let run = |doublings| run(&network.instance(), &Settings { doublings, ..Settings::default() });
    let (plain, doubled) = (run(0), run(10));
    assert_eq!(doubled.stop, Stop::Converged);
    assert!(4 * doubled.iterations < plain.iterations, "{doubled:?}");
}

#[test]
fn uniform_divergences_share_every_target_equally() {
    let network = Network::new([0.2; LABELED], |_, _| 1.0, |_, _| 3.5);
    let outcome = run(&network.instance(), &Settings::default());
    assert_eq!(outcome.stop, Stop::Converged);
    let rounded = round(&network.instance(), &outcome, 0.01);
    for device in 0..DEVICES {
        if device < LABELED {
            assert_eq!(rounded.roles[device], Role::Source);
            continue;
        }
        assert_eq!(rounded.roles[device], Role::Target);
        for alpha in &rounded.alpha[device] {
            assert!((alpha - 0.2).abs() < 1e-3, "{:?}", rounded.alpha[device]);
        }
    }
}

#[test]
fn one_perfect_device_serves_every_target() {
    let perfect = 2;
    let divergence = |i, j| {
        if i == perfect || j == perfect { 0.0 } else { 2.0 }
    };
    let network = Network::new([0.2; LABELED], divergence, |_, _| 3.5);
    let outcome = run(&network.instance(), &Settings::default());
    let rounded = round(&network.instance(), &outcome, 0.01);
    for device in LABELED..DEVICES {
        for (link, alpha) in network.links[device].iter().zip(&rounded.alpha[device]) {
            assert_eq!(*alpha, if link.from == perfect { 1.0 } else { 0.0 });
        }
    }
}

#[test]
fn a_labeled_device_with_a_huge_error_becomes_a_target() {
    // Being a target costs 10 ρ φ^T ≈ 59 and more, so only an error of 80 makes a device give up its role.
    for (third, role) in [(0.45, Role::Source), (80.0, Role::Target)] {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let energy = |_, _| random.random_range(2.4..5.0);
        let network = Network::new([0.04, 0.27, third, 0.09, 0.45], |_, _| 1.0, energy);
        let outcome = run(&network.instance(), &Settings::default());
        assert_eq!(outcome.psi[2] >= 0.5, role == Role::Target, "{:?}", outcome.psi);
        let rounded = round(&network.instance(), &outcome, 0.01);
        assert_eq!(rounded.roles[2], role);
        assert!([0, 1, 3, 4].iter().all(|&i| rounded.roles[i] == Role::Source));
    }
}

/// Why the paper's term is not the default: five devices that are a fifth of a source each serve everybody
/// at a fifth of the error.
#[test]
fn the_papers_target_term_has_a_minimum_where_nobody_is_a_source() {
    let network = Network::new([0.2; LABELED], |_, _| 1.0, |_, _| 3.5);
    let paper = Settings { target_term: TargetTerm::Paper, ..Settings::default() };
    let outcome = run(&network.instance(), &paper);
    assert!(outcome.psi.iter().all(|&psi| psi > 0.5), "{:?}", outcome.psi);
    let near = Settings { start: 0.01, ..paper };
    let outcome = run(&network.instance(), &near);
    assert!(outcome.psi[..LABELED].iter().all(|&psi| psi < 0.5), "{:?}", outcome.psi);
}

#[test]
fn the_two_target_terms_agree_where_roles_are_whole() {
    let network = Network::random(7);
    let disagreement = |_: usize, k: usize, i: usize| 0.1 * (1 + k + i) as f64;
    let instance = Instance { disagreement: Some(&disagreement), ..network.instance() };
    let psi = |i| if i == 0 || i == 3 { 0.0 } else { 1.0 };
    let alpha = instance.links.iter().enumerate().map(|(j, links)| {
        let weight = |link: &Link| match link.from {
            0 => 0.3 * psi(j),
            3 => 0.7 * psi(j),
            _ => 0.0,
        };
        links.iter().map(weight).collect()
    });
    let plan = Iterate { psi: (0..DEVICES).map(psi).collect(), alpha: alpha.collect() };
    let [tight, paper] = [TargetTerm::Tight, TargetTerm::Paper].map(|target_term| {
        let settings = Settings { target_term, ..Settings::default() };
        Relaxation::new(&instance, &settings).unwrap().terms(&plan)
    });
    assert!((tight - paper).abs() < 1e-9 * tight);
}

#[test]
fn noise_only_adds_and_none_adds_nothing() {
    let network = Network::random(4);
    for (target_term, start) in [(TargetTerm::Tight, 0.5), (TargetTerm::Paper, 0.01)] {
        let settings = Settings { target_term, start, max_iterations: 30, ..Settings::default() };
        let without = run(&network.instance(), &settings);
        let zero = |_: usize, _: usize, _: usize| 0.0;
        let silent = Instance { disagreement: Some(&zero), ..network.instance() };
        assert_eq!(run(&silent, &settings).trace, without.trace);
        let noise = |_: usize, k: usize, i: usize| 0.1 * (1 + k + i) as f64;
        let noisy = Instance { disagreement: Some(&noise), ..network.instance() };
        let with = run(&noisy, &settings);
        assert_descends_to_a_feasible_point(&noisy, &with);
        assert!(with.trace[0] > without.trace[0]);
    }
}

#[test]
fn fixed_roles_stay_fixed() {
    let mut network = Network::random(5);
    network.source[1] = None;
    network.links.iter_mut().for_each(|links| links.retain(|link| link.from != 1));
    network.must_be_source[2] = true;
    network.source[2] = Some(200.0);
    let outcome = run(&network.instance(), &Settings::default());
    assert_descends_to_a_feasible_point(&network.instance(), &outcome);
    assert_eq!(outcome.psi[1], 1.0);
    assert!(outcome.psi[2] < 1e-5);
    assert!(outcome.alpha[2].iter().all(|&alpha| alpha == 0.0));
    let rounded = round(&network.instance(), &outcome, 0.01);
    assert_eq!(rounded.roles[1..3], [Role::Target, Role::Source]);
}

#[test]
fn a_receiver_with_one_sender_makes_it_a_source() {
    let mut network = Network::random(6);
    network.source[4] = Some(500.0);
    network.links[9].retain(|link| link.from == 4);
    let outcome = run(&network.instance(), &Settings::default());
    assert_descends_to_a_feasible_point(&network.instance(), &outcome);
    assert!(outcome.psi[4] < 0.02);
}

#[test]
fn nothing_to_decide_converges_at_once() {
    let instance = Instance {
        source: &[Some(1.0), Some(2.0)],
        must_be_source: &[true, false],
        links: &[vec![], vec![]],
        weights: Weights { source: 1.0, target: 1.0, energy: 1.0 },
        energy_epsilon: 1e-3,
        disagreement: None,
    };
    let outcome = run(&instance, &Settings::default());
    assert_eq!((outcome.stop, outcome.iterations), (Stop::Converged, 0));
    assert!((outcome.relaxed - 3.0).abs() < 1e-5);
}

#[test]
fn terms_that_cost_nothing_need_no_variables() {
    let mut network = Network::random(8);
    network.weights.energy = 0.0;
    network.source[0] = Some(0.0);
    network.links[7][2].error = 0.0;
    network.links[7][2].energy = 0.0;
    for target_term in [TargetTerm::Tight, TargetTerm::Paper] {
        let settings = Settings { target_term, ..Settings::default() };
        let outcome = run(&network.instance(), &settings);
        assert_descends_to_a_feasible_point(&network.instance(), &outcome);
    }
}

#[test]
fn a_target_without_links_is_named() {
    let mut network = Network::random(9);
    network.links[8].clear();
    let outcome =
        solve(&network.instance(), &Settings::default(), &mut |_| ControlFlow::Continue(()));
    assert_eq!(outcome.unwrap().stop, Stop::Unreachable(8));
}

#[test]
fn the_observer_and_the_limit_end_the_iterations() {
    let network = Network::random(2);
    let outcome = solve(&network.instance(), &Settings::default(), &mut |iteration| {
        if iteration.index == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .unwrap();
    assert_eq!((outcome.stop, outcome.iterations), (Stop::Observer, 2));
    let settings = Settings { max_iterations: 3, ..Settings::default() };
    let outcome = run(&network.instance(), &settings);
    assert_eq!((outcome.stop, outcome.iterations), (Stop::IterationLimit, 3));
}

#[test]
fn bad_numbers_are_refused() {
    for bad in [f64::INFINITY, f64::NAN, -1.0] {
        let mut network = Network::random(10);
        network.links[6][1].energy = bad;
        let refused =
            solve(&network.instance(), &Settings::default(), &mut |_| ControlFlow::Continue(()));
        assert!(matches!(refused, Err(GpError::CoefficientNotPositive { .. })));
    }
}

/// Two devices that may be sources (0, 1) and one that may not (2), with links from both to everyone else.
fn rounded(psi: [f64; 3], alpha: [Vec<f64>; 3], must_be_source: [bool; 3]) -> Rounded {
    let link = |from, error| Link { from, error, energy: 1.0 };
    let instance = Instance {
        source: &[Some(1.0), Some(1.0), None],
        must_be_source: &must_be_source,
        links: &[vec![link(1, 2.0)], vec![link(0, 2.0)], vec![link(0, 3.0), link(1, 2.0)]],
        weights: Weights { source: 1.0, target: 1.0, energy: 1.0 },
        energy_epsilon: 1e-3,
        disagreement: None,
    };
    let relaxed = Outcome {
        psi: psi.to_vec(),
        alpha: alpha.to_vec(),
        objective: 0.0,
        relaxed: 0.0,
        trace: vec![0.0],
        stop: Stop::Converged,
        iterations: 0,
    };
    round(&instance, &relaxed, 0.01)
}

#[test]
fn rounding_keeps_sources_and_renormalises_columns() {
    use Role::{Source, Target};
    let plain = rounded([0.1, 0.4, 1.0], [vec![0.1], vec![0.4], vec![0.375, 0.125]], [false; 3]);
    assert_eq!(plain.roles, [Source, Source, Target]);
    assert_eq!(plain.alpha, [vec![0.0], vec![0.0], vec![0.75, 0.25]]);

    let small = rounded([0.1, 0.4, 1.0], [vec![0.0], vec![0.0], vec![0.9, 0.009]], [false; 3]);
    assert_eq!(small.alpha[2], [1.0, 0.0]);

    let role = rounded([0.1, 0.5, 1.0], [vec![0.1], vec![0.4], vec![0.6, 0.2]], [false; 3]);
    assert_eq!(role.roles, [Source, Target, Target]);
    assert_eq!(role.alpha, [vec![0.0], vec![1.0], vec![1.0, 0.0]]);
}

#[test]
fn rounding_leaves_no_target_without_a_source() {
    use Role::{Source, Target};
    let column = || [vec![0.5], vec![0.5], vec![0.5, 0.5]];
    let nobody = rounded([0.8, 0.7, 1.0], column(), [false; 3]);
    assert_eq!(nobody.roles, [Target, Source, Target]);
    assert_eq!(nobody.alpha, [vec![1.0], vec![0.0], vec![0.0, 1.0]]);

    let pinned = rounded([0.8, 0.7, 1.0], column(), [true, false, false]);
    assert_eq!(pinned.roles, [Source, Target, Target]);

    let weightless = rounded([0.1, 0.1, 1.0], [vec![0.0], vec![0.0], vec![0.0, 0.0]], [false; 3]);
    assert_eq!(weightless.alpha[2], [0.0, 1.0], "of equal weights, the least error");
}
