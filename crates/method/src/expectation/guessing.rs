//! Whether the model that a source trained alone is of use on its own labels, or no better than guessing.

use std::fmt;

use stlf_data::Class;
use stlf_planning::number_format::percent;

use super::LEAST_LABELS;
use crate::local_training::OwnError;

/// A model is of use if it is right on at least this part of what guessing gets wrong.
const OF_USE: f64 = 0.25;

/// The probability at which what was counted is taken for no chance, on either side.
const CHANCE: f64 = 0.05;

/// A model that is no better than guessing on the labels of its own device. To guess is to give every sample the class that most of the
/// device's labels have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Guessing {
    /// The number of labels that the model was tried on.
    pub labels: usize,
    /// The number of these that it gave their class.
    pub right: usize,
    /// The share of the device's labels that have its most common class.
    pub most_common: f64,
}

impl Guessing {
    /// What a device with these labels is told of the model that it trained on them; nothing if the model is of use, or if there are too few labels
    /// to say.
    pub fn of_own(error: OwnError, labels: &[Class]) -> Option<Guessing> {
        let right = error.measured.saturating_sub(error.errors);
        Guessing::of(right, error.measured, most_common(labels)?)
    }

    /// The same of a model that is right on so many of so many labels. It is told if both hold, by the exact binomial test, so that the ends of the
    /// one-sided intervals of Clopper and Pearson ("The use of confidence or fiducial limits", 1934) lie there:
    ///
    /// - guessing would be right as often, or more often, with a probability above 5 %;
    /// - a model that is right on a quarter of what guessing gets wrong would be right as seldom with a probability of at most 5 %. Few labels
    ///   cannot show that, and fewer than ten are not asked.
    ///
    /// Where all labels have one class, nobody can be better than guessing, and nothing is told.
    pub fn of(right: usize, labels: usize, most_common: f64) -> Option<Guessing> {
        if most_common >= 1.0 || (labels as u64) < LEAST_LABELS {
            return None;
        }
        let of_use = most_common + OF_USE * (1.0 - most_common);
        let is_guessing = at_least(right, labels, most_common) > CHANCE;
        let is_of_no_use = at_most(right, labels, of_use) <= CHANCE;
        (is_guessing && is_of_no_use).then_some(Guessing { labels, right, most_common })
    }
}

impl fmt::Display for Guessing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Guessing { labels, right, most_common } = self;
        write!(
            f,
            "its own model is no better than guessing ({right} of {labels} labels right; its most common class alone has {}): look at its labels and features",
            percent(*most_common)
        )
    }
}

/// The share of labels that have the most common class; nothing without any.
pub fn most_common(labels: &[Class]) -> Option<f64> {
    let classes = labels.iter().max().map_or(0, |&last| usize::from(last) + 1);
    let mut counts = vec![0usize; classes];
    labels.iter().for_each(|&class| counts[usize::from(class)] += 1);
    counts.into_iter().max().map(|most| most as f64 / labels.len() as f64)
}

/// The probability that at most so many of so many trials succeed, each with this probability above 0 and below 1.
fn at_most(successes: usize, trials: usize, probability: f64) -> f64 {
    of_each(trials, probability).take(successes + 1).sum()
}

/// The probability that at least so many do.
fn at_least(successes: usize, trials: usize, probability: f64) -> f64 {
    of_each(trials, probability).skip(successes).sum()
}

