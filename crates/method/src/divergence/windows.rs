//! What a window of a series is, whatever moment it begins at: how strongly it answers to random filters, and its level.
//!
//! The window of a machine that turns says by its first reading at which angle it was cut. Two machines that are alike, cut at different angles,
//! would be far apart; by energies of filters (as in Dempster, Petitjean and Webb, "ROCKET", 2020, with energies for their shares of positive values) they are not.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use stlf_data::Shape;

use super::privacy::normal;

/// How many filters there are.
const FILTERS: usize = 16;

/// The most readings of a channel that a filter looks at.
const TAPS: usize = 9;

/// Filters that all devices share, for windows of one shape.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Filters {
    shape: Shape,
    filters: Vec<Filter>,
    /// What a reading counts in the level of its channel.
    level: Vec<f64>,
}

#[derive(Debug, Clone, PartialEq)]
struct Filter {
    /// The distance of two readings that it looks at.
    step: usize,
    /// The weights of these, channel by channel; their squares add up to 1.
    weights: Vec<f64>,
    /// What each of its answers counts.
    taper: Vec<f64>,
}

impl Filters {
    /// The filters that this seed gives. None is longer than half of a window, so that there are answers from everywhere.
    pub(super) fn new(shape: Shape, seed: u64) -> Filters {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let taps = (shape.width / 2).clamp(1, TAPS);
        let widest = (shape.width / 2).saturating_sub(1) / taps.saturating_sub(1).max(1);
        let steps: Vec<usize> =
            std::iter::successors(Some(1), |step| Some(2 * step).filter(|&s| s <= widest))
                .collect();
        let filter = |k: usize| {
            let step = steps[k % steps.len()];
            let mut weights: Vec<f64> =
                (0..shape.channels * taps).map(|_| normal(&mut rng)).collect();
            let length = weights.iter().map(|w| w * w).sum::<f64>().sqrt();
            weights.iter_mut().for_each(|w| *w /= length);
            Filter { step, weights, taper: taper(shape.width - (taps - 1) * step) }
        };
        Filters { shape, filters: (0..FILTERS).map(filter).collect(), level: taper(shape.width) }
    }

    /// The shape of a window.
    pub(super) fn window(&self) -> Shape {
        self.shape
    }

    /// The shape of what comes of one: a number for each filter and each channel.
    pub(super) fn answers(&self) -> Shape {
        answers(self.shape)
    }

    /// What comes of windows that lie one after the other.
    pub(super) fn of(&self, windows: &[f32]) -> Vec<f32> {
        let windows = windows.chunks_exact(self.shape.len());
        let mut all = Vec::with_capacity(windows.len() * self.answers().len());
        for window in windows {
            all.extend(self.filters.iter().map(|filter| filter.energy(window, self.shape.width)));
            all.extend(window.chunks_exact(self.shape.width).map(|channel| {
                let terms = channel.iter().zip(&self.level);
                terms.map(|(&reading, share)| f64::from(reading) * share).sum::<f64>() as f32
            }));
        }
        all
    }
}

impl Filter {
    /// ½ ln(1 + E) of the mean square E of its answers: about E/2 where it is small, and no reading however large counts for much.
    fn energy(&self, window: &[f32], readings: usize) -> f32 {
        let channels = window.len() / readings;
        let taps = self.weights.len() / channels;
        let mut answers = vec![0.0; self.taper.len()];
        for (weights, channel) in self.weights.chunks_exact(taps).zip(window.chunks_exact(readings))
        {
            for (tap, &weight) in weights.iter().enumerate() {
                let seen = &channel[tap * self.step..];
                let sums = answers.iter_mut().zip(seen);
                sums.for_each(|(sum, &reading)| *sum += weight * f64::from(reading));
            }
        }
        let squares = answers.iter().zip(&self.taper);
        let energy: f64 = squares.map(|(answer, share)| answer * answer * share).sum();
        (0.5 * energy.ln_1p()) as f32
    }
}

