//! A figure: marks on white paper, in the order in which they are drawn.

use crate::colour::Colour;
use crate::svg;

/// A place on a figure: to the right, and down.
pub type Point = (f64, f64);

/// A picture made of marks on white paper.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What it is called, for readers that cannot see it.
    pub title: String,
    /// What it shows, for readers that cannot see it; may be empty.
    pub description: String,
    /// The width in units; one unit is one pixel at scale 1.
    pub width: f64,
    /// The height in units; one unit is one pixel at scale 1.
    pub height: f64,
    /// The marks, in the order of drawing.
    pub marks: Vec<Mark>,
}

/// Something drawn. A mark with a coordinate that is not finite is left out.
#[derive(Debug, Clone, PartialEq)]
pub enum Mark {
    /// A rectangle whose sides are along the axes.
    Rect {
        /// The upper left corner of the rectangle.
        at: Point,
        /// The width and height of the rectangle, in units.
        size: (f64, f64),
        /// The filling of the rectangle; `None` if it has none.
        fill: Option<Fill>,
        /// The line along its outline; `None` if it has none.
        stroke: Option<Stroke>,
    },
    /// Points joined by straight lines, which are not filled.
    Polyline {
        /// The points, in the order of drawing.
        points: Vec<Point>,
        /// How the lines are drawn.
        stroke: Stroke,
    },
    /// Points joined to a closed area.
    Polygon {
        /// The points, in the order of drawing; the last is joined with the first.
        points: Vec<Point>,
        /// The filling of the area; `None` if it has none.
        fill: Option<Fill>,
        /// The line along its outline; `None` if it has none.
        stroke: Option<Stroke>,
    },
    /// A circle, filled or outlined.
    Circle {
        /// The centre of the circle.
        centre: Point,
        /// The radius in units.
        radius: f64,
        /// The filling of the circle; `None` if it has none.
        fill: Option<Fill>,
        /// The line along its outline; `None` if it has none.
        stroke: Option<Stroke>,
    },
    /// A line of text in one style.
    Text(Text),
    /// What a pointer over a rectangle shows.
    Note {
        /// The upper left corner of the rectangle.
        at: Point,
        /// The width and height of the rectangle, in units.
        size: (f64, f64),
        /// What is shown; lines stay lines.
        content: String,
    },
}

/// What an area is filled with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fill {
    /// The colour of the area.
    pub colour: Colour,
    /// The opacity from 0, invisible, to 1.
    pub opacity: f64,
}

impl From<Colour> for Fill {
    fn from(colour: Colour) -> Fill {
        Fill { colour, opacity: 1.0 }
    }
}

/// How a line is drawn; its ends and joins are round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stroke {
    /// The colour of the line.
    pub colour: Colour,
    /// The width of the line, in units.
    pub width: f64,
    /// The lengths of dashes and of the gaps between them.
    pub dash: Option<(f64, f64)>,
}

impl Stroke {
    /// Returns a line without gaps.
    pub fn solid(colour: Colour, width: f64) -> Stroke {
        Stroke { colour, width, dash: None }
    }

    /// Returns the same line in dashes.
    pub fn dashed(self, dash: f64, gap: f64) -> Stroke {
        Stroke { dash: Some((dash, gap)), ..self }
    }
}

/// A line of text in one style, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    /// The point on the baseline at which the text is anchored.
    pub at: Point,
    /// The characters to draw.
    pub content: String,
    /// The size of the font, in units.
    pub size: f64,
    /// Which part of the text lies at the point.
    pub anchor: Anchor,
    /// Clockwise, in degrees, about the point.
    pub turn: f64,
    /// How heavy the letters are drawn.
    pub weight: Weight,
    /// The colour of the letters.
    pub colour: Colour,
}

impl Text {
    /// Regular, level text that starts at a point.
    pub fn new(at: Point, size: f64, colour: Colour, content: impl Into<String>) -> Text {
        Text {
            at,
            content: content.into(),
            size,
            anchor: Anchor::Start,
            turn: 0.0,
            weight: Weight::Regular,
            colour,
        }
    }

    /// Returns the same text with another anchor.
    pub fn anchored(self, anchor: Anchor) -> Text {
        Text { anchor, ..self }
    }

    /// Returns the same text, turned clockwise by this many degrees.
    pub fn turned(self, turn: f64) -> Text {
        Text { turn, ..self }
    }

    /// Returns the same text in another weight.
    pub fn weighing(self, weight: Weight) -> Text {
        Text { weight, ..self }
    }
}

/// Which part of a text lies at its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// The text starts at the point.
    Start,
    /// The middle of the text is at the point.
    Middle,
    /// The text ends at the point.
    End,
}

/// How heavy letters are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// The weight of running text.
    Regular,
    /// The weight of titles.
    Bold,
}

impl Figure {
    /// Creates an empty figure of this size, in units.
    pub fn new(title: impl Into<String>, width: f64, height: f64) -> Figure {
        Figure { title: title.into(), description: String::new(), width, height, marks: Vec::new() }
    }

    /// The figure as an SVG document that needs nothing else: no script, no style sheet, no font.
    pub fn to_svg(&self) -> String {
        svg::document(self)
    }

    /// Adds a filled rectangle without an outline.
    pub fn fill_rect(&mut self, at: Point, size: (f64, f64), fill: impl Into<Fill>) {
        self.marks.push(Mark::Rect { at, size, fill: Some(fill.into()), stroke: None });
    }

    /// Draws a line between two points.
    pub fn line(&mut self, from: Point, to: Point, stroke: Stroke) {
        self.marks.push(Mark::Polyline { points: vec![from, to], stroke });
    }

    /// Adds a line of text to the marks.
    pub fn text(&mut self, text: Text) {
        self.marks.push(Mark::Text(text));
    }

    /// Adds what a pointer over a rectangle shows.
    pub fn note(&mut self, at: Point, size: (f64, f64), content: impl Into<String>) {
        self.marks.push(Mark::Note { at, size, content: content.into() });
    }
}

impl Mark {
    /// Returns the same mark, moved by these distances.
    pub fn moved(mut self, right: f64, down: f64) -> Mark {
        let shift = |point: &mut Point| *point = (point.0 + right, point.1 + down);
        match &mut self {
            Mark::Rect { at, .. } | Mark::Note { at, .. } => shift(at),
            Mark::Polyline { points, .. } | Mark::Polygon { points, .. } => {
                points.iter_mut().for_each(shift);
            }
            Mark::Circle { centre, .. } => shift(centre),
            Mark::Text(text) => shift(&mut text.at),
        }
        self
    }

    /// Returns whether all its numbers are finite.
    pub(crate) fn is_finite(&self) -> bool {
        let place = |point: &Point| point.0.is_finite() && point.1.is_finite();
        match self {
            Mark::Rect { at, size, .. } | Mark::Note { at, size, .. } => place(at) && place(size),
            Mark::Polyline { points, .. } | Mark::Polygon { points, .. } => {
                points.iter().all(place)
            }
            Mark::Circle { centre, radius, .. } => place(centre) && radius.is_finite(),
            Mark::Text(text) => place(&text.at) && text.size.is_finite() && text.turn.is_finite(),
        }
    }
}
