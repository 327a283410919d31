//! Rows as a model sees them that somebody else handed to a device: in groups of ten of one class, each group turned at random.
//!
//! Who hands a model on chooses its weights, and gets back, or has an accomplice get, what training made of them. A hidden unit that only one
//! row activates, a difference of two units, or a model that is sure of all rows but one: each makes the change of some weights a multiple of a
//! single row (Fowl et al., "Robbing the Fed", ICLR 2022; Boenisch et al., "When the Curious Abandon Honesty", EuroS&P 2023). No check of weights
//! finds all of them. So no row is there to be found: training sees the rows of a group turned about their mean, by a random rotation of
//! the group's ten dimensions. Their mean and their covariance stay as they are (Aggarwal and Yu, "A condensation approach to privacy preserving
//! data mining", EDBT 2004, keep the same), and with them what a model learns; which rows have them cannot be told, since any other rotation of
//! the rows would have given the same with the same probability.
//!
//! The rotation is drawn from the rows themselves, by a hash that nobody can compute who does not know all of them. So the same rows are always
//! turned alike, and several models together tell no more than one.

use std::collections::BTreeSet;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};
use stlf_data::Class;

use crate::divergence::privacy::normal;

/// The number of rows in a group, where a class has so many; up to nine more where it has not twice as many.
pub const GROUP: usize = 10;

/// Rows of a class among which groups are formed together: to find them takes time that grows with the square of it.
const TOGETHER: usize = 500;

/// Inputs of so many numbers each, with their classes, mingled. A class with fewer than ten rows is one group, which hides less: of two rows
/// nothing, and a single one stays as it is. To leave such rows out, or to train on their mean, cost devices with 25 labels two to three points.
pub fn mingled(inputs: &[f32], labels: &[Class], numbers: usize) -> Vec<f32> {
    let mut mingled = inputs.to_vec();
    let classes: BTreeSet<Class> = labels.iter().copied().collect();
    for class in classes {
        let rows: Vec<usize> = (0..labels.len()).filter(|&row| labels[row] == class).collect();
        let parts = rows.len().div_ceil(TOGETHER);
        for part in 0..parts {
            let together = rows.iter().copied().skip(part).step_by(parts).collect();
            for group in groups(inputs, numbers, together) {
                mingle(&mut mingled, numbers, &group);
            }
        }
    }
    mingled
}

/// Rows in groups of [`GROUP`] that are near each other: the one farthest from the middle of those that are left, with the nearest to it, until
/// fewer than twice as many are left (Domingo-Ferrer and Mateo-Sanz, "Practical data-oriented microaggregation", IEEE TKDE 2002).
fn groups(inputs: &[f32], numbers: usize, mut left: Vec<usize>) -> Vec<Vec<usize>> {
    let row = |at: usize| &inputs[at * numbers..(at + 1) * numbers];
    let mut groups = Vec::with_capacity(left.len() / GROUP);
    while left.len() >= 2 * GROUP {
        let mut middle = vec![0.0f64; numbers];
        for &at in &left {
            middle.iter_mut().zip(row(at)).for_each(|(m, x)| *m += f64::from(*x));
        }
        middle.iter_mut().for_each(|m| *m /= left.len() as f64);
        let middle: Vec<f32> = middle.into_iter().map(|m| m as f32).collect();
        let far = |from: &[f32]| {
            let mut far: Vec<(f32, usize)> =
                left.iter().map(|&at| (apart(row(at), from), at)).collect();
            far.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            far
        };
        let Some((_, farthest)) = far(&middle).pop() else { break };
        let by_distance: Vec<usize> = far(row(farthest)).into_iter().map(|(_, at)| at).collect();
        let (group, others) = by_distance.split_at(GROUP);
        groups.push(group.to_vec());
        left = others.to_vec();
        left.sort_unstable();
    }
    groups.push(left);
    groups
}

