//! One message per device: moments of shared random features of its inputs. How far two devices' means lie
//! apart, measured by the spread of the features, says how well a classifier could tell them apart.
//!
//! 1. A [bandwidth](Bandwidth) is known beforehand, or agreed on.
//! 2. With it and a shared seed every device builds the same [`Features`] and publishes its [`Sketch`].
//! 3. Whoever has the sketches makes a [`Fleet`] of them, which gives d̂ of any pair and the nearest senders.
//!
//! Each step is a function without I/O; [`super::measure`] runs them in memory.

use rand::{RngExt, SeedableRng};
use rand_chacha::{ChaCha8Rng, ChaCha20Rng};
use rayon::prelude::*;
use stlf_data::Shape;

pub use super::bandwidth::{Bandwidth, agree, own_bandwidth};
use stlf_planning::error::Error;

use super::capacity::base_noise;
use super::covariance::{Moments, triangle};
use super::disclosure::independent;
use super::features::{Embedded, Embedding, Features};
use super::fleet::{Candidate, Fleet};
use super::own_metric::OwnMetrics;
use super::privacy::{Privacy, normal};
use super::rounding::rounded;
use super::{Estimate, Observer, derive, in_parallel};

/// How a distance of means becomes d̂.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Statistic {
    /// By the devices' mean covariance: with means Δ standard deviations apart, the best linear classifier
    /// errs Φ(−Δ/2) of the time if the features are normal. Devices publish covariances too.
    Separation {
        /// The fraction of the mean variance that is added to every direction, so that those in which the data hardly
        /// vary do not decide.
        ridge: f64,
    },
    /// The same, where every device measures by its own covariance, which it keeps. Devices publish means alone; of what the two of a
    /// pair find, the larger counts.
    OwnSeparation {
        /// The fraction of the mean variance that is added to every direction.
        ridge: f64,
    },
    /// Maximum mean discrepancy (Gretton et al. 2012), brought to 0 to 2. Devices publish means alone.
    Discrepancy {
        /// d̂ over distance, where that is small.
        gain: f64,
    },
}

impl Statistic {
    /// The statistic of this name in files, with its default setting.
    pub const SEPARATION: Statistic = Statistic::Separation { ridge: 0.01 };
    /// What devices measure by, with its default setting.
    pub const OWN_SEPARATION: Statistic = Statistic::OwnSeparation { ridge: OWN_RIDGE };
    /// The statistic of this name in files, with its default setting.
    pub const DISCREPANCY: Statistic = Statistic::Discrepancy { gain: 10.0 };
}

/// Bytes of the digest that stands for means that another device has.
const DIGEST: u64 = 16;

/// The usual ridge where a device measures by its own covariance.
const OWN_RIDGE: f64 = 0.03;

/// What devices agree on before they sketch.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `features` | 256 | random features, F; a device publishes F, or F(F+3)/2 with covariances | even, 2..=4096 |
/// | `embedding` | inputs | what the features are waves over | |
/// | `statistic` | separation, ridge 0.01 | how distances become d̂ | ridge > 0, gain > 0 |
/// | `bandwidth` | median | over which distance the features vary | > 0 |
/// | `confidence` | 0.95 | of the interval | 0 < c < 1 |
/// | `privacy` | none | more noise on what is published; with means alone and a known bandwidth only | |
/// | `privacy_required` | no | whether devices add that noise that have too few samples for it | |
/// | `overlap` | 1 | how many samples a reading lies in at most | ≥ 1 |
/// | `base_noise` | no | whether means have so much noise that each tells a few [bits](super::capacity) at most | |
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// The number of random features.
    pub features: usize,
    /// What the features are waves over.
    pub embedding: Embedding,
    /// How distances become d̂.
    pub statistic: Statistic,
    /// The distance over which the features vary.
    pub bandwidth: Bandwidth,
    /// The confidence of the interval, between 0 and 1.
    pub confidence: f64,
    /// Noise on what is published that hides single samples, beside that which means always have.
    pub privacy: Option<Privacy>,
    /// Whether every device adds noise, or only those where it is small beside what they publish. Everyone knows which these are,
    /// since a device says how many samples it has.
    pub privacy_required: bool,
    /// The largest number of samples that a reading lies in: 1, or more where windows overlap. Noise hides a reading then, and so many samples count as one.
    pub overlap: usize,
    /// Whether means have so much noise that each tells a few [bits](super::capacity) at most.
    pub base_noise: bool,
}

/// Devices add noise of their own accord where it has at most this length: with ε = 1, from about 1,200 samples on for 16 means and 2,400 for 64. It then changes d̂ of
/// two devices that are alike by less than 0.2.
const SMALL_NOISE: f64 = 0.025;

