//! How much of each pixel a shape covers, from 0 to 1.

use crate::figure::Point;

/// Scan lines per pixel for polygons; across a scan line coverage is exact.
const SCANS: usize = 16;

/// Coverage of all pixels, and which part of it may differ from 0.
pub(super) struct Mask {
    width: usize,
    height: usize,
    covered: Vec<f32>,
    /// Columns and rows from the first touched one to behind the last.
    columns: (usize, usize),
    rows: (usize, usize),
}

impl Mask {
    pub(super) fn new(width: usize, height: usize) -> Mask {
        let nothing = (usize::MAX, 0);
        Mask { width, height, covered: vec![0.0; width * height], columns: nothing, rows: nothing }
    }

    /// Hands out every covered pixel, and empties the mask.
    pub(super) fn drain(&mut self, mut paint: impl FnMut(usize, usize, f32)) {
        for y in self.rows.0..self.rows.1 {
            for x in self.columns.0..self.columns.1 {
                let covered = std::mem::take(&mut self.covered[y * self.width + x]);
                if covered > 0.0 {
                    paint(x, y, covered.min(1.0));
                }
            }
        }
        self.columns = (usize::MAX, 0);
        self.rows = (usize::MAX, 0);
    }

    /// A rectangle, exactly.
    pub(super) fn rect(&mut self, from: Point, to: Point) {
        for y in pixels(from.1, to.1, self.height) {
            let down = overlap(y, from.1, to.1);
            for x in pixels(from.0, to.0, self.width) {
                self.cover(x, y, (down * overlap(x, from.0, to.0)) as f32);
            }
        }
    }

    /// A filled circle.
    pub(super) fn disc(&mut self, centre: Point, radius: f64) {
        self.round(centre, radius, |distance| radius + 0.5 - distance);
    }

    /// A circle's line.
    pub(super) fn ring(&mut self, centre: Point, radius: f64, width: f64) {
        self.round(centre, radius + width / 2.0, |distance| {
            band((distance - radius).abs(), width / 2.0)
        });
    }

    fn round(&mut self, centre: Point, reach: f64, coverage: impl Fn(f64) -> f64) {
        for y in pixels(centre.1 - reach - 1.0, centre.1 + reach + 1.0, self.height) {
            for x in pixels(centre.0 - reach - 1.0, centre.0 + reach + 1.0, self.width) {
                let distance = (x as f64 + 0.5 - centre.0).hypot(y as f64 + 0.5 - centre.1);
                self.cover(x, y, coverage(distance).clamp(0.0, 1.0) as f32);
            }
        }
    }

    /// Joined lines of a width, with round ends and joins. A single point is a dot.
    pub(super) fn line(&mut self, points: &[Point], width: f64) {
        match *points {
            [] => {}
            [point] => self.segment(point, point, width / 2.0),
            _ => {
                for pair in points.windows(2) {
                    self.segment(pair[0], pair[1], width / 2.0);
                }
            }
        }
    }

    fn segment(&mut self, from: Point, to: Point, half: f64) {
        let reach = half + 1.0;
        let (across, down) = (to.0 - from.0, to.1 - from.1);
        let squared = across * across + down * down;
        let (top, bottom) = (from.1.min(to.1) - reach, from.1.max(to.1) + reach);
        for y in pixels(top, bottom, self.height) {
            let middle = y as f64 + 0.5;
            // Only the part of the line that can reach this row.
            let (mut start, mut end) = (0.0, 1.0);
            if down.abs() > 1e-9 {
                let a = (middle - reach - from.1) / down;
                let b = (middle + reach - from.1) / down;
                start = a.min(b).clamp(0.0, 1.0);
                end = a.max(b).clamp(0.0, 1.0);
            }
            let (x0, x1) = (from.0 + across * start, from.0 + across * end);
            for x in pixels(x0.min(x1) - reach, x0.max(x1) + reach, self.width) {
                let point = (x as f64 + 0.5 - from.0, middle - from.1);
                let along = if squared > 0.0 {
                    ((point.0 * across + point.1 * down) / squared).clamp(0.0, 1.0)
                } else {
                    0.0
                };
                let distance = (point.0 - across * along).hypot(point.1 - down * along);
                self.cover(x, y, band(distance, half) as f32);
            }
        }
    }

