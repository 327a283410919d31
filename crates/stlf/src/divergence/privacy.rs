//! Gaussian noise on what leaves a device, and the differential privacy that it buys.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::error::Error;

/// (ε, δ)-differential privacy: one sample more or less changes the probability of anything published by at most a
/// factor e^ε, up to δ.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `epsilon` | | the factor's logarithm | 0 < ε ≤ 1 |
/// | `delta` | | probability of the exception | 0 < δ < 1 |
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Privacy {
    /// ε.
    pub epsilon: f64,
    /// δ.
    pub delta: f64,
}

impl Privacy {
    /// That the Gaussian mechanism's theorem covers these (Dwork and Roth, theorem A.1: ε ≤ 1).
    pub fn check(&self) -> Result<(), Error> {
        if !(self.epsilon > 0.0 && self.epsilon <= 1.0) {
            let message = format!("{} is not in 0 < ε ≤ 1", self.epsilon);
            return Err(Error::field("divergence.privacy.epsilon", message));
        }
        if !(self.delta > 0.0 && self.delta < 1.0) {
            let message = format!("{} is not in 0 < δ < 1", self.delta);
            return Err(Error::field("divergence.privacy.delta", message));
        }
        Ok(())
    }

    /// The noise's standard deviation for a vector that one sample moves by `sensitivity` at most:
    /// σ = sensitivity · √(2 ln(1.25/δ)) / ε.
    pub fn deviation(&self, sensitivity: f64) -> f64 {
        sensitivity * (2.0 * (1.25 / self.delta).ln()).sqrt() / self.epsilon
    }
}

/// A standard normal number (Box and Muller).
pub(super) fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}
