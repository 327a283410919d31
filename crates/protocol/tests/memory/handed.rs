//! Sources that do not believe the model that is handed to them: one of their ring, or of their chain, has its labels wrong.

use crate::common::in_memory_network::Network;
use stlf_data::Class;
use stlf_method::expectation::Tried;
use stlf_planning::plan::Way;
use stlf_protocol::{Device, Place, Setup};

use crate::common::{ALL, alike, data, devices_with, going_round, handing_on, the_ring};

const CLASSES: Class = 10;

/// One epoch of devices that are alike, where the one at this place has given every sample the class after its own.
fn ran_with_a_liar(setup: &Setup, liar: Place, order: u64) -> Network {
    let mut holdings = alike(&data());
    holdings[liar.index()].labels.iter_mut().for_each(|label| *label = (*label + 1) % CLASSES);
    let mut network = Network::new(devices_with(setup, holdings), order);
    network.begin(ALL[0], 1, &ALL);
    network.run().unwrap();
    assert!(network.finished.iter().all(|done| *done), "{:?}", network.finished);
    assert_eq!(network.refused, []);
    network
}

/// The share of a target's samples that it got right.
fn accuracy(device: &Device, truth: &[Class]) -> f64 {
    device.outcome().unwrap().accuracy(truth)
}

/// The true classes of what a target holds, by what it ends with where nobody lies: near enough to tell right from wrong.
fn honest_classes(setup: &Setup, target: Place) -> Vec<Class> {
    let mut network = Network::new(devices_with(setup, alike(&data())), 1);
    network.begin(ALL[0], 1, &ALL);
    network.run().unwrap();
    assert!(network.devices.iter().all(|device| device.refuses().is_empty()));
    network.devices[target.index()].outcome().unwrap().classes().collect()
}

#[test]
fn a_wrong_model_goes_no_further_round_a_ring_than_to_the_next_source() {
    let (ring, setup) = (the_ring(), going_round());
    let [before, liar, after] = [ring[0], ring[1], ring[2]];
    let network = ran_with_a_liar(&setup, liar, 1);
    let plan = network.devices[0].plan().unwrap();
    assert_eq!(plan.handed_from(after), Some(liar), "the ring is as without a liar");
    assert_eq!(network.devices[after.index()].refuses(), [liar]);
    assert!(network.devices[before.index()].refuses().is_empty());
    assert!(network.forbidden.contains(&(liar, after)), "{:?}", network.forbidden);
    // What it sends instead is its own model, with its own trial.
    let device = &network.devices[after.index()];
    let own = setup.sent(device.model().unwrap(), &alike(&data())[after.index()].labels);
    assert!(Way::ALL.iter().all(|&way| device.sent_model(way).as_ref() == Some(&own)));
    let own = Tried::alone(device.trained().unwrap().trial);
    assert!(Way::ALL.iter().all(|&way| device.tried(way) == own));
    let target = plan.links[0].to;
    let truth = honest_classes(&setup, target);
    let accuracy = accuracy(&network.devices[target.index()], &truth);
    assert!(accuracy > 0.7, "{accuracy}");
}

#[test]
fn the_order_of_messages_changes_nothing_of_that() {
    let liar = the_ring()[1];
    let outcomes = [2, 3].map(|order| {
        let network = ran_with_a_liar(&going_round(), liar, order);
        let one = |device: &Device| (device.refuses(), device.outcome().cloned());
        network.devices.iter().map(one).collect::<Vec<_>>()
    });
    assert!(outcomes[0] == outcomes[1]);
}

#[test]
fn in_a_row_the_next_source_begins_with_its_own_model() {
    let network = ran_with_a_liar(&handing_on(), ALL[0], 1);
    let plan = network.devices[0].plan().unwrap();
    assert_eq!(plan.handed_from(ALL[1]), Some(ALL[0]), "{plan:?}");
    assert_eq!(network.devices[1].refuses(), [ALL[0]]);
    assert!(network.devices[2].refuses().is_empty(), "what it is handed is right again");
    assert!(network.forbidden.contains(&(ALL[0], ALL[1])));
}
