//! Strokes: digits drawn from a seed, for trying things out without any file.
//!
//! Each digit is a few pen strokes, in one of several ways people write it, with every point, the
//! slant, the size, the place and the pen's width drawn at random. Three styles stand to each other
//! as MNIST, USPS and MNIST-M do. A sample depends on the seed, the style, the half and its
//! number, and on nothing else: not on how many are drawn, nor in what order, nor on the machine.

mod glyph;
mod pen;
mod render;
mod texture;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use self::pen::{Hand, Segment, below, pick};
use self::texture::Ground;
use super::files::{coloured, digits};
use super::mnist_m::{invert, luma};
use super::{Colour, Domain, Half, SIDE, usps};
use crate::{Class, Dataset, Error, Shape};

/// The look of drawn digits, each after that of a known data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Style {
    /// Light on black, as the digits of MNIST.
    Clean,
    /// Drawn at 16×16 with a broader pen, filling the frame, and padded, as USPS.
    Coarse,
    /// The clean hand, inverting a coloured ground, as MNIST-M.
    Textured,
}

const CLEAN: Hand = Hand {
    stray: 0.035,
    slant: [0.15, 0.35],
    turn: 0.06,
    stretch: [1.05, 0.25],
    bend: 0.12,
    side: SIDE as f32,
    extent: [20.0, 1.5],
    fill: false,
    shift: 1.5,
    nib: [1.35, 0.5],
};

const COARSE: Hand = Hand {
    stray: 0.045,
    slant: [-0.3, 0.25],
    turn: 0.05,
    stretch: [1.3, 0.35],
    bend: 0.16,
    side: usps::STORED as f32,
    extent: [15.6, 0.4],
    fill: true,
    shift: 0.4,
    nib: [1.55, 0.4],
};

/// Draws samples, keeping its scratch space from one to the next.
struct Artist {
    seed: u64,
    style: Style,
    half: Half,
    path: Vec<Segment>,
    cover: [f32; SIDE * SIDE],
    ink: [u8; SIDE * SIDE],
    ground: Ground,
}

impl Artist {
    fn new(seed: u64, style: Style, half: Half) -> Artist {
        Artist {
            seed,
            style,
            half,
            path: Vec::with_capacity(128),
            cover: [0.0; SIDE * SIDE],
            ink: [0; SIDE * SIDE],
            ground: [[0; SIDE * SIDE]; 3],
        }
    }

    /// Which digit sample `index` is. It is the first that is drawn of it.
    fn digit(&self, index: u64) -> Class {
        below(&mut self.rng(index), 10) as Class
    }

    /// Draws sample `index`: the ink, and the ground where the style has one.
    fn draw(&mut self, index: u64) {
        let mut rng = self.rng(index);
        let digit = below(&mut rng, 10);
        let hand = match self.style {
            Style::Clean | Style::Textured => 0,
            Style::Coarse => 1,
        };
        let glyph = pick(&mut rng, glyph::DIGITS[digit as usize], |g| g.share[hand]);
        pen::write(glyph, [&CLEAN, &COARSE][hand], &mut rng, &mut self.path);
        match self.style {
            Style::Clean | Style::Textured => {
                render::draw(&self.path, SIDE, 1.2, &mut self.cover, &mut self.ink);
            }
            Style::Coarse => {
                const SMALL: usize = usps::STORED * usps::STORED;
                let mut small = [0; SMALL];
                let cover = &mut self.cover[..SMALL];
                render::draw(&self.path, usps::STORED, 1.7, cover, &mut small);
                usps::pad(&small, &mut self.ink);
            }
        }
        if self.style == Style::Textured {
            texture::paint(&mut rng, &mut self.ground);
        }
    }

    /// Writes the digit laid over its ground into a picture, channel by channel or as brightness.
    fn lay_over(&self, colour: Colour, picture: &mut [u8]) {
        let [red, green, blue] = &self.ground;
        match colour {
            Colour::Rgb => {
                for (values, channel) in picture.chunks_exact_mut(SIDE * SIDE).zip(&self.ground) {
                    let laid = channel.iter().zip(&self.ink).map(|(&g, &ink)| invert(g, ink));
                    values.iter_mut().zip(laid).for_each(|(value, laid)| *value = laid);
                }
            }
            Colour::Grey => {
                let ground = red.iter().zip(green).zip(blue).zip(&self.ink);
                let laid = ground.map(|(((&red, &green), &blue), &ink)| {
                    luma(invert(red, ink), invert(green, ink), invert(blue, ink))
                });
                picture.iter_mut().zip(laid).for_each(|(value, laid)| *value = laid);
            }
        }
    }

    /// One generator a sample, so that samples do not depend on each other.
    fn rng(&self, index: u64) -> ChaCha8Rng {
        let mut key = *b"seed....index...stlf strokes 1..";
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..16].copy_from_slice(&index.to_le_bytes());
        key[30] = self.style as u8;
        key[31] = self.half as u8;
        ChaCha8Rng::from_seed(key)
    }
}

/// The first `samples` samples of a style.
///
/// # Errors
/// Never in practice: what is drawn fits a data set.
pub fn strokes(
    style: Style,
    half: Half,
    samples: usize,
    seed: u64,
    colour: Colour,
) -> Result<Dataset, Error> {
    strokes_where(|_| true, style, half, samples, seed, colour)
}

