//! How much several publications together tell about one sample.
//!
//! A mean over n samples, with n known, is their sum. From the sums over the sets D₁ … D_k anyone computes every combination Σ w_t·(sum over D_t) = Σ c_x·φ(x),
//! such as the difference of two, and nothing else of this kind. The leverage of a sample is the largest share c_x²/Σ c² that it has in any of
//! them: 1/n for one publication of n samples, 1 where a combination leaves it alone. So behind every combination stand at least as many
//! samples as the inverse of the largest leverage says.

/// Samples that were in the same publications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alike {
    /// How many.
    pub samples: usize,
    /// The publications.
    pub inside: Vec<usize>,
}

/// What is left of a set that others explain, as a share of it, is rounding below this.
const ROUNDING: f64 = 1e-9;

/// The leverage of a sample of each group, in these publications together. All are means of the same features.
pub fn leverages(groups: &[Alike], publications: &[usize]) -> Vec<f64> {
    let product = |a: &[f64], b: &[f64]| -> f64 {
        groups.iter().zip(a.iter().zip(b)).map(|(g, (a, b))| g.samples as f64 * a * b).sum()
    };
    // An orthonormal basis of the combinations (Gram and Schmidt); a sample's share of a combination is largest in its own projection.
    let mut basis: Vec<Vec<f64>> = Vec::new();
    for publication in publications {
        let is_inside = |group: &Alike| f64::from(u8::from(group.inside.contains(publication)));
        let mut rest: Vec<f64> = groups.iter().map(is_inside).collect();
        let whole = product(&rest, &rest);
        // Twice is enough for full precision.
        for known in basis.iter().chain(&basis) {
            let along = product(&rest, known);
            rest.iter_mut().zip(known).for_each(|(r, k)| *r -= along * k);
        }
        let left = product(&rest, &rest);
        if left > ROUNDING * whole {
            rest.iter_mut().for_each(|r| *r /= left.sqrt());
            basis.push(rest);
        }
    }
    (0..groups.len()).map(|g| basis.iter().map(|row| row[g] * row[g]).sum()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(groups: &[(usize, &[usize])], publications: usize) -> Vec<f64> {
        let group = |&(samples, inside): &(usize, &[usize])| {
            let inside = inside.to_vec();
            Alike { samples, inside }
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

    proptest! {
        #[test]
        fn leverages_add_up_to_the_number_of_different_publications_and_never_fall(
            groups in prop::collection::vec((1..40usize, prop::collection::vec(any::<bool>(), 6)), 1..12)
        ) {
            let group = |(samples, inside): &(usize, Vec<bool>)| {
                let inside = (0..6).filter(|&k| inside[k]).collect();
                Alike { samples: *samples, inside }
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
