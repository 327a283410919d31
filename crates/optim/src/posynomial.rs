//! Monomials, posynomials and condensation, over strictly positive variables.
//!
//! A monomial is `c · x₁^a₁ · x₂^a₂ ⋯` with `c > 0` and real exponents, a posynomial a sum of
//! monomials (paper: Definition `defn:monomial_posynomial`; there `c ≥ 0`, but a term with `c = 0` is
//! no term). Sums, products and powers of monomials read as on paper:
//!
//! ```
//! use stlf_optim::posynomial::{Monomial, Variable};
//!
//! let (x, y) = (Monomial::from(Variable(0)), Monomial::from(Variable(1)));
//! let area = x.clone() * y.clone() * 2.0.try_into()?;
//! let posynomial = area / x.powf(0.5) + y;
//! assert!((posynomial.eval(&[4.0, 3.0]) - 15.0).abs() < 1e-12);
//! # Ok::<(), stlf_optim::gp::GpError>(())
//! ```
//!
//! Coefficients are kept as logarithms, so that products and condensations of very small or very large
//! terms neither overflow nor vanish.

use std::ops::{Add, Div, Mul};

use crate::gp::GpError;

/// A variable, named by its place in the point at which a posynomial is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Variable(pub usize);

/// `c · Π x_v^a_v` with `c > 0`.
#[derive(Clone, Debug, PartialEq)]
pub struct Monomial {
    log_coefficient: f64,
    /// The exponents, sorted by variable, each at most once and none zero.
    exponents: Vec<(Variable, f64)>,
}

impl Monomial {
    /// `coefficient · Π variable^exponent`; exponents of a repeated variable add up.
    pub fn new(
        coefficient: f64,
        exponents: impl IntoIterator<Item = (Variable, f64)>,
    ) -> Result<Self, GpError> {
        let mut monomial = Self::try_from(coefficient)?;
        for (variable, exponent) in exponents {
            if !exponent.is_finite() {
                return Err(GpError::ExponentNotFinite { variable, exponent });
            }
            monomial = monomial * Self::from(variable).powf(exponent);
        }
        Ok(monomial)
    }

    /// Returns the coefficient `c`, which is above 0.
    pub fn coefficient(&self) -> f64 {
        self.log_coefficient.exp()
    }

    /// The logarithm of the coefficient, which is exact where the coefficient itself would overflow.
    pub fn log_coefficient(&self) -> f64 {
        self.log_coefficient
    }

    /// The exponents that are not zero, by variable.
    pub fn exponents(&self) -> &[(Variable, f64)] {
        &self.exponents
    }

    /// The monomial raised to a (finite, real) power.
    #[must_use]
    pub fn powf(mut self, power: f64) -> Self {
        self.log_coefficient *= power;
        for (_, exponent) in &mut self.exponents {
            *exponent *= power;
        }
        self.exponents.retain(|&(_, exponent)| exponent != 0.0);
        self
    }

    /// The value at `point`, whose entries must be positive.
    pub fn eval(&self, point: &[f64]) -> f64 {
        self.log_eval(point).exp()
    }

    /// The logarithm of the value at `point`: affine in the logarithms of the variables.
    pub fn log_eval(&self, point: &[f64]) -> f64 {
        let powers = self.exponents.iter();
        self.log_coefficient + powers.map(|&(v, a)| a * point[v.0].ln()).sum::<f64>()
    }
}

impl From<Variable> for Monomial {
    fn from(variable: Variable) -> Self {
        Self { log_coefficient: 0.0, exponents: vec![(variable, 1.0)] }
    }
}

impl TryFrom<f64> for Monomial {
    type Error = GpError;

    fn try_from(coefficient: f64) -> Result<Self, GpError> {
        if coefficient > 0.0 && coefficient.is_finite() {
            Ok(Self { log_coefficient: coefficient.ln(), exponents: Vec::new() })
        } else {
            Err(GpError::CoefficientNotPositive { coefficient })
        }
    }
}

impl Mul for Monomial {
    type Output = Monomial;

