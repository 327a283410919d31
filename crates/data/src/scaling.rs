//! How a sample becomes an input, complete enough that samples which come later become inputs in the same way.

use crate::Dataset;
use crate::dataset::Values;
use crate::features::Series;

/// Values whose difference is a smaller part of them are the same but for rounding.
pub(crate) const ROUNDING: f64 = 1e-12;

/// How one feature becomes an input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    /// What becomes 0.
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

    /// A value in this unit.
    pub fn of(self, value: f64) -> f32 {
        if self.is_constant() {
            return 0.0;
        }
        ((value - self.centre) / self.deviation).clamp(-self.limit, self.limit) as f32
    }
}

/// How the samples of one device become inputs.
#[derive(Debug, Clone, PartialEq)]
pub enum Scaling {
    /// Pixels 0..=255 become −1..=1.
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
        let mut inputs = Vec::with_capacity(samples.len() * numbers * units.len());
        for &sample in samples {
            let row = &all[sample * numbers..(sample + 1) * numbers];
            for units in units {
                for (values, unit) in row.chunks_exact(readings).zip(units) {
                    inputs.extend(values.iter().map(|&value| unit.of(value)));
                }
            }
        }
        inputs
    }
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
