//! A hand that writes a glyph, never twice alike.
//!
//! Only sums, products, quotients and square roots of `f32`, which every platform rounds alike: the
//! same seed draws the same picture everywhere.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use super::glyph::{Glyph, MOST_POINTS};

/// How a hand writes. Spreads are half-widths of what is drawn.
pub(super) struct Hand {
    /// How far points stray, as a share of the glyph's height.
    pub(super) stray: f32,
    /// Lean to the right, and its spread, as a share of the height.
    pub(super) slant: [f32; 2],
    /// The tangent of half the turning angle.
    pub(super) turn: f32,
    /// Width over height relative to the glyph's own, and its spread.
    pub(super) stretch: [f32; 2],
    /// How strongly straight lines bend.
    pub(super) bend: f32,
    /// The picture's side and the largest extent of the written digit, with its spread, in pixels.
    pub(super) side: f32,
    pub(super) extent: [f32; 2],
    /// Whether width and height are brought to that extent apart from each other, as USPS does.
    pub(super) fill: bool,
    /// How far the digit stands from the middle, in pixels.
    pub(super) shift: f32,
    /// Half the width of the pen's line and its spread, in pixels.
    pub(super) nib: [f32; 2],
}

/// A piece of the pen's path, in pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub(super) from: [f32; 2],
    pub(super) to: [f32; 2],
    pub(super) radius: f32,
}

/// 0 to 1, evenly. Of our own making, so that pictures do not change with a library's sampling.
pub(super) fn even(rng: &mut ChaCha8Rng) -> f32 {
    (rng.next_u32() >> 8) as f32 * (1.0 / (1u32 << 24) as f32)
}

/// Returns a number drawn evenly from −1 to 1.
pub(super) fn around(rng: &mut ChaCha8Rng) -> f32 {
    2.0 * even(rng) - 1.0
}

/// Near 0 more often than far from it, standard deviation about 1, never beyond 2.45.
fn bell(rng: &mut ChaCha8Rng) -> f32 {
    // The sum of two even draws has variance 2/3.
    (around(rng) + around(rng)) * 1.224_744_9
}

/// Draws one of several items, with probabilities in proportion to their shares.
pub(super) fn pick<T>(
    rng: &mut ChaCha8Rng,
    of: &'static [T],
    share: impl Fn(&T) -> u8,
) -> &'static T {
    let total: u32 = of.iter().map(|item| u32::from(share(item))).sum();
    let mut left = below(rng, total);
    for item in of {
        let share = u32::from(share(item));
        if left < share {
            return item;
        }
        left -= share;
    }
    &of[of.len() - 1]
}

/// Returns a whole number drawn from 0 to `end` − 1, evenly enough.
pub(super) fn below(rng: &mut ChaCha8Rng, end: u32) -> u32 {
    ((u64::from(rng.next_u32()) * u64::from(end)) >> 32) as u32
}

const PIECES: usize = 5;

/// Writes a glyph: the pen's path goes to `path`, whose old content is dropped.
pub(super) fn write(glyph: &Glyph, hand: &Hand, rng: &mut ChaCha8Rng, path: &mut Vec<Segment>) {
    let spread = |[middle, spread]: [f32; 2], rng: &mut ChaCha8Rng| middle + spread * around(rng);
    // Some people are neat and some are not.
    let stray = hand.stray * (0.3 + 1.2 * even(rng));
    let slant = spread(hand.slant, rng);
    let stretch = spread(hand.stretch, rng);
    let [bend_x, bend_y] = [hand.bend * bell(rng), hand.bend * bell(rng)];
    let waist = 0.12 * bell(rng);
    let half_angle = hand.turn * bell(rng);
    let (cos, sin) = {
        let square = half_angle * half_angle;
        ((1.0 - square) / (1.0 + square), 2.0 * half_angle / (1.0 + square))
    };
    let mut points = [[0.0f32; 2]; MOST_POINTS];
    let mut off = [0.0f32; 2];
    for (point, place) in points.iter_mut().zip(glyph.points) {
        // A point strays in part with the one before it: a hand errs smoothly.
        off = off.map(|before| 0.5 * before + stray * bell(rng));
        let [x, y] = [place[0] + off[0], place[1] + off[1]];
        // Heads and feet of different widths, bent axes, then slant and turn.
        let x = x * stretch * (1.0 + waist * 2.0 * y) + bend_x * (0.25 - y * y);
        let y = y + bend_y * (0.1 - x * x);
        let x = x - slant * y;
        *point = [cos * x - sin * y, sin * x + cos * y];
    }

    path.clear();
    for stroke in glyph.strokes {
        let closed = stroke[0] == stroke[stroke.len() - 1];
        let at = |k: isize| {
            // A closed stroke goes on at its beginning; an open one ends with a straight tangent.
            let last = stroke.len() as isize - 1;
            let k = match closed {
                true => k.rem_euclid(last),
                false => k.clamp(0, last),
            };
            points[usize::from(stroke[k as usize])]
        };
        for k in 0..stroke.len() as isize - 1 {
            let through = [at(k - 1), at(k), at(k + 1), at(k + 2)];
            let mut from = through[1];
            for piece in 1..=PIECES {
                let to = spline(through, piece as f32 / PIECES as f32);
                path.push(Segment { from, to, radius: 0.0 });
                from = to;
            }
        }
    }
    place(hand, rng, path);
}

/// The cubic curve from the second to the third point whose tangents point along their neighbours
/// (Catmull and Rom).
fn spline(through: [[f32; 2]; 4], t: f32) -> [f32; 2] {
    let [before, from, to, after] = through;
    std::array::from_fn(|c| {
        let [p, a, b, n] = [before[c], from[c], to[c], after[c]];
        let cubic = 3.0 * (a - b) + n - p;
        let square = 2.0 * p - 5.0 * a + 4.0 * b - n;
        a + 0.5 * t * ((b - p) + t * (square + t * cubic))
    })
}

/// Brings the path to its size and place in the picture, and gives it its width.
fn place(hand: &Hand, rng: &mut ChaCha8Rng, path: &mut [Segment]) {
    let mut low = [f32::MAX; 2];
    let mut high = [f32::MIN; 2];
    for segment in path.iter() {
        for c in 0..2 {
            low[c] = low[c].min(segment.from[c]).min(segment.to[c]);
            high[c] = high[c].max(segment.from[c]).max(segment.to[c]);
        }
    }
    let nib = hand.nib[0] + hand.nib[1] * around(rng);
    let extent = hand.extent[0] + hand.extent[1] * around(rng) - 2.0 * nib;
    let size = [high[0] - low[0], high[1] - low[1]];
    let whole = extent / size[0].max(size[1]);
    let scale = match hand.fill {
        // A stroke like 1 stays narrow.
        true => [whole.max((extent / size[0].max(0.3)).min(1.7 * whole)), whole],
        false => [whole, whole],
    };
    let shift = [hand.shift * around(rng), hand.shift * around(rng)];
    let middle: [f32; 2] = std::array::from_fn(|c| 0.5 * (low[c] + high[c]));
    let pixel = |point: [f32; 2]| {
        std::array::from_fn(|c| (point[c] - middle[c]) * scale[c] + 0.5 * hand.side + shift[c])
    };
    // The pen presses harder at one end than at the other.
    let pressure = 0.25 * around(rng);
    let count = path.len() as f32;
    for (k, segment) in path.iter_mut().enumerate() {
        let along = 2.0 * (k as f32 + 0.5) / count - 1.0;
        *segment = Segment {
            from: pixel(segment.from),
            to: pixel(segment.to),
            radius: nib * (1.0 + pressure * along),
        };
    }
}
