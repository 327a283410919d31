//! Trials: each source tries what it is handed, the results go along with the model, and a target believes only those of its route.

use std::collections::BTreeMap;

use crate::common::in_memory_network::Network;
use stlf_learn::evaluate::predict;
use stlf_method::expectation::{Expected, Received, Trial, Tried, expected};
use stlf_planning::plan::Way;
use stlf_protocol::wire::{Envelope, Message, Offer, SignedOffer};
use stlf_protocol::{Device, Place, Refusal};

use crate::common::{
    ALL, alike, data, devices_with, handing_on, identity, in_a_ring, in_a_row, the_ring,
};

/// What a device is taken to have offered in the first epoch.
fn offered(by: Place) -> SignedOffer {
    let offer = Offer { way: Way::First, hash: [0; 32], bytes: 0 };
    SignedOffer::sign(offer, 1.into(), &identity(by))
}

fn ran(devices: Vec<Device>, inject: impl FnOnce(&mut Network)) -> Network {
    let mut network = Network::new(devices, 7);
    network.begin(ALL[0], 1, &ALL);
    inject(&mut network);
    network.run().unwrap();
    assert!(network.finished.iter().all(|done| *done));
    network
}

/// A target of a plan, and the one that sends to it.
fn target(network: &Network) -> (Place, Place) {
    let plan = network.devices[0].plan().unwrap();
    let link = plan.links[0];
    assert_eq!(plan.incoming(link.to).count(), 1);
    (link.to, link.from)
}

/// What a device expects that received a model with these trials.
fn expects(device: &Device, divergence: f64, tried: Tried) -> Option<Expected> {
    let received = [Received { weight: 1.0, divergence, tried }];
    Some(expected(device.outcome()?, &received)?.0)
}

#[test]
fn a_source_tries_what_it_is_handed_on_all_its_labels() {
    let network = ran(in_a_row(), |_| ());
    let (setup, holdings) = (handing_on(), alike(&data()));
    for (from, to) in [(0, 1), (1, 2)] {
        let handed = network.devices[from].sent_model(Way::First).unwrap();
        let labels = &holdings[to].labels;
        let inputs = &holdings[to].inputs[..labels.len() * setup.shape.len()];
        let trial = Trial::of(&predict(&setup.spec, &handed, inputs), labels);
        let made = &network.devices[to].handed_on()[&Way::First];
        assert!(trial.is_some() && made.as_handed == trial, "{trial:?} {made:?}");
        assert_ne!(made.as_sent, trial);
    }
    let along = |place: usize| network.devices[place].tried(Way::First).on_route;
    assert!(along(0).is_empty());
    assert!(along(1).keys().eq(&[1]) && along(2).keys().eq(&[1, 2]));
    assert_eq!(along(2)[&1], along(1)[&1]);
}

#[test]
fn a_target_of_a_ring_hears_of_all_its_sources_but_the_first() {
    let (network, ring) = (ran(in_a_ring(), |_| ()), the_ring());
    let (target, sender) = target(&network);
    assert_eq!(sender, ring[ring.len() - 1]);
    let tried = network.devices[sender.index()].tried(Way::Second);
    let mut others: Vec<usize> = ring[1..].iter().map(|place| place.index()).collect();
    others.sort_unstable();
    assert!(tried.on_route.keys().copied().eq(others));
    let device = &network.devices[target.index()];
    let has = device.combined().unwrap().expected.unwrap();
    // The divergence is the only number that is not known here.
    let matches = |thousandth: u32| {
        let at = expects(device, f64::from(thousandth) / 1_000.0, tried.clone()).unwrap();
        (at.accuracy - has.accuracy).abs() < 1e-4 && (at.low - has.low).abs() < 0.02
    };
    assert!((0..=2_000).any(matches), "{has:?}");
    let without = expects(device, 0.0, Tried::default()).unwrap();
    assert!((without.accuracy - has.accuracy).abs() > 1e-4, "{without:?} {has:?}");
}

#[test]
fn trials_of_who_is_not_on_the_route_count_for_nothing() {
    let honest = ran(in_a_row(), |_| ());
    let (target, sender) = target(&honest);
    let tried = honest.devices[sender.index()].tried(Way::First);
    let perfect = Trial { labels: 300, errors: 3, doubt: 0.02 };
    let others = [ALL[3], ALL[4]].map(|place| (place.index(), perfect));
    assert!(others.iter().all(|(at, _)| !tried.on_route.contains_key(at)));
    let lie = Tried {
        on_route: tried.on_route.clone().into_iter().chain(others).collect::<BTreeMap<_, _>>(),
        ..tried.clone()
    };
    // Said too early, so that it is heard before what the sender says itself.
    let told = |tried: Tried| {
        ran(in_a_row(), |network| {
            let said = Envelope::new(1, Message::Offer(offered(sender), tried));
            network.inject(sender, target, said.to_bytes());
        })
    };
    let (lying, alike) = (told(lie), told(tried.clone()));
    // What it says after that is another thing.
    assert_eq!(lying.refused, [(target, Refusal::Twice(sender))]);
    let expected =
        |network: &Network| network.devices[target.index()].combined().unwrap().expected.unwrap();
    assert_eq!(expected(&lying), expected(&alike));
    let without = told(Tried { on_route: BTreeMap::new(), ..tried });
    assert_ne!(expected(&without), expected(&alike), "those of the route count");
}

#[test]
fn a_trial_at_a_device_that_takes_no_part_is_refused() {
    let mut network = ran(in_a_row(), |_| ());
    let (target, sender) = target(&network);
    let trial = Trial { labels: 300, errors: 3, doubt: 0.02 };
    for at in [ALL.len(), usize::MAX] {
        let tried = Tried { at_sender: None, on_route: BTreeMap::from([(at, trial)]) };
        let said = Envelope::new(1, Message::Offer(offered(sender), tried));
        let refused = network.devices[target.index()].receive(sender, &said);
        assert_eq!(refused, Err(Refusal::Unfit("a trial at a device that does not take part")));
    }
}

#[test]
fn only_who_is_far_from_all_sources_is_told_that_nobody_is_near() {
    let strangers = |shift: f32| -> Vec<bool> {
        let mut holdings = alike(&data());
        for of_target in &mut holdings[3..] {
            of_target.inputs = of_target.inputs.iter().map(|x| x + shift).collect();
        }
        let network = ran(devices_with(&handing_on(), holdings), |_| ());
        network.devices.iter().filter_map(Device::combined).map(|c| c.is_stranger).collect()
    };
    assert_eq!(strangers(0.0), [false; 3]);
    assert_eq!(strangers(5.0), [true; 3]);
}
