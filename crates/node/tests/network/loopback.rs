//! The same fleet over a real network on this machine: it ends as in memory, and turns strangers away. `faults.rs` has what goes
//! wrong.

use crate::common::in_memory_network::Network;
use stlf_node::network::{Error, Event, run};
use stlf_planning::plan::Way;
use stlf_protocol::{Device, Identity, Place, Roster};

use crate::common::{ALL, DEVICES, devices, in_a_ring, in_a_row, roster, the_ring};
use crate::net::{Fleet, end, options};
use std::collections::BTreeMap;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_on_a_network_ends_as_in_memory() {
    ends_as_in_memory(1, devices).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_that_hands_models_on_ends_as_in_memory() {
    for (place, events) in ends_as_in_memory(3, in_a_row).await {
        let told: Vec<&Event> = events
            .iter()
            .filter(|e| match e {
                Event::Awaits { .. } | Event::TrainsOn { .. } | Event::TrainedOn { .. } => true,
                _ => *e == &Event::Ended,
            })
            .collect();
        match place.index() {
            index @ (1 | 2) => {
                let from = ALL[index - 1];
                let (awaits, way) = (Event::Awaits { from }, Way::First);
                let trains = Event::TrainsOn { from, way };
                let trained = Event::TrainedOn { from, way };
                assert_eq!(told, [&awaits, &trains, &trained, &Event::Ended], "{events:?}");
            }
            _ => assert_eq!(told, [&Event::Ended]),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_that_passes_a_model_round_ends_as_in_memory() {
    let ring = the_ring();
    for (place, events) in ends_as_in_memory(5, in_a_ring).await {
        let told: Vec<&Event> = events
            .iter()
            .filter(|e| matches!(e, Event::TrainsOn { .. } | Event::TrainedOn { .. }))
            .collect();
        // The first of the ring begins with its own model.
        let at = ring.iter().position(|&source| source == place);
        let ways = at.map_or(&[][..], |at| if at == 0 { &Way::ALL[1..] } else { &Way::ALL[..] });
        let from = at.map_or(place, |at| ring[(at + ring.len() - 1) % ring.len()]);
        let both = |&way: &Way| [Event::TrainsOn { from, way }, Event::TrainedOn { from, way }];
        let expected: Vec<Event> = ways.iter().flat_map(both).collect();
        assert_eq!(told, expected.iter().collect::<Vec<_>>(), "{place}: {events:?}");
    }
}

async fn ends_as_in_memory(host: u8, devices: fn() -> Vec<Device>) -> BTreeMap<Place, Vec<Event>> {
    let mut memory = Network::new(devices(), 1);
    memory.begin(ALL[0], 1, &ALL);
    memory.run().unwrap();
    let mut fleet = Fleet::new(host);
    devices().into_iter().for_each(|device| fleet.start(device, |o| o));
    let mut told = BTreeMap::new();
    for (place, ended) in fleet.ends().await {
        let device = ended.device.unwrap_or_else(|e| panic!("{place}: {e}; {:?}", ended.events));
        let in_memory = &memory.devices[place.index()];
        assert_eq!(end(&device), end(in_memory), "device {place}");
        let began = Event::Began { epoch: 1, devices: DEVICES };
        assert!(ended.events.contains(&began), "{:?}", ended.events);
        let refused = ended.events.iter().any(|event| matches!(event, Event::Refused { .. }));
        assert!(!refused, "{:?}", ended.events);
        for way in Way::ALL {
            assert_eq!(device.sent_model(way), in_memory.sent_model(way));
        }
        told.insert(place, ended.events);
    }
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_are_turned_away_and_who_never_comes_is_done_without() {
    let mut fleet = Fleet::new(2);
    // The first device, which would plan, never comes; a stranger does, under its address and with a key of its own.
    for device in devices().into_iter().skip(1) {
        fleet.start(device, |mut options| {
            options.timing.wait = Duration::from_secs(3);
            options
        });
    }
    let stranger = Identity::from_bytes(&[99; 32]);
    // It believes in a roster of its own, in which it has the last place, and which it signs as if it was the owner.
    let claimed = roster().with("stranger", stranger.id()).unwrap();
    let claimed = Roster { owner: stranger.id(), ..claimed };
    let holdings = crate::common::holdings(&crate::common::data()).remove(5);
    let device = Device::new(
        crate::common::setup(),
        claimed.clone(),
        stranger.clone(),
        holdings,
        BTreeMap::new(),
    );
    let mut options = options(&fleet.addresses, ALL[0]);
    options.peers.remove(&ALL[0]);
    options.timing.wait = Duration::from_secs(3);
    options.once = Some(Duration::from_secs(2));
    let claimed = claimed.sign(&stranger).unwrap();
    let turned = tokio::spawn(async move {
        let (_orders, given) = tokio::sync::mpsc::channel(1);
        let device = device.unwrap();
        run(device, claimed, &stranger, options, given, &mut |_, _| ()).await.map(|_| ())
    });
    let mut strangers = 0;
    for (place, ended) in fleet.ends().await {
        let device = ended.device.unwrap_or_else(|e| panic!("{place}: {e}; {:?}", ended.events));
        assert_eq!(device.plan().unwrap().role(ALL[0]), None);
        assert!(device.plan().unwrap().role(place).is_some());
        strangers += ended.events.iter().filter(|e| matches!(e, Event::TurnedAway(_))).count();
    }
    assert!(strangers > 0, "nobody saw the stranger");
    assert!(turned.await.unwrap().is_err());
}

#[tokio::test]
async fn alone_it_says_so() {
    let mut fleet = Fleet::new(4);
    fleet.start(devices().remove(0), |mut options| {
        options.timing.wait = Duration::from_millis(200);
        options
    });
    let (_, ended) = fleet.ends().await.remove(0);
    assert!(matches!(ended.device, Err(Error::Alone(_))));
}
