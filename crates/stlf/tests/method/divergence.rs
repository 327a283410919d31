//! Divergences of whole fleets: the protocol between two devices, both estimators, and what every
//! measurement promises.

use std::ops::ControlFlow;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stlf_data::domains::{Colour, Half, Style, strokes};
use stlf_data::partition::{Paper, Scheme, deal};
use stlf_data::{Class, Dataset, Shape};
use stlf_learn::Spec;
use stlf_method::divergence::classifier::{self, Message, Party, Reply, Side, estimate_pair};
use stlf_method::divergence::discriminant;
use stlf_method::divergence::privacy::Privacy;
use stlf_method::divergence::sketch::{self, Statistic};
use stlf_method::divergence::{Embedding, Measurement, Settings, measure, measure_pairs};

const SHAPE: Shape = Shape::grey(28);

fn digits(style: Style, samples: usize) -> Dataset {
    strokes(style, Half::Train, samples, 1, Colour::Grey).expect("digits are drawn")
}

/// The inputs of up to `count` samples with these classes, after skipping some.
fn of_classes(data: &Dataset, classes: &[Class], skip: usize, count: usize) -> Vec<f32> {
    let has = |&s: &usize| data.label(s).is_some_and(|label| classes.contains(&label));
    let samples: Vec<usize> = (0..data.len()).filter(has).skip(skip).take(count).collect();
    data.inputs(&samples)
}

/// Two devices with even digits, one with odd ones, one drawn by another hand.
fn fleet_of(samples: usize) -> Vec<Vec<f32>> {
    let drawn = 10 * samples;
    let (clean, coarse) = (digits(Style::Clean, drawn), digits(Style::Coarse, drawn));
    vec![
        of_classes(&clean, &[0, 2, 4], 0, samples),
        of_classes(&clean, &[0, 2, 4], samples, samples),
        of_classes(&clean, &[1, 3, 5], 0, samples),
        of_classes(&coarse, &[0, 2, 4], 0, samples),
    ]
}

fn fleet() -> Vec<Vec<f32>> {
    fleet_of(150)
}

fn measured(devices: &[Vec<f32>], settings: &Settings, seed: u64) -> Measurement {
    let devices: Vec<&[f32]> = devices.iter().map(Vec::as_slice).collect();
    let go_on = &mut |_| ControlFlow::Continue(());
    let found = measure(&devices, SHAPE, settings, seed, go_on).expect("fit settings");
    found.expect("nobody ended it")
}

fn short() -> classifier::Settings {
    classifier::Settings::default().with(|s| s.rounds = 5)
}

/// Every way to measure, small enough for a test.
fn every_method() -> Vec<Settings> {
    let sketch = sketch::Settings::default().with(|s| s.features = 64);
    let discrepancy = sketch.with(|s| s.statistic = Statistic::DISCREPANCY);
    let means = sketch::Settings::means(SHAPE);
    let private = means.with(|s| s.privacy_required = true);
    vec![
        Settings::Classifier(short().with(|s| s.repeats = 2)),
        Settings::Discriminant(discriminant::Settings::default().with(|s| s.features = 64)),
        Settings::Sketch(sketch),
        Settings::Sketch(discrepancy),
        Settings::Sketch(means),
        Settings::Sketch(private),
    ]
}

#[test]
fn threads_change_no_bit() {
    let devices = fleet();
    for settings in every_method() {
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| measured(&devices, &settings, 7))
        };
        let alone = with(1);
        assert_eq!(alone, with(3), "{settings:?}");
        assert_ne!(alone.matrix(), measured(&devices, &settings, 8).matrix(), "{settings:?}");
    }
}

#[test]
fn a_measurement_is_whole_and_within_its_range() {
    let devices = fleet();
    for settings in every_method() {
        let found = measured(&devices, &settings, 7);
        let matrix = found.matrix();
        assert_eq!((found.devices(), found.pairs().len()), (4, 6));
        for (i, j, estimate) in found.pairs() {
            let ends = [0.0, estimate.low, estimate.value, estimate.high, 2.0];
            assert!(ends.is_sorted(), "{estimate:?}");
            assert_eq!(estimate, found.get(j, i));
            assert_eq!((matrix[i * 4 + j], matrix[j * 4 + i]), (estimate.value, estimate.value));
        }
        assert!((0..4).all(|i| matrix[i * 5] == 0.0));
        assert!(found.sent().iter().all(|&bytes| bytes > 0));
        assert_eq!(found.bytes(), found.sent().iter().sum::<u64>());
    }
}

