//! The lines of a text's letters in pixels, fitted to the pixels where the text lies along them.
//!
//! At 11 pixels a stem is about one pixel wide. Unless its edge lies between two pixels it becomes two grey ones,
//! so the edges of stems and the heights that letters share are moved to the nearest pixel.

use super::{BOLD_ADVANCE, HAT, SMALLER, UNITS, glyphs, strokes};
use crate::figure::{Anchor, Point, Text, Weight};

/// The pen's width in the size of the font.
const REGULAR: f64 = 0.083;
const BOLD: f64 = 0.122;
/// The pen of raised and lowered characters, in that of the others.
const SMALL_PEN: f64 = 0.8;
/// Raised so that the lower edge of a pen on the baseline lies on it.
const RAISE: f64 = REGULAR * UNITS / 2.0;
/// The heights that letters share: tails, baseline, small letters, capitals.
const HEIGHTS: [f64; 4] = [-4.0, 0.0, 9.0, 13.0];

/// The centre lines of all letters of a text in pixels, each with the width of its pen.
pub(crate) fn place(text: &Text, scale: f64) -> Vec<(Vec<Point>, f64)> {
    let unit = text.size * scale / UNITS;
    let (share, advance_by) = match text.weight {
        Weight::Regular => (REGULAR, unit),
        Weight::Bold => (BOLD, unit * BOLD_ADVANCE),
    };
    let pen = (text.size * scale * share).max(0.9);
    let level = text.turn.rem_euclid(90.0) == 0.0;
    let fit = Fit { unit, pen, level };
    let width = super::width(&text.content, text.size, text.weight) * scale;
    let mut along = match text.anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => -width / 2.0,
        Anchor::End => -width,
    };
    let mut origin = (text.at.0 * scale, text.at.1 * scale);
    if level {
        origin = (origin.0.round(), origin.1.round());
    }
    let (sin, cos) = text.turn.to_radians().sin_cos();
    let turned = |(x, y): Point| (origin.0 + x * cos + y * sin, origin.1 + x * sin - y * cos);

    let mut lines = Vec::new();
    let mut before = Before { middle: 0.0, tall: false };
    for character in text.content.chars() {
        let (placed, advance) = if character == HAT {
            (fit.hat(&before), 0.0)
        } else {
            fit.character(character, along)
        };
        if character != HAT {
            let top = placed.iter().flatten().map(|point| point.1).fold(0.0, f64::max);
            before = Before { middle: along + advance * advance_by / 2.0, tall: top > 11.5 * unit };
        }
        let pen = if glyphs::small_form(character).is_some() { SMALL_PEN * pen } else { pen };
        lines.extend(placed.into_iter().map(|line| (line.into_iter().map(turned).collect(), pen)));
        along += advance * advance_by;
    }
    lines
}

/// The character before an accent.
struct Before {
    middle: f64,
    tall: bool,
}

/// How glyphs become pixels.
struct Fit {
    unit: f64,
    pen: f64,
    /// Whether the text lies along the pixels.
    level: bool,
}

impl Fit {
    /// A character's lines, x to the right of the text's point and y up from it, and its advance in units.
    fn character(&self, character: char, along: f64) -> (Vec<Vec<Point>>, f64) {
        if let Some((of, raised)) = glyphs::small_form(character) {
            let (_, advance, path) = glyphs::find(of).unwrap_or(glyphs::UNKNOWN);
            let up = if raised { 13.8 - 13.0 * SMALLER } else { -2.6 };
            let small = |(x, y): Point| {
                (along + x * SMALLER * self.unit, (y * SMALLER + up + RAISE) * self.unit)
            };
            return (each(path, small), advance * SMALLER);
        }
        let (_, advance, path) = glyphs::find(character).unwrap_or(glyphs::UNKNOWN);
        let lines = each(path, |point| point);
        let points = || lines.iter().flatten().map(|point| point.0);
        let (left, right) =
            (points().fold(f64::INFINITY, f64::min), points().fold(f64::NEG_INFINITY, f64::max));
        if !self.level || left > right {
            let plain = |(x, y): Point| (along + x * self.unit, (y + RAISE) * self.unit);
            return (each(path, plain), advance);
        }
        let from = (along + left * self.unit - self.pen / 2.0).round() + self.pen / 2.0;
        let ink = ((right - left) * self.unit + self.pen).round().max(1.0);
        let stretch =
            if right - left > 1.0 { (ink - self.pen).max(0.0) / (right - left) } else { self.unit };
        let fitted = |(x, y): Point| (from + (x - left) * stretch, self.height(y));
        (each(path, fitted), advance)
    }