/// The ratio of what one sample moves to noise that promises nothing: ε of half a million.
const NO_NOISE: f64 = 1e3;

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            features: 256,
            embedding: Embedding::Inputs,
            statistic: Statistic::SEPARATION,
            bandwidth: Bandwidth::Median,
            confidence: 0.95,
            privacy: None,
            privacy_required: false,
            overlap: 1,
            base_noise: false,
        }
    }
}

impl Settings {
    /// Returns the same settings with what `change` sets; it is how a caller sets any of them.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The default: few bounded means, at a bandwidth that no member chooses. Inputs of
    /// few numbers get by with fewer features, and then fewer samples [hide](super::disclosure) behind them.
    pub fn means(shape: Shape) -> Settings {
        Settings::means_over(Embedding::Inputs, shape)
    }

    /// The same over an embedding of the inputs.
    pub fn means_over(embedding: Embedding, shape: Shape) -> Settings {
        let alone = Settings::discrepancy(embedding, shape);
        let bandwidth = alone.bandwidth.times(2.0);
        Settings { statistic: Statistic::OWN_SEPARATION, bandwidth, ..alone }
    }

    /// The same where a third party compares the means, who has no inputs of its own to measure by.
    pub fn discrepancy(embedding: Embedding, shape: Shape) -> Settings {
        Settings {
            features: (4 * shape.len()).clamp(16, 64),
            embedding,
            statistic: Statistic::DISCREPANCY,
            bandwidth: Bandwidth::usual(embedding, shape),
            privacy: Some(Privacy::usual()),
            base_noise: true,
            ..Settings::default()
        }
    }

    /// Checks that all settings are within their ranges.
    pub fn check(&self) -> Result<(), Error> {
        super::check_features(self.features)?;
        super::check_confidence(self.confidence)?;
        match self.statistic {
            Statistic::Separation { ridge } | Statistic::OwnSeparation { ridge } => {
                super::check_above_zero("ridge", ridge)?
            }
            Statistic::Discrepancy { gain } => super::check_above_zero("gain", gain)?,
        }
        self.bandwidth.check()?;
        let Some(privacy) = self.privacy else { return Ok(()) };
        if self.publishes_covariance() {
            let message = "noise that hides a sample in a covariance hides the covariance too";
            return Err(Error::conflict("divergence.privacy", "divergence.statistic", message)
                .with_hint("use the statistic discrepancy, which publishes only means"));
        }
        if self.bandwidth == Bandwidth::Median {
            let message = "the median distance would be published without noise";
            return Err(Error::conflict("divergence.privacy", "divergence.bandwidth", message)
                .with_hint("use a bandwidth that is fixed in advance"));
        }
        privacy.check()
    }

    /// Whether devices publish covariances, or means alone.
    pub fn publishes_covariance(&self) -> bool {
        matches!(self.statistic, Statistic::Separation { .. })
    }

    /// The ridge where a device measures by its own covariance, which with other statistics nobody but itself hears of.
    pub(super) fn own_ridge(&self) -> f64 {
        match self.statistic {
            Statistic::OwnSeparation { ridge } => ridge,
            Statistic::Separation { .. } | Statistic::Discrepancy { .. } => OWN_RIDGE,
        }
    }

    /// Bytes that a device of a fleet sends in an epoch in which its means are those that all others have: a digest, and d̂ of each pair.
    pub fn bytes_unchanged(&self, devices: usize) -> u64 {
        devices.saturating_sub(1) as u64 * (DIGEST + 8)
    }

    /// The privacy of what a device with so many samples publishes; `None` if it adds no noise for it.
    pub fn privacy_of(&self, samples: u64) -> Option<Privacy> {
        let small = |privacy: &Privacy| {
            (self.features as f64).sqrt() * self.of_mean(privacy, samples) <= SMALL_NOISE
        };
        self.privacy.filter(|privacy| self.privacy_required || small(privacy))
    }

    /// The standard deviation of the noise on each number that a device with so many samples publishes.
    pub(super) fn noise(&self, samples: u64) -> f64 {
        let private =
            self.privacy_of(samples).map_or(0.0, |privacy| self.of_mean(&privacy, samples));
        let apart = self.apart(samples);
        let base = if self.base_noise { base_noise(self.features, apart) } else { 0.0 };
        private.max(base)
    }

    /// The number of samples, where those that share a reading count as one.
    pub(super) fn apart(&self, samples: u64) -> f64 {
        samples.max(1) as f64 / self.overlap as f64
    }

