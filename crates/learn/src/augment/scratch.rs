//! Working memory for views, and the arithmetic on pixels.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use stlf_data::Shape;

use crate::Kernels;
use crate::buffer::Buffer;
use crate::kernels::{OutputRow, Rows, Start, Term};

/// Rows and columns of the random convolutions.
pub(super) const KERNELS: [usize; 4] = [1, 3, 5, 7];

/// The pixels that the largest of them needs beyond each edge.
const MARGIN: usize = 3;

/// Numbers that come out of a convolution are counted up to a multiple of so many: whole tiles of registers, whatever the processor's are.
const TILE: usize = 96;

/// Pixels whose places in a distorted picture are computed together.
const TOGETHER: usize = 16;

/// The number of parts that a pixel is divided into, for places in fixed point.
const PARTS: i32 = 1 << 16;

/// Where each place of a view lies in its picture, both seen from the centre, x to the right and y down.
#[derive(Debug, Clone, Copy)]
pub(super) struct Map {
    /// The picture's x, of the view's x and y.
    pub x: [f32; 2],
    /// The picture's y, of the view's x and y.
    pub y: [f32; 2],
    /// By how many pixels the view is then moved, down and to the right.
    pub moved: (i32, i32),
}

/// Working memory for views of pictures of one shape. One per model that is trained.
#[derive(Debug, Clone)]
pub struct Scratch {
    kernels: &'static Kernels,
    shape: Shape,
    /// The picture with its edges repeated around it.
    wide: Buffer,
    /// What comes out, in rows as long as those of the wide picture.
    out: Buffer,
    /// The factors of a convolution: `[output channel][input channel][row][column]`.
    pub(super) factors: Vec<f32>,
    convolutions: [Convolution; KERNELS.len()],
}

/// A convolution of one size as sums of rows.
#[derive(Debug, Clone)]
struct Convolution {
    terms: Vec<Term>,
    rows: Vec<OutputRow>,
    /// Numbers of a channel that come out, between rows as well, and behind the last one.
    len: usize,
}

impl Convolution {
    fn new(shape: Shape, kernel: usize) -> Convolution {
        let Shape { channels, height, width } = shape;
        let stride = width + kernel - 1;
        let plane = (height + kernel - 1) * stride;
        let len = (height * stride + 1 - kernel).next_multiple_of(TILE);
        let taps = kernel * kernel;
        let terms = (0..channels * taps).map(|a| {
            let (channel, row, column) = (a / taps, a % taps / kernel, a % kernel);
            Term { a: a as u32, b: (channel * plane + row * stride + column) as u32 }
        });
        let rows = (0..channels).map(|channel| OutputRow {
            a: (channel * channels * taps) as u32,
            out: (channel * len) as u32,
            start: Start::Number(0.0),
        });
        Convolution { terms: terms.collect(), rows: rows.collect(), len }
    }
}

impl Scratch {
    /// Returns working memory for views of pictures of this shape.
    pub fn new(shape: Shape) -> Scratch {
        Scratch::with(shape, Kernels::fastest())
    }

    pub(super) fn with(shape: Shape, kernels: &'static Kernels) -> Scratch {
        let Shape { channels, height, width } = shape;
        // What is behind the picture is read, and what comes of it is not.
        let wide = channels * ((height + 2 * MARGIN) * (width + 2 * MARGIN) + TILE);
        let largest = (2 * MARGIN + 1).pow(2);
        Scratch {
            kernels,
            shape,
            wide: Buffer::new(wide),
            out: Buffer::new(wide),
            factors: vec![0.0; channels * channels * largest],
            convolutions: KERNELS.map(|kernel| Convolution::new(shape, kernel)),
        }
    }

    /// Draws the factors of a convolution k × k, mixed with the picture itself: αx + (1 − α)·conv(x), α uniform in 0..1. The
    /// factors of conv have variance 1/k², over all input channels together, so that what comes out is about as bright
    /// as what goes in (Xu et al. 2021).
    pub(super) fn draw(&mut self, size: usize, rng: &mut ChaCha8Rng) {
        let (kernel, channels) = (KERNELS[size], self.shape.channels);
        let (taps, share) = (kernel * kernel, rng.random::<f32>());
        let deviation = (1.0 - share) / ((taps * channels) as f32).sqrt();
        let factors = &mut self.factors[..channels * channels * taps];
        for factor in factors.iter_mut() {
            *factor = deviation * rng.sample::<f32, _>(StandardNormal);
        }
        for channel in 0..channels {
            factors[channel * (channels + 1) * taps + taps / 2] += share;
        }
    }

    /// Moves the picture and convolves it with the factors of this size.
    pub(super) fn convolve(&mut self, picture: &mut [f32], moved: (i32, i32), size: usize) {
        let margin = KERNELS[size] / 2;
        self.widen(picture, moved, margin);
        let Shape { height, width, .. } = self.shape;
        let Convolution { terms, rows, len } = &self.convolutions[size];
        let job = Rows { a: &self.factors, b: &self.wide, terms, rows, len: *len };
        self.kernels.rows(&job, &mut self.out);
        let planes = picture.chunks_exact_mut(height * width).zip(self.out.chunks_exact(*len));
        for (plane, out) in planes {
            // The last row has no margin behind it.
            let out = out.chunks(width + 2 * margin);
            for (row, out) in plane.chunks_exact_mut(width).zip(out) {
                row.copy_from_slice(&out[..width]);
            }
        }
    }

