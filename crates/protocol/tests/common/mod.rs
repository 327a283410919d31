//! A small fleet for tests: six devices with drawn digits.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "tests")]

pub(crate) mod in_memory_network;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use stlf_config::EnergyModel;
use stlf_data::domains::{Colour, Half, Style, strokes};
use stlf_data::partition::{All, ClassesPerDevice, Paper, Scheme, deal};
use stlf_data::{Dataset, Shape};
use stlf_learn::{Augment, Descent, Spec};
use stlf_method::adapt::Adapt;
use stlf_method::combine::Combine;
use stlf_method::divergence::classifier::{self, Architecture};
use stlf_method::divergence::privacy::Privacy;
use stlf_method::divergence::sketch;
use stlf_method::divergence::{Settings, discriminant};
use stlf_method::energy::Ranges;
use stlf_method::local_training::Training;
use stlf_method::seeds::Draw;
use stlf_method::student::Schooling;
use stlf_planning::bound::BoundKind;
use stlf_planning::energy::PAPER_MODEL_BITS;
use stlf_planning::plan::Way;
use stlf_planning::planner;
use stlf_planning::planner::handover::Forms;
use stlf_planning::problem::{Preset, Strangers};
use stlf_protocol::device::Holdings;
use stlf_protocol::divergence_protocol::{Exchange, Step};
use stlf_protocol::wire::Message;
use stlf_protocol::{Device, Identity, Place, Refusal, Roster, Setup, SignedRoster};

use self::in_memory_network::Network;

pub(crate) const DEVICES: usize = 6;
pub(crate) const SEED: u64 = 5;
pub(crate) const SHAPE: Shape = Shape::grey(28);

/// One of each estimator, small.
pub(crate) fn estimators() -> Vec<Settings> {
    let sketch = sketch::Settings::default().with(|s| s.features = 32);
    let privacy = Some(Privacy::new(1.0, 1e-5));
    let classifier = classifier::Settings::default().with(|s| {
        s.architecture = Architecture::Hidden;
        s.rounds = 4;
        s.repeats = 2;
    });
    let short = classifier::Settings::published().with(|s| {
        s.rounds = 2;
        s.steps = 2;
    });
    vec![
        divergence(),
        Settings::Sketch(sketch),
        Settings::Sketch(sketch::Settings::means(SHAPE).with(|s| {
            s.privacy = privacy;
            s.privacy_required = true;
        })),
        Settings::Classifier(classifier),
        Settings::Classifier(short),
        Settings::Sketch(sketch::Settings::means(SHAPE)),
    ]
}

/// The same without noise, which is each device's own secret, unlike the simulator's.
pub(crate) fn without_noise() -> impl Iterator<Item = Settings> {
    let has_noise = |s: &Settings| matches!(s, Settings::Sketch(s) if s.privacy_required);
    let bare = |settings| match settings {
        Settings::Sketch(s) => Settings::Sketch(s.with(|s| s.base_noise = false)),
        others => others,
    };
    estimators().into_iter().filter(move |settings| !has_noise(settings)).map(bare)
}

fn divergence() -> Settings {
    let default = discriminant::Settings::default();
    Settings::Discriminant(default.with(|s| s.features = 64))
}

pub(crate) fn setup() -> Setup {
    Setup {
        spec: Spec::mlp(SHAPE, 10).unwrap(),
        shape: SHAPE,
        training: Training {
            descent: Descent::default(),
            augment: Augment::None,
            steps: 300,
            averaged: false,
        },
        held_out: 0.2,
        unlabeled_as: 1.0,
        balanced: true,
        divergence: divergence(),
        preset: Preset::Balanced,
        weights: Preset::Balanced.weights(),
        bound: BoundKind::Pooled,
        calibration: 1.0,
        strangers: Strangers::Planned,
        sends_all: false,
        planner: planner::Settings::default(),
        energy: EnergyModel::Ranges,
        model_bits: PAPER_MODEL_BITS,
        liars: 0,
        examiners: true,
        combine: Combine::Predictions,
        adapt: Adapt::Off,
        schooling: Schooling { descent: Descent::default(), steps: 300 },
        measures_links: false,
        planning: Duration::from_secs(60),
        seed: SEED,
    }
}

pub(crate) fn identity(place: Place) -> Identity {
    Identity::from_bytes(&[place.index() as u8 + 1; 32])
}

pub(crate) fn owner() -> Identity {
    Identity::from_bytes(&[200; 32])
}

pub(crate) fn roster() -> Roster {
    ALL.into_iter().fold(Roster::new("six", owner().id()), |roster, place| {
        roster.with(&format!("d{}", place.index() + 1), identity(place).id()).unwrap()
    })
}

pub(crate) fn signed() -> SignedRoster {
    roster().sign(&owner()).unwrap()
}

pub(crate) fn data() -> Dataset {
    strokes(Style::Clean, Half::Train, 3_000, 1, Colour::Grey).unwrap()
}

pub(crate) fn holdings(data: &Dataset) -> Vec<Holdings> {
    dealt(data, Paper { devices: DEVICES, scale: 0.08, ..Paper::default() })
}

/// Devices that are all alike, the first half with labels.
pub(crate) fn alike(data: &Dataset) -> Vec<Holdings> {
    let (devices, scale, alpha) = (DEVICES, 0.08, 100.0);
    let classes_per_device = ClassesPerDevice::All(All::All);
    dealt(data, Paper { devices, scale, alpha, classes_per_device, ..Paper::default() })
}

