//! Few labels, well asked: which samples of a target somebody should label.

use stlf_learn::evaluate::Predictions;

use crate::known::Known;

/// The samples whose labels tell most, at most so many: those of which the mixture is least sure between its two likeliest classes, the least
/// sure one first (margin sampling: Scheffer, Decomain and Wrobel, "Active hidden Markov models for information extraction", 2001).
/// What is known is not asked again. `docs/ask.md` compares it with other rules.
pub fn ask(mixture: &Predictions, known: &[Known], count: usize) -> Vec<usize> {
    let mut margins: Vec<(f32, usize)> = (0..mixture.len())
        .filter(|sample| known.iter().all(|(other, _)| other != sample))
        .map(|sample| (margin(mixture.of(sample)), sample))
        .collect();
    margins.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    margins.into_iter().take(count).map(|(_, sample)| sample).collect()
}

/// The probability of the likeliest class less that of the second likeliest.
fn margin(probabilities: &[f32]) -> f32 {
    let (mut first, mut second) = (0.0f32, 0.0f32);
    for &p in probabilities {
        if p > first {
            (first, second) = (p, first);
        } else if p > second {
            second = p;
        }
    }
    first - second
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_sure_are_asked_first_and_what_is_known_is_not_asked() {
        let rows = [[0.9, 0.1, 0.0], [0.4, 0.35, 0.25], [0.1, 0.3, 0.6], [0.0, 0.5, 0.5]];
        let mixture = Predictions::new(rows.concat(), 3);
        assert_eq!(ask(&mixture, &[], 4), [3, 1, 2, 0]);
        assert_eq!(ask(&mixture, &[], 2), [3, 1]);
        assert_eq!(ask(&mixture, &[(3, 1), (2, 2)], 9), [1, 0]);
        assert!(ask(&mixture, &[], 0).is_empty());
    }

    #[test]
    fn a_margin_is_the_difference_of_the_two_largest() {
        for (of, expected) in [
            (vec![0.25, 0.5, 0.25], 0.25),
            (vec![0.5, 0.25, 0.25], 0.25),
            (vec![0.125, 0.25, 0.625], 0.375),
            (vec![1.0], 1.0),
        ] {
            assert_eq!(margin(&of), expected);
        }
    }
}