    /// How far one sample moves the means of so many at most, in standard deviations of their noise; without noise a number that stands for any.
    pub fn ratio(&self, samples: u64) -> f64 {
        (2.0 / self.apart(samples) / self.noise(samples)).min(NO_NOISE)
    }

    /// The standard deviation of the noise of (ε, δ) on each number of a mean over this many inputs. Features have length 1, so that replacing one input moves the
    /// mean by 2/n at most, and replacing a reading by that for each input that it lies in.
    fn of_mean(&self, privacy: &Privacy, samples: u64) -> f64 {
        privacy.deviation(2.0 / self.apart(samples))
    }

    /// Bytes that a device of a fleet sends in its first epoch: what it publishes to every other, and d̂ of each pair. While its means
    /// stay the same, devices send a digest of sixteen bytes instead of them in later ones.
    pub fn bytes(&self, devices: usize) -> u64 {
        devices.saturating_sub(1) as u64 * (self.published_bytes() + 8)
    }

    /// Bytes of a device's sketch, and of the bandwidth before it where devices agree on one.
    fn published_bytes(&self) -> u64 {
        let moments = match self.publishes_covariance() {
            true => 4 * (self.features + triangle(self.features)),
            false => 2 * self.features,
        };
        let bandwidth = if self.bandwidth == Bandwidth::Median { 8 } else { 0 };
        bandwidth + 8 + moments as u64
    }
}

/// What a device publishes.
#[derive(Debug, Clone, PartialEq)]
pub struct Sketch {
    /// The number of inputs; of means with base noise alone, by how many [different ones](super::disclosure::independent) they are.
    pub samples: u64,
    /// The mean of their features.
    pub mean: Vec<f32>,
    /// Their covariance, the lower triangle row by row. In a large fleet it is enough that some devices
    /// publish it; without it, the others' stands for it.
    pub covariance: Option<Vec<f32>>,
}

impl Sketch {
    /// Creates a sketch from moments of features, with their covariance.
    pub(super) fn of(moments: Moments) -> Sketch {
        let samples = moments.count();
        let (mean, covariance) = moments.finish();
        Sketch { samples, mean: single(mean), covariance: Some(single(covariance)) }
    }

    /// A device's sketch, without noise.
    fn exact(features: &Features, inputs: &[f32], settings: &Settings) -> Sketch {
        if settings.publishes_covariance() {
            let mut moments = Moments::new(features.count());
            features.each(inputs, |vector| moments.see(vector));
            return Sketch::of(moments);
        }
        let mut mean = vec![0.0; features.count()];
        let mut samples = 0;
        features.each(inputs, |vector| {
            mean.iter_mut().zip(vector).for_each(|(sum, &x)| *sum += f64::from(x));
            samples += 1;
        });
        mean.iter_mut().for_each(|sum| *sum /= samples as f64);
        // Base noise hides samples among as many as are not there again.
        if settings.base_noise && settings.privacy_of(samples).is_none() {
            samples = independent(inputs, features.numbers()).max(1.0) as u64;
        }
        Sketch { samples, mean: single(mean), covariance: None }
    }

    /// A device's sketch as it publishes it. Where means alone have noise, it is drawn from the seed that `noise_seed` gives for
    /// the sketch without it; that must be a seed which nobody else can know. Then another sketch has other noise, so that the
    /// difference of two says nothing about it; and the same sketch has the same, so that it cannot be averaged away. The means are
    /// then rounded to sixteen bits.
    pub fn new(
        features: &Features,
        inputs: &[f32],
        settings: &Settings,
        noise_seed: impl FnOnce(&Sketch) -> [u8; 32],
    ) -> Sketch {
        let mut sketch = Sketch::exact(features, inputs, settings);
        if settings.publishes_covariance() {
            return sketch;
        }
        let deviation = settings.noise(sketch.samples);
        let mut rng = (deviation > 0.0).then(|| ChaCha20Rng::from_seed(noise_seed(&sketch)));
        let rounded = rounded(settings, sketch.samples);
        for mean in &mut sketch.mean {
            let noise = rng.as_mut().map_or(0.0, |rng| deviation * normal(rng));
            *mean = rounded(f64::from(*mean) + noise);
        }
        sketch
    }
}

fn single(numbers: Vec<f64>) -> Vec<f32> {
    numbers.into_iter().map(|x| x as f32).collect()
}

/// Step 2, everywhere: the features that follow from what all published; the rest comes from the seed.
///
/// # Errors
/// An embedding that inputs of this shape do not allow.
pub fn agreed_features(
    bandwidths: &[Option<f64>],
    shape: Shape,
    embedding: Embedding,
    count: usize,
    seed: u64,
) -> Result<Features, Error> {
    let shared = derive(seed, &[0]);
    let embedded = Embedded::new(embedding, shape, derive(shared, &[0]))?;
    Features::new(&embedded, count, agree(bandwidths), derive(shared, &[1]))
}

