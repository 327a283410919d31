//! Axes: from values to places, and their ticks.

use crate::number;

/// What an axis shows and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What is measured, with its unit.
    pub label: String,
    /// How values become places along the axis.
    pub scale: Scale,
    /// The values at its ends; what lies outside is cut off. Without, as the data needs.
    pub range: Option<(f64, f64)>,
    /// Whether 0 belongs to it even if the data lies far from it.
    pub from_zero: bool,
}

impl Axis {
    /// A linear axis as long as the data needs.
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: Scale::Linear, range: None, from_zero: false }
    }

    /// A logarithmic axis as long as the data needs; values up to 0 are left out.
    pub fn log(label: impl Into<String>) -> Axis {
        Axis { scale: Scale::Log, ..Axis::linear(label) }
    }
}

impl Default for Axis {
    fn default() -> Axis {
        Axis::linear("")
    }
}

/// How values become places on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal distances on the axis are equal differences of values.
    Linear,
    /// Equal distances on the axis are equal ratios of values.
    Log,
}

/// A value with its number, or without one for a lesser tick.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    pub(crate) label: Option<String>,
}

/// The stretch of values that an axis covers; `low < high`, and above 0 on a logarithmic one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Span {
    pub(crate) low: f64,
    pub(crate) high: f64,
    scale: Scale,
    /// Whether all values are whole, so that no tick stands between two.
    whole: bool,
    /// Whether its ends were asked for.
    given: bool,
    /// The distance of its ticks, if its ends were moved to them.
    step: Option<f64>,
}

/// The largest value that is drawn: differences of larger ones overflow.
const HUGE: f64 = 1e300;
/// The free space at both ends, as a fraction of the axis.
const MARGIN: f64 = 0.04;

impl Span {
    /// What an axis covers that shows these values.
    pub(crate) fn over(axis: &Axis, values: impl Iterator<Item = f64>) -> Span {
        let usable = |value: &f64| match axis.scale {
            Scale::Linear => value.abs() <= HUGE,
            Scale::Log => *value >= 1.0 / HUGE && *value <= HUGE,
        };
        let values: Vec<f64> = values.filter(usable).collect();
        let whole = !values.is_empty() && values.iter().all(|value| value.fract() == 0.0);
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let given = axis
            .range
            .map(|(a, b)| (a.min(b), a.max(b)))
            .filter(|(low, high)| usable(low) && usable(high) && apart(*low, *high));
        let (low, high) = match (given, axis.scale) {
            (Some(range), _) => range,
            (None, Scale::Linear) => linear_range(least, most, axis.from_zero),
            (None, Scale::Log) => log_range(least, most),
        };
        Span { low, high, scale: axis.scale, whole, given: given.is_some(), step: None }
    }

    /// Returns the same span, widened to the ticks around it where they are near.
    pub(crate) fn rounded(self, most: usize) -> Span {
        if self.given || self.scale == Scale::Log {
            return self;
        }
        let step = self.step(most);
        let near = |end: f64, tick: f64| (tick - end).abs() <= 0.1 * (self.high - self.low);
        let low = Some((self.low / step).floor() * step).filter(|&tick| near(self.low, tick));
        let high = Some((self.high / step).ceil() * step).filter(|&tick| near(self.high, tick));
        let (low, high) = (low.unwrap_or(self.low), high.unwrap_or(self.high));
        Span { low, high, step: Some(step), ..self }
    }

    fn step(&self, most: usize) -> f64 {
        let step = self.step.unwrap_or_else(|| step(self.high - self.low, most));
        if self.whole { step.max(1.0) } else { step }
    }

    /// Returns the position of a value: 0 at the low end and 1 at the high one, or beyond. `None` if it has no position.
    pub(crate) fn share(&self, value: f64) -> Option<f64> {
        if !value.is_finite() {
            return None;
        }
        match self.scale {
            Scale::Linear => {
                // Halved before subtracting, because the largest values are as far apart as f64 reaches.
                let share = (value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0);
                Some(share.clamp(-100.0, 100.0))
            }
            Scale::Log if value <= 0.0 => None,
            Scale::Log => {
                let (low, high) = (self.low.log10(), self.high.log10());
                Some(((value.log10() - low) / (high - low)).clamp(-100.0, 100.0))
            }
        }
    }

