//! How a sample becomes an input, complete enough that samples which come later become inputs in the same way.

use crate::Dataset;
use crate::dataset::Values;
use crate::features::Series;

/// Values whose difference is a smaller part of them are the same but for rounding.
pub(crate) const ROUNDING: f64 = 1e-12;

/// How one feature becomes an input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    /// The value that becomes 0, in the unit of the table.
    pub centre: f64,
    /// The distance from it that becomes 1; at least 0.
    pub deviation: f64,
    /// Inputs end here, on both sides of 0; infinite where they do not.
    pub limit: f64,
}

impl Unit {
    /// Whether its values never change but for rounding, so that inputs are 0.
    pub fn is_constant(self) -> bool {
        self.deviation <= ROUNDING * self.centre.abs()
    }

    /// Returns a value in this unit, within the limit; 0 if the feature is constant.
    pub fn of(self, value: f64) -> f32 {
        if self.is_constant() {
            return 0.0;
        }
        within(self.limit, (value - self.centre) / self.deviation)
    }
}

/// How the samples of one device become inputs.
#[derive(Debug, Clone, PartialEq)]
pub enum Scaling {
    /// Pixels, of which 0 becomes −1 and 255 becomes 1.
    Pixels,
    /// Rows of a table, or windows of one.
    Features {
        /// The names of the features, or of the channels of a series, in their order; none where the data did not come from a table.
        columns: Vec<String>,
        /// The units of all features or channels; where there are several lists, the inputs by one follow those by the other. Without any, features
        /// stay as they are.
        units: Vec<Vec<Unit>>,
        /// What samples are cut from, where they are windows.
        series: Option<Series>,
    },
}

impl Scaling {
    /// The inputs of some samples of data that are of this kind, one after the other.
    pub fn inputs(&self, data: &Dataset, samples: &[usize]) -> Vec<f32> {
        let (Scaling::Features { units, .. }, Values::Features(all)) = (self, data.values()) else {
            return data.inputs(samples);
        };
        if units.is_empty() {
            return data.inputs(samples);
        }
        let (numbers, readings) = (data.shape().len(), data.readings());
        let rows = samples.iter().map(|&sample| &all[sample * numbers..(sample + 1) * numbers]);
        scaled(rows, units, readings)
    }

    /// The inputs of rows or windows that lie one after the other, of so many readings of each channel; of a row, one.
    ///
    /// # Panics
    /// If these are pixels.
    pub fn inputs_of(&self, values: &[f64], readings: usize) -> Vec<f32> {
        let Scaling::Features { units, .. } = self else { panic!("features, not pixels") };
        match units.first() {
            None => values.iter().map(|&value| value as f32).collect(),
            Some(first) => {
                scaled(values.chunks_exact((first.len() * readings).max(1)), units, readings)
            }
        }
    }
}

/// An input that ends at a limit. Written out: `clamp` checks its limits every time, and then nothing is computed in registers.
fn within(limit: f64, input: f64) -> f32 {
    let input = if input < -limit { -limit } else { input };
    (if input > limit { limit } else { input }) as f32
}

/// Units of the columns of a table, each part of them in a list of its own, so that rows are scaled in registers.
struct InColumns {
    centres: Vec<f64>,
    deviations: Vec<f64>,
    limits: Vec<f64>,
}

impl InColumns {
    fn new(units: &[Unit]) -> InColumns {
        // By an infinite deviation everything is 0.
        let deviation =
            |unit: &Unit| if unit.is_constant() { f64::INFINITY } else { unit.deviation };
        InColumns {
            centres: units.iter().map(|unit| unit.centre).collect(),
            deviations: units.iter().map(deviation).collect(),
            limits: units.iter().map(|unit| unit.limit).collect(),
        }
    }

    fn scale(&self, row: &[f64], inputs: &mut [f32]) {
        let units = self.centres.iter().zip(&self.deviations).zip(&self.limits);
        for ((input, value), ((centre, deviation), &limit)) in inputs.iter_mut().zip(row).zip(units)
        {
            // A zero that is added takes the sign off another.
            *input = within(limit, (value - centre) / deviation) + 0.0;
        }
    }
}

/// Rows of a table, each in all units.
fn scaled_rows<'r>(
    rows: impl ExactSizeIterator<Item = &'r [f64]>,
    units: &[Vec<Unit>],
) -> Vec<f32> {
    let units: Vec<InColumns> = units.iter().map(|units| InColumns::new(units)).collect();
    let width: usize = units.iter().map(|units| units.centres.len()).sum();
    let mut inputs = vec![0.0; rows.len() * width];
    for (row, inputs) in rows.zip(inputs.chunks_exact_mut(width.max(1))) {
        let mut rest = inputs;
        for units in &units {
            let (inputs, others) = rest.split_at_mut(units.centres.len());
            units.scale(row, inputs);
            rest = others;
        }
    }
    inputs
}

/// Returns rows or windows as inputs, each in all units.
fn scaled<'r>(
    rows: impl ExactSizeIterator<Item = &'r [f64]>,
    units: &[Vec<Unit>],
    readings: usize,
) -> Vec<f32> {
    if readings == 1 {
        return scaled_rows(rows, units);
    }
    let channels: usize = units.iter().map(Vec::len).sum();
    let mut inputs = Vec::with_capacity(rows.len() * channels * readings);
    for row in rows {
        for (values, unit) in units.iter().flat_map(|units| row.chunks_exact(readings).zip(units)) {
            inputs.extend(values.iter().map(|&value| unit.of(value)));
        }
    }
    inputs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;

    #[test]
    fn rows_that_come_later_are_scaled_as_the_first_were() {
        let of = |values: &[f64]| {
            let shape = Shape { channels: 1, height: 1, width: 2 };
            let labels = vec![None; values.len() / 2];
            Dataset::new("t", shape, Values::Features(values.to_vec()), labels, Vec::new()).unwrap()
        };
        let unit = |centre, deviation, limit| Unit { centre, deviation, limit };
        let first = vec![unit(10.0, 2.0, 3.0), unit(5.0, 0.0, 10.0)];
        let second = vec![unit(0.0, 4.0, f64::INFINITY), unit(1.0, 1.0, 1.0)];
        let scaling = |units| Scaling::Features { columns: Vec::new(), units, series: None };
        let data = of(&[14.0, 5.0, 100.0, -3.0]);
        assert_eq!(scaling(Vec::new()).inputs(&data, &[1]), [100.0, -3.0]);
        assert_eq!(scaling(vec![first.clone()]).inputs(&data, &[1, 0]), [3.0, 0.0, 2.0, 0.0]);
        let both = scaling(vec![first, second]).inputs(&data, &[0]);
        assert_eq!(both, [2.0, 0.0, 3.5, 1.0]);
    }
}
