//! A planner whose accomplices publish means of their own choice learns d̂ of each. What does it learn of the device's covariance, and of its samples? And what if the
//! device replies as seldom as real devices do?

use std::collections::BTreeMap;
use std::sync::Arc;

use stlf_method::divergence::OwnMetric;
use stlf_method::divergence::replies::{MOST_TO_ONE_PEER, most};
use stlf_method::divergence::sketch::{Sketch, Statistic};
use stlf_protocol::Place;
use stlf_protocol::divergence_protocol::Exchange;
use stlf_protocol::reply_record::ReplyRecord;
use stlf_protocol::wire::{Means, Measured, Message};

use crate::attack::{Root, Waves, from_moments, moments_of, unit};
use crate::common::computed;
use crate::samples::{Kind, PICTURES, ROWS, SEED, flat};

type Matrix = Vec<Vec<f64>>;

/// The members of a coalition besides the planner.
const ACCOMPLICES: usize = 64;

/// Where a device measures from, as far as the coalition knows: the mean, which it publishes, and how many samples it has.
struct Known<'a> {
    kind: &'a Kind,
    mean: Vec<f64>,
    samples: f64,
}

impl Known<'_> {
    /// Means that lie in this direction from the device's own.
    fn chosen(&self, direction: &[f64]) -> Sketch {
        let mean = self.mean.iter().zip(direction).map(|(m, d)| (m + d) as f32).collect();
        // As many samples as there can be, so that nothing is taken off for their number.
        Sketch { samples: 1 << 40, mean, covariance: None }
    }

    /// The squared distance of which the device told this d̂: what it rounds, and takes off for chance, undone as far as that can be.
    fn squared(&self, told: f64) -> f64 {
        let unbiased = deviations(told.min(1.99)).powi(2);
        let directions = self.mean.len() as f64;
        let excess = directions / (self.samples - 1.0);
        let variance = 8.0 * excess * excess / directions;
        0.5 * (unbiased + (unbiased * unbiased + 4.0 * variance).sqrt()) + excess
    }
}

/// Δ of which a device tells this d̂, by bisection of 2(1 − 2Φ(−Δ/2)) = 2·erf(Δ/√8).
fn deviations(told: f64) -> f64 {
    let (mut low, mut high) = (0.0, 20.0);
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if 2.0 * libm::erf(middle / 8f64.sqrt()) < told { low = middle } else { high = middle }
    }
    low
}

/// A covariance with what a device with so many samples adds to it before it measures by it.
fn widened(mut covariance: Matrix, samples: usize, ridge: f64) -> Matrix {
    let side = covariance.len();
    let trace: f64 = (0..side).map(|k| covariance[k][k]).sum();
    let fraction = ridge + side as f64 / (10.0 * samples as f64);
    (0..side).for_each(|k| covariance[k][k] += fraction * trace / side as f64);
    covariance
}

/// How far a matrix is from the true one, as a share of it.
fn error(found: &Matrix, truth: &Matrix) -> f64 {
    let pairs = || found.iter().flatten().zip(truth.iter().flatten());
    let squares = pairs().map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    (squares / pairs().map(|(_, b)| b * b).sum::<f64>()).sqrt()
}

/// The pairs of directions between which a coalition asks: those of the same block of so many, each with itself first. The more replies it gets, the
/// larger its blocks can be.
fn questions(side: usize, block: usize) -> Vec<(usize, usize)> {
    let pairs = (0..side).flat_map(|i| (i / block * block..i).map(move |j| (i, j)));
    (0..side).map(|k| (k, k)).chain(pairs).collect()
}

