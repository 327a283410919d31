//! Distances as one device measures them: in deviations of its own features. It keeps their covariance to itself, and needs only the
//! means of others.

use std::collections::BTreeSet;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use stlf_data::Shape;

use super::Estimate;
use super::covariance::{Cholesky, Moments, add_to_diagonal, trace, trace_of_product, triangle};
use super::features::Features;
use super::separation::{from_separation, separated};
use super::sketch::{Settings, Sketch};
use super::{disclosure, replies};

/// A covariance of few samples is added to as if every feature had been seen this many times more.
const SAMPLES_PER_FEATURE: f64 = 10.0;

/// Distances of so many standard deviations are taken for chance.
const CHANCE: f64 = 2.0;

/// The greatest length of another's noise that is taken out of the distance again.
const BELIEVED_NOISE: f64 = 0.25;

/// d̂ of a squared distance that chance alone explains in part: the variance that sampling gives it, over the distance itself, is taken off
/// (as James and Stein do). Where chance explains all of it, two devices count as alike, and a source may hand its model on.
fn shown(unbiased: f64, excess: f64, directions: f64) -> f64 {
    let variance = CHANCE.powi(2) * 2.0 * excess * excess / directions;
    from_separation(if unbiased > variance.sqrt() { unbiased - variance / unbiased } else { 0.0 })
}

/// d̂ as a device tells it: in steps of 0.01, which no plan notices. Whoever asks with means of its own choice learns fewer than eight bits
/// by each of the device's covariance, which has thousands of numbers.
fn rounded(divergence: f64) -> f64 {
    (100.0 * divergence).round() / 100.0
}

/// The exact mean and covariance of a device's features, from which its metric follows. They give samples away, and never leave the device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnMoments {
    samples: u64,
    mean: Vec<f64>,
    /// The lower triangle, row by row.
    covariance: Vec<f64>,
}

impl OwnMoments {
    /// Returns those of a device's inputs.
    pub fn of(features: &Features, inputs: &[f32]) -> OwnMoments {
        let mut moments = Moments::new(features.count());
        features.each(inputs, |vector| moments.see(vector));
        let samples = moments.count();
        let (mean, covariance) = moments.finish();
        OwnMoments { samples, mean, covariance }
    }

    /// Whether they are numbers, and as many as so many features have.
    pub fn fit(&self, features: usize) -> bool {
        let mut numbers = self.mean.iter().chain(&self.covariance);
        let are_as_many =
            self.mean.len() == features && self.covariance.len() == triangle(features);
        are_as_many && numbers.all(|x| x.is_finite())
    }
}

/// What a device keeps to measure how far others' means are from its own.
#[derive(Debug, Clone)]
pub struct OwnMetric {
    samples: f64,
    mean: Vec<f64>,
    factor: Cholesky,
    /// By how much the squared distance is too large, inverted.
    shrink: f64,
    /// tr(S + λ)⁻¹, by which noise on another's mean counts.
    inverse_trace: f64,
    /// tr(A) with A = (S + λ)⁻¹·S: a mean of n samples strays by tr(A)/n.
    kept: f64,
    /// (tr A)²/tr(A²), the number of directions in which it does.
    directions: f64,
}

/// A covariance S of some samples with a ridge λ, as S + λ.
pub(super) struct Ridged {
    /// The factor of S + λ.
    pub(super) factor: Cholesky,
    /// λ.
    pub(super) added: f64,
    /// tr((S + λ)⁻¹).
    pub(super) inverse_trace: f64,
    /// tr(A), with A = (S + λ)⁻¹S = 1 − λ(S + λ)⁻¹.
    pub(super) kept: f64,
    /// tr(A²).
    pub(super) kept_squared: f64,
}