    /// A circumflex over the character before it.
    fn hat(&self, before: &Before) -> Vec<Vec<Point>> {
        let up = RAISE + if before.tall { 6.0 } else { 0.0 };
        each(glyphs::CIRCUMFLEX, |(x, y)| (before.middle + x * self.unit, (y + up) * self.unit))
    }

    /// How far a height lies above the baseline, in pixels.
    fn height(&self, y: f64) -> f64 {
        let after = HEIGHTS.iter().position(|&height| y < height).unwrap_or(HEIGHTS.len());
        let before = after.clamp(1, HEIGHTS.len() - 1) - 1;
        let (low, high) = (HEIGHTS[before], HEIGHTS[before + 1]);
        let (from, to) = (self.fitted_height(low), self.fitted_height(high));
        from + (to - from) * (y - low) / (high - low)
    }

    /// A shared height, moved so that the edge of the pen lies between two pixels.
    fn fitted_height(&self, height: f64) -> f64 {
        let outwards = if height > 0.0 { 0.5 } else { -0.5 };
        let edge = (height + RAISE) * self.unit + outwards * 2.0 * RAISE * self.unit;
        edge.round() - outwards * self.pen
    }
}

fn each(path: &str, map: impl Fn(Point) -> Point) -> Vec<Vec<Point>> {
    let strokes = strokes::parse(path).unwrap_or_default();
    strokes.into_iter().map(|line| line.into_iter().map(&map).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::colour::Colour;

    fn extent(text: &Text) -> (Point, Point) {
        let lines = place(text, 1.0);
        let pen = lines[0].1;
        let points: Vec<Point> = lines.into_iter().flat_map(|line| line.0).collect();
        let fold = |of: fn(&Point) -> f64, by: fn(f64, f64) -> f64| {
            points.iter().map(of).reduce(by).unwrap()
        };
        let half = pen / 2.0;
        (
            (fold(|p| p.0, f64::min) - half, fold(|p| p.0, f64::max) + half),
            (fold(|p| p.1, f64::min) - half, fold(|p| p.1, f64::max) + half),
        )
    }

    #[test]
    fn level_letters_begin_and_end_between_pixels() {
        let text = Text::new((10.3, 50.4), 12.0, Colour::INK, "H");
        let (across, down) = extent(&text);
        for edge in [across.0, across.1, down.0, down.1] {
            assert!((edge - edge.round()).abs() < 1e-9, "{edge}");
        }
        assert_eq!(down.1, 50.0);
    }

    #[test]
    fn text_lies_where_it_is_anchored() {
        let text = Text::new((100.0, 50.0), 20.0, Colour::INK, "HHHH");
        assert!(extent(&text).0.0 >= 100.0);
        assert!(extent(&text.clone().anchored(Anchor::End)).0.1 <= 100.0);
        let ((left, right), _) = extent(&text.clone().anchored(Anchor::Middle));
        assert!(((left + right) / 2.0 - 100.0).abs() < 1.0);
        let (_, (top, bottom)) = extent(&text.turned(-90.0));
        assert!(bottom <= 50.5 && top < 10.0, "{top} {bottom}");
    }

    #[test]
    fn hats_stand_above_their_letters() {
        let bare = extent(&Text::new((0.0, 50.0), 20.0, Colour::INK, "ε")).1.0;
        let hat = extent(&Text::new((0.0, 50.0), 20.0, Colour::INK, "ε\u{302}")).1.0;
        let tall = extent(&Text::new((0.0, 50.0), 20.0, Colour::INK, "d\u{302}")).1.0;
        assert!(tall < hat && hat < bare);
    }
}
