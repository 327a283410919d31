//! The same fleet over a real network on this machine: it ends as in memory, turns strangers away, and outlives a device.
#![cfg(feature = "network")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use common::{ALL, DEVICES, devices, identity, roster};
use stlf_node::memory::Network;
use stlf_node::network::{Error, Event, Options, run};
use stlf_node::{Device, Identity};

/// Addresses on this machine that were free a moment ago. Every test has a host of its own, so that none takes another's.
fn addresses(host: u8) -> Vec<SocketAddr> {
    let host = std::net::Ipv4Addr::new(127, 0, 7, host);
    let sockets: Vec<UdpSocket> =
        (0..DEVICES).map(|_| UdpSocket::bind((host, 0)).unwrap()).collect();
    sockets.iter().map(|socket| socket.local_addr().unwrap()).collect()
}

fn options(addresses: &[SocketAddr], place: usize, wait: Duration) -> Options {
    let peers: BTreeMap<usize, SocketAddr> = addresses.iter().copied().enumerate().collect();
    Options { listen: addresses[place], peers, wait, deadline: Duration::from_secs(60) }
}

/// What a device ended with: its plan's links, and the classes that it gave its samples.
type End = (Vec<(u32, u32, u64)>, Option<Vec<u16>>);

fn end(device: &Device) -> End {
    let links = device.plan().unwrap().links.iter();
    let links = links.map(|l| (l.from, l.to, l.weight.to_bits())).collect();
    (links, device.outcome().map(|p| p.classes().collect()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_on_a_network_ends_as_in_memory() {
    let mut memory = Network::new(devices(), 1);
    memory.begin(0, 1, &ALL);
    memory.run().unwrap();
    let expected: Vec<End> = memory.devices.iter().map(end).collect();

    let addresses = addresses(1);
    let mut running = tokio::task::JoinSet::new();
    for device in devices() {
        let place = device.place();
        let options = options(&addresses, place, Duration::from_secs(20));
        running.spawn(async move {
            let mut events = Vec::new();
            let mut hear = |event| events.push(event);
            let ended = run(device, roster(), &identity(place), options, &mut hear).await;
            (place, ended, events)
        });
    }
    let mut ends = 0;
    while let Some(joined) = running.join_next().await {
        let (place, device, events) = joined.unwrap();
        let device = device.unwrap_or_else(|e| panic!("device {place}: {e}; {events:?}"));
        assert_eq!(end(&device), expected[place], "device {place}");
        assert!(events.contains(&Event::Began { epoch: 1, devices: DEVICES }), "{events:?}");
        assert!(!events.iter().any(|event| matches!(event, Event::Refused { .. })), "{events:?}");
        ends += 1;
    }
    assert_eq!(ends, DEVICES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_others_go_on_without_a_device_that_does_not_come_and_turn_strangers_away() {
    let addresses = addresses(2);
    let mut running = tokio::task::JoinSet::new();
    // The first device, which would plan, never comes; a stranger does, under its address and with a key of its own.
    for device in devices().into_iter().skip(1) {
        let place = device.place();
        let options = options(&addresses, place, Duration::from_secs(3));
        running.spawn(async move {
            let mut events = Vec::new();
            let mut hear = |event| events.push(event);
            let ended = run(device, roster(), &identity(place), options, &mut hear).await;
            (place, ended, events)
        });
    }
    let stranger = Identity::from_bytes(&[99; 32]);
    let foreign = {
        // It believes in a roster of its own, in which it has the last place.
        let claimed = roster().with("stranger", stranger.id()).unwrap();
        let holdings = common::holdings(&common::data()).remove(5);
        let device = Device::new(
            common::setup(),
            claimed.clone(),
            stranger.clone(),
            holdings,
            BTreeMap::new(),
        );
        let mut options = options(&addresses, 0, Duration::from_secs(3));
        options.peers.remove(&0);
        options.deadline = Duration::from_secs(3);
        (device.unwrap(), claimed, options)
    };
    let (device, claimed, options) = foreign;
    let turned = tokio::spawn(async move {
        run(device, claimed, &stranger, options, &mut |_| ()).await.map(|_| ())
    });
    let mut strangers = 0;
    while let Some(joined) = running.join_next().await {
        let (place, device, events) = joined.unwrap();
        let device = device.unwrap_or_else(|e| panic!("device {place}: {e}; {events:?}"));
        assert_eq!(device.plan().unwrap().role(0), None);
        assert!(device.plan().unwrap().role(place).is_some());
        strangers += events.iter().filter(|e| matches!(e, Event::TurnedAway(_))).count();
    }
    assert!(strangers > 0, "nobody saw the stranger");
    assert!(turned.await.unwrap().is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_that_is_lost_half_way_is_left_out() {
    let addresses = addresses(3);
    let mut running = tokio::task::JoinSet::new();
    let mut began = None;
    for device in devices() {
        let place = device.place();
        let options = options(&addresses, place, Duration::from_secs(20));
        let (signal, heard) = tokio::sync::oneshot::channel();
        let mut signal = Some(signal);
        let task = running.spawn(async move {
            let mut events = Vec::new();
            let mut hear = |event: Event| {
                if matches!(event, Event::Began { .. })
                    && let Some(signal) = signal.take()
                {
                    let _ = signal.send(());
                }
                events.push(event);
            };
            let ended = run(device, roster(), &identity(place), options, &mut hear).await;
            (place, ended, events)
        });
        if place == DEVICES - 1 {
            began = Some((heard, task));
        }
    }
    // As soon as the last one has heard of the epoch, it is gone without a word.
    let (heard, task) = began.unwrap();
    heard.await.unwrap();
    task.abort();
    let (mut ended, mut noticed) = (0, 0);
    while let Some(joined) = running.join_next().await {
        let Ok((place, device, events)) = joined else { continue };
        let device = device.unwrap_or_else(|e| panic!("device {place}: {e}; {events:?}"));
        let plan = device.plan().unwrap();
        assert_eq!((plan.epoch, plan.role(DEVICES - 1)), (2, None), "{events:?}");
        noticed += usize::from(events.contains(&Event::Lost(DEVICES - 1)));
        ended += 1;
    }
    // The planner must have; others may have been done before.
    assert!(noticed > 0);
    assert_eq!(ended, DEVICES - 1);
}

#[tokio::test]
async fn alone_it_says_so() {
    let addresses = addresses(4);
    let device = devices().remove(0);
    let options = options(&addresses, 0, Duration::from_millis(200));
    let ended = run(device, roster(), &identity(0), options, &mut |_| ()).await;
    assert!(matches!(ended, Err(Error::Alone(_))));
}
