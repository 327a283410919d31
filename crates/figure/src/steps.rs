//! Quantities that are constant between breakpoints, in panels above each other over one axis.

use crate::axis::{Axis, Span};
use crate::clip::Frame;
use crate::colour::Colour;
use crate::figure::{Anchor, Figure, Fill, Mark, Point, Stroke, Text, Weight};
use crate::head::{self, EDGE, LABEL, TICK};
use crate::lines::{Guide, runs};
use crate::plot::Plot;
use crate::{font, number};

/// The height of a panel, in units.
const PANEL: f64 = 128.0;
/// What a panel has above it for its label.
const ABOVE: f64 = 26.0;
/// The distance between a panel and the label of the next one, in units.
const BETWEEN: f64 = 14.0;
/// With more breakpoints than this, lines through all panels would hide the curves.
const MOST_GUIDES: usize = 40;

/// A chart of steps.
///
/// ```
/// use stlf_figure::{Axis, steps};
///
/// let links = steps::Panel { label: "links".to_owned(), values: vec![9.0, 4.0], from_zero: true };
/// let figure = steps::Chart {
///     x: Axis::log("energy weight"),
///     edges: vec![0.1, 3.0, 100.0],
///     panels: vec![links],
///     ..steps::Chart::default()
/// }
/// .draw();
/// assert!(figure.to_svg().contains("energy weight"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Above the panels; may be empty.
    pub title: String,
    /// Below the title, smaller; may be empty.
    pub subtitle: String,
    /// Below all panels. Without a range, it reaches from the first edge to the last.
    pub x: Axis,
    /// Ascending: where the steps begin, and at the end where the last one ends.
    pub edges: Vec<f64>,
    /// The panels from top to bottom.
    pub panels: Vec<Panel>,
    /// A value of the axis to point out.
    pub guide: Option<Guide>,
    /// What a pointer over each step shows; those that are not there show nothing.
    pub notes: Vec<String>,
    /// The width of the figure, in units.
    pub width: f64,
}

impl Default for Chart {
    fn default() -> Chart {
        Chart {
            title: String::new(),
            subtitle: String::new(),
            x: Axis::default(),
            edges: Vec::new(),
            panels: Vec::new(),
            guide: None,
            notes: Vec::new(),
            width: 760.0,
        }
    }
}

/// One quantity against the horizontal axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// What is drawn, with its unit.
    pub label: String,
    /// One per step. Where one is not finite, the curve breaks.
    pub values: Vec<f64>,
    /// Whether the axis begins at 0 (amounts) or near the least value (levels).
    pub from_zero: bool,
}

impl Panel {
    fn span(&self) -> Span {
        let axis = Axis { from_zero: self.from_zero, ..Axis::linear("") };
        Span::over(&axis, self.values.iter().copied())
    }

    /// The value of the last step, as it is written beside it.
    fn last(&self) -> Option<(f64, String)> {
        let last = self.values.last().copied().filter(|value| value.is_finite())?;
        Some((last, number::short(last)))
    }
}

impl Chart {
    /// Draws the chart.
    pub fn draw(&self) -> Figure {
        let mut figure = Figure::new(&self.title, self.width.max(160.0), 0.0);
        figure.description = self.describe();
        let guided = self.guide.as_ref().is_some_and(|guide| !guide.label.trim().is_empty());
        let top = head::draw(&mut figure, &self.title, &self.subtitle, &[])
            + if guided { LABEL + 4.0 } else { 0.0 };
        let x = self.span();
        let plots = self.place(&mut figure, top);
        let Some((last, upper)) = plots.split_last() else {
            figure.height = top + PANEL;
            let middle = (figure.width / 2.0, top + PANEL / 2.0);
            head::no_data(&mut figure, middle);
            return figure;
        };
        let below = if self.x.label.trim().is_empty() { 34.0 } else { 52.0 };
        figure.height = last.frame.bottom + below;
        let all = Frame { top: plots[0].frame.top, ..last.frame };
        for plot in upper {
            plot.draw_y(&mut figure, "");
            plot.draw_x_grid(&mut figure, &x);
        }
        last.draw_y(&mut figure, "");
        last.draw_x(&mut figure, &x, &self.x.label);
        self.draw_breakpoints(&mut figure, &plots, &x);
        self.draw_guide(&mut figure, &all, &x);
        for (place, (panel, plot)) in self.panels.iter().zip(&plots).enumerate() {
            self.draw_panel(&mut figure, panel, plot, &x, Colour::nth(place));
        }
        self.add_notes(&mut figure, &all, &x);
        figure
    }

    fn describe(&self) -> String {
        let labels: Vec<&str> = self.panels.iter().map(|panel| panel.label.as_str()).collect();
        format!("Steps of {} over {}.", labels.join(", "), self.x.label)
    }

    fn span(&self) -> Span {
        let ends = self.edges.first().copied().zip(self.edges.last().copied());
        let range = self.x.range.or(ends);
        Span::over(&Axis { range, ..self.x.clone() }, self.edges.iter().copied())
    }

    fn breakpoints(&self) -> &[f64] {
        self.edges.get(1..self.edges.len().saturating_sub(1)).unwrap_or_default()
    }

