//! Algorithm `alg:fed_div_est` with a classifier that needs no rounds: the linear discriminant of shared random
//! features follows from the moments that each device publishes once, and every device counts its errors.
//!
//! 1. The bandwidth is agreed on, as for [sketches](super::sketch).
//! 2. Every device splits its inputs into two halves and publishes a [`Sketch`] of each.
//! 3. For a pair, the discriminant of the first halves is measured on the second ones and the other way
//!    round ([`Halves::count`]), so that every sample is measured and none by a classifier that has
//!    seen it. The errors are published.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use stlf_data::Shape;

use super::covariance::{Cholesky, Moments, add_to_diagonal, trace, triangle};
pub use super::estimate::Count;
use stlf_planning::error::Error;

use super::estimate::from_counts;
use super::features::{Embedding, Features};
use super::sketch::{Sketch, agreed_features, own_bandwidth};
use super::{Estimate, Observer, derive, in_parallel};

/// What devices agree on.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `features` | 256 | random features, F; a device publishes F(F+3) numbers | even, 2..=4096 |
/// | `embedding` | inputs | what the features are waves over | |
/// | `ridge` | 0.03 | fraction of the mean variance that is added to every direction | > 0 |
/// | `confidence` | 0.95 | of the interval | 0 < c < 1 |
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// The number of random features.
    pub features: usize,
    /// What the features are waves over.
    pub embedding: Embedding,
    /// The fraction of the mean variance that is added to every direction, above 0.
    pub ridge: f64,
    /// The confidence of the interval, between 0 and 1.
    pub confidence: f64,
}

impl Default for Settings {
    fn default() -> Settings {
        let embedding = Embedding::Inputs;
        Settings { features: 256, embedding, ridge: 0.03, confidence: 0.95 }
    }
}

impl Settings {
    /// Returns the same settings with what `change` sets; it is how a caller sets any of them.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Checks that all settings are within their ranges.
    pub fn check(&self) -> Result<(), Error> {
        super::check_features(self.features)?;
        super::check_confidence(self.confidence)?;
        super::check_above_zero("ridge", self.ridge)
    }

    /// Bytes that a device of a fleet sends: the bandwidth and two sketches to every other, and its errors in each pair.
    pub fn bytes(&self, devices: usize) -> u64 {
        let numbers = self.features + triangle(self.features);
        let published = 8 + 2 * (8 + 4 * numbers as u64);
        devices.saturating_sub(1) as u64 * (published + 16)
    }
}

/// A device's features in two halves, with the sketch of each.
#[derive(Debug, Clone)]
pub struct Halves {
    /// What the device publishes; `None` for a half without a sample.
    pub sketches: [Option<Sketch>; 2],
    features: [Vec<f32>; 2],
}

impl Halves {
    /// Splits a device's inputs at random, by its own seed.
    pub fn new(features: &Features, inputs: &[f32], shape: Shape, seed: u64) -> Halves {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let samples = inputs.len() / shape.len();
        let mut half_of: Vec<usize> = (0..samples).map(|k| k % 2).collect();
        for i in (1..samples).rev() {
            half_of.swap(i, rng.random_range(0..=i));
        }
        let mut halves = [Vec::new(), Vec::new()];
        let mut moments = [Moments::new(features.count()), Moments::new(features.count())];
        let mut half_of = half_of.into_iter();
        features.each(inputs, |vector| {
            let half = half_of.next().unwrap_or_default();
            halves[half].extend_from_slice(vector);
            moments[half].see(vector);
        });
        let sketches = moments.map(|moments| (moments.count() > 0).then(|| Sketch::of(moments)));
        Halves { sketches, features: halves }
    }

    /// How often the discriminants from this device to another take its samples for the other's.
    pub fn count(&self, discriminants: &[Option<Discriminant>; 2], side: Side) -> Count {
        let mut count = Count::default();
        for (half, discriminant) in discriminants.iter().enumerate() {
            if let Some(discriminant) = discriminant {
                count.add(discriminant.count(&self.features[1 - half], side));
            }
        }
        count
    }
}

pub use super::classifier::Side;

