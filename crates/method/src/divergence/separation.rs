//! From how far two means lie apart to d̂: the error of the best linear classifier of normal features.

use super::Estimate;

/// d̂ from the squared distance Δ² of two means in deviations, from which what sampling adds to it on average is already subtracted:
/// `excess`, in so many independent directions.
pub(super) fn separated(unbiased: f64, excess: f64, directions: f64, confidence: f64) -> Estimate {
    // The squared distance of two normal means is a noncentral χ² of so many directions, scaled; its variance gives the interval.
    let scale = excess / directions;
    let variance = 2.0 * scale * excess + 4.0 * scale * unbiased.max(0.0);
    let half = normal_quantile(0.5 + 0.5 * confidence) * variance.sqrt();
    let [value, low, high] = [unbiased, unbiased - half, unbiased + half].map(from_separation);
    Estimate::new(value, low, high)
}

/// d̂ = 2(1 − 2Φ(−Δ/2)) = 2 erf(Δ/√8) of normal features Δ standard deviations apart, from Δ²; 0 where
/// that is negative.
pub(super) fn from_separation(squared: f64) -> f64 {
    if squared <= 0.0 { 0.0 } else { 2.0 * error_function((squared / 8.0).sqrt()) }
}

/// erf x for x ≥ 0, to 1.5e-7 (Abramowitz and Stegun 7.1.26).
fn error_function(x: f64) -> f64 {
    const TERMS: [f64; 5] = [1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592];
    let t = 1.0 / (1.0 + 0.3275911 * x);
    let polynomial = TERMS.iter().fold(0.0, |sum, term| (sum + term) * t);
    1.0 - polynomial * (-x * x).exp()
}

/// Φ⁻¹(p) for p ≥ ½, to 4.5e-4 (Abramowitz and Stegun 26.2.23).
fn normal_quantile(p: f64) -> f64 {
    let t = (-2.0 * (1.0 - p).max(1e-300).ln()).sqrt();
    let above = (0.010328 * t + 0.802853) * t + 2.515517;
    let below = ((0.001308 * t + 0.189269) * t + 1.432788) * t + 1.0;
    t - above / below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_functions_have_their_known_values() {
        for (x, erf) in
            [(0.0, 0.0), (0.5, 0.520_499_878), (1.0, 0.842_700_793), (3.0, 0.999_977_91)]
        {
            assert!((error_function(x) - erf).abs() < 2e-7);
        }
        for (p, z) in [(0.5, 0.0), (0.975, 1.959_964), (0.995, 2.575_829)] {
            assert!((normal_quantile(p) - z).abs() < 5e-4);
        }
        // Two deviations apart, the best classifier errs Φ(−1) = 15.87 % of the time.
        assert!((from_separation(4.0) - 2.0 * (1.0 - 2.0 * 0.158_655)).abs() < 1e-5);
    }
}
