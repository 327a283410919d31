//! Gaussian noise on what leaves a device, and the differential privacy that it buys.

use rand::RngExt;

use stlf_planning::error::Error;

/// (ε, δ)-differential privacy: one sample more or less changes the probability of anything published by at most a
/// factor e^ε, up to δ.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `epsilon` | | the factor's logarithm | 0 < ε ≤ 1 |
/// | `delta` | | probability of the exception | 0 < δ < 1 |
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Privacy {
    /// ε of differential privacy, above 0 and at most 1.
    pub epsilon: f64,
    /// δ of differential privacy, between 0 and 1.
    pub delta: f64,
}

impl Privacy {
    /// What devices with samples enough keep to without being asked.
    pub const DEFAULT: Privacy = Privacy { epsilon: 1.0, delta: 1e-5 };

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
pub(super) fn normal(rng: &mut impl RngExt) -> f64 {
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
        let noise = |epsilon, delta| Privacy { epsilon, delta }.deviation(1.0);
        assert!((noise(1.0, 1e-5) - 4.844_8).abs() < 1e-3);
        assert_eq!(noise(0.5, 1e-5), 2.0 * noise(1.0, 1e-5));
        assert!(noise(1.0, 1e-6) > noise(1.0, 1e-5));
        for (epsilon, delta) in [(0.0, 0.1), (1.5, 0.1), (0.5, 0.0), (0.5, 1.0), (f64::NAN, 0.1)] {
            assert!(Privacy { epsilon, delta }.check().is_err());
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
