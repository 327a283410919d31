//! Whatever devices hear, and in whatever order: the phase of an epoch goes forward only, and is one that the device can be in.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::common::in_memory_network::Network;
use stlf_method::expectation::Tried;
use stlf_planning::Role;
use stlf_planning::plan::Way;
use stlf_protocol::device::{AsSource, AsTarget, Holdings, Part, Trained};
use stlf_protocol::shared::Fingerprint;
use stlf_protocol::wire::{
    Count, Denial, Envelope, Link, Measured, Message, Offer, PairReport, Plan, Report, Said,
    SignedOffer, SignedPlan, SignedReport, Turn,
};
use stlf_protocol::{Device, Phase, Place, Setup};

use crate::common::{
    ALL, DEVICES, alike, data, devices_with, estimators, going_round, handing_on, setup, untrained,
};
use proptest::prelude::*;

static HOLDINGS: LazyLock<Vec<Holdings>> = LazyLock::new(|| alike(&data()));

/// What each device has learned on its own labels.
static TRAINED: LazyLock<Vec<Option<Trained>>> = LazyLock::new(|| {
    let devices = devices_with(&setup(), HOLDINGS.clone());
    devices.iter().map(|device| device.trained().cloned()).collect()
});

/// One of each estimator, and devices that hand models on or measure their links.
fn setups() -> Vec<Setup> {
    // The second classifier differs from the first in its network only, and takes long.
    let mut estimators = estimators();
    estimators.remove(4);
    let measured = estimators.into_iter().map(|divergence| Setup { divergence, ..setup() });
    let links = Setup { measures_links: true, ..handing_on() };
    measured.chain([handing_on(), links, going_round()]).collect()
}

fn network(setup: &Setup, order: u64) -> Network {
    let mut devices = untrained(setup, HOLDINGS.clone());
    for (device, trained) in devices.iter_mut().zip(TRAINED.iter()) {
        device.resume(trained.clone(), BTreeMap::new(), None);
    }
    let mut network = Network::new(devices, order);
    let joules = |place: Place| ALL.into_iter().filter(move |&to| to != place);
    network.joules = ALL.map(|place| joules(place).map(|to| (to, 3.0)).collect()).to_vec();
    network
}

/// That a device can be in its phase, and that all it tells of itself agrees with that.
fn is_possible(device: &Device) {
    let Some(phase) = device.phase() else { return };
    let (place, plans) = (device.place(), device.place() == ALL[0]);
    match phase {
        Phase::Measuring | Phase::MeasuringLinks(_) | Phase::Unplanned(_) => {}
        Phase::Collecting | Phase::Searching | Phase::Unplannable(_) => assert!(plans),
        Phase::Reported => assert!(!plans && device.missing() == [ALL[0]]),
        Phase::Following(following) => {
            let (role, handed) = (following.plan().role(place), device.handed_from());
            match following.part() {
                Part::Source(AsSource::Awaits(leg) | AsSource::TrainsOn(leg)) => {
                    assert_eq!((role, handed), (Some(Role::Source), Some(leg.from)));
                    let has = Way::ALL.map(|way| device.sent_model(way).is_some());
                    assert_eq!(has, [leg.taken == Way::Second, false]);
                }
                Part::Source(AsSource::Offers) => {
                    assert_eq!(role, Some(Role::Source));
                    let last = following.plan().way_to_targets(place);
                    assert!(
                        Way::ALL.iter().all(|&w| device.sent_model(w).is_some() == (w <= last))
                    );
                }
                Part::Target(step) => {
                    assert_eq!((role, handed), (Some(Role::Target), None));
                    assert_eq!(*step == AsTarget::Awaits, !device.missing().is_empty());
                }
            }
        }
    }
    assert_eq!(device.plan().is_some(), matches!(phase, Phase::Following(_)));
    assert_eq!(device.no_plan().is_some(), matches!(phase, Phase::Unplanned(_)));
    assert!(!device.is_done() || device.missing().is_empty());
}

