//! Whether a device's data have changed so much that its fleet should measure and plan again.
//!
//! A device compares its data as they are now with the means that it published last. The distance is the one by which it measures other
//! devices ([`OwnMetric`]), so that a change counts as much as a difference between two devices does: with its means μ′ and covariance Σ′ of
//! now and the published means μ, Δ² = (μ′ − μ)ᵀ(Σ′ + λ)⁻¹(μ′ − μ), less what sampling, and the noise on what was published, add to it on
//! average. Nobody else takes part in that, and nothing is sent for it.
//!
//! What was published last counts, not what was there at the last look: many small changes in one direction add up until they matter.

use super::sketch::{Settings, Sketch};
use super::{Estimate, Features, OwnMetric};

/// Changes of a smaller d̂ do not matter, however many samples show them: half of it, at most 0.05, is what a plan's bounds would change by.
const LEAST: f64 = 0.1;

/// d̂ of a device's data as they are now, all inputs one after the other, from the sketch that it published last by these features and
/// settings, with its interval.
///
/// Samples that are in both make the distance smaller than chance alone would. The interval does not count on that, so that it is too wide
/// rather than too narrow for a table to which rows were added.
pub fn since_published(
    features: &Features,
    inputs: &[f32],
    published: &Sketch,
    settings: &Settings,
) -> Estimate {
    OwnMetric::new(features, inputs, settings.own_ridge()).divergence(published, settings)
}

/// Whether a change [since the last publication](since_published) matters: it is beyond what sampling and noise explain, and large enough for
/// a plan to notice.
pub fn matters(since: Estimate) -> bool {
    since.has_signal() && since.value >= LEAST
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use stlf_data::Shape;

    use super::super::privacy::Privacy;
    use super::super::sketch::agreed_features;
    use super::*;

    const ROW: Shape = Shape { channels: 1, height: 1, width: 8 };

    /// Rows of two kinds around a place; their columns hang together.
    fn rows(samples: usize, at: f32, seed: u64) -> Vec<f32> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut row = || {
            let (kind, common): (f32, f32) =
                (f32::from(u8::from(rng.random::<bool>())), rng.random_range(-1.0..1.0));
            let mut value = || at + kind + common + rng.random_range(-1.0..1.0f32);
            [(); ROW.width].map(|()| value())
        };
        (0..samples).flat_map(|_| row()).collect()
    }

    fn settings(epsilon: Option<f64>) -> Settings {
        let privacy = epsilon.map(|epsilon| Privacy::new(epsilon, 1e-5));
        Settings { privacy, privacy_required: true, ..Settings::means(ROW) }
    }

    fn features(settings: &Settings) -> Features {
        let width = settings.bandwidth.known();
        agreed_features(&[width], ROW, settings.embedding, settings.features, 5).unwrap()
    }

    /// In how many of these tables a change from the one to the other matters.
    fn share(looks: u64, settings: &Settings, tables: impl Fn(u64) -> (Vec<f32>, Vec<f32>)) -> f64 {
        let features = features(settings);
        let has_changed = |&k: &u64| {
            let (before, now) = tables(k);
            let published = Sketch::new(&features, &before, settings, |_| [k as u8; 32]);
            matters(since_published(&features, &now, &published, settings))
        };
        (0..looks).filter(has_changed).count() as f64 / looks as f64
    }

    #[test]
    fn unchanged_distributions_seldom_raise_an_alarm() {
        for (samples, epsilon) in
            [(40, None), (120, None), (500, None), (3_000, None), (500, Some(1.0))]
        {
            let looks = if samples > 1_000 { 60 } else { 400 };
            let alarms = share(looks, &settings(epsilon), |k| {
                (rows(samples, 0.0, 2 * k), rows(samples, 0.0, 2 * k + 1))
            });
            println!("{samples} samples, noise {epsilon:?}: {:.1} % alarms", 100.0 * alarms);
            assert!(alarms <= 0.02, "{samples} {epsilon:?}: {alarms}");
        }
    }

    #[test]
    fn rows_that_are_added_raise_no_alarm_and_neither_does_a_window_that_moves_on() {
        let added = share(400, &settings(None), |k| {
            let all = rows(150, 0.0, k);
            (all[..100 * ROW.width].to_vec(), all)
        });
        let moved_on = share(400, &settings(None), |k| {
            let all = rows(180, 0.0, k);
            (all[..120 * ROW.width].to_vec(), all[60 * ROW.width..].to_vec())
        });
        assert_eq!((added, moved_on), (0.0, 0.0));
    }

    #[test]
    fn a_shift_is_noticed_the_sooner_the_more_samples_there_are() {
        // A column has a deviation of 0.96; these are shifts of all columns, in fifths of that.
        let noticed = |samples: usize, fifths: f32| {
            share(200, &settings(None), |k| {
                (rows(samples, 0.0, 2 * k), rows(samples, fifths * 0.192, 2 * k + 1))
            })
        };
        for samples in [60, 120, 300] {
            let row = [1.0, 2.0, 3.0, 5.0].map(|fifths| noticed(samples, fifths));
            println!("{samples} samples: {row:?} of shifts by 0.2, 0.4, 0.6 and 1 deviations");
            assert!(row.is_sorted(), "{samples}: {row:?}");
        }
        assert!(noticed(60, 5.0) > 0.95);
        assert!(noticed(120, 3.0) > 0.95);
        assert!(noticed(300, 2.0) > 0.95);
    }

    #[test]
    fn many_small_changes_add_up_and_what_no_plan_notices_does_not_matter() {
        let settings = settings(None);
        let features = features(&settings);
        let published = Sketch::new(&features, &rows(200, 0.0, 1), &settings, |_| [0; 32]);
        let now = |step: u64| {
            let inputs = rows(200, 0.1 * step as f32, step);
            matters(since_published(&features, &inputs, &published, &settings))
        };
        let first = (2..20).find(|&step| now(step)).unwrap();
        assert!((3..9).contains(&first), "{first}");
        assert!((first..20).skip(2).all(now));
        // Sixty thousand samples show the smallest change; nobody should plan anew for it.
        let (many, a_little) = (rows(60_000, 0.0, 1), rows(60_000, 0.03, 2));
        let published = Sketch::new(&features, &many, &settings, |_| [0; 32]);
        let since = since_published(&features, &a_little, &published, &settings);
        assert!(since.has_signal() && !matters(since), "{since:?}");
    }
}