impl Ridged {
    /// `ridge` is the fraction of the mean variance that is added to every direction; there is more of it where there are few samples for each feature.
    pub(super) fn new(mut covariance: Vec<f64>, side: usize, samples: f64, ridge: f64) -> Ridged {
        let fraction = ridge + side as f64 / (SAMPLES_PER_FEATURE * samples);
        let added = fraction * trace(&covariance, side) / side as f64;
        add_to_diagonal(&mut covariance, side, added);
        let factor = Cholesky::new(covariance, side);
        let inverse = factor.inverse();
        let inverse_trace = trace(&inverse, side);
        let squared = trace_of_product(inverse.iter().copied(), &inverse, side);
        let kept = side as f64 - added * inverse_trace;
        let kept_squared = side as f64 - 2.0 * added * inverse_trace + added * added * squared;
        Ridged { factor, added, inverse_trace, kept, kept_squared }
    }
}

impl OwnMetric {
    /// The metric of a device's inputs. `ridge` is the fraction of the mean variance that is added to every direction.
    pub fn new(features: &Features, inputs: &[f32], ridge: f64) -> OwnMetric {
        OwnMetric::of(OwnMoments::of(features, inputs), ridge)
    }

    /// The metric of inputs with these moments.
    pub fn of(moments: OwnMoments, ridge: f64) -> OwnMetric {
        let OwnMoments { samples, mean, mut covariance } = moments;
        let (samples, side) = (samples as f64, mean.len());
        // A single sample has no spread; any inputs have at most this one. It hardly counts where there are more.
        let unseen = 1.0 / (side as f64 * samples.max(1.0).powi(2));
        add_to_diagonal(&mut covariance, side, unseen);
        let Ridged { factor, added, inverse_trace, kept, kept_squared } =
            Ridged::new(covariance, side, samples.max(1.0), ridge);
        let directions = (kept * kept / kept_squared).max(1.0);
        // The inverse of a covariance of few samples is too large: by 1/(1 − tr(A)/n), which also holds with a ridge (Dobriban and
        // Wager 2018).
        let seen = side as f64 - (added + unseen) * inverse_trace;
        let shrink = 1.0 - (seen / samples.max(1.0)).clamp(0.0, 1.0);
        OwnMetric { samples, mean, factor, shrink, inverse_trace, kept, directions }
    }

    /// d̂ of another device, of which the published means are known.
    pub fn divergence(&self, other: &Sketch, settings: &Settings) -> Estimate {
        let mean = other.mean.iter().map(|&theirs| f64::from(theirs));
        self.of_mean(mean, other.samples, settings.noise(other.samples), settings)
    }

    /// d̂ of data of which these are the means of so many samples, with normal noise of this standard deviation.
    pub(super) fn of_mean(
        &self,
        mean: impl Iterator<Item = f64>,
        samples: u64,
        noise: f64,
        settings: &Settings,
    ) -> Estimate {
        let mut apart: Vec<f64> = mean.zip(&self.mean).map(|(theirs, own)| theirs - own).collect();
        self.factor.whiten(&mut apart);
        let squared: f64 = self.shrink * apart.iter().map(|x| x * x).sum::<f64>();
        let side = self.mean.len() as f64;
        let noise = noise.powi(2);
        let estimate = |samples: f64, noise: f64| {
            let strays = |samples: f64| self.kept / (samples - 1.0).max(1.0);
            let excess =
                strays(self.samples) + strays(samples) + self.shrink * self.inverse_trace * noise;
            let interval =
                separated(squared - excess, excess, self.directions, settings.confidence);
            (interval, shown(squared - excess, excess, self.directions))
        };
        let (told, _) = estimate(samples as f64, noise);
        // Means that stray further than this are no reason to take it for near; it would be everybody's nearest.
        let (believed, value) =
            estimate((samples as f64).max(side), noise.min(BELIEVED_NOISE.powi(2) / side));
        Estimate::new(
            rounded(value),
            told.low.min(rounded(value)),
            believed.high.max(rounded(value)),
        )
    }
}