    /// The fields of the panels, all as wide as numbers at their left and values at their right leave room for.
    fn place(&self, figure: &mut Figure, top: f64) -> Vec<Plot> {
        let values = self.panels.iter().filter_map(Panel::last);
        let beside = values.map(|(_, value)| font::room(&value, LABEL, Weight::Bold));
        let right = beside.fold(0.0, f64::max) + 8.0 + EDGE;
        let mut plots: Vec<Plot> = Vec::new();
        for panel in &self.panels {
            let above = plots.last().map_or(top, |plot| plot.frame.bottom + BETWEEN);
            let (top, bottom) = (above + ABOVE, above + ABOVE + PANEL);
            let frame = Frame { left: 0.0, top, right: figure.width - right, bottom };
            plots.push(Plot::within(frame, panel.span()));
        }
        let left = plots.iter().map(Plot::numbers).fold(0.0, f64::max);
        for plot in &mut plots {
            plot.frame.left = (EDGE + left).round();
            plot.frame.right = plot.frame.right.max(plot.frame.left + 40.0);
            figure.width = figure.width.max(plot.frame.right + right);
        }
        plots
    }

    fn draw_breakpoints(&self, figure: &mut Figure, plots: &[Plot], x: &Span) {
        let stroke = Stroke::solid(Colour::AXIS.lighter(0.4), 1.0).dashed(1.5, 3.5);
        let through = self.breakpoints().len() <= MOST_GUIDES;
        for at in self.breakpoints().iter().filter_map(|&value| x.share(value)) {
            for Frame { left, right, top, bottom } in plots.iter().map(|plot| plot.frame) {
                let at = left + at * (right - left);
                let from = if through { top } else { bottom - 5.0 };
                if (left..=right).contains(&at) {
                    figure.line((at, from), (at, bottom), stroke);
                }
            }
        }
    }

    fn draw_guide(&self, figure: &mut Figure, all: &Frame, x: &Span) {
        let Some(guide) = &self.guide else { return };
        let Some(share) = x.share(guide.at).filter(|share| (0.0..=1.0).contains(share)) else {
            return;
        };
        let at = all.left + share * all.width();
        let top = all.top - ABOVE;
        let stroke = Stroke::solid(Colour::INK, 1.2).dashed(5.0, 3.5);
        figure.line((at, top - LABEL + 2.0), (at, all.bottom), stroke);
        let room = (at - EDGE).max(figure.width - EDGE - at) - 6.0;
        let label = font::shorten(guide.label.trim(), LABEL, Weight::Bold, room);
        let fits = at + 6.0 + font::room(&label, LABEL, Weight::Bold) <= figure.width - EDGE;
        let (shift, anchor) = if fits { (6.0, Anchor::Start) } else { (-6.0, Anchor::End) };
        let text = Text::new((at + shift, top), LABEL, Colour::INK, label);
        figure.text(text.anchored(anchor).weighing(Weight::Bold));
    }

    fn draw_panel(
        &self,
        figure: &mut Figure,
        panel: &Panel,
        plot: &Plot,
        x: &Span,
        colour: Colour,
    ) {
        let frame = &plot.frame;
        let across = |value: f64| Some(frame.left + x.share(value)? * frame.width());
        draw_label(figure, frame, &panel.label);
        let steps = self.edges.windows(2).zip(&panel.values).map(|(edges, &value)| {
            let y = plot.down(value)?;
            Some([(across(edges[0])?, y), (across(edges[1])?, y)])
        });
        let mut seen = false;
        for run in runs(steps) {
            seen = true;
            let line = run.as_flattened();
            if panel.from_zero {
                let foot = plot.down_within(0.0);
                let ends = [line[line.len() - 1], line[0]].map(|(x, _)| (x, foot));
                let area: Vec<Point> = line.iter().copied().chain(ends).collect();
                let fill = Some(Fill { colour, opacity: 0.14 });
                let points = frame.cut_area(&area);
                figure.marks.push(Mark::Polygon { points, fill, stroke: None });
            }
            let stroke = Stroke::solid(colour, 2.2);
            let parts = frame.cut_line(line).into_iter();
            figure.marks.extend(parts.map(|points| Mark::Polyline { points, stroke }));
        }
        if !seen {
            head::no_data(figure, frame.middle());
        }
        if self.breakpoints().len() <= MOST_GUIDES {
            for (&edge, &value) in self.breakpoints().iter().zip(panel.values.iter().skip(1)) {
                let Some(centre) = across(edge).zip(plot.down(value)) else { continue };
                if frame.holds(centre) {
                    let fill = Some(Fill::from(colour));
                    figure.marks.push(Mark::Circle { centre, radius: 2.6, fill, stroke: None });
                }
            }
        }
        if let Some((value, written)) = panel.last() {
            let at = (frame.right + 8.0, plot.down_within(value) + 4.0);
            figure.text(Text::new(at, LABEL, Colour::INK, written).weighing(Weight::Bold));
        }
    }

