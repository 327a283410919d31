//! The scale of features: networks train badly on numbers of very different sizes, and on a device whose sensor has
//! another zero or another unit than those that it learns from.
//!
//! A feature becomes its distance from a centre, in deviations. Centre and deviation are those of the whole table
//! ([`Scale::Fleet`]), so that what makes devices differ stays, or those of the device's own rows ([`Scale::Own`]), so that
//! it goes. A device's own scale needs nothing but its rows, whether they have labels or not, and does not depend on their
//! order: a device that has only its own table comes to the numbers of the simulator, which has all.

use super::OwnScale;
use crate::dataset::Values;
use crate::scaling::{ROUNDING, Scaling, Unit};
use crate::{Dataset, Shape};

/// Own scales end at this many deviations: what is further off is a wild reading.
const LIMIT: f64 = 10.0;

/// How many times the range of the middle values a value may lie outside it and still count as it is.
const REACH: f64 = 2.0;

/// Where the middle values differ by less of a deviation than this, wild readings have made the deviation.
const DROWNED: f64 = 1e-3;

/// By whose values the features of a table are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// The whole table's: mean 0 and standard deviation 1 over all devices. Only who has all rows knows it.
    Fleet,
    /// Every device's own: mean 0 and standard deviation 1 on each, but for wild readings.
    Own,
    /// Both side by side, the fleet's first: twice as many features.
    Both,
    /// Features stay as they are in the table.
    None,
}

impl Scale {
    /// Every scale that users can choose.
    pub const ALL: [Scale; 4] = [Scale::Fleet, Scale::Own, Scale::Both, Scale::None];

    /// Returns the name as users write it.
    pub const fn name(self) -> &'static str {
        match self {
            Scale::Fleet => "fleet",
            Scale::Own => "own",
            Scale::Both => "both",
            Scale::None => "none",
        }
    }

    /// Whether one device's rows are not enough for it.
    pub const fn needs_fleet(self) -> bool {
        matches!(self, Scale::Fleet | Scale::Both)
    }

    /// Whether a device's inputs depend on which rows it has besides.
    pub const fn needs_own(self) -> bool {
        matches!(self, Scale::Own | Scale::Both)
    }
}

/// Gives devices their samples as inputs, features to scale.
pub struct Scaler<'a> {
    data: &'a Dataset,
    scale: Scale,
    /// The fleet's unit of every feature, where it is used.
    fleet: Vec<Unit>,
}

