//! Numbers and names as people write them. The page has the same rules (`crates/lab/src/page/15-words.js`), and both are tested with the cases of
//! `number_cases.tsv`.

use crate::plan::PlanLink;
use crate::problem::Problem;

/// A target's sources beyond these are only counted.
const MOST_SENDERS: usize = 4;

/// Returns a number with four significant digits, as people write it.
pub fn short(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e7).contains(&size) {
        return if value.is_finite() { format!("{value:.2e}") } else { value.to_string() };
    }
    let digits_before = if size == 0.0 { 0.0 } else { size.log10().floor() };
    trimmed(&fixed(value, (3.0 - digits_before).max(0.0) as usize))
}

/// Formats a number with this many decimals; halves are rounded away from zero. It is scaled first, so that other languages round the same.
fn fixed(value: f64, decimals: usize) -> String {
    let scale = 10f64.powi(decimals as i32);
    // Zero has no sign.
    format!("{:.decimals$}", (value * scale).round() / scale + 0.0)
}

/// Returns a number without a tail of zeros.
fn trimmed(text: &str) -> String {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    }
}

/// Returns a fraction as a percentage: `12.5 %` for 0.125.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent != 0.0 && percent.abs() < 0.01 {
        return "under 0.01 %".to_owned();
    }
    let decimals = if percent.abs() < 1.0 { 2 } else { 1 };
    format!("{} %", trimmed(&fixed(percent, decimals)))
}

/// Returns a count with separators between its thousands: `1,234,567`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (k, digit) in digits.chars().enumerate() {
        if k > 0 && (digits.len() - k).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a number of bytes with its unit, B, kB, MB or GB, each a thousand of the one before.
pub fn size(bytes: f64) -> String {
    match bytes {
        b if b >= 1e9 => format!("{} GB", fixed(b / 1e9, 1)),
        b if b >= 1e6 => format!("{} MB", fixed(b / 1e6, 1)),
        b if b >= 1e3 => format!("{} kB", fixed(b / 1e3, 0)),
        b => format!("{} B", grouped(b as u64)),
    }
}

/// An energy in a unit that fits: `17.21 J`, `12.05 mJ`, `820 µJ`.
pub fn energy(joules: f64) -> String {
    let size = joules.abs();
    let (value, unit) = match size {
        _ if size == 0.0 || !size.is_finite() => (joules, "J"),
        _ if size >= 1e7 => (joules / 1e6, "MJ"),
        _ if size >= 1e4 => (joules / 1e3, "kJ"),
        _ if size >= 1.0 => (joules, "J"),
        _ if size >= 1e-3 => (1e3 * joules, "mJ"),
        _ if size >= 1e-6 => (1e6 * joules, "µJ"),
        _ => (1e9 * joules, "nJ"),
    };
    format!("{} {unit}", short(value))
}

/// Returns a number with its noun in the singular or the plural: `1 source`, `1,234 sources`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count as u64), if count == 1 { "" } else { "s" })
}

/// The text without anything that steers a terminal.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Formats a mixture as `60 % d2, 40 % d3`, the largest weight first.
pub fn mixture(problem: &Problem, links: &[PlanLink]) -> String {
    let mut links = links.to_vec();
    links.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let share = |l: &PlanLink| {
        let name = problem.name(l.from);
        if l.weight == 1.0 { name.to_owned() } else { format!("{} {name}", percent(l.weight)) }
    };
    let mut shares: Vec<String> = links.iter().take(MOST_SENDERS).map(share).collect();
    if links.len() > MOST_SENDERS {
        shares.push(format!("{} more", links.len() - MOST_SENDERS));
    }
    shares.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written, of which number, and how.
    const CASES: &str = include_str!("number_cases.tsv");

    #[test]
    fn numbers_read_well() {
        for case in CASES.lines().skip(1) {
            let [what, value, expected] = case.split('\t').collect::<Vec<_>>()[..] else {
                panic!("{case}");
            };
            let write = match what {
                "number" => short,
                "percent" => percent,
                "energy" => energy,
                "size" => size,
                _ => panic!("{case}"),
            };
            assert_eq!(write(value.parse().unwrap()), expected, "{case}");
        }
        assert_eq!([7, 1000, 1_234_567].map(grouped), ["7", "1,000", "1,234,567"]);
        assert_eq!([counted(1, "node"), counted(2000, "node")], ["1 node", "2,000 nodes"]);
    }
}
