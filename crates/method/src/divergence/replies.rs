//! How many divergences a device tells, and of whom first.
//!
//! A device that measures by its own covariance replies to everybody's means with a number. Whoever chooses the means chooses what the number is about, and
//! many such numbers are the covariance. So a reply counts like everything else that is published: behind every number that a device tells stand at least ten
//! ([`super::disclosure`]), and one peer alone gets few replies.

use stlf_data::Shape;

use super::Settings;
use super::disclosure::most_told;
use super::sketch::Sketch;

/// The numbers that a reply tells. It is one of 201 values, less than eight bits, where a published mean has sixteen.
const NUMBERS_OF_A_REPLY: f64 = 0.5;

/// How often a device replies to new means of the same peer, as long as its own data are nearly the same. What 64 accomplices learn of a covariance by so many
/// replies each leaves four fifths of what they did not know (`crates/protocol/tests/memory/coalition.rs`).
pub const MOST_TO_ONE_PEER: usize = 2;

/// The numbers that a reply of a device with so many samples tells about each of them. Those that are there again are [not counted](super::disclosure::independent).
pub fn told_by_one(samples: f64) -> f64 {
    NUMBERS_OF_A_REPLY / samples.max(1.0)
}

/// The most replies of a device with so many samples of this shape, if it has given none before.
pub fn most(settings: &Settings, shape: Shape, samples: f64) -> usize {
    // Rounding must not take the last one away.
    (most_told(settings, shape) / told_by_one(samples) + 1e-6) as usize
}

/// The order in which a device replies to others if it cannot to all: those first whose published means are nearest to what it published itself. Everyone
/// can compute that, so that it tells nothing.
pub fn nearest_first<'s, K: Copy + Ord>(
    own: &Sketch,
    others: impl Iterator<Item = (K, &'s Sketch)>,
) -> Vec<K> {
    let squared = |other: &Sketch| -> f64 {
        let pairs = other.mean.iter().zip(&own.mean);
        pairs.map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum()
    };
    let mut order: Vec<(f64, K)> = others.map(|(key, other)| (squared(other), key)).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    order.into_iter().map(|(_, key)| key).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sketch;
    use super::*;

    #[test]
    fn a_fleet_of_two_hundred_gets_replies_of_a_hundred_samples() {
        let row = |width| Shape { channels: 1, height: 1, width };
        for (shape, samples, expected) in [
            (Shape::grey(28), 64, 128),
            (Shape::grey(28), 100, 200),
            (row(12), 48, 96),
            (row(4), 40, 32),
            (row(1), 160, 32),
        ] {
            let settings = Settings::Sketch(sketch::Settings::means(shape));
            assert_eq!(most(&settings, shape, f64::from(samples)), expected, "{shape} {samples}");
        }
    }

    #[test]
    fn those_that_published_alike_come_first_and_ties_by_their_place() {
        let sketch = |x: f32| Sketch { samples: 9, mean: vec![x, -x], covariance: None };
        let others = [3.0, -1.0, 1.0, 0.5].map(sketch);
        let order = nearest_first(&sketch(0.0), others.iter().enumerate());
        assert_eq!(order, [3, 1, 2, 0]);
    }
}
