//! How exact facility location grows with its size.

use std::ops::ControlFlow;

use divan::{Bencher, black_box};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stlf_optim::facility::{Candidate, Instance, Opening, solve};
use stlf_optim::status::{Limits, Status};

fn main() {
    divan::main();
}

/// Every device is a client and may open; it serves itself for nothing and others by distance in
/// the unit square. With a limit, each client has that many candidates, spread over all devices.
fn instance(devices: usize, limit: Option<usize>) -> Instance {
    let mut rng = ChaCha8Rng::seed_from_u64(devices as u64);
    let places: Vec<(f64, f64)> =
        (0..devices).map(|_| (rng.random_range(0.0..1.0), rng.random_range(0.0..1.0))).collect();
    let opening = (0..devices).map(|_| Opening::May(rng.random_range(1.0..2.0))).collect();
    let cost = |i: usize, j: usize| {
        let (dx, dy) = (places[i].0 - places[j].0, places[i].1 - places[j].1);
        if i == j { 0.0 } else { 0.2 + dx.hypot(dy) }
    };
    let candidates = |j: usize, list: &mut Vec<Candidate>| {
        let step = limit.map_or(1, |limit| devices / limit);
        let others = (0..devices).step_by(step).map(|k| (j + k) % devices);
        list.extend(others.map(|i| Candidate { facility: i as u32, cost: cost(i, j) }));
    };
    Instance::new(opening, devices, candidates).expect("costs are finite and everyone is served")
}

#[divan::bench(args = [10, 30, 100, 300, 1_000])]
fn dense_to_the_proof(bencher: Bencher<'_, '_>, devices: usize) {
    let instance = instance(devices, None);
    bencher.bench_local(|| {
        let solution =
            solve(black_box(&instance), &Limits::default(), &mut |_| ControlFlow::Continue(()));
        assert_eq!(solution.status, Status::Optimal);
        solution.objective
    });
}

/// Candidates all over the place leave a linear relaxation a few percent below the optimum, so
/// only the root is done.
#[divan::bench(args = [1_000, 10_000], sample_count = 10)]
fn sparse_root(bencher: Bencher<'_, '_>, devices: usize) {
    let instance = instance(devices, Some(32));
    let limits = Limits { gap: 0.01, nodes: 1 };
    bencher.bench_local(|| {
        solve(black_box(&instance), &limits, &mut |_| ControlFlow::Continue(())).objective
    });
}

/// Devices along a ring with their 32 nearest as candidates.
fn neighbours(devices: usize) -> Instance {
    let mut rng = ChaCha8Rng::seed_from_u64(devices as u64);
    let shift: Vec<f64> = (0..devices).map(|_| rng.random_range(0.0..4.0)).collect();
    let opening = (0..devices).map(|_| Opening::May(rng.random_range(1.0..2.0))).collect();
    let candidates = |j: usize, list: &mut Vec<Candidate>| {
        list.push(Candidate { facility: j as u32, cost: 0.0 });
        for k in (0..=32).filter(|&k| k != 16) {
            let i = (j + devices + k - 16) % devices;
            let away = (k as f64 - 16.0 + shift[i] - shift[j]).abs();
            list.push(Candidate { facility: i as u32, cost: 0.2 + 0.05 * away });
        }
    };
    Instance::new(opening, devices, candidates).expect("costs are finite and everyone is served")
}

#[divan::bench(args = [10_000, 100_000, 1_000_000], sample_count = 3)]
fn nearest_to_one_percent(bencher: Bencher<'_, '_>, devices: usize) {
    let instance = neighbours(devices);
    let limits = Limits { gap: 0.01, ..Limits::default() };
    bencher.bench_local(|| {
        let solution = solve(black_box(&instance), &limits, &mut |_| ControlFlow::Continue(()));
        assert!(solution.lower_bound >= 0.99 * solution.objective);
        solution.objective
    });
}
