//! Curves over an axis, with bands around them.

mod field;

use self::field::Field;
use crate::axis::{Axis, Span};
use crate::colour::Colour;
use crate::figure::{Figure, Point, Stroke, Text, Weight};
use crate::font;
use crate::head::{self, EDGE, Entry, LABEL, Marker, Sample, TICK};
use crate::plot::Plot;

/// The largest number of points up to which a curve shows each of them.
const MOST_MARKERS: usize = 40;
/// The largest number of points of all curves up to which a pointer shows each of them.
const MOST_NOTES: usize = 2_000;

/// A chart of curves.
///
/// ```
/// use stlf_figure::{Axis, lines};
///
/// let figure = lines::Chart {
///     x: Axis::log("energy weight φ^E"),
///     series: vec![lines::Series::new("links", vec![(0.1, 9.0), (1.0, 4.0), (10.0, 0.0)])],
///     ..lines::Chart::default()
/// }
/// .draw();
/// assert_eq!(figure.width, 640.0);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Above the chart; may be empty.
    pub title: String,
    /// Below the title, smaller; may be empty.
    pub subtitle: String,
    /// The horizontal axis, from left to right.
    pub x: Axis,
    /// The vertical axis, from bottom to top.
    pub y: Axis,
    /// The curves; the first one is drawn above the others, and emphasised.
    pub series: Vec<Series>,
    /// Values of the horizontal axis to point out.
    pub guides: Vec<Guide>,
    /// The width of the figure, in units.
    pub width: f64,
    /// The height of the figure, in units.
    pub height: f64,
}

impl Default for Chart {
    fn default() -> Chart {
        Chart {
            title: String::new(),
            subtitle: String::new(),
            x: Axis::default(),
            y: Axis::default(),
            series: Vec::new(),
            guides: Vec::new(),
            width: 640.0,
            height: 400.0,
        }
    }
}

/// One curve of the chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The name of the curve in the legend.
    pub name: String,
    /// Values of both axes, in the order in which they are joined. Where one is not finite, the curve breaks.
    pub points: Vec<(f64, f64)>,
    /// The low and high end of an interval at each point.
    pub band: Option<Vec<(f64, f64)>>,
    /// How it is drawn; without, by its place among the curves.
    pub style: Option<Style>,
    /// What it does between its points.
    pub join: Join,
}

/// What a curve does from one point to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Join {
    /// It goes straight from one point to the next.
    #[default]
    Straight,
    /// It keeps its value and jumps there: the quantity is constant between points at which it changes.
    Steps,
}

impl Join {
    /// The corners of a curve through these points.
    fn corners(self, points: &[Point]) -> Vec<Point> {
        let Join::Steps = self else { return points.to_vec() };
        let mut corners: Vec<Point> = points.first().copied().into_iter().collect();
        for pair in points.windows(2) {
            let [(_, before), (x, y)] = [pair[0], pair[1]];
            if before != y {
                corners.push((x, before));
            }
            corners.push((x, y));
        }
        corners
    }
}

impl Series {
    /// A curve without a band, drawn by its place among the curves.
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), points, band: None, style: None, join: Join::Straight }
    }

    /// A curve that is constant between its points.
    pub fn steps(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series { join: Join::Steps, ..Series::new(name, points) }
    }
}

/// How a curve is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Style {
    /// The colour of the curve.
    pub colour: Colour,
    /// Its width; 0 draws points alone.
    pub width: f64,
    /// The lengths of dashes and gaps.
    pub dash: Option<(f64, f64)>,
    /// Which shape marks its points, of five; without, only points that stand alone are marked.
    pub marker: Option<usize>,
}

impl Style {
    /// The style of the curve at a place: the first one is heavier, and beyond the palette lines are dashed.
    pub fn nth(place: usize) -> Style {
        let dashes = [None, Some((6.0, 4.0)), Some((1.5, 4.0))];
        Style {
            colour: Colour::nth(place),
            width: if place == 0 { 2.6 } else { 1.8 },
            dash: dashes[place / Colour::PALETTE.len() % dashes.len()],
            marker: Some(place),
        }
    }

    fn stroke(&self) -> Option<Stroke> {
        (self.width > 0.0).then_some(Stroke {
            colour: self.colour,
            width: self.width,
            dash: self.dash,
        })
    }

    fn marker(&self) -> Marker {
        let radius = if self.width > 2.2 { 3.8 } else { 3.3 };
        Marker { place: self.marker.unwrap_or(0), colour: self.colour, radius }
    }
}

/// A value of the horizontal axis to point out.
#[derive(Debug, Clone, PartialEq)]
pub struct Guide {
    /// The value on the horizontal axis.
    pub at: f64,
    /// What it is; may be empty.
    pub label: String,
}

