//! Between d̂ and how far two means lie apart: the error of the best linear classifier of normal features.

/// d̂ = 2(1 − 2Φ(−Δ/2)) = 2 erf(Δ/√8) of normal features Δ standard deviations apart, from Δ²; 0 where
/// that is negative.
pub fn from_separation(squared: f64) -> f64 {
    if squared <= 0.0 { 0.0 } else { 2.0 * error_function((squared / 8.0).sqrt()) }
}

/// No d̂ tells more than this: its means lie six deviations apart, or more.
const MOST: f64 = 1.995;

/// Δ² of this d̂, so that [`from_separation`] leads back to it; that of 1.995 where it is larger.
pub fn to_separation(divergence: f64) -> f64 {
    if divergence <= 0.0 {
        return 0.0;
    }
    let share = 0.5 * divergence.min(MOST);
    // Newton's steps for erf x = share from the quantile of the normal distribution, which is Δ/2 = √2 x.
    let mut x = normal_quantile(0.5 + 0.5 * share).max(0.0) / std::f64::consts::SQRT_2;
    for _ in 0..3 {
        let slope = std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp();
        x = (x - (error_function(x) - share) / slope).max(0.0);
    }
    8.0 * x * x
}

/// erf x for x ≥ 0, to 1.5e-7 (Abramowitz and Stegun 7.1.26).
fn error_function(x: f64) -> f64 {
    const TERMS: [f64; 5] = [1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592];
    let t = 1.0 / (1.0 + 0.3275911 * x);
    let polynomial = TERMS.iter().fold(0.0, |sum, term| (sum + term) * t);
    1.0 - polynomial * (-x * x).exp()
}

/// Φ⁻¹(p) for p ≥ ½, to 4.5e-4 (Abramowitz and Stegun 26.2.23).
pub fn normal_quantile(p: f64) -> f64 {
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

    #[test]
    fn there_and_back_is_the_same() {
        for step in 0..=199 {
            let divergence = 0.01 * f64::from(step);
            let back = from_separation(to_separation(divergence));
            assert!((back - divergence).abs() < 1e-6, "{divergence} {back}");
        }
        assert_eq!(to_separation(2.0), to_separation(1.995));
        assert!(to_separation(2.0).sqrt() < 6.1 && to_separation(0.0) == 0.0);
    }
}
