//! Means that have not changed are not sent again, whoever has lost them gets them, and it does not matter what anybody claims to have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use crate::common::in_memory_network::Network;
use stlf_method::divergence::{Settings, sketch};
use stlf_protocol::checking::Objection;
use stlf_protocol::device::Holdings;
use stlf_protocol::shared::Fingerprint;
use stlf_protocol::wire::{Envelope, Means, MeansSignature, Message};
use stlf_protocol::{Action, Device, Place, Refusal, Setup};

use crate::common::{ALL, DEVICES, SHAPE, data, devices_with, holdings, identity, setup};

/// Every message of an epoch between all devices.
const ALL_TO_ALL: usize = DEVICES * (DEVICES - 1);

fn with_means() -> Setup {
    Setup { divergence: Settings::Sketch(sketch::Settings::means(SHAPE)), ..setup() }
}

fn fleet(holdings: Vec<Holdings>) -> Vec<Device> {
    devices_with(&with_means(), holdings)
}

/// The messages about means in an epoch, by kind, each with the bytes of all of them.
type Sent = BTreeMap<&'static str, (usize, usize)>;

/// A network that remembers what was said.
struct Watched {
    network: Network,
    sent: Arc<Mutex<Sent>>,
}

impl Watched {
    fn new(devices: Vec<Device>, order: u64) -> Watched {
        let (mut network, sent) = (Network::new(devices, order), Arc::<Mutex<Sent>>::default());
        let seen = sent.clone();
        network.watch(move |bytes| {
            let kind = match Envelope::read(bytes).map(|envelope| envelope.message) {
                Ok(Message::Means(..)) => "means",
                Ok(Message::Unchanged(..)) => "unchanged",
                Ok(Message::AskForMeans) => "asked",
                _ => return,
            };
            let mut seen = seen.lock().unwrap();
            let entry = seen.entry(kind).or_default();
            *entry = (entry.0 + 1, entry.1 + bytes.len());
        });
        Watched { network, sent }
    }

    /// What was sent in an epoch that all devices took part in and ended.
    fn epoch(&mut self, number: u64) -> Sent {
        self.sent.lock().unwrap().clear();
        self.network.begin(ALL[0], number, &ALL);
        self.network.run().unwrap();
        assert!(self.network.finished.iter().all(|done| *done), "{:?}", self.network.finished);
        assert_eq!(self.network.refused, []);
        self.sent.lock().unwrap().clone()
    }

    /// What all devices came to.
    fn plan(&self) -> Vec<(usize, usize, u64)> {
        let links = &self.network.devices[0].plan().unwrap().links;
        links.iter().map(|l| (l.from.index(), l.to.index(), l.weight.to_bits())).collect()
    }
}

fn count(sent: &Sent, kind: &str) -> usize {
    sent.get(kind).map_or(0, |(count, _)| *count)
}

#[test]
fn an_epoch_without_changes_sends_no_means() {
    for order in [1, 2, 3] {
        let mut watched = Watched::new(fleet(holdings(&data())), order);
        let first = watched.epoch(1);
        assert_eq!(first.keys().collect::<Vec<_>>(), [&"means"]);
        let (messages, bytes) = first["means"];
        assert_eq!(messages, ALL_TO_ALL);
        // Two bytes a mean, and a head; to the planner a signature, which makes 11 bytes of each message on average.
        assert!((128..=148).contains(&(bytes / messages)), "{}", bytes / messages);
        let plan = watched.plan();
        for number in [2, 3] {
            let later = watched.epoch(number);
            // A digest, and one byte each for version, epoch, who began it, kind and whether it is signed; signatures to the planner.
            let bytes = 21 * ALL_TO_ALL + 65 * (DEVICES - 1);
            assert_eq!(later, BTreeMap::from([("unchanged", (ALL_TO_ALL, bytes))]));
            assert_eq!(watched.plan(), plan);
        }
    }
}

