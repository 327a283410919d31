//! Where curves are drawn: between two axes that are in place.

use super::{MOST_MARKERS, Series, Style, runs};
use crate::axis::Span;
use crate::figure::{Figure, Fill, Mark, Point, Stroke};
use crate::number;
use crate::plot::Plot;

/// The field of a chart with both of its axes in place.
pub(super) struct Field {
    pub(super) plot: Plot,
    pub(super) x: Span,
}

impl Field {
    fn across(&self, value: f64) -> Option<f64> {
        let frame = &self.plot.frame;
        self.x.share(value).map(|share| frame.left + share * frame.width())
    }

    fn point(&self, (x, y): (f64, f64)) -> Option<Point> {
        Some((self.across(x)?, self.plot.down(y)?))
    }

    /// Draws the interval around a curve.
    pub(super) fn draw_band(&self, figure: &mut Figure, series: &Series, style: Style) {
        let Some(band) = &series.band else { return };
        let ends = series.points.iter().zip(band).map(|(&point, &(a, b))| {
            let (x, _) = self.point(point)?;
            if a.is_nan() || b.is_nan() {
                return None;
            }
            let (low, high) = (self.plot.down_within(a.min(b)), self.plot.down_within(a.max(b)));
            Some((x, low, high))
        });
        let fill = Fill { colour: style.colour, opacity: 0.16 };
        for run in runs(ends) {
            if let [(x, low, high)] = run[..] {
                if self.plot.frame.holds((x, low)) {
                    figure.line((x, low), (x, high), Stroke::solid(style.colour, 1.2));
                }
                continue;
            }
            let lower = run.iter().map(|&(x, low, _)| (x, low));
            let upper = run.iter().rev().map(|&(x, _, high)| (x, high));
            let area: Vec<Point> = lower.chain(upper).collect();
            let points = self.plot.frame.cut_area(&area);
            if !points.is_empty() {
                figure.marks.push(Mark::Polygon { points, fill: Some(fill), stroke: None });
            }
        }
    }

    /// Draws a curve; returns how many of its points are seen.
    pub(super) fn draw_curve(&self, figure: &mut Figure, series: &Series, style: Style) -> usize {
        let frame = &self.plot.frame;
        let places = series.points.iter().map(|&point| self.point(point));
        let mark_all = style.stroke().is_none()
            || (style.marker.is_some() && series.points.len() <= MOST_MARKERS);
        let mut seen = 0;
        for run in runs(places) {
            if let Some(stroke) = style.stroke() {
                let parts = frame.cut_line(&series.join.corners(&run)).into_iter();
                figure.marks.extend(parts.map(|points| Mark::Polyline { points, stroke }));
            }
            let inside = run.iter().filter(|&&point| frame.holds(point));
            seen += inside.clone().count();
            if mark_all || run.len() == 1 {
                figure.marks.extend(inside.map(|&point| style.marker().at(point)));
            }
        }
        seen
    }

    /// Has a pointer show the values at each point.
    pub(super) fn add_notes(&self, figure: &mut Figure, series: &Series) {
        for (k, &point) in series.points.iter().enumerate() {
            let Some((x, y)) = self.point(point).filter(|&at| self.plot.frame.holds(at)) else {
                continue;
            };
            let mut note =
                format!("{}: {}, {}", series.name, number::short(point.0), number::short(point.1));
            if let Some((low, high)) = series.band.as_ref().and_then(|band| band.get(k)) {
                note += &format!(" ({} to {})", number::short(*low), number::short(*high));
            }
            figure.note((x - 6.0, y - 6.0), (12.0, 12.0), note);
        }
    }
}
