//! Mutual information of two halves of a feature, estimated by a network (Belghazi et al., "MINE", 2018).

/// −I by Donsker and Varadhan, I ≥ E_joint[T] − ln E_marginals[exp T], and its gradient by T.
///
/// The first half of `outputs` is T of pairs as they came, the second T of pairs shuffled apart. The network
/// that makes T descends this to find all the information there is; what makes the pairs ascends it.
pub(super) fn negative_information(outputs: &[f32], gradients: &mut [f32]) -> f32 {
    let pairs = outputs.len() / 2;
    let (joint, marginal) = outputs.split_at(pairs);
    let share = 1.0 / pairs as f32;
    let largest = marginal.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = marginal.iter().map(|t| (t - largest).exp()).sum();
    let (to_joint, to_marginal) = gradients.split_at_mut(pairs);
    to_joint.fill(-share);
    for (gradient, t) in to_marginal.iter_mut().zip(marginal) {
        *gradient = (t - largest).exp() / sum;
    }
    (sum * share).ln() + largest - joint.iter().sum::<f32>() * share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gradient_is_the_slope() {
        let outputs = [0.3, -1.0, 0.7, 1.1, -0.2, 0.4];
        let mut gradients = [0.0; 6];
        negative_information(&outputs, &mut gradients);
        for i in 0..6 {
            let at = |step: f32| {
                let mut moved = outputs;
                moved[i] += step;
                negative_information(&moved, &mut [0.0; 6])
            };
            let slope = (at(1e-2) - at(-1e-2)) / 2e-2;
            assert!((slope - gradients[i]).abs() < 1e-4, "{slope} {}", gradients[i]);
        }
    }

    #[test]
    fn a_constant_tells_nothing_and_large_numbers_overflow_nothing() {
        let mut gradients = [0.0; 4];
        assert!(negative_information(&[2.0; 4], &mut gradients).abs() < 1e-6);
        assert_eq!(negative_information(&[300.0, 300.0, 200.0, 200.0], &mut gradients), -100.0);
        assert_eq!(gradients, [-0.5, -0.5, 0.5, 0.5]);
    }
}