/// A linear classifier: positive where an input looks like the second device's.
#[derive(Debug, Clone, PartialEq)]
pub struct Discriminant {
    weights: Vec<f32>,
    offset: f64,
}

impl Discriminant {
    /// Fisher's: w = (Σ₁ + Σ₂ + λ)⁻¹(μ₂ − μ₁), midway between the means.
    pub fn new(first: &Sketch, second: &Sketch, ridge: f64) -> Discriminant {
        let side = first.mean.len();
        let covariance = |sketch: &Sketch| {
            let numbers = sketch.covariance.clone().unwrap_or_default();
            numbers.into_iter().map(f64::from).chain(std::iter::repeat(0.0))
        };
        let sums = covariance(first).zip(covariance(second)).map(|(a, b)| a + b);
        let mut pooled: Vec<f64> = sums.take(triangle(side)).collect();
        let added = (ridge * trace(&pooled, side) / side as f64).max(1e-12);
        add_to_diagonal(&mut pooled, side, added);
        let pairs =
            || first.mean.iter().zip(&second.mean).map(|(&a, &b)| (f64::from(a), f64::from(b)));
        let mut weights: Vec<f64> = pairs().map(|(a, b)| b - a).collect();
        Cholesky::new(pooled, side).solve(&mut weights);
        let middle = pairs().zip(&weights).map(|((a, b), w)| w * 0.5 * (a + b)).sum::<f64>();
        let weights = weights.iter().map(|&w| w as f32).collect();
        Discriminant { weights, offset: -middle }
    }

    fn count(&self, features: &[f32], side: Side) -> Count {
        let mut count = Count::default();
        for vector in features.chunks_exact(self.weights.len()) {
            let sum: f32 = vector.iter().zip(&self.weights).map(|(x, w)| x * w).sum();
            let second = f64::from(sum) + self.offset > 0.0;
            count.errors += u64::from(second != (side == Side::Second));
            count.samples += 1;
        }
        count
    }
}

/// The discriminants of a pair, one per half; `None` where a device has no sample in that half.
pub fn discriminants(
    first: &[Option<Sketch>; 2],
    second: &[Option<Sketch>; 2],
    settings: &Settings,
) -> [Option<Discriminant>; 2] {
    [0, 1].map(|half| {
        let (first, second) = (first[half].as_ref()?, second[half].as_ref()?);
        Some(Discriminant::new(first, second, settings.ridge))
    })
}

/// Step 2, at device `place`: its halves, whose sketches it publishes.
pub fn own_halves(
    features: &Features,
    inputs: &[f32],
    shape: Shape,
    seed: u64,
    place: usize,
) -> Halves {
    Halves::new(features, inputs, shape, derive(seed, &[2, place as u64]))
}

/// Step 3, with the errors that both devices of a pair counted.
pub fn estimate(counts: [Count; 2], settings: &Settings) -> Estimate {
    from_counts(counts, settings.confidence)
}

/// These pairs of a fleet, in parallel.
pub(super) fn measure(
    devices: &[&[f32]],
    shape: Shape,
    settings: &Settings,
    pairs: &[(usize, usize)],
    seed: u64,
    observer: &mut Observer<'_>,
) -> Result<Option<Vec<Estimate>>, Error> {
    settings.check()?;
    let places: Vec<usize> = (0..devices.len()).collect();
    let bandwidths: Vec<Option<f64>> = (places.par_iter())
        .map(|&place| own_bandwidth(devices[place], shape, settings.embedding, seed, place))
        .collect::<Result<_, _>>()?;
    let (embedding, count) = (settings.embedding, settings.features);
    let features = agreed_features(&bandwidths, shape, embedding, count, seed)?;
    let halves: Vec<Halves> = (places.par_iter())
        .map(|&place| own_halves(&features, devices[place], shape, seed, place))
        .collect();
    in_parallel(pairs, observer, |&(i, j)| {
        let both = discriminants(&halves[i].sketches, &halves[j].sketches, settings);
        let counts = [halves[i].count(&both, Side::First), halves[j].count(&both, Side::Second)];
        Ok(estimate(counts, settings))
    })
}
