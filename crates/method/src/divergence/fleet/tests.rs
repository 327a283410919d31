use super::*;
use crate::divergence::privacy::{Privacy, normal};
use crate::divergence::separation::from_separation;
use crate::divergence::sketch::Bandwidth;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn settings(features: usize, statistic: Statistic) -> Settings {
    Settings { features, statistic, ..Settings::default() }
}

/// Devices whose features are normal with a covariance of one, `apart` from each other along the first axis.
fn sketches(count: usize, side: usize, samples: u64, apart: f64, seed: u64) -> Vec<Sketch> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let identity: Vec<f32> =
        (0..side).flat_map(|r| (0..=r).map(move |c| if r == c { 1.0 } else { 0.0 })).collect();
    (0..count)
        .map(|k| {
            let mut mean: Vec<f32> =
                (0..side).map(|_| (normal(&mut rng) / (samples as f64).sqrt()) as f32).collect();
            mean[0] += (k as f64 * apart) as f32;
            Sketch { samples, mean, covariance: Some(identity.clone()) }
        })
        .collect()
}

#[test]
fn separation_measures_deviations_whatever_the_units() {
    let statistic = Statistic::Separation { ridge: 1e-9 };
    let settings = settings(8, statistic);
    let plain = sketches(3, 8, 1_000_000, 1.0, 1);
    let mut scaled = plain.clone();
    for sketch in &mut scaled {
        sketch.mean.iter_mut().for_each(|m| *m *= 0.01);
        sketch.covariance.iter_mut().flatten().for_each(|c| *c *= 1e-4);
    }
    let (a, b) = (Fleet::new(&plain, &settings).unwrap(), Fleet::new(&scaled, &settings).unwrap());
    for (i, j, apart) in [(0, 1, 1.0), (1, 2, 1.0), (0, 2, 4.0)] {
        let (x, y) = (a.divergence(i, j), b.divergence(i, j));
        assert!((x.value - from_separation(apart)).abs() < 0.01, "{x:?}");
        assert!((x.value - y.value).abs() < 1e-3);
        assert!(x.low < x.value && x.value < x.high && x.has_signal());
        assert_eq!(x, a.divergence(j, i));
    }
}

#[test]
fn intervals_hold_what_they_promise() {
    let settings = settings(32, Statistic::Separation { ridge: 1e-9 });
    for apart in [0.0, 0.2, 1.0] {
        let truth = from_separation(apart * apart);
        let (mut inside, mut signals, mut total) = (0, 0, 0);
        for seed in 0..400 {
            let fleet = Fleet::new(&sketches(2, 32, 500, apart, seed), &settings).unwrap();
            let estimate = fleet.divergence(0, 1);
            inside += usize::from((estimate.low..=estimate.high).contains(&truth));
            signals += usize::from(estimate.has_signal());
            total += 1;
        }
        assert!(inside as f64 >= 0.92 * total as f64, "{apart}: {inside} of {total}");
        // Alike is found different in one of forty cases, half of one in twenty.
        assert!(apart > 0.0 || signals as f64 <= 0.05 * total as f64, "{signals} of {total}");
        assert!(apart < 1.0 || signals == total);
    }
}

#[test]
fn few_covariances_stand_for_all() {
    let settings = settings(8, Statistic::SEPARATION);
    let all = sketches(6, 8, 1000, 0.5, 4);
    let mut few = all.clone();
    few[2..].iter_mut().for_each(|sketch| sketch.covariance = None);
    let (a, b) = (Fleet::new(&all, &settings).unwrap(), Fleet::new(&few, &settings).unwrap());
    assert!((a.divergence(3, 5).value - b.divergence(3, 5).value).abs() < 1e-3);
    few.iter_mut().for_each(|sketch| sketch.covariance = None);
    assert!(Fleet::new(&few, &settings).is_err());
}

