//! How long planning takes, from a checked problem to a plan.

use std::ops::ControlFlow;

use divan::{Bencher, black_box};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stlf_method::energy::Ranges;
use stlf_planning::Device;
use stlf_planning::Plan;
use stlf_planning::bound::{Bound, BoundKind};
use stlf_planning::planner::{Method, Outcome, Settings, plan};
use stlf_planning::problem::{EnergyUnit, Links, Parts, Preset, Problem, Source};

fn main() {
    divan::main();
}

/// Half of the devices have labels; divergence is distance in the unit square. With a limit, each
/// device has links from that many others only.
fn fleet(devices: usize, bound: BoundKind, senders: Option<usize>) -> Problem {
    let mut rng = ChaCha8Rng::seed_from_u64(devices as u64);
    let places: Vec<(f64, f64)> =
        (0..devices).map(|_| (rng.random_range(0.0..1.0), rng.random_range(0.0..1.0))).collect();
    let divergence = |i: usize, j: usize| {
        let (dx, dy) = (places[i].0 - places[j].0, places[i].1 - places[j].1);
        (2.0 * dx.hypot(dy)).min(2.0)
    };
    let list: Vec<Device> = (0..devices)
        .map(|i| Device {
            name: format!("d{i}"),
            labeled: if i % 2 == 0 { rng.random_range(800..2400) } else { 0 },
            unlabeled: rng.random_range(100..1000),
            source_error: (i % 2 == 0).then(|| rng.random_range(0.04..0.45)),
        })
        .collect();
    let links = match senders {
        None => {
            let all = (0..devices * devices).map(|k| divergence(k / devices, k % devices));
            Links::from_rows(devices, all.collect(), Ranges::default().draw(devices, 1))
        }
        Some(senders) => {
            let mut list = Vec::with_capacity(devices * senders);
            for to in 0..devices {
                for step in 1..=senders {
                    let from = (to + step * devices / (senders + 1)) % devices;
                    list.push((from as u32, to as u32, divergence(from, to), 3.7));
                }
            }
            Links::from_list(devices, list)
        }
    };
    let mut weights = Preset::Balanced.weights();
    weights.source = 3.0;
    Problem::new(Parts {
        devices: list,
        source: Source::Measured {
            links,
            weights,
            bound: Bound::default().with(|s| s.kind = bound),
            energy_epsilon: 1e-3,
            energy_unit: EnergyUnit::MeanLink,
            disagreement: None,
        },
        pins: vec![None; devices],
        forbidden: Vec::new(),
        required: Vec::new(),
    })
    .expect("every field is in range")
}

fn planned(problem: &Problem, settings: &Settings) -> Box<Plan> {
    match plan(black_box(problem), settings, &mut |_| ControlFlow::Continue(())) {
        Outcome::Planned(plan) => plan,
        Outcome::Infeasible(reason) => panic!("{reason}"),
    }
}

#[divan::bench(args = [10, 100, 1_000])]
fn exact_paper_bound(bencher: Bencher<'_, '_>, devices: usize) {
    let problem = fleet(devices, BoundKind::Paper, None);
    bencher.bench_local(|| planned(&problem, &Settings::default()));
}

#[divan::bench(args = [10_000], sample_count = 10)]
fn exact_paper_bound_32_senders_to_one_percent(bencher: Bencher<'_, '_>, devices: usize) {
    let problem = fleet(devices, BoundKind::Paper, Some(32));
    let settings = Settings::default().within(0.01);
    bencher.bench_local(|| planned(&problem, &settings));
}

#[divan::bench(args = [10], sample_count = 20)]
fn exact_pooled_bound(bencher: Bencher<'_, '_>, devices: usize) {
    let problem = fleet(devices, BoundKind::Pooled, None);
    bencher.bench_local(|| planned(&problem, &Settings::default()));
}

#[divan::bench(args = [100], sample_count = 5)]
fn pooled_bound_to_one_percent(bencher: Bencher<'_, '_>, devices: usize) {
    let problem = fleet(devices, BoundKind::Pooled, None);
    let mut settings = Settings::default().within(0.01);
    settings.limits.nodes = 10_000;
    bencher.bench_local(|| planned(&problem, &settings));
}

#[divan::bench(args = [10], sample_count = 20)]
fn successive_one_iteration(bencher: Bencher<'_, '_>, devices: usize) {
    let problem = fleet(devices, BoundKind::Paper, None);
    let mut settings = Settings::default().by(Method::Successive);
    settings.successive.max_iterations = 1;
    bencher.bench_local(|| planned(&problem, &settings));
}
