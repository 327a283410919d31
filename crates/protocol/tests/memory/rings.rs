//! Sources that pass a model round a ring: in whatever order messages arrive, and where somebody is lost, late or started anew on the way.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use crate::common::in_memory_network::Network;
use stlf_learn::Params;
use stlf_learn::evaluate::Predictions;
use stlf_planning::plan::Way;
use stlf_planning::problem::Weights;
use stlf_protocol::device::{AsSource, Part};
use stlf_protocol::membership::{Decision, Membership, Timing};
use stlf_protocol::wire::{Envelope, Message};
use stlf_protocol::{Device, Phase, Place, Refusal, Setup};

use crate::common::{ALL, alike, data, devices_with, going_round, in_a_ring, the_ring};
use crate::lost::{others_finish, without};

/// A network whose devices have begun their first epoch.
fn begun(order: u64) -> Network {
    let mut network = Network::new(in_a_ring(), order);
    network.begin(ALL[0], 1, &ALL);
    network
}

/// Such devices at a moment that does not come in every order: in the first order from this one on in which it comes.
fn begun_until(order: u64, is: impl Fn(&[Device]) -> bool) -> Network {
    let reached = |order: u64| {
        let mut network = begun(order);
        network.run_until(&is).unwrap();
        is(&network.devices).then_some(network)
    };
    (order..order + 20).find_map(reached).unwrap()
}

/// The way on which a device trains a model at the moment.
fn trains_on(device: &Device) -> Option<Way> {
    let Phase::Following(following) = device.phase()? else { return None };
    match following.part() {
        Part::Source(AsSource::TrainsOn(leg)) => Some(leg.taken),
        _ => None,
    }
}

/// Whether the device at a place trains on this way, and all know the plan.
fn is_at(place: Place, way: Way) -> impl Fn(&[Device]) -> bool {
    move |devices| {
        let planned = devices.iter().all(|device| device.plan().is_some());
        planned && trains_on(&devices[place.index()]) == Some(way)
    }
}

/// What the devices sent and came to.
fn outcome(network: &Network) -> Vec<([Option<Params>; 2], Option<Predictions>)> {
    assert!(network.finished.iter().all(|done| *done), "{:?}", network.finished);
    assert!(network.devices.iter().all(Device::is_done));
    let one =
        |device: &Device| (Way::ALL.map(|way| device.sent_model(way)), device.outcome().cloned());
    network.devices.iter().map(one).collect()
}

#[test]
fn the_order_of_messages_changes_nothing() {
    let outcomes = [1, 2, 3].map(|order| {
        let mut network = begun(order);
        if order == 3 {
            network.say_twice();
        }
        network.run().unwrap();
        assert_eq!(network.refused, []);
        outcome(&network)
    });
    assert!(outcomes[0] == outcomes[1] && outcomes[0] == outcomes[2]);
    let ring = the_ring();
    for place in ALL {
        let ([first, second], _) = &outcomes[0][place.index()];
        assert_eq!(second.is_some(), ring.contains(&place));
        assert!(second.is_none() || first != second);
    }
}

#[test]
fn a_source_trains_once_on_each_way_and_offers_what_it_has_made() {
    let (mut network, ring) = (begun(4), the_ring());
    let seen = RefCell::new(Vec::new());
    let look = |devices: &[Device]| {
        for device in devices {
            if let Some(way) = trains_on(device)
                && seen.borrow().last() != Some(&(device.place(), way))
            {
                // The first model is its own where it is the first of the ring.
                assert_eq!(device.sent_model(Way::First).is_some(), way == Way::Second);
                assert!(device.sent_model(Way::Second).is_none() && device.missing().is_empty());
                seen.borrow_mut().push((device.place(), way));
            }
        }
        false
    };
    network.run_until(look).unwrap();
    let first = ring[1..].iter().map(|&place| (place, Way::First));
    let second = ring.iter().map(|&place| (place, Way::Second));
    assert_eq!(seen.into_inner(), first.chain(second).collect::<Vec<_>>());
    let own = &network.devices[ring[0].index()];
    assert_eq!(own.handed_on().keys().collect::<Vec<_>>(), [&Way::Second]);
}

#[test]
fn started_anew_on_the_second_way_it_does_what_is_left() {
    let ring = the_ring();
    let expected = {
        let mut network = begun(5);
        network.run().unwrap();
        outcome(&network)
    };
    for restarted in [ring[0], ring[1], ring[2]] {
        let mut network = begun(5);
        network.run_until(is_at(restarted, Way::Second)).unwrap();
        let device = &mut network.devices[restarted.index()];
        let (own, plan) = (device.trained().cloned(), device.plan().cloned());
        let made = device.handed_on().clone();
        assert_eq!(made.contains_key(&Way::First), restarted != ring[0]);
        *device = in_a_ring().remove(restarted.index());
        device.resume(own, made, plan);
        network.run().unwrap();
        assert!(!network.finished[restarted.index()]);
        network.begin(ALL[0], 2, &ALL);
        let trained = RefCell::new(BTreeSet::new());
        let look = |devices: &[Device]| {
            let at = |device: &Device| Some((device.place(), trains_on(device)?));
            trained.borrow_mut().extend(devices.iter().filter_map(at));
            false
        };
        network.run_until(look).unwrap();
        // Those after it had not come to train again.
        let at = ring.iter().position(|&place| place == restarted).unwrap();
        let left = ring[at..].iter().map(|&place| (place, Way::Second)).collect();
        assert_eq!(trained.into_inner(), left);
        assert!(outcome(&network) == expected);
    }
}

