//! The generalisation bound: what theory says a model will err, at its source and at a target.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which bound the target term uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BoundKind {
    /// Sources' sampling errors are independent: mixing several sources can pay.
    #[default]
    Pooled,
    /// The paper's Corollary 1: sampling errors add up, so one source per target is optimal.
    Paper,
}

impl std::fmt::Display for BoundKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            BoundKind::Pooled => "pooled",
            BoundKind::Paper => "paper",
        })
    }
}

/// ρ, the bound on the empirical Rademacher complexity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Complexity {
    /// √(2 ln 2), Massart's lemma with a hypothesis space that shatters the data.
    Massart,
    /// 0: leaves the constant out, so that errors and divergences decide.
    None,
    /// A number of the user's own.
    Value(f64),
}

impl Complexity {
    /// The number ρ (`eq:massart_statement_eq` with |A| = 2ⁿ for [`Complexity::Massart`]).
    pub fn value(self) -> f64 {
        match self {
            Complexity::Massart => (2.0 * std::f64::consts::LN_2).sqrt(),
            Complexity::None => 0.0,
            Complexity::Value(rho) => rho,
        }
    }
}

/// The settings of the bounds S_i and T_j, besides what was measured on devices and links.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Bound {
    /// The paper's bound, or the pooled one.
    pub kind: BoundKind,
    /// δ: the bound holds with probability 1 − δ.
    pub delta: f64,
    /// ρ, the complexity of the hypothesis class.
    pub complexity: Complexity,
    /// The share of ½ d̂ that counts: 1 as in the theorem, less where devices with labels found that models err less elsewhere than
    /// divergences say. Then the sum is what to expect rather than a bound.
    pub calibration: f64,
}

impl Default for Bound {
    fn default() -> Self {
        Bound {
            kind: BoundKind::Pooled,
            delta: 1e-3,
            complexity: Complexity::None,
            calibration: 1.0,
        }
    }
}

impl Bound {
    /// Returns the same settings with what `change` sets; it is how a caller sets any of them.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// √(ln(2/δ) / (2 D̂)), the sampling deviation in `eq:lemma1`.
    pub fn deviation(&self, samples: f64) -> f64 {
        ((2.0 / self.delta).ln() / (2.0 * samples)).sqrt()
    }

    /// S_i, a source's own bound: the displayed inequality below `eq:lemma1`.
    pub fn source(&self, source_error: f64, samples: f64) -> f64 {
        source_error + 2.0 * self.complexity.value() + 3.0 * self.deviation(samples)
    }

    /// ½ d̂ as it counts: how much more a model errs on the data of another device.
    pub fn transfer(&self, divergence: f64) -> f64 {
        0.5 * self.calibration * divergence
    }

    /// T_ij without the combination noise: the bracket of `eq:coro_gen_error_bound_rademacher`.
    pub fn target(
        &self,
        source_error: f64,
        divergence: f64,
        source_samples: f64,
        target_samples: f64,
    ) -> f64 {
        self.sender(source_error, source_samples)
            + self.transfer(divergence)
            + self.target_constant(target_samples)
    }

    /// The part of T_ij that is the sender's alone: ε̂_i + 6√(ln(2/δ)/(2 D̂_i)).
    pub fn sender(&self, source_error: f64, source_samples: f64) -> f64 {
        source_error + 6.0 * self.deviation(source_samples)
    }

    /// The part of T_ij that no choice of source changes: 10ρ + 6√(ln(2/δ)/(2 D̂_j)).
    pub fn target_constant(&self, target_samples: f64) -> f64 {
        10.0 * self.complexity.value() + 6.0 * self.deviation(target_samples)
    }

    /// 6√(ln(2/δ)/2), the factor of √(Σ α²/D̂) in the pooled bound.
    pub fn pooling_scale(&self) -> f64 {
        6.0 * self.deviation(1.0)
    }

    /// T_j(α) of the pooled bound. It is Corollary 1 with the sources' deviations added as those
    /// of independent samples (McDiarmid), never above `eq:coro_gen_error_bound_rademacher` and
    /// equal to it where one source serves.
    pub fn pooled_target(&self, mixture: &[Share], target_samples: f64) -> f64 {
        let error: f64 =
            mixture.iter().map(|s| s.weight * (s.source_error + self.transfer(s.divergence))).sum();
        let spread: f64 = mixture.iter().map(|s| s.weight * s.weight / s.samples).sum();
        self.pooled(error, spread, target_samples)
    }

    /// T_j(α) from its parts: Σ α (ε̂ + ½ d̂) and Σ α²/D̂.
    pub fn pooled(&self, error: f64, spread: f64, target_samples: f64) -> f64 {
        error + self.target_constant(target_samples) + self.pooling_scale() * spread.sqrt()
    }