impl Chart {
    /// Draws the chart.
    pub fn draw(&self) -> Figure {
        let mut figure = Figure::new(&self.title, self.width.max(160.0), self.height.max(120.0));
        figure.description = self.describe();
        let legend = self.legend();
        let guided = self.guides.iter().any(|guide| !guide.label.trim().is_empty());
        let top = head::draw(&mut figure, &self.title, &self.subtitle, &legend)
            + if guided { TICK + 4.0 } else { 0.0 };
        let x = Span::over(&self.x, self.xs());
        let y = Span::over(&self.y, self.ys());
        let below = if self.x.label.trim().is_empty() { 34.0 } else { 52.0 };
        let plot = Plot::place(&figure, top, below, self.right_of(&x), y, &self.y.label);
        // With a long head the figure grows rather than the field vanishing.
        figure.height = figure.height.max(plot.frame.bottom + below);
        figure.width = figure.width.max(plot.frame.right + EDGE);
        plot.draw_y(&mut figure, &self.y.label);
        plot.draw_x(&mut figure, &x, &self.x.label);
        self.draw_guides(&mut figure, &plot, &x);
        let field = Field { plot, x };
        for (place, series) in self.series.iter().enumerate().rev() {
            field.draw_band(&mut figure, series, style(series, place));
        }
        let mut seen = 0;
        for (place, series) in self.series.iter().enumerate().rev() {
            seen += field.draw_curve(&mut figure, series, style(series, place));
        }
        if seen == 0 {
            head::no_data(&mut figure, field.plot.frame.middle());
        }
        if seen <= MOST_NOTES {
            for series in self.series.iter().rev() {
                field.add_notes(&mut figure, series);
            }
        }
        figure
    }

    fn describe(&self) -> String {
        let names: Vec<&str> = self.series.iter().map(|series| series.name.as_str()).collect();
        format!("Curves of {} over {}: {}.", self.y.label, self.x.label, names.join(", "))
    }

    fn legend(&self) -> Vec<Entry> {
        if self.series.len() < 2 {
            return Vec::new();
        }
        let entry = |(place, series): (usize, &Series)| {
            let style = style(series, place);
            let marked = style.marker.is_some() && series.points.len() <= MOST_MARKERS;
            let marker = (marked || style.stroke().is_none()).then(|| style.marker());
            let weight = if place == 0 { Weight::Bold } else { Weight::Regular };
            Entry {
                name: series.name.clone(),
                sample: Sample::Line(style.stroke(), marker),
                weight,
            }
        };
        self.series.iter().enumerate().map(entry).collect()
    }

    /// Every value of the horizontal axis that will be seen.
    fn xs(&self) -> impl Iterator<Item = f64> {
        let points = self.series.iter().flat_map(|series| &series.points);
        points.filter(|point| point.1.is_finite()).map(|point| point.0)
    }

    /// Every value of the vertical axis that will be seen, bands included.
    fn ys(&self) -> impl Iterator<Item = f64> {
        self.series.iter().flat_map(|series| {
            let seen = |k: usize| series.points.get(k).is_some_and(|point| point.0.is_finite());
            let points = series.points.iter().filter(|point| point.0.is_finite());
            let band = series.band.iter().flatten().enumerate().filter(move |(k, _)| seen(*k));
            points.map(|point| point.1).chain(band.flat_map(|(_, ends)| [ends.0, ends.1]))
        })
    }

    /// What the last number of the horizontal axis needs beside the field.
    fn right_of(&self, x: &Span) -> f64 {
        let ticks = x.ticks(4);
        let last = ticks.iter().rev().find_map(|tick| tick.label.as_deref()).unwrap_or_default();
        (font::room(last, TICK, Weight::Regular) / 2.0 + 8.0).max(20.0)
    }

    fn draw_guides(&self, figure: &mut Figure, plot: &Plot, x: &Span) {
        let frame = &plot.frame;
        let mut end = f64::NEG_INFINITY;
        for guide in &self.guides {
            let Some(share) = x.share(guide.at).filter(|share| (0.0..=1.0).contains(share)) else {
                continue;
            };
            let at = frame.left + share * frame.width();
            let stroke = Stroke::solid(Colour::INK, 1.1).dashed(4.0, 3.5);
            figure.line((at, frame.top - 2.0), (at, frame.bottom), stroke);
            let label = font::shorten(guide.label.trim(), TICK, Weight::Regular, frame.width());
            let width = font::room(&label, TICK, Weight::Regular);
            let start = (at - width / 2.0).clamp(EDGE, (figure.width - EDGE - width).max(EDGE));
            if !label.is_empty() && start > end {
                figure.text(Text::new((start, frame.top - 7.0), TICK, Colour::INK, label));
                end = start + width + LABEL;
            }
        }
    }
}

