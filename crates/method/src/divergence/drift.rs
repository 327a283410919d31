//! Whether a device's data have changed so much that its fleet should measure and plan again.
//!
//! A device compares its data as they are now with the means that it published last, by the distance by which it measures other devices
//! ([`OwnMetric`]): what sampling, and the noise on what was published, add to it on average is taken off. Many small changes in one direction add
//! up, since it is the last publication that counts and not the last look.
//!
//! That distance is in deviations of the new data alone. Where these come in clusters of which some are rare, a cluster that happens to be missing
//! makes it far too large: on real sensors it took up to half of unchanged windows for changed ones. So the device also remembers the moments of the data that it
//! published, and asks whether the samples of both, thrown together, could have been divided in any other way just as well: with the covariance S of
//! all n + n′ samples, T = (μ′ − μ)ᵀ(S + λ)⁻¹(μ′ − μ) then has the mean c·tr A and about the variance 2c²·tr A², where c = 1/n + 1/n′ and
//! A = (S + λ)⁻¹S. The mean is exact, whatever the distribution.
//!
//! Nobody else takes part in any of that, and nothing is sent for it.

use super::covariance::{Moments, start};
use super::own_metric::Ridged;
use super::sketch::{Settings, Sketch};
use super::{Estimate, Features, OwnMetric};

/// Changes of a smaller d̂ do not matter, however many samples show them: half of it, at most 0.05, is what a plan's bounds would change by.
const LEAST: f64 = 0.1;

/// So many standard deviations above its mean T is no chance any more.
const BEYOND_CHANCE: f64 = 2.5;

/// What a device goes by until it takes part with other data.
#[derive(Debug, Clone)]
pub struct GoesBy {
    features: Features,
    settings: Settings,
    /// What it published, where that is of other data, or has noise that hides single samples.
    published: Option<Sketch>,
    /// Of its data, which it tells nobody.
    seen: Seen,
}

/// Moments of the features of a device's samples.
#[derive(Debug, Clone)]
struct Seen {
    samples: f64,
    mean: Vec<f64>,
    covariance: Vec<f64>,
}

/// How a device's data have changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// d̂ of the data as they are now from what was published.
    pub divergence: Estimate,
    /// By how many standard deviations T is above what it would be by chance.
    pub deviations: f64,
}

impl Change {
    /// Whether the fleet should measure and plan again: the change is beyond what sampling and noise explain, and large enough for a plan to
    /// notice.
    pub fn matters(&self) -> bool {
        let is_no_chance = self.divergence.has_signal() && self.deviations > BEYOND_CHANCE;
        is_no_chance && self.divergence.value >= LEAST
    }
}

impl GoesBy {
    /// A device with these inputs, which publishes a sketch by these features and settings: `of_inputs` says whether of these inputs. Then the device need not
    /// look through its own base noise.
    pub fn new(
        features: Features,
        settings: Settings,
        published: Sketch,
        inputs: &[f32],
        of_inputs: bool,
    ) -> GoesBy {
        let is_open = of_inputs && settings.privacy_of(published.samples).is_none();
        let published = Some(published).filter(|_| !is_open);
        let seen = Seen::new(&features, inputs);
        GoesBy { features, settings, published, seen }
    }

    /// How the device's data have changed if these are its inputs now.
    ///
    /// Samples that are in both make all distances smaller than chance alone would. That is not counted on, so that rows that are added to a table
    /// seldom raise an alarm.
    pub fn change(&self, inputs: &[f32]) -> Change {
        let GoesBy { features, settings, published, seen } = self;
        let metric = OwnMetric::new(features, inputs, settings.own_ridge());
        let divergence = match published {
            Some(published) => metric.divergence(published, settings),
            None => metric.of_mean(seen.mean.iter().copied(), seen.samples as u64, 0.0, settings),
        };
        Change {
            divergence,
            deviations: deviations(seen, &Seen::new(features, inputs), settings.own_ridge()),
        }
    }
}

impl Seen {
    fn new(features: &Features, inputs: &[f32]) -> Seen {
        let mut moments = Moments::new(features.count());
        features.each(inputs, |vector| moments.see(vector));
        let samples = moments.count().max(1) as f64;
        let (mean, covariance) = moments.finish();
        Seen { samples, mean, covariance }
    }
}

