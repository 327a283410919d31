//! FADA on drawn digits: its weights favour sources whose data are like the target's, whatever the threads.

use std::ops::ControlFlow;

use stlf_data::domains::{Colour, Half, Style, strokes};
use stlf_data::{Class, Shape};
use stlf_lab::baselines::fada::{DeviceData, Fleet, Settings};
use stlf_learn::{Examples, Spec};

fn go_on(_: usize, _: usize) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

struct Digits {
    inputs: Vec<f32>,
    labels: Vec<Class>,
}

fn digits(style: Style, classes: &[Class], samples: usize, seed: u64) -> Digits {
    let set = strokes(style, Half::Train, samples * 4, seed, Colour::Grey).unwrap();
    let of_classes = (0..set.len()).filter(|&i| set.label(i).is_some_and(|l| classes.contains(&l)));
    let chosen: Vec<usize> = of_classes.take(samples).collect();
    assert_eq!(chosen.len(), samples);
    Digits { inputs: set.inputs(&chosen), labels: set.labels(&chosen).unwrap() }
}

/// The weights of all devices but the last on the last.
fn weights(devices: &[Digits], settings: Settings, seed: u64) -> Vec<f64> {
    let spec = Spec::cnn(Shape::grey(28), 10).unwrap();
    fn held(Digits { inputs, labels }: &Digits) -> DeviceData<'_> {
        DeviceData { labeled: Examples { inputs, labels }, inputs }
    }
    let held: Vec<DeviceData<'_>> = devices.iter().map(held).collect();
    let target = devices.len() - 1;
    let sources: Vec<usize> = (0..target).collect();
    let fleet = Fleet { spec: &spec, devices: &held, settings, watch: &go_on };
    let weights = fleet.weights(target, &sources, seed).unwrap();
    assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    weights
}

const ALL: [Class; 10] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

#[test]
fn a_clean_target_prefers_the_clean_source() {
    let devices = [
        digits(Style::Textured, &ALL, 400, 1),
        digits(Style::Clean, &ALL, 400, 2),
        digits(Style::Clean, &ALL, 300, 3),
    ];
    let settings = Settings { rounds: 1, ..Settings::default() };
    let w = weights(&devices, settings, 5);
    assert!(w[1] > 0.7, "{w:?}");
}

#[test]
fn a_target_prefers_the_source_of_its_classes() {
    let devices = [
        digits(Style::Clean, &[4, 5, 6, 7], 300, 1),
        digits(Style::Clean, &[0, 1, 2, 3], 300, 2),
        digits(Style::Clean, &[0, 1, 2, 3], 300, 3),
    ];
    let settings = Settings { rounds: 1, steps: 400, ..Settings::default() };
    let w = weights(&devices, settings, 5);
    assert!(w[1] > 0.7, "{w:?}");
}

/// A few steps: enough to tell whether something takes part.
fn brief() -> Settings {
    Settings { rounds: 2, steps: 20, cluster_samples: 60, ..Settings::default() }
}

fn three_styles() -> [Digits; 4] {
    [
        digits(Style::Textured, &ALL, 100, 1),
        digits(Style::Clean, &ALL, 80, 2),
        digits(Style::Coarse, &ALL, 90, 3),
        digits(Style::Clean, &ALL, 60, 4),
    ]
}

#[test]
fn threads_and_the_targets_labels_change_no_bit() {
    let mut devices = three_styles();
    let alone = |threads: usize, devices: &[Digits]| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| weights(devices, brief(), 7))
    };
    let w = alone(1, &devices);
    assert_eq!(alone(3, &devices), w);
    devices[3].labels.fill(9);
    assert_eq!(alone(2, &devices), w);
    devices[1].labels.fill(9);
    assert_ne!(alone(2, &devices), w, "a source's labels do count");
}

#[test]
fn parts_can_be_switched_off() {
    let devices = three_styles();
    let full = weights(&devices, brief(), 7);
    let no_alignment = weights(&devices, Settings { align: false, ..brief() }, 7);
    let no_disentanglement = weights(&devices, Settings { disentangle: false, ..brief() }, 7);
    assert!(full != no_alignment && full != no_disentanglement);
    let no_weight = Settings { align_weight: 0.0, ..brief() };
    assert_eq!(weights(&devices, no_weight, 7), no_alignment, "no weight is no part");
    assert_ne!(weights(&devices, brief(), 8), full);
    let equal = weights(&devices, Settings { attention: false, ..brief() }, 7);
    assert_eq!(equal, [1.0 / 3.0; 3]);
    let warm = weights(&devices, Settings { temperature: 1e6, ..brief() }, 7);
    assert!(warm.iter().all(|w| (w - 1.0 / 3.0).abs() < 1e-3), "{warm:?}");
}

#[test]
fn data_of_another_network_are_refused() {
    let spec = Spec::cnn(Shape::grey(28), 10).unwrap();
    let good = digits(Style::Clean, &ALL, 10, 1);
    let held = |labels: usize, inputs: usize| DeviceData {
        labeled: Examples { inputs: &good.inputs, labels: &good.labels[..labels] },
        inputs: &good.inputs[..inputs],
    };
    let refused = |source: DeviceData<'_>, target: DeviceData<'_>, settings: Settings| {
        let devices = [source, target];
        let fleet = Fleet { spec: &spec, devices: &devices, settings, watch: &go_on };
        fleet.weights(1, &[0], 1).unwrap_err().to_string()
    };
    let (whole, now) = (held(10, 7840), brief());
    assert_eq!(refused(whole, held(10, 0), now), "data[1]: 0 numbers are not inputs of 1×28×28");
    assert_eq!(
        refused(whole, held(10, 783), now),
        "data[1]: 783 numbers are not inputs of 1×28×28"
    );
    assert!(refused(held(9, 7840), whole, now).starts_with("data[0]: 7840 numbers are not 9"));
    let none = Settings { rounds: 0, ..now };
    assert_eq!(refused(whole, whole, none), "fada.rounds: must be at least 1");
}
