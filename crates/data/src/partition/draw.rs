//! Random draws and roundings that partitioners share.

use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use rand_distr::{Distribution, Gamma};

use crate::{Class, Dataset, Error};

/// Draws `n` proportions that sum to 1, from a symmetric Dirichlet distribution.
///
/// Drawn as logarithms of gamma variates, by Γ(α) = Γ(α+1)·U^(1/α), because for a small α
/// the variates themselves are all zero in floating point. `alpha` is above 0.
pub(crate) fn dirichlet(alpha: f64, n: usize, rng: &mut impl Rng) -> Result<Vec<f64>, Error> {
    let gamma = Gamma::new(alpha + 1.0, 1.0)
        .map_err(|e| Error::setting("alpha", format!("{alpha}: {e}")))?;
    let logs: Vec<f64> = (0..n)
        .map(|_| {
            let uniform: f64 = rng.random();
            gamma.sample(rng).ln() + uniform.max(f64::MIN_POSITIVE).ln() / alpha
        })
        .collect();
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let parts: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
    let sum: f64 = parts.iter().sum();
    Ok(parts.iter().map(|part| part / sum).collect())
}

/// Whole numbers that sum to `total`, in proportion to `weights` (largest remainders), none above
/// its `room`: what does not fit goes to the others in their proportion. `None` when all the room is
/// not enough.
pub(crate) fn apportion(weights: &[f64], total: usize, room: &[usize]) -> Option<Vec<usize>> {
    let mut counts = vec![0; weights.len()];
    let mut left = total;
    while left > 0 {
        let mut open: Vec<usize> = (0..counts.len()).filter(|&k| counts[k] < room[k]).collect();
        if open.is_empty() {
            return None;
        }
        let sum: f64 = open.iter().map(|&k| weights[k]).sum();
        // Where only parts of no weight have room, they share alike.
        let ideal = |k: usize| match sum > 0.0 {
            true => left as f64 * weights[k] / sum,
            false => left as f64 / open.len() as f64,
        };
        let ideals: Vec<f64> = (0..counts.len()).map(ideal).collect();
        let rounded_down: usize = open.iter().map(|&k| ideals[k] as usize).sum();
        let remainder = left.saturating_sub(rounded_down);
        open.sort_by(|&a, &b| ideals[b].fract().total_cmp(&ideals[a].fract()).then(a.cmp(&b)));
        for (rank, &k) in open.iter().enumerate() {
            let wanted = ideals[k] as usize + usize::from(rank < remainder);
            let given = wanted.min(room[k] - counts[k]).min(left);
            counts[k] += given;
            left -= given;
        }
    }
    Some(counts)
}

/// Cuts into `n` parts of which no two differ by more than one; the first ones are longer.
pub(crate) fn even_parts<T>(all: &[T], n: usize) -> impl Iterator<Item = &[T]> {
    let (short, longer) = (all.len() / n, all.len() % n);
    (0..n).scan(0, move |start, k| {
        let end = *start + short + usize::from(k < longer);
        let part = &all[*start..end];
        *start = end;
        Some(part)
    })
}

/// The samples of a data set by their class, each class in random order.
pub(crate) struct ByClass {
    /// One list per class of the data set.
    pub(crate) classes: Vec<Vec<usize>>,
    /// The samples without a class, in random order.
    pub(crate) unlabeled: Vec<usize>,
}

impl ByClass {
    /// Sorts the samples that `belongs` lets in.
    pub(crate) fn of(
        data: &Dataset,
        belongs: impl Fn(usize) -> bool,
        rng: &mut impl Rng,
    ) -> ByClass {
        let mut by_class =
            ByClass { classes: vec![Vec::new(); data.classes().len()], unlabeled: Vec::new() };
        for sample in (0..data.len()).filter(|&s| belongs(s)) {
            match data.label(sample) {
                Some(class) => by_class.classes[usize::from(class)].push(sample),
                None => by_class.unlabeled.push(sample),
            }
        }
        by_class.classes.iter_mut().for_each(|class| class.shuffle(rng));
        by_class.unlabeled.shuffle(rng);
        by_class
    }

    /// Returns the classes that have at least one sample, ascending.
    pub(crate) fn present(&self) -> Vec<Class> {
        let classes = 0..self.classes.len();
        classes.filter(|&c| !self.classes[c].is_empty()).map(|c| c as Class).collect()
    }

    /// Deals the samples without a class evenly: no scheme by class has a say about them.
    pub(crate) fn deal_unlabeled(&self, devices: &mut [Vec<usize>]) {
        let parts = even_parts(&self.unlabeled, devices.len());
        devices.iter_mut().zip(parts).for_each(|(device, part)| device.extend_from_slice(part));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    proptest! {
        #[test]
        fn apportioned_numbers_sum_up_and_fit(
            parts in prop::collection::vec((0.0..5.0f64, 0usize..50), 0..8),
            total in 0usize..200,
        ) {
            let (weights, room): (Vec<f64>, Vec<usize>) = parts.into_iter().unzip();
            match apportion(&weights, total, &room) {
                Some(counts) => {
                    prop_assert_eq!(counts.iter().sum::<usize>(), total);
                    prop_assert!(counts.iter().zip(&room).all(|(count, room)| count <= room));
                }
                None => prop_assert!(room.iter().sum::<usize>() < total),
            }
        }

        #[test]
        fn enough_room_means_within_one_of_the_share(
            weights in prop::collection::vec(0.1..5.0f64, 1..8), total in 0usize..200,
        ) {
            let counts = apportion(&weights, total, &vec![total; weights.len()]).unwrap();
            let sum: f64 = weights.iter().sum();
            for (count, weight) in counts.iter().zip(&weights) {
                prop_assert!((*count as f64 - total as f64 * weight / sum).abs() < 1.0 + 1e-9);
            }
        }
    }

    #[test]
    fn dirichlet_has_its_mean_and_variance() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for alpha in [0.1, 1.0, 5.0] {
            let draws: Vec<f64> =
                (0..4000).map(|_| dirichlet(alpha, 4, &mut rng).unwrap()[0]).collect();
            let mean = draws.iter().sum::<f64>() / 4000.0;
            let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 4000.0;
            // Var = (1/n)(1 − 1/n)/(nα + 1).
            let expected = 0.25 * 0.75 / (4.0 * alpha + 1.0);
            assert!((mean - 0.25).abs() < 0.03, "{mean}");
            assert!((variance / expected - 1.0).abs() < 0.1, "{variance} for {expected}");
        }
    }

    #[test]
    fn dirichlet_of_a_tiny_alpha_is_one_part_and_no_nan() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let shares = dirichlet(1e-6, 10, &mut rng).unwrap();
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(shares.iter().any(|&share| share > 0.999));
    }

    #[test]
    fn even_parts_cover_everything() {
        let all = [1, 2, 3, 4, 5, 6, 7];
        let parts: Vec<&[i32]> = even_parts(&all, 3).collect();
        assert_eq!(parts, [&[1, 2, 3][..], &[4, 5], &[6, 7]]);
    }
}
