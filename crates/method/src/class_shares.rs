//! Classes that are more frequent at one device than at another.
//!
//! A model learns how frequent classes are where it was trained, and expects the same elsewhere. A source takes its own shares out of
//! its model before it sends it ([`balanced`]). A target can moreover estimate its own from its inputs and put them in ([`corrected`]):
//! Saerens, Latinne and Decaestecker, "Adjusting the outputs of a classifier to new a priori probabilities", Neural Computation 14,
//! 2002. No label is needed, nothing is trained, and no device is told another's shares.

use stlf_data::Class;
use stlf_learn::evaluate::Predictions;
use stlf_learn::{Params, Spec};

/// The number of rounds of estimating class proportions and correcting by them; changes are tiny after ten.
const ROUNDS: usize = 30;

/// Laplace's estimate of class proportions from counts: one more of each than was seen, so that nothing counts as impossible.
pub fn shares(counts: &[f64]) -> Vec<f64> {
    let total = counts.iter().sum::<f64>() + counts.len() as f64;
    counts.iter().map(|count| (count + 1.0) / total).collect()
}

/// A model as if the classes among its labels had been equally frequent there: p(y|x) / ρ_y, by the biases of its last layer. Of a class
/// that it never saw a model knows nothing that could be put right.
///
/// # Panics
/// If the parameters or labels are not of this network.
pub fn balanced(spec: &Spec, params: &Params, labels: &[Class]) -> Params {
    assert_eq!(params.len(), spec.parameters(), "parameters of this network");
    let classes = spec.output().len();
    let mut counts = vec![0.0; classes];
    labels.iter().for_each(|&label| counts[usize::from(label)] += 1.0);
    let seen = counts.iter().filter(|count| **count > 0.0).count();
    let equal = labels.len() as f64 / seen.max(1) as f64;
    let mut balanced = params.clone();
    // Every network ends with a layer of one output a class, its biases last.
    let biases = balanced.iter_mut().rev().zip(counts.iter().rev());
    for (bias, count) in biases.filter(|(_, count)| **count > 0.0) {
        *bias -= (count / equal).ln() as f32;
    }
    balanced
}

/// Mixes the predictions of balanced models at a target whose classes need not be equally frequent: its shares are the mean of its corrected
/// predictions, which are corrected by its shares. Nothing without a part of weight above zero.
pub fn corrected(parts: &[(&Predictions, f64)]) -> Option<Predictions> {
    corrected_by(&own_shares(parts)?, parts)
}

/// The shares of classes at a target, as its inputs tell by these predictions. Nothing without a part of weight above zero.
pub fn own_shares(parts: &[(&Predictions, f64)]) -> Option<Vec<f64>> {
    let mut own = shares(&Predictions::mix(parts.iter().copied())?.expected_counts());
    for _ in 1..ROUNDS {
        own = shares(&corrected_by(&own, parts)?.expected_counts());
    }
    Some(own)
}

/// Mixes the predictions of balanced models where classes have these shares. Nothing without a part of weight above zero.
pub fn corrected_by(shares: &[f64], parts: &[(&Predictions, f64)]) -> Option<Predictions> {
    let reweighted: Vec<(Predictions, f64)> =
        parts.iter().map(|(part, weight)| (part.reweighted(shares), *weight)).collect();
    Predictions::mix(reweighted.iter().map(|(part, weight)| (part, *weight)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use stlf_data::Shape;
    use stlf_learn::evaluate::predict;
    use stlf_learn::spec::Layer;

    use super::*;

    #[test]
    fn a_balanced_model_predicts_by_bayes_rule() {
        let spec = Spec::mlp(Shape::grey(2), 3).unwrap();
        let params = Params::initial(&spec, 5);
        let inputs = [0.1, -0.4, 0.9, 0.3, -1.0, 0.2, 0.0, 0.7];
        let plain = predict(&spec, &params, &inputs);
        let cases: [(&[Class], [f64; 3]); 3] = [
            (&[0, 0, 0, 2, 1, 1], [3.0 / 6.0, 2.0 / 6.0, 1.0 / 6.0]),
            // Times 2 for two classes; the third stays what it was.
            (&[0, 0, 1], [4.0 / 3.0, 2.0 / 3.0, 1.0]),
            (&[0, 1, 2], [1.0, 1.0, 1.0]),
        ];
        for (labels, shares) in cases {
            let expected = plain.reweighted(&shares.map(|share| 1.0 / share));
            let got = predict(&spec, &balanced(&spec, &params, labels), &inputs);
            for (got, expected) in got.probabilities().zip(expected.probabilities()) {
                let near = |(p, q): (&f32, &f32)| (p - q).abs() < 1e-6;
                assert!(got.iter().zip(expected).all(near), "{got:?} {expected:?}");
            }
        }
        assert_eq!(balanced(&spec, &params, &[0, 1, 2]), params);
        assert_eq!(balanced(&spec, &params, &[]), params);
    }

    /// The posterior of a two-class Gaussian problem is known for any shares: the estimate must come near the
    /// predictions of someone who knows the target's.
    #[test]
    fn the_target_s_shares_are_found_from_its_inputs_alone() {
        // One input x, class 1 at +1 and class 0 at −1, unit variance: the log odds of balanced classes are 2x.
        let spec = Spec::new(
            Shape { channels: 1, height: 1, width: 1 },
            vec![Layer::Linear { outputs: 2 }],
        )
        .unwrap();
        let balanced_model = Params::from(vec![0.0, 2.0, 0.0, 0.0]);
        // A target with nine of ten samples of class 1, at quantiles of its two normal densities.
        let quantile = |k: usize, n: usize| {
            let u = (k as f64 + 0.5) / n as f64;
            // Tukey's lambda, near enough to the normal quantile.
            ((u.powf(0.135) - (1.0 - u).powf(0.135)) / 0.1975) as f32
        };
        let inputs: Vec<f32> = (0..900)
            .map(|k| 1.0 + quantile(k, 900))
            .chain((0..100).map(|k| quantile(k, 100) - 1.0))
            .collect();
        let truth: Vec<Class> = (0..1000).map(|k| Class::from(k < 900)).collect();
        let uncorrected = predict(&spec, &balanced_model, &inputs);
        let known = uncorrected.reweighted(&[0.1, 0.9]);
        let estimated = corrected(&[(&uncorrected, 1.0)]).unwrap();
        let found = shares(&estimated.expected_counts());
        assert!((found[1] - 0.9).abs() < 0.02, "{found:?}");
        let errors = [&uncorrected, &known, &estimated].map(|p| p.errors(&truth));
        assert!(errors[1] * 2 < errors[0] && errors[2] <= errors[1] + 5, "{errors:?}");
    }

    #[test]
    fn nothing_comes_of_nothing() {
        assert_eq!(corrected(&[]), None);
        assert_eq!(shares(&[0.0, 0.0]), [0.5, 0.5]);
    }
}