/// Delivers everything, and looks at all devices after each parcel.
fn run_and_look(network: &mut Network) {
    let before = RefCell::new([(None, 0, 0); DEVICES]);
    let look = |devices: &[Device]| {
        for (device, before) in devices.iter().zip(before.borrow_mut().iter_mut()) {
            is_possible(device);
            let order = device.phase().map_or(0, Phase::order);
            let now = (device.epoch(), order, device.known());
            let is_forward = now.1 >= before.1 && now.2 >= before.2;
            assert!(is_forward || now.0 > before.0, "{now:?} after {before:?}");
            *before = now;
        }
        false
    };
    network.run_until(look).unwrap();
    look(&network.devices);
}

/// What a member may say that does not keep to the protocol, or keeps to it at the wrong time.
fn message() -> impl Strategy<Value = Message> {
    let errors = || Count { errors: 1, samples: 2 };
    let pairs = move |own: Place| {
        let peers = ALL.into_iter().filter(move |&peer| peer != own);
        peers.map(move |peer| PairReport {
            peer,
            measured: Measured::Errors(errors()),
            joules: None,
        })
    };
    let report = move |own: Place| {
        let pairs = pairs(own).collect();
        let report = Report { labeled: 0, unlabeled: 9, source_error: None, pairs };
        let identity = crate::common::identity(own);
        Message::Report(SignedReport::sign(report, 1.into(), Fingerprint::default(), &identity))
    };
    let links = ALL[1..].iter().map(|&to| Link { from: ALL[0], to, weight: 1.0 }).collect();
    let plan = Plan {
        epoch: 1,
        sources: vec![ALL[0]],
        targets: ALL[1..].to_vec(),
        links,
        handovers: Vec::new(),
        witnesses: Vec::new(),
        examinations: Vec::new(),
        forbidden: Vec::new(),
        objective: 0.0,
        optimal: true,
    };
    // The planner itself may say what it has not searched for.
    let signed = SignedPlan::sign(plan, Vec::new(), &crate::common::identity(ALL[0]));
    let unsigned = SignedPlan { signature: vec![0; 64], ..signed.clone() };
    let (any_way, any_place) =
        (prop::sample::select(Way::ALL.to_vec()), prop::sample::select(ALL.to_vec()));
    let offer = (any::<u8>(), any_way, any_place).prop_map(|(k, way, from)| {
        let offer = Offer { way, hash: [k; 32], bytes: u64::from(k) };
        (from, SignedOffer::sign(offer, 1.into(), &crate::common::identity(from)))
    });
    prop_oneof![
        any::<Option<u16>>().prop_map(|b| Message::Bandwidth(b.map(f64::from))),
        (0..12_u64).prop_map(move |number| {
            Message::Turn(Turn { number, said: Said::Errors(errors()) })
        }),
        prop::sample::select(ALL.to_vec()).prop_map(report),
        Just(Message::Plan(signed)),
        Just(Message::Plan(unsigned)),
        Just(Message::NoPlan(Denial::new("nobody has labels".to_owned(), Vec::new()))),
        Just(Message::NoPlan(Denial::new("or so".to_owned(), Vec::new()))),
        (offer, any::<bool>()).prop_map(|((from, signed), is_own)| match is_own {
            true => Message::Offer(signed, Tried::default()),
            false => Message::Believed(from, signed),
        }),
        prop::sample::select(ALL.to_vec()).prop_map(Message::Failed),
        (0..=200_u8).prop_map(Message::TrainedOn),
        Just(Message::Done),
    ]
}

#[test]
fn phases_go_forward_and_every_device_comes_to_its_end() {
    for (k, setup) in setups().iter().enumerate() {
        let mut network = network(setup, k as u64);
        for epoch in 1..3 {
            network.begin(ALL[0], epoch, &ALL);
            run_and_look(&mut network);
            assert_eq!(network.refused, []);
            assert!(
                network.devices.iter().all(Device::is_done) && network.finished.iter().all(|f| *f)
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_said_phases_go_forward(
        kind in 0..8_usize,
        order in any::<u64>(),
        said in proptest::collection::vec((0..DEVICES, 1..DEVICES, message()), 0..24),
    ) {
        let mut network = network(&setups()[kind], order);
        network.begin(ALL[0], 1, &ALL);
        for (from, after, message) in said {
            let bytes = Envelope::new(1, message).to_bytes();
            network.inject(ALL[from], ALL[(from + after) % DEVICES], bytes);
        }
        run_and_look(&mut network);
    }
}