fn style(series: &Series, place: usize) -> Style {
    series.style.unwrap_or(Style::nth(place))
}

/// Splits items into the stretches that have no gap.
pub(crate) fn runs<T>(items: impl Iterator<Item = Option<T>>) -> Vec<Vec<T>> {
    let mut runs = vec![Vec::new()];
    for item in items {
        match (item, runs.last_mut()) {
            (Some(item), Some(run)) => run.push(item),
            _ => runs.push(Vec::new()),
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Anchor, Mark};

    fn count(figure: &Figure, of: impl Fn(&Mark) -> bool) -> usize {
        figure.marks.iter().filter(|mark| of(mark)).count()
    }

    fn says(figure: &Figure, content: &str) -> bool {
        count(figure, |mark| matches!(mark, Mark::Text(text) if text.content == content)) > 0
    }

    fn one(points: Vec<(f64, f64)>) -> Chart {
        Chart { series: vec![Series::new("a", points)], ..Chart::default() }
    }

    #[test]
    fn gaps_break_the_curve_and_single_points_are_seen() {
        let nan = f64::NAN;
        let chart = one(vec![(0.0, 1.0), (1.0, 2.0), (2.0, nan), (3.0, 1.0), (4.0, nan)]);
        let figure = chart.draw();
        let heavy =
            |mark: &Mark| matches!(mark, Mark::Polyline { stroke, .. } if stroke.width > 2.0);
        assert_eq!(count(&figure, heavy), 1);
        assert_eq!(count(&figure, |mark| matches!(mark, Mark::Circle { .. })), 3);
    }

    #[test]
    fn steps_keep_their_value_until_they_jump() {
        let series = vec![Series::steps("a", vec![(0.0, 3.0), (1.0, 3.0), (2.0, 1.0)])];
        let figure = Chart { series, ..Chart::default() }.draw();
        let curve = figure.marks.iter().find_map(|mark| match mark {
            Mark::Polyline { points, stroke } if stroke.width > 2.0 => Some(points),
            _ => None,
        });
        let points = curve.expect("a curve");
        // Level, and down at the last point: each part goes along one axis.
        assert_eq!(points.len(), 4);
        for pair in points.windows(2) {
            assert!(pair[0].0 == pair[1].0 || pair[0].1 == pair[1].1, "{points:?}");
        }
        assert_eq!(points[1].1, points[2].1);
    }

    #[test]
    fn a_chart_without_data_says_so() {
        assert!(says(&Chart::default().draw(), "no data"));
        assert!(says(&one(vec![(f64::NAN, 1.0)]).draw(), "no data"));
        assert!(!says(&one(vec![(1.0, 1.0)]).draw(), "no data"));
    }

    #[test]
    fn nothing_is_drawn_outside_the_paper() {
        let band = Some(vec![(-50.0, 50.0), (0.0, 1e9), (1.0, 2.0)]);
        let points = vec![(-5.0, 0.0), (0.5, 0.5), (9.0, 1e9)];
        let axis = Axis { range: Some((0.0, 1.0)), ..Axis::linear("x") };
        let series = vec![Series { band, ..Series::new("a", points) }];
        let chart = Chart { x: axis.clone(), y: axis, series, ..Chart::default() };
        let figure = chart.draw();
        for mark in &figure.marks {
            if let Mark::Polyline { points, .. } | Mark::Polygon { points, .. } = mark {
                for &(x, y) in points {
                    assert!(
                        (0.0..=figure.width).contains(&x) && (0.0..=figure.height).contains(&y)
                    );
                }
            }
        }
    }

    #[test]
    fn one_curve_needs_no_legend_and_several_have_one() {
        assert!(!says(&one(vec![(1.0, 1.0)]).draw(), "a"));
        let series = ["a", "b"].map(|name| Series::new(name, vec![(1.0, 1.0)])).to_vec();
        let figure = Chart { series, ..Chart::default() }.draw();
        assert!(says(&figure, "a") && says(&figure, "b"));
    }

    #[test]
    fn names_turn_about_their_anchor() {
        let chart = Chart { y: Axis::linear("accuracy"), ..one(vec![(1.0, 1.0)]) };
        let figure = chart.draw();
        let label = |mark: &Mark| {
            matches!(mark, Mark::Text(text)
                if text.content == "accuracy" && text.turn == -90.0 && text.anchor == Anchor::Middle)
        };
        assert_eq!(count(&figure, label), 1);
    }
}