    /// As [`Span::share`], within the axis; what lies nowhere below it is at its low end.
    pub(crate) fn share_within(&self, value: f64) -> f64 {
        match self.share(value) {
            Some(share) => share.clamp(0.0, 1.0),
            None if value == f64::INFINITY => 1.0,
            None => 0.0,
        }
    }

    /// Returns about `most` ticks, not many more.
    pub(crate) fn ticks(&self, most: usize) -> Vec<Tick> {
        match self.scale {
            Scale::Linear => self.linear_ticks(most),
            Scale::Log => self.log_ticks(most),
        }
    }

    fn linear_ticks(&self, most: usize) -> Vec<Tick> {
        let step = self.step(most);
        let first = (self.low / step - 1e-6).ceil();
        let count = ((self.high / step + 1e-6).floor() - first).clamp(0.0, 100.0) as usize;
        let values: Vec<f64> = (0..=count).map(|k| (first + k as f64) * step).collect();
        let labels = number::labels(&values, step);
        values
            .into_iter()
            .zip(labels)
            .map(|(value, label)| Tick { value, label: Some(label) })
            .collect()
    }

    fn log_ticks(&self, most: usize) -> Vec<Tick> {
        let (low, high) = (self.low.log10(), self.high.log10());
        let (first, last) = ((low - 1e-9).ceil() as i32, (high + 1e-9).floor() as i32);
        let decades = usize::try_from(last - first + 1).unwrap_or(0);
        if high - low < 0.7 || (decades < 2 && high - low < 1.0) {
            return self.linear_ticks(most);
        }
        let every = decades.div_ceil(most.max(1)).max(1);
        let detailed = decades * 3 <= most.max(4);
        // Plain numbers as long as they stay short.
        let plain = first >= -3 && last <= 5;
        let mut ticks = Vec::new();
        for power in first - 1..=last + 1 {
            for digit in 1..10 {
                let value = f64::from(digit) * 10f64.powi(power);
                if !(low - 1e-9..=high + 1e-9).contains(&value.log10()) {
                    continue;
                }
                let numbered = match digit {
                    1 => (power - first).rem_euclid(every as i32) == 0,
                    2 | 5 => detailed,
                    _ => false,
                };
                let label = numbered.then(|| match digit {
                    _ if plain => number::fixed(value, usize::try_from(-power).unwrap_or(0)),
                    1 => number::power_of_ten(power),
                    _ => format!("{digit}×{}", number::power_of_ten(power)),
                });
                if label.is_some() || decades <= 6 {
                    ticks.push(Tick { value, label });
                }
            }
        }
        ticks
    }
}

/// Whether two values are far enough apart to draw anything between them.
fn apart(low: f64, high: f64) -> bool {
    high - low > 1e-9 * low.abs().max(high.abs()) && high - low > 1.0 / HUGE
}

fn linear_range(least: f64, most: f64, from_zero: bool) -> (f64, f64) {
    if least > most {
        return (0.0, 1.0);
    }
    let (mut low, mut high) = (least, most);
    if from_zero {
        low = low.min(0.0);
        high = high.max(0.0);
    }
    if !apart(low, high) && from_zero {
        return (0.0, 1.0);
    }
    if !apart(low, high) {
        let around = if low.abs() > 1.0 / HUGE { low.abs() * 0.1 } else { 1.0 };
        return (low - around, high + around);
    }
    let length = high - low;
    // Near enough to 0 that leaving it out would look like a trick.
    let zero_is_near = |edge: f64| edge.abs() <= 0.15 * length;
    let from = if low >= 0.0 && zero_is_near(low) { 0.0 } else { low - MARGIN * length };
    let to = if high <= 0.0 && zero_is_near(high) { 0.0 } else { high + MARGIN * length };
    (from, to)
}

fn log_range(least: f64, most: f64) -> (f64, f64) {
    if least > most {
        return (1.0, 10.0);
    }
    let (low, high) = (least.log10(), most.log10());
    let margin = if high - low < 1e-6 { 0.5 } else { MARGIN * (high - low) };
    (10f64.powf((low - margin).max(-305.0)), 10f64.powf((high + margin).min(305.0)))
}

