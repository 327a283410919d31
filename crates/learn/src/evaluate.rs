//! What a model is worth on given data: predictions, accuracy, confusion, the error that enters the bound.

use stlf_data::Class;

use crate::loss::softmax;
use crate::network::Network;
use crate::spec::Spec;
use crate::train::Examples;

/// The probabilities of all classes for many inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct Predictions {
    classes: usize,
    probabilities: Vec<f32>,
}

/// How many samples go through the network together: enough to fill it, few enough to stay in the cache.
const BATCH: usize = 32;
/// The number of samples from which on it pays to prepare a network.
const MANY: usize = 8;

/// The model's predictions for inputs that lie one after the other.
pub fn predict(spec: &Spec, params: &[f32], inputs: &[f32]) -> Predictions {
    let mut network = Network::new(spec, BATCH);
    if inputs.len() >= MANY * spec.input().len() {
        network.hold(params);
    }
    let classes = spec.output().len();
    let mut probabilities = Vec::with_capacity(inputs.len() / spec.input().len() * classes);
    for inputs in inputs.chunks(BATCH * spec.input().len()) {
        probabilities.extend_from_slice(network.evaluate(params, inputs));
    }
    probabilities.chunks_exact_mut(classes).for_each(softmax);
    Predictions { classes, probabilities }
}

/// The likeliest class and its probability; the first, if several are.
pub fn likeliest(probabilities: &[f32]) -> (Class, f32) {
    let mut best = 0;
    for (class, p) in probabilities.iter().enumerate() {
        if *p > probabilities[best] {
            best = class;
        }
    }
    (best as Class, probabilities[best])
}

impl Predictions {
    /// The probabilities of so many classes, input by input.
    ///
    /// # Panics
    /// If the last input has fewer.
    pub fn new(probabilities: Vec<f32>, classes: usize) -> Predictions {
        assert!(probabilities.len().is_multiple_of(classes), "an input lacks classes");
        Predictions { classes, probabilities }
    }

    /// Returns the number of inputs that were predicted.
    pub fn len(&self) -> usize {
        self.probabilities.len() / self.classes
    }

    /// Returns whether there is no input.
    pub fn is_empty(&self) -> bool {
        self.probabilities.is_empty()
    }

    /// The probabilities of all classes, input by input.
    pub fn probabilities(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.probabilities.chunks_exact(self.classes)
    }

    /// Returns the probabilities of all inputs in one slice, classes fastest.
    pub fn as_slice(&self) -> &[f32] {
        &self.probabilities
    }

    /// The probabilities of all classes for one input.
    ///
    /// # Panics
    /// If there is no such input.
    pub fn of(&self, input: usize) -> &[f32] {
        &self.probabilities[input * self.classes..(input + 1) * self.classes]
    }

    /// The same for some inputs, by their numbers, in this order.
    ///
    /// # Panics
    /// If there is no such input.
    pub fn of_all(&self, inputs: &[usize]) -> Predictions {
        let chosen = inputs.iter().flat_map(|&input| self.of(input)).copied();
        Predictions::new(chosen.collect(), self.classes)
    }

