//! Text: how wide it is, and how it is shortened and broken.
//!
//! The reader's own font is used, which is not known here. The widths below are near those of common sans-serif fonts.

use crate::figure::Weight;

/// Units of a width in the size of the font.
const UNITS: f64 = 20.0;
/// How much smaller raised and lowered characters are.
const SMALLER: f64 = 0.66;
/// How much wider bold text runs.
const BOLD_ADVANCE: f64 = 1.06;

/// A circumflex over the character before it; it takes no room of its own.
const HAT: char = '\u{302}';

/// The width of a character that is not in the table.
const UNKNOWN: f64 = 11.0;

/// Characters by their width, in units.
const WIDTHS: &[(f64, &str)] = &[
    (3.4, "\u{2009}"),
    (4.2, "'"),
    (4.6, "il‘’"),
    (4.8, "j"),
    (5.2, "I,.:;|·"),
    (5.4, "!"),
    (5.8, "/\\"),
    (6.0, "f \u{a0}[]`"),
    (6.2, "t"),
    (6.4, "()"),
    (6.6, "-"),
    (6.8, "r"),
    (7.0, "\"{}"),
    (7.6, "•"),
    (7.8, "“”"),
    (8.0, "*°"),
    (9.4, "ετ"),
    (9.6, "z"),
    (9.8, "svxyJ"),
    (10.0, "ck^γκλχ"),
    (10.4, "?"),
    (10.6, "a"),
    (10.8, "eδ"),
    (11.0, "0123456789hnuL$_ηθ–"),
    (11.2, "bdgopqβµμρ"),
    (11.4, "#"),
    (11.6, "F+<=>~σ±−×↑↓≤≥≠≈√"),
    (11.8, "α"),
    (12.0, "TZπ"),
    (12.4, "EΣ∑"),
    (12.6, "φ"),
    (12.8, "PSψ"),
    (13.0, "ABKVXY&Δ"),
    (13.6, "R"),
    (14.0, "wUω"),
    (14.2, "CDHN"),
    (14.8, "ΦΨ"),
    (15.0, "GΩ"),
    (15.2, "OQ"),
    (16.0, "∞"),
    (16.4, "mM"),
    (17.0, "%…"),
    (18.6, "W"),
    (19.0, "@→←"),
    (20.0, "—"),
];

/// Returns how wide a line of text is, in units.
pub(crate) fn width(content: &str, size: f64, weight: Weight) -> f64 {
    let units: f64 = content.chars().map(advance).sum();
    units / UNITS * size * if weight == Weight::Bold { BOLD_ADVANCE } else { 1.0 }
}

/// The room that a line of text needs, whatever font the reader has: some are that much wider than the table says.
pub(crate) fn room(content: &str, size: f64, weight: Weight) -> f64 {
    let wider = if weight == Weight::Bold { 1.16 } else { 1.1 };
    width(content, size, weight) * wider
}

fn advance(character: char) -> f64 {
    if character == HAT {
        return 0.0;
    }
    match full_form(character) {
        Some(full) => SMALLER * listed(full).unwrap_or(UNKNOWN),
        None => listed(character).unwrap_or(UNKNOWN),
    }
}

fn listed(character: char) -> Option<f64> {
    WIDTHS.iter().find(|(_, characters)| characters.contains(character)).map(|(width, _)| *width)
}

/// The character that another one is raised or lowered from.
fn full_form(character: char) -> Option<char> {
    let digit = |zero: char| char::from_digit(character as u32 - zero as u32, 10);
    match character {
        '¹' => Some('1'),
        '²' => Some('2'),
        '³' => Some('3'),
        '⁰' | '⁴'..='⁹' => digit('⁰'),
        '⁺' => Some('+'),
        '⁻' => Some('−'),
        'ⁿ' => Some('n'),
        '₀'..='₉' => digit('₀'),
        _ => None,
    }
}

/// The text if it fits into a width, or else its beginning and an ellipsis.
pub(crate) fn shorten(content: &str, size: f64, weight: Weight, limit: f64) -> String {
    if room(content, size, weight) <= limit {
        return content.to_owned();
    }
    let mut used = room("…", size, weight);
    let mut kept = String::new();
    for character in content.chars() {
        used += room(character.encode_utf8(&mut [0; 4]), size, weight);
        if used > limit {
            break;
        }
        kept.push(character);
    }
    kept.truncate(kept.trim_end().len());
    kept.push('…');
    kept
}

/// A label that ends at a distance from the left edge of the paper, turned, shortened so as not to leave it.
pub(crate) fn shorten_turned(content: &str, from_edge: f64, turn: f64) -> String {
    let room = (from_edge - 4.0) / turn.to_radians().cos().abs().max(0.1);
    shorten(content, crate::head::LABEL, Weight::Bold, room)
}

/// The text in lines that fit into a width, `most` lines at most; the last one is shortened if it must be.
pub(crate) fn wrap(
    content: &str,
    size: f64,
    weight: Weight,
    limit: f64,
    most: usize,
) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let fits = |line: &str, word: &str| room(&format!("{line} {word}"), size, weight) <= limit;
    for word in content.split_whitespace() {
        match lines.last_mut() {
            Some(line) if fits(line, word) => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    if lines.len() > most.max(1) {
        let rest = lines.split_off(most.max(1) - 1);
        lines.push(rest.join(" "));
    }
    lines.into_iter().map(|line| shorten(&line, size, weight, limit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_ascii_and_the_letters_of_the_method_are_listed_once() {
        let ours = "φψαεδσρ±−–…×·→°≤≥^µ";
        let missing: String =
            (' '..='~').chain(ours.chars()).filter(|&c| listed(c).is_none()).collect();
        assert_eq!(missing, "");
        let mut all: Vec<char> = WIDTHS.iter().flat_map(|(_, listed)| listed.chars()).collect();
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
        assert!("⁰¹²³⁴⁵⁶⁷⁸⁹⁻₀₉".chars().all(|c| full_form(c).is_some()));
        assert_eq!([full_form('⁷'), full_form('₂')], [Some('7'), Some('2')]);
    }

    #[test]
    fn widths_are_those_of_the_table() {
        assert_eq!(width("00", 20.0, Weight::Regular), 22.0);
        assert!(width("00", 20.0, Weight::Bold) > 22.0);
        assert_eq!(width("ε\u{302}", 20.0, Weight::Regular), width("ε", 20.0, Weight::Regular));
        assert!(width("10⁶", 20.0, Weight::Regular) < width("106", 20.0, Weight::Regular));
        assert_eq!(width("", 20.0, Weight::Regular), 0.0);
    }

    #[test]
    fn what_fits_stays_and_the_rest_is_shortened() {
        assert_eq!(shorten("short", 10.0, Weight::Regular, 100.0), "short");
        let long = shorten("a very long name of a device", 10.0, Weight::Regular, 60.0);
        assert!(long.ends_with('…') && long.starts_with("a very"), "{long}");
        assert!(room(&long, 10.0, Weight::Regular) <= 60.0);
        assert_eq!(shorten("anything", 10.0, Weight::Regular, 0.0), "…");
    }

    #[test]
    fn words_are_broken_into_lines() {
        let lines = wrap("one two three four", 20.0, Weight::Regular, 88.0, 3);
        assert_eq!(lines, ["one two", "three", "four"]);
        let lines = wrap("one two three four", 20.0, Weight::Regular, 88.0, 2);
        assert_eq!(lines, ["one two", "three f…"]);
        assert!(wrap("", 20.0, Weight::Regular, 88.0, 2).is_empty());
    }
}
