//! Devices with labels that try models of sources for targets without any.

use std::collections::BTreeSet;

use crate::common::in_memory_network::Network;
use stlf_learn::Params;
use stlf_method::divergence::{Settings, sketch};
use stlf_planning::plan::Way;
use stlf_protocol::device::Holdings;
use stlf_protocol::wire::{Envelope, Message, Offer, Plan, Sending, SignedOffer};
use stlf_protocol::{Action, Device, Place, Refusal, Setup};

use crate::common::{
    ALL, SHAPE, alike, data, devices_with, going_round, handing_on, identity, setup,
};

/// Without hand-overs, in a chain, and in a ring, all by means and long enough that models are good.
fn setups() -> [Setup; 3] {
    let means = sketch::Settings::means(SHAPE).with(|s| s.privacy = None);
    let apart = Setup { divergence: Settings::Sketch(means), ..setup() };
    [apart, handing_on(), going_round()].map(|mut setup| {
        setup.training.steps = 1_500;
        setup
    })
}

/// What a device would send that takes every class for the next one.
fn inverted(setup: &Setup, of: &Holdings) -> Params {
    let classes = setup.spec.output().len() as u16;
    let labels = of.labels.iter().map(|label| (label + 1) % classes).collect();
    let mislabeled = Holdings { labels, ..of.clone() };
    devices_with(setup, vec![mislabeled])[0].model().unwrap().clone()
}

/// Alike devices after an epoch.
fn honest(setup: &Setup) -> Network {
    ran(Network::new(devices_with(setup, alike(&data())), 5))
}

/// The same where one sends these an inverted model, with honest numbers.
fn lying(setup: &Setup, liar: Place, to: &[Place]) -> Network {
    let holdings = alike(&data());
    let model = inverted(setup, &holdings[liar.index()]);
    let mut network = Network::new(devices_with(setup, holdings), 5);
    to.iter().for_each(|&to| network.send_instead(liar, to, model.clone()));
    ran(network)
}

/// A network after an epoch.
fn ran(mut network: Network) -> Network {
    network.begin(ALL[0], 1, &ALL);
    network
        .run_until(|devices| {
            let waits = |device: &Device| !device.missing().is_empty();
            assert!(!devices.iter().any(|device| device.is_done() && waits(device)));
            false
        })
        .unwrap();
    assert_eq!(network.refused, []);
    assert!(network.finished.iter().all(|finished| *finished));
    network
}

/// The targets of a source.
fn targets(plan: &Plan, source: Place) -> Vec<Place> {
    plan.links.iter().filter(|link| link.from == source).map(|link| link.to).collect()
}

#[test]
fn every_source_that_sends_has_its_model_tried_and_honest_ones_are_believed() {
    for setup in setups() {
        let network = honest(&setup);
        let plan = network.devices[0].plan().unwrap();
        let examined: BTreeSet<Place> = plan.examinations.iter().map(|one| one.from).collect();
        let senders: BTreeSet<Place> = plan.links.iter().map(|link| link.from).collect();
        assert_eq!(examined, senders);
        assert!(network.forbidden.is_empty());
        assert!(network.devices.iter().all(|device| device.refuses().is_empty()));
    }
}

#[test]
fn a_confident_wrong_model_with_honest_numbers_is_found_out_by_its_examiner() {
    for setup in setups() {
        let honest = honest(&setup);
        let plan = honest.devices[0].plan().unwrap();
        for &Sending { from: liar, to: examiner } in &plan.examinations {
            let receivers = [targets(plan, liar), vec![examiner]].concat();
            let network = lying(&setup, liar, &receivers);
            assert_eq!(network.devices[examiner.index()].refuses(), [liar]);
            assert!(network.forbidden.contains(&(liar, examiner)));
            assert!(network.forbidden.iter().all(|(from, _)| *from == liar));
        }
    }
}

#[test]
fn who_has_a_good_model_tried_and_sends_targets_another_one_is_found_out() {
    for setup in setups() {
        let honest = honest(&setup);
        let plan = honest.devices[0].plan().unwrap();
        let Sending { from: liar, to: examiner } = plan.examinations[0];
        let targets = targets(plan, liar);
        let network = lying(&setup, liar, &targets);
        assert_eq!(network.devices[examiner.index()].refuses(), []);
        for target in targets {
            assert_eq!(network.devices[target.index()].refuses(), [liar]);
            assert!(network.forbidden.contains(&(liar, target)));
        }
    }
}

#[test]
fn nobody_can_say_for_another_what_that_one_offers() {
    let setup = &setups()[0];
    let mut network = honest(setup);
    let link = network.devices[0].plan().unwrap().links[0];
    let (member, source, target) = (ALL[5], link.from, link.to);
    assert!(member != source && member != target);
    let offer = Offer { way: Way::First, hash: [9; 32], bytes: 0 };
    let invented = SignedOffer::sign(offer, 1.into(), &identity(member));
    // What the source signed in another epoch is none of this one either.
    let old = SignedOffer::sign(offer, 2.into(), &identity(source));
    let device = &mut network.devices[target.index()];
    for signed in [invented, old] {
        let said = Envelope::new(1, Message::Believed(source, signed));
        assert_eq!(device.receive(member, &said), Err(Refusal::UnsignedOffer(source)));
    }
    assert_eq!(device.refuses(), []);
    // What it did sign convicts it, whoever shows it.
    let signed = SignedOffer::sign(offer, 1.into(), &identity(source));
    let said = Envelope::new(1, Message::Believed(source, signed));
    let actions = device.receive(member, &said).unwrap();
    assert!(actions.contains(&Action::Distrust(source)), "{actions:?}");
    assert_eq!(device.refuses(), [source]);
    // It is told once.
    assert_eq!(device.receive(member, &said), Ok(Vec::new()));
}

#[test]
fn nobody_tries_models_where_that_is_not_asked_for() {
    let setup = Setup { examiners: false, ..setups()[0].clone() };
    assert!(honest(&setup).devices[0].plan().unwrap().examinations.is_empty());
}
