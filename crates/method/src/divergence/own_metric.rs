//! Distances as one device measures them: in deviations of its own features. It keeps their covariance to itself, and needs only the
//! means of others.

use super::Estimate;
use super::covariance::{Cholesky, Moments, add_to_diagonal, trace, trace_of_product};
use super::features::Features;
use super::privacy::Privacy;
use super::separation::separated;
use super::sketch::{Sketch, mean_noise};

/// A covariance of few samples is added to as if every feature had been seen this many times more.
const SAMPLES_PER_FEATURE: f64 = 10.0;

/// What a device keeps to measure how far others' means are from its own.
#[derive(Debug, Clone)]
pub struct OwnMetric {
    samples: f64,
    mean: Vec<f64>,
    factor: Cholesky,
    /// tr(S + λ)⁻¹, by which noise on another's mean counts.
    inverse_trace: f64,
    /// tr(A) with A = (S + λ)⁻¹·S: a mean of n samples strays by tr(A)/n.
    kept: f64,
    /// (tr A)²/tr(A²), the number of directions in which it does.
    directions: f64,
}

impl OwnMetric {
    /// The metric of a device's inputs. `ridge` is the fraction of the mean variance that is added to every direction.
    pub fn new(features: &Features, inputs: &[f32], ridge: f64) -> OwnMetric {
        let side = features.count();
        let mut moments = Moments::new(side);
        features.each(inputs, |vector| moments.see(vector));
        let samples = moments.count() as f64;
        let (mean, mut covariance) = moments.finish();
        let fraction = ridge + side as f64 / (SAMPLES_PER_FEATURE * samples.max(1.0));
        // Identical inputs have no spread at all, and then nothing is far.
        let added = (fraction * trace(&covariance, side) / side as f64).max(1e-12);
        add_to_diagonal(&mut covariance, side, added);
        let factor = Cholesky::new(covariance, side);
        let inverse = factor.inverse();
        let inverse_trace = trace(&inverse, side);
        let squared = trace_of_product(inverse.iter().copied(), &inverse, side);
        let kept = side as f64 - added * inverse_trace;
        let kept_squared = side as f64 - 2.0 * added * inverse_trace + added * added * squared;
        let directions = (kept * kept / kept_squared).max(1.0);
        OwnMetric { samples, mean, factor, inverse_trace, kept, directions }
    }

    /// d̂ of another device, of which the means are known, with noise where the settings ask for it.
    pub fn divergence(
        &self,
        other: &Sketch,
        privacy: Option<&Privacy>,
        confidence: f64,
    ) -> Estimate {
        let mut apart: Vec<f64> = other
            .mean
            .iter()
            .zip(&self.mean)
            .map(|(&theirs, own)| f64::from(theirs) - own)
            .collect();
        self.factor.whiten(&mut apart);
        let squared: f64 = apart.iter().map(|x| x * x).sum();
        let strays = |samples: f64| self.kept / (samples - 1.0).max(1.0);
        let noise = privacy
            .map_or(0.0, |privacy| self.inverse_trace * mean_noise(privacy, other.samples).powi(2));
        let excess = strays(self.samples) + strays(other.samples as f64) + noise;
        separated(squared - excess, excess, self.directions, confidence)
    }
}