/// How every device of a simulated fleet measures by its own covariance.
pub(super) struct OwnMetrics<'a> {
    metrics: Vec<OwnMetric>,
    /// Of a device that cannot [reply](replies) to all others, those that it replies to.
    replied: Vec<Option<BTreeSet<usize>>>,
    sketches: &'a [Sketch],
    settings: &'a Settings,
}

impl<'a> OwnMetrics<'a> {
    pub(super) fn new(
        features: &Features,
        devices: &[&[f32]],
        shape: Shape,
        sketches: &'a [Sketch],
        settings: &'a Settings,
        ridge: f64,
    ) -> OwnMetrics<'a> {
        let metric = |inputs: &&[f32]| OwnMetric::new(features, inputs, ridge);
        let metrics = devices.par_iter().map(metric).collect();
        let replied = |at: usize| replied(at, devices[at], shape, sketches, settings);
        let replied = (0..devices.len()).into_par_iter().map(replied).collect();
        OwnMetrics { metrics, replied, sketches, settings }
    }

    /// What the two devices of a pair come to: nobody comes nearer to another than the other agrees to.
    pub(super) fn divergence(&self, i: usize, j: usize) -> Estimate {
        let seen = |at: usize, other: usize| match &self.replied[at] {
            Some(replied) if !replied.contains(&other) => Estimate::new(2.0, 0.0, 2.0),
            _ => self.metrics[at].divergence(&self.sketches[other], self.settings),
        };
        // In one order, so that a tie has the same interval whoever asks.
        let (i, j) = (i.min(j), i.max(j));
        let (a, b) = (seen(i, j), seen(j, i));
        if b.value > a.value { b } else { a }
    }
}