#[test]
fn whoever_is_lost_on_either_way_is_done_without() {
    let ring = the_ring();
    for (lost, next, way) in [
        (ring[1], ring[2], Way::First),
        (ring[2], ring[0], Way::First),
        (ring[0], ring[1], Way::Second),
        (ring[1], ring[2], Way::Second),
    ] {
        let mut network = begun_until(6, is_at(lost, way));
        network.lose(lost);
        network.run().unwrap();
        // The one after it waits, and says for whom.
        assert_eq!(network.devices[next.index()].missing(), [lost]);
        assert!(!network.finished[next.index()] && !network.finished[5]);
        others_finish(&mut network, lost);
    }
}

#[test]
fn whoever_is_late_on_the_second_way_is_left_out() {
    let ring = the_ring();
    let late = *ring.iter().find(|&&place| place != ALL[0]).unwrap();
    let mut network = begun(7);
    network.run_until(is_at(late, Way::Second)).unwrap();
    let model = network.devices[late.index()].model().unwrap().clone();
    network.lose(late);
    network.run().unwrap();
    let patience = Duration::from_secs(4);
    let timing = Timing { wait: patience, settle: patience, patience };
    let mut planner = Membership::new(ALL[0], ALL.len(), 1, timing, Duration::ZERO);
    ALL[1..].iter().for_each(|&place| planner.came(place, 1, 1, Duration::ZERO));
    planner.enter(1, &ALL, Duration::ZERO);
    planner.planned(network.devices[0].plan().unwrap().sends(), Duration::ZERO);
    for place in without(late) {
        let device = &network.devices[place.index()];
        match device.is_done() {
            true => drop(planner.hear_done(place)),
            false => planner.hear_missing(place, &device.missing()),
        }
    }
    let own = network.devices[0].missing();
    let decisions = planner.tick(2 * patience, &own);
    let members = without(late);
    assert_eq!(decisions, [Decision::LeaveOut(late), Decision::Begin { number: 2, members }]);
    others_finish(&mut network, late);
    // What comes after that is not taken.
    let refused = network.devices[0].receive_model(late, Way::Second, model).unwrap_err();
    assert_eq!(refused, Refusal::Unfit("a model that nobody asked for"));
}

#[test]
fn progress_is_heard_on_both_ways() {
    let (mut network, ring) = (begun(8), the_ring());
    network.run_until(is_at(ring[1], Way::First)).unwrap();
    let device = &mut network.devices[5];
    let mut progress = |from: Place, percent: u8| {
        let before = device.known();
        let told = Envelope::new(1, Message::TrainedOn(percent));
        assert_eq!(device.receive(from, &told), Ok(vec![]));
        device.known() > before
    };
    assert!(progress(ring[1], 60) && progress(ring[1], 100));
    assert!(progress(ring[1], 110) && progress(ring[1], 200));
    assert!(!progress(ring[1], 200) && !progress(ring[1], 150));
    // The first has nothing to train on the first way.
    assert!(!progress(ring[0], 100) && progress(ring[0], 101));
    assert!(!progress(ALL[4], 50) && !progress(ALL[4], 150));
}

/// A plan keeps what it can of the last one. What is left of a ring may be nothing that anybody could carry out.
#[test]
fn whoever_comes_and_goes_every_plan_can_be_carried_out() {
    // Energy weighs so little that a ring which nobody needs any more costs next to nothing.
    let weights = Weights { energy: 1e-3, ..going_round().weights };
    let setup = Setup { weights, ..going_round() };
    let mut network = Network::new(devices_with(&setup, alike(&data())), 9);
    let ring = the_ring();
    let without_first = without(ring[0]);
    let fleets = [&ALL[..], &ALL[..3], &ALL, &ALL[..4], &without_first, &ALL];
    for (epoch, members) in (1..).zip(fleets) {
        network.begin(members[0], epoch, members);
        network.run().unwrap();
        for place in members {
            let device = &network.devices[place.index()];
            assert_eq!(device.plan().map(|plan| plan.epoch), Some(epoch), "{place}");
            assert!(device.is_done(), "{place} in epoch {epoch}: {:?}", device.plan());
        }
    }
    assert_eq!(network.refused, []);
}
