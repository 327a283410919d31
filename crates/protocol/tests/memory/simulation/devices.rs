//! Small devices: four inputs of three numbers each, and models that nobody trains.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use stlf_config::EnergyModel;
use stlf_data::Shape;
use stlf_learn::{Augment, Descent, Layer, Spec};
use stlf_method::adapt::Adapt;
use stlf_method::combine::Combine;
use stlf_method::divergence::{Settings, sketch};
use stlf_method::local_training::{OwnError, Training};
use stlf_method::student::Schooling;
use stlf_planning::bound::BoundKind;
use stlf_planning::plan::Way;
use stlf_planning::planner::handover::Forms;
use stlf_planning::problem::{Preset, Strangers};
use stlf_protocol::device::{HandedOn, Holdings, Trained};
use stlf_protocol::shared::SharedSettings;
use stlf_protocol::wire::Plan;
use stlf_protocol::{Device, Identity, Participant, Place, Roster, Setup, SignedRoster};

use super::TIMING;

const SHAPE: Shape = Shape { channels: 1, height: 1, width: 3 };

fn setup(hands_on: bool, measures_links: bool) -> Setup {
    let training =
        Training { descent: Descent::default(), augment: Augment::None, steps: 1, averaged: false };
    let mut planner = stlf_planning::planner::Settings::default();
    planner.handovers = hands_on.then_some(Forms::ALL);
    let means = sketch::Settings::means(SHAPE).with(|s| {
        s.features = 4;
        s.privacy = None;
    });
    Setup {
        spec: Spec::new(SHAPE, vec![Layer::Linear { outputs: 2 }]).unwrap(),
        shape: SHAPE,
        training,
        held_out: 0.25,
        unlabeled_as: 1.0,
        balanced: false,
        divergence: Settings::Sketch(means),
        preset: Preset::Balanced,
        weights: Preset::Balanced.weights(),
        bound: BoundKind::Paper,
        calibration: 1.0,
        strangers: Strangers::Planned,
        sends_all: false,
        planner,
        energy: EnergyModel::Ranges,
        model_bits: 1e6,
        liars: 0,
        examiners: true,
        combine: Combine::Predictions,
        adapt: Adapt::Off,
        schooling: Schooling { descent: Descent::default(), steps: 1 },
        measures_links,
        planning: Duration::from_secs(1),
        seed: 1,
    }
}

pub(super) fn identity(place: Place) -> Identity {
    Identity::from_bytes(&[place.index() as u8 + 1; 32])
}

thread_local! {
    /// Signatures take longer than most of what is simulated.
    static ROSTERS: RefCell<BTreeMap<usize, SignedRoster>> = const { RefCell::new(BTreeMap::new()) };
}

fn roster(devices: usize) -> SignedRoster {
    let make = || {
        let owner = Identity::from_bytes(&[200; 32]);
        let all = (0..devices).fold(Roster::new("small", owner.id()), |roster, place| {
            roster.with(&format!("d{place}"), identity(Place::new(place)).id()).unwrap()
        });
        all.sign(&owner).unwrap()
    };
    ROSTERS.with_borrow_mut(|known| known.entry(devices).or_insert_with(make).clone())
}

/// What a machine keeps when its process ends.
#[derive(Clone)]
pub(crate) struct Disk {
    place: Place,
    devices: usize,
    hands_on: bool,
    measures_links: bool,
    pub(crate) epoch: u64,
    pub(crate) plan: Option<Plan>,
    pub(crate) handed_on: BTreeMap<Way, HandedOn>,
    /// Who has lied as the planner, and until when it is done without.
    pub(crate) convicted: BTreeMap<Place, Duration>,
    /// What all are to have the same, and this one may not.
    pub(crate) settings: &'static str,
}

impl Disk {
    /// Of a device whose links are measured, or whose energies are known.
    pub(crate) fn new(place: Place, devices: usize, hands_on: bool, measures_links: bool) -> Disk {
        Disk {
            place,
            devices,
            hands_on,
            measures_links,
            epoch: 0,
            plan: None,
            handed_on: BTreeMap::new(),
            convicted: BTreeMap::new(),
            settings: "calm, storm",
        }
    }

    /// The same machine with nothing on its disk but key, roster and configuration.
    pub(crate) fn emptied(&self) -> Disk {
        let new = Disk::new(self.place, self.devices, self.hands_on, self.measures_links);
        Disk { settings: self.settings, ..new }
    }

    /// A process of this machine that starts now.
    pub(crate) fn start(&self, start: u64, now: Duration) -> Participant {
        let mut device = self.device(0.0);
        let trained = device.trained().cloned();
        device.resume(trained, self.handed_on.clone(), self.plan.clone());
        let settings = [("data.classes".to_owned(), self.settings.to_owned())];
        let settings = SharedSettings::new(settings);
        let roster = roster(self.devices);
        let mut process = Participant::new(device, roster, settings, TIMING, self.epoch, start);
        let rest = |(&place, until): (&Place, &Duration)| (place, until.saturating_sub(now));
        process.recall_convicted(&self.convicted.iter().map(rest).collect());
        process
    }

    /// A device with data that are this far from the usual ones, which has trained.
    pub(crate) fn device(&self, other: f32) -> Device {
        let Disk { place, devices, .. } = *self;
        let (setup, roster) = (setup(self.hands_on, self.measures_links), roster(devices));
        // Every other device has labels, and each two neighbours are alike.
        let value = |k: usize| ((place.index() / 2 + k) as f32 * 0.7 + other).sin();
        let labels = if place.index().is_multiple_of(2) { vec![0, 1, 0, 1] } else { Vec::new() };
        let holdings = Holdings {
            inputs: (0..4 * SHAPE.len()).map(value).collect(),
            unlabeled: 4 - labels.len(),
            labels,
            answers: Vec::new(),
        };
        let has_labels = !holdings.labels.is_empty();
        let others = (0..devices).map(Place::new).filter(|&to| to != place);
        let joules = others.map(|to| (to, 1.0 + to.index() as f64)).collect();
        let list = roster.roster().clone();
        let first = setup.first_model();
        let mut device = Device::new(setup, list, identity(place), holdings, joules).unwrap();
        let error = OwnError { measured: 1, errors: 0, source_error: 0.1 };
        let trained = has_labels.then_some(Trained { model: first, error, trial: None });
        device.resume(trained, BTreeMap::new(), None);
        device
    }
}
