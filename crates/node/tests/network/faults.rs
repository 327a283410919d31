//! The ladder of faults. On every rung the others finish, within deadlines, and say what happened.
//!
//! | rung | what it shows |
//! |---|---|
//! | a device is killed in each stage | an epoch is begun anew without it |
//! | the planner is killed | the next one takes over |
//! | a source is killed before or after it handed its model on | an epoch is begun anew without it |
//! | a target is killed while models come, and is back | it goes on with what it had of them |
//! | clocks | no two devices need to agree on the time (in `membership.rs`) |
//! | a full disk, a partition, a slow link | in the command line's tests, with processes in network namespaces |
//! | a source trains on for long | it says how far it is, and is waited for |
//! | a device computes for long | it answers meanwhile, and blames nobody (in `jobs.rs`) |
//! | a tampered model | its link is not used again |
//! | garbage, and a flood of it | refused, counted, and in the end not heard |
//! | a plan longer than any can be | its planner is done without |
//! | silence, or the same again and again | who says nothing new is left out |
//! | an epoch by somebody who does not plan | not heeded while the planner is connected |
//! | other settings | the device takes no part, and both sides say which setting |
//! | a device starts again before anybody has noticed | everyone is in the next epoch (in `membership.rs`) |
//! | a key that two devices use | it is named |
//! | a device that is removed | it is told so |
//! | somebody unauthorised | turned away (in `loopback.rs`) |

use std::collections::BTreeMap;
use std::time::Duration;

use stlf_learn::Params;
use stlf_node::network::{Event, Options};
use stlf_planning::Role;
use stlf_planning::plan::Way;
use stlf_protocol::device::Trained;
use stlf_protocol::wire::{Envelope, Hello, Message, Plan, SignedPlan};
use stlf_protocol::{Device, Identity, Place};

use crate::common::{
    ALL, DEVICES, devices, identity, in_a_ring, in_a_row, in_a_row_for_long, owner, roster, setup,
    the_ring,
};
use crate::net::{DEADLINE, Fleet, end, settings};
use iroh::endpoint::{Connection, ConnectionError, presets};
use iroh::{Endpoint, EndpointAddr, PublicKey, SecretKey};

const LAST: Place = ALL[DEVICES - 1];

/// All but the last.
const OTHERS: &[Place] = ALL.split_at(DEVICES - 1).0;

/// A fleet that goes on until it is stopped.
pub(crate) fn forever(mut options: Options) -> Options {
    options.once = None;
    options.timing.wait = Duration::from_secs(12);
    options
}

fn complete(devices: usize) -> impl Fn(&[Event]) -> bool {
    move |events| {
        let began = events
            .iter()
            .rposition(|e| matches!(e, Event::Began { devices: n, .. } if *n == devices));
        began.is_some_and(|at| events[at..].contains(&Event::Complete))
    }
}

/// Waits until these devices have completed an epoch of so many.
async fn all_complete(fleet: &mut Fleet, places: &[Place], devices: usize) {
    for place in places {
        fleet.running.get_mut(place).unwrap().until(complete(devices)).await;
    }
}

/// Kills a device when it has told of something, and has the others finish without it.
async fn without(host: u8, killed: Place, when: impl Fn(&Event) -> bool) {
    without_of(devices(), host, (killed, killed), when).await;
}