#[test]
fn what_does_not_fit_is_refused() {
    let settings = settings(8, Statistic::SEPARATION);
    let good = sketches(2, 8, 10, 1.0, 5);
    let with = |change: &dyn Fn(&mut Sketch)| {
        let mut sketches = good.clone();
        change(&mut sketches[1]);
        Fleet::new(&sketches, &settings).err().map(|e| e.to_string())
    };
    assert_eq!(with(&|_| ()), None);
    let expected = "sketches[1]: 7 numbers, not 8".to_owned();
    assert_eq!(with(&|s| s.mean.truncate(7)), Some(expected));
    assert!(with(&|s| s.mean[3] = f32::NAN).is_some());
    assert!(with(&|s| s.samples = 0).is_some());
    assert!(with(&|s| s.covariance = Some(vec![1.0])).is_some());
}

#[test]
fn devices_without_any_spread_are_alike() {
    let same = Sketch { samples: 5, mean: vec![0.5; 4], covariance: Some(vec![0.0; 10]) };
    let fleet = Fleet::new(&[same.clone(), same], &settings(4, Statistic::SEPARATION)).unwrap();
    let estimate = fleet.divergence(0, 1);
    assert_eq!((estimate.value, estimate.has_signal()), (0.0, false));
}

#[test]
fn noise_is_taken_out_of_the_distance_again() {
    let settings = Settings {
        privacy: Some(Privacy::new(1.0, 1e-5)),
        privacy_required: true,
        bandwidth: Bandwidth::Fixed(1.0),
        ..settings(64, Statistic::DISCREPANCY)
    };
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let noise = settings.noise(1000);
    let mut squared = 0.0;
    for _ in 0..200 {
        let mut noisy = || {
            let mean = (0..64).map(|_| (0.1 + noise * normal(&mut rng)) as f32).collect();
            Sketch { samples: 1000, mean, covariance: None }
        };
        let fleet = Fleet::new(&[noisy(), noisy()], &settings).unwrap();
        let distance: f64 =
            (0..64).map(|k| f64::from(fleet.point(0)[k] - fleet.point(1)[k]).powi(2)).sum();
        squared += distance - fleet.excess[0] - fleet.excess[1];
    }
    // Unbiased up to the sampling term, which the made-up means lack.
    let sampling = 2.0 * (1.0 - 0.64) / 999.0;
    assert!((squared / 200.0 + sampling).abs() < 0.2 * 2.0 * 64.0 * noise * noise);
}

proptest! {
    #[test]
    fn the_nearest_are_those_of_a_full_sort(
        seed in 0..1000u64, devices in 2..150usize, count in 1..8usize,
    ) {
        let settings = settings(6, Statistic::SEPARATION);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut sketches = sketches(devices, 6, 50, 0.0, seed);
        sketches.iter_mut().for_each(|s| s.samples = rng.random_range(20..2000));
        let fleet = Fleet::new(&sketches, &settings).unwrap();
        let senders: Vec<usize> = (0..devices).filter(|k| k % 3 != 1).collect();
        let receivers: Vec<usize> = (0..devices).filter(|k| k % 2 == 0).collect();
        let found = fleet.nearest(&senders, &receivers, count);
        for &to in &receivers {
            let unbiased = |from: usize| {
                let pair = fleet.point(from).iter().zip(fleet.point(to));
                let squared: f64 = pair.map(|(a, b)| f64::from(a - b).powi(2)).sum();
                squared - fleet.excess[from] - fleet.excess[to]
            };
            let mut all: Vec<f64> =
                senders.iter().filter(|&&from| from != to).map(|&from| unbiased(from)).collect();
            all.sort_unstable_by(f64::total_cmp);
            all.truncate(count);
            let of_receiver: Vec<&Candidate> = found.iter().filter(|c| c.to == to).collect();
            prop_assert_eq!(of_receiver.len(), all.len());
            for (candidate, expected) in of_receiver.iter().zip(all) {
                prop_assert!((unbiased(candidate.from) - expected).abs() < 1e-3);
                prop_assert_eq!(candidate.divergence, fleet.divergence(candidate.from, to));
            }
        }
    }
}