/// The least of 1, 2, 5 times a power of ten that cuts a length into `most` parts or fewer.
fn step(length: f64, most: usize) -> f64 {
    let rough = length / most.max(1) as f64;
    let magnitude = 10f64.powf(rough.log10().floor());
    let round = [1.0, 2.0, 5.0].into_iter().map(|times| times * magnitude);
    round.into_iter().find(|&step| step >= rough * (1.0 - 1e-9)).unwrap_or(10.0 * magnitude)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64], most: usize) -> Vec<String> {
        let span = Span::over(axis, values.iter().copied());
        span.ticks(most).into_iter().filter_map(|tick| tick.label).collect()
    }

    #[test]
    fn steps_are_one_two_or_five() {
        let steps = [(10.0, 5), (1.0, 4), (7.0, 5), (0.03, 3), (6000.0, 5), (90.0, 10)];
        assert_eq!(
            steps.map(|(l, m)| (step(l, m) * 1e6).round() / 1e6),
            [2.0, 0.5, 2.0, 0.01, 2000.0, 10.0]
        );
    }

    #[test]
    fn linear_ticks_are_round() {
        let axis = Axis::linear("");
        assert_eq!(labels(&axis, &[0.02, 0.98], 6), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&axis, &[-0.9, 1.0], 5), ["−0.5", "0.0", "0.5", "1.0"]);
        assert_eq!(labels(&axis, &[0.81, 0.89], 5), ["0.82", "0.84", "0.86", "0.88"]);
        assert_eq!(labels(&axis, &[1.0, 2.0, 3.0], 8), ["1", "2", "3"]);
        let zero = Axis { from_zero: true, ..axis };
        assert_eq!(labels(&zero, &[70.5, 80.0], 5), ["0", "20", "40", "60", "80"]);
    }

    #[test]
    fn ends_move_to_ticks_that_are_near() {
        let span = |axis: &Axis| Span::over(axis, [0.03, 0.94].into_iter()).rounded(6);
        let free = span(&Axis::linear(""));
        assert_eq!((free.low, free.high), (0.0, 1.0));
        let given = span(&Axis { range: Some((0.0, 0.95)), ..Axis::linear("") });
        assert_eq!(given.high, 0.95);
    }

    #[test]
    fn logarithmic_ticks_are_decades() {
        let axis = Axis::log("");
        assert_eq!(labels(&axis, &[0.01, 100.0], 5), ["0.01", "0.1", "1", "10", "100"]);
        assert_eq!(labels(&axis, &[1e-8, 1e-5], 5), ["10⁻⁸", "10⁻⁷", "10⁻⁶", "10⁻⁵"]);
        assert_eq!(labels(&axis, &[1.0, 50.0], 8), ["1", "2", "5", "10", "20", "50"]);
        assert_eq!(labels(&axis, &[1e-12, 1.0], 5).len(), 5);
        assert_eq!(labels(&axis, &[3.01, 4.0], 6), ["3.0", "3.2", "3.4", "3.6", "3.8", "4.0"]);
        assert!(labels(&axis, &[0.0, -1.0], 5).len() > 1);
    }

    #[test]
    fn every_span_can_be_drawn() {
        let hard = [0.0, 1.0, -1.0, 1e-320, 1e300, -1e300, f64::MAX, f64::NAN, f64::INFINITY, 1e16];
        for axis in [Axis::linear(""), Axis::log(""), Axis { from_zero: true, ..Axis::linear("") }]
        {
            for a in hard {
                for b in hard {
                    for range in [None, Some((a, b))] {
                        let span = Span::over(&Axis { range, ..axis.clone() }, [a, b].into_iter());
                        assert!(span.low < span.high && (span.high - span.low).is_finite());
                        for most in [0, 1, 7] {
                            assert!(span.ticks(most).len() < 200);
                        }
                        assert!(span.share(a).is_none_or(f64::is_finite));
                    }
                }
            }
        }
    }

    #[test]
    fn values_lie_between_the_ends() {
        let span =
            Span::over(&Axis { range: Some((10.0, 0.0)), ..Axis::linear("") }, [].into_iter());
        assert_eq!(span.share(5.0), Some(0.5));
        let span = Span::over(&Axis { range: Some((1.0, 100.0)), ..Axis::log("") }, [].into_iter());
        assert_eq!(span.share(10.0), Some(0.5));
        assert_eq!(span.share(0.0), None);
        assert_eq!(span.share_within(-3.0), 0.0);
        assert_eq!(span.share_within(1e9), 1.0);
    }
}