    /// The likeliest class of each input; the first, if several are.
    pub fn classes(&self) -> impl ExactSizeIterator<Item = Class> + '_ {
        self.probabilities().map(|probabilities| likeliest(probabilities).0)
    }

    /// How many inputs are given another class than their label.
    pub fn errors(&self, labels: &[Class]) -> usize {
        assert_eq!(labels.len(), self.len(), "a label for every prediction");
        self.classes().zip(labels).filter(|(class, label)| class != *label).count()
    }

    /// Returns the fraction of inputs that are classified correctly; NaN if there are no inputs.
    pub fn accuracy(&self, labels: &[Class]) -> f64 {
        1.0 - self.errors(labels) as f64 / labels.len() as f64
    }

    /// `confusion[label][class]`: how many inputs with this label were given this class.
    pub fn confusion(&self, labels: &[Class]) -> Vec<Vec<usize>> {
        assert_eq!(labels.len(), self.len(), "a label for every prediction");
        let mut counts = vec![vec![0; self.classes]; self.classes];
        for (class, &label) in self.classes().zip(labels) {
            counts[label as usize][class as usize] += 1;
        }
        counts
    }

    /// Every class's probability times its factor, and again a distribution. An input of which nothing is left keeps what it had.
    pub fn reweighted(&self, factors: &[f64]) -> Predictions {
        assert_eq!(factors.len(), self.classes, "a factor for every class");
        let mut probabilities = self.probabilities.clone();
        for row in probabilities.chunks_exact_mut(self.classes) {
            let products = row.iter().zip(factors).map(|(&p, factor)| f64::from(p) * factor);
            let total: f64 = products.sum();
            if total > 0.0 && total.is_finite() {
                for (p, factor) in row.iter_mut().zip(factors) {
                    *p = (f64::from(*p) * factor / total) as f32;
                }
            }
        }
        Predictions { classes: self.classes, probabilities }
    }

    /// How many inputs each class is expected to have: the sum of its probabilities.
    pub fn expected_counts(&self) -> Vec<f64> {
        let mut counts = vec![0.0; self.classes];
        for row in self.probabilities() {
            counts.iter_mut().zip(row).for_each(|(count, &p)| *count += f64::from(p));
        }
        counts
    }

    /// The predictions for the inputs of several parts, part after part; nothing of no part.
    pub fn joined(parts: impl IntoIterator<Item = Predictions>) -> Option<Predictions> {
        parts.into_iter().reduce(|mut all, part| {
            assert_eq!(all.classes, part.classes, "predictions of the same classes");
            all.probabilities.extend_from_slice(&part.probabilities);
            all
        })
    }

    /// Σ w·p / Σ w of several models' predictions for the same inputs: h_j = Σ α_ij h_i in the space of
    /// hypotheses.
    pub fn mix<'a>(parts: impl IntoIterator<Item = (&'a Predictions, f64)>) -> Option<Predictions> {
        let mut mixed: Option<(usize, Vec<f64>)> = None;
        let mut total = 0.0;
        for (part, weight) in parts {
            let (classes, sums) =
                mixed.get_or_insert_with(|| (part.classes, vec![0.0; part.probabilities.len()]));
            assert_eq!(*classes, part.classes, "predictions of the same classes");
            assert_eq!(sums.len(), part.probabilities.len(), "predictions for the same inputs");
            let products = sums.iter_mut().zip(&part.probabilities);
            products.for_each(|(sum, &p)| *sum += weight * f64::from(p));
            total += weight;
        }
        let (classes, sums) = mixed.filter(|_| total > 0.0)?;
        let probabilities = sums.iter().map(|sum| (sum / total) as f32).collect();
        Some(Predictions { classes, probabilities })
    }
}

/// ε̂, the error of a device's model on its own data: errors on labels, and every sample without a
/// label counted as `unlabeled_as` (1 in the paper, ½ for a guess between two).
///
/// `measured` are the examples on which the errors were counted, a part or all of the `labeled` ones.
pub fn source_error(
    errors: usize,
    measured: usize,
    labeled: usize,
    unlabeled: usize,
    unlabeled_as: f64,
) -> f64 {
    let rate = if measured == 0 { 0.0 } else { errors as f64 / measured as f64 };
    source_error_of_rate(rate, labeled, unlabeled, unlabeled_as)
}

/// Returns the same from the fraction of labels on which the model erred.
pub fn source_error_of_rate(rate: f64, labeled: usize, unlabeled: usize, unlabeled_as: f64) -> f64 {
    let samples = (labeled + unlabeled) as f64;
    if samples == 0.0 {
        return unlabeled_as;
    }
    (rate * labeled as f64 + unlabeled_as * unlabeled as f64) / samples
}

/// Returns the accuracy of a model on examples, 0 to 1.
pub fn accuracy(spec: &Spec, params: &[f32], examples: Examples<'_>) -> f64 {
    predict(spec, params, examples.inputs).accuracy(examples.labels)
}