/// By how many standard deviations T is above its mean, where all ways to divide the samples of both are as likely.
fn deviations(before: &Seen, now: &Seen, ridge: f64) -> f64 {
    let side = before.mean.len();
    let all = before.samples + now.samples;
    let [own, other] = [before.samples / all, now.samples / all];
    let mut apart: Vec<f64> = now.mean.iter().zip(&before.mean).map(|(a, b)| a - b).collect();
    let mut covariance: Vec<f64> =
        before.covariance.iter().zip(&now.covariance).map(|(a, b)| own * a + other * b).collect();
    for row in 0..side {
        let of_row = &mut covariance[start(row)..start(row + 1)];
        let between = apart.iter().map(|x| own * other * x * apart[row]);
        of_row.iter_mut().zip(between).for_each(|(sum, between)| *sum += between);
    }
    // Moments are over the number of samples; a variance is over one less.
    covariance.iter_mut().for_each(|x| *x *= all / (all - 1.0));
    let Ridged { factor, kept, kept_squared, .. } = Ridged::new(covariance, side, all, ridge);
    let c = 1.0 / before.samples + 1.0 / now.samples;
    factor.whiten(&mut apart);
    let t: f64 = apart.iter().map(|x| x * x).sum();
    (t - c * kept) / (c * (2.0 * kept_squared).sqrt())
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
        let has_changed = |&k: &u64| {
            let (before, now) = tables(k);
            goes_by(&before, settings, k).change(&now).matters()
        };
        (0..looks).filter(has_changed).count() as f64 / looks as f64
    }

    fn goes_by(inputs: &[f32], settings: &Settings, noise: u64) -> GoesBy {
        let features = features(settings);
        let published = Sketch::new(&features, inputs, settings, |_| [noise as u8; 32]);
        GoesBy::new(features, *settings, published, inputs, true)
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
        assert!(noticed(120, 4.0) > 0.95);
        assert!(noticed(300, 3.0) > 0.95);
    }

    #[test]
    fn many_small_changes_add_up_and_what_no_plan_notices_does_not_matter() {
        let settings = settings(None);
        let before = goes_by(&rows(200, 0.0, 1), &settings, 0);
        let now = |step: u64| before.change(&rows(200, 0.1 * step as f32, step)).matters();
        let first = (2..20).find(|&step| now(step)).unwrap();
        assert!((3..9).contains(&first), "{first}");
        assert!((first..20).skip(2).all(now));
        // Sixty thousand samples show the smallest change; nobody should plan anew for it.
        let (many, a_little) = (rows(60_000, 0.0, 1), rows(60_000, 0.03, 2));
        let change = goes_by(&many, &settings, 0).change(&a_little);
        assert!(change.divergence.has_signal() && change.deviations > BEYOND_CHANCE, "{change:?}");
        assert!(!change.matters(), "{change:?}");
    }

    /// Rows in five tight clusters, of which some are rare.
    fn clusters(samples: usize, seed: u64) -> Vec<f32> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut row = || {
            let drawn = rng.random_range(0..100);
            let kind = [50, 80, 95, 99].iter().filter(|&&k| drawn >= k).count();
            let mut value =
                |column: usize| ((column + 3 * kind) % 5) as f32 + rng.random_range(-0.1..0.1f32);
            std::array::from_fn::<f32, { ROW.width }, _>(&mut value)
        };
        (0..samples).flat_map(|_| row()).collect()
    }

    #[test]
    fn a_rare_kind_of_rows_that_is_missing_raises_no_alarm() {
        let settings = settings(None);
        let mut by_own_deviations = 0;
        let alarms = (0..300).filter(|&k| {
            let change =
                goes_by(&clusters(120, 2 * k), &settings, 0).change(&clusters(120, 2 * k + 1));
            by_own_deviations += u32::from(change.divergence.has_signal());
            change.matters()
        });
        let alarms = alarms.count();
        println!("{alarms} of 300 alarms; {by_own_deviations} by the new data's deviations alone");
        assert!(alarms <= 6 && by_own_deviations > 15, "{alarms} {by_own_deviations}");
    }

    #[test]
    fn t_is_as_its_definition_has_it_and_its_mean_is_exact() {
        // All ways to divide five samples of one feature pair into two and three: the mean of T over them is c·tr A.
        let settings = Settings { features: 2, ..settings(None) };
        let features = features(&settings);
        let inputs = rows(5, 0.0, 3);
        let of = |chosen: &[usize]| {
            let rows = chosen.iter().flat_map(|&k| &inputs[k * ROW.width..(k + 1) * ROW.width]);
            Seen::new(&features, &rows.copied().collect::<Vec<f32>>())
        };
        let mut all = Vec::new();
        for a in 0..5 {
            for b in a + 1..5 {
                let rest: Vec<usize> = (0..5).filter(|k| ![a, b].contains(k)).collect();
                all.push(deviations(&of(&[a, b]), &of(&rest), 0.03));
            }
        }
        assert_eq!(all.len(), 10);
        assert!(all.iter().sum::<f64>().abs() < 5e-3, "{all:?}");
        assert!(all.iter().any(|d| d.abs() > 0.3));
    }
}
