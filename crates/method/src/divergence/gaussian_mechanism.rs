//! What Gaussian noise buys of differential privacy, exactly, and its inverses.
//!
//! A vector that one sample moves by Δ at most, published with normal noise of standard deviation σ on every number, is as hard to tell from its
//! neighbours as N(0, 1) from N(μ, 1), where μ = Δ/σ is the *ratio*. Everything here is about μ.

use std::f64::consts::{PI, SQRT_2};

/// From here on e^ε or Φ(−t) alone may leave the range of floating point, and a series gives their product.
const FAR: f64 = 25.0;

/// The least δ for which noise of this ratio is (ε, δ)-differentially private (Balle and Wang 2018, theorem 8):
/// δ = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ).
pub fn delta(epsilon: f64, ratio: f64) -> f64 {
    let (a, t) = (0.5 * ratio - epsilon / ratio, 0.5 * ratio + epsilon / ratio);
    let subtracted = match t <= FAR {
        true => epsilon.exp() * normal_below(-t),
        // ε = (t² − a²)/2, and Φ(−t) is φ(t)·(1/t − 1/t³ + 3/t⁵ − …); cut off here, it is below that, and δ above.
        false => {
            let s = 1.0 / (t * t);
            (-0.5 * a * a).exp() / (2.0 * PI).sqrt() / t * (1.0 - s * (1.0 - s * (3.0 - 15.0 * s)))
        }
    };
    (normal_below(a) - subtracted).max(0.0)
}

/// The largest ratio, thus the least noise, that is (ε, δ)-differentially private.
pub fn ratio(epsilon: f64, most_delta: f64) -> f64 {
    last_and_next(|ratio| delta(epsilon, ratio) <= most_delta).0
}

/// The least ε for which noise of this ratio is (ε, δ)-differentially private.
pub fn epsilon(ratio: f64, most_delta: f64) -> f64 {
    match last_and_next(|epsilon| delta(epsilon, ratio) > most_delta) {
        (0.0, _) => 0.0,
        (_, next) => next,
    }
}

/// The ratio of several publications together, each with noise of its own: √(Σ μᵢ²) (Dong, Roth and Su 2022, corollary 3.3).
pub fn composed(ratios: impl IntoIterator<Item = f64>) -> f64 {
    ratios.into_iter().map(|ratio| ratio * ratio).sum::<f64>().sqrt()
}

/// Φ(x), the probability that a standard normal number is below x.
fn normal_below(x: f64) -> f64 {
    0.5 * libm::erfc(-x / SQRT_2)
}

/// The last positive number for which a condition holds that holds for small ones and not for large ones, and the number after it; by bisection
/// over all numbers, which are ordered as their bits are. The first of them is 0 if it holds for none.
fn last_and_next(holds: impl Fn(f64) -> bool) -> (f64, f64) {
    let (mut low, mut high) = (0, f64::MAX.to_bits());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match holds(f64::from_bits(middle)) {
            true => low = middle,
            false => high = middle,
        }
    }
    (f64::from_bits(low), f64::from_bits(high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// ∫ max(0, p − e^ε·q) of the densities p of N(μ, 1) and q of N(0, 1): the most by which the probability of anything exceeds e^ε
    /// times that under the other, which is the definition of δ.
    fn hockey_stick(epsilon: f64, ratio: f64) -> f64 {
        const STEPS: usize = 200_000;
        let (from, to) = (-12.0, ratio + 12.0);
        let step = (to - from) / STEPS as f64;
        let density = |x: f64| (-0.5 * x * x).exp() / (2.0 * PI).sqrt();
        let above = |x: f64| (density(x - ratio) - epsilon.exp() * density(x)).max(0.0);
        (0..STEPS).map(|k| step * above(from + (k as f64 + 0.5) * step)).sum()
    }

    #[test]
    fn delta_is_what_its_definition_integrates_to() {
        for epsilon in [0.0, 0.01, 0.5, 1.0, 3.0, 20.0] {
            for ratio in [0.05, 0.2683, 1.0, 2.0, 5.0] {
                let (found, defined) = (delta(epsilon, ratio), hockey_stick(epsilon, ratio));
                assert!((found - defined).abs() < 1e-8, "{epsilon} {ratio}: {found} {defined}");
            }
        }
    }

    #[test]
    fn known_values_are_met() {
        assert!((1.0 / ratio(1.0, 1e-5) - 3.7306).abs() < 1e-4);
        // At ε = 0, δ is the distance of two normal distributions in total variation, 2Φ(μ/2) − 1.
        assert!((delta(0.0, 2.0) - 0.682_689_492).abs() < 1e-9);
        // The classical bound √(2 ln(1.25/δ))/ε for ε < 1 (Dwork and Roth 2014, theorem A.1) asks for more noise.
        for (epsilon, delta) in [(0.1, 1e-5), (0.5, 1e-9), (0.99, 1e-3)] {
            let classical = (2.0 * (1.25f64 / delta).ln()).sqrt() / epsilon;
            let least = 1.0 / ratio(epsilon, delta);
            assert!(least < classical && least > 0.5 * classical, "{least} {classical}");
        }
    }

    #[test]
    fn nothing_is_spent_where_delta_alone_allows_it_and_much_where_there_is_hardly_noise() {
        assert_eq!((epsilon(0.0, 1e-5), epsilon(1e-7, 1e-5)), (0.0, 0.0));
        // e^ε is no number any more; for a large μ, ε is near μ²/2 + 4.26μ, as Φ(−4.26) = 1e-5.
        let much = epsilon(100.0, 1e-5);
        assert!((5_400.0..5_427.0).contains(&much), "{much}");
        assert!((delta(311.0, 24.9) / delta(311.001, 24.9) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn several_publications_are_one_in_their_direction() {
        // A vector of three numbers, each published with noise of its own, is one publication of its length over its noise.
        assert_eq!(composed([2.0, 3.0, 6.0]), 7.0);
        assert_eq!(composed([]), 0.0);
        // Whoever has a number four times averages it, and has it with half the noise.
        assert!((epsilon(composed([0.3; 4]), 1e-5) - epsilon(0.6, 1e-5)).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn more_noise_spends_less(eps in 1e-3..20.0f64, ratio in 0.01..8.0f64, more in 1.001..2.0f64) {
            prop_assert!(delta(eps, ratio * more) >= delta(eps, ratio));
            prop_assert!(delta(eps * more, ratio) <= delta(eps, ratio));
            prop_assert!(epsilon(ratio * more, 1e-5) > epsilon(ratio, 1e-5));
        }

        #[test]
        fn the_inverses_are_inverse(eps in 1e-3..20.0f64, exponent in 1.0..12.0f64) {
            let most = 10f64.powf(-exponent);
            let ratio = ratio(eps, most);
            prop_assert!(delta(eps, ratio) <= most);
            prop_assert!((delta(eps, ratio) / most - 1.0).abs() < 1e-6);
            prop_assert!((epsilon(ratio, most) / eps - 1.0).abs() < 1e-6);
        }

        #[test]
        fn the_series_meets_the_formula(ratio in 5.0..40.0f64) {
            let at = |t: f64| delta(ratio * (t - 0.5 * ratio), ratio);
            let (near, far) = (at(FAR), at(FAR + 1e-9));
            prop_assert!(ratio > 2.0 * FAR || (near - far).abs() <= 1e-7 * near + 1e-300);
        }
    }
}