#[cfg(test)]
mod tests {
    use stlf_data::Shape;

    use super::*;

    fn predictions(rows: &[[f32; 3]]) -> Predictions {
        Predictions { classes: 3, probabilities: rows.concat() }
    }

    #[test]
    fn counts_agree_with_each_other() {
        let p = predictions(&[[0.5, 0.5, 0.0], [0.1, 0.2, 0.7], [0.2, 0.6, 0.2], [0.0, 0.0, 1.0]]);
        let labels = [0, 2, 2, 1];
        assert_eq!(p.classes().collect::<Vec<_>>(), [0, 2, 1, 2]);
        assert_eq!((p.errors(&labels), p.accuracy(&labels)), (2, 0.5));
        let confusion = p.confusion(&labels);
        assert_eq!(confusion, [[1, 0, 0], [0, 0, 1], [0, 1, 1]]);
        let wrong =
            (0..3).map(|i| (0..3).filter(|j| *j != i).map(|j| confusion[i][j]).sum::<usize>());
        assert_eq!(wrong.sum::<usize>(), p.errors(&labels));
    }

    #[test]
    fn mixtures_weigh_probabilities() {
        let (a, b) = (predictions(&[[1.0, 0.0, 0.0]]), predictions(&[[0.0, 0.5, 0.5]]));
        let mixed = Predictions::mix([(&a, 1.0), (&b, 3.0)]);
        assert_eq!(mixed, Some(predictions(&[[0.25, 0.375, 0.375]])));
        assert_eq!(Predictions::mix([(&a, 0.0)]), None);
        assert_eq!(Predictions::mix([]), None);
        let both = predictions(&[[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]);
        assert_eq!((Predictions::joined([a, b]), Predictions::joined([])), (Some(both), None));
    }

    /// What a mixture says of a sample must not depend on what else it is asked.
    #[test]
    fn what_comes_of_an_input_does_not_depend_on_the_others() -> Result<(), crate::Error> {
        let pictures = [28, 52].map(|side| Spec::cnn(Shape::grey(side), 3));
        for spec in pictures.into_iter().chain([Spec::mlp(Shape::grey(5), 3)]) {
            let spec = spec?;
            let (params, numbers) = (crate::Params::initial(&spec, 4), spec.input().len());
            let number = |k: usize| ((k * 7919) % 2003) as f32 / 1000.0 - 1.0;
            let inputs: Vec<f32> = (0..75 * numbers).map(number).collect();
            let all = predict(&spec, &params, &inputs);
            for from in [0, 1, 31, 32, 70] {
                let rest = predict(&spec, &params, &inputs[from * numbers..]);
                assert!(rest.probabilities().eq(all.probabilities().skip(from)), "{from}");
            }
        }
        Ok(())
    }

    #[test]
    fn factors_reweight_classes_by_bayes_rule() {
        let two = predictions(&[[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]]);
        let reweighted = two.reweighted(&[1.0, 2.0, 0.0]);
        assert_eq!(reweighted, predictions(&[[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]));
        assert_eq!(two.expected_counts(), [0.5, 1.25, 0.25]);
        // Nothing is left of the second input.
        assert_eq!(
            two.reweighted(&[1.0, 0.0, 0.0]),
            predictions(&[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
        );
    }

    #[test]
    fn samples_without_labels_count_as_agreed() {
        assert_eq!(source_error(10, 100, 100, 0, 1.0), 0.1);
        assert_eq!(source_error(10, 100, 100, 100, 1.0), 0.55);
        assert_eq!(source_error(10, 100, 100, 100, 0.5), 0.3);
        // A fifth of the labels held out to measure on: their rate stands for all.
        assert!((source_error(4, 20, 100, 100, 1.0) - 0.6).abs() < 1e-12);
        assert_eq!(source_error(0, 0, 0, 50, 1.0), 1.0);
    }
}
