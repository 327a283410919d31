//! Compares estimators of divergence on the paper's network of ten devices and on natural fleets, and prints the tables of
//! `docs/divergence.md`.
//!
//! ```text
//! divergence_study SETTINGS SEEDS ESTIMATORS   as in: M,U,M//U 10,11,12 all
//! divergence_study natural FLEETS SEEDS        as in: har,writers,gas-drift 1,2,3
//! divergence_study scale                       large fleets of drawn sketches
//! ```
//!
//! Settings: M (MNIST), U (USPS), u (USPS, a quarter of the data, no sample twice), MM (MNIST-M), S (strokes), SC
//! (strokes-coarse); + mixes, // splits. `STLF_DATA` names the folder of the real sets.
#![allow(clippy::print_stdout, reason = "a program that prints tables")]

mod candidates;
mod natural;

use std::ops::ControlFlow;
use std::time::Instant;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use stlf_data::domains::{Domain, Options, load};
use stlf_data::partition::{All, Arrangement, ClassesPerDevice, Paper, Scheme, deal};
use stlf_data::{Class, Shape};
use stlf_learn::evaluate::{Predictions, predict, source_error};
use stlf_learn::{Descent, Examples, Network, Params, Spec, Trainer};
use stlf_method::divergence::sketch::{self, Sketch, Statistic};
use stlf_method::divergence::{Embedding, Fleet, Settings, classifier, discriminant, measure};
use stlf_method::energy::Ranges;
use stlf_planning::Device;
use stlf_planning::Problem;
use stlf_planning::Role;
use stlf_planning::bound::Bound;
use stlf_planning::planner::{self, Outcome};
use stlf_planning::problem::{Links, Parts, Preset, Source};

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["scale"] => scale(),
        ["natural", fleets, seeds] => {
            let seeds: Vec<u64> = seeds.split(',').map(str::parse).collect::<Result<_, _>>()?;
            fleets.split(',').try_for_each(|name| natural::compare(name, &seeds))
        }
        [settings, seeds, estimators] => {
            let seeds: Vec<u64> = seeds.split(',').map(str::parse).collect::<Result<_, _>>()?;
            settings.split(',').try_for_each(|name| compare(name, &seeds, estimators))
        }
        _ => Err("usage: divergence_study SETTINGS SEEDS ESTIMATORS | divergence_study natural FLEETS SEEDS | divergence_study scale".into()),
    }
}

/// Returns the estimators with these names, separated by commas, and their settings.
fn estimators(names: &str) -> Vec<(&'static str, Settings)> {
    let linear = discriminant::Settings::default();
    let one = sketch::Settings::default();
    let mean = |gain| {
        one.with(|s| {
            s.features = 2048;
            s.statistic = Statistic::Discrepancy { gain };
        })
    };
    let means = sketch::Settings::means(Shape::grey(28));
    let alone = sketch::Settings::discrepancy(Embedding::Inputs, Shape::grey(28));
    let [means_private, alone_private] =
        [means, alone].map(|plain| plain.with(|s| s.privacy_required = true));
    let [means, alone] = [means, alone].map(|noisy| noisy.with(|s| s.privacy = None));
    let trained = classifier::Settings::default();
    let convolutions = Embedding::Convolutions;
    let all = [
        ("discriminant", Settings::Discriminant(linear)),
        ("discriminant-128", Settings::Discriminant(linear.with(|s| s.features = 128))),
        ("discriminant-512", Settings::Discriminant(linear.with(|s| s.features = 512))),
        ("discriminant-conv", Settings::Discriminant(linear.with(|s| s.embedding = convolutions))),
        ("sketch", Settings::Sketch(one)),
        ("sketch-128", Settings::Sketch(one.with(|s| s.features = 128))),
        ("sketch-conv", Settings::Sketch(one.with(|s| s.embedding = convolutions))),
        ("means", Settings::Sketch(means)),
        ("means-32", Settings::Sketch(means.with(|s| s.features = 32))),
        ("means-128", Settings::Sketch(means.with(|s| s.features = 128))),
        ("means-private", Settings::Sketch(means_private)),
        ("discrepancy", Settings::Sketch(alone)),
        ("discrepancy-private", Settings::Sketch(alone_private)),
        ("means-x3", Settings::Sketch(mean(3.0))),
        ("means-x6", Settings::Sketch(mean(6.0))),
        ("classifier", Settings::Classifier(trained)),
        ("classifier-seen", Settings::Classifier(trained.with(|s| s.held_out = 0.0))),
        ("classifier-published", Settings::Classifier(classifier::Settings::published())),
    ];
    let wanted = |name: &str| match names {
        "all" => !name.starts_with("classifier"),
        _ => names.split(',').any(|n| n == name),
    };
    all.into_iter().filter(|(name, _)| wanted(name)).collect()
}