    /// Moves the picture down and to the right, in place. What is moved farther than the picture is long shows its edge alone, as what is moved
    /// by one pixel less does.
    pub(super) fn shift(&self, picture: &mut [f32], (down, right): (i32, i32)) {
        let Shape { height, width, .. } = self.shape;
        assert_eq!(picture.len(), self.shape.len(), "a picture of the shape of the working memory");
        let (tallest, widest) = (height as i32 - 1, width as i32 - 1);
        let (down, right) = (down.clamp(-tallest, tallest), right.clamp(-widest, widest));
        let by = down * width as i32 + right;
        let (rows, columns) = (down.unsigned_abs() as usize, right.unsigned_abs() as usize);
        for plane in picture.chunks_exact_mut(height * width) {
            // All rows at once, so that what leaves one at its side enters the next, which is mended.
            match usize::try_from(by) {
                Ok(by) => plane.copy_within(..height * width - by, by),
                Err(_) => plane.copy_within(by.unsigned_abs() as usize.., 0),
            }
            for row in plane.chunks_exact_mut(width) {
                let (edge, repeated) = match right > 0 {
                    true => (row[columns], &mut row[..columns]),
                    false => (row[width - columns - 1], &mut row[width - columns..]),
                };
                repeated.iter_mut().for_each(|pixel| *pixel = edge);
            }
            let (edge, repeated) = match down > 0 {
                true => (rows, 0..rows),
                false => (height - rows - 1, height - rows..height),
            };
            for row in repeated {
                plane.copy_within(edge * width..(edge + 1) * width, row * width);
            }
        }
    }

    /// Copies the picture, moved down and to the right and with so many pixels more at each side, all of which repeat its edges.
    fn widen(&mut self, picture: &[f32], (down, right): (i32, i32), margin: usize) {
        let Shape { channels, height, width } = self.shape;
        assert_eq!(picture.len(), self.shape.len(), "a picture of the shape of the working memory");
        let (tall, stride) = (height + 2 * margin, width + 2 * margin);
        // What the left edge fills, what of the picture is outside, and what is copied.
        let start = margin as i32 + right;
        let left = (start.max(0) as usize).min(stride);
        let outside = (start.min(0).unsigned_abs() as usize).min(width);
        let inside = (width - outside).min(stride - left);
        let planes = picture.chunks_exact(height * width);
        let wide = self.wide.chunks_exact_mut(tall * stride);
        for (plane, wide) in planes.zip(wide).take(channels) {
            for (y, row) in wide.chunks_exact_mut(stride).enumerate() {
                let from = (y as i32 - margin as i32 - down).clamp(0, height as i32 - 1) as usize;
                let from = &plane[from * width..][..width];
                row[..left].fill(from[0]);
                row[left..left + inside].copy_from_slice(&from[outside..outside + inside]);
                row[left + inside..].fill(from[width - 1]);
            }
        }
    }

    /// Puts in place of each pixel what lies where the map says, between pixels by their distances from it, and outside
    /// as at the edge. Places are whole numbers of [`PARTS`] of a pixel, which processors without a fast floor like better.
    pub(super) fn distort(&mut self, picture: &mut [f32], map: Map) {
        let Shape { height, width, .. } = self.shape;
        assert!(height.max(width) <= 1 << 14, "pictures of at most 16,384 rows and columns");
        // So that the last pixel of a row, and the last row, have a neighbour.
        self.widen(picture, (0, 0), 1);
        let stride = width + 2;
        let parts = |pixels: f32| (pixels * PARTS as f32).round() as i32;
        let (right_most, bottom) = ((width as i32 - 1) * PARTS, (height as i32 - 1) * PARTS);
        let centre = ((width - 1) as f32 / 2.0, (height - 1) as f32 / 2.0);
        let (down, right) = (map.moved.0 as f32, map.moved.1 as f32);
        let step = (parts(map.x[0]), parts(map.y[0]));
        let planes = picture.chunks_exact_mut(height * width);
        for (plane, wide) in planes.zip(self.wide.chunks_exact((height + 2) * stride)) {
            // The first pixel that is none of an edge repeated.
            let wide = &wide[stride + 1..];
            for (y, row) in plane.chunks_exact_mut(width).enumerate() {
                // From the centre to the row's first pixel.
                let (x, y) = (-centre.0 - right, y as f32 - centre.1 - down);
                let first = (
                    parts(centre.0 + map.x[0] * x + map.x[1] * y),
                    parts(centre.1 + map.y[0] * x + map.y[1] * y),
                );
                for (chunk, pixels) in row.chunks_mut(TOGETHER).enumerate() {
                    let (mut at, mut dx, mut dy) =
                        ([0; TOGETHER], [0.0; TOGETHER], [0.0; TOGETHER]);
                    for i in 0..TOGETHER {
                        let column = (chunk * TOGETHER + i) as i32;
                        let x = (first.0 + step.0 * column).clamp(0, right_most);
                        let y = (first.1 + step.1 * column).clamp(0, bottom);
                        at[i] = y / PARTS * stride as i32 + x / PARTS;
                        dx[i] = (x % PARTS) as f32 / PARTS as f32;
                        dy[i] = (y % PARTS) as f32 / PARTS as f32;
                    }
                    for (i, pixel) in pixels.iter_mut().enumerate() {
                        let near = &wide[at[i] as usize..][..stride + 2];
                        let above = near[0] + dx[i] * (near[1] - near[0]);
                        let below = near[stride] + dx[i] * (near[stride + 1] - near[stride]);
                        *pixel = above + dy[i] * (below - above);
                    }
                }
            }
        }
    }
}