/// What a coalition takes the device to measure by, which believed in `prior` before: it asks along and between directions in which that has the deviation 1, at
/// means of which no number is larger than `reach`.
fn learned(
    known: &Known<'_>,
    prior: &Matrix,
    block: usize,
    reach: f64,
    told: impl FnOnce(Vec<Sketch>) -> Vec<f64>,
) -> Matrix {
    // d̂ is about 1.5 there: far enough to stand out from chance, near enough for steps of 0.01 to say much.
    const LENGTH: f64 = 2.3;
    let side = prior.len();
    let root = Root::of(prior);
    let questions = questions(side, block);
    let (lengths, chosen): (Vec<f64>, Vec<Sketch>) = (questions.iter())
        .map(|&(i, j)| {
            let unit = unit(side, &[i, j]);
            let norm = unit.iter().sum::<f64>().sqrt();
            let direction: Vec<f64> = root.times(&unit).iter().map(|x| x / norm).collect();
            // Forwards or backwards, whichever is further.
            let within = |sign: f64| {
                let limit = |(m, d): (&f64, &f64)| (reach - m * d.signum() * sign) / d.abs();
                known.mean.iter().zip(&direction).map(limit).fold(LENGTH, f64::min)
            };
            let sign = if within(1.0) >= within(-1.0) { 1.0 } else { -1.0 };
            let length = sign * within(sign);
            let direction: Vec<f64> = direction.iter().map(|x| length * x).collect();
            (length, known.chosen(&direction))
        })
        .unzip();
    let mut inside: Matrix = (0..side).map(|_| vec![0.0; side]).collect();
    for ((&(i, j), told), length) in questions.iter().zip(told(chosen)).zip(lengths) {
        let form = known.squared(told) / (length * length);
        let both = if i == j { form } else { form - 0.5 * (inside[i][i] + inside[j][j]) };
        (inside[i][j], inside[j][i]) = (both, both);
    }
    // R·B⁻¹·Rᵀ, where the device measures by B in these directions.
    let middle = Root::of(&inside);
    let columns: Matrix = (0..side)
        .map(|k| {
            let row: Vec<f64> = root.row(k);
            root.times(&middle.solve(&row))
        })
        .collect();
    columns
}

/// A device and the coalition's own data of its kind.
struct Attack<'a> {
    known: Known<'a>,
    victim: Vec<Vec<f64>>,
    truth: Matrix,
    prior: Matrix,
    ridge: f64,
}

impl<'a> Attack<'a> {
    fn new(kind: &'a Kind, samples: usize) -> Attack<'a> {
        let features = kind.features();
        let (victim, own) = ((kind.draw)(samples, 1), (kind.draw)(samples, 2));
        let Statistic::OwnSeparation { ridge } = kind.means().statistic else {
            panic!("the default")
        };
        let (mean, covariance) = moments_of(&features, &flat(&victim));
        let truth = widened(covariance, samples, ridge);
        let prior = widened(moments_of(&features, &flat(&own)).1, samples, ridge);
        let before = error(&prior, &truth);
        println!("{samples} {}: the coalition's own covariance is {before:.3} off", kind.name);
        let known = Known { kind, mean, samples: samples as f64 };
        Attack { known, victim, truth, prior, ridge }
    }

    /// How far off the coalition's covariance is with blocks of this size, as a share of how far it was before. None of the samples can be rebuilt.
    fn left(&self, block: usize, reach: f64, told: impl FnOnce(Vec<Sketch>) -> Vec<f64>) -> f64 {
        let Attack { known, victim, truth, prior, .. } = self;
        let found = learned(known, prior, block, reach, told);
        // Up to a factor, which nobody needs.
        let traces = [truth, &found].map(|m| (0..m.len()).map(|k| m[k][k]).sum::<f64>());
        let scaled: Matrix = (found.iter())
            .map(|row| row.iter().map(|x| x * traces[0] / traces[1]).collect())
            .collect();
        let (asked, after) = (questions(prior.len(), block).len(), error(&scaled, truth));
        println!("{asked} chosen publications: it is {after:.3} off");
        let waves = Waves::of(&known.kind.features(), known.kind.shape);
        let rebuilt = from_moments(&waves, &known.mean, &scaled, &(known.kind.draw)(6, 3));
        assert_eq!(known.kind.found("from that", victim, &rebuilt).0, 0);
        after / error(prior, truth)
    }

    /// What a device tells that replies to everything.
    fn all_replies(&self, chosen: Vec<Sketch>) -> Vec<f64> {
        let kind = self.known.kind;
        let metric = OwnMetric::new(&kind.features(), &flat(&self.victim), self.ridge);
        chosen.iter().map(|at| metric.divergence(at, &kind.means()).value).collect()
    }
}

#[test]
fn accomplices_with_chosen_means_do_not_get_samples() {
    for (kind, samples) in [(&ROWS, 48), (&ROWS, 300), (&PICTURES, 64)] {
        let attack = Attack::new(kind, samples);
        let all = attack.prior.len();
        // A few dozen say next to nothing; as many as the covariance has numbers, most of it.
        assert!(attack.left(1, f64::INFINITY, |chosen| attack.all_replies(chosen)) > 0.8);
        assert!(attack.left(all, f64::INFINITY, |chosen| attack.all_replies(chosen)) < 0.5);
    }
}

/// A device that replies as seldom as real devices do, and is started anew in every epoch.
struct Limited<'a> {
    kind: &'a Kind,
    inputs: Arc<[f32]>,
    /// What it has told, as it is on its disk.
    disk: String,
}