/// The devices that the one at an index replies to in its first epoch, where it cannot reply to all. Who publishes what others can rebuild samples from has
/// accepted that, and replies to all.
fn replied(
    at: usize,
    inputs: &[f32],
    shape: Shape,
    sketches: &[Sketch],
    settings: &Settings,
) -> Option<BTreeSet<usize>> {
    let counted = super::Settings::Sketch(Settings { base_noise: true, ..*settings });
    let most = replies::most(&counted, shape, disclosure::independent(inputs, shape.len()));
    let samples = inputs.len() / shape.len().max(1);
    let is_limited = || disclosure::check(&counted, shape, samples, false).is_ok();
    if sketches.len() <= most + 1 || !is_limited() {
        return None;
    }
    let others = sketches.iter().enumerate().filter(|(other, _)| *other != at);
    Some(replies::nearest_first(&sketches[at], others).into_iter().take(most).collect())
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use stlf_data::Shape;

    use super::super::sketch::agreed_features;
    use super::super::{Embedding, privacy::Privacy};
    use super::*;

    const ROW: Shape = Shape { channels: 1, height: 1, width: 3 };
    const SIDE: usize = 16;

    fn features() -> Features {
        agreed_features(&[Some(3.0)], ROW, Embedding::Inputs, SIDE, 5).unwrap()
    }

    /// Rows around a place.
    fn rows(samples: usize, at: f32, seed: u64) -> Vec<f32> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..3 * samples).map(|_| at + rng.random_range(-1.0..1.0)).collect()
    }

    fn sketch(inputs: &[f32], settings: &Settings) -> Sketch {
        Sketch::new(&features(), inputs, settings, |_| [0; 32])
    }

    fn settings() -> Settings {
        Settings { privacy: None, base_noise: false, ..Settings::means(ROW) }
    }

    /// A⁻¹b by elimination, row by row.
    fn solved(mut rows: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
        let n = right.len();
        for pivot in 0..n {
            for row in (0..n).filter(|&row| row != pivot) {
                let factor = rows[row][pivot] / rows[pivot][pivot];
                let above = rows[pivot].clone();
                rows[row].iter_mut().zip(above).for_each(|(x, y)| *x -= factor * y);
                right[row] -= factor * right[pivot];
            }
        }
        (0..n).map(|k| right[k] / rows[k][k]).collect()
    }

    #[test]
    fn distances_are_those_of_the_formula() {
        let (own, other) = (rows(4000, 0.0, 1), rows(4000, 0.3, 2));
        let mut seen: Vec<Vec<f64>> = Vec::new();
        features().each(&own, |v| seen.push(v.iter().map(|&x| f64::from(x)).collect()));
        let count = seen.len() as f64;
        let mean: Vec<f64> =
            (0..SIDE).map(|k| seen.iter().map(|v| v[k]).sum::<f64>() / count).collect();
        let product = |i: usize, j: usize| {
            let products = seen.iter().map(|v| (v[i] - mean[i]) * (v[j] - mean[j]));
            products.sum::<f64>() / (count - 1.0)
        };
        let variance = (0..SIDE).map(|k| product(k, k)).sum::<f64>() / SIDE as f64;
        let added = (0.03 + SIDE as f64 / (10.0 * count)) * variance;
        let spread: Vec<Vec<f64>> = (0..SIDE)
            .map(|i| {
                (0..SIDE).map(|j| product(i, j) + f64::from(u8::from(i == j)) * added).collect()
            })
            .collect();
        let published = sketch(&other, &settings());
        let apart: Vec<f64> = published
            .mean
            .iter()
            .zip(&mean)
            .map(|(&theirs, own)| f64::from(theirs) - own)
            .collect();
        let squared: f64 =
            solved(spread, apart.clone()).iter().zip(&apart).map(|(x, y)| x * y).sum();
        let found = OwnMetric::new(&features(), &own, 0.03).divergence(&published, &settings());
        // What sampling adds, at most all directions over the numbers of samples, and what few of them take away.
        let side = SIDE as f64;
        let least = (1.0 - side / count) * squared - 2.0 * side / (count - 1.0);
        let [least, most] = [least, squared].map(from_separation);
        assert!(
            found.value > 0.1 && (rounded(least)..=rounded(most)).contains(&found.value),
            "{found:?} {most}"
        );
    }

    #[test]
    fn equal_devices_show_no_signal_with_and_without_noise() {
        for (epsilon, base_noise) in [(None, false), (None, true), (Some(1.0), true)] {
            let privacy = epsilon.map(|epsilon| Privacy::new(epsilon, 1e-5));
            let settings = Settings { privacy, privacy_required: true, base_noise, ..settings() };
            let signals = (0..100).filter(|&k| {
                let metric = OwnMetric::new(&features(), &rows(300, 0.0, 2 * k), 0.03);
                let noise = [k as u8; 32];
                let inputs = rows(300, 0.0, 2 * k + 1);
                let other = Sketch::new(&features(), &inputs, &settings, |_| noise);
                metric.divergence(&other, &settings).has_signal()
            });
            let signals = signals.count();
            assert!(signals <= 12, "{signals} of 100 with {epsilon:?}");
        }
    }

    #[test]
    fn nobody_is_near_by_publishing_nothing_sensible() {
        let settings = settings();
        let metric = OwnMetric::new(&features(), &rows(300, 0.0, 1), 0.03);
        let honest = metric.divergence(&sketch(&rows(300, 0.0, 2), &settings), &settings);
        for samples in [1, 2, 100, u64::MAX] {
            for number in [0.0, 1.0, -1e30, f32::MAX] {
                let (mean, covariance) = (vec![number; SIDE], None);
                let told = metric.divergence(&Sketch { samples, mean, covariance }, &settings);
                assert!(told.value > honest.value + 0.5, "{samples} {number}: {told:?}");
            }
        }
    }

    #[test]
    fn a_device_whose_inputs_are_all_the_same_measures_a_number() {
        let metric = OwnMetric::new(&features(), &[0.5; 30], 0.03);
        let same = metric.divergence(&sketch(&[0.5; 30], &settings()), &settings());
        assert_eq!(same.value, 0.0);
        let far = metric.divergence(&sketch(&rows(30, 3.0, 1), &settings()), &settings());
        assert!(far.value > 1.9, "{far:?}");
    }
}
