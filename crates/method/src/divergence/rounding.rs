//! Means as devices publish them: in sixteen bits each.
//!
//! Steps of one size suit them better than floating point of the same length, since it is known how large they are: no feature exceeds
//! √(2/F), and noise hardly ever six of its deviations. With 64 features and base noise of 500 samples a step is 5.5·10⁻⁶; half
//! precision has steps of up to 1.2·10⁻⁴ there. Noise is rounded with the
//! mean, after it was drawn, so that rounding tells nothing more about the samples.

use super::sketch::{Settings, Sketch};

/// The largest number of steps from 0.
const MOST: f64 = i16::MAX as f64;

/// Noise beyond so many standard deviations is cut off: two numbers of a thousand million.
const WIDEST_NOISE: f64 = 6.0;

/// The size of a step between the means that a device with so many samples can publish.
fn step(settings: &Settings, samples: u64) -> f64 {
    let largest = (2.0 / settings.features as f64).sqrt();
    (largest + WIDEST_NOISE * settings.noise(samples)) / MOST
}

fn steps(mean: f64, step: f64) -> f64 {
    (mean / step).round().clamp(-MOST, MOST)
}

/// A mean with its noise as it is published.
pub(super) fn rounded(settings: &Settings, samples: u64) -> impl Fn(f64) -> f32 {
    let step = step(settings, samples);
    move |mean| (steps(mean, step) * step) as f32
}

impl Sketch {
    /// The published means as numbers of steps, from which [`Sketch::from_steps`] makes the same means again.
    pub fn to_steps(&self, settings: &Settings) -> Vec<i16> {
        let step = step(settings, self.samples);
        self.mean.iter().map(|&mean| steps(f64::from(mean), step) as i16).collect()
    }

    /// The sketch of a device with so many samples, of which these are the means.
    pub fn from_steps(samples: u64, means: &[i16], settings: &Settings) -> Sketch {
        let step = step(settings, samples);
        let mean = means.iter().map(|&steps| (f64::from(steps) * step) as f32).collect();
        Sketch { samples, mean, covariance: None }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use stlf_data::Shape;

    use super::super::Embedding;
    use super::super::privacy::Privacy;
    use super::super::sketch::agreed_features;
    use super::*;

    const ROW: Shape = Shape { channels: 1, height: 1, width: 20 };

    fn settings(epsilon: Option<f64>) -> Settings {
        let privacy = epsilon.map(|epsilon| Privacy::new(epsilon, 1e-5));
        Settings { privacy, privacy_required: true, ..Settings::means(ROW) }
    }

    #[test]
    fn rounding_is_far_below_what_sampling_does_to_means() {
        let samples = 10_000;
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let inputs: Vec<f32> = (0..20 * samples).map(|_| rng.random_range(-1.5..1.5_f32)).collect();
        let settings = settings(None);
        let width = settings.bandwidth.known();
        let features =
            agreed_features(&[width], ROW, Embedding::Inputs, settings.features, 5).unwrap();
        let (mut sum, mut squares) = (vec![0.0; 64], vec![0.0; 64]);
        features.each(&inputs, |vector| {
            for (k, &x) in vector.iter().enumerate() {
                sum[k] += f64::from(x);
                squares[k] += f64::from(x).powi(2);
            }
        });
        let n = samples as f64;
        let rounded = rounded(&settings, samples as u64);
        let error: f64 = sum.iter().map(|s| (f64::from(rounded(s / n)) - s / n).powi(2)).sum();
        let of_sampling: f64 =
            squares.iter().zip(&sum).map(|(q, s)| (q / n - (s / n).powi(2)) / n).sum();
        let share = (error / of_sampling).sqrt();
        assert!(share > 0.0 && share < 0.005, "{share}");
    }

    proptest! {
        #[test]
        fn published_means_come_back_as_they_were(
            means in prop::collection::vec(-9.0..9.0_f64, 64),
            samples in 1..100_000_u64,
            epsilon in prop::option::of(0.01..9.0_f64),
        ) {
            let settings = settings(epsilon);
            let mean = means.iter().map(|&m| rounded(&settings, samples)(m)).collect();
            let published = Sketch { samples, mean, covariance: None };
            let steps = published.to_steps(&settings);
            prop_assert_eq!(&Sketch::from_steps(samples, &steps, &settings), &published);
            let step = step(&settings, samples);
            let range = (MOST * step) as f32;
            for (&m, &rounded) in means.iter().zip(&published.mean) {
                let near = f64::from(rounded - m as f32).abs() <= 0.51 * step + 1e-6 * m.abs();
                prop_assert!(near || rounded.abs() == range && m.abs() > 0.999 * f64::from(range));
            }
        }
    }
}
