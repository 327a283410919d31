//! KD3A (Feng et al., "KD3A: unsupervised multi-source decentralized domain adaptation via knowledge distillation", ICML 2021): a target and
//! all sources average their models again and again. The target learns what most sources that are sure agree on, and sources with which the
//! others agree weigh more.
//!
//! What is left out: the mixing of samples (mixup) and the alignment of batch statistics, since our networks keep none.

use stlf_data::Class;
use stlf_learn::evaluate::{Predictions, likeliest};
use stlf_planning::error::Error;

use super::{Assignment, Context};

/// ST-LF's roles; a target and all sources that reach it send models to each other.
///
/// # Errors
/// Names a target that no source reaches; or the problem has raw costs and no counts.
pub fn assign(context: &Context<'_>) -> Result<Assignment, Error> {
    super::fedavg::assign(context)
}

/// What teachers agree on about one sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Consensus {
    /// The class that they give it together.
    pub class: Class,
    /// The mean probability that the teachers give this class.
    pub confidence: f64,
    /// How many of them are sure of it; 0 if none is, and the class is then what all say in the mean.
    pub supporters: usize,
}

/// The least probability at which a teacher is sure, in a round: from 0.8 in the first to 0.95 in the last.
pub fn gate(round: usize, rounds: usize) -> f64 {
    let done = if rounds < 2 { 1.0 } else { round as f64 / (rounds - 1) as f64 };
    0.8 + 0.15 * done
}

/// The vote about every sample (the paper's "knowledge vote"): of the teachers that are sure, those that say what most probability says.
pub fn vote(teachers: &[&Predictions], gate: f64) -> Vec<Consensus> {
    let samples = teachers.first().map_or(0, |teacher| teacher.len());
    (0..samples).map(|sample| consensus(teachers, sample, gate)).collect()
}

fn consensus(teachers: &[&Predictions], sample: usize, gate: f64) -> Consensus {
    let of_all: Vec<&[f32]> = teachers.iter().map(|teacher| teacher.of(sample)).collect();
    let is_sure = |of: &&&[f32]| f64::from(likeliest(of).1) >= gate;
    let sure: Vec<&[f32]> = of_all.iter().filter(is_sure).copied().collect();
    let voters = if sure.is_empty() { &of_all } else { &sure };
    let (class, _) = likeliest(&mean(voters));
    if sure.is_empty() {
        let confidence = f64::from(mean(&of_all)[usize::from(class)]);
        return Consensus { class, confidence, supporters: 0 };
    }
    let supporting: Vec<&[f32]> = sure.into_iter().filter(|of| likeliest(of).0 == class).collect();
    let confidence = mean(&supporting).get(usize::from(class)).map_or(0.0, |&p| f64::from(p));
    Consensus { class, confidence, supporters: supporting.len() }
}

fn mean(rows: &[&[f32]]) -> Vec<f32> {
    let classes = rows.first().map_or(0, |row| row.len());
    (0..classes).map(|k| rows.iter().map(|row| row[k]).sum::<f32>() / rows.len() as f32).collect()
}

/// How good a vote is: supporters times confidence, over all samples.
fn quality(votes: &[Consensus]) -> f64 {
    votes.iter().map(|vote| vote.supporters as f64 * vote.confidence).sum()
}

/// The weights of the teachers (the paper's "consensus focus"), which sum to one: each by its samples and by how much worse the vote is
/// without it. Where no teacher is missed, by samples alone.
pub fn focus(teachers: &[&Predictions], samples: &[f64], gate: f64) -> Vec<f64> {
    let together = quality(&vote(teachers, gate));
    let missed = |left_out: usize| {
        let others = teachers.iter().enumerate().filter(|(place, _)| *place != left_out);
        let others: Vec<&Predictions> = others.map(|(_, teacher)| *teacher).collect();
        (together - quality(&vote(&others, gate))).max(0.0)
    };
    let weights: Vec<f64> =
        samples.iter().enumerate().map(|(place, samples)| samples * missed(place)).collect();
    let weights = if weights.iter().sum::<f64>() > 0.0 { weights } else { samples.to_vec() };
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    /// Returns predictions of two classes, from each sample's probability of the second.
    fn teacher(of_second: &[f32]) -> Predictions {
        let rows = of_second.iter().flat_map(|&p| [1.0 - p, p]).collect();
        Predictions::new(rows, 2)
    }

    #[test]
    fn the_sure_outvote_the_unsure_and_the_many_the_few() {
        let (a, b, c) = (teacher(&[0.9, 0.6]), teacher(&[0.1, 0.6]), teacher(&[0.95, 0.3]));
        let votes = vote(&[&a, &b, &c], 0.8);
        assert_eq!((votes[0].class, votes[0].supporters), (1, 2));
        assert!((votes[0].confidence - 0.925).abs() < 1e-6, "without the one that differs");
        assert_eq!(
            (votes[1].class, votes[1].supporters),
            (0, 0),
            "nobody is sure: the mean is 0.5"
        );
        let sure_alone = vote(&[&teacher(&[0.4]), &teacher(&[0.4]), &teacher(&[0.9])], 0.8);
        assert_eq!((sure_alone[0].class, sure_alone[0].supporters), (1, 1));
    }

    #[test]
    fn who_agrees_with_the_others_weighs_more() {
        let right = [0.95f32, 0.05, 0.9, 0.1];
        let wrong: Vec<f32> = right.iter().map(|p| 1.0 - p).collect();
        let (a, b, c, liar) = (teacher(&right), teacher(&right), teacher(&right), teacher(&wrong));
        let weights = focus(&[&a, &b, &c, &liar], &[1.0, 1.0, 2.0, 1.0], 0.8);
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!((weights[2] - 2.0 * weights[0]).abs() < 1e-12, "by samples");
        assert_eq!(weights[3], 0.0, "the vote is no worse without it");
        let unsure = teacher(&[0.5; 4]);
        assert_eq!(focus(&[&unsure, &unsure], &[3.0, 1.0], 0.8), [0.75, 0.25]);
    }

    #[test]
    fn the_gate_rises() {
        for (round, rounds, expected) in [(0, 100, 0.8), (99, 100, 0.95), (0, 1, 0.95)] {
            assert!((gate(round, rounds) - expected).abs() < 1e-12);
        }
    }
}
