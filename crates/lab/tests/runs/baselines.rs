//! What every method promises, on fleets with missing links, pins and few labels.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stlf_data::Shape;
use stlf_lab::baselines::fada::{DeviceData, Fleet, Settings};
use stlf_lab::baselines::{Assignment, Context};
use stlf_learn::{Examples, Layer, Spec};
use stlf_method::method::Method;
use stlf_planning::Device;
use stlf_planning::Error;
use stlf_planning::Problem;
use stlf_planning::Role;
use stlf_planning::bound::{Bound, BoundKind};
use stlf_planning::plan::PlanLink;
use stlf_planning::problem::{EnergyUnit, Links, Parts, Source, Weights};

/// A fleet of `n` whose first `labeled` devices have labels; each link is missing with probability `missing`.
fn problem(n: usize, labeled: usize, missing: f64, pins: Vec<Option<Role>>, seed: u64) -> Problem {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let devices: Vec<Device> = (0..n)
        .map(|i| Device {
            name: format!("d{i}"),
            labeled: if i < labeled { 100 * (i as u64 + 1) } else { 0 },
            unlabeled: 50,
            source_error: (i < labeled).then_some(0.1),
        })
        .collect();
    let energy = (0..n * n)
        .map(|at| {
            // Everybody keeps a link from some other labeled device.
            let (from, to) = (at / n, at % n);
            let kept = from == if to < labeled { (to + 1) % labeled } else { to % labeled };
            if !kept && rng.random_bool(missing) { f64::NAN } else { rng.random_range(1.0..2.0) }
        })
        .collect();
    let divergence = (0..n * n).map(|_| rng.random_range(0.0..2.0)).collect();
    let source = Source::Measured {
        links: Links::from_rows(n, divergence, energy),
        weights: Weights { source: 1.0, target: 1.0, energy: 0.05 },
        bound: Bound::default().with(|s| s.kind = BoundKind::Pooled),
        energy_epsilon: 1e-3,
        energy_unit: EnergyUnit::MeanLink,
        disagreement: None,
    };
    let (forbidden, required) = (Vec::new(), Vec::new());
    Problem::new(Parts { devices, source, pins, forbidden, required }).unwrap()
}

/// An answer such as ours gives: all labeled devices are sources but `demoted`; each target has one or two links.
fn ours(problem: &Problem, demoted: Option<usize>, seed: u64) -> Assignment {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let role = |i| match problem.eligible(i) && demoted != Some(i) {
        true => Role::Source,
        false => Role::Target,
    };
    let roles: Vec<Role> = (0..problem.len()).map(role).collect();
    let mut links = Vec::new();
    for to in 0..problem.len() {
        if roles[to] == Role::Target {
            let senders = (0..problem.len())
                .filter(|&i| roles[i] == Role::Source && problem.link_cost(i, to).is_some());
            let few: Vec<usize> = senders.take(rng.random_range(1..3)).collect();
            let weight = 1.0 / few.len() as f64;
            links.extend(few.iter().map(|&from| PlanLink { from, to, weight }));
        }
    }
    Assignment::new(roles, links)
}

/// Points in the plane for every device, and a network so small that FADA takes no time.
struct Data {
    spec: Spec,
    inputs: Vec<Vec<f32>>,
    labels: Vec<Vec<u16>>,
}

impl Data {
    fn new(devices: usize, labeled: usize) -> Data {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        let input = Shape { channels: 1, height: 1, width: 2 };
        let spec = Spec::new(input, vec![Layer::Linear { outputs: 3 }]).unwrap();
        let inputs = (0..devices).map(|_| (0..40).map(|_| rng.random()).collect()).collect();
        let labels = (0..devices)
            .map(|i| if i < labeled { (0..20).map(|at| at % 3).collect() } else { Vec::new() })
            .collect();
        Data { spec, inputs, labels }
    }

    fn devices(&self) -> Vec<DeviceData<'_>> {
        let devices = self.inputs.iter().zip(&self.labels);
        devices
            .map(|(inputs, labels)| DeviceData {
                labeled: Examples { inputs: &inputs[..2 * labels.len()], labels },
                inputs,
            })
            .collect()
    }

    fn fleet<'a>(&'a self, devices: &'a [DeviceData<'a>]) -> Fleet<'a> {
        let settings = Settings { features: 4, rounds: 2, steps: 3, ..Settings::default() };
        Fleet { spec: &self.spec, devices, settings, watch: &|_, _| ControlFlow::Continue(()) }
    }
}

