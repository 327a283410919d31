//! The bandwidth of shared random features: the distance over which they vary.

use stlf_data::Shape;
use stlf_planning::error::Error;

use super::features::{Embedded, Embedding};
use super::{derive, windows};

/// Where the bandwidth comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bandwidth {
    /// Every device publishes the median distance of its inputs; the [median](agree) of these counts.
    Median,
    /// A number that is fixed in advance. Nothing is published for it, and no member can choose it.
    Fixed(f64),
}

impl Bandwidth {
    /// What inputs of this shape usually have: the distance of two inputs of d numbers with standard deviation s, √(2d)·s. Columns
    /// of a table are brought to deviation 1; pixels from 0 to 1 have about 0.25, and what comes of windows at most 0.5.
    pub fn usual(embedding: Embedding, shape: Shape) -> Bandwidth {
        let (numbers, deviation) = match embedding {
            Embedding::Windows => (windows::answers(shape).len(), 0.5),
            _ if shape.height > 1 => (shape.len(), 0.25),
            _ => (shape.len(), 1.0),
        };
        Bandwidth::Fixed((2.0 * numbers as f64).sqrt() * deviation)
    }

    /// The number times a factor, where it is known.
    pub(super) fn times(self, factor: f64) -> Bandwidth {
        match self {
            Bandwidth::Median => self,
            Bandwidth::Fixed(width) => Bandwidth::Fixed(factor * width),
        }
    }

    /// The number, where it is known before anything is published.
    pub fn known(self) -> Option<f64> {
        match self {
            Bandwidth::Median => None,
            Bandwidth::Fixed(width) => Some(width),
        }
    }

    pub(super) fn check(self) -> Result<(), Error> {
        match self {
            Bandwidth::Fixed(width) => super::check_above_zero("bandwidth", width),
            Bandwidth::Median => Ok(()),
        }
    }
}

/// The bandwidth that all use: the median of what the devices published.
pub fn agree(bandwidths: &[Option<f64>]) -> f64 {
    let mut known: Vec<f64> = bandwidths.iter().copied().flatten().collect();
    known.sort_unstable_by(f64::total_cmp);
    match known.get(known.len() / 2) {
        Some(&median) if median > 0.0 => median,
        _ => 1.0,
    }
}

/// At device `place` of a fleet: what it publishes for the bandwidth, the median distance of its inputs.
///
/// # Errors
/// An embedding that inputs of this shape do not allow.
pub fn own_bandwidth(
    inputs: &[f32],
    shape: Shape,
    embedding: Embedding,
    seed: u64,
    place: usize,
) -> Result<Option<f64>, Error> {
    let embedded = Embedded::new(embedding, shape, derive(derive(seed, &[0]), &[0]))?;
    Ok(embedded.median_distance(inputs, derive(seed, &[1, place as u64])))
}