#[test]
fn some_pairs_are_measured_as_among_all() {
    let devices = fleet();
    let inputs: Vec<&[f32]> = devices.iter().map(Vec::as_slice).collect();
    for settings in every_method() {
        let all = measured(&devices, &settings, 7);
        let some = [(0, 3), (1, 2)];
        let mut go_on = |_| ControlFlow::Continue(());
        let found = measure_pairs(&inputs, SHAPE, &settings, &some, 7, &mut go_on).unwrap();
        assert_eq!(found.unwrap(), some.map(|(i, j)| all.get(i, j)));
    }
}

#[test]
fn the_nearest_have_the_divergences_of_all_pairs_and_come_in_order() {
    let devices = fleet();
    let inputs: Vec<&[f32]> = devices.iter().map(Vec::as_slice).collect();
    let everyone = [0, 1, 2, 3];
    for settings in every_method() {
        let Settings::Sketch(sketch) = settings else { continue };
        let all = measured(&devices, &settings, 7);
        let mut go_on = |_| ControlFlow::Continue(());
        let found =
            sketch::nearest(&inputs, SHAPE, &sketch, &everyone, &everyone, 3, 7, &mut go_on);
        let found = found.unwrap().unwrap();
        assert_eq!(found.len(), 12);
        assert!(found.iter().all(|c| c.divergence == all.get(c.from, c.to)), "{sketch:?}");
        let distances = |to: usize| found.iter().filter(move |c| c.to == to);
        for to in everyone {
            assert!(distances(to).is_sorted_by_key(|c| c.divergence.value), "{sketch:?}");
        }
    }
}

#[test]
fn the_observer_sees_everything_and_may_end_it() {
    let devices = fleet();
    let inputs: Vec<&[f32]> = devices.iter().map(Vec::as_slice).collect();
    for settings in every_method() {
        let mut seen = Vec::new();
        let whole = measure(&inputs, SHAPE, &settings, 1, &mut |progress| {
            seen.push(progress.done);
            ControlFlow::Continue(())
        });
        assert!(whole.unwrap().is_some());
        assert_eq!(seen, (1..=seen.len()).collect::<Vec<_>>());
        let ended = measure(&inputs, SHAPE, &settings, 1, &mut |_| ControlFlow::Break(()));
        assert_eq!(ended.unwrap(), None);
    }
}

#[test]
fn every_estimator_sees_what_is_alike_and_what_is_not() {
    let devices = fleet_of(500);
    let methods = [
        Settings::Classifier(classifier::Settings::default()),
        Settings::Discriminant(discriminant::Settings::default()),
        Settings::Sketch(sketch::Settings::default()),
    ];
    for settings in methods {
        let found = measured(&devices, &settings, 3);
        let (alike, digits, hand) = (found.get(0, 1), found.get(0, 2), found.get(0, 3));
        assert!(alike.value < 0.4, "{settings:?}: {alike:?}");
        for other in [digits, hand] {
            assert!(other.value > alike.value + 0.5, "{settings:?}: {other:?} {alike:?}");
            assert!(other.has_signal(), "{settings:?}: {other:?}");
        }
    }
}