fn accuracies(n: usize) -> Vec<Vec<f64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(12);
    (0..n).map(|_| (0..n).map(|_| rng.random()).collect()).collect()
}

/// Checks what every method promises.
fn check(method: Method, problem: &Problem, made: &Assignment) {
    assert_eq!(made.roles.len(), problem.len(), "{method}");
    for (device, &role) in made.roles.iter().enumerate() {
        assert!(role == Role::Target || problem.eligible(device), "{method}: d{device}");
        assert!(problem.pin(device).is_none_or(|pin| pin == role), "{method}: d{device}");
    }
    for pair in made.links.windows(2) {
        let [a, b] = [&pair[0], &pair[1]].map(|l| (l.to, l.from));
        assert!(a < b, "{method}: links in order and each once");
    }
    for link in &made.links {
        assert_eq!(made.roles[link.from], Role::Source, "{method}: only sources send");
        assert_eq!(made.roles[link.to], Role::Target, "{method}: only targets receive");
        assert!(problem.link_energy(link.from, link.to).is_some(), "{method}: {link:?}");
        assert!(link.weight > 0.0 && link.weight <= 1.0, "{method}: {link:?}");
    }
    for to in made.with_role(Role::Target) {
        let sum: f64 = made.incoming(to).iter().map(|l| l.weight).sum();
        let wanted = if method == Method::Local { 0.0 } else { 1.0 };
        assert!((sum - wanted).abs() < 1e-12, "{method}: weights into d{to} sum to {sum}");
    }
}

#[test]
fn every_method_keeps_its_promises() {
    for seed in 0..40 {
        let (n, labeled) = (4 + seed as usize % 7, 2 + seed as usize % 3);
        let missing = [0.0, 0.3, 0.8][seed as usize % 3];
        let mut pins = vec![None; n];
        if seed % 4 == 1 {
            pins[0] = Some(Role::Source);
        }
        if seed % 8 == 3 {
            pins[n - 1] = Some(Role::Target);
        }
        let problem = problem(n, labeled, missing, pins, seed);
        let demoted = (missing == 0.0 && seed % 2 == 0).then_some(labeled - 1);
        let data = Data::new(n, labeled);
        let (devices, accuracies) = (data.devices(), accuracies(n));
        let mut context = Context::new(&problem, ours(&problem, demoted, seed)).unwrap();
        context.data = Some(data.fleet(&devices));
        context.accuracies = Some(&accuracies);
        for method in Method::ALL {
            let made = stlf_lab::methods::assign(method, &context, seed).unwrap();
            check(method, &problem, &made);
            assert_eq!(
                stlf_lab::methods::assign(method, &context, seed),
                Ok(made),
                "{method}: same seed, same result"
            );
        }
        for method in [Method::RndAlpha, Method::FedAvg, Method::Fada, Method::AvgD] {
            let made = stlf_lab::methods::assign(method, &context, seed).unwrap();
            assert_eq!(made.roles, context.ours().roles, "{method} has ours' roles");
        }
        let [random, by_size, adapted] = [Method::RndPsi, Method::PsiFedAvg, Method::PsiFada]
            .map(|method| stlf_lab::methods::assign(method, &context, seed).unwrap());
        assert_eq!(random.roles, by_size.roles);
        assert_eq!(random.roles, adapted.roles);
    }
}