impl<'a> Scaler<'a> {
    /// Scales the samples of these data, which are all devices'. Pictures stay as they are: pixels are alike everywhere.
    pub fn new(data: &'a Dataset, scale: Scale) -> Scaler<'a> {
        match data.values() {
            Values::Pixels(_) => Scaler { data, scale: Scale::None, fleet: Vec::new() },
            Values::Features(all) => {
                let rows = if scale.needs_fleet() { &all[..] } else { &[] };
                Scaler { data, scale, fleet: units(rows, data, Unit::of_fleet) }
            }
        }
    }

    /// Returns the scale in effect, which is none for pictures.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Returns the shape that one input has after scaling.
    pub fn shape(&self) -> Shape {
        let shape = self.data.shape();
        let times = if self.scale == Scale::Both { 2 } else { 1 };
        match self.data.series() {
            Some(_) => Shape { channels: times * shape.channels, ..shape },
            None => Shape { width: times * shape.width, ..shape },
        }
    }

    /// How samples of one device become inputs; these must be all that it has.
    pub fn scaling(&self, samples: &[usize]) -> Scaling {
        self.with_own(self.own_units(samples))
    }

    /// How samples of a device with this scale of its own become inputs.
    pub fn scaling_by(&self, own: &OwnScale) -> Scaling {
        self.with_own(own.units())
    }

    fn with_own(&self, own: Vec<Unit>) -> Scaling {
        match self.data.values() {
            Values::Pixels(_) => Scaling::Pixels,
            Values::Features(_) => {
                let units = [self.fleet.clone(), own].into_iter();
                let units = units.filter(|units| !units.is_empty()).collect();
                let (columns, series) = (self.data.columns().to_vec(), self.data.series().cloned());
                Scaling::Features { columns, units, series }
            }
        }
    }

    /// The scale of the samples of one device, which must be all that it has, with the names of the features.
    pub fn own_scale(&self, samples: &[usize], columns: &[String]) -> OwnScale {
        OwnScale::new(columns, &self.own_units(samples), samples.len())
    }

    /// The samples as they are in the table, where their inputs are not.
    pub fn unscaled(&self, samples: &[usize]) -> Option<Vec<f64>> {
        let width = self.data.shape().len();
        match self.data.values() {
            Values::Features(all) if self.scale != Scale::None => {
                let row = |sample: &usize| &all[sample * width..(sample + 1) * width];
                Some(samples.iter().flat_map(row).copied().collect())
            }
            _ => None,
        }
    }

    /// The units of a device's samples, where they are used.
    fn own_units(&self, samples: &[usize]) -> Vec<Unit> {
        let rows = self.unscaled(samples).filter(|_| self.scale.needs_own()).unwrap_or_default();
        units(&rows, self.data, Unit::of_device)
    }
}

/// The unit of every feature, or of every channel, of these samples of the data; none where there are no samples.
fn units(samples: &[f64], data: &Dataset, unit: impl Fn(&[f64]) -> Unit) -> Vec<Unit> {
    if samples.is_empty() {
        return Vec::new();
    }
    let readings = data.readings();
    let features = data.shape().len() / readings;
    let of = |at: usize| samples.chunks_exact(readings).skip(at).step_by(features).flatten();
    (0..features).map(|at| unit(&of(at).copied().collect::<Vec<f64>>())).collect()
}

impl Unit {
    /// Mean and standard deviation of all values, unless wild readings drown the others.
    fn of_fleet(values: &[f64]) -> Unit {
        let unit = Unit::of_values(values.iter().copied(), f64::INFINITY);
        let (low, high) = middle(&sorted(values));
        if low < high && high - low < DROWNED * unit.deviation {
            return Unit::of_device(values);
        }
        unit
    }

    /// Mean and standard deviation of the values as they are when those far outside the middle are brought to its edge.
    fn of_device(values: &[f64]) -> Unit {
        // Sums in one order give the same bits whatever order the rows are in.
        let sorted = sorted(values);
        let (low, high) = middle(&sorted);
        let reach = REACH * (high - low);
        Unit::of_values(sorted.into_iter().map(|v| v.clamp(low - reach, high + reach)), LIMIT)
    }

    fn of_values(values: impl ExactSizeIterator<Item = f64> + Clone, limit: f64) -> Unit {
        let count = values.len() as f64;
        let centre = values.clone().map(|v| v / count).sum::<f64>();
        let square = |v: f64| (v - centre) * (v - centre) / count;
        Unit { centre, deviation: values.map(square).sum::<f64>().sqrt(), limit }
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// From where to where the middle nine tenths of sorted values go. Where these are all the same, as with an alarm that is
/// almost never on, it is the middle of the others that counts, from the common value on: else the rare ones, which are
/// all that the feature says, would be taken for wild.
fn middle(sorted: &[f64]) -> (f64, f64) {
    let (low, high) = inner(sorted);
    let alike = |a: f64, b: f64| (a - b).abs() <= ROUNDING * a.abs().max(b.abs());
    if !alike(low, high) {
        return (low, high);
    }
    let rare: Vec<f64> = sorted.iter().copied().filter(|&v| !alike(v, low)).collect();
    if rare.is_empty() {
        return (low, high);
    }
    let (first, last) = inner(&rare);
    (first.min(low), last.max(high))
}

/// The first and the last of sorted values without a twentieth at either end, which is one at least where there are three: one wild
/// reading among few is not to count either.
fn inner(sorted: &[f64]) -> (f64, f64) {
    let outside = (sorted.len() / 20).max(usize::from(sorted.len() > 2));
    (sorted[outside], sorted[sorted.len() - 1 - outside])
}

#[cfg(test)]
mod tests;
