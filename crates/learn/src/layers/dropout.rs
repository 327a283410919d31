//! Dropout of single numbers or of whole channels.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::Mode;

/// The chance that a number or a channel is dropped, and how much the others grow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drop {
    /// A draw of 32 bits under this is dropped.
    threshold: u32,
    scale: f32,
}

impl Drop {
    /// `p` is in 0 ≤ p < 1, as [`Spec`](crate::Spec) checked.
    pub(crate) fn new(p: f32) -> Drop {
        let threshold = (f64::from(p) * f64::from(u32::MAX)).round() as u32;
        Drop { threshold, scale: 1.0 / (1.0 - p) }
    }

    pub(crate) fn keeps(&self, rng: &mut ChaCha8Rng) -> bool {
        rng.next_u32() >= self.threshold
    }

    /// Returns the factor by which kept numbers grow, so that the mean stays the same.
    pub(crate) fn scale(&self) -> f32 {
        self.scale
    }
}

/// Dropout of groups of numbers that stand or fall together: one number, or one channel's plane.
#[derive(Debug)]
pub(crate) struct Dropout {
    drop: Drop,
    group: usize,
    /// What each group of the batch was multiplied by.
    factors: Vec<f32>,
}

impl Dropout {
    pub(crate) fn new(p: f32, group: usize, groups: usize) -> Dropout {
        Dropout { drop: Drop::new(p), group, factors: vec![1.0; groups] }
    }

    pub(crate) fn forward(&mut self, x: &[f32], y: &mut [f32], mode: &mut Mode<'_>) {
        let factors = &mut self.factors[..x.len() / self.group];
        match mode {
            Mode::Evaluate => factors.fill(1.0),
            Mode::Train(rng) => factors.iter_mut().for_each(|factor| {
                *factor = if self.drop.keeps(rng) { self.drop.scale } else { 0.0 };
            }),
        }
        self.multiply(x, y);
    }

    pub(crate) fn backward(&self, dy: &[f32], dx: &mut [f32]) {
        self.multiply(dy, dx);
    }

    fn multiply(&self, from: &[f32], to: &mut [f32]) {
        let groups = from.chunks_exact(self.group).zip(to.chunks_exact_mut(self.group));
        for ((from, to), factor) in groups.zip(&self.factors) {
            from.iter().zip(to).for_each(|(from, to)| *to = from * factor);
        }
    }
}
