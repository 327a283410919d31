//! How noisy the labels of a device's rows are, and how strongly a model that is trained on them should therefore be pulled to zero.
//!
//! Where classes overlap, a network learns by heart on which side of the boundary each row happened to lie. A model that goes round many sources
//! does so at each of them, and nobody evens that out, as a mixture of many models would. Weight decay does. But it costs accuracy where classes do not
//! overlap, so it is measured whether they do: by how often a row's nearest neighbour on the device has another class. With many rows that is
//! between once and twice the error that nobody can avoid (Cover and Hart, "Nearest neighbor pattern classification", 1967).

use stlf_data::Class;

use crate::mingled::apart;

/// The most rows that are looked at. To look at more takes time that grows with the square of their number, and says the same.
const MOST_ROWS: usize = 500;

/// The share of other classes among nearest neighbours that clean labels have as well, since few rows lie far apart.
const CLEAN: f64 = 0.05;

/// The weight decay for each part of nearest neighbours beyond that which has another class.
const DECAY: f64 = 0.1;

/// Returns the weight decay that suits these rows, of so many numbers each, with these labels: 0 where nearly every row's nearest neighbour has its class.
pub(crate) fn weight_decay(inputs: &[f32], labels: &[Class], numbers: usize) -> f32 {
    (DECAY * (of_other_class(inputs, labels, numbers) - CLEAN).max(0.0)) as f32
}

/// The share of rows, of the first [`MOST_ROWS`], whose nearest other row has another class; of equally near ones the first counts.
fn of_other_class(inputs: &[f32], labels: &[Class], numbers: usize) -> f64 {
    let rows: Vec<&[f32]> = inputs.chunks_exact(numbers.max(1)).take(MOST_ROWS).collect();
    let nearest = |at: usize| {
        let others = (0..rows.len()).filter(|&other| other != at);
        let far = others.map(|other| (apart(rows[at], rows[other]), other));
        far.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, other)| other)
    };
    let others = (0..rows.len()).filter(|&at| nearest(at).is_some_and(|n| labels[n] != labels[at]));
    others.count() as f64 / rows.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::divergence::privacy::normal;

    /// Rows of two numbers in two classes, whose middles are this far from each other along the first; the numbers are normal with deviation 1.
    fn two_classes(rows: usize, distance: f32) -> (Vec<f32>, Vec<Class>) {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let labels: Vec<Class> = (0..rows).map(|_| rng.random_range(0..2)).collect();
        let mut number = |_| normal(&mut rng) as f32;
        let mut inputs: Vec<f32> = (0..2 * rows).map(&mut number).collect();
        for (at, &label) in labels.iter().enumerate() {
            inputs[2 * at] += distance * f32::from(label);
        }
        (inputs, labels)
    }

    #[test]
    fn the_more_classes_overlap_the_more_neighbours_differ() {
        // The least error that anybody can make is that of the normal distribution beyond half of the distance; the nearest neighbour errs between
        // once and twice as often.
        for (distance, least) in
            [(0.0, 0.5), (1.0, 0.308_537_5), (2.0, 0.158_655_3), (4.0, 0.022_750_1)]
        {
            let (inputs, labels) = two_classes(MOST_ROWS, distance);
            let share = of_other_class(&inputs, &labels, 2);
            let most = 2.0 * least * (1.0 - least);
            assert!((least - 0.05..=most + 0.05).contains(&share), "{distance}: {share}");
        }
    }

    #[test]
    fn clean_labels_and_few_rows_ask_for_no_decay() {
        let (inputs, labels) = two_classes(200, 20.0);
        assert_eq!(weight_decay(&inputs, &labels, 2), 0.0);
        for rows in [0, 1] {
            assert_eq!(weight_decay(&inputs[..2 * rows], &labels[..rows], 2), 0.0);
        }
        let (inputs, labels) = two_classes(200, 0.0);
        let decay = weight_decay(&inputs, &labels, 2);
        assert!((0.03..0.06).contains(&decay), "{decay}");
    }

    #[test]
    fn rows_beyond_the_most_are_not_looked_at() {
        let (mut inputs, mut labels) = two_classes(MOST_ROWS, 20.0);
        let (more, _) = two_classes(MOST_ROWS, 0.0);
        inputs.extend(more);
        labels.extend((0..MOST_ROWS as Class).map(|row| row % 2));
        assert_eq!(weight_decay(&inputs, &labels, 2), 0.0);
    }
}
