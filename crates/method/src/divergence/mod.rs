//! d̂_ij, how far apart the data of two devices are, measured without moving data.
//!
//! Three estimators give the same quantity, the H-divergence 0..2 of the paper's Definition
//! (2 where a classifier tells all samples of two devices apart, 0 where none can):
//!
//! - [`classifier`]: the paper's Algorithm `alg:fed_div_est`. A two-class network per pair, trained by
//!   both in turns; parameters cross the network in every round.
//! - [`discriminant`]: the same with a linear classifier over shared random features, which follows from one message a device
//!   instead of rounds of training. From that message others can rebuild samples.
//! - [`sketch`]: every device publishes moments of shared random features of its inputs, one message a device. What a linear
//!   classifier would err is computed from them rather than counted. The default, [means alone](sketch::Settings::means), is one
//!   of them: others cannot rebuild samples from it.
//!
//! [`measure`] runs any of them over all pairs of a fleet. All are made of steps without I/O (a message in,
//! a message out), which a simulator and a node on a real network drive alike.

pub mod bandwidth;
pub mod capacity;
pub mod classifier;
pub(crate) mod covariance;
pub mod disclosure;
pub mod discriminant;
pub mod drift;
mod estimate;
mod features;
mod fleet;
pub mod gaussian_mechanism;
pub mod leverage;
mod own_metric;
mod possible_rows;
pub mod privacy;
pub mod replies;
mod rounding;
mod separation;
pub mod sketch;
mod windows;

use std::ops::Bound::Included;
use std::ops::ControlFlow;
use std::sync::Mutex;

use rayon::prelude::*;
use stlf_data::Shape;

pub use estimate::{Estimate, from_error};
pub use features::{Embedded, Embedding, Features};
pub use fleet::{Candidate, Fleet};
pub use own_metric::{OwnMetric, OwnMoments};

use stlf_planning::error::{Error, Range, Reason};

use crate::seeds::derive;

/// The estimator and its settings.
#[derive(Debug, Clone, PartialEq)]
pub enum Settings {
    /// Algorithm 1 for every pair.
    Classifier(classifier::Settings),
    /// One message per device, and its errors in each pair.
    Discriminant(discriminant::Settings),
    /// One message per device.
    Sketch(sketch::Settings),
}

impl Settings {
    /// The default for inputs of a shape: [means alone](sketch::Settings::means).
    pub fn means(shape: Shape) -> Settings {
        Settings::Sketch(sketch::Settings::means(shape))
    }

    /// The largest number of samples that a reading lies in: 1, or more where windows overlap.
    pub fn overlap(&self) -> usize {
        match self {
            Settings::Sketch(settings) => settings.overlap,
            Settings::Classifier(_) | Settings::Discriminant(_) => 1,
        }
    }

    /// Bytes that each device of a fleet sends, of which joules follow by its rate and power.
    ///
    /// # Errors
    /// Inputs of this shape that the classifier's network does not take.
    pub fn bytes(&self, devices: usize, shape: Shape) -> Result<u64, Error> {
        match self {
            Settings::Classifier(settings) => settings.bytes(devices, shape),
            Settings::Discriminant(settings) => Ok(settings.bytes(devices)),
            Settings::Sketch(settings) => Ok(settings.bytes(devices)),
        }
    }
}

/// How far a measurement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Units of work that are done: pairs for the classifier, devices for the sketch.
    pub done: usize,
    /// The total number of units of work.
    pub total: usize,
}

/// Hears of progress, from any thread but one at a time, and may end the measurement.
pub type Observer<'a> = dyn FnMut(Progress) -> ControlFlow<()> + Send + 'a;

/// The divergences of all pairs of a fleet, and what measuring them cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    devices: usize,
    /// Row by row above the diagonal.
    pairs: Vec<Estimate>,
    /// What each device sent.
    sent: Vec<u64>,
}

impl Measurement {
    fn new(devices: usize, pairs: Vec<Estimate>, sent: Vec<u64>) -> Measurement {
        debug_assert_eq!(pairs.len(), pair_count(devices));
        Measurement { devices, pairs, sent }
    }

    /// How many devices there are.
    pub fn devices(&self) -> usize {
        self.devices
    }

    /// The estimate for two different devices, in either order.
    pub fn get(&self, i: usize, j: usize) -> Estimate {
        self.pairs[pair_index(self.devices, i.min(j), i.max(j))]
    }

    /// All pairs i < j.
    pub fn pairs(&self) -> impl ExactSizeIterator<Item = (usize, usize, Estimate)> + '_ {
        let indices = all_pairs(self.devices);
        indices.into_iter().zip(&self.pairs).map(|((i, j), estimate)| (i, j, *estimate))
    }

    /// d̂ as a square, row by row, zero on the diagonal.
    pub fn matrix(&self) -> Vec<f64> {
        let n = self.devices;
        let mut matrix = vec![0.0; n * n];
        for (i, j, estimate) in self.pairs() {
            matrix[i * n + j] = estimate.value;
            matrix[j * n + i] = estimate.value;
        }
        matrix
    }

    /// The bytes that each device sends to the others, of which joules follow by its rate and power.
    pub fn sent(&self) -> &[u64] {
        &self.sent
    }

    /// All bytes that cross the network.
    pub fn bytes(&self) -> u64 {
        self.sent.iter().sum()
    }
}