#[test]
fn whoever_was_started_anew_gets_all_means_and_everyone_gets_its_own() {
    for order in [1, 2, 3] {
        let held = holdings(&data());
        let mut watched = Watched::new(fleet(held.clone()), order);
        watched.epoch(1);
        let plan = watched.plan();
        watched.network.devices[2] = fleet(held).swap_remove(2);
        let sent = watched.epoch(2);
        let others = DEVICES - 1;
        assert_eq!(count(&sent, "unchanged"), ALL_TO_ALL - others);
        assert_eq!((count(&sent, "asked"), count(&sent, "means")), (others, 2 * others));
        assert_eq!(watched.plan(), plan);
        assert_eq!(watched.epoch(3).keys().collect::<Vec<_>>(), [&"unchanged"]);
    }
}

#[test]
fn changed_data_are_sent_anew_and_count() {
    let mut held = holdings(&data());
    let mut watched = Watched::new(fleet(held.clone()), 1);
    watched.epoch(1);
    let inputs = held[1].inputs.iter().map(|x| 1.0 - x).collect();
    held[1] = Holdings { inputs, ..held[1].clone() };
    watched.network.devices[1] = fleet(held.clone()).swap_remove(1);
    let sent = watched.epoch(2);
    assert_eq!(count(&sent, "unchanged"), ALL_TO_ALL - (DEVICES - 1));
    // What they come to is what devices with these data always come to.
    let mut fresh = Watched::new(fleet(held), 1);
    fresh.epoch(1);
    assert_eq!(watched.plan(), fresh.plan());
}

#[test]
fn other_data_come_into_use_with_the_next_epoch_and_only_they_are_sent() {
    let mut held = holdings(&data());
    let mut watched = Watched::new(fleet(held.clone()), 1);
    watched.epoch(1);
    let plan = watched.plan();
    let goes_by = watched.network.devices[1].goes_by().unwrap();
    let same = fleet(held.clone()).swap_remove(1).change_from(&goes_by);
    assert!(same.in_inputs.divergence.value == 0.0 && !same.matters(), "{same:?}");
    let inputs = held[1].inputs.iter().map(|x| 1.0 - x).collect();
    held[1] = Holdings { inputs, ..held[1].clone() };
    let fresh = fleet(held.clone()).swap_remove(1);
    let change = fresh.change_from(&goes_by);
    assert!(change.matters() && !change.in_labels, "{change:?}");
    watched.network.devices[1].renew(fresh);
    let renewed = |watched: &Watched| {
        let device = &watched.network.devices[1];
        (device.awaits_renewal(), device.renewals())
    };
    assert_eq!((renewed(&watched), watched.plan()), ((true, 0), plan));
    let sent = watched.epoch(2);
    assert_eq!(renewed(&watched), (false, 1));
    // The others have the means of all others, and are not asked for their own.
    let others = DEVICES - 1;
    assert_eq!((count(&sent, "means"), count(&sent, "asked")), (others, 0));
    assert_eq!(count(&sent, "unchanged"), ALL_TO_ALL - others);
    let mut expected = Watched::new(fleet(held.clone()), 1);
    expected.epoch(1);
    assert_eq!(watched.plan(), expected.plan());
    assert_eq!(watched.epoch(3).keys().collect::<Vec<_>>(), [&"unchanged"]);
    // Labels that come or go matter, whatever the inputs are.
    let labels = held[1].labels.len();
    let without =
        Holdings { labels: Vec::new(), unlabeled: held[1].unlabeled + labels, ..held[1].clone() };
    let goes_by = watched.network.devices[1].goes_by().unwrap();
    held[1] = without;
    let change = fleet(held).swap_remove(1).change_from(&goes_by);
    assert_eq!((change.in_inputs.divergence.value, change.in_labels), (0.0, labels > 0));
    assert_eq!(change.matters(), labels > 0);
}

#[test]
fn what_comes_twice_and_in_any_order_changes_nothing() {
    let held = holdings(&data());
    let mut expected = Watched::new(fleet(held.clone()), 1);
    expected.epoch(1);
    for order in [4, 5, 6] {
        let mut watched = Watched::new(fleet(held.clone()), order);
        watched.network.say_twice();
        watched.epoch(1);
        assert_eq!(watched.plan(), expected.plan());
        watched.network.devices[3] = fleet(held.clone()).swap_remove(3);
        let sent = watched.epoch(2);
        // However often it is said, nobody asks or answers more than once, twice delivered.
        assert_eq!(count(&sent, "asked"), 2 * (DEVICES - 1));
        assert_eq!(count(&sent, "means"), 4 * (DEVICES - 1));
        assert_eq!(watched.plan(), expected.plan());
    }
}

