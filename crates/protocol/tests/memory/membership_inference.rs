//! Was this sample among a device's data? What published means tell, with noise and without.

use stlf_method::divergence::gaussian_mechanism::delta;
use stlf_method::divergence::privacy::Privacy;
use stlf_method::divergence::sketch::{Settings, Sketch};

use crate::attack::{Normal, dot, moments_of};
use crate::samples::{Kind, PICTURES, ROWS, flat, wide};

const DELTA: f64 = 1e-5;

/// Devices that are attacked.
const DEVICES: u64 = 8;

/// How much more often an attacker says "in" of what is in than of what is not, at most: (e^ε − 1 + 2δ)/(e^ε + 1).
fn allowed(epsilon: f64) -> f64 {
    (epsilon.exp() - 1.0 + 2.0 * DELTA) / (epsilon.exp() + 1.0)
}

fn settings(kind: &Kind, epsilon: Option<f64>) -> Settings {
    let privacy = epsilon.map(|epsilon| Privacy::new(epsilon, DELTA));
    kind.means().with(|s| {
        s.privacy = privacy;
        s.privacy_required = true;
    })
}

/// A seed of noise for every trial.
fn noise(trial: u64) -> [u8; 32] {
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&trial.to_le_bytes());
    seed
}

fn less(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

#[test]
fn an_attacker_who_knows_all_other_samples_has_the_advantage_that_the_theorem_allows_and_no_more() {
    const TRIALS: u64 = 2_000;
    let features = ROWS.features();
    let mut with = (ROWS.draw)(60, 1);
    let without = with.clone();
    // As unlike the sample in its place as can be.
    with[0].iter_mut().for_each(|x| *x = 9.0);
    let (with, without) = (flat(&with), flat(&without));
    for epsilon in [0.5, 1.0, 4.0] {
        let settings = settings(&ROWS, Some(epsilon));
        let exact = |inputs| {
            let exact = settings.with(|s| {
                s.privacy = None;
                s.base_noise = false;
            });
            wide(&Sketch::new(&features, inputs, &exact, |_| [0; 32]).mean)
        };
        let (a, b) = (exact(&with), exact(&without));
        let towards = less(&a, &b);
        let middle = (dot(&a, &towards) + dot(&b, &towards)) / 2.0;
        // The likelihood ratio of two normal distributions with the same noise: on which side of the middle it is.
        let says_in = |inputs: &[f32], trial: u64| {
            let heard = Sketch::new(&features, inputs, &settings, |_| noise(trial));
            dot(&wide(&heard.mean), &towards) > middle
        };
        let rate = |inputs: &[f32], from: u64| {
            (from..from + TRIALS).filter(|&trial| says_in(inputs, trial)).count() as f64
                / TRIALS as f64
        };
        let advantage = rate(&with, 0) - rate(&without, TRIALS);
        // The best that noise of this ratio allows is δ(0), if the sample moves the mean as far as any can.
        let most = delta(0.0, Privacy::new(epsilon, DELTA).ratio());
        let moved = dot(&towards, &towards).sqrt() / (2.0 / 60.0);
        println!(
            "ε = {epsilon}: advantage {advantage:.3}, at most {most:.3} by its noise and {:.3} by (ε, δ); the sample moves the mean {moved:.2} as \
             far as any can",
            allowed(epsilon)
        );
        let strays = 3.0 * (0.5 / TRIALS as f64).sqrt();
        assert!(advantage <= allowed(epsilon) && advantage <= most + strays);
        assert!(advantage >= moved * most - strays - 0.02, "the attack is weaker than it could be");
    }
}

/// The advantage of an attacker who knows what such samples look like, but none of the device's, with each of these ε: by the likelihood ratio of the means with this
/// sample and without it, both taken for normal.
fn tracing<const N: usize>(
    kind: &Kind,
    normal: &Normal,
    samples: usize,
    epsilons: [Option<f64>; N],
) -> [f64; N] {
    let features = kind.features();
    let mut hits = [[[0.0; 2]; 2]; N];
    for device in 0..DEVICES {
        let [own, others] = [1, 2].map(|k| flat(&(kind.draw)(samples, 100 * k + device)));
        for (epsilon, hits) in epsilons.into_iter().zip(&mut hits) {
            let settings = settings(kind, epsilon);
            let heard = Sketch::new(&features, &own, &settings, |_| noise(device));
            let score = normal.scores(&wide(&heard.mean));
            for (is_in, inputs) in [(1, &own), (0, &others)] {
                features.each(inputs, |values| {
                    // Half of what a sample adds to its own score on average.
                    let says_in = score(&wide(values)) > normal.dimension / (2.0 * samples as f64);
                    hits[is_in][usize::from(says_in)] += 1.0;
                });
            }
        }
    }
    let rate = |of: [f64; 2]| of[1] / (of[0] + of[1]);
    hits.map(|hits| rate(hits[1]) - rate(hits[0]))
}

#[test]
fn an_attacker_who_knows_the_kind_of_samples_is_held_to_the_theorem_by_noise_alone() {
    for kind in [PICTURES, ROWS] {
        let (mean, covariance) = moments_of(&kind.features(), &flat(&(kind.draw)(1_500, 90)));
        let normal = Normal::new(mean, &covariance);
        for samples in [64, 200, 500] {
            let [base, noisy, noisier] =
                tracing(&kind, &normal, samples, [None, Some(4.0), Some(1.0)]);
            println!(
                "{samples} {}: advantage {base:.2} with base noise alone, {noisy:.2} at ε = 4, {noisier:.2} at ε = 1",
                kind.name
            );
            let strays = 3.0 * (0.5 / (DEVICES as f64 * samples as f64)).sqrt();
            assert!(noisier <= delta(0.0, Privacy::new(1.0, DELTA).ratio()) + strays);
            assert!(noisy <= delta(0.0, Privacy::new(4.0, DELTA).ratio()) + strays);
            // Nothing promises this; it says when the documentation is wrong.
            assert!(base < 0.3, "{base}");
        }
    }
}