    fn mul(mut self, other: Monomial) -> Monomial {
        self.log_coefficient += other.log_coefficient;
        for (variable, exponent) in other.exponents {
            match self.exponents.binary_search_by_key(&variable, |&(v, _)| v) {
                Ok(place) => self.exponents[place].1 += exponent,
                Err(place) => self.exponents.insert(place, (variable, exponent)),
            }
        }
        self.exponents.retain(|&(_, exponent)| exponent != 0.0);
        self
    }
}

impl Div for Monomial {
    type Output = Monomial;

    #[allow(clippy::suspicious_arithmetic_impl)] // a quotient is the product with the inverse
    fn div(self, other: Monomial) -> Monomial {
        self * other.powf(-1.0)
    }
}

impl<P: Into<Posynomial>> Add<P> for Monomial {
    type Output = Posynomial;

    fn add(self, other: P) -> Posynomial {
        Posynomial::from(self) + other
    }
}

/// A sum of at least one monomial; terms with equal exponents are one term.
#[derive(Clone, Debug, PartialEq)]
pub struct Posynomial {
    terms: Vec<Monomial>,
}

impl Posynomial {
    /// The sum of the terms. An empty sum is zero, which is not a posynomial.
    pub fn sum(terms: impl IntoIterator<Item = Monomial>) -> Result<Self, GpError> {
        let mut sum = Self { terms: Vec::new() };
        for term in terms {
            sum.push(term);
        }
        if sum.terms.is_empty() {
            return Err(GpError::EmptySum);
        }
        Ok(sum)
    }

    /// Returns the monomials that add up to it.
    pub fn terms(&self) -> &[Monomial] {
        &self.terms
    }

    /// The value at `point`, whose entries must be positive.
    pub fn eval(&self, point: &[f64]) -> f64 {
        self.terms.iter().map(|term| term.eval(point)).sum()
    }

    /// The logarithm of the value at `point`, without overflow on the way.
    pub fn log_eval(&self, point: &[f64]) -> f64 {
        let logs: Vec<f64> = self.terms.iter().map(|term| term.log_eval(point)).collect();
        log_sum_exp(&logs)
    }

    /// The best monomial below the posynomial at `point`, by the inequality of the arithmetic and the
    /// geometric mean (paper: Lemma `Lemma:AG_mean`, equation `eq:approxPosMonMain`):
    ///
    /// ```text
    /// g(y) ≥ ĝ(y) = Π_m (u_m(y) / w_m)^w_m   with   w_m = u_m(z) / g(z)
    /// ```
    ///
    /// It meets the posynomial at `point` in value and in gradient, and is never above it.
    pub fn condense(&self, point: &[f64]) -> Monomial {
        let logs: Vec<f64> = self.terms.iter().map(|term| term.log_eval(point)).collect();
        let total = log_sum_exp(&logs);
        let mut condensed = Monomial { log_coefficient: 0.0, exponents: Vec::new() };
        for (term, log) in self.terms.iter().zip(logs) {
            let weight = (log - total).exp();
            if weight > 0.0 {
                condensed = condensed * term.clone().powf(weight);
                condensed.log_coefficient -= weight * (log - total);
            }
        }
        condensed
    }

    fn push(&mut self, term: Monomial) {
        match self.terms.iter_mut().find(|t| t.exponents == term.exponents) {
            Some(like) => {
                like.log_coefficient = log_sum_exp(&[like.log_coefficient, term.log_coefficient]);
            }
            None => self.terms.push(term),
        }
    }
}

impl From<Monomial> for Posynomial {
    fn from(term: Monomial) -> Self {
        Self { terms: vec![term] }
    }
}

impl<P: Into<Posynomial>> Add<P> for Posynomial {
    type Output = Posynomial;

    fn add(mut self, other: P) -> Posynomial {
        for term in other.into().terms {
            self.push(term);
        }
        self
    }
}

impl Mul<Monomial> for Posynomial {
    type Output = Posynomial;

    fn mul(self, factor: Monomial) -> Posynomial {
        let terms = self.terms.into_iter().map(|term| term * factor.clone());
        Posynomial { terms: terms.collect() }
    }
}

impl Mul for Posynomial {
    type Output = Posynomial;

    fn mul(self, other: Posynomial) -> Posynomial {
        let mut product = Posynomial { terms: Vec::new() };
        for left in &self.terms {
            for right in &other.terms {
                product.push(left.clone() * right.clone());
            }
        }
        product
    }
}