/// Step 2, at device `place` of a simulated fleet: the sketch that it publishes. Everyone knows the seed of its noise.
fn simulated_sketch(
    features: &Features,
    inputs: &[f32],
    settings: &Settings,
    seed: u64,
    place: usize,
) -> Sketch {
    Sketch::new(features, inputs, settings, |_| {
        ChaCha8Rng::seed_from_u64(derive(seed, &[2, place as u64])).random()
    })
}

/// The sketches of a fleet; `None` if the observer ended it.
fn sketch_all(
    features: &Features,
    devices: &[&[f32]],
    settings: &Settings,
    seed: u64,
    observer: &mut Observer<'_>,
) -> Result<Option<Vec<Sketch>>, Error> {
    let indices: Vec<usize> = (0..devices.len()).collect();
    in_parallel(&indices, observer, |&i| {
        Ok(simulated_sketch(features, devices[i], settings, seed, i))
    })
}

/// Step 1 and the first half of step 2, in memory: the features that the devices of a fleet come to share.
///
/// # Errors
/// A setting out of its range.
fn fleet_features(
    devices: &[&[f32]],
    shape: Shape,
    settings: &Settings,
    seed: u64,
) -> Result<Features, Error> {
    settings.check()?;
    let bandwidths: Vec<Option<f64>> = match settings.bandwidth.known() {
        Some(width) => vec![Some(width)],
        None => (devices.par_iter().enumerate())
            .map(|(place, inputs)| own_bandwidth(inputs, shape, settings.embedding, seed, place))
            .collect::<Result<_, _>>()?,
    };
    let (embedding, count) = (settings.embedding, settings.features);
    agreed_features(&bandwidths, shape, embedding, count, seed)
}

/// These pairs of a fleet.
pub(super) fn measure(
    devices: &[&[f32]],
    shape: Shape,
    settings: &Settings,
    pairs: &[(usize, usize)],
    seed: u64,
    observer: &mut Observer<'_>,
) -> Result<Option<Vec<Estimate>>, Error> {
    let features = fleet_features(devices, shape, settings, seed)?;
    let Some(sketches) = sketch_all(&features, devices, settings, seed, observer)? else {
        return Ok(None);
    };
    let of_all = |divergence: &(dyn Fn(usize, usize) -> Estimate + Sync)| {
        pairs.par_iter().map(|&(i, j)| divergence(i, j)).collect()
    };
    Ok(Some(match settings.statistic {
        Statistic::OwnSeparation { ridge } => {
            let metrics = OwnMetrics::new(&features, devices, shape, &sketches, settings, ridge);
            of_all(&|i, j| metrics.divergence(i, j))
        }
        Statistic::Separation { .. } | Statistic::Discrepancy { .. } => {
            let fleet = Fleet::new(&sketches, settings)?;
            of_all(&|i, j| fleet.divergence(i, j))
        }
    }))
}

/// For every receiver of a fleet the `count` nearest senders other than itself, nearest first; `None` if the observer ended it. Where
/// devices measure by covariances of their own, the distances of their means choose the senders.
///
/// # Errors
/// As [`super::measure`].
#[allow(clippy::too_many_arguments, reason = "a fleet, how it measures, and what is asked")]
pub fn nearest(
    devices: &[&[f32]],
    shape: Shape,
    settings: &Settings,
    senders: &[usize],
    receivers: &[usize],
    count: usize,
    seed: u64,
    observer: &mut Observer<'_>,
) -> Result<Option<Vec<Candidate>>, Error> {
    let features = fleet_features(devices, shape, settings, seed)?;
    let Some(sketches) = sketch_all(&features, devices, settings, seed, observer)? else {
        return Ok(None);
    };
    let Statistic::OwnSeparation { ridge } = settings.statistic else {
        return Ok(Some(Fleet::new(&sketches, settings)?.nearest(senders, receivers, count)));
    };
    let by_means = Settings { statistic: Statistic::DISCREPANCY, ..*settings };
    let mut found = Fleet::new(&sketches, &by_means)?.nearest(senders, receivers, count);
    let metrics = OwnMetrics::new(&features, devices, shape, &sketches, settings, ridge);
    found.par_iter_mut().for_each(|c| c.divergence = metrics.divergence(c.from, c.to));
    found.sort_by(|a, b| a.to.cmp(&b.to).then(a.divergence.value.total_cmp(&b.divergence.value)));
    Ok(Some(found))
}