/// The same with the labels of all samples, but the pictures of those alone that are wanted. The others are black.
pub(super) fn strokes_where(
    is_wanted: impl Fn(usize) -> bool,
    style: Style,
    half: Half,
    samples: usize,
    seed: u64,
    colour: Colour,
) -> Result<Dataset, Error> {
    let mut artist = Artist::new(seed, style, half);
    let mut labels = Vec::with_capacity(samples);
    const PIXELS: usize = SIDE * SIDE;
    let (domain, shape, images) = match style {
        Style::Clean | Style::Coarse => {
            // Memory that is zero to begin with and not touched costs nothing, and most pictures may not be wanted.
            let mut images = vec![0; samples * PIXELS];
            for (index, picture) in images.chunks_exact_mut(PIXELS).enumerate() {
                labels.push(Some(artist.digit(index as u64)));
                if is_wanted(index) {
                    artist.draw(index as u64);
                    picture.copy_from_slice(&artist.ink);
                }
            }
            let (shape, images) = coloured(images, SIDE, colour);
            let domain =
                if style == Style::Clean { Domain::Strokes } else { Domain::StrokesCoarse };
            (domain, shape, images)
        }
        Style::Textured => {
            let channels = if colour == Colour::Rgb { 3 } else { 1 };
            let mut images = vec![0; samples * channels * PIXELS];
            for (index, picture) in images.chunks_exact_mut(channels * PIXELS).enumerate() {
                labels.push(Some(artist.digit(index as u64)));
                if is_wanted(index) {
                    artist.draw(index as u64);
                    artist.lay_over(colour, picture);
                }
            }
            let shape = Shape { channels, height: SIDE, width: SIDE };
            (Domain::StrokesTextured, shape, images)
        }
    };
    digits(domain, shape, images, labels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Values;

    const STYLES: [Style; 3] = [Style::Clean, Style::Coarse, Style::Textured];

    fn pixels(set: &Dataset) -> &[u8] {
        match set.values() {
            Values::Pixels(pixels) => pixels,
            Values::Features(_) => panic!("digits are pixels"),
        }
    }

    fn draw(style: Style, half: Half, samples: usize, seed: u64) -> Dataset {
        strokes(style, half, samples, seed, Colour::Grey).unwrap()
    }

    /// Returns the FNV-1a hash of some bytes.
    fn checksum(bytes: &[u8]) -> u64 {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
    }

    /// Results are compared across machines and versions, so pictures must not change unnoticed. Who
    /// changes them on purpose changes the tag in `Artist::rng`, and this.
    #[test]
    fn the_same_seed_draws_the_same_pictures_everywhere() {
        let sums = STYLES.map(|style| checksum(pixels(&draw(style, Half::Train, 200, 1))));
        assert_eq!(sums, [7252271698826616587, 12595569739372092150, 18365017735389770003]);
    }

    #[test]
    fn a_sample_depends_on_seed_style_half_and_number_alone() {
        for style in STYLES {
            let few = draw(style, Half::Train, 3, 1);
            let many = draw(style, Half::Train, 9, 1);
            assert_eq!(pixels(&few), &pixels(&many)[..3 * 784]);
            assert_eq!(few.label(2), many.label(2));
            assert_ne!(pixels(&few), pixels(&draw(style, Half::Test, 3, 1)));
            assert_ne!(pixels(&few), pixels(&draw(style, Half::Train, 3, 2)));
        }
    }

    #[test]
    fn every_digit_is_drawn_about_equally_often_and_never_twice_alike() {
        for style in STYLES {
            let set = draw(style, Half::Train, 2000, 5);
            let mut counts = [0; 10];
            (0..2000).for_each(|i| counts[usize::from(set.label(i).unwrap())] += 1);
            // Five standard deviations of a binomial around 200.
            assert!(counts.iter().all(|c| (133..=267).contains(c)), "{counts:?}");
            let mut images: Vec<&[u8]> = pixels(&set).chunks_exact(784).collect();
            images.sort();
            images.dedup();
            assert_eq!(images.len(), 2000);
        }
    }

    #[test]
    fn ink_stays_in_the_picture() {
        for (style, frame) in [(Style::Clean, 1), (Style::Coarse, 6)] {
            let set = draw(style, Half::Test, 2000, 3);
            let on_frame = |at: usize| {
                let inside = frame..SIDE - frame;
                !inside.contains(&(at / SIDE)) || !inside.contains(&(at % SIDE))
            };
            for image in pixels(&set).chunks_exact(784) {
                let ink = |frame: bool| {
                    let at = (0..784).filter(|&at| on_frame(at) == frame);
                    at.map(|at| u32::from(image[at])).sum::<u32>()
                };
                assert!(ink(false) > 15 * 255, "there is a digit");
                assert!(50 * ink(true) < ink(false), "and it is inside");
            }
        }
    }

    #[test]
    fn grey_is_the_brightness_of_the_colours() {
        let rgb = strokes(Style::Textured, Half::Train, 5, 1, Colour::Rgb).unwrap();
        let grey = draw(Style::Textured, Half::Train, 5, 1);
        assert_eq!((rgb.shape().channels, grey.shape().channels), (3, 1));
        let pairs = pixels(&rgb).chunks_exact(3 * 784).zip(pixels(&grey).chunks_exact(784));
        for (rgb, grey) in pairs {
            assert!((0..784).all(|at| luma(rgb[at], rgb[784 + at], rgb[1568 + at]) == grey[at]));
        }
        let thrice = strokes(Style::Clean, Half::Train, 5, 1, Colour::Rgb).unwrap();
        assert_eq!(pixels(&thrice)[..784], pixels(&thrice)[1568..2352]);
    }
}