impl Limited<'_> {
    /// What it tells of means that accomplices publish in one epoch, and how many of them get no new reply.
    fn told(&mut self, chosen: &[Sketch]) -> (Vec<f64>, usize) {
        let kind = self.kind;
        let members: Vec<Place> = (0..=chosen.len()).map(Place::new).collect();
        let (key, inputs) = ([7; 32], self.inputs.clone());
        let device =
            Exchange::new(&kind.settings(), kind.shape, SEED, key, members[0], &members, inputs);
        let record = ReplyRecord::read(self.disk.as_bytes()).unwrap();
        let replying = device.replying(record, &device.sample_names(None, &[9; 32])).unwrap();
        let mut device = device.replying_by(Some(Arc::new(replying)));
        let steps = device.start();
        computed(&mut device, steps).unwrap();
        for (place, sketch) in members[1..].iter().zip(chosen) {
            let means = Message::Means(Means::of(sketch, &kind.means()), None);
            let steps = device.receive(*place, &means).unwrap();
            computed(&mut device, steps).unwrap();
        }
        self.disk = serde_json::to_string(device.told().unwrap().record()).unwrap();
        let told: BTreeMap<Place, Measured> = device.pairs().unwrap().into_iter().collect();
        let told = members[1..].iter().map(|place| match told[place] {
            Measured::Divergence(told) => told,
            Measured::Errors(_) => panic!("means"),
        });
        (told.collect(), device.withheld().len())
    }
}

#[test]
fn a_coalition_soon_gets_no_new_replies_and_has_learned_next_to_nothing() {
    for (kind, samples) in
        [(&ROWS, 48), (&ROWS, 300), (&ROWS, 1_000), (&PICTURES, 64), (&PICTURES, 300)]
    {
        let attack = Attack::new(kind, samples);
        let allowed =
            most(&kind.settings(), kind.shape, samples as f64).min(MOST_TO_ONE_PEER * ACCOMPLICES);
        let side = attack.prior.len();
        let block = (1..=side).filter(|&b| questions(side, b).len() <= allowed).max().unwrap();
        let inputs = flat(&attack.victim);
        let disk = serde_json::to_string(&ReplyRecord::default()).unwrap();
        let mut device = Limited { kind, inputs, disk };
        let mut given = 0;
        // What can be published as a mean.
        let reach = (2.0 / side as f64).sqrt();
        let left = attack.left(block, reach, |chosen| {
            let expected = attack.all_replies(chosen.clone());
            let mut told = Vec::new();
            for chosen in chosen.chunks(ACCOMPLICES) {
                let (now, withheld) = device.told(chosen);
                // The same again tells the same and costs nothing.
                assert_eq!((device.told(chosen).0, withheld), (now.clone(), 0));
                given += now.len();
                told.extend(now);
            }
            // Means are rounded on their way.
            assert!(told.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 0.011));
            told
        });
        println!("{samples} {}: {given} of {allowed} replies, {left:.2} are left", kind.name);
        assert!(left > 0.8, "{left}");
        // Nor would means do that nobody can publish.
        let beyond = attack.left(block, f64::INFINITY, |chosen| attack.all_replies(chosen));
        assert!(beyond > 0.8, "{beyond}");
        // Whatever is asked now, over a hundred epochs: few replies are left, then there are none.
        let mut later = 0;
        for epoch in 0..100 {
            let near = |k: usize| vec![1e-5 * (epoch * ACCOMPLICES + k + 1) as f64; side];
            let chosen: Vec<Sketch> =
                (0..ACCOMPLICES).map(|k| attack.known.chosen(&near(k))).collect();
            later += ACCOMPLICES - device.told(&chosen).1;
        }
        assert_eq!(given + later, allowed, "{later} later");
    }
}