impl Div<Monomial> for Posynomial {
    type Output = Posynomial;

    #[allow(clippy::suspicious_arithmetic_impl)] // a quotient is the product with the inverse
    fn div(self, divisor: Monomial) -> Posynomial {
        self * divisor.powf(-1.0)
    }
}

/// `ln Σ exp(l)`, shifted by the largest so that nothing overflows.
pub(crate) fn log_sum_exp(logs: &[f64]) -> f64 {
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest + logs.iter().map(|l| (l - largest).exp()).sum::<f64>().ln()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    const VARIABLES: usize = 4;

    fn monomials() -> impl Strategy<Value = Monomial> {
        let exponents = prop::collection::vec(-3.0..3.0f64, VARIABLES);
        (1e-3..1e3f64, exponents).prop_map(|(c, exponents)| {
            let powers = exponents.into_iter().enumerate();
            Monomial::new(c, powers.map(|(v, a)| (Variable(v), a))).unwrap()
        })
    }

    fn posynomials() -> impl Strategy<Value = Posynomial> {
        prop::collection::vec(monomials(), 1..6).prop_map(|terms| Posynomial::sum(terms).unwrap())
    }

    fn points() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec((-2.0..2.0f64).prop_map(f64::exp), VARIABLES)
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * (a.abs() + b.abs())
    }

    /// The gradient of the logarithm by the logarithms of the variables.
    fn log_gradient(posynomial: &Posynomial, point: &[f64]) -> Vec<f64> {
        let mut gradient = vec![0.0; point.len()];
        for term in posynomial.terms() {
            let share = term.eval(point) / posynomial.eval(point);
            for &(v, a) in term.exponents() {
                gradient[v.0] += share * a;
            }
        }
        gradient
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: RngSeed::Fixed(1),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn condensation_is_below_everywhere(g in posynomials(), z in points(), y in points()) {
            prop_assert!(g.condense(&z).eval(&y) <= g.eval(&y) * (1.0 + 1e-12));
        }

        #[test]
        fn condensation_meets_value_and_gradient(g in posynomials(), z in points()) {
            let condensed = Posynomial::from(g.condense(&z));
            prop_assert!(close(condensed.eval(&z), g.eval(&z)));
            for (a, b) in log_gradient(&condensed, &z).into_iter().zip(log_gradient(&g, &z)) {
                prop_assert!((a - b).abs() < 1e-9);
            }
        }

        #[test]
        fn arithmetic_is_that_of_the_values(
            a in monomials(), b in monomials(), f in posynomials(), g in posynomials(),
            power in -2.0..2.0f64, y in points(),
        ) {
            let (av, bv, fv, gv) = (a.eval(&y), b.eval(&y), f.eval(&y), g.eval(&y));
            prop_assert!(close((a.clone() * b.clone()).eval(&y), av * bv));
            prop_assert!(close((a.clone() / b.clone()).eval(&y), av / bv));
            prop_assert!(close((a.clone() + b.clone()).eval(&y), av + bv));
            prop_assert!(close(a.clone().powf(power).eval(&y), av.powf(power)));
            prop_assert!(close((f.clone() + g.clone()).eval(&y), fv + gv));
            prop_assert!(close((f.clone() * g).eval(&y), fv * gv));
            prop_assert!(close((f.clone() / a).eval(&y), fv / av));
            prop_assert!(close(f.log_eval(&y), fv.ln()));
        }
    }

    #[test]
    fn like_terms_are_one_term() {
        let x = Monomial::from(Variable(0));
        let twice = x.clone() + x.clone();
        assert_eq!(twice.terms().len(), 1);
        assert!(close(twice.eval(&[5.0]), 10.0));
        assert!((x.clone() / x).exponents().is_empty());
    }

    #[test]
    fn misuse_is_named() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(Monomial::try_from(bad), Err(GpError::CoefficientNotPositive { .. })));
        }
        assert!(matches!(
            Monomial::new(1.0, [(Variable(0), f64::NAN)]),
            Err(GpError::ExponentNotFinite { .. })
        ));
        assert_eq!(Posynomial::sum([]), Err(GpError::EmptySum));
    }
}