/// One network of devices, with what its sources have learned.
struct Trial {
    shape: Shape,
    inputs: Vec<Vec<f32>>,
    truth: Vec<Vec<Class>>,
    labeled: Vec<usize>,
    /// What identifies a device's data: its classes, and its domain where those are split.
    kind: Vec<(Vec<Class>, usize)>,
    sources: Vec<usize>,
    /// ε̂, the source error, of every source.
    errors: Vec<f64>,
    /// The predictions of each source's model on each device's samples, `[source][device]`.
    predictions: Vec<Vec<Predictions>>,
}

fn prepare(name: &str, seed: u64) -> Result<Trial, Failure> {
    let parts: Vec<&str> = name.split(['+', '/']).filter(|part| !part.is_empty()).collect();
    let domains: Vec<Domain> = parts
        .iter()
        .map(|part| match *part {
            "M" => Ok(Domain::Mnist),
            "U" | "u" => Ok(Domain::Usps),
            "MM" => Ok(Domain::MnistM),
            "S" => Ok(Domain::Strokes),
            "SC" => Ok(Domain::StrokesCoarse),
            other => Err(format!("there is no setting {other}")),
        })
        .collect::<Result<_, _>>()?;
    let folder = std::env::var_os("STLF_DATA").map(Into::into);
    // Drawn digits are as many as are asked for; files hold what they hold.
    let samples = name.starts_with('S').then_some(40_000);
    let data = load(&domains, &Options { folder, samples, ..Options::default() })?;
    let arrangement = match () {
        _ if name.contains("//") => Arrangement::Split,
        _ if name.contains('+') => Arrangement::Mixed,
        _ => Arrangement::Single,
    };
    let hard = name.contains("MM");
    let classes_per_device = match hard || arrangement == Arrangement::Split {
        true => ClassesPerDevice::All(All::All),
        false => ClassesPerDevice::Count(4),
    };
    let small = name == "u";
    let scheme = Scheme::Paper(Paper {
        arrangement,
        classes_per_device,
        disjoint: small || !domains.contains(&Domain::Usps),
        scale: if small { 0.25 } else { 1.0 },
        ..Paper::default()
    });
    let partition = deal(&data, &scheme, seed)?;
    let samples: Vec<Vec<usize>> =
        partition.devices.iter().map(|d| d.samples().collect()).collect();
    let labels = |s: &Vec<usize>| data.labels(s).ok_or("a sample has no label");
    let truth: Vec<Vec<Class>> = samples.iter().map(labels).collect::<Result<_, _>>()?;
    let split = arrangement == Arrangement::Split;
    let kind = |(samples, truth): (&Vec<usize>, &Vec<Class>)| {
        let mut classes = truth.clone();
        classes.sort_unstable();
        classes.dedup();
        (classes, if split { data.domain(samples[0]) } else { 0 })
    };
    let mut trial = Trial {
        shape: data.shape(),
        inputs: samples.iter().map(|s| data.inputs(s)).collect(),
        kind: samples.iter().zip(&truth).map(kind).collect(),
        truth,
        labeled: partition.devices.iter().map(|d| d.labeled.len()).collect(),
        sources: (0..samples.len()).filter(|&i| !partition.devices[i].labeled.is_empty()).collect(),
        errors: Vec::new(),
        predictions: Vec::new(),
    };
    let steps = if hard { 6000 } else { 2000 };
    let spec = Spec::cnn(trial.shape, 10)?;
    let trained: Vec<(Params, f64)> = trial
        .sources
        .par_iter()
        .map(|&source| train(&trial, &spec, source, steps, seed))
        .collect::<Result<_, Failure>>()?;
    for (params, error) in trained {
        let on = |inputs: &Vec<f32>| predict(&spec, &params, inputs);
        trial.predictions.push(trial.inputs.par_iter().map(on).collect());
        trial.errors.push(error);
    }
    Ok(trial)
}

