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

/// The standard deviation σ of noise with which so many means of so many samples tell no more.
pub(super) fn base_noise(features: usize, samples: u64) -> f64 {
    let signal = f64::from(4_u32.pow(MOST_BITS) - 1);
    (signal * features as f64 * samples.max(1) as f64).sqrt().recip()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use stlf_data::Shape;

    use super::super::Embedding;
    use super::super::covariance::{Cholesky, Moments, add_to_diagonal};
    use super::super::privacy::normal;
    use super::super::sketch::agreed_features;
    use super::*;

    /// Bits that means tell of independent samples whose features have this covariance: the mutual information of normal means and the same with noise.
    fn bits(covariance: &[f64], side: usize, samples: u64) -> f64 {
        let noise = base_noise(side, samples).powi(2);
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
