//! What a number may be, and the sentence for one that is not.

use std::ops::Bound::{self, Excluded, Included, Unbounded};

use super::{Error, Field, Reason};

/// What a number may be. It must be finite in any case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// The least value.
    pub least: Bound<f64>,
    /// The largest value.
    pub most: Bound<f64>,
    /// Whether only even whole numbers are meant.
    pub is_even: bool,
    /// The letter for the value where the sentence shows the range as a formula, as in `0 < ε ≤ 10`.
    pub symbol: Option<char>,
}

/// Far above any measurement, far below where products of two such numbers overflow.
const LARGEST: f64 = 1e100;

impl Range {
    /// Any number that is finite.
    pub const FINITE: Range = Range::new(Unbounded, Unbounded);
    /// Above 0.
    pub const ABOVE_ZERO: Range = Range::new(Excluded(0.0), Unbounded);
    /// At least 0, and no more than can be calculated with.
    pub const NOT_NEGATIVE: Range = Range::new(Included(0.0), Included(LARGEST));
    /// From 0 to 1.
    pub const SHARE: Range = Range::new(Included(0.0), Included(1.0));
    /// Between 0 and 1, and neither of the two.
    pub const BETWEEN_ZERO_AND_ONE: Range = Range::new(Excluded(0.0), Excluded(1.0));
    /// Above 0 and at most 1.
    pub const SHARE_ABOVE_ZERO: Range = Range::new(Excluded(0.0), Included(1.0));
    /// A count that is not 0.
    pub const AT_LEAST_ONE: Range = Range::new(Included(1.0), Unbounded);

    /// Returns the range between these two.
    pub const fn new(least: Bound<f64>, most: Bound<f64>) -> Range {
        Range { least, most, is_even: false, symbol: None }
    }

    /// Returns the same range, shown as a formula with this letter.
    pub const fn as_formula(self, symbol: char) -> Range {
        Range { symbol: Some(symbol), ..self }
    }

    /// Returns the even numbers of the same range.
    pub const fn even(self) -> Range {
        Range { is_even: true, ..self }
    }

    /// Whether a number is in the range.
    #[inline]
    pub fn contains(&self, value: f64) -> bool {
        use std::ops::RangeBounds;
        value.is_finite()
            && (self.least, self.most).contains(&value)
            && (!self.is_even || value % 2.0 == 0.0)
    }

    /// Checks that a number is in the range; `field` says which one it is.
    ///
    /// # Errors
    /// It is not.
    #[inline]
    pub fn check<F: Into<Field>>(self, value: f64, field: impl FnOnce() -> F) -> Result<(), Error> {
        match self.contains(value) {
            true => Ok(()),
            false => Err(Error::new(field(), Reason::OutOfRange { value, range: self })),
        }
    }

    /// What is wrong with a number that is not in the range.
    pub(super) fn sentence(&self, value: f64) -> String {
        let shown = shown(value);
        if self.is_even {
            return match [self.least, self.most].map(edge) {
                [_, f64::INFINITY] => format!("{shown} is not even"),
                [least, most] => format!("{shown} is not an even number from {least} to {most}"),
            };
        }
        if let Some(symbol) = self.symbol {
            return format!("{shown} is not in {}", self.formula(symbol));
        }
        if *self == Range::NOT_NEGATIVE {
            return match value {
                v if v.is_nan() => format!("{shown} is not a number"),
                v if v < 0.0 => format!("{shown} is negative"),
                _ => format!("{shown} is too large"),
            };
        }
        if *self == Range::AT_LEAST_ONE {
            return "must be at least 1".to_owned();
        }
        match (self.least, self.most) {
            (Unbounded, Unbounded) => format!("{shown} is not a finite number"),
            (Excluded(least), Unbounded) => format!("{shown} is not above {least}"),
            (Included(least), Unbounded) => format!("{shown} is not at least {least}"),
            // A least value that nobody would call more than 0.
            (Included(1e-300..1e-15), _) if value < 1e-15 => format!("{shown} is too small"),
            (Excluded(least), Included(most)) => {
                format!("{shown} is not above {least} and at most {most}")
            }
            (Unbounded, most) => format!("{shown} is above {}", edge(most)),
            (least, most) => format!("{shown} is not between {} and {}", edge(least), edge(most)),
        }
    }

    /// The range as a formula, such as `0 ≤ h < 1`.
    fn formula(&self, symbol: char) -> String {
        let below = match self.least {
            Included(least) => format!("{least} ≤ "),
            Excluded(least) => format!("{least} < "),
            Unbounded => String::new(),
        };
        let above = match self.most {
            Included(most) => format!(" ≤ {most}"),
            Excluded(most) => format!(" < {most}"),
            Unbounded => String::new(),
        };
        format!("{below}{symbol}{above}")
    }
}

/// The number at an edge of a range.
fn edge(bound: Bound<f64>) -> f64 {
    match bound {
        Included(value) | Excluded(value) => value,
        Unbounded => f64::INFINITY,
    }
}

/// A number as people can read it, whatever its size; one that was written with the digits of an `f32` has no more of them.
fn shown(value: f64) -> String {
    let short = value as f32;
    match value.abs() {
        0.0 | 1e-15..1e15 if f64::from(short) == value && value.fract() != 0.0 => short.to_string(),
        0.0 | 1e-15..1e15 => value.to_string(),
        _ => format!("{value:e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_range_has_its_sentence() {
        let held_out = Range::new(Included(0.0), Excluded(1.0)).as_formula('h');
        let even = Range::new(Included(2.0), Included(4096.0)).even();
        let scale = Range::new(Included(0.0), Included(2.0));
        let side = Range::new(Included(1.0), Included(4096.0));
        let delta = Range::new(Included(1e-300), Excluded(1.0));
        for (range, value, sentence) in [
            (Range::FINITE, f64::NAN, "NaN is not a finite number"),
            (Range::ABOVE_ZERO, f64::NAN, "NaN is not above 0"),
            (Range::NOT_NEGATIVE, f64::NAN, "NaN is not a number"),
            (Range::NOT_NEGATIVE, -2.5, "-2.5 is negative"),
            (Range::NOT_NEGATIVE, 1e101, "1e101 is too large"),
            (Range::SHARE, 1.5, "1.5 is not between 0 and 1"),
            (Range::BETWEEN_ZERO_AND_ONE, 1.0, "1 is not between 0 and 1"),
            (Range::SHARE_ABOVE_ZERO, 0.0, "0 is not above 0 and at most 1"),
            (Range::AT_LEAST_ONE, 0.0, "must be at least 1"),
            (held_out, 1.0, "1 is not in 0 ≤ h < 1"),
            (Range::ABOVE_ZERO, f64::from(-0.1_f32), "-0.1 is not above 0"),
            (Range::SHARE, (1_u64 << 40) as f64, "1099511627776 is not between 0 and 1"),
            (even, 7.0, "7 is not an even number from 2 to 4096"),
            (scale, 40.0, "40 is not between 0 and 2"),
            (side, 0.0, "0 is not between 1 and 4096"),
            (delta, 1e-308, "1e-308 is too small"),
        ] {
            assert!(!range.contains(value), "{sentence}");
            assert_eq!(range.sentence(value), sentence);
        }
        assert!(even.contains(64.0) && held_out.contains(0.0) && scale.contains(2.0));
    }
}