/// A source's model, with ε̂ from the fifth of its labels that it was not trained on.
fn train(
    trial: &Trial,
    spec: &Spec,
    source: usize,
    steps: usize,
    seed: u64,
) -> Result<(Params, f64), Failure> {
    let (labeled, numbers) = (trial.labeled[source], trial.shape.len());
    let mut order: Vec<usize> = (0..labeled).collect();
    let own = seed * 1000 + source as u64;
    let mut rng = ChaCha8Rng::seed_from_u64(own);
    (1..labeled).rev().for_each(|k| order.swap(k, rng.random_range(0..=k)));
    let (held_out, training) = order.split_at(labeled / 5);
    let gather = |samples: &[usize]| {
        let input = |&k: &usize| &trial.inputs[source][k * numbers..(k + 1) * numbers];
        let inputs: Vec<f32> = samples.iter().flat_map(input).copied().collect();
        let labels: Vec<Class> = samples.iter().map(|&k| trial.truth[source][k]).collect();
        (inputs, labels)
    };
    let (inputs, labels) = gather(training);
    let params = Params::initial(spec, seed);
    let mut trainer = Trainer::new(spec, params, Descent::default(), own)?;
    let examples = Examples { inputs: &inputs, labels: &labels };
    trainer.steps(&mut Network::new(spec, 10), examples, steps);
    let (inputs, labels) = gather(held_out);
    let errors = predict(spec, &trainer.params, &inputs).errors(&labels);
    let unlabeled = trial.truth[source].len() - labeled;
    let error = source_error(errors, held_out.len(), labeled, unlabeled, 1.0);
    Ok((trainer.params, error))
}

/// Sums over targets (or seeds) of what the table shows.
#[derive(Default)]
struct Score {
    right: usize,
    matchable: usize,
    unlabeled: usize,
    rank: f64,
    nearest: f64,
    targets: usize,
    planned: f64,
    oracle: f64,
    links: usize,
    energy: f64,
    seconds: f64,
    bytes: u64,
    alike: (f64, usize),
    other: (f64, usize),
}

fn compare(name: &str, seeds: &[u64], names: &str) -> Result<(), Failure> {
    let estimators = estimators(names);
    let mut scores: Vec<Score> = estimators.iter().map(|_| Score::default()).collect();
    for &seed in seeds {
        let trial = prepare(name, seed)?;
        let devices: Vec<&[f32]> = trial.inputs.iter().map(Vec::as_slice).collect();
        for ((_, settings), score) in estimators.iter().zip(&mut scores) {
            let start = Instant::now();
            let watch = &mut |_| go_on();
            let found = measure(&devices, trial.shape, settings, seed, watch)?
                .ok_or("the measurement was ended")?;
            score.seconds += start.elapsed().as_secs_f64();
            score.bytes += found.bytes();
            judge_nearest(&trial, &found.matrix(), score);
            judge_plan(&trial, found.matrix(), seed, score)?;
        }
    }
    let runs = seeds.len() as f64;
    println!("\n{name}, seeds {seeds:?}\n");
    println!(
        "| estimator | nearest is of the target's kind | rank correlation | d̂ alike / other | nearest source % | plan % | Oracle % | links per target | energy % | seconds | MB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for ((name, _), s) in estimators.iter().zip(&scores) {
        let (unlabeled, targets) = (s.unlabeled as f64, s.targets as f64);
        println!(
            "| {name} | {}/{} | {:.2} | {:.2} / {:.2} | {:.1} | {:.1} | {:.1} | {:.2} | {:.0} | {:.2} | {:.2} |",
            s.right,
            s.matchable,
            s.rank / unlabeled,
            s.alike.0 / s.alike.1 as f64,
            s.other.0 / s.other.1 as f64,
            100.0 * s.nearest / unlabeled,
            100.0 * s.planned / targets,
            100.0 * s.oracle / targets,
            s.links as f64 / targets,
            100.0 * s.energy / runs,
            s.seconds / runs,
            s.bytes as f64 / runs / 1e6,
        );
    }
    Ok(())
}

/// Whether the nearest source is of the target's kind, and how far nearness ranks sources as accuracy does.
fn judge_nearest(trial: &Trial, divergence: &[f64], score: &mut Score) {
    let n = trial.inputs.len();
    for target in (0..n).filter(|&j| trial.labeled[j] == 0) {
        let near: Vec<f64> = trial.sources.iter().map(|&i| -divergence[i * n + target]).collect();
        let accuracy: Vec<f64> =
            trial.predictions.iter().map(|p| p[target].accuracy(&trial.truth[target])).collect();
        let alike: Vec<bool> =
            trial.sources.iter().map(|&i| trial.kind[i] == trial.kind[target]).collect();
        let nearest = (0..near.len()).max_by(|&a, &b| near[a].total_cmp(&near[b])).unwrap_or(0);
        score.unlabeled += 1;
        score.nearest += accuracy[nearest];
        score.rank += correlation(&ranks(&near), &ranks(&accuracy));
        for (alike, near) in alike.iter().zip(&near) {
            let sums = if *alike { &mut score.alike } else { &mut score.other };
            *sums = (sums.0 - near, sums.1 + 1);
        }
        if alike.contains(&true) {
            score.matchable += 1;
            score.right += usize::from(alike[nearest]);
        }
    }
}