/// Messages to a device, and what it says upon them.
struct Told {
    device: Device,
    epoch: u64,
}

impl Told {
    fn hear(&mut self, from: Place, message: &Message) -> Result<Vec<Message>, Refusal> {
        let actions = self.device.receive(from, &Envelope::new(self.epoch, message.clone()))?;
        Ok(said(actions))
    }

    fn begin(&mut self, epoch: u64) {
        self.epoch = epoch;
        self.hear(ALL[0], &Message::Begin(ALL.to_vec())).unwrap();
    }
}

fn said(actions: Vec<Action>) -> Vec<Message> {
    let message = |action| match action {
        Action::Send(_, envelope) => Some(envelope.message),
        _ => None,
    };
    actions.into_iter().filter_map(message).collect()
}

/// What the devices at these places publish.
fn published(settings: &sketch::Settings, places: [usize; 2]) -> [Message; 2] {
    places.map(|place| {
        let steps = vec![100 * place as i16 + 1; settings.features];
        let sketch = sketch::Sketch::from_steps(100, &steps, settings);
        Message::Means(Means::of(&sketch, settings), None)
    })
}

fn unchanged(means: &Message) -> Message {
    let Message::Means(means, _) = means else { panic!("{means:?}") };
    Message::Unchanged(means.digest(), None)
}

#[test]
fn a_digest_stands_for_nothing_but_what_its_own_sender_sent() {
    let settings = sketch::Settings::means(SHAPE);
    let [of_three, of_four] = published(&settings, [3, 4]);
    let mut told = Told { device: fleet(holdings(&data())).swap_remove(2), epoch: 0 };
    told.begin(1);
    assert_eq!(told.hear(ALL[3], &of_three), Ok(vec![]));
    // Somebody else's means, and means that nobody has: they are asked for, once.
    for digest in [unchanged(&of_three), Message::Unchanged([9; 16], None)] {
        let expected =
            if digest == unchanged(&of_three) { vec![Message::AskForMeans] } else { vec![] };
        assert_eq!(told.hear(ALL[4], &digest), Ok(expected));
        assert!(told.device.missing().contains(&ALL[4]));
    }
    let known = told.device.known();
    assert_eq!(told.hear(ALL[4], &of_four), Ok(vec![]));
    assert_eq!(told.device.known(), known + 1);
    // Within an epoch nobody has two.
    for (from, message) in [
        (ALL[3], &of_four),
        (ALL[3], &unchanged(&of_four)),
        (ALL[4], &unchanged(&of_three)),
        (ALL[4], &Message::Unchanged([9; 16], None)),
    ] {
        assert_eq!(told.hear(from, message), Err(Refusal::Twice(from)));
    }
    assert_eq!(told.hear(ALL[3], &unchanged(&of_three)), Ok(vec![]));
    // What was refused was not kept either.
    told.begin(2);
    assert_eq!(told.hear(ALL[3], &unchanged(&of_four)), Ok(vec![Message::AskForMeans]));
    assert_eq!(told.hear(ALL[3], &unchanged(&of_three)), Ok(vec![]));
    assert!(!told.device.missing().contains(&ALL[3]));
    // Neither strangers nor those that take no part are heard.
    for stranger in [Place::new(77), ALL[2]] {
        assert!(told.hear(stranger, &unchanged(&of_three)).is_err());
    }
}

