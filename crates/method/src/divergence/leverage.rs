//! How much several publications together tell about one sample.
//!
//! A mean over n samples, with n known, is their sum. From the sums over the sets D₁ … D_k anyone computes every combination Σ w_t·(sum over D_t) = Σ c_x·φ(x),
//! such as the difference of two, and nothing else of this kind. The leverage of a sample is the largest share c_x²/Σ c² that it has in any of
//! them: 1/n for one publication of n samples, 1 where a combination leaves it alone. So behind every combination stand at least as many
//! samples as the inverse of the largest leverage says.
//!
//! A sample that is there again counts for less than one, so that Σ c² has its share of c² alone. And where one sample is there often, what a publication adds to those
//! before is mainly this sample: [`different_behind_last`] counts by how many different ones it is.

use std::collections::BTreeMap;

/// Samples that were in the same publications and count alike.
#[derive(Debug, Clone, PartialEq)]
pub struct Alike {
    /// The number of them.
    pub samples: usize,
    /// What each counts: 1, or less if it repeats another.
    pub counts: f64,
    /// The publications.
    pub inside: Vec<usize>,
}

/// Different samples that were in each publication equally often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsOften {
    /// The number of them.
    pub samples: usize,
    /// The publications, with how often each sample was in them.
    pub times: BTreeMap<usize, usize>,
}

/// What is left of a set that others explain, as a share of it, is rounding below this.
const ROUNDING: f64 = 1e-9;

/// The leverage of a sample of each group, in these publications together. All are means of the same features.
pub fn leverages(groups: &[Alike], publications: &[usize]) -> Vec<f64> {
    let counts: Vec<f64> = groups.iter().map(|g| g.samples as f64 * g.counts).collect();
    let is_inside = |publication: &usize| {
        let inside = groups.iter().map(|group| group.inside.contains(publication));
        inside.map(|is_inside| f64::from(u8::from(is_inside))).collect()
    };
    // A sample's share of a combination is largest in its own projection.
    let basis: Vec<Vec<f64>> =
        orthonormal(&counts, publications.iter().map(is_inside)).into_iter().flatten().collect();
    (0..groups.len()).map(|g| basis.iter().map(|row| row[g] * row[g]).sum()).collect()
}

/// By how many different samples the last of these publications differs from what those before it tell: (Σ|r|)²/Σ r² of its rest r, which is their number if
/// none is there more often than another, and near 1 where one is there far more often than all others. Infinite if it tells nothing new. All are means of the same
/// features.
pub fn different_behind_last(samples: &[AsOften], publications: &[usize]) -> f64 {
    let counts: Vec<f64> = samples.iter().map(|alike| alike.samples as f64).collect();
    let often = |publication: &usize| {
        let times = samples.iter().map(|alike| alike.times.get(publication));
        times.map(|times| times.copied().unwrap_or_default() as f64).collect()
    };
    let last = orthonormal(&counts, publications.iter().map(often)).pop().flatten();
    // Its length is 1.
    let add_up =
        |rest: Vec<f64>| rest.iter().zip(&counts).map(|(r, n)| n * r.abs()).sum::<f64>().powi(2);
    last.map_or(f64::INFINITY, add_up)
}