/// What has such devices hand their models on, one after the other.
pub(crate) fn handing_on() -> Setup {
    handing_on_in(Forms { ring: 0, ..Forms::ALL })
}

/// What has such devices hand their models on in a ring.
pub(crate) fn going_round() -> Setup {
    handing_on_in(Forms { longest: 0, ..Forms::ALL })
}

fn handing_on_in(forms: Forms) -> Setup {
    let means = sketch::Settings::means(SHAPE).with(|s| s.features = 32);
    let mut planner = planner::Settings::default();
    planner.handovers = Some(forms);
    Setup { planner, divergence: Settings::Sketch(means), ..setup() }
}

/// Devices of which the first three go round a ring.
pub(crate) fn in_a_ring() -> Vec<Device> {
    devices_with(&going_round(), alike(&data()))
}

/// Devices of which the first hands its model to the second, the second to the third, and that one to the others.
pub(crate) fn in_a_row() -> Vec<Device> {
    devices_with(&handing_on(), alike(&data()))
}

/// The sources of that ring, from the first to the last.
pub(crate) fn the_ring() -> Vec<Place> {
    let mut network = Network::new(in_a_ring(), 1);
    network.begin(ALL[0], 1, &ALL);
    network.run_until(|devices| devices[0].plan().is_some()).unwrap();
    let plan = network.devices[0].plan().unwrap();
    let legs = plan.legs();
    let second = legs.iter().filter(|leg| leg.taken == Way::Second);
    let ring: Vec<Place> = second.map(|leg| leg.to).collect();
    assert_eq!((ring.len(), legs.len()), (3, 5), "{plan:?}");
    ring
}

pub(crate) fn dealt(data: &Dataset, scheme: Paper) -> Vec<Holdings> {
    let dealt = deal(data, &Scheme::Paper(scheme), SEED).unwrap();
    let hold = |share: &stlf_data::partition::Share| Holdings {
        inputs: data.inputs(&share.samples().collect::<Vec<_>>()).into(),
        labels: data.labels(&share.labeled).unwrap(),
        unlabeled: share.unlabeled.len(),
        answers: Vec::new(),
    };
    dealt.devices.iter().map(hold).collect()
}

pub(crate) fn energies() -> Vec<f64> {
    Ranges::default().draw(DEVICES, Draw::Energy.seed(SEED, 0))
}

/// All devices, trained.
pub(crate) fn devices() -> Vec<Device> {
    devices_of(&setup())
}

/// All devices with a setup of their own, trained.
pub(crate) fn devices_of(setup: &Setup) -> Vec<Device> {
    devices_with(setup, holdings(&data()))
}

/// All devices with these data, trained.
pub(crate) fn devices_with(setup: &Setup, holdings: Vec<Holdings>) -> Vec<Device> {
    let mut devices = untrained(setup, holdings);
    for device in &mut devices {
        assert!(device.train(&mut || ControlFlow::Continue(())).unwrap());
    }
    devices
}

/// The same before they have trained.
pub(crate) fn untrained(setup: &Setup, holdings: Vec<Holdings>) -> Vec<Device> {
    let energy = energies();
    let device = |(place, holdings): (Place, Holdings)| {
        let others = ALL.into_iter().filter(|&to| to != place);
        let joules: BTreeMap<Place, f64> =
            others.map(|to| (to, energy[place.index() * DEVICES + to.index()])).collect();
        Device::new(setup.clone(), roster(), identity(place), holdings, joules).unwrap()
    };
    ALL.into_iter().zip(holdings).map(device).collect()
}

/// The same row with so many steps on a model that is handed over, in random views, so that they are not too many; their own trainings were short.
pub(crate) fn in_a_row_for_long(steps: usize) -> Vec<Device> {
    in_a_row_that_trains_on(Training { steps, augment: Augment::Shift, ..handing_on().training })
}

/// The same row, which trains in this way on a model that is handed over, but not on its own.
pub(crate) fn in_a_row_that_trains_on(training: Training) -> Vec<Device> {
    let mut devices = untrained(&Setup { training, ..handing_on() }, alike(&data()));
    for (device, short) in devices.iter_mut().zip(in_a_row()) {
        let own = short.trained().cloned();
        device.resume(own, BTreeMap::new(), None);
    }
    devices
}

/// The places of all devices.
pub(crate) const ALL: [Place; DEVICES] =
    [Place::new(0), Place::new(1), Place::new(2), Place::new(3), Place::new(4), Place::new(5)];

/// Does at once what an exchange asks for, and what it asks for upon that; what it says.
pub(crate) fn computed(
    exchange: &mut Exchange,
    steps: Vec<Step>,
) -> Result<Vec<(Place, Message)>, Refusal> {
    let (mut said, mut left) = (Vec::new(), steps);
    while !left.is_empty() {
        for step in std::mem::take(&mut left) {
            match step {
                Step::Say(to, message) => said.push((to, message)),
                Step::Compute(work) => {
                    let found = work.run(&mut |_| ControlFlow::Continue(())).unwrap();
                    left.extend(exchange.computed(found)?);
                }
            }
        }
    }
    Ok(said)
}