/// The accuracy of the balanced plan with predictions mixed.
fn judge_plan(
    trial: &Trial,
    divergence: Vec<f64>,
    seed: u64,
    score: &mut Score,
) -> Result<(), Failure> {
    let n = trial.inputs.len();
    let place = |device: usize| trial.sources.iter().position(|&i| i == device);
    let devices = (0..n)
        .map(|i| Device {
            name: format!("d{}", i + 1),
            labeled: trial.labeled[i] as u64,
            unlabeled: (trial.truth[i].len() - trial.labeled[i]) as u64,
            source_error: place(i).map(|k| trial.errors[k]),
        })
        .collect();
    let preset = Preset::Balanced;
    let source = Source::Measured {
        links: Links::from_rows(n, divergence, Ranges::default().draw(n, seed)),
        weights: preset.weights(),
        bound: Bound::default().with(|s| s.complexity = preset.complexity()),
        energy_epsilon: 1e-3,
        energy_unit: preset.energy_unit(),
        disagreement: None,
    };
    let (forbidden, required) = (Vec::new(), Vec::new());
    let problem =
        Problem::new(Parts { devices, source, pins: vec![None; n], forbidden, required })?;
    let Outcome::Planned(plan) = planner::optimum(&problem) else {
        return Err("there is no plan".into());
    };
    let joules = |joules: Option<f64>| joules.ok_or("a plan without energy");
    score.energy += joules(plan.joules(&problem))? / joules(plan.all_to_all_joules(&problem))?;
    for target in plan.with_role(Role::Target) {
        let links = plan.incoming(target);
        let parts = links
            .iter()
            .filter_map(|link| Some((&trial.predictions[place(link.from)?][target], link.weight)));
        let mixed = Predictions::mix(parts).ok_or("a target without a source")?;
        let truth = &trial.truth[target];
        let others = trial.sources.iter().zip(&trial.predictions).filter(|(i, _)| **i != target);
        score.targets += 1;
        score.links += links.len();
        score.planned += mixed.accuracy(truth);
        score.oracle += others.map(|(_, p)| p[target].accuracy(truth)).fold(0.0, f64::max);
    }
    Ok(())
}

fn go_on() -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |x: &f64| {
        let below = values.iter().filter(|y| *y < x).count() as f64;
        below + 0.5 * values.iter().filter(|y| *y == x).count() as f64
    };
    values.iter().map(rank).collect()
}

/// Returns Pearson's correlation; 0 where one side is constant.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let (of_a, of_b) = (mean(a), mean(b));
    let product = |x: &[f64], mx: f64, y: &[f64], my: f64| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum()
    };
    let scale = product(a, of_a, a, of_a) * product(b, of_b, b, of_b);
    if scale > 0.0 { product(a, of_a, b, of_b) / scale.sqrt() } else { 0.0 }
}

/// Times for large fleets: from sketches to a matrix, or to the 32 nearest senders of every receiver.
fn scale() -> Result<(), Failure> {
    println!("| devices | features | what | seconds |\n|---|---|---|---|");
    for (devices, features, matrix) in
        [(1000, 128, true), (10_000, 32, false), (100_000, 32, false)]
    {
        let settings = sketch::Settings::default().with(|s| s.features = features);
        let sketches = drawn(devices, features);
        let start = Instant::now();
        let fleet = Fleet::new(&sketches, &settings)?;
        let what = if matrix {
            let pairs: Vec<(usize, usize)> =
                (0..devices).flat_map(|i| (i + 1..devices).map(move |j| (i, j))).collect();
            let all: f64 = pairs.par_iter().map(|&(i, j)| fleet.divergence(i, j).value).sum();
            format!("all {} divergences, mean {:.2}", pairs.len(), all / pairs.len() as f64)
        } else {
            let (senders, receivers): (Vec<usize>, Vec<usize>) =
                (0..devices).partition(|device| device % 2 == 0);
            let found = fleet.nearest(&senders, &receivers, 32);
            format!("32 nearest of half the fleet for the other half: {} links", found.len())
        };
        let seconds = start.elapsed().as_secs_f64();
        println!("| {devices} | {features} | {what} | {seconds:.1} |");
    }
    Ok(())
}

/// Sketches of made-up devices in ten kinds; every hundredth publishes a covariance.
fn drawn(devices: usize, features: usize) -> Vec<Sketch> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let identity = |row: usize| (0..=row).map(move |column| if row == column { 1.0 } else { 0.0 });
    let covariance: Vec<f32> = (0..features).flat_map(identity).collect();
    (0..devices)
        .map(|k| Sketch {
            samples: 1000,
            mean: (0..features)
                .map(|f| rng.random::<f32>() + if f == k % 10 { 1.0 } else { 0.0 })
                .collect(),
            covariance: (k % 100 == 0).then(|| covariance.clone()),
        })
        .collect()
}
