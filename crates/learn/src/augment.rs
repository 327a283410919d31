//! Random views of pictures: a network that sees each picture in many looks learns shapes instead of one camera's looks.
//!
//! Random convolutions change colours and textures and keep shapes (Xu et al., "Robust and Generalizable Visual
//! Representation Learning via Random Convolutions", ICLR 2021). Shifts, rotations and the like move shapes a little.

mod scratch;
#[cfg(test)]
mod tests;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use stlf_data::Shape;

use crate::Error;
pub use scratch::Scratch;
use scratch::{KERNELS, Map};

/// How the pictures that a network is trained on are varied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Augment {
    /// Every picture stays as it is.
    #[default]
    None,
    /// Moved by up to a pixel.
    Shift,
    /// Half of them through a random convolution.
    Convolutions,
    /// Moved, and half of them through a random convolution.
    Both,
}

impl Augment {
    /// Every way to vary pictures.
    pub const ALL: [Augment; 4] =
        [Augment::None, Augment::Shift, Augment::Convolutions, Augment::Both];

    /// Returns the name that users type.
    pub const fn name(self) -> &'static str {
        match self {
            Augment::None => "none",
            Augment::Shift => "shift",
            Augment::Convolutions => "convolutions",
            Augment::Both => "both",
        }
    }

    /// The views that a network is trained on; `None` where pictures stay as they are.
    pub const fn view(self) -> Option<View> {
        match self {
            Augment::None => None,
            Augment::Shift => Some(View::SHIFT),
            Augment::Convolutions => Some(View::CONVOLUTIONS),
            Augment::Both => Some(View { shift: View::SHIFT.shift, ..View::CONVOLUTIONS }),
        }
    }

    /// Checks that inputs of this shape can be varied so.
    ///
    /// # Errors
    /// Views of inputs that are no pictures.
    pub fn check(self, shape: Shape) -> Result<(), Error> {
        if self == Augment::None || shape.is_picture() {
            return Ok(());
        }
        let name = self.name();
        Err(Error::Training(format!(
            "augment = \"{name}\" is for pictures, and inputs of {shape} are none; leave it out"
        )))
    }
}

/// What may happen to a picture. All that happens is drawn for each picture anew.
///
/// | name | meaning | range |
/// |---|---|---|
/// | `convolution` | probability of a random convolution | 0 ≤ p ≤ 1 |
/// | `shift` | the most pixels by which it moves in each direction | ≥ 0 |
/// | `rotation` | the most degrees by which it turns, either way | ≥ 0 |
/// | `scale` | the most by which it grows or shrinks, as a fraction of its size | 0 ≤ s < 1 |
/// | `shear` | the most by which a row moves against the next, in pixels, either way | ≥ 0 |
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct View {
    /// The probability of a random convolution, 0 to 1.
    pub convolution: f32,
    /// The most pixels by which the picture moves in each direction.
    pub shift: u16,
    /// The most degrees by which it turns about its centre.
    pub rotation: f32,
    /// The most by which it grows or shrinks, as a fraction of its size, under 1.
    pub scale: f32,
    /// The most by which each row moves against the one above it, in pixels.
    pub shear: f32,
}

impl View {
    /// The view that leaves every picture as it is.
    pub const PLAIN: View =
        View { convolution: 0.0, shift: 0, rotation: 0.0, scale: 0.0, shear: 0.0 };
    /// The view that moves a picture by up to one pixel in each direction.
    pub const SHIFT: View = View { shift: 1, ..View::PLAIN };
    /// A random convolution of every second picture.
    pub const CONVOLUTIONS: View = View { convolution: 0.5, ..View::PLAIN };
    /// As different as a digit can look and still be read: what must not change a student's mind.
    pub const STRONG: View =
        View { convolution: 0.8, shift: 1, rotation: 10.0, scale: 0.1, shear: 0.1 };

    /// Draws a view of the picture and puts it in its place. What comes in at an edge repeats the edge. Allocates nothing.
    ///
    /// # Panics
    /// If the picture is not of the shape that the working memory is for.
    pub fn apply(&self, picture: &mut [f32], scratch: &mut Scratch, rng: &mut ChaCha8Rng) {
        let mut moved = (self.pixels(rng), self.pixels(rng));
        if self.distorts() {
            scratch.distort(picture, self.map(moved, rng));
            moved = (0, 0);
        }
        if self.convolution > 0.0 && rng.random::<f32>() < self.convolution {
            let size = rng.random_range(0..KERNELS.len());
            scratch.draw(size, rng);
            scratch.convolve(picture, moved, size);
        } else if moved != (0, 0) {
            scratch.shift(picture, moved);
        }
    }

    /// Draws a shift in one direction, in pixels, at most `shift` either way.
    fn pixels(&self, rng: &mut ChaCha8Rng) -> i32 {
        let most = i32::from(self.shift);
        if most == 0 { 0 } else { rng.random_range(-most..=most) }
    }

    fn distorts(&self) -> bool {
        self.rotation > 0.0 || self.scale > 0.0 || self.shear > 0.0
    }

    /// A rotation, a change of size and a shear of the picture, which is then moved.
    fn map(&self, moved: (i32, i32), rng: &mut ChaCha8Rng) -> Map {
        let mut up_to = |most: f32| most * rng.random_range(-1.0..=1.0f32);
        let (sin, cos) = up_to(self.rotation).to_radians().sin_cos();
        let (size, shear) = (1.0 + up_to(self.scale), up_to(self.shear));
        // From a place in the view back to the one in the picture: rotation · shear / size.
        Map {
            x: [cos / size, (cos * shear - sin) / size],
            y: [sin / size, (sin * shear + cos) / size],
            moved,
        }
    }
}
