//! A figure in pixels.
//!
//! Every mark becomes a mask, how much of each pixel it covers, and the mask is painted once, so that a line
//! that crosses itself is not darker there.

mod mask;

use mask::Mask;

use crate::colour::Colour;
use crate::figure::{Figure, Fill, Mark, Point, Stroke};
use crate::{Error, font};

/// The most pixels that are drawn: 8000 by 8000.
const MOST_PIXELS: usize = 64_000_000;

/// Pixels per metre at scale 1, as PNG states sizes: 96 to the inch.
const PER_METRE: f64 = 96.0 / 0.0254;

/// The figure as a PNG file.
pub(crate) fn png(figure: &Figure, scale: f64) -> Result<Vec<u8>, Error> {
    let (width, height) = size(figure, scale)?;
    let mut canvas = Canvas::new(width, height);
    for mark in figure.marks.iter().filter(|mark| mark.is_finite()) {
        canvas.draw(mark, scale);
    }
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let density = (PER_METRE * scale).round() as u32;
    encoder.set_pixel_dims(Some(png::PixelDimensions {
        xppu: density,
        yppu: density,
        unit: png::Unit::Meter,
    }));
    let mut writer = encoder.write_header()?;
    writer.write_image_data(canvas.pixels.as_flattened())?;
    writer.finish()?;
    Ok(file)
}

fn size(figure: &Figure, scale: f64) -> Result<(usize, usize), Error> {
    let pixels = |length: f64| {
        let pixels = (length * scale).round();
        (pixels >= 1.0 && pixels <= MOST_PIXELS as f64).then_some(pixels as usize)
    };
    match (pixels(figure.width), pixels(figure.height)) {
        (Some(width), Some(height)) if width.saturating_mul(height) <= MOST_PIXELS => {
            Ok((width, height))
        }
        _ => Err(Error::Size {
            width: figure.width,
            height: figure.height,
            scale,
            most: MOST_PIXELS,
        }),
    }
}

struct Canvas {
    width: usize,
    pixels: Vec<[u8; 3]>,
    mask: Mask,
}

impl Canvas {
    fn new(width: usize, height: usize) -> Canvas {
        let paper = Colour::PAPER;
        Canvas {
            width,
            pixels: vec![[paper.red, paper.green, paper.blue]; width * height],
            mask: Mask::new(width, height),
        }
    }

    fn draw(&mut self, mark: &Mark, scale: f64) {
        // Beyond the paper nothing is seen, and the arithmetic stays exact.
        let limit = 1e6;
        let pixel = |point: &Point| {
            ((point.0 * scale).clamp(-limit, limit), (point.1 * scale).clamp(-limit, limit))
        };
        match mark {
            Mark::Rect { at, size, fill, stroke } => {
                let end = (at.0 + size.0.max(0.0), at.1 + size.1.max(0.0));
                let (from, to) = (pixel(at), pixel(&end));
                if let Some(fill) = fill {
                    self.mask.rect(from, to);
                    self.paint(*fill);
                }
                let corners = [from, (to.0, from.1), to, (from.0, to.1), from];
                self.outline(&corners, *stroke, scale);
            }
            Mark::Polyline { points, stroke } => {
                let points: Vec<Point> = points.iter().map(pixel).collect();
                self.outline(&points, Some(*stroke), scale);
            }
            Mark::Polygon { points, fill, stroke } => {
                let mut points: Vec<Point> = points.iter().map(pixel).collect();
                if let Some(fill) = fill {
                    self.mask.polygon(&points);
                    self.paint(*fill);
                }
                points.extend(points.first().copied());
                self.outline(&points, *stroke, scale);
            }
            Mark::Circle { centre, radius, fill, stroke } => {
                let (centre, radius) = (pixel(centre), (radius.max(0.0) * scale).min(limit));
                if let Some(fill) = fill {
                    self.mask.disc(centre, radius);
                    self.paint(*fill);
                }
                if let Some(stroke) = stroke {
                    self.mask.ring(centre, radius, stroke.width.max(0.0) * scale);
                    self.paint(stroke.colour.into());
                }
            }
            Mark::Text(text) => {
                if text.size * scale > limit {
                    return;
                }
                for (line, pen) in font::place(text, scale) {
                    self.mask.line(&line, pen);
                }
                self.paint(text.colour.into());
            }
            Mark::Note { .. } => {}
        }
    }