#[test]
fn the_sides_of_a_pair_agree_and_refuse_what_is_out_of_turn() {
    let devices = fleet();
    let spec = Spec::mlp(SHAPE, 2).unwrap();
    let settings = short().with(|s| s.repeats = 2);
    let mut first = Party::new(&spec, &settings, Side::First, &devices[0], 5).unwrap();
    let mut second = Party::new(&spec, &settings, Side::Second, &devices[2], 5).unwrap();
    let mut messages = [first.start().unwrap(), second.start().unwrap()];
    assert!(first.start().is_err());
    let (mut sent, mut exchanges) = ([0, 0], 0);
    let done = loop {
        exchanges += 1;
        sent[0] += messages[0].bytes();
        sent[1] += messages[1].bytes();
        match (first.receive(&messages[1]).unwrap(), second.receive(&messages[0]).unwrap()) {
            (Reply::Send(a), Reply::Send(b)) => messages = [a, b],
            (Reply::Done(a), Reply::Done(b)) => break (a, b),
            unequal => panic!("one side is done before the other: {unequal:?}"),
        }
    };
    assert_eq!(done.0, done.1);
    // Five averages and one exchange of errors, twice; a third of 150 samples held out each time.
    assert_eq!(exchanges, 2 * (5 + 1));
    assert_eq!(done.0.map(|count| count.samples), [90, 90]);
    let whole = estimate_pair(&spec, &settings, [&devices[0], &devices[2]], 5).unwrap();
    assert_eq!((whole.counts, whole.sent), (done.0, sent));
    // What is promised beforehand is what is sent.
    let own = settings.architecture.spec(SHAPE).unwrap();
    let counted = estimate_pair(&own, &settings, [&devices[0], &devices[2]], 5).unwrap();
    assert_eq!([settings.bytes(2, SHAPE).unwrap(); 2], counted.sent);

    let mut party = Party::new(&spec, &settings, Side::First, &devices[0], 5).unwrap();
    let own = party.start().unwrap();
    let count = classifier::Count { errors: 1, samples: 2 };
    assert!(party.receive(&Message::Error(count)).is_err());
    let other_network = Spec::mlp(Shape::grey(3), 2).unwrap();
    let foreign = Message::Params(stlf_learn::Params::initial(&other_network, 1));
    assert!(party.receive(&foreign).is_err());
    assert!(party.receive(&own).is_ok());
}

#[test]
fn what_cannot_be_measured_is_refused_by_name() {
    let devices = fleet();
    let (some, none): (&[f32], &[f32]) = (&devices[0], &[]);
    let refused = |devices: &[&[f32]], settings: &Settings| {
        let go_on = &mut |_| ControlFlow::Continue(());
        measure(devices, SHAPE, settings, 0, go_on).err().map(|e| e.to_string())
    };
    let standard = Settings::means(SHAPE);
    let message = "devices[1]: 0 numbers are not samples of 1×28×28".to_owned();
    assert_eq!(refused(&[some, none], &standard), Some(message));
    assert!(refused(&[some, &some[1..]], &standard).is_some());
    let wrong_sketches = [
        sketch::Settings::default().with(|s| s.features = 3),
        sketch::Settings::default().with(|s| s.confidence = 1.0),
        sketch::Settings::default().with(|s| s.statistic = Statistic::Separation { ridge: 0.0 }),
        sketch::Settings::default().with(|s| s.privacy = Some(Privacy::new(1.0, 1e-5))),
    ];
    let ridge = discriminant::Settings::default().with(|s| s.ridge = 0.0);
    assert!(refused(&[some, some], &Settings::Discriminant(ridge)).is_some());
    for settings in wrong_sketches {
        assert!(refused(&[some, some], &Settings::Sketch(settings)).is_some(), "{settings:?}");
    }
    let wrong_classifiers = [
        short().with(|s| s.rounds = 0),
        short().with(|s| s.held_out = 1.0),
        short().with(|s| s.confidence = 0.0),
    ];
    for settings in wrong_classifiers {
        assert!(refused(&[some, some], &Settings::Classifier(settings)).is_some(), "{settings:?}");
    }
}

#[test]
fn a_device_with_one_sample_is_measured_without_a_signal() {
    let mut devices = fleet();
    devices[1].truncate(SHAPE.len());
    let found = measured(&devices, &Settings::means(SHAPE), 2);
    assert!(!found.get(0, 1).has_signal(), "{:?}", found.get(0, 1));
    assert!(found.get(0, 2).has_signal());
}

/// The windows of 32 readings of two channels that a machine's readings are cut into, each channel on the machine's own scale. It turns
/// at two speeds in turn. Where it is locked, every window begins at the same angle.
fn vibration(speed: f64, angle: f64, is_locked: bool, windows: usize, seed: u64) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut channels: [Vec<f64>; 2] = Default::default();
    let turn = std::f64::consts::TAU / 32.0;
    let mut phase = angle;
    for reading in 0..32 * windows {
        let is_worn = reading / 160 % 2 == 1;
        phase += speed * if is_worn { 3.0 } else { 2.0 } * turn;
        phase += if is_locked { 0.0 } else { rng.random_range(-0.1..0.1) };
        channels[0].push(phase.sin() + rng.random_range(-0.3..0.3));
        channels[1].push((phase + 1.0).cos() + rng.random_range(-0.3..0.3));
    }
    for channel in &mut channels {
        let count = channel.len() as f64;
        let mean = channel.iter().sum::<f64>() / count;
        let variance = channel.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        channel.iter_mut().for_each(|x| *x = (*x - mean) / variance.sqrt());
    }
    let window = |k: usize| {
        let of = |channel: &Vec<f64>| channel[32 * k..32 * (k + 1)].to_vec();
        channels.iter().flat_map(of).collect::<Vec<f64>>()
    };
    (0..windows).flat_map(window).map(|x| x as f32).collect()
}

