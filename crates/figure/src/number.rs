//! Numbers as charts write them: a true minus sign, few decimals, powers of ten as powers.

/// The value from which on numbers are written as powers of ten.
const LARGE: f64 = 1e6;
const SMALL: f64 = 1e-4;

/// The numbers of ticks that are `step` apart, all in one form and with the decimals that tell them apart.
pub(crate) fn labels(values: &[f64], step: f64) -> Vec<String> {
    let largest = values.iter().map(|value| value.abs()).fold(0.0, f64::max);
    let exponent = if largest >= LARGE || (largest > 0.0 && largest < 10.0 * SMALL) {
        largest.log10().floor() as i32
    } else {
        0
    };
    let unit = 10f64.powi(exponent);
    let decimals = decimals(step / unit);
    let times = if exponent == 0 { String::new() } else { format!("×{}", power_of_ten(exponent)) };
    values
        .iter()
        .map(|&value| match value {
            _ if value.abs() < step * 1e-6 && exponent != 0 => "0".to_owned(),
            _ if value.abs() < step * 1e-6 => fixed(0.0, decimals),
            _ => format!("{}{times}", fixed(value / unit, decimals)),
        })
        .collect()
}

/// Returns how many decimals a step needs.
fn decimals(step: f64) -> usize {
    let needed = (0..12).find(|&decimals| {
        let scaled = step * 10f64.powi(decimals);
        scaled >= 0.999 && (scaled - scaled.round()).abs() < 1e-6 * scaled
    });
    needed.unwrap_or(12) as usize
}

/// Formats a number with three significant digits.
pub(crate) fn short(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    if value.abs() >= LARGE || value.abs() < SMALL {
        let exponent = value.abs().log10().floor() as i32;
        // In two steps, because 10^-308 and less is not a power that f64 divides by.
        let mantissa = value / 10f64.powi(exponent / 2) / 10f64.powi(exponent - exponent / 2);
        return format!("{}×{}", trimmed(fixed(mantissa, 2)), power_of_ten(exponent));
    }
    let digits = (2 - value.abs().log10().floor() as i32).max(0) as usize;
    trimmed(fixed(value, digits))
}

/// Numbers that are compared with each other, all with the same decimals.
pub(crate) fn even(values: &[f64]) -> Vec<String> {
    let largest = values.iter().map(|value| value.abs()).fold(0.0, f64::max);
    let decimals = match largest {
        _ if values.iter().all(|value| value.fract() == 0.0) => 0,
        _ if largest < 0.1 => 3,
        _ if largest < 10.0 => 2,
        _ if largest < 100.0 => 1,
        _ => 0,
    };
    let far = !(10.0 * SMALL..LARGE).contains(&largest) && largest > 0.0;
    let write = |&value: &f64| if far { short(value) } else { fixed(value, decimals) };
    values.iter().map(write).collect()
}

/// Formats a number with this many decimals and a true minus sign.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    let written = format!("{:.decimals$}", value.abs());
    let zero = written.bytes().all(|byte| byte == b'0' || byte == b'.');
    if value < 0.0 && !zero { format!("−{written}") } else { written }
}

fn trimmed(written: String) -> String {
    if !written.contains('.') {
        return written;
    }
    written.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns 10 with this exponent, written in raised digits.
pub(crate) fn power_of_ten(exponent: i32) -> String {
    let raised = |c| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        digit => char::from_u32('⁰' as u32 + digit as u32 - '0' as u32).unwrap_or(digit),
    };
    match exponent {
        0 => "1".to_owned(),
        1 => "10".to_owned(),
        _ => format!("10{}", exponent.to_string().chars().map(raised).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_have_the_decimals_of_their_step() {
        assert_eq!(labels(&[0.0, 0.5, 1.0], 0.5), ["0.0", "0.5", "1.0"]);
        assert_eq!(labels(&[-20.0, 0.0, 20.0], 20.0), ["−20", "0", "20"]);
        assert_eq!(labels(&[0.0, 2e6, 4e6], 2e6), ["0", "2×10⁶", "4×10⁶"]);
        assert_eq!(labels(&[0.0, 5e-5, 1e-4], 5e-5), ["0", "0.5×10⁻⁴", "1.0×10⁻⁴"]);
    }

    #[test]
    fn three_digits_say_enough() {
        let cases = [
            (0.0, "0"),
            (0.12345, "0.123"),
            (-2.5, "−2.5"),
            (1234.5, "1234"),
            (99.96, "100"),
            (1.5e9, "1.5×10⁹"),
            (-3e-7, "−3×10⁻⁷"),
            (f64::NAN, "–"),
        ];
        for (value, expected) in cases {
            assert_eq!(short(value), expected);
        }
        assert!(short(f64::MIN_POSITIVE / 4.0).contains("×10⁻³"));
        assert!(short(f64::MAX).ends_with("×10³⁰⁸"));
    }

    #[test]
    fn numbers_side_by_side_have_the_same_decimals() {
        assert_eq!(even(&[0.8, 0.914]), ["0.80", "0.91"]);
        assert_eq!(even(&[-3.0, 12.04]), ["−3.0", "12.0"]);
        assert_eq!(even(&[3.0, 1200.0]), ["3", "1200"]);
        assert_eq!(even(&[1e-6, 2.5e-7]), ["1×10⁻⁶", "2.5×10⁻⁷"]);
        assert!(even(&[]).is_empty());
    }

    #[test]
    fn powers_are_raised() {
        assert_eq!([-4, 0, 1, 13].map(power_of_ten), ["10⁻⁴", "1", "10", "10¹³"]);
    }
}