    /// Both sides of Theorem 2, `eq:thm1_main_result`.
    pub fn theorem_2(&self, target_error: f64, mixture: &[Measured]) -> Sides {
        let right = mixture
            .iter()
            .map(|m| {
                let s = m.share;
                s.weight * (s.source_error + m.labeling_error + 0.5 * s.divergence + m.noise)
            })
            .sum();
        Sides { left: target_error, right }
    }

    /// Both sides of Corollary 1, `eq:coro_gen_error_bound_rademacher`.
    pub fn corollary_1(
        &self,
        target_error: f64,
        target_samples: f64,
        mixture: &[Measured],
    ) -> Sides {
        let right = mixture
            .iter()
            .map(|m| {
                let s = m.share;
                let bracket = self.target(s.source_error, s.divergence, s.samples, target_samples);
                s.weight * (bracket + m.labeling_error + m.noise)
            })
            .sum();
        Sides { left: target_error, right }
    }
}

/// One source's part in a target's mixture, with what the bound needs to know of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// α_ij, the weight of the source at the target.
    pub weight: f64,
    /// ε̂_i (or the true ε_i in Theorem 2).
    pub source_error: f64,
    /// d̂_ij, the divergence between source and target, 0 to 2.
    pub divergence: f64,
    /// D̂_i, the number of the source's samples.
    pub samples: f64,
}

/// A source's part in a mixture, with the two terms that only an experiment with all labels can measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// The source's part in the mixture.
    pub share: Share,
    /// ε_t(f_s): how often the source's labeling function is wrong at the target.
    pub labeling_error: f64,
    /// ε̂_t(h_t, h_s): how often the mixture and this source disagree at the target.
    pub noise: f64,
}

/// The two sides of an inequality, to check that a bound holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sides {
    /// The left side: the quantity that is bounded.
    pub left: f64,
    /// The right side: the bound on that quantity.
    pub right: f64,
}

impl Sides {
    /// Returns whether the inequality holds, equal sides included.
    pub fn holds(&self) -> bool {
        self.left <= self.right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn share(weight: f64, source_error: f64, divergence: f64, samples: f64) -> Share {
        Share { weight, source_error, divergence, samples }
    }

    fn bound(complexity: Complexity) -> Bound {
        Bound { complexity, ..Bound::default() }
    }

    #[test]
    fn massart_is_the_root_of_two_ln_two() {
        let rho = Complexity::Massart.value();
        assert!(((rho * rho / 2.0).exp() - 2.0).abs() < 1e-12);
    }

    #[test]
    fn the_deviation_shrinks_with_the_root_of_the_samples() {
        let b = bound(Complexity::None);
        assert!((b.deviation(100.0) / b.deviation(400.0) - 2.0).abs() < 1e-12);
        // Inverting the definition gives δ back.
        let delta = 2.0 * (-2.0 * 50.0 * b.deviation(50.0).powi(2)).exp();
        assert!((delta - 1e-3).abs() < 1e-15);
    }

    proptest! {
        #[test]
        fn pooled_equals_the_paper_at_a_vertex_and_is_never_above(
            a in 0.0..1.0f64, e1 in 0.0..1.0f64, e2 in 0.0..1.0f64,
            d1 in 0.0..2.0f64, d2 in 0.0..2.0f64,
            n1 in 1.0..5000.0f64, n2 in 1.0..5000.0f64, nt in 1.0..5000.0f64,
        ) {
            let b = bound(Complexity::Massart);
            let vertex = b.pooled_target(&[share(1.0, e1, d1, n1)], nt);
            prop_assert!((vertex - b.target(e1, d1, n1, nt)).abs() < 1e-9);
            let mixed = b.pooled_target(&[share(a, e1, d1, n1), share(1.0 - a, e2, d2, n2)], nt);
            let summed = a * b.target(e1, d1, n1, nt) + (1.0 - a) * b.target(e2, d2, n2, nt);
            prop_assert!(mixed <= summed + 1e-9);
        }

        #[test]
        fn corollary_1_is_theorem_2_plus_the_price_of_measuring(
            e in 0.0..1.0f64, d in 0.0..2.0f64, n in 1.0..5000.0f64, nt in 1.0..5000.0f64,
            f in 0.0..1.0f64, noise in 0.0..1.0f64,
        ) {
            let b = bound(Complexity::Massart);
            let m = [Measured { share: share(1.0, e, d, n), labeling_error: f, noise }];
            let price = b.corollary_1(0.3, nt, &m).right - b.theorem_2(0.3, &m).right;
            let expected = 10.0 * b.complexity.value() + 6.0 * (b.deviation(n) + b.deviation(nt));
            prop_assert!((price - expected).abs() < 1e-9);
        }
    }
}
