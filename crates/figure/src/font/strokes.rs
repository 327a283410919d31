//! The small language that glyphs are written in, as lines.
//!
//! `M x y` lifts the pen; `L x y`, `H x`, `V y` draw; `C x y x y x y` draws a cubic curve; `Z` closes. `O x y rx
//! ry` is an ellipse of its own; `A x y rx ry from to` continues along one, by degrees, counter-clockwise;
//! `a` is `A` with the pen lifted before it. All coordinates are absolute and y points up.

use crate::figure::Point;

/// Lines per curve, and per quarter of an ellipse: finer than a pixel at any size of text.
const PIECES: usize = 8;

/// The strokes of a path, or nothing where the path is malformed.
pub(super) fn parse(path: &str) -> Option<Vec<Vec<Point>>> {
    let mut strokes: Vec<Vec<Point>> = Vec::new();
    let mut rest = path;
    while let Some(command) = rest.chars().next() {
        rest = &rest[command.len_utf8()..];
        let end = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let numbers: Vec<f64> =
            rest[..end].split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        rest = &rest[end..];
        draw(&mut strokes, command, &numbers)?;
    }
    Some(strokes)
}

fn draw(strokes: &mut Vec<Vec<Point>>, command: char, numbers: &[f64]) -> Option<()> {
    match (command, numbers) {
        ('M', &[x, y]) => strokes.push(vec![(x, y)]),
        ('O', &[x, y, across, up]) => strokes.push(arc((x, y), (across, up), 0.0, 360.0)),
        ('a', &[x, y, across, up, from, to]) => strokes.push(arc((x, y), (across, up), from, to)),
        _ => {
            let stroke = strokes.last_mut()?;
            let &(pen_x, pen_y) = stroke.last()?;
            match (command, numbers) {
                ('L', &[x, y]) => stroke.push((x, y)),
                ('H', &[x]) => stroke.push((x, pen_y)),
                ('V', &[y]) => stroke.push((pen_x, y)),
                ('Z', []) => stroke.push(*stroke.first()?),
                ('A', &[x, y, across, up, from, to]) => {
                    stroke.extend(arc((x, y), (across, up), from, to));
                }
                ('C', &[x1, y1, x2, y2, x3, y3]) => {
                    let points = [(pen_x, pen_y), (x1, y1), (x2, y2), (x3, y3)];
                    stroke.extend((1..=PIECES).map(|k| cubic(points, k as f64 / PIECES as f64)));
                }
                _ => return None,
            }
        }
    }
    Some(())
}

fn arc(centre: Point, radii: (f64, f64), from: f64, to: f64) -> Vec<Point> {
    let pieces = ((to - from).abs() / 90.0 * PIECES as f64).ceil().max(1.0) as usize;
    (0..=pieces)
        .map(|k| {
            let angle = (from + (to - from) * k as f64 / pieces as f64).to_radians();
            (centre.0 + radii.0 * angle.cos(), centre.1 + radii.1 * angle.sin())
        })
        .collect()
}

fn cubic(points: [Point; 4], t: f64) -> Point {
    let rest = 1.0 - t;
    let weights = [rest.powi(3), 3.0 * rest * rest * t, 3.0 * rest * t * t, t.powi(3)];
    points.iter().zip(weights).fold((0.0, 0.0), |sum, (point, weight)| {
        (sum.0 + point.0 * weight, sum.1 + point.1 * weight)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_followed() {
        let strokes = parse("M1 2L3 4H5V-6ZM7 8V9").unwrap();
        let expected = [
            vec![(1.0, 2.0), (3.0, 4.0), (5.0, 4.0), (5.0, -6.0), (1.0, 2.0)],
            vec![(7.0, 8.0), (7.0, 9.0)],
        ];
        assert_eq!(strokes, expected);
    }

    #[test]
    fn curves_end_where_they_should() {
        let strokes = parse("M0 0C0 1 1 2 2 2A2 0 1 2 90 0").unwrap();
        let last = strokes[0][strokes[0].len() - 1];
        assert!((last.0 - 3.0).abs() < 1e-9 && last.1.abs() < 1e-9, "{last:?}");
        assert!(strokes[0].contains(&(2.0, 2.0)));
    }

    #[test]
    fn what_is_malformed_is_refused() {
        for path in ["L1 2", "M1", "M1 2 3", "Mx 2", "M1 2W3", "7"] {
            assert_eq!(parse(path), None, "{path}");
        }
    }
}
