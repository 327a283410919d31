//! USPS: digits from envelopes, 16×16, light ink on black (Hull, 1994), brought to 28×28.

use std::path::Path;

use super::files::{Files, coloured, digits};
use super::{Colour, Domain, Half, SIDE};
use crate::{Dataset, Error};

/// The side of the images as they are stored.
pub(super) const STORED: usize = 16;

/// How the 16×16 pixels of a stored digit become 28×28.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UspsFit {
    /// Six black pixels on every side, as in the paper.
    #[default]
    Pad,
    /// Enlarges pictures to 28×28 bilinearly.
    Resample,
}

pub(super) fn files(half: Half) -> Files {
    let (images, labels) = match half {
        Half::Train => ("usps-train-images-idx3-ubyte", "usps-train-labels-idx1-ubyte"),
        Half::Test => ("usps-test-images-idx3-ubyte", "usps-test-labels-idx1-ubyte"),
    };
    Files { domain: Domain::Usps, half, images, labels, image: &[16, 16] }
}

pub(super) fn load(
    folder: &Path,
    half: Half,
    colour: Colour,
    fit: UspsFit,
) -> Result<Dataset, Error> {
    let read = files(half).read(folder)?;
    let mut images = vec![0; read.labels.len() * SIDE * SIDE];
    let pairs = read.images.chunks_exact(STORED * STORED).zip(images.chunks_exact_mut(SIDE * SIDE));
    for (small, large) in pairs {
        match fit {
            UspsFit::Pad => pad(small, large),
            UspsFit::Resample => resample(small, large),
        }
    }
    let (shape, images) = coloured(images, SIDE, colour);
    digits(Domain::Usps, shape, images, read.labels)
}

/// Puts a 16×16 image in the middle of a black 28×28 one.
pub(super) fn pad(small: &[u8], large: &mut [u8]) {
    const MARGIN: usize = (SIDE - STORED) / 2;
    for (y, row) in small.chunks_exact(STORED).enumerate() {
        let start = (y + MARGIN) * SIDE + MARGIN;
        large[start..start + STORED].copy_from_slice(row);
    }
}

/// Enlarges 16×16 to 28×28: each pixel is the blend of the four whose centres surround its own.
fn resample(small: &[u8], large: &mut [u8]) {
    // Along one axis: the nearer stored pixel before, the one after, and the share of the latter.
    let surround = |at: usize| {
        let centre = (at as f32 + 0.5) * STORED as f32 / SIDE as f32 - 0.5;
        let before = centre.max(0.0).floor();
        let share = (centre - before).max(0.0);
        let before = before as usize;
        (before, (before + 1).min(STORED - 1), share)
    };
    for y in 0..SIDE {
        let (top, bottom, down) = surround(y);
        for x in 0..SIDE {
            let (left, right, across) = surround(x);
            let pixel = |y: usize, x: usize| f32::from(small[y * STORED + x]);
            let row = |y: usize| pixel(y, left) * (1.0 - across) + pixel(y, right) * across;
            let blend = row(top) * (1.0 - down) + row(bottom) * down;
            // A blend of bytes is a byte.
            large[y * SIDE + x] = blend.round() as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_keeps_the_image_in_the_middle() {
        let small: Vec<u8> = (0..=255).collect();
        let mut large = vec![0; 784];
        pad(&small, &mut large);
        assert_eq!(large[6 * 28 + 6..][..16], small[..16]);
        assert_eq!(large[21 * 28 + 21], 255);
        let sum = |image: &[u8]| image.iter().map(|&p| u32::from(p)).sum::<u32>();
        assert_eq!(sum(&large), sum(&small));
    }

    #[test]
    fn resampling_keeps_a_flat_image_flat_and_a_slope_even() {
        let mut large = vec![0; 784];
        resample(&[77; 256], &mut large);
        assert!(large.iter().all(|&p| p == 77));
        let slope: Vec<u8> = (0..256).map(|i| (i % 16 * 16) as u8).collect();
        resample(&slope, &mut large);
        for row in large.chunks_exact(28) {
            assert_eq!((row[0], row[27]), (0, 240));
            // 16 grey levels a stored pixel are 16·16/28 a new one.
            assert!(row[2..26].windows(2).all(|w| (8..=10).contains(&(w[1] - w[0]))));
        }
    }
}