/// Machines of three speeds, three of each; mean divergences from those of the first speed to each, and the largest among themselves.
fn of_machines(embedding: Embedding, is_locked: bool, windows: usize, seed: u64) -> [f64; 4] {
    let shape = Shape { channels: 2, height: 1, width: 32 };
    let settings = sketch::Settings::means_over(embedding, shape);
    let machine = |k: usize| {
        let speed = [1.0, 1.5, 2.0][k / 3];
        vibration(speed, k as f64 * 0.7, is_locked, windows, 100 * seed + k as u64)
    };
    let devices: Vec<Vec<f32>> = (0..9).map(machine).collect();
    let devices: Vec<&[f32]> = devices.iter().map(Vec::as_slice).collect();
    let go_on = &mut |_| ControlFlow::Continue(());
    let found = measure(&devices, shape, &Settings::Sketch(settings), seed, go_on).unwrap();
    let found = found.unwrap();
    let mut sums = [(0.0, 0.0); 3];
    let mut largest = 0.0f64;
    for (i, j, estimate) in found.pairs().filter(|(i, _, _)| *i < 3) {
        let (sum, count) = &mut sums[j / 3];
        (*sum, *count) = (*sum + estimate.value, *count + 1.0);
        largest = if i / 3 == j / 3 { largest.max(estimate.value) } else { largest };
    }
    let [alike, other, further] = sums.map(|(sum, count)| sum / count);
    [alike, other, further, largest]
}

/// A window may begin at any moment: machines of one kind are near, whether or not it is always the same one. Windows as plain vectors are far apart where it
/// is. The table of docs/divergence.md is what this prints.
#[test]
fn windows_of_machines_that_are_alike_are_near() {
    for (is_locked, windows) in [(true, 60), (true, 300), (false, 60)] {
        let mean = |embedding: Embedding| {
            let all = [1, 2, 3, 4, 5].map(|seed| of_machines(embedding, is_locked, windows, seed));
            [0, 1, 2, 3].map(|k| all.iter().map(|one| one[k]).sum::<f64>() / 5.0)
        };
        let [plain, filtered] = [Embedding::Inputs, Embedding::Windows].map(mean);
        println!("locked {is_locked}, {windows} windows: {plain:.2?} {filtered:.2?}");
        let [alike, other, further, largest] = filtered;
        assert!(alike < 0.3 && largest < 0.6, "{filtered:?}");
        assert!(other > 1.5 && further > 1.5, "{filtered:?}");
        assert!(!is_locked || plain[0] > 1.0, "{plain:?}");
    }
}

/// Of the paper's network on MNIST the nearest source has nearly always the target's own digits.
#[test]
fn the_nearest_source_has_the_target_s_digits() {
    let Some(folder) = stlf_testing::data() else { return };
    use stlf_data::domains::{Domain, Options, load};
    let options = Options { folder: Some(folder), ..Options::default() };
    let data = load(&[Domain::Mnist], &options).unwrap();
    let (mut right, mut targets) = (0, 0);
    for seed in 100..104 {
        let partition = deal(&data, &Scheme::Paper(Paper::default()), seed).unwrap();
        let samples: Vec<Vec<usize>> =
            partition.devices.iter().map(|share| share.samples().collect()).collect();
        let inputs: Vec<Vec<f32>> = samples.iter().map(|s| data.inputs(s)).collect();
        let classes = |device: usize| {
            let mut classes = data.labels(&samples[device]).unwrap();
            classes.sort_unstable();
            classes.dedup();
            classes
        };
        let found = measured(&inputs, &Settings::means(SHAPE), seed);
        for target in 5..10 {
            let order = |a: &usize, b: &usize| {
                found.get(*a, target).value.total_cmp(&found.get(*b, target).value)
            };
            let nearest = (0..5).min_by(order).unwrap();
            right += usize::from(classes(nearest) == classes(target));
            targets += 1;
        }
    }
    assert!(right >= 18, "{right} of {targets}");
}