    fn add_notes(&self, figure: &mut Figure, all: &Frame, x: &Span) {
        for (edges, note) in self.edges.windows(2).zip(&self.notes) {
            let place = |value| all.left + x.share_within(value) * all.width();
            let (from, to) = (place(edges[0]), place(edges[1]));
            figure.note((from, all.top), (to - from, all.height()), note);
        }
    }
}

/// What a panel shows, above it, on paper of its own so that the guide does not run through it.
fn draw_label(figure: &mut Figure, frame: &Frame, label: &str) {
    let label = font::shorten(label.trim(), LABEL, Weight::Bold, figure.width - frame.left - EDGE);
    if label.is_empty() {
        return;
    }
    let baseline = frame.top - 9.0;
    let size = (font::room(&label, LABEL, Weight::Bold), TICK + 4.0);
    figure.fill_rect((frame.left, baseline - TICK), size, Colour::PAPER);
    let text = Text::new((frame.left, baseline), LABEL, Colour::TEXT, label);
    figure.text(text.weighing(Weight::Bold));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(values: Vec<f64>) -> Chart {
        let panel = |from_zero| Panel { label: "p".to_owned(), values: values.clone(), from_zero };
        Chart {
            x: Axis::log("x"),
            edges: (0..=values.len()).map(|k| 10f64.powi(k as i32)).collect(),
            panels: vec![panel(true), panel(false)],
            ..Chart::default()
        }
    }

    fn curves(figure: &Figure) -> Vec<&Vec<Point>> {
        let marks = figure.marks.iter();
        marks
            .filter_map(|mark| match mark {
                Mark::Polyline { points, stroke } if stroke.width > 2.0 => Some(points),
                _ => None,
            })
            .collect()
    }

    fn texts(figure: &Figure) -> Vec<&str> {
        let marks = figure.marks.iter();
        marks
            .filter_map(|mark| match mark {
                Mark::Text(text) => Some(text.content.as_str()),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn steps_are_level_and_meet_at_the_breakpoints() {
        let figure = chart(vec![3.0, 2.0, 2.0]).draw();
        let curves = curves(&figure);
        assert_eq!(curves.len(), 2);
        for line in curves {
            assert_eq!(line.len(), 6);
            for step in line.chunks(2) {
                assert_eq!(step[0].1, step[1].1);
            }
            assert_eq!((line[1].0, line[3].0), (line[2].0, line[4].0));
            // A decade is as wide as another.
            assert!((line[1].0 - line[0].0 - (line[3].0 - line[2].0)).abs() < 1e-9);
            assert!(line[1].1 < line[2].1);
        }
        let dots = figure.marks.iter().filter(|mark| matches!(mark, Mark::Circle { .. }));
        assert_eq!(dots.count(), 4);
    }

    #[test]
    fn panels_stand_above_each_other_at_one_left_edge() {
        let mut chart = chart(vec![3.0, 2.0]);
        chart.panels[1].values = vec![123_456.0, 123_457.5];
        let figure = chart.draw();
        let curves = curves(&figure);
        assert_eq!(curves[0][0].0, curves[1][0].0);
        assert!(curves[0].iter().all(|low| curves[1].iter().all(|high| low.1 < high.1)));
    }

    #[test]
    fn many_breakpoints_leave_the_curves_in_sight() {
        let figure = chart((0..60).map(f64::from).collect()).draw();
        assert!(!figure.marks.iter().any(|mark| matches!(mark, Mark::Circle { .. })));
    }

    #[test]
    fn the_guide_is_named_on_the_side_with_room() {
        let at = |at: f64| {
            let guide = Some(Guide { at, label: "here".to_owned() });
            let figure = Chart { guide, ..chart(vec![1.0, 2.0]) }.draw();
            figure.marks.iter().find_map(|mark| match mark {
                Mark::Text(text) if text.content == "here" => Some(text.anchor),
                _ => None,
            })
        };
        assert_eq!(at(1.5), Some(Anchor::Start));
        assert_eq!(at(99.0), Some(Anchor::End));
        assert_eq!(at(1000.0), None);
    }

    #[test]
    fn a_chart_without_data_says_so() {
        assert!(texts(&Chart::default().draw()).contains(&"no data"));
        assert!(texts(&chart(vec![f64::NAN]).draw()).contains(&"no data"));
    }

    #[test]
    fn amounts_have_no_negative_numbers() {
        let mut zero = chart(vec![0.0, 0.0]);
        zero.panels.truncate(1);
        assert!(!texts(&zero.draw()).iter().any(|text| text.starts_with('−')));
    }

    #[test]
    fn notes_cover_their_steps() {
        let notes = vec!["a".to_owned(), "b\nc".to_owned()];
        let figure = Chart { notes, ..chart(vec![1.0, 2.0]) }.draw();
        let rooms: Vec<(f64, f64)> = figure
            .marks
            .iter()
            .filter_map(|mark| match mark {
                Mark::Note { at, size, .. } => Some((at.0, at.0 + size.0)),
                _ => None,
            })
            .collect();
        assert_eq!(rooms.len(), 2);
        assert_eq!(rooms[0].1, rooms[1].0);
        assert!(figure.to_svg().contains("<title>b\nc</title>"));
    }
}
