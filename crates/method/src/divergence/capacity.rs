//! How much published means can tell at most, whatever anybody computes from them.
//!
//! Features have length 1, so the mean of n independent samples strays from its expectation by a covariance C with tr C ≤ 1/n. A device adds independent
//! normal noise of variance σ² to each of its F means. Then what is published tells at most
//!
//! ½ log₂ det(1 + C/σ²) ≤ F/2 · log₂(1 + tr C/(F·σ²)) ≤ F/2 · log₂(1 + 1/(n·F·σ²)) bits
//!
//! about the samples to somebody who knows what such data look like: of all means with this covariance normal ones tell most (Cover and Thomas 2006,
//! theorem 8.6.5), and the determinant is largest where the trace is spread evenly. With σ² = 1/(n·F·(4ᵇ − 1)) that is b·F bits, b for every mean.

/// The most bits that a mean tells, b.
pub const MOST_BITS: u32 = 3;

/// The standard deviation σ of noise with which so many means of so many independent samples tell no more.
pub(super) fn base_noise(features: usize, samples: f64) -> f64 {
    let signal = f64::from(4_u32.pow(MOST_BITS) - 1);
    (signal * features as f64 * samples).sqrt().recip()
}

/// The bits that so many means of so many independent samples tell at most about all of them together, with noise of this standard deviation.
pub(super) fn bits(features: usize, samples: f64, deviation: f64) -> f64 {
    let features = features as f64;
    let signal = (samples * features * deviation.powi(2)).recip();
    features / 2.0 * signal.ln_1p() / std::f64::consts::LN_2
}

/// The largest ratio of what one sample moves to the noise with which so many means tell at most so many bits about a sample to somebody who knows all others. It is
/// moved by at most two feature vectors, so that C ≤ μ²σ²/4 in place of 1/n.
pub(super) fn largest_ratio(features: usize, bits: f64) -> f64 {
    let features = features as f64;
    let signal = (2.0 * bits / features * std::f64::consts::LN_2).exp_m1();
    2.0 * (features * signal).sqrt()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use stlf_data::Shape;

    use super::super::Embedding;
    use super::super::covariance::{Cholesky, Moments, add_to_diagonal};
    use super::super::privacy::normal;
    use super::super::sketch::{Settings, Sketch, agreed_features};
    use super::*;

    #[test]
    fn base_noise_leaves_three_bits_and_the_largest_ratio_those_that_it_is_for() {
        for (features, samples) in [(16, 40.0), (64, 500.0)] {
            let told = super::bits(features, samples, base_noise(features, samples));
            assert!((told - 3.0 * features as f64).abs() < 1e-9);
            for bits in [0.3, 3.0] {
                // Of one sample, which moves a mean by 2/n, n = 1.
                let deviation = 2.0 / largest_ratio(features, bits);
                assert!((super::bits(features, 1.0, deviation) - bits).abs() < 1e-9);
            }
        }
    }

    /// Bits that means tell of independent samples whose features have this covariance: the mutual information of normal means and the same with noise.
    fn bits(covariance: &[f64], side: usize, samples: u64) -> f64 {
        let noise = base_noise(side, samples as f64).powi(2);
        let scaled = |c: &f64| c / (samples as f64 * noise);
        let mut sum: Vec<f64> = covariance.iter().map(scaled).collect();
        add_to_diagonal(&mut sum, side, 1.0);
        let factor = Cholesky::new(sum, side);
        // The determinant of L·Lᵀ is the square of the product of L's diagonal, by which whitening a unit vector divides its own place.
        let diagonal = |k: usize| {
            let mut unit = vec![0.0; side];
            unit[k] = 1.0;
            factor.whiten(&mut unit);
            -unit[k].log2()
        };
        (0..side).map(diagonal).sum()
    }

    #[test]
    fn rows_that_are_there_ten_times_are_hidden_as_if_they_were_there_once() {
        let shape = Shape { channels: 1, height: 1, width: 4 };
        let means = Settings { privacy: None, ..Settings::means(shape) };
        let width = [means.bandwidth.known()];
        let features =
            agreed_features(&width, shape, Embedding::Inputs, means.features, 5).unwrap();
        let once: Vec<f32> = (0..4 * 160).map(|k| ((k * 7919) % 2003) as f32 / 2003.0).collect();
        let samples = |inputs: &[f32], settings: &Settings| {
            Sketch::new(&features, inputs, settings, |_| [3; 32]).samples
        };
        assert_eq!([&once[..], &once.repeat(10)].map(|rows| samples(rows, &means)), [160; 2]);
        // So the noise is what the theorem asks for 160 independent rows, not for 1,600.
        let told = super::bits(means.features, 160.0, means.noise(160));
        assert!((told - 3.0 * means.features as f64).abs() < 1e-9);
        // With (ε, δ) the number of rows is what it is.
        let noisy = Settings { privacy_required: true, ..Settings::means(shape) };
        assert_eq!(samples(&once.repeat(10), &noisy), 1_600);
    }

    #[test]
    fn a_mean_tells_at_most_three_bits_and_hardly_less_where_features_vary_alike() {
        let shape = Shape { channels: 1, height: 1, width: 12 };
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for width in [0.1, 1.0, 6.0, 100.0] {
            for side in [16, 48, 64] {
                let features =
                    agreed_features(&[Some(width)], shape, Embedding::Inputs, side, 5).unwrap();
                let rows: Vec<f32> = (0..12 * 2_000).map(|_| normal(&mut rng) as f32).collect();
                let mut moments = Moments::new(side);
                features.each(&rows, |vector| moments.see(vector));
                let (_, covariance) = moments.finish();
                for samples in [48, 500, 10_000] {
                    let told = bits(&covariance, side, samples);
                    let most = f64::from(MOST_BITS) * side as f64;
                    assert!(told <= 1.001 * most, "{told} of {most} at {width}");
                    // Waves that are short beside the data are uncorrelated and have all variance that there is.
                    assert!(width > 0.5 || told > 0.9 * most, "{told} of {most}");
                }
            }
        }
    }
}
