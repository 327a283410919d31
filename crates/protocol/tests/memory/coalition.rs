//! A planner whose accomplices publish means of their own choice learns d̂ of each. What does it learn of the device's covariance, and of its samples?

use stlf_method::divergence::OwnMetric;
use stlf_method::divergence::sketch::{Sketch, Statistic};

use crate::attack::{Root, Waves, from_moments, moments_of, unit};
use crate::samples::{Kind, PICTURES, ROWS, flat};

type Matrix = Vec<Vec<f64>>;

/// Where a device measures from, as far as the coalition knows: the mean, which it publishes, and how many samples it has.
struct Device<'a> {
    metric: OwnMetric,
    kind: &'a Kind,
    mean: Vec<f64>,
    samples: f64,
    asked: usize,
}

impl Device<'_> {
    /// What it tells of means that lie in this direction from its own, as a squared distance: what it rounds, and takes off for chance, undone as far as
    /// that can be.
    fn squared(&mut self, direction: &[f64]) -> f64 {
        self.asked += 1;
        let at = self.mean.iter().zip(direction).map(|(m, d)| (m + d) as f32).collect();
        // As many samples as there can be, so that nothing is taken off for their number.
        let chosen = Sketch { samples: 1 << 40, mean: at, covariance: None };
        let told = self.metric.divergence(&chosen, &self.kind.means()).value;
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

/// What a coalition takes the device to measure by, which believed in `prior` before: it asks along every direction in which that has the deviation 1, and,
/// if it has accomplices enough, between every two of them.
fn learned(device: &mut Device<'_>, prior: &Matrix, all: bool) -> Matrix {
    // d̂ is about 1.5 there: far enough to stand out from chance, near enough for steps of 0.01 to say much.
    const LENGTH: f64 = 2.3;
    let side = prior.len();
    let root = Root::of(prior);
    let mut form = |ones: &[usize]| {
        let length = LENGTH / (ones.len() as f64).sqrt();
        let direction: Vec<f64> =
            root.times(&unit(side, ones)).iter().map(|x| length * x).collect();
        device.squared(&direction) / (LENGTH * LENGTH)
    };
    let mut inside: Matrix = (0..side).map(|_| vec![0.0; side]).collect();
    (0..side).for_each(|k| inside[k][k] = form(&[k]));
    if all {
        for i in 0..side {
            for j in 0..i {
                let both = form(&[i, j]) - 0.5 * (inside[i][i] + inside[j][j]);
                (inside[i][j], inside[j][i]) = (both, both);
            }
        }
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

fn attacked(kind: &Kind, samples: usize) {
    let features = kind.features();
    let (victim, own) = ((kind.draw)(samples, 1), (kind.draw)(samples, 2));
    let Statistic::OwnSeparation { ridge } = kind.means().statistic else { panic!("the default") };
    let (mean, covariance) = moments_of(&features, &flat(&victim));
    let truth = widened(covariance, samples, ridge);
    let prior = widened(moments_of(&features, &flat(&own)).1, samples, ridge);
    let waves = Waves::of(&features, kind.shape);
    let starts = (kind.draw)(6, 3);
    let before = error(&prior, &truth);
    println!("{samples} {}: the coalition's own covariance is {before:.2} off", kind.name);
    for all in [false, true] {
        let metric = OwnMetric::new(&features, &flat(&victim), ridge);
        let (mean, samples) = (mean.clone(), samples as f64);
        let mut device = Device { metric, kind, mean: mean.clone(), samples, asked: 0 };
        let found = learned(&mut device, &prior, all);
        // Up to a factor, which nobody needs.
        let traces = [&truth, &found].map(|m| (0..m.len()).map(|k| m[k][k]).sum::<f64>());
        let scaled: Matrix = (found.iter())
            .map(|row| row.iter().map(|x| x * traces[0] / traces[1]).collect())
            .collect();
        let (asked, after) = (device.asked, error(&scaled, &truth));
        println!("{asked} chosen publications: it is {after:.2} off");
        // A few dozen say next to nothing; as many as the covariance has numbers, most of it.
        assert!(if all { after < 0.5 * before } else { after > 0.8 * before });
        let rebuilt = from_moments(&waves, &mean, &scaled, &starts);
        assert_eq!(kind.found("from that", &victim, &rebuilt).0, 0);
    }
}

#[test]
fn accomplices_with_chosen_means_do_not_get_samples() {
    attacked(&ROWS, 48);
    attacked(&ROWS, 300);
    attacked(&PICTURES, 64);
}