/// The probabilities of 0, 1, 2 and so on successes. Their logarithms are added up, so that no power of a small number is lost.
fn of_each(trials: usize, probability: f64) -> impl Iterator<Item = f64> {
    let odds = (probability / (1.0 - probability)).ln();
    let mut ln = trials as f64 * (-probability).ln_1p();
    (0..=trials).map(move |count| {
        let now = ln;
        ln += ((trials - count) as f64 / (count + 1) as f64).ln() + odds;
        now.exp()
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    /// The probability of at most so many successes, by Pascal's triangle.
    fn by_pascal(successes: usize, trials: usize, p: f64) -> f64 {
        let mut row = vec![1.0];
        for _ in 0..trials {
            let below = row.iter().map(|ways| ways * (1.0 - p)).chain([0.0]);
            let above = [0.0].into_iter().chain(row.iter().map(|ways| ways * p));
            row = below.zip(above).map(|(a, b)| a + b).collect();
        }
        row[..=successes].iter().sum()
    }

    /// The end of an interval: where a probability that rises with p reaches 5 %.
    fn end(rising: impl Fn(f64) -> f64) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if rising(middle) < CHANCE { low = middle } else { high = middle }
        }
        0.5 * (low + high)
    }

    #[test]
    fn tails_are_those_of_the_binomial_distribution() {
        for trials in [1, 2, 7, 40] {
            for p in [0.01, 0.1, 0.5, 0.9] {
                for successes in 0..=trials {
                    let exact = by_pascal(successes, trials, p);
                    assert!((at_most(successes, trials, p) - exact).abs() < 1e-12);
                    let rest = at_least(successes + 1, trials, p);
                    assert!((rest - (1.0 - exact)).abs() < 1e-12);
                }
            }
        }
        // Half of very many, by symmetry.
        let (half, all) = (at_most(50_000, 100_001, 0.5), at_most(100_001, 100_001, 0.5));
        assert!((half - 0.5).abs() < 1e-9 && (all - 1.0).abs() < 1e-9, "{half} {all}");
    }

    #[test]
    fn who_is_told_is_on_the_wrong_side_of_both_intervals_of_clopper_and_pearson() {
        let mut told = 0;
        for labels in [1, 5, 20, 60] {
            for right in 0..=labels {
                // The true share of right answers is below `high`, or above `low`, with a probability of 95 %.
                let high = 1.0 - end(|q| by_pascal(right, labels, 1.0 - q));
                let low = match right {
                    0 => 0.0,
                    _ => end(|p| 1.0 - by_pascal(right - 1, labels, p)),
                };
                for most_common in [0.1, 0.35, 0.5, 0.9] {
                    let of_use = most_common + 0.25 * (1.0 - most_common);
                    let is_told = high <= of_use && low < most_common && labels >= 10;
                    let found = Guessing::of(right, labels, most_common);
                    assert_eq!(found.is_some(), is_told, "{right} of {labels}, {most_common}");
                    told += usize::from(is_told);
                }
            }
        }
        assert!(told > 20, "{told}");
    }

    #[test]
    fn few_labels_accuse_nobody_and_a_model_that_always_says_the_same_is_found_with_more() {
        // Half of the labels are of one class, and the model says that class, or draws lots.
        let needed = |share: f64| {
            (1..10_000)
                .find(|&n| Guessing::of((share * n as f64).floor() as usize, n, share).is_some())
        };
        for (labels, share) in (0..10).flat_map(|n| [0.1, 0.5, 0.97].map(|share| (n, share))) {
            assert!((0..=labels).all(|right| Guessing::of(right, labels, share).is_none()));
        }
        assert!((35..=50).contains(&needed(0.5).unwrap()), "{:?}", needed(0.5));
        assert!((8..=25).contains(&needed(0.1).unwrap()), "{:?}", needed(0.1));
        // The rarer all others are, the more it takes.
        assert!(needed(0.97).unwrap() > 500, "{:?}", needed(0.97));
        // Little better than guessing is better, if there are labels enough to tell.
        assert!(Guessing::of(52, 100, 0.5).is_some() && Guessing::of(560, 1_000, 0.5).is_none());
        // One class.
        assert_eq!(Guessing::of(70, 100, 1.0), None);
        // Far worse than guessing.
        assert!(Guessing::of(3, 100, 0.5).is_some());
    }

    #[test]
    fn guessing_is_to_say_the_most_common_class() {
        assert_eq!(most_common(&[]), None);
        assert_eq!(most_common(&[2, 2, 0, 5, 2]), Some(0.6));
        let labels: Vec<Class> = (0..300).map(|k| k % 3).collect();
        let error = |errors| OwnError { measured: 60, errors, source_error: 0.0 };
        assert_eq!(Guessing::of_own(error(6), &labels), None);
        let told = Guessing::of_own(error(39), &labels).unwrap();
        assert_eq!(
            told.to_string(),
            "its own model is no better than guessing (21 of 60 labels right; its most common class alone has 33.3 %): look at its labels and features"
        );
    }
}