#[test]
fn each_method_does_what_it_is_named_after() {
    let problem = problem(10, 4, 0.0, vec![None; 10], 1);
    let ours = ours(&problem, None, 1);
    let degree = ours.links.len().div_ceil(4);
    let accuracies = accuracies(10);
    let mut context = Context::new(&problem, ours.clone()).unwrap();
    context.accuracies = Some(&accuracies);
    let assign = |method: Method, seed| stlf_lab::methods::assign(method, &context, seed).unwrap();

    assert_eq!(assign(Method::StLf, 1), ours);
    for link in assign(Method::FedAvg, 1).links {
        // 150 + 250 + 350 + 450 samples.
        let share = (100.0 * (link.from as f64 + 1.0) + 50.0) / 1200.0;
        assert!((link.weight - share).abs() < 1e-12);
    }
    assert_ne!(assign(Method::RndAlpha, 1).links, assign(Method::RndAlpha, 2).links);
    for seed in 0..50 {
        let used = |made: &Assignment, from| made.links.iter().filter(|l| l.from == from).count();
        let single = assign(Method::Sm, seed);
        // Six targets, four sources.
        assert!((0..4).all(|i| used(&single, i) <= 2));
        assert!(single.links.iter().all(|l| l.weight == 1.0));
        let degrees = assign(Method::AvgD, seed);
        assert!((0..4).all(|i| used(&degrees, i) == degree));
    }
    let sources = |seed| assign(Method::RndPsi, seed).with_role(Role::Source).count();
    let mean = (0..2000).map(sources).sum::<usize>() as f64 / 2000.0;
    // 4 · 0.75, and a little more because one always stays.
    assert!((mean - 3.0).abs() < 0.05, "{mean}");
    assert!((0..2000).all(|seed| sources(seed) > 0));

    for link in assign(Method::Oracle, 1).links {
        let best = (0..4).all(|i| accuracies[i][link.to] <= accuracies[link.from][link.to]);
        assert!(best && link.weight == 1.0);
    }
    assert!(assign(Method::Local, 1).links.is_empty());
    let random: BTreeSet<usize> =
        (0..20).flat_map(|s| assign(Method::Sm, s).links).map(|l| l.from).collect();
    assert_eq!(random.len(), 4);
}

#[test]
fn missing_links_turn_random_roles_where_they_must() {
    // d0 alone reaches d2, d1 alone reaches d3: both must be sources whatever is drawn.
    let mut problem = problem(4, 2, 0.0, vec![None; 4], 1);
    for (from, to) in [(1, 2), (0, 3), (0, 1), (1, 0)] {
        problem = problem.without_link(from, to);
    }
    let context = Context::new(&problem, ours(&problem, None, 1)).unwrap();
    for seed in 0..50 {
        let made = stlf_lab::methods::assign(Method::RndPsi, &context, seed).unwrap();
        assert_eq!(made.with_role(Role::Source).collect::<Vec<_>>(), [0, 1]);
        check(Method::RndPsi, &problem, &made);
    }
}

#[test]
fn what_is_missing_is_named() {
    let whole = problem(4, 2, 0.0, vec![None; 4], 1);
    let cut = whole.clone().without_link(0, 3).without_link(1, 3);
    let context = Context::new(&cut, ours(&cut, None, 1)).unwrap();
    let data = Data::new(4, 2);
    let devices = data.devices();
    let accuracies = accuracies(4);
    let mut full = context.clone();
    full.data = Some(data.fleet(&devices));
    full.accuracies = Some(&accuracies);
    for method in Method::ALL {
        if matches!(method, Method::StLf | Method::Links | Method::Local) {
            continue;
        }
        let error = stlf_lab::methods::assign(method, &full, 1).unwrap_err();
        let wanted = "devices (d3): no source reaches this target";
        assert_eq!(error.to_string(), wanted, "{method}");
    }

    let refused = |method: Method, context: &Context<'_>| {
        stlf_lab::methods::assign(method, context, 1).map_err(|e: Error| e.to_string()).unwrap_err()
    };
    let context = Context::new(&whole, ours(&whole, None, 1)).unwrap();
    assert_eq!(refused(Method::Fada, &context), "data: FADA needs the devices' inputs");
    assert!(refused(Method::Oracle, &context).starts_with("accuracies: "));
    let mut few = context.clone();
    few.data = Some(data.fleet(&devices[..3]));
    few.accuracies = Some(&accuracies[..3]);
    assert_eq!(refused(Method::PsiFada, &few), "data: is for 3 devices, expected 4");
    assert_eq!(refused(Method::Oracle, &few), "accuracies: not a square of 4 devices");

    let mut wrong = ours(&whole, None, 1);
    wrong.roles[3] = Role::Source;
    let wrong = Context::new(&whole, wrong).map(drop).unwrap_err();
    assert_eq!(wrong.to_string(), "plan: d3 is a source, but may not be one");
}
