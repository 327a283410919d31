//! Writes a figure as SVG.

use crate::colour::Colour;
use crate::figure::{Anchor, Figure, Fill, Mark, Point, Stroke, Text, Weight};

/// Fonts that converters to PDF know, too: `system-ui` means nothing to them.
const FONTS: &str = "Helvetica,Arial,'Liberation Sans','DejaVu Sans',system-ui,sans-serif";

/// The whole document. The paper is drawn, so it is white in a dark viewer too.
pub(crate) fn document(figure: &Figure) -> String {
    let (width, height) = (number(figure.width.max(0.0)), number(figure.height.max(0.0)));
    let title = escape(&figure.title);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\" \
         font-family=\"{FONTS}\" stroke-linecap=\"round\" stroke-linejoin=\"round\">\n\
         <title>{title}</title>\n"
    );
    if !figure.description.is_empty() {
        svg += &format!("<desc>{}</desc>\n", escape(&figure.description));
    }
    svg += &format!(
        "<rect width=\"{width}\" height=\"{height}\" fill=\"{}\"/>\n",
        Colour::PAPER.css()
    );
    for mark in figure.marks.iter().filter(|mark| mark.is_finite()) {
        svg += &element(mark);
    }
    svg += "</svg>\n";
    svg
}

fn element(mark: &Mark) -> String {
    match mark {
        Mark::Rect { at, size, fill, stroke } => {
            format!("<rect {}{}/>\n", place(*at, *size), paint(*fill, *stroke))
        }
        Mark::Polyline { points, stroke } => {
            format!("<polyline points=\"{}\"{}/>\n", list(points), paint(None, Some(*stroke)))
        }
        Mark::Polygon { points, fill, stroke } => {
            format!("<polygon points=\"{}\"{}/>\n", list(points), paint(*fill, *stroke))
        }
        Mark::Circle { centre, radius, fill, stroke } => format!(
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\"{}/>\n",
            number(centre.0),
            number(centre.1),
            number(radius.max(0.0)),
            paint(*fill, *stroke)
        ),
        Mark::Text(text) => line_of_text(text),
        Mark::Note { at, size, content } => format!(
            "<rect {} fill=\"none\" pointer-events=\"all\"><title>{}</title></rect>\n",
            place(*at, *size),
            content.lines().map(escape).collect::<Vec<_>>().join("\n")
        ),
    }
}

fn line_of_text(text: &Text) -> String {
    let (x, y) = (number(text.at.0), number(text.at.1));
    let anchor = match text.anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    let weight = match text.weight {
        Weight::Regular => "",
        Weight::Bold => " font-weight=\"600\"",
    };
    let turn = match text.turn {
        0.0 => String::new(),
        turn => format!(" transform=\"rotate({} {x} {y})\"", number(turn)),
    };
    format!(
        "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\"{anchor}{weight}{turn} fill=\"{}\">{}</text>\n",
        number(text.size.max(0.0)),
        text.colour.css(),
        escape(&text.content)
    )
}

fn place(at: Point, size: (f64, f64)) -> String {
    format!(
        "x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
        number(at.0),
        number(at.1),
        number(size.0.max(0.0)),
        number(size.1.max(0.0))
    )
}

fn paint(fill: Option<Fill>, stroke: Option<Stroke>) -> String {
    let mut attributes = match fill {
        None => " fill=\"none\"".to_owned(),
        Some(fill) if fill.opacity >= 1.0 => format!(" fill=\"{}\"", fill.colour.css()),
        Some(fill) => format!(
            " fill=\"{}\" fill-opacity=\"{}\"",
            fill.colour.css(),
            number(fill.opacity.max(0.0))
        ),
    };
    if let Some(stroke) = stroke {
        let width = number(stroke.width.max(0.0));
        attributes += &format!(" stroke=\"{}\" stroke-width=\"{width}\"", stroke.colour.css());
        if let Some((dash, gap)) = stroke.dash {
            attributes += &format!(" stroke-dasharray=\"{} {}\"", number(dash), number(gap));
        }
    }
    attributes
}

fn list(points: &[Point]) -> String {
    let pairs: Vec<String> =
        points.iter().map(|point| format!("{},{}", number(point.0), number(point.1))).collect();
    pairs.join(" ")
}

/// Two decimals at most, and none that say nothing. What is not a number is 0.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let written = format!("{value:.2}");
    let short = written.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".to_owned() } else { short.to_owned() }
}

/// Text as XML has it. Characters that XML 1.0 forbids become U+FFFD.
fn escape(content: &str) -> String {
    let mut escaped = String::with_capacity(content.len());
    for c in content.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\t' | '\n' | '\r' => escaped.push(' '),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let written = [1.0, 0.5, 1.0 / 3.0, -0.001, 1200.0, -2.5, f64::NAN, f64::INFINITY];
        let expected = ["1", "0.5", "0.33", "0", "1200", "-2.5", "0", "0"];
        assert_eq!(written.map(number), expected);
    }

    #[test]
    fn text_is_escaped_and_forbidden_characters_are_replaced() {
        assert_eq!(escape("a<b & \"c\"\u{1}\n>"), "a&lt;b &amp; &quot;c&quot;\u{fffd} &gt;");
    }

    #[test]
    fn marks_that_lie_nowhere_are_left_out() {
        let mut figure = Figure::new("t", 10.0, 10.0);
        figure.line((0.0, 0.0), (f64::NAN, 1.0), Stroke::solid(Colour::INK, 1.0));
        assert!(!document(&figure).contains("polyline"));
    }

    #[test]
    fn what_is_drawn_is_written() {
        let mut figure = Figure::new("A & B", 20.0, 10.0);
        figure.fill_rect((1.0, 2.0), (3.0, 4.0), Fill { colour: Colour::INK, opacity: 0.25 });
        figure.line((0.0, 0.0), (1.0, 1.5), Stroke::solid(Colour::INK, 2.0).dashed(3.0, 4.0));
        figure.text(Text::new((5.0, 6.0), 12.0, Colour::TEXT, "x").turned(-90.0));
        figure.note((0.0, 0.0), (5.0, 5.0), "seen");
        let svg = document(&figure);
        for part in [
            "<title>A &amp; B</title>",
            "role=\"img\"",
            "<rect width=\"20\" height=\"10\" fill=\"#ffffff\"/>",
            "<rect x=\"1\" y=\"2\" width=\"3\" height=\"4\" fill=\"#16191d\" fill-opacity=\"0.25\"/>",
            "points=\"0,0 1,1.5\"",
            "stroke-dasharray=\"3 4\"",
            "rotate(-90 5 6)",
            "<title>seen</title>",
        ] {
            assert!(svg.contains(part), "{part} is not in {svg}");
        }
    }
}
