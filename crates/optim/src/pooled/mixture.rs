//! The best mixture over given sources: one second-order cone over a simplex.
//!
//! ```text
//! minimise  Σ_i a_i α_i + √(Σ_i s_i α_i²)   over  α ≥ 0, Σ α_i = 1
//! ```
//!
//! At the optimum every source in use has a_i + s_i α_i / r = λ with r = √(Σ s α²). Multiplying by
//! α_i and summing shows that λ is the optimal value; summing the squares of α_i √s_i / r shows
//! that it solves Σ_i ((λ − a_i)⁺)² / s_i = 1. The left side grows with λ, and on sorted slopes
//! each stretch of it is a quadratic.

/// A source as the mixture sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Part {
    /// a_i, the cost per unit of weight.
    pub(super) slope: f64,
    /// 1 / s_i of the facility.
    pub(super) inverse_spread: f64,
}

/// λ, the value of the best mixture; sorts the parts by slope. Infinite without parts.
pub(super) fn value(parts: &mut [Part]) -> f64 {
    parts.sort_unstable_by(|a, b| a.slope.total_cmp(&b.slope));
    // With w = Σ 1/s, the mean m of the slopes under weights 1/s and their spread v = Σ (a − m)²/s,
    // the quadratic is w (λ − m)² + v = 1. Mean and spread are updated as by Welford (1962), which
    // holds where sums of squares would cancel.
    let Some(origin) = parts.first().map(|p| p.slope) else { return f64::INFINITY };
    let (mut w, mut m, mut v) = (0.0, 0.0, 0.0);
    let mut lambda = f64::INFINITY;
    for part in parts.iter() {
        let a = part.slope - origin;
        if a >= lambda {
            break;
        }
        w += part.inverse_spread;
        let before = a - m;
        m += before * part.inverse_spread / w;
        v += part.inverse_spread * before * (a - m);
        lambda = m + ((1.0 - v).clamp(0.0, 1.0) / w).sqrt();
    }
    origin + lambda
}

/// α_i of one part, up to the common factor that makes them sum to 1.
pub(super) fn share(part: Part, lambda: f64) -> f64 {
    (lambda - part.slope).max(0.0) * part.inverse_spread
}

/// Returns the weights α of the parts at value λ, which add up to 1.
pub(super) fn weights(parts: &[Part], lambda: f64) -> Vec<f64> {
    let shares: Vec<f64> = parts.iter().map(|&p| share(p, lambda)).collect();
    let total: f64 = shares.iter().sum();
    if total > 0.0 {
        return shares.into_iter().map(|s| s / total).collect();
    }
    // No spread to speak of: λ is the least slope to the last digit, and that source serves alone.
    let slope = |i: &usize| parts[*i].slope;
    let least = (0..parts.len()).min_by(|a, b| slope(a).total_cmp(&slope(b)));
    (0..parts.len()).map(|i| f64::from(u8::from(Some(i) == least))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cost(parts: &[Part], weights: &[f64]) -> f64 {
        let linear: f64 = parts.iter().zip(weights).map(|(p, w)| p.slope * w).sum();
        let square: f64 = parts.iter().zip(weights).map(|(p, w)| w * w / p.inverse_spread).sum();
        linear + square.sqrt()
    }

    fn part() -> impl Strategy<Value = Part> {
        (0.0..2.0f64, 0.1..500.0f64)
            .prop_map(|(slope, inverse_spread)| Part { slope, inverse_spread })
    }

    proptest! {
        #[test]
        fn the_value_is_attained_and_no_other_mixture_is_cheaper(
            mut parts in prop::collection::vec(part(), 1..8),
            other in prop::collection::vec(0.0..1.0f64, 8),
        ) {
            let lambda = value(&mut parts);
            let best = weights(&parts, lambda);
            prop_assert!((best.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            prop_assert!((cost(&parts, &best) - lambda).abs() < 1e-9 * lambda);
            let total: f64 = other[..parts.len()].iter().sum();
            prop_assume!(total > 1e-6);
            let other: Vec<f64> = other[..parts.len()].iter().map(|w| w / total).collect();
            prop_assert!(cost(&parts, &other) >= lambda - 1e-9);
        }
    }

    #[test]
    fn equal_sources_share_equally_and_a_perfect_one_serves_alone() {
        let mut equal = vec![Part { slope: 0.5, inverse_spread: 100.0 }; 4];
        let lambda = value(&mut equal);
        assert!((lambda - (0.5 + 0.1 / 2.0)).abs() < 1e-12);
        assert!(weights(&equal, lambda).iter().all(|w| (w - 0.25).abs() < 1e-12));

        let mut perfect = vec![Part { slope: 1.0, inverse_spread: 100.0 }; 3];
        perfect[1].slope = 0.0;
        let lambda = value(&mut perfect);
        assert_eq!(weights(&perfect, lambda), [1.0, 0.0, 0.0]);
    }
}
