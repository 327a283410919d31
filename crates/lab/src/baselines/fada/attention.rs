//! FADA's dynamic attention: a source weighs by how much its update tightens the clusters of the target's features.

/// softmax(gain / temperature) with gain_i = `before` − `after[i]`. A source whose training went astray (not a number)
/// has no gain and no weight; `None` if all did.
pub(super) fn weights(before: f64, after: &[f64], temperature: f64) -> Option<Vec<f64>> {
    let gains: Vec<f64> = after.iter().map(|after| (before - after) / temperature).collect();
    let largest = gains.iter().copied().filter(|g| g.is_finite()).max_by(f64::total_cmp)?;
    let exp = |g: &f64| if g.is_finite() { (g - largest).exp() } else { 0.0 };
    let sum: f64 = gains.iter().map(exp).sum();
    Some(gains.iter().map(|g| exp(g) / sum).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_become_weights() {
        assert_eq!(weights(1.0, &[0.5, 0.5], 0.1), Some(vec![0.5, 0.5]));
        let w = weights(0.9, &[0.5, 0.6, 0.9], 0.1).unwrap();
        assert!((w.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        // A tenth less spread at temperature 0.1 is e times the weight.
        assert!((w[0] / w[1] - std::f64::consts::E).abs() < 1e-9 && w[1] > w[2]);
        assert_eq!(weights(0.9, &[f64::NAN, 0.6], 1.0), Some(vec![0.0, 1.0]));
        assert_eq!(weights(0.9, &[f64::NAN], 1.0), None);
        assert!(weights(0.9, &[0.1, 0.9], 1e-9).is_some_and(|w| w == [1.0, 0.0]));
    }
}
