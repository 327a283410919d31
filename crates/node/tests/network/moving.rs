//! Devices that come back with another address.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};

use stlf_node::network::{Event, Options};

use crate::common::{ALL, DEVICES, devices};
use crate::faults::forever;
use crate::net::Fleet;

fn elsewhere(host: [u8; 4]) -> SocketAddr {
    UdpSocket::bind((std::net::Ipv4Addr::from(host), 0)).unwrap().local_addr().unwrap()
}

/// Waits until all have completed an epoch of all after they have told of so much.
async fn all_complete(fleet: &mut Fleet, after: &BTreeMap<usize, usize>) {
    for place in ALL {
        let after = after.get(&place.index()).copied().unwrap_or_default();
        let is_complete = |events: &[Event]| {
            let since = events.get(after..).unwrap_or_default();
            let all = |e: &Event| matches!(e, Event::Began { devices: DEVICES, .. });
            let began = since.iter().rposition(all);
            began.is_some_and(|at| since[at..].contains(&Event::Complete))
        };
        fleet.running.get_mut(&place).unwrap().until(is_complete).await;
    }
}

/// What all but one have told so far.
fn told(fleet: &Fleet) -> BTreeMap<usize, usize> {
    let told = fleet.running.iter();
    told.map(|(place, running)| (place.index(), running.events.lock().unwrap().len())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_of_the_roster_is_found_elsewhere_although_nobody_calls_it_there() {
    let mut fleet = Fleet::new(31);
    devices().into_iter().for_each(|device| fleet.start(device, forever));
    all_complete(&mut fleet, &BTreeMap::new()).await;
    fleet.take(ALL[0]).kill();
    let before = told(&fleet);
    let there = elsewhere([127, 0, 7, 131]);
    let moved = |options: Options| Options { listen: there, ..forever(options) };
    fleet.start(devices().remove(0), moved);
    all_complete(&mut fleet, &before).await;
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_calls_others_where_they_were_seen_last() {
    let mut fleet = Fleet::new(32);
    // Nobody has an address of anybody but of the first, and of those that were seen in an earlier run.
    let addresses = fleet.addresses.clone();
    let start = |fleet: &mut Fleet, seen: &[usize]| {
        let seen: BTreeMap<_, _> = seen.iter().map(|&k| (ALL[k], addresses[k])).collect();
        let known = move |options: Options| {
            let peers = BTreeMap::from([(ALL[0], options.peers[&ALL[0]])]);
            Options { peers, seen: seen.clone(), ..forever(options) }
        };
        devices().into_iter().for_each(|device| fleet.start(device, &known));
    };
    start(&mut fleet, &(1..DEVICES).collect::<Vec<_>>());
    all_complete(&mut fleet, &BTreeMap::new()).await;
    fleet.stop().await;
}
