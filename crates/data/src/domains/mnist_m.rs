//! MNIST-M: MNIST laid over photographs, 28×28 in colour (Ganin et al., 2016).
//!
//! Image i is MNIST's image i of the same half; [`load`](super::load) keeps the two apart.

#[cfg(feature = "images")]
mod build;

use std::path::Path;

#[cfg(feature = "images")]
pub use build::{Recipe, build};

use super::files::{Files, digits};
use super::{Colour, Domain, Half, SIDE};
use crate::{Dataset, Error, Shape};

pub(super) fn files(half: Half) -> Files {
    let (images, labels) = match half {
        Half::Train => ("mnistm-train-images-idx4-ubyte", "mnistm-train-labels-idx1-ubyte"),
        Half::Test => ("mnistm-test-images-idx4-ubyte", "mnistm-test-labels-idx1-ubyte"),
    };
    Files { domain: Domain::MnistM, half, images, labels, image: &[28, 28, 3] }
}

pub(super) fn load(folder: &Path, half: Half, colour: Colour) -> Result<Dataset, Error> {
    let read = files(half).read(folder)?;
    let (shape, images) = match colour {
        Colour::Grey => (Shape::grey(SIDE), grey(&read.images)),
        Colour::Rgb => {
            let shape = Shape { channels: 3, height: SIDE, width: SIDE };
            (shape, by_channel(&read.images))
        }
    };
    digits(Domain::MnistM, shape, images, read.labels)
}

/// The brightness of pixels given as red, green, blue: ITU-R BT.601, as most tools turn colour to grey.
fn grey(pixels: &[u8]) -> Vec<u8> {
    pixels.chunks_exact(3).map(|p| luma(p[0], p[1], p[2])).collect()
}

/// 0.299 red + 0.587 green + 0.114 blue, rounded. In integers, so that it is the same everywhere.
pub(crate) fn luma(red: u8, green: u8, blue: u8) -> u8 {
    let [red, green, blue] = [red, green, blue].map(u32::from);
    // The weights sum to 1000, so this is at most 255.
    ((299 * red + 587 * green + 114 * blue + 500) / 1000) as u8
}

/// Inverts the background's colour where there is ink.
pub(super) fn invert(ground: u8, ink: u8) -> u8 {
    if ink > 0 { 255 - ground } else { ground }
}

/// From red, green, blue of each pixel to all the red of an image, then all the green, all the blue.
fn by_channel(pixels: &[u8]) -> Vec<u8> {
    let image = |pixels: &[u8]| {
        let channel = |c: usize| pixels[c..].iter().step_by(3).copied();
        channel(0).chain(channel(1)).chain(channel(2)).collect::<Vec<u8>>()
    };
    pixels.chunks_exact(3 * SIDE * SIDE).flat_map(image).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grey_is_between_the_channels_and_exact_at_the_ends() {
        assert_eq!((luma(0, 0, 0), luma(255, 255, 255)), (0, 255));
        assert_eq!((luma(255, 0, 0), luma(0, 255, 0), luma(0, 0, 255)), (76, 150, 29));
        assert!((0..=255).all(|v| luma(v, v, v) == v));
    }

    #[test]
    fn channels_are_taken_apart() {
        let mut pixels = vec![0; 2 * 3 * 784];
        pixels[3 * 784 + 3 * 5 + 1] = 200; // The second image's pixel 5, green.
        let apart = by_channel(&pixels);
        assert_eq!(apart.iter().position(|&p| p == 200), Some(3 * 784 + 784 + 5));
    }
}
