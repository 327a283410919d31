//! Lines and areas cut off at the edges of a rectangle.

use crate::figure::Point;

/// A rectangle along the axes, from its upper left to its lower right corner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Frame {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

impl Frame {
    pub(crate) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(crate) fn height(&self) -> f64 {
        self.bottom - self.top
    }

    /// Returns the centre of the rectangle.
    pub(crate) fn middle(&self) -> Point {
        ((self.left + self.right) / 2.0, (self.top + self.bottom) / 2.0)
    }

    /// Whether a point lies inside or, up to rounding, on the edge.
    pub(crate) fn holds(&self, (x, y): Point) -> bool {
        let near = 1e-6;
        (self.left - near..=self.right + near).contains(&x)
            && (self.top - near..=self.bottom + near).contains(&y)
    }

    /// The parts of a line that lie inside.
    pub(crate) fn cut_line(&self, points: &[Point]) -> Vec<Vec<Point>> {
        let mut parts: Vec<Vec<Point>> = Vec::new();
        let mut open = false;
        for pair in points.windows(2) {
            let Some((from, to)) = self.cut_segment(pair[0], pair[1]) else {
                open = false;
                continue;
            };
            match parts.last_mut() {
                Some(part) if open => part.push(to),
                _ => parts.push(vec![from, to]),
            }
            open = to == pair[1];
        }
        parts
    }

    /// By Liang and Barsky: the stretch of the segment that every edge leaves.
    fn cut_segment(&self, from: Point, to: Point) -> Option<(Point, Point)> {
        let (across, down) = (to.0 - from.0, to.1 - from.1);
        let (mut start, mut end) = (0.0_f64, 1.0_f64);
        for (direction, room) in [
            (-across, from.0 - self.left),
            (across, self.right - from.0),
            (-down, from.1 - self.top),
            (down, self.bottom - from.1),
        ] {
            if direction == 0.0 {
                if room < 0.0 {
                    return None;
                }
            } else if direction < 0.0 {
                start = start.max(room / direction);
            } else {
                end = end.min(room / direction);
            }
        }
        let at = |share: f64| match share {
            0.0 => from,
            1.0 => to,
            _ => (from.0 + across * share, from.1 + down * share),
        };
        (start <= end).then(|| (at(start), at(end)))
    }

    /// The part of an area that lies inside, by Sutherland and Hodgman.
    pub(crate) fn cut_area(&self, points: &[Point]) -> Vec<Point> {
        // How far inside of an edge a point lies.
        let left = |point: &Point| point.0 - self.left;
        let right = |point: &Point| self.right - point.0;
        let top = |point: &Point| point.1 - self.top;
        let bottom = |point: &Point| self.bottom - point.1;
        let edges: [&dyn Fn(&Point) -> f64; 4] = [&left, &right, &top, &bottom];
        let mut area = points.to_vec();
        for inside in edges {
            let mut kept = Vec::with_capacity(area.len() + 4);
            for (k, &to) in area.iter().enumerate() {
                let from = area[(k + area.len() - 1) % area.len()];
                let (before, after) = (inside(&from), inside(&to));
                if (before < 0.0) != (after < 0.0) {
                    let share = before / (before - after);
                    kept.push((from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share));
                }
                if after >= 0.0 {
                    kept.push(to);
                }
            }
            area = kept;
        }
        area
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Frame = Frame { left: 0.0, top: 0.0, right: 10.0, bottom: 10.0 };

    #[test]
    fn lines_end_at_the_edges_and_begin_again() {
        let inside = [(1.0, 1.0), (5.0, 5.0), (9.0, 1.0)];
        assert_eq!(FRAME.cut_line(&inside), [inside.to_vec()]);
        let out_and_in = [(5.0, 5.0), (15.0, 5.0), (15.0, 8.0), (5.0, 8.0)];
        let parts = FRAME.cut_line(&out_and_in);
        assert_eq!(parts, [vec![(5.0, 5.0), (10.0, 5.0)], vec![(10.0, 8.0), (5.0, 8.0)]]);
        assert!(FRAME.cut_line(&[(-5.0, -5.0), (-1.0, 20.0)]).is_empty());
        assert_eq!(FRAME.cut_line(&[(-10.0, 5.0), (20.0, 5.0)]), [vec![(0.0, 5.0), (10.0, 5.0)]]);
    }

    #[test]
    fn areas_keep_what_is_inside() {
        let large = [(-5.0, -5.0), (15.0, -5.0), (15.0, 15.0), (-5.0, 15.0)];
        let cut = FRAME.cut_area(&large);
        assert_eq!(cut.len(), 4);
        assert!(cut.iter().all(|&point| FRAME.holds(point)));
        assert!(FRAME.cut_area(&[(11.0, 1.0), (12.0, 1.0), (12.0, 5.0)]).is_empty());
        assert!(FRAME.cut_area(&[]).is_empty());
    }
}
