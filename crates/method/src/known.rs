//! What a target makes of the few labels that it knows: how much each model that it received counts.

use stlf_data::Class;
use stlf_learn::evaluate::Predictions;

/// A sample, by its place among the target's, and its label.
pub type Known = (usize, Class);

/// The planned weights count as much as so many labels.
const PRIOR: f64 = 10.0;

/// The number of rounds. A label's probability is concave in the weights, so that the rounds come ever nearer to the best ones.
const ROUNDS: usize = 200;

/// The shares of models in a mixture, after labels have told how good each of them is: those of the largest posterior probability, where the
/// prior is a Dirichlet distribution around the planned shares α, and a label has the probability that the mixture gives it. They come from
/// expectation and maximisation (Dempster, Laird and Rubin, 1977): w_i ← (κ α_i + Σ_k w_i p_i(y_k) / Σ_l w_l p_l(y_k)) / (κ + K), for K labels.
/// `told[k][i]` is p_i(y_k), the probability that model i gives label k.
pub fn shares(planned: &[f64], told: &[Vec<f64>]) -> Vec<f64> {
    let total: f64 = planned.iter().sum();
    let planned: Vec<f64> = planned.iter().map(|weight| weight / total).collect();
    let mut now = planned.clone();
    for _ in 0..ROUNDS {
        let mut next: Vec<f64> = planned.iter().map(|share| PRIOR * share).collect();
        for label in told {
            let sum: f64 = label.iter().zip(&now).map(|(p, share)| p * share).sum();
            // A label that every model rules out tells nothing about which is best.
            if sum > 0.0 {
                let parts = label.iter().zip(&now).map(|(p, share)| p * share / sum);
                next.iter_mut().zip(parts).for_each(|(next, part)| *next += part);
            }
        }
        let sum: f64 = next.iter().sum();
        now = next.into_iter().map(|weight| weight / sum).collect();
    }
    now
}

/// How many of these labels are the likeliest class.
pub fn right(predictions: &Predictions, known: &[Known]) -> usize {
    let classes: Vec<Class> = predictions.classes().collect();
    known.iter().filter(|(sample, class)| classes[*sample] == *class).count()
}

/// Returns the accuracy if every sample counts by its weight.
pub fn weighted_accuracy(predictions: &Predictions, truth: &[Class], weights: &[f64]) -> f64 {
    let right = predictions.classes().zip(truth).map(|(class, label)| class == *label);
    let sum: f64 = right.zip(weights).filter(|(right, _)| *right).map(|(_, weight)| weight).sum();
    sum / weights.iter().sum::<f64>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The logarithm of the posterior, but for a constant.
    fn posterior(planned: &[f64], told: &[Vec<f64>], shares: &[f64]) -> f64 {
        let prior: f64 = planned.iter().zip(shares).map(|(a, w)| PRIOR * a * w.ln()).sum();
        let label = |told: &Vec<f64>| told.iter().zip(shares).map(|(p, w)| p * w).sum::<f64>().ln();
        prior + told.iter().map(label).sum::<f64>()
    }

    #[test]
    fn without_labels_shares_are_as_planned() {
        assert_eq!(shares(&[3.0, 1.0], &[]), [0.75, 0.25]);
        assert_eq!(shares(&[1.0], &[vec![0.1], vec![0.0]]), [1.0]);
        assert_eq!(shares(&[1.0, 1.0], &[vec![0.0, 0.0]]), [0.5, 0.5]);
    }

    #[test]
    fn who_gives_labels_no_probability_ends_with_the_prior_alone() {
        // κ α_1 of κ + K, and the rest.
        let told = vec![vec![0.0, 0.9]; 30];
        let [liar, honest] = shares(&[0.5, 0.5], &told)[..] else { unreachable!() };
        assert!((liar - 5.0 / 40.0).abs() < 1e-12 && (honest - 35.0 / 40.0).abs() < 1e-12);
    }

    #[test]
    fn an_accuracy_is_weighted() {
        let predictions = Predictions::new(vec![0.9, 0.1, 0.2, 0.8, 0.6, 0.4], 2);
        assert_eq!(weighted_accuracy(&predictions, &[0, 1, 1], &[1.0; 3]), 2.0 / 3.0);
        assert_eq!(weighted_accuracy(&predictions, &[0, 1, 1], &[1.0, 0.0, 3.0]), 0.25);
    }

    proptest! {
        #[test]
        fn no_other_shares_are_more_probable(
            planned in proptest::collection::vec(0.05f64..1.0, 3),
            told in proptest::collection::vec(proptest::collection::vec(0.01f64..1.0, 3), 0..12),
        ) {
            let total: f64 = planned.iter().sum();
            let planned: Vec<f64> = planned.iter().map(|w| w / total).collect();
            let found = posterior(&planned, &told, &shares(&planned, &told));
            // All shares in steps of a fiftieth.
            for a in 1..50 {
                for b in 1..50 - a {
                    let other = [a, b, 50 - a - b].map(|k| f64::from(k) / 50.0);
                    prop_assert!(posterior(&planned, &told, &other) <= found + 1e-9);
                }
            }
        }
    }
}