    fn outline(&mut self, points: &[Point], stroke: Option<Stroke>, scale: f64) {
        let Some(stroke) = stroke else { return };
        let width = (stroke.width * scale).clamp(0.0, 1e6);
        match stroke.dash {
            Some((dash, gap)) if dash > 0.0 && gap > 0.0 => {
                for piece in dashes(points, dash * scale, gap * scale) {
                    self.mask.line(&piece, width);
                }
            }
            _ => self.mask.line(points, width),
        }
        self.paint(stroke.colour.into());
    }

    /// Paints what the mask covers, and empties it.
    fn paint(&mut self, fill: Fill) {
        let opacity = if fill.opacity.is_finite() { fill.opacity.clamp(0.0, 1.0) } else { 1.0 };
        let colour = [fill.colour.red, fill.colour.green, fill.colour.blue].map(f64::from);
        let (width, pixels) = (self.width, &mut self.pixels);
        self.mask.drain(|x, y, covered| {
            let share = f64::from(covered) * opacity;
            for (channel, target) in pixels[y * width + x].iter_mut().zip(colour) {
                let value = f64::from(*channel);
                *channel = (value + (target - value) * share).round() as u8;
            }
        });
    }
}

/// A line cut into dashes; more than a picture can show are drawn as none.
fn dashes(points: &[Point], dash: f64, gap: f64) -> Vec<Vec<Point>> {
    let length: f64 = points.windows(2).map(|pair| distance(pair[0], pair[1])).sum();
    if length / (dash + gap) > 100_000.0 {
        return vec![points.to_vec()];
    }
    let mut pieces = Vec::new();
    let mut piece: Vec<Point> = points.first().copied().into_iter().collect();
    let (mut drawing, mut left) = (true, dash);
    for pair in points.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let length = distance(from, to);
        let mut done = 0.0;
        while length - done > left {
            done += left;
            let share = done / length;
            let cut = (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share);
            if drawing {
                piece.push(cut);
                pieces.push(std::mem::take(&mut piece));
            } else {
                piece = vec![cut];
            }
            drawing = !drawing;
            left = if drawing { dash } else { gap };
        }
        left -= length - done;
        if drawing {
            piece.push(to);
        }
    }
    if drawing && !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

fn distance(a: Point, b: Point) -> f64 {
    (b.0 - a.0).hypot(b.1 - a.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_have_their_lengths_and_gaps() {
        let pieces = dashes(&[(0.0, 0.0), (10.0, 0.0)], 3.0, 1.0);
        let ends: Vec<(f64, f64)> =
            pieces.iter().map(|piece| (piece[0].0, piece[piece.len() - 1].0)).collect();
        assert_eq!(ends, [(0.0, 3.0), (4.0, 7.0), (8.0, 10.0)]);
    }

    #[test]
    fn dashes_go_round_corners() {
        let pieces = dashes(&[(0.0, 0.0), (2.0, 0.0), (2.0, 2.0)], 3.0, 5.0);
        assert_eq!(pieces, [vec![(0.0, 0.0), (2.0, 0.0), (2.0, 1.0)]]);
    }

    #[test]
    fn sizes_that_are_none_are_refused() {
        let figure = |width, height| Figure::new("", width, height);
        assert_eq!(size(&figure(10.0, 4.0), 1.5).unwrap(), (15, 6));
        for (figure, scale) in [
            (figure(0.0, 5.0), 1.0),
            (figure(f64::NAN, 5.0), 1.0),
            (figure(10.0, 10.0), 0.0),
            (figure(10.0, 10.0), -1.0),
            (figure(10.0, 10.0), f64::INFINITY),
            (figure(1e5, 1e5), 1.0),
        ] {
            assert!(matches!(png(&figure, scale), Err(Error::Size { .. })));
        }
    }
}
