//! How much a device tells by its answers to models that others choose: whether it believes a model, and how the model did on its labels.
//!
//! Whoever chooses a model chooses what the answer is about, and chooses the next one by it. Noise on single answers, or coarse ones, do not end that: a row
//! of twelve columns follows from 139 answers of yes or no. What ends it is that there are few (Dwork, Feldman, Hardt, Pitassi, Reingold and
//! Roth 2015, "Generalization in Adaptive Data Analysis and Holdout Reuse"): whoever sees one of at most 2^B sequences of answers learns at most B bits.
//!
//! Most answers are those that were to be expected, and tell next to nothing. So an answer costs what a prefix code spends on it: the expected one a small
//! part of a bit, any other one many bits. The shares 2^−bits of all sequences add up to 1 at most, whatever is asked next (Kraft 1949), so that at most 2^B of
//! them cost B bits or fewer.

/// The share of the code that is for answers other than the expected one.
const OTHERS: f64 = 1.0 / 256.0;

/// Answers of one kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kind {
    /// How many there can be besides the expected one.
    others: f64,
    /// The most bits that all answers to one peer may cost while a device's data are nearly the same.
    pub most_to_one_peer: f64,
    /// The most bits that all answers to all peers may cost, about any sample.
    pub most: f64,
}

/// Whether a device believes a model; it is expected to. Two models of a peer may be refused, and four of all peers; beside these a peer may have some
/// 700 other models tried.
pub const VERDICTS: Kind = Kind { others: 1.0, most_to_one_peer: 20.0, most: 36.0 };

/// How a model did at a device on its way ([`crate::expectation::Trial`]); it is expected to do as one did before. Rounded as it is told, there are at most 183 shares of
/// errors and 57 of doubt. A ring takes three that are new; a peer may cause four, and all peers six.
pub const TRIALS: Kind = Kind { others: (1 << 14) as f64, most_to_one_peer: 92.0, most: 136.0 };

impl Kind {
    /// The bits of the answer that is expected: −log₂(1 − q), with the share q of the code that is for others.
    pub fn expected(&self) -> f64 {
        -(1.0 - OTHERS).log2()
    }

    /// The bits of any other answer: log₂(k/q), with the number k of other answers.
    pub fn other(&self) -> f64 {
        (self.others / OTHERS).log2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_sequences_of_answers_have_at_most_the_whole_code() {
        for kind in [VERDICTS, TRIALS] {
            let share = 0.5_f64.powf(kind.expected()) + kind.others * 0.5_f64.powf(kind.other());
            assert!((share - 1.0).abs() < 1e-12, "{share}");
        }
    }

    /// Of 200 models in a row, how often can at most B bits be told? Counted, not by the inequality.
    #[test]
    fn few_sequences_cost_little() {
        let (expected, other) = (VERDICTS.expected(), VERDICTS.other());
        let (mut sequences, mut ways) = (0.0, 1.0);
        for refused in 0..=200_u32 {
            let cost = f64::from(200 - refused) * expected + f64::from(refused) * other;
            if cost <= VERDICTS.most {
                sequences += ways;
            }
            ways *= f64::from(200 - refused) / f64::from(refused + 1);
        }
        assert!(sequences > 1e6 && sequences.log2() <= VERDICTS.most, "{}", sequences.log2());
    }

    #[test]
    fn the_numbers_of_docs_privacy_follow() {
        let Kind { most_to_one_peer, most, .. } = VERDICTS;
        assert_eq!(VERDICTS.other(), 8.0);
        assert_eq!(TRIALS.other(), 22.0);
        assert_eq!([most_to_one_peer, most].map(|bits| (bits / 8.0) as u32), [2, 4]);
        let beside =
            |most: f64, refused: f64| ((most - 8.0 * refused) / VERDICTS.expected()) as u32;
        assert_eq!(beside(most_to_one_peer - 8.0, 0.0), 2_125);
        assert!(beside(most_to_one_peer, 2.0) > 700 && beside(most, 4.0) > 700);
    }
}
