//! The field that lines, bars and steps are drawn in: its place on the paper, its grid and its axes.

use crate::axis::{Span, Tick};
use crate::clip::Frame;
use crate::colour::Colour;
use crate::figure::{Anchor, Figure, Stroke, Text, Weight};
use crate::font;
use crate::head::{EDGE, LABEL, TICK};

/// The distance between an axis and the numbers of its ticks, in units.
const BESIDE: f64 = 8.0;
/// The least distance of two numbers on an axis.
const APART: f64 = 10.0;

/// A field with a vertical axis at its left.
pub(crate) struct Plot {
    pub(crate) frame: Frame,
    pub(crate) y: Span,
    y_ticks: Vec<Tick>,
}

impl Plot {
    /// Finds room on the paper below `top`, so that numbers and label of the vertical axis fit beside it.
    pub(crate) fn place(
        figure: &Figure,
        top: f64,
        below: f64,
        right: f64,
        y: Span,
        y_label: &str,
    ) -> Plot {
        let bottom = (figure.height - below).max(top + 40.0);
        let mut plot = Plot::within(Frame { left: 0.0, top, right: 0.0, bottom }, y);
        let label = if y_label.trim().is_empty() { 0.0 } else { LABEL + BESIDE };
        let left = (EDGE + label + plot.numbers()).round();
        let right = (figure.width - right).max(left + 40.0);
        plot.frame = Frame { left, top: top.round(), right, bottom: bottom.round() };
        plot
    }

    /// Takes a place on the paper as it is; see [`Plot::numbers`] for what it needs at its left.
    pub(crate) fn within(frame: Frame, y: Span) -> Plot {
        let most = most_ticks(frame.height());
        let y = y.rounded(most);
        Plot { frame, y_ticks: y.ticks(most), y }
    }

    /// What the numbers of the vertical axis need beside it.
    pub(crate) fn numbers(&self) -> f64 {
        let labels = self.y_ticks.iter().filter_map(|tick| tick.label.as_deref());
        labels.map(|label| font::room(label, TICK, Weight::Regular)).fold(0.0, f64::max) + BESIDE
    }

    /// Where a value of the vertical axis lies.
    pub(crate) fn down(&self, value: f64) -> Option<f64> {
        self.y.share(value).map(|share| self.frame.bottom - share * self.frame.height())
    }

    /// Returns the same as [`Plot::down`], limited to the field.
    pub(crate) fn down_within(&self, value: f64) -> f64 {
        self.frame.bottom - self.y.share_within(value) * self.frame.height()
    }

    /// The vertical axis: lines behind the data, numbers, and the label.
    pub(crate) fn draw_y(&self, figure: &mut Figure, label: &str) {
        let frame = &self.frame;
        let mut above = f64::INFINITY;
        for tick in &self.y_ticks {
            let Some(y) = self.down(tick.value) else { continue };
            // A line of one pixel is sharp where it covers one row of pixels.
            let y = y.floor() + 0.5;
            figure.line((frame.left, y), (frame.right, y), grid(tick));
            if let Some(number) = tick.label.as_deref()
                && above - y > TICK
            {
                above = y;
                let text = Text::new((frame.left - BESIDE, y + 4.0), TICK, Colour::MUTED, number);
                figure.text(text.anchored(Anchor::End));
            }
        }
        let label = font::shorten(label.trim(), LABEL, Weight::Regular, frame.height() + 40.0);
        if !label.is_empty() {
            let at = (EDGE + LABEL * 0.6, frame.middle().1);
            let text = Text::new(at, LABEL, Colour::TEXT, label);
            figure.text(text.anchored(Anchor::Middle).turned(-90.0));
        }
    }

    /// The lines of a horizontal axis behind the data alone, where a field below has its numbers.
    pub(crate) fn draw_x_grid(&self, figure: &mut Figure, span: &Span) {
        for (x, tick) in self.x_ticks(span) {
            figure.line((x, self.frame.top), (x, self.frame.bottom), grid(&tick));
        }
        self.draw_foot(figure);
    }

    /// The ticks of a horizontal axis, each with its place.
    fn x_ticks(&self, span: &Span) -> Vec<(f64, Tick)> {
        let frame = &self.frame;
        let place = |tick: Tick| {
            let x = (frame.left + span.share(tick.value)? * frame.width()).floor() + 0.5;
            (x <= frame.right + 1.0).then_some((x, tick))
        };
        fitting_ticks(span, frame.width()).into_iter().filter_map(place).collect()
    }

