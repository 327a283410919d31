//! From how far two means lie apart to d̂: the error of the best linear classifier of normal features.

pub(super) use stlf_planning::separation::from_separation;
use stlf_planning::separation::normal_quantile;

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
