//! Gaussian noise on what leaves a device, and the differential privacy that it buys.

use std::ops::Bound::{Excluded, Included};

use rand::RngExt;

use stlf_planning::error::{Error, Range};

use super::gaussian_mechanism;

/// The largest ε that is taken. It promises nearly nothing: a factor of 480 million.
const MOST_EPSILON: f64 = 20.0;

/// (ε, δ)-differential privacy: replacing one sample changes the probability of anything published by at most a
/// factor e^ε, up to δ.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `epsilon` | | the factor's logarithm | 0 < ε ≤ 20 |
/// | `delta` | | probability of the exception | 0 < δ < 1 |
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Privacy {
    epsilon: f64,
    delta: f64,
    ratio: f64,
}

impl Privacy {
    /// With the least noise that these allow.
    pub fn new(epsilon: f64, delta: f64) -> Privacy {
        Privacy { epsilon, delta, ratio: gaussian_mechanism::ratio(epsilon, delta) }
    }

    /// What devices with samples enough keep to without being asked: ε = 1, δ = 10⁻⁵.
    pub fn usual() -> Privacy {
        Privacy::new(1.0, 1e-5)
    }

    /// ε of one publication.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// δ of one publication.
    pub fn delta(&self) -> f64 {
        self.delta
    }

    /// How far one sample moves what is published, in standard deviations of its noise.
    pub fn ratio(&self) -> f64 {
        self.ratio
    }

    /// Checks that both are within their ranges.
    pub fn check(&self) -> Result<(), Error> {
        let epsilon = Range::new(Excluded(0.0), Included(MOST_EPSILON)).as_formula('ε');
        epsilon.check(self.epsilon, || "divergence.privacy.epsilon")?;
        let delta = Range::BETWEEN_ZERO_AND_ONE.as_formula('δ');
        delta.check(self.delta, || "divergence.privacy.delta")
    }

    /// The noise's standard deviation for a vector that one sample moves by `sensitivity` at most.
    pub fn deviation(&self, sensitivity: f64) -> f64 {
        sensitivity / self.ratio
    }
}

/// A standard normal number (Box and Muller).
pub(crate) fn normal(rng: &mut impl RngExt) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn stronger_promises_need_more_noise() {
        let noise = |epsilon, delta| Privacy::new(epsilon, delta).deviation(1.0);
        assert!((noise(1.0, 1e-5) - 3.730_6).abs() < 1e-3);
        assert_eq!(Privacy::new(1.0, 1e-5).deviation(2.0), 2.0 * noise(1.0, 1e-5));
        assert!(noise(0.5, 1e-5) > noise(1.0, 1e-5) && noise(1.0, 1e-6) > noise(1.0, 1e-5));
        assert!(Privacy::new(20.0, 0.1).check().is_ok());
        for (epsilon, delta) in [(0.0, 0.1), (20.5, 0.1), (0.5, 0.0), (0.5, 1.0), (f64::NAN, 0.1)] {
            assert!(Privacy::new(epsilon, delta).check().is_err());
        }
    }

    #[test]
    fn noise_has_mean_zero_and_deviation_one() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let drawn: Vec<f64> = (0..20_000).map(|_| normal(&mut rng)).collect();
        let mean = drawn.iter().sum::<f64>() / 20_000.0;
        let square = drawn.iter().map(|x| x * x).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.03 && (square - 1.0).abs() < 0.04, "{mean} {square}");
    }
}
