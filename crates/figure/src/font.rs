//! Text: how wide it is, how it is shortened and broken, and its letters as lines.
//!
//! In SVG the reader's own font is used, in PNG the letters of `font::glyphs`. Their widths are near those of common
//! sans-serif fonts, so one layout serves both.

mod glyphs;
mod place;
mod strokes;

pub(crate) use place::place;

use crate::figure::Weight;

/// Units of a glyph in the size of the font.
const UNITS: f64 = 20.0;
/// How much smaller raised and lowered characters are.
const SMALLER: f64 = 0.66;
/// How much wider bold text runs.
const BOLD_ADVANCE: f64 = 1.06;

const HAT: char = '\u{302}';

/// How wide a line of text is.
pub(crate) fn width(content: &str, size: f64, weight: Weight) -> f64 {
    let units: f64 = content.chars().map(advance).sum();
    units / UNITS * size * if weight == Weight::Bold { BOLD_ADVANCE } else { 1.0 }
}

/// The room that a line of text needs, whatever font the reader has: some are that much wider than ours.
pub(crate) fn room(content: &str, size: f64, weight: Weight) -> f64 {
    let wider = if weight == Weight::Bold { 1.16 } else { 1.1 };
    width(content, size, weight) * wider
}

fn advance(character: char) -> f64 {
    if character == HAT {
        return 0.0;
    }
    match glyphs::small_form(character) {
        Some((of, _)) => SMALLER * glyphs::find(of).unwrap_or(glyphs::UNKNOWN).1,
        None => glyphs::find(character).unwrap_or(glyphs::UNKNOWN).1,
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
    fn widths_are_those_of_the_glyphs() {
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
