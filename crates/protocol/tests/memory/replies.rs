//! Devices that tell divergences only as often as they may: an honest fleet does not notice it, and a large one comes to the simulator's numbers.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::common::in_memory_network::Network;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stlf_data::Shape;
use stlf_method::divergence::disclosure::independent;
use stlf_method::divergence::replies::{MOST_TO_ONE_PEER, most};
use stlf_method::divergence::{Measurement, Settings, measure, sketch};
use stlf_protocol::device::Holdings;
use stlf_protocol::divergence_protocol::{Exchange, divergence};
use stlf_protocol::reply_record::ReplyRecord;
use stlf_protocol::wire::{Measured, Message};
use stlf_protocol::{Device, Place, Setup};

use crate::common::{ALL, DEVICES, SHAPE, computed, data, devices_with, holdings, setup};

fn fleet(held: &[Holdings], records: Option<&[ReplyRecord]>) -> Vec<Device> {
    let means = Settings::Sketch(sketch::Settings::means(SHAPE));
    let setup = Setup { divergence: means, ..setup() };
    let mut devices = devices_with(&setup, held.to_vec());
    for (device, record) in devices.iter_mut().zip(records.into_iter().flatten()) {
        device.limit_replies(record.clone(), &device.sample_names(None));
    }
    devices
}

/// Links with their weights, bit by bit.
type Links = Vec<(usize, usize, u64)>;

/// The links of an epoch's plan, what each device has told after it, and how many replies were withheld.
fn planned(devices: Vec<Device>) -> (Links, Vec<Option<ReplyRecord>>, usize) {
    let mut network = Network::new(devices, 1);
    network.begin(ALL[0], 1, &ALL);
    network.run().unwrap();
    assert_eq!(network.refused, []);
    let links = &network.devices[0].plan().unwrap().links;
    let links = links.iter().map(|l| (l.from.index(), l.to.index(), l.weight.to_bits())).collect();
    let told = network.devices.iter().map(|device| device.told().cloned()).collect();
    let withheld = network.devices.iter().map(|device| device.withheld().count()).sum();
    (links, told, withheld)
}

fn on_disk(told: Vec<Option<ReplyRecord>>) -> Vec<ReplyRecord> {
    let read = |told: Option<ReplyRecord>| {
        let text = serde_json::to_string(&told.unwrap()).unwrap();
        ReplyRecord::read(text.as_bytes()).unwrap()
    };
    told.into_iter().map(read).collect()
}

#[test]
fn an_honest_fleet_plans_as_before_across_restarts() {
    let held = holdings(&data());
    let (expected, told, _) = planned(fleet(&held, None));
    assert_eq!(told, vec![None; DEVICES]);
    let mut records = vec![ReplyRecord::default(); DEVICES];
    for epoch in 0..3 {
        let (links, told, withheld) = planned(fleet(&held, Some(&records)));
        assert_eq!((links, withheld), (expected.clone(), 0));
        let told = on_disk(told);
        assert_eq!(told == records, epoch > 0, "the same again is not told again");
        records = told;
    }
}

#[test]
fn whose_data_change_and_change_again_goes_on_with_what_was_told_last() {
    let mut held = holdings(&data());
    let mut records = vec![ReplyRecord::default(); DEVICES];
    for change in 0..=MOST_TO_ONE_PEER {
        let inputs = held[1].inputs.iter().map(|x| 0.9 * x + 0.01).collect();
        held[1] = Holdings { inputs, ..held[1].clone() };
        let (links, told, withheld) = planned(fleet(&held, Some(&records)));
        let (expected, ..) = planned(fleet(&held, None));
        // The one that changes has new data every time and tells all about them; the others tell it their last divergence after a few.
        match change < MOST_TO_ONE_PEER {
            true => assert_eq!((links, withheld), (expected, 0), "{change}"),
            false => assert_eq!(withheld, DEVICES - 1),
        }
        records = on_disk(told);
    }
}

#[test]
fn a_large_fleet_of_small_devices_tells_of_the_nearest_as_in_the_simulator() {
    let simulated = in_a_large_fleet(1, (160, 160), 32);
    // Neighbours are told of, and those at the other end are not.
    assert!(simulated.get(19, 20).value < 1.0 && simulated.get(0, 39).value == 2.0);
}

#[test]
fn rows_that_are_there_again_and_again_get_few_replies() {
    // Of 64 different ones 128 replies would be told, to all of the fleet.
    in_a_large_fleet(12, (64, 12), 23);
}

/// Measures among 40 devices with so many rows of so many columns, of which so many are different: each replies to so many others, as in the simulator.
fn in_a_large_fleet(
    width: usize,
    (rows, different): (usize, usize),
    replies: usize,
) -> Measurement {
    const SEED: u64 = 5;
    let shape = Shape { channels: 1, height: 1, width };
    let means = sketch::Settings::means(shape);
    let plain = means.with(|s| {
        s.privacy = None;
        s.base_noise = false;
    });
    let (settings, count) = (Settings::Sketch(plain), 40);
    let places: Vec<Place> = (0..count).map(Place::new).collect();
    let inputs: Vec<Arc<[f32]>> = (0..count)
        .map(|device| {
            let mut rng = ChaCha8Rng::seed_from_u64(device as u64);
            let mut number = || 0.1 * device as f32 + rng.random::<f32>();
            let own: Vec<f32> = (0..different * width).map(|_| number()).collect();
            own.iter().copied().cycle().take(rows * width).collect()
        })
        .collect();
    assert_eq!(most(&settings, shape, independent(&inputs[0], shape.len())), replies);
    let mut devices: Vec<Exchange> = (places.iter().zip(&inputs))
        .map(|(place, own)| {
            let part = Exchange::new(&settings, shape, SEED, [1; 32], *place, &places, own.clone());
            let names = part.sample_names(None, &[2; 32]);
            let replying = part.replying(ReplyRecord::default(), &names).unwrap();
            part.replying_by(Some(Arc::new(replying)))
        })
        .collect();
    let mut said: Vec<(Place, Place, Message)> = Vec::new();
    for (from, device) in places.iter().zip(&mut devices) {
        let steps = device.start();
        let messages = computed(device, steps).unwrap();
        said.extend(messages.into_iter().map(|(to, message)| (*from, to, message)));
    }
    for (from, to, message) in said {
        let device = &mut devices[to.index()];
        let steps = device.receive(from, &message).unwrap();
        computed(device, steps).unwrap();
    }
    let told: Vec<BTreeMap<Place, Measured>> =
        devices.iter().map(|device| device.pairs().unwrap().into_iter().collect()).collect();
    assert!(devices.iter().all(|device| device.withheld().len() == count - 1 - replies));
    let all: Vec<&[f32]> = inputs.iter().map(|own| &own[..]).collect();
    let go_on = &mut |_| ControlFlow::Continue(());
    let simulated = measure(&all, shape, &settings, SEED, go_on).unwrap().unwrap();
    for (i, j, estimate) in simulated.pairs() {
        let both = [told[i][&places[j]], told[j][&places[i]]];
        assert_eq!(divergence(&settings, both), Some(estimate.value), "{i} {j}");
    }
    simulated
}