    /// A closed area; what is wound around twice is covered once.
    pub(super) fn polygon(&mut self, points: &[Point]) {
        let lowest = points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
        let highest = points.iter().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max);
        let rows = pixels(lowest, highest, self.height);
        if rows.is_empty() {
            return;
        }
        let first = rows.start * SCANS;
        let mut crossings: Vec<Vec<(f64, i32)>> = vec![Vec::new(); rows.len() * SCANS];
        let following = points.iter().cycle().skip(1);
        for (&from, &to) in points.iter().zip(following) {
            let (upper, lower, turn) = if from.1 < to.1 { (from, to, 1) } else { (to, from, -1) };
            let scan = |y: f64| (y * SCANS as f64 - 0.5).ceil().max(first as f64) as usize - first;
            for k in scan(upper.1)..scan(lower.1).min(crossings.len()) {
                let y = ((first + k) as f64 + 0.5) / SCANS as f64;
                let share = (y - upper.1) / (lower.1 - upper.1);
                crossings[k].push((upper.0 + (lower.0 - upper.0) * share, turn));
            }
        }
        for (k, crossings) in crossings.iter_mut().enumerate() {
            crossings.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut winding = 0;
            for pair in 1..crossings.len() {
                winding += crossings[pair - 1].1;
                if winding != 0 {
                    let row = rows.start + k / SCANS;
                    self.scan(row, crossings[pair - 1].0, crossings[pair].0);
                }
            }
        }
    }

    fn scan(&mut self, y: usize, from: f64, to: f64) {
        for x in pixels(from, to, self.width) {
            self.touch(x, y);
            let share = overlap(x, from, to) / SCANS as f64;
            self.covered[y * self.width + x] += share as f32;
        }
    }

    fn cover(&mut self, x: usize, y: usize, coverage: f32) {
        if coverage > 0.0 {
            self.touch(x, y);
            let covered = &mut self.covered[y * self.width + x];
            *covered = covered.max(coverage);
        }
    }

    fn touch(&mut self, x: usize, y: usize) {
        self.columns = (self.columns.0.min(x), self.columns.1.max(x + 1));
        self.rows = (self.rows.0.min(y), self.rows.1.max(y + 1));
    }
}

/// The pixels that a stretch touches.
fn pixels(from: f64, to: f64, count: usize) -> std::ops::Range<usize> {
    let start = from.floor().clamp(0.0, count as f64) as usize;
    let end = to.ceil().clamp(0.0, count as f64) as usize;
    start..end.max(start)
}

/// How much of a pixel a stretch covers.
fn overlap(pixel: usize, from: f64, to: f64) -> f64 {
    let pixel = pixel as f64;
    (to.min(pixel + 1.0) - from.max(pixel)).max(0.0)
}

/// How much of a pixel at a distance a line covers that reaches `half` to both sides.
fn band(distance: f64, half: f64) -> f64 {
    ((distance + 0.5).min(half) - (distance - 0.5).max(-half)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(draw: impl FnOnce(&mut Mask)) -> f64 {
        let mut mask = Mask::new(40, 40);
        draw(&mut mask);
        let mut sum = 0.0;
        mask.drain(|_, _, covered| sum += f64::from(covered));
        assert!(mask.covered.iter().all(|&covered| covered == 0.0), "a mask is empty afterwards");
        sum
    }

    #[test]
    fn covered_areas_are_those_of_the_shapes() {
        assert!((area(|m| m.rect((1.25, 2.5), (11.5, 4.75))) - 10.25 * 2.25).abs() < 1e-5);
        let triangle = [(2.0, 2.0), (32.0, 2.0), (2.0, 22.0)];
        assert!((area(|m| m.polygon(&triangle)) - 300.0).abs() < 1.0);
        assert!((area(|m| m.disc((20.0, 20.0), 10.0)) - 314.2).abs() < 2.0);
        assert!((area(|m| m.ring((20.0, 20.0), 10.0, 2.0)) - 125.7).abs() < 2.0);
        let line = area(|m| m.line(&[(5.0, 10.0), (25.0, 25.0)], 3.0));
        assert!((line - (25.0 * 3.0 + 7.07)).abs() < 2.0, "{line}");
    }

    #[test]
    fn polygons_that_cross_themselves_are_covered_once() {
        let twice = [(5.0, 5.0), (15.0, 5.0), (15.0, 15.0), (5.0, 15.0)].repeat(2);
        assert!((area(|m| m.polygon(&twice)) - 100.0).abs() < 1e-3);
        let bow = [(5.0, 5.0), (15.0, 15.0), (15.0, 5.0), (5.0, 15.0)];
        assert!((area(|m| m.polygon(&bow)) - 50.0).abs() < 0.5);
    }

    #[test]
    fn what_lies_outside_is_cut_off() {
        assert!((area(|m| m.rect((-1e6, -1e6), (1e6, 1e6))) - 1600.0).abs() < 1e-3);
        let huge = [(-1e6, -1e6), (1e6, -1e6), (1e6, 1e6), (-1e6, 1e6)];
        assert!((area(|m| m.polygon(&huge)) - 1600.0).abs() < 1e-3);
        assert_eq!(area(|m| m.line(&[(-50.0, -50.0), (-5.0, -50.0)], 3.0)), 0.0);
        assert_eq!(area(|m| m.polygon(&[])), 0.0);
    }
}