/// What each of these tells that is not told by those before it, as an orthonormal basis (Gram and Schmidt); `None` where that is nothing. Every place counts so
/// often.
fn orthonormal(counts: &[f64], all: impl Iterator<Item = Vec<f64>>) -> Vec<Option<Vec<f64>>> {
    let product = |a: &[f64], b: &[f64]| -> f64 {
        counts.iter().zip(a.iter().zip(b)).map(|(count, (a, b))| count * a * b).sum()
    };
    let mut basis: Vec<Option<Vec<f64>>> = Vec::new();
    for mut rest in all {
        let whole = product(&rest, &rest);
        // Twice is enough for full precision.
        for known in basis.iter().chain(&basis).flatten() {
            let along = product(&rest, known);
            rest.iter_mut().zip(known).for_each(|(r, k)| *r -= along * k);
        }
        let left = product(&rest, &rest);
        let is_new = left > ROUNDING * whole;
        rest.iter_mut().for_each(|r| *r /= left.sqrt());
        basis.push(is_new.then_some(rest));
    }
    basis
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(groups: &[(usize, &[usize])], publications: usize) -> Vec<f64> {
        let group = |&(samples, inside): &(usize, &[usize])| {
            let inside = inside.to_vec();
            Alike { samples, counts: 1.0, inside }
        };
        let all: Vec<usize> = (0..publications).collect();
        leverages(&groups.iter().map(group).collect::<Vec<_>>(), &all)
    }

    fn are(found: &[f64], expected: &[f64]) -> bool {
        found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12)
    }

    #[test]
    fn one_publication_hides_a_sample_among_all() {
        assert!(are(&of(&[(50, &[0])], 1), &[0.02]));
        // The same again tells nothing new.
        assert!(are(&of(&[(50, &[0, 1, 2])], 3), &[0.02]));
    }

    #[test]
    fn a_difference_leaves_what_was_added_alone() {
        assert!(are(&of(&[(50, &[0, 1]), (1, &[1])], 2), &[0.02, 1.0]));
        // Of one that was replaced, the difference of two features is known: a half each, and a little from the sum.
        let replaced = of(&[(50, &[0, 1]), (1, &[0]), (1, &[1])], 2);
        assert!(replaced[1] > 0.5 && replaced[1] < 0.51 && are(&replaced[1..2], &replaced[2..]));
    }

    #[test]
    fn no_pair_but_four_publications_leave_one_alone() {
        let blocks: [(usize, &[usize]); 5] =
            [(50, &[0, 2]), (50, &[0, 3]), (50, &[1, 2]), (50, &[1, 3]), (1, &[3])];
        assert!(of(&blocks, 3).iter().all(|&l| l < 0.04));
        assert!((of(&blocks, 4)[4] - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_sample_that_is_there_again_counts_for_less() {
        let of = |counts| {
            let alike = |samples, counts, inside: &[usize]| {
                let inside = inside.to_vec();
                Alike { samples, counts, inside }
            };
            let groups = [alike(100, 1.0, &[0, 1]), alike(1, 1.0, &[1]), alike(79, counts, &[1])];
            leverages(&groups, &[0, 1])
        };
        assert!(are(&of(1.0), &[0.01, 1.0 / 80.0, 1.0 / 80.0]));
        assert!(are(&of(0.25), &[0.01, 4.0 / 83.0, 4.0 / 83.0]));
    }

    #[test]
    fn behind_what_is_new_stand_as_many_as_are_there_alike() {
        let of = |groups: &[(usize, [usize; 2])]| {
            let as_often = |&(samples, times): &(usize, [usize; 2])| AsOften {
                samples,
                times: times.into_iter().enumerate().filter(|(_, times)| *times > 0).collect(),
            };
            let groups: Vec<AsOften> = groups.iter().map(as_often).collect();
            different_behind_last(&groups, &[0, 1])
        };
        let is = |found: f64, expected: f64| (found - expected).abs() < 1e-9 * expected;
        assert!(is(of(&[(100, [1, 1]), (30, [0, 1])]), 30.0));
        assert!(is(of(&[(100, [1, 1]), (30, [0, 7])]), 30.0));
        assert!(is(of(&[(100, [1, 1]), (1, [0, 330])]), 1.0));
        assert!(of(&[(100, [1, 1]), (330, [0, 1]), (1, [0, 330])]) < 4.0);
        // What is there as often as before is nothing new, and neither is all of it twice.
        assert!(of(&[(100, [1, 1]), (1, [50, 50]), (30, [0, 1])]) > 29.0);
        assert_eq!(of(&[(100, [1, 2]), (1, [50, 100])]), f64::INFINITY);
    }

    proptest! {
        #[test]
        fn leverages_add_up_to_the_number_of_different_publications_and_never_fall(
            groups in prop::collection::vec((1..40usize, prop::collection::vec(any::<bool>(), 6)), 1..12)
        ) {
            let group = |(samples, inside): &(usize, Vec<bool>)| {
                let inside = (0..6).filter(|&k| inside[k]).collect();
                Alike { samples: *samples, counts: 1.0, inside }
            };
            let groups: Vec<Alike> = groups.iter().map(group).collect();
            let mut before = vec![0.0; groups.len()];
            for publications in 0..=6 {
                let all: Vec<usize> = (0..publications).collect();
                let now = leverages(&groups, &all);
                prop_assert!(now.iter().zip(&before).all(|(n, b)| *n >= b - 1e-9 && *n <= 1.0 + 1e-9));
                let sum: f64 = now.iter().zip(&groups).map(|(l, g)| l * g.samples as f64).sum();
                prop_assert!((sum - sum.round()).abs() < 1e-6 && sum.round() <= publications as f64);
                before = now;
            }
        }
    }
}
