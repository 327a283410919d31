//! What stands above a chart: its title, a line below it, and the legend.

use crate::colour::Colour;
use crate::figure::{Anchor, Figure, Fill, Mark, Point, Stroke, Text, Weight};
use crate::font;

/// The distance of everything from the edge of the paper.
pub(crate) const EDGE: f64 = 16.0;
/// The size of the font of titles, in units.
pub(crate) const TITLE: f64 = 15.0;
/// The size of labels and legends.
pub(crate) const LABEL: f64 = 12.0;
/// The size of the numbers of ticks.
pub(crate) const TICK: f64 = 11.0;

/// The height of a row of the legend.
const ROW: f64 = 19.0;
/// The distance between a sample and its name, and between two entries, in units.
const GAP: f64 = 7.0;
const BETWEEN: f64 = 14.0;

/// What the legend says of one series.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) sample: Sample,
    pub(crate) weight: Weight,
}

/// What stands before a name in the legend.
pub(crate) enum Sample {
    /// A piece of a curve, and its marker.
    Line(Option<Stroke>, Option<Marker>),
    /// A square as bars have it.
    Block(Colour),
    /// A disc with this fill and outline.
    Disc(Fill, Option<Stroke>),
}

impl Sample {
    fn width(&self) -> f64 {
        match self {
            Sample::Line(..) => 24.0,
            Sample::Block(_) | Sample::Disc(..) => 12.0,
        }
    }

    fn draw(&self, figure: &mut Figure, (x, y): Point) {
        let width = self.width();
        match self {
            Sample::Line(stroke, marker) => {
                if let Some(stroke) = stroke {
                    figure.line((x + 1.0, y), (x + width - 1.0, y), *stroke);
                }
                figure.marks.extend(marker.map(|marker| marker.at((x + width / 2.0, y))));
            }
            Sample::Block(colour) => {
                figure.fill_rect((x, y - width / 2.0), (width, width), *colour);
            }
            Sample::Disc(fill, stroke) => {
                let radius = width / 2.0;
                let (fill, stroke) = (Some(*fill), *stroke);
                figure.marks.push(Mark::Circle { centre: (x + radius, y), radius, fill, stroke });
            }
        }
    }
}

/// The shape that shows a point; a second sign besides the colour.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Marker {
    pub(crate) place: usize,
    pub(crate) colour: Colour,
    pub(crate) radius: f64,
}

impl Marker {
    /// The marker at a point, with a rim of paper that sets it off from lines.
    pub(crate) fn at(&self, (x, y): Point) -> Mark {
        let fill = Some(Fill::from(self.colour));
        let stroke = Some(Stroke::solid(Colour::PAPER, 0.8));
        let r = self.radius;
        let polygon = |corners: &[Point]| Mark::Polygon {
            points: corners.iter().map(|(across, down)| (x + r * across, y + r * down)).collect(),
            fill,
            stroke,
        };
        match self.place % 5 {
            0 => Mark::Circle { centre: (x, y), radius: r, fill, stroke },
            1 => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            2 => polygon(&[(0.0, -1.25), (1.15, 0.8), (-1.15, 0.8)]),
            3 => polygon(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
            _ => polygon(&[(0.0, 1.25), (1.15, -0.8), (-1.15, -0.8)]),
        }
    }
}

/// Draws title, subtitle and legend; returns where the rest may begin.
pub(crate) fn draw(figure: &mut Figure, title: &str, subtitle: &str, legend: &[Entry]) -> f64 {
    let room = (figure.width - 2.0 * EDGE).max(40.0);
    let mut y = EDGE - 4.0;
    for line in font::wrap(title, TITLE, Weight::Bold, room, 3) {
        y += TITLE * 1.3;
        let text = Text::new((EDGE, y - 3.0), TITLE, Colour::INK, line);
        figure.text(text.weighing(Weight::Bold));
    }
    for line in font::wrap(subtitle, LABEL, Weight::Regular, room, 3) {
        y += LABEL * 1.45;
        figure.text(Text::new((EDGE, y - 2.0), LABEL, Colour::MUTED, line));
    }
    let legend: Vec<&Entry> = legend.iter().filter(|entry| !entry.name.trim().is_empty()).collect();
    if !legend.is_empty() {
        y += 6.0;
    }
    let mut x = EDGE;
    for (place, entry) in legend.iter().enumerate() {
        let start = entry.sample.width() + GAP;
        let name = font::shorten(&entry.name, LABEL, entry.weight, room - start);
        let width = start + font::room(&name, LABEL, entry.weight);
        if place == 0 || x + width > EDGE + room + 0.1 {
            x = EDGE;
            y += ROW;
        }
        let middle = y - 7.0;
        entry.sample.draw(figure, (x, middle));
        let colour = if entry.weight == Weight::Bold { Colour::INK } else { Colour::TEXT };
        let text = Text::new((x + start, middle + 4.0), LABEL, colour, name);
        figure.text(text.weighing(entry.weight));
        x += width + BETWEEN;
    }
    y + 14.0
}

/// Says in the middle of a chart that there is nothing to see.
pub(crate) fn no_data(figure: &mut Figure, (x, y): Point) {
    let text = Text::new((x, y + 4.0), LABEL, Colour::MUTED, "no data");
    figure.text(text.anchored(Anchor::Middle));
}
