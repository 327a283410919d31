//! Numbers and names as people write them.

use crate::plan::PlanLink;
use crate::problem::Problem;

/// A target's sources beyond these are only counted.
const MOST_SENDERS: usize = 4;

/// Four significant digits, as people write them.
pub fn short(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e7).contains(&size) {
        return if value.is_finite() { format!("{value:.2e}") } else { value.to_string() };
    }
    let digits_before = if size == 0.0 { 0.0 } else { size.log10().floor() };
    let decimals = (3.0 - digits_before).max(0.0) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Formats a fraction as percent.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent != 0.0 && percent.abs() < 0.01 {
        return "under 0.01 %".to_owned();
    }
    let decimals = if percent.abs() < 1.0 { 2 } else { 1 };
    let text = format!("{percent:.decimals$}");
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Formats a count with separators: `1,234,567`.
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

/// A number of bytes.
pub fn size(bytes: f64) -> String {
    match bytes {
        b if b >= 1e6 => format!("{:.1} MB", b / 1e6),
        b if b >= 1e3 => format!("{:.0} kB", b / 1e3),
        b => format!("{} B", grouped(b as u64)),
    }
}

/// An energy in a unit that fits: `17.21 J`, `12.05 mJ`, `820 µJ`.
pub fn energy(joules: f64) -> String {
    let size = joules.abs();
    let (factor, unit) = match size {
        _ if size >= 1.0 || size == 0.0 || !size.is_finite() => (1.0, "J"),
        _ if size >= 1e-3 => (1e3, "mJ"),
        _ if size >= 1e-6 => (1e6, "µJ"),
        _ => (1e9, "nJ"),
    };
    format!("{} {unit}", short(factor * joules))
}

/// `1 source`, `1,234 sources`.
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

    #[test]
    fn numbers_read_well() {
        let shorts = [0.0, 1.0, 12.3456, 0.000_123_45, 999.96, 1234.5, 1.5e9, -2.5, 1e-9];
        let texts = ["0", "1", "12.35", "0.0001234", "1000", "1234", "1.50e9", "-2.5", "1.00e-9"];
        assert_eq!(shorts.map(short), texts);
        let percents = [0.0, 1.0, 0.123, 0.0031, 1e-9, 0.005];
        assert_eq!(
            percents.map(percent),
            ["0 %", "100 %", "12.3 %", "0.31 %", "under 0.01 %", "0.5 %"]
        );
        assert_eq!(
            [0.0, 17.21, 1234.0, 0.01205, 8.2e-4, 3e-9].map(energy),
            ["0 J", "17.21 J", "1234 J", "12.05 mJ", "820 µJ", "3 nJ"]
        );
        assert_eq!([7, 1000, 1_234_567].map(grouped), ["7", "1,000", "1,234,567"]);
        assert_eq!([counted(1, "node"), counted(2000, "node")], ["1 node", "2,000 nodes"]);
    }
}