/// The same in a fleet of these devices, when another may be the one that tells of it.
async fn without_of(
    devices: Vec<Device>,
    host: u8,
    (killed, teller): (Place, Place),
    when: impl Fn(&Event) -> bool,
) {
    let mut fleet = Fleet::new(host);
    devices.into_iter().for_each(|device| fleet.start(device, forever));
    fleet.until(teller, when).await;
    fleet.take(killed).kill();
    let others: Vec<Place> = ALL.into_iter().filter(|&place| place != killed).collect();
    let planner = others[0];
    all_complete(&mut fleet, &others, DEVICES - 1).await;
    for (place, ended) in fleet.stop().await {
        let device = ended.device.unwrap();
        let plan = device.plan().unwrap();
        assert_eq!(plan.role(killed), None, "{:?}", ended.events);
        assert!(plan.role(place).is_some());
        // The planner must have noticed; others may have heard of the new epoch first.
        let noticed = ended.events.contains(&Event::Lost(killed));
        assert!(noticed || place != planner, "{:?}", ended.events);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_is_killed_while_it_measures() {
    without(11, LAST, |event| matches!(event, Event::Began { .. })).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_is_killed_when_there_is_a_plan() {
    without(12, LAST, |event| matches!(event, Event::Planned { .. })).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_is_killed_when_it_has_received_a_model() {
    without(13, LAST, |event| matches!(event, Event::Received { .. })).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_is_killed_when_all_is_over() {
    without(14, LAST, |event| matches!(event, Event::Complete)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_planner_is_killed() {
    without(15, ALL[0], |event| matches!(event, Event::Began { .. })).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_is_killed_while_another_waits_for_its_model() {
    without_of(in_a_row(), 26, (ALL[1], ALL[2]), |event| matches!(event, Event::Awaits { .. }))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_is_killed_when_another_trains_on_its_model() {
    without_of(in_a_row(), 27, (ALL[1], ALL[2]), |event| matches!(event, Event::TrainsOn { .. }))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_is_killed_while_it_trains_on() {
    without_of(in_a_row(), 28, (ALL[1], ALL[1]), |event| matches!(event, Event::TrainsOn { .. }))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_of_a_ring_is_killed_while_it_trains_for_the_second_time() {
    let middle = the_ring()[1];
    without_of(in_a_ring(), 31, (middle, middle), |event| {
        matches!(event, Event::TrainsOn { way: Way::Second, .. })
    })
    .await;
}

/// It tells the others how far it is, and they do not lose patience.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_trains_on_for_longer_than_others_have_patience_is_waited_for() {
    let mut fleet = Fleet::new(29);
    // Long enough for a busy machine, which may give nothing of its time to a process for seconds.
    let patience = Duration::from_secs(6);
    for device in in_a_row_for_long(200_000) {
        fleet.start(device, |mut options| {
            options.timing.patience = patience;
            forever(options)
        });
    }
    fleet.until(ALL[1], |event| matches!(event, Event::TrainsOn { .. })).await;
    let began = std::time::Instant::now();
    fleet.until(ALL[1], |event| matches!(event, Event::TrainedOn { .. })).await;
    let took = began.elapsed();
    assert!(took > patience * 3 / 2, "this shows nothing: it trained for {took:?} only");
    all_complete(&mut fleet, &ALL, DEVICES).await;
    for (_, ended) in fleet.stop().await {
        let left_out = ended.events.iter().any(|e| matches!(e, Event::LeftOut(_)));
        let begun = ended.events.iter().filter(|e| matches!(e, Event::Began { .. })).count();
        assert_eq!((left_out, begun), (false, 1), "{:?}", ended.events);
    }
}

/// Waits until nobody has a file's lock or an address: what was killed may have them a moment longer than the task that was.
async fn released(file: &std::path::Path, address: std::net::SocketAddr) {
    let begun = std::time::Instant::now();
    while std::fs::File::open(file).unwrap().try_lock().is_err()
        || std::net::UdpSocket::bind(address).is_err()
    {
        assert!(begun.elapsed() < DEADLINE, "{} or {address} stays taken", file.display());
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_is_killed_while_models_come_and_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("models");
    let kept = |mut options: Options| {
        options.store = Some(store.clone());
        forever(options)
    };
    let mut fleet = Fleet::new(16);
    for device in devices() {
        match device.place() {
            LAST => fleet.start(device, kept),
            _ => fleet.start(device, forever),
        }
    }
    // Its first model is there; the epoch is not over for it.
    fleet.until(LAST, |event| matches!(event, Event::Received { .. })).await;
    fleet.take(LAST).kill();
    fleet.until(ALL[0], |event| matches!(event, Event::Lost(LAST))).await;
    released(&store.join("blobs.db"), fleet.addresses[LAST.index()]).await;
    fleet.start(devices().remove(LAST.index()), kept);
    all_complete(&mut fleet, &ALL, DEVICES).await;
    let ended = fleet.take(LAST).stop().await;
    let device = ended.device.unwrap();
    assert_eq!(device.plan().unwrap().role(LAST), Some(Role::Target));
    assert!(device.outcome().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tampered_model_is_not_used_again() {
    let honest = {
        let mut memory = crate::common::in_memory_network::Network::new(devices(), 1);
        memory.begin(ALL[0], 1, &ALL);
        memory.run().unwrap();
        memory.devices.remove(0).plan().unwrap().clone()
    };
    // The busiest source says what it measured, but gives away something else.
    let count = |place: Place| honest.links.iter().filter(|l| l.from == place).count();
    let liar = ALL.into_iter().max_by_key(|&place| count(place)).unwrap();
    let mut fleet = Fleet::new(19);
    for mut device in devices() {
        if device.place() == liar {
            let own = device.trained().unwrap().clone();
            let mut model = Params::initial(&setup().spec, 1);
            model[7] = f32::NAN;
            device.resume(Some(Trained { model, ..own }), BTreeMap::new(), None);
        }
        fleet.start(device, forever);
    }
    fleet
        .until(ALL[0], |event| matches!(event, Event::Forbidden { from, .. } if *from == liar))
        .await;
    // Every target that was to have it says so once; then nobody is.
    all_complete(&mut fleet, &ALL, DEVICES).await;
    let mut told = 0;
    for (place, ended) in fleet.stop().await {
        let device = ended.device.unwrap();
        let plan = device.plan().unwrap();
        let used = plan.links.iter().any(|link| link.from == liar);
        assert!(!used || place == liar, "{plan:?}");
        told += ended
            .events
            .iter()
            .filter(|e| matches!(e, Event::NotReceived { from, .. } if *from == liar))
            .count();
    }
    assert!(told > 0);
}

/// A member with a right key and a program of its own.
pub(crate) async fn endpoint_of(fleet: &Fleet, place: Place) -> Endpoint {
    endpoint_with(&identity(place), fleet, place).await
}

/// Somebody with this key at the address of the device at a place.
async fn endpoint_with(key: &Identity, fleet: &Fleet, place: Place) -> Endpoint {
    Endpoint::builder(presets::Minimal)
        .secret_key(SecretKey::from_bytes(&key.to_bytes()))
        .clear_ip_transports()
        .bind_addr(fleet.addresses[place.index()])
        .unwrap()
        .bind()
        .await
        .unwrap()
}

/// Its connection to another.
pub(crate) async fn call(endpoint: &Endpoint, fleet: &Fleet, other: Place) -> Connection {
    let key = PublicKey::from_bytes(identity(other).id().as_bytes()).unwrap();
    let address = EndpointAddr::new(key).with_ip_addr(fleet.addresses[other.index()]);
    endpoint.connect(address, b"stlf/node/7").await.unwrap()
}

/// Its connections to all others.
async fn impostor(fleet: &Fleet, place: Place) -> (Endpoint, BTreeMap<Place, Connection>) {
    let endpoint = endpoint_of(fleet, place).await;
    let mut connections = BTreeMap::new();
    for other in ALL.into_iter().filter(|&other| other != place) {
        connections.insert(other, call(&endpoint, fleet, other).await);
    }
    (endpoint, connections)
}

/// Says something; whether it was taken.
async fn say(connection: &Connection, epoch: u64, message: Message) -> bool {
    let bytes = Envelope::new(epoch, message).to_bytes();
    let Ok(mut stream) = connection.open_uni().await else { return false };
    stream.write_all(&bytes).await.is_ok()
        && stream.finish().is_ok()
        && stream.stopped().await.is_ok()
}

/// Greets as a device does that has just started.
pub(crate) async fn greet(connection: &Connection) {
    let hello =
        Hello { roster: 99, start: 1, running: 0.into(), settings: settings("calm, storm") };
    assert!(say(connection, 0, Message::Hello(hello)).await);
}

/// All but the last have an epoch of their own.
async fn others_finish(mut fleet: Fleet) -> Vec<Vec<Event>> {
    all_complete(&mut fleet, OTHERS, DEVICES - 1).await;
    let mut events = Vec::new();
    for (_, ended) in fleet.stop().await {
        assert_eq!(ended.device.unwrap().plan().unwrap().role(LAST), None);
        events.push(ended.events);
    }
    events
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_is_refused_counted_and_in_the_end_not_heard() {
    let mut fleet = Fleet::new(20);
    devices().into_iter().take(LAST.index()).for_each(|device| fleet.start(device, forever));
    let (endpoint, connections) = impostor(&fleet, LAST).await;
    for connection in connections.values() {
        for k in 0..1_100_u32 {
            let Ok(mut stream) = connection.open_uni().await else { break };
            let garbage: Vec<u8> = (0..64).map(|i| (k.wrapping_mul(31) + i * 7) as u8).collect();
            let _ = stream.write_all(&garbage).await;
            let _ = stream.finish();
        }
        // A request for a model that nobody offered.
        if let Ok((mut send, mut receive)) = connection.open_bi().await {
            let _ = send.write_all(&[0; 40]).await;
            let _ = send.finish();
            let answer = receive.read_to_end(1 << 20).await;
            assert!(answer.is_err() || answer.is_ok_and(|bytes| bytes.is_empty()));
        }
    }
    for connection in connections.values() {
        let closed = tokio::time::timeout(DEADLINE, connection.closed()).await;
        assert!(closed.is_ok(), "it is still heard");
    }
    let events = others_finish(fleet).await;
    let refused = |events: &[Event]| {
        events.iter().filter(|e| matches!(e, Event::Refused { from: LAST, .. })).count()
    };
    assert!(events.iter().all(|events| refused(events) >= 1_000));
    endpoint.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_longer_than_any_can_be_convicts_its_planner() {
    let planner = ALL[0];
    let mut fleet = Fleet::new(33);
    let longest = devices()[1].limits().longest();
    devices().into_iter().skip(1).for_each(|device| fleet.start(device, forever));
    let (endpoint, connections) = impostor(&fleet, planner).await;
    let long = Plan {
        epoch: 1,
        sources: vec![planner],
        targets: Vec::new(),
        links: Vec::new(),
        handovers: Vec::new(),
        witnesses: Vec::new(),
        examinations: Vec::new(),
        forbidden: vec![(planner, ALL[1]); longest],
        objective: 1.0,
        optimal: false,
    };
    let long = SignedPlan::sign(long, Vec::new(), &identity(planner));
    for connection in connections.values() {
        greet(connection).await;
    }
    for connection in connections.values() {
        assert!(say(connection, 1, Message::Begin(ALL.to_vec())).await);
    }
    for connection in connections.values() {
        // It is not taken to its end.
        assert!(!say(connection, 1, Message::Plan(long.clone())).await);
    }
    let others = &ALL[1..];
    all_complete(&mut fleet, others, DEVICES - 1).await;
    let mut convicts = 0;
    for (place, ended) in fleet.stop().await {
        let refuses = |event: &Event| {
            matches!(event, Event::Refused { from, reason }
                if *from == planner && reason.contains("a plan that cannot be read"))
        };
        assert!(ended.events.iter().any(refuses), "{place}: {:?}", ended.events);
        convicts += usize::from(ended.events.contains(&Event::LeftOut(planner)));
    }
    // Who hears it late has begun with the others by then.
    assert!(convicts > 0);
    endpoint.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_in_no_roster_has_one_connection() {
    let mut fleet = Fleet::new(34);
    fleet.start(devices().remove(0), forever);
    let endpoint = endpoint_with(&Identity::from_bytes(&[99; 32]), &fleet, LAST).await;
    let mut ended = Vec::new();
    // On a busy machine the first may have been turned away for saying nothing before the second came.
    for _ in 0..20 {
        let first = call(&endpoint, &fleet, ALL[0]).await;
        let _second = call(&endpoint, &fleet, ALL[0]).await;
        let lost = tokio::time::timeout(DEADLINE, first.closed()).await.unwrap();
        let ConnectionError::ApplicationClosed(why) = lost else { panic!("{lost}") };
        ended.push(why.reason);
        if ended.last().is_some_and(|reason| &reason[..] == b"there is a newer connection") {
            fleet.stop().await;
            return endpoint.close().await;
        }
    }
    panic!("both are kept: {ended:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_says_nothing_is_left_out() {
    let mut fleet = Fleet::new(21);
    devices().into_iter().take(LAST.index()).for_each(|device| fleet.start(device, forever));
    let (endpoint, connections) = impostor(&fleet, LAST).await;
    for connection in connections.values() {
        greet(connection).await;
    }
    let events = others_finish(fleet).await;
    assert!(events[0].contains(&Event::LeftOut(LAST)), "{:?}", events[0]);
    endpoint.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_says_the_same_again_and_again_is_left_out() {
    let mut fleet = Fleet::new(23);
    devices().into_iter().take(LAST.index()).for_each(|device| fleet.start(device, forever));
    let (endpoint, connections) = impostor(&fleet, LAST).await;
    for connection in connections.values() {
        greet(connection).await;
    }
    let mut often = tokio::time::interval(Duration::from_millis(200));
    let repeats = async {
        // Valid in the first epoch, but new only once.
        loop {
            for connection in connections.values() {
                say(connection, 1, Message::Bandwidth(None)).await;
            }
            often.tick().await;
        }
    };
    let events = tokio::select! {
        events = others_finish(fleet) => events,
        () = repeats => Vec::new(),
    };
    assert!(events[0].contains(&Event::LeftOut(LAST)), "{:?}", events[0]);
    endpoint.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_begins_an_epoch_while_the_planner_is_connected() {
    let mut fleet = Fleet::new(24);
    devices().into_iter().filter(|d| d.place() != ALL[1]).for_each(|d| fleet.start(d, forever));
    let (endpoint, connections) = impostor(&fleet, ALL[1]).await;
    for connection in connections.values() {
        greet(connection).await;
    }
    let others: Vec<Place> = connections.keys().copied().collect();
    for &place in &others {
        fleet.until(place, |event| matches!(event, Event::Began { .. })).await;
    }
    for place in &others[1..] {
        for epoch in [7, 8, 1 << 33] {
            let begin = Message::Begin(ALL[1..].to_vec());
            assert!(say(&connections[place], epoch, begin).await);
        }
    }
    all_complete(&mut fleet, &others, DEVICES - 1).await;
    for (place, ended) in fleet.stop().await {
        let began = |e: &Event| matches!(e, Event::Began { epoch, .. } if *epoch >= 7);
        assert!(!ended.events.iter().any(began), "{:?}", ended.events);
        assert_eq!(ended.device.unwrap().plan().unwrap().role(ALL[1]), None);
        let refused = |what: &str| {
            let says = |e: &Event| matches!(e, Event::Refused { from, reason } if *from == ALL[1] && reason.contains(what));
            ended.events.iter().any(says)
        };
        assert!(place == ALL[0] || refused("is too far") && refused("not the planner"), "{place}");
    }
    endpoint.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_other_settings_takes_no_part_and_all_say_which() {
    let mut fleet = Fleet::new(25);
    for device in devices() {
        let classes = if device.place() == LAST { "storm, calm" } else { "calm, storm" };
        fleet.start(device, |options| Options { settings: settings(classes), ..forever(options) });
    }
    all_complete(&mut fleet, OTHERS, DEVICES - 1).await;
    let differs = |from: Place, told: &'static str| move |event: &Event| matches!(event, Event::Differs { from: f, difference } if *f == from && difference.to_string() == told);
    for &other in OTHERS {
        let told = r#"data.classes differs: "calm, storm" here, "storm, calm" there"#;
        fleet.until(other, differs(LAST, told)).await;
        let told = r#"data.classes differs: "storm, calm" here, "calm, storm" there"#;
        fleet.until(LAST, differs(other, told)).await;
    }
    // Started again with those of all it is one of them.
    fleet.take(LAST).stop().await;
    fleet.start(devices().remove(LAST.index()), forever);
    all_complete(&mut fleet, &ALL, DEVICES).await;
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_joins_late_changes_little() {
    let mut fleet = Fleet::new(22);
    let mut all = devices();
    let late = all.remove(LAST.index());
    for device in all {
        fleet.start(device, |mut options| {
            options.timing.wait = Duration::from_secs(2);
            forever(options)
        });
    }
    all_complete(&mut fleet, OTHERS, DEVICES - 1).await;
    // What they planned, found in memory: to stop one and ask it would have the others plan without it.
    let before = {
        let mut memory = crate::common::in_memory_network::Network::new(devices(), 1);
        memory.begin(ALL[0], 1, OTHERS);
        memory.run().unwrap();
        memory.devices.remove(1)
    };
    fleet.start(late, forever);
    all_complete(&mut fleet, &ALL, DEVICES).await;
    let after: Device = fleet.take(ALL[0]).stop().await.device.unwrap();
    let (before, _) = end(&before);
    let (after, _) = end(&after);
    let kept =
        before.iter().filter(|(from, to, _)| after.iter().any(|(f, t, _)| (f, t) == (from, to)));
    assert_eq!(kept.count(), before.len(), "{before:?} became {after:?}");
    assert!(after.len() > before.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_two_devices_use_is_named() {
    let mut fleet = Fleet::new(35);
    devices().into_iter().for_each(|device| fleet.start(device, forever));
    let first = fleet.take(LAST);
    // The same key on another machine.
    let elsewhere = std::net::UdpSocket::bind("127.0.7.135:0").unwrap().local_addr().unwrap();
    let copied = |options: Options| Options { listen: elsewhere, ..forever(options) };
    fleet.start(devices().remove(LAST.index()), copied);
    fleet.until(ALL[0], |event| *event == Event::UsedTwice { from: LAST }).await;
    let told = fleet.running[&ALL[0]].status.lock().unwrap().clone().unwrap().devices;
    assert!(
        told[LAST.index()]
            .key_trouble()
            .is_some_and(|t| t.contains("two devices run with its key"))
    );
    assert!(told.iter().filter(|peer| peer.used_twice.is_some()).count() == 1);
    first.kill();
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_know_that_all_are_done_once_an_epoch_is_over() {
    let mut fleet = Fleet::new(37);
    devices().into_iter().for_each(|device| fleet.start(device, forever));
    all_complete(&mut fleet, &ALL, DEVICES).await;
    for place in ALL {
        let status = fleet.running[&place].status.lock().unwrap().clone().unwrap();
        assert!(status.devices.iter().all(|peer| peer.done == Some(true)), "{status:?}");
    }
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_removed_is_told_so_and_the_others_go_on() {
    let mut fleet = Fleet::new(36);
    devices().into_iter().for_each(|device| fleet.start(device, forever));
    all_complete(&mut fleet, &ALL, DEVICES).await;
    let without = roster().without(&roster().at(LAST).unwrap().name).unwrap();
    fleet.running[&ALL[0]].use_roster(without.sign(&owner()).unwrap());
    fleet.until(LAST, |event| matches!(event, Event::NotKnownTo { .. })).await;
    let removed = fleet.take(LAST);
    others_finish(fleet).await;
    removed.stop().await;
}