/// The shape of what comes of windows of a shape.
pub(super) fn answers(window: Shape) -> Shape {
    Shape { channels: 1, height: 1, width: FILTERS + window.channels }
}

/// What so many numbers count in their mean: those at the ends little (Hann 1903), so that it hardly matters with which part of a vibration they begin. They add
/// up to 1.
fn taper(len: usize) -> Vec<f64> {
    let at = |k: usize| (std::f64::consts::PI * (k as f64 + 0.5) / len as f64).sin().powi(2);
    let total: f64 = (0..len).map(at).sum();
    (0..len).map(|k| at(k) / total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two channels of a vibration that begins at a phase.
    fn vibration(readings: usize, speed: f64, phase: f64) -> Vec<f32> {
        let at = |shift: f64| {
            move |k: usize| (2f64.sqrt() * (phase + shift + speed * k as f64).sin()) as f32
        };
        (0..readings).map(at(0.0)).chain((0..readings).map(at(1.0))).collect()
    }

    fn distance(a: &[f32], b: &[f32]) -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt()
    }

    #[test]
    fn it_hardly_matters_when_a_window_begins() {
        for (readings, speed) in [(32, 0.42), (64, 0.3), (128, 1.1)] {
            let filters = Filters::new(Shape { channels: 2, height: 1, width: readings }, 3);
            let of = |speed, phase| filters.of(&vibration(readings, speed, phase));
            let first = of(speed, 0.0);
            let other = distance(&first, &of(1.5 * speed, 0.0));
            for phase in 1..12 {
                let moved = distance(&first, &of(speed, f64::from(phase) * 0.5));
                assert!(moved < 0.15 * other, "{readings} {phase}: {moved} of {other}");
            }
        }
    }

    #[test]
    fn energies_and_levels_are_what_they_are_defined_as() {
        let shape = Shape { channels: 2, height: 1, width: 80 };
        let filters = Filters::new(shape, 5);
        let steps: Vec<usize> = filters.filters.iter().map(|filter| filter.step).collect();
        assert_eq!(steps[..4], [1, 2, 4, 1]);
        let number = |k: usize| ((k * 7919) % 2003) as f32 / 500.0 - 2.0;
        let windows: Vec<f32> = (0..3 * shape.len()).map(number).collect();
        let found = filters.of(&windows);
        assert_eq!(found.len(), 3 * filters.answers().len());
        for (window, found) in windows.chunks(shape.len()).zip(found.chunks(FILTERS + 2)) {
            for (filter, found) in filters.filters.iter().zip(found) {
                let count = 80 - 8 * filter.step;
                let hann = |k: usize| {
                    0.5 - 0.5 * (2.0 * std::f64::consts::PI * (k as f64 + 0.5) / count as f64).cos()
                };
                let answer = |k: usize| -> f64 {
                    let taps = (0..2).flat_map(|channel| (0..9).map(move |tap| (channel, tap)));
                    taps.map(|(channel, tap)| {
                        let reading = window[channel * 80 + k + tap * filter.step];
                        filter.weights[channel * 9 + tap] * f64::from(reading)
                    })
                    .sum()
                };
                let weighed: f64 = (0..count).map(|k| hann(k) * answer(k).powi(2)).sum();
                let energy = weighed / (0..count).map(hann).sum::<f64>();
                assert!((f64::from(*found) - 0.5 * (1.0 + energy).ln()).abs() < 1e-6);
            }
        }
        let level = Filters::new(shape, 6).of(&[vec![3.0; 80], vec![-1.0; 80]].concat());
        assert!((level[16] - 3.0).abs() < 1e-5 && (level[17] + 1.0).abs() < 1e-5, "{level:?}");
    }

    #[test]
    fn windows_of_any_length_have_answers() {
        for width in 1..40 {
            let filters = Filters::new(Shape { channels: 1, height: 1, width }, 1);
            let found = filters.of(&vec![1.0; width]);
            assert!(found.len() == 17 && found.iter().all(|x| x.is_finite()), "{width}");
            assert!(filters.filters.iter().all(|filter| !filter.taper.is_empty()), "{width}");
        }
    }
}
