//! MNIST: handwritten digits, 28×28, light ink on black (LeCun, Cortes, Burges).

use std::path::Path;

use super::files::{Files, coloured, digits};
use super::{Colour, Domain, Half, SIDE};
use crate::{Dataset, Error};

pub(super) fn files(half: Half) -> Files {
    let (images, labels) = match half {
        Half::Train => ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
        Half::Test => ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
    };
    Files { domain: Domain::Mnist, half, images, labels, image: &[28, 28] }
}

pub(super) fn load(folder: &Path, half: Half, colour: Colour) -> Result<Dataset, Error> {
    let read = files(half).read(folder)?;
    let (shape, images) = coloured(read.images, SIDE, colour);
    digits(Domain::Mnist, shape, images, read.labels)
}