/// The square of the distance of two rows.
pub(crate) fn apart(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// Puts in the place of a group's rows what a model sees of them.
fn mingle(inputs: &mut [f32], numbers: usize, group: &[usize]) {
    let range = |at: usize| at * numbers..(at + 1) * numbers;
    let mut hasher = Sha256::new();
    for &at in group {
        inputs[range(at)].iter().for_each(|x| hasher.update(x.to_bits().to_le_bytes()));
    }
    let numbers_of = |&at: &usize| inputs[range(at)].iter().map(|x| f64::from(*x)).collect();
    let mut rows: Vec<Vec<f64>> = group.iter().map(numbers_of).collect();
    if group.len() < 2 {
        return;
    }
    turn(&mut rows, &mut ChaCha8Rng::from_seed(hasher.finalize().into()));
    for (row, &at) in rows.iter().zip(group) {
        inputs[range(at)].iter_mut().zip(row).for_each(|(x, turned)| *x = *turned as f32);
    }
}

/// Turns rows about their mean: reflects them at one random plane through the mean after the other, so often that every rotation is about as
/// likely.
fn turn(rows: &mut [Vec<f64>], rng: &mut ChaCha8Rng) {
    for _ in 0..2 * rows.len() {
        let mut across: Vec<f64> = rows.iter().map(|_| normal(rng)).collect();
        let mean = across.iter().sum::<f64>() / across.len() as f64;
        across.iter_mut().for_each(|a| *a -= mean);
        let squares: f64 = across.iter().map(|a| a * a).sum();
        let columns = rows.first().map_or(0, Vec::len);
        for column in 0..columns {
            let along: f64 = across.iter().zip(&*rows).map(|(a, row)| a * row[column]).sum();
            let moved = 2.0 * along / squares;
            across.iter().zip(&mut *rows).for_each(|(a, row)| row[column] -= moved * a);
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;

    const COLUMNS: usize = 3;

    fn drawn(rows: usize, seed: u64) -> Vec<f32> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..rows * COLUMNS).map(|_| rng.random_range(-1.0..1.0)).collect()
    }

    /// The mean of rows and of the products of their columns.
    fn moments(inputs: &[f32]) -> Vec<f64> {
        let rows = inputs.len() / COLUMNS;
        let mut moments = vec![0.0; COLUMNS * (COLUMNS + 1)];
        for row in inputs.chunks(COLUMNS) {
            for a in 0..COLUMNS {
                moments[a] += f64::from(row[a]) / rows as f64;
                for b in 0..COLUMNS {
                    let product = f64::from(row[a]) * f64::from(row[b]);
                    moments[COLUMNS * (a + 1) + b] += product / rows as f64;
                }
            }
        }
        moments
    }

    #[test]
    fn mean_and_covariance_of_a_class_stay_and_no_row_does() {
        let inputs = drawn(57, 1);
        let labels: Vec<Class> = (0..57).map(|row| Class::from(row >= 22)).collect();
        let turned = mingled(&inputs, &labels, COLUMNS);
        for range in [0..22 * COLUMNS, 22 * COLUMNS..57 * COLUMNS] {
            let [before, after] = [&inputs, &turned].map(|all| moments(&all[range.clone()]));
            assert!(before.iter().zip(&after).all(|(a, b)| (a - b).abs() < 1e-5), "{after:?}");
        }
        let pairs = inputs.chunks(COLUMNS).zip(turned.chunks(COLUMNS));
        assert!(pairs.clone().all(|(row, turned)| row != turned));
        let moved: f32 = pairs.map(|(row, turned)| apart(row, turned)).sum();
        assert!(moved / 57.0 > 0.1, "{moved}");
    }

    #[test]
    fn the_same_rows_are_always_turned_alike() {
        let (inputs, labels) = (drawn(30, 2), vec![0; 30]);
        let turned = mingled(&inputs, &labels, COLUMNS);
        assert_eq!(mingled(&inputs, &labels, COLUMNS), turned);
        let mut other = inputs.clone();
        other[0] += 1e-3;
        assert_ne!(mingled(&other, &labels, COLUMNS)[1..COLUMNS], turned[1..COLUMNS]);
    }

    #[test]
    fn a_single_row_of_a_class_stays_and_few_are_one_group() {
        let inputs = drawn(8, 3);
        let labels = [2, 1, 1, 1, 1, 1, 1, 1];
        let turned = mingled(&inputs, &labels, COLUMNS);
        assert_eq!(turned[..COLUMNS], inputs[..COLUMNS]);
        let [before, after] = [&inputs, &turned].map(|all| moments(&all[COLUMNS..]));
        assert!(before.iter().zip(&after).all(|(a, b)| (a - b).abs() < 1e-5), "{after:?}");
        assert_ne!(turned[COLUMNS..], inputs[COLUMNS..]);
        assert!(mingled(&[], &[], COLUMNS).is_empty());
        let alike = [1.0f32, 2.0, 3.0].repeat(10);
        let turned = mingled(&alike, &[0; 10], COLUMNS);
        assert!(turned.iter().zip(&alike).all(|(a, b)| (a - b).abs() < 1e-6));
    }

    #[test]
    fn groups_have_ten_rows_or_more_and_every_row_is_in_one() {
        for rows in [10, 19, 20, 47, 100] {
            let found = groups(&drawn(rows, 4), COLUMNS, (0..rows).collect());
            assert!(found.iter().all(|group| (GROUP..2 * GROUP).contains(&group.len())));
            let mut all = found.concat();
            all.sort_unstable();
            assert_eq!(all, (0..rows).collect::<Vec<_>>());
        }
    }
}