/// The planner knows all means of an epoch before; by others it would choose the divergences that devices measure and sign.
#[test]
fn the_planner_passes_on_only_what_their_device_has_signed() {
    let settings = sketch::Settings::means(SHAPE);
    let [of_three, of_four] = published(&settings, [3, 4]).map(|message| match message {
        Message::Means(means, _) => means,
        other => panic!("{other:?}"),
    });
    let signed = |means: &Means, epoch: u64, by: Place| {
        MeansSignature::sign(means.digest(), epoch.into(), Fingerprint::default(), &identity(by))
    };
    let mut devices = fleet(holdings(&data()));
    let mut told = Told { device: devices.swap_remove(2), epoch: 0 };
    told.begin(1);
    let before = told.device.known();
    for signature in
        [signed(&of_three, 1, ALL[0]), signed(&of_three, 2, ALL[3]), signed(&of_four, 1, ALL[3])]
    {
        let passed_on = Message::PassedOn(ALL[3], of_three.clone(), signature);
        let lie = Refusal::Plan(Objection::Invented(ALL[3]));
        assert_eq!(told.hear(ALL[0], &passed_on), Err(lie));
        assert_eq!(told.device.known(), before);
    }
    // What the device says itself counts, and so does what it signed.
    let own = Message::Means(of_three.clone(), None);
    assert_eq!(told.hear(ALL[3], &own), Ok(vec![]));
    let passed_on = Message::PassedOn(ALL[4], of_four.clone(), signed(&of_four, 1, ALL[4]));
    assert_eq!(told.hear(ALL[0], &passed_on), Ok(vec![]));
    assert_eq!(told.hear(ALL[4], &Message::Means(of_four.clone(), None)), Ok(vec![]));
    assert_eq!(told.device.known(), before + 2);
    // The planner hears nothing that it could not pass on.
    let mut planner = devices.swap_remove(0);
    planner.begin(1, &ALL, &BTreeSet::new());
    let mut hear = |message: Message| planner.receive(ALL[3], &Envelope::new(1, message)).map(drop);
    for signature in [None, Some(signed(&of_three, 2, ALL[3]))] {
        let unsigned = Err(Refusal::UnsignedMeans(ALL[3]));
        assert_eq!(hear(Message::Means(of_three.clone(), signature.clone())), unsigned);
        assert_eq!(hear(Message::Unchanged(of_three.digest(), signature)), unsigned);
    }
    let signature = signed(&of_three, 1, ALL[3]);
    assert_eq!(hear(Message::Means(of_three.clone(), Some(signature.clone()))), Ok(()));
    let passed = planner.pass_on(&[ALL[3], ALL[4]], ALL[1]);
    assert_eq!(said(passed), [Message::PassedOn(ALL[3], of_three, signature)]);
}

#[test]
fn nobody_gets_means_more_than_once_in_an_epoch() {
    let mut watched = Watched::new(fleet(holdings(&data())), 1);
    let ask = |epoch| Envelope::new(epoch, Message::AskForMeans).to_bytes();
    for (epoch, answers) in [(1, 0), (2, 1), (3, 1)] {
        let sent = watched.epoch(epoch);
        let before = count(&sent, "means");
        for _ in 0..5 {
            watched.network.inject(ALL[5], ALL[0], ask(epoch));
        }
        // The answer is what the asker has heard already.
        watched.network.run().unwrap();
        let means = count(&watched.sent.lock().unwrap(), "means") - before;
        assert_eq!((means, &watched.network.refused[..]), (answers, &[][..]));
    }
}

#[test]
fn whoever_left_the_roster_is_forgotten() {
    let settings = sketch::Settings::means(SHAPE);
    let [of_three, _] = published(&settings, [3, 4]);
    let mut told = Told { device: fleet(holdings(&data())).swap_remove(2), epoch: 0 };
    told.begin(1);
    told.hear(ALL[3], &of_three).unwrap();
    let roster = crate::common::roster();
    let without = roster.clone().without("d4").unwrap();
    told.device.set_roster(without);
    let rest: Vec<Place> = ALL.into_iter().filter(|&place| place != ALL[3]).collect();
    told.epoch = 2;
    told.hear(ALL[0], &Message::Begin(rest)).unwrap();
    told.device.set_roster(roster);
    told.begin(3);
    let asked = told.hear(ALL[3], &unchanged(&of_three));
    assert_eq!(asked, Ok(vec![Message::AskForMeans]));
}
