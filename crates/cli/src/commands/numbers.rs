//! Numbers on the command line: each with what was expected, in words.

use std::ops::RangeInclusive;

/// Parses a number that is at least 0.
pub(crate) fn non_negative(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err("expected a number of at least 0".to_owned()),
    }
}

/// Parses a number above 0.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        _ => Err("expected a number above 0".to_owned()),
    }
}

/// Parses a fraction from 0 to 1. Who writes 7 most likely means 7 %.
pub(crate) fn fraction(text: &str) -> Result<f64, String> {
    match non_negative(text) {
        Ok(value) if value <= 1.0 => Ok(value),
        Ok(value) if value <= 100.0 => {
            Err(format!("expected a fraction from 0 to 1; did you mean {}?", value / 100.0))
        }
        _ => Err("expected a fraction from 0 to 1".to_owned()),
    }
}

/// Parses a whole number of at least 0.
pub(crate) fn whole<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    match text.parse::<u64>().map(T::try_from) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(_)) => Err("the number is too large".to_owned()),
        Err(_) => Err("expected a whole number of at least 0".to_owned()),
    }
}

/// Parses a whole number within some range.
pub(crate) fn within(
    range: RangeInclusive<u32>,
) -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync + 'static {
    move |text| match text.parse::<u32>() {
        Ok(value) if range.contains(&value) => Ok(value),
        _ => Err(format!("expected a whole number from {} to {}", range.start(), range.end())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_expected_is_said_in_words() {
        assert_eq!(whole::<u16>("65535"), Ok(65535));
        assert_eq!(whole::<u16>("99999").unwrap_err(), "the number is too large");
        assert_eq!(whole::<u64>("-3").unwrap_err(), "expected a whole number of at least 0");
        assert_eq!(within(1..=9)("9"), Ok(9));
        assert_eq!(within(1..=9)("x").unwrap_err(), "expected a whole number from 1 to 9");
        assert_eq!(fraction("0.01"), Ok(0.01));
        assert_eq!(
            fraction("7").unwrap_err(),
            "expected a fraction from 0 to 1; did you mean 0.07?"
        );
        assert_eq!(fraction("-1").unwrap_err(), "expected a fraction from 0 to 1");
    }
}