/// Measures all pairs of a fleet. `devices` are the inputs of each, all that it has, one sample after the
/// other. The same seed gives the same numbers whatever the number of threads.
///
/// `Ok(None)`: the observer ended it.
///
/// # Errors
/// A setting out of its range, or a device without samples or with a part of one.
pub fn measure(
    devices: &[&[f32]],
    shape: Shape,
    settings: &Settings,
    seed: u64,
    observer: &mut Observer<'_>,
) -> Result<Option<Measurement>, Error> {
    let pairs = all_pairs(devices.len());
    let estimates = measure_pairs(devices, shape, settings, &pairs, seed, observer)?;
    let sent = vec![settings.bytes(devices.len(), shape)?; devices.len()];
    Ok(estimates.map(|estimates| Measurement::new(devices.len(), estimates, sent)))
}

/// Measures some pairs of a fleet, each a smaller index and a larger one; the numbers are those that [`measure`]
/// gives, whatever the other pairs are.
///
/// # Errors
/// As [`measure`].
pub fn measure_pairs(
    devices: &[&[f32]],
    shape: Shape,
    settings: &Settings,
    pairs: &[(usize, usize)],
    seed: u64,
    observer: &mut Observer<'_>,
) -> Result<Option<Vec<Estimate>>, Error> {
    check(devices, shape)?;
    if pairs.is_empty() {
        return Ok(Some(Vec::new()));
    }
    match settings {
        Settings::Classifier(s) => classifier::measure(devices, shape, s, pairs, seed, observer),
        Settings::Discriminant(s) => {
            discriminant::measure(devices, shape, s, pairs, seed, observer)
        }
        Settings::Sketch(s) => sketch::measure(devices, shape, s, pairs, seed, observer),
    }
}

fn check(devices: &[&[f32]], shape: Shape) -> Result<(), Error> {
    for (device, inputs) in devices.iter().enumerate() {
        if inputs.is_empty() || inputs.len() % shape.len().max(1) != 0 {
            let Shape { channels, height, width } = shape;
            let (numbers, shape) = (inputs.len(), [channels, height, width]);
            let reason = Reason::NotWhole { numbers, shape };
            return Err(Error::new(format!("devices[{device}]"), reason)
                .with_hint("every device needs a sample"));
        }
        if let Some(&input) = inputs.iter().find(|input| !input.is_finite()) {
            Range::FINITE.check(input.into(), || format!("devices[{device}]"))?;
        }
    }
    Ok(())
}

/// How many features there may be: each angle gives a sine and a cosine.
const FEATURES: Range = Range::new(Included(2.0), Included(4096.0)).even();

fn check_features(features: usize) -> Result<(), Error> {
    FEATURES.check(features as f64, || "divergence.features")
}

fn check_confidence(confidence: f64) -> Result<(), Error> {
    let range = Range::BETWEEN_ZERO_AND_ONE.as_formula('c');
    range.check(confidence, || "divergence.confidence")
}

fn check_above_zero(field: &str, value: f64) -> Result<(), Error> {
    Range::ABOVE_ZERO.check(value, || format!("divergence.{field}"))
}

/// Does `work` on all items in parallel and tells the observer of each; `None` if it ended the work.
fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    observer: &mut Observer<'_>,
    work: impl Fn(&T) -> Result<R, Error> + Sync,
) -> Result<Option<Vec<R>>, Error> {
    let total = items.len();
    let watch = Mutex::new(Watch { done: 0, ended: false, observer });
    let results: Result<Option<Vec<R>>, Error> = items
        .par_iter()
        .map(|item| {
            // Items under way when the observer ends the work are finished and forgotten.
            if watch.lock().map_or(true, |watch| watch.ended) {
                return Ok(None);
            }
            let result = work(item)?;
            if let Ok(mut watch) = watch.lock()
                && !watch.ended
            {
                watch.done += 1;
                let progress = Progress { done: watch.done, total };
                watch.ended = (watch.observer)(progress).is_break();
            }
            Ok(Some(result))
        })
        .collect();
    let whole = watch.into_inner().is_ok_and(|watch| watch.done == total);
    Ok(results?.filter(|_| whole))
}

/// The observer, shared by threads.
struct Watch<'a, 'b> {
    done: usize,
    ended: bool,
    observer: &'a mut Observer<'b>,
}

fn pair_count(devices: usize) -> usize {
    devices * devices.saturating_sub(1) / 2
}

fn pair_index(devices: usize, i: usize, j: usize) -> usize {
    debug_assert!(i < j && j < devices);
    i * (2 * devices - i - 1) / 2 + j - i - 1
}

/// All pairs i < j, row by row.
pub fn all_pairs(devices: usize) -> Vec<(usize, usize)> {
    (0..devices).flat_map(|i| (i + 1..devices).map(move |j| (i, j))).collect()
}
