//! A device that computes for long answers meanwhile, keeps its connections, and blames nobody for its own silence.

use std::time::Duration;

use stlf_method::divergence::{Settings, classifier};
use stlf_node::network::Event;
use stlf_protocol::Setup;
use stlf_protocol::wire::{Envelope, Message};

use crate::common::{ALL, devices_of, setup};
use crate::faults::{call, endpoint_of, forever, greet};
use crate::net::{DEADLINE, Fleet};
use iroh::endpoint::Connection;
use tokio::time::timeout;

/// So many steps that a turn takes far longer than to answer.
const STEPS: usize = 3_000;

/// Two devices take turns; each of the first's takes seconds.
fn slow() -> Setup {
    let architecture = classifier::Architecture::Hidden;
    let settings = classifier::Settings::default().with(|s| {
        s.architecture = architecture;
        s.rounds = 1;
        s.steps = STEPS;
    });
    Setup { divergence: Settings::Classifier(settings), ..setup() }
}

/// The next message.
async fn hear(connection: &Connection) -> Message {
    let next = async {
        let mut stream = connection.accept_uni().await.unwrap();
        stream.read_to_end(1 << 20).await.unwrap()
    };
    Envelope::read(&timeout(DEADLINE, next).await.unwrap()).unwrap().message
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn greetings_are_answered_while_a_turn_is_computed() {
    let mut fleet = Fleet::new(30);
    fleet.start(devices_of(&slow()).remove(0), |mut options| {
        options = forever(options);
        options.timing.wait = Duration::from_secs(1);
        options.timing.patience = Duration::from_secs(2);
        options
    });
    let endpoint = endpoint_of(&fleet, ALL[1]).await;
    let first = call(&endpoint, &fleet, ALL[0]).await;
    greet(&first).await;
    fleet.until(ALL[0], |event| matches!(event, Event::Began { .. })).await;
    // On each new connection it greets, and says again what it has said of the epoch; its turn is not among that.
    // Nobody hangs up: a device closes the older connection itself.
    let mut connections = vec![first];
    for _ in 0..2 {
        let newer = call(&endpoint, &fleet, ALL[0]).await;
        greet(&newer).await;
        let mut heard = Vec::new();
        let has = |heard: &[Message], is: fn(&Message) -> bool| heard.iter().any(is);
        while !has(&heard, |message| matches!(message, Message::Hello(_)))
            || !has(&heard, |message| matches!(message, Message::Begin(_)))
        {
            heard.push(hear(&newer).await);
        }
        assert!(!has(&heard, |message| matches!(message, Message::Turn(_))));
        connections.push(newer);
    }
    while !matches!(hear(&connections[2]).await, Message::Turn(_)) {}
    let events = fleet.running[&ALL[0]].events.lock().unwrap().clone();
    let blamed = |event: &Event| matches!(event, Event::LeftOut(_) | Event::Lost(_));
    assert!(!events.iter().any(blamed), "{events:?}");
    fleet.stop().await;
    endpoint.close().await;
}