    /// A horizontal axis below the field, from value to place by `span`.
    pub(crate) fn draw_x(&self, figure: &mut Figure, span: &Span, label: &str) {
        let frame = &self.frame;
        let foot = self.foot();
        for (x, tick) in self.x_ticks(span) {
            figure.line((x, frame.top), (x, frame.bottom), grid(&tick));
            let length = if tick.label.is_some() { 4.5 } else { 2.5 };
            figure.line((x, foot), (x, foot + length), Stroke::solid(Colour::AXIS, 1.0));
            if let Some(number) = tick.label.as_deref() {
                let text = Text::new((x, foot + 17.0), TICK, Colour::MUTED, number);
                figure.text(text.anchored(Anchor::Middle));
            }
        }
        self.draw_foot(figure);
        self.draw_x_label(figure, foot + 37.0, label);
    }

    /// The line at the foot of the field.
    pub(crate) fn draw_foot(&self, figure: &mut Figure) {
        let (frame, foot) = (&self.frame, self.foot());
        figure.line((frame.left, foot), (frame.right, foot), Stroke::solid(Colour::AXIS, 1.0));
    }

    /// A label in the middle below the field, on a baseline.
    pub(crate) fn draw_x_label(&self, figure: &mut Figure, baseline: f64, label: &str) {
        let label = font::shorten(label.trim(), LABEL, Weight::Regular, figure.width - 2.0 * EDGE);
        if label.is_empty() {
            return;
        }
        let half = font::room(&label, LABEL, Weight::Regular) / 2.0;
        let middle = self.frame.middle().0;
        // Not beyond the paper if the label is wider than the field.
        let x = middle.clamp(EDGE + half, (figure.width - EDGE - half).max(EDGE + half));
        let text = Text::new((x, baseline), LABEL, Colour::TEXT, label);
        figure.text(text.anchored(Anchor::Middle));
    }

    fn foot(&self) -> f64 {
        self.frame.bottom.floor() + 0.5
    }
}

/// As many ticks of a vertical axis as its height leaves room for.
fn most_ticks(height: f64) -> usize {
    ((height / 36.0) as usize).clamp(3, 8)
}

fn grid(tick: &Tick) -> Stroke {
    let colour = if tick.label.is_some() { Colour::GRID } else { Colour::GRID.lighter(0.55) };
    Stroke::solid(colour, 1.0)
}

/// Returns as many ticks as their numbers leave room for, in a width.
pub(crate) fn fitting_ticks(span: &Span, width: f64) -> Vec<Tick> {
    let mut ticks = Vec::new();
    for most in (1..=8).rev() {
        ticks = span.ticks(most);
        if overlapping(span, &ticks, width).is_empty() {
            return ticks;
        }
    }
    for k in overlapping(span, &ticks, width) {
        ticks[k].label = None;
    }
    ticks
}

/// The ticks whose numbers would run into one before them.
fn overlapping(span: &Span, ticks: &[Tick], width: f64) -> Vec<usize> {
    let mut end = f64::NEG_INFINITY;
    let mut found = Vec::new();
    for (k, tick) in ticks.iter().enumerate() {
        let (Some(label), Some(share)) = (tick.label.as_deref(), span.share(tick.value)) else {
            continue;
        };
        let half = font::room(label, TICK, Weight::Regular) / 2.0;
        let x = share * width;
        if x - half < end {
            found.push(k);
        } else {
            end = x + half + APART;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Axis;

    #[test]
    fn numbers_do_not_run_into_each_other() {
        for (range, log) in [
            ((0.0, 1.0), false),
            ((1e9, 1e9 + 5.0), false),
            ((-1e300, 1e300), false),
            ((1.0, 80.0), true),
            ((1e-12, 1e12), true),
        ] {
            let axis = if log { Axis::log("") } else { Axis::linear("") };
            let axis = Axis { range: Some(range), ..axis };
            let span = Span::over(&axis, [].into_iter());
            for width in [40.0, 120.0, 300.0, 900.0] {
                let ticks = fitting_ticks(&span, width);
                assert!(overlapping(&span, &ticks, width).is_empty());
                assert!(ticks.iter().any(|tick| tick.label.is_some()), "{range:?} {width}");
            }
        }
    }
}
