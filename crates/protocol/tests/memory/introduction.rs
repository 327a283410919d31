//! A device that is not in the roster shows one that has it: who is believed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use stlf_learn::Params;
use stlf_planning::plan::Way;
use stlf_protocol::job::Job;
use stlf_protocol::membership::Timing;
use stlf_protocol::participant::{Closing, Event};
use stlf_protocol::shared::SharedSettings;
use stlf_protocol::wire::{Envelope, Limits, Message, Offer};
use stlf_protocol::{Identity, Participant, PeerId, Place, Roster, SignedRoster, Surroundings};

use crate::common::{ALL, holdings, owner, roster, setup, signed, untrained};

/// What a participant sent and told.
#[derive(Default)]
struct Seen {
    rosters: Vec<(Place, SignedRoster)>,
    versions: Vec<u64>,
    refused: usize,
    closed: usize,
}

impl Surroundings for Seen {
    fn send(&mut self, to: Place, bytes: Arc<[u8]>) {
        let message = Limits::default().read(&bytes).unwrap().message;
        if let Message::Roster(bytes) = message {
            self.rosters.push((to, SignedRoster::read(&bytes).unwrap()));
        }
    }
    fn close(&mut self, _: Place, _: Closing) {
        self.closed += 1;
    }
    fn begin_epoch(&mut self, _: Duration) {}
    fn compute(&mut self, _: Job) {}
    fn is_computing(&mut self) -> bool {
        false
    }
    fn progress(&mut self, _: Duration, _: Duration) -> Option<u8> {
        None
    }
    fn offer(&mut self, _: &Params, _: Way, _: Vec<(Place, PeerId)>, _: u64) {}
    fn fetch(&mut self, _: Place, _: Offer, _: u64) -> bool {
        false
    }
    fn arriving(&mut self) -> BTreeMap<(Place, Way), u64> {
        BTreeMap::new()
    }
    fn joules(&mut self, _: &[Place]) -> Option<BTreeMap<Place, f64>> {
        None
    }
    fn tell(&mut self, _: &Participant, event: Event) {
        match event {
            Event::Roster(roster) => self.versions.push(roster.roster().version),
            Event::Refused { .. } => self.refused += 1,
            _ => {}
        }
    }
}

fn participant() -> Participant {
    let device = untrained(&setup(), holdings(&crate::common::data())).remove(0);
    let settings = SharedSettings::new([]);
    Participant::new(device, signed(), settings, Timing::default(), 0, 1)
}

fn shown(roster: &SignedRoster) -> Vec<u8> {
    Envelope::new(3, Message::Roster(roster.to_json().into_bytes())).to_bytes()
}

#[test]
fn a_newer_roster_of_the_owner_lets_a_device_in_and_goes_to_all_others() {
    let (mut first, mut seen) = (participant(), Seen::default());
    first.connect(ALL[3], Duration::ZERO, &mut seen);
    let newcomer = Identity::from_bytes(&[77; 32]).id();
    let newer = roster().with("newcomer", newcomer).unwrap().sign(&owner()).unwrap();
    assert!(first.introduce(newcomer, &shown(&newer), Duration::ZERO, &mut seen));
    assert_eq!(first.roster(), newer.roster());
    assert_eq!(seen.versions, [newer.roster().version]);
    assert_eq!(seen.rosters, [(ALL[3], newer.clone())]);
    // It says the same of itself to those that do not know it.
    let said = Limits::default().read(&first.introduction()).unwrap().message;
    assert_eq!(said, Message::Roster(newer.to_json().into_bytes()));
    // Shown once more by a member, it changes nothing.
    assert!(first.introduce(newcomer, &shown(&newer), Duration::ZERO, &mut seen));
    assert_eq!(seen.versions.len(), 1);
}

#[test]
fn nobody_is_let_in_by_what_the_owner_did_not_sign_for_it() {
    let (mut first, mut seen) = (participant(), Seen::default());
    let (newcomer, other) = (Identity::from_bytes(&[77; 32]), Identity::from_bytes(&[78; 32]));
    let with = |identity: &Identity| roster().with("newcomer", identity.id()).unwrap();
    let own = Roster { owner: newcomer.id(), ..with(&newcomer) }.sign(&newcomer).unwrap();
    let elsewhere = Roster { fleet: "elsewhere".to_owned(), ..with(&newcomer) };
    let older = Roster { version: 1, ..with(&newcomer) };
    let valid = with(&newcomer).sign(&owner()).unwrap();
    let forged = shown(&valid.clone());
    let forged = String::from_utf8_lossy(&forged).replace("\"newcomer\"", "\"nobody_!\"");
    for bytes in [
        shown(&own),
        shown(&elsewhere.sign(&owner()).unwrap()),
        shown(&older.sign(&owner()).unwrap()),
        shown(&with(&other).sign(&owner()).unwrap()),
        shown(&signed()),
        forged.into_bytes(),
        Envelope::new(3, Message::Known).to_bytes(),
        b"nonsense".to_vec(),
        Vec::new(),
    ] {
        assert!(!first.introduce(newcomer.id(), &bytes, Duration::ZERO, &mut seen));
    }
    assert_eq!((first.roster(), seen.versions.len()), (signed().roster(), 0));
    // Who was removed stays out, whatever it shows.
    let removed = roster().without(&roster().devices[2].name).unwrap().sign(&owner()).unwrap();
    first.offer_roster(removed.clone(), &mut seen);
    let gone = roster().devices[2].key;
    for roster in [signed(), removed] {
        assert!(!first.introduce(gone, &shown(&roster), Duration::ZERO, &mut seen));
    }
}

#[test]
fn a_new_connection_does_not_make_up_for_what_was_refused() {
    let (mut first, mut seen) = (participant(), Seen::default());
    let at = Duration::from_secs;
    for _ in 0..10 {
        first.connect(ALL[3], at(1), &mut seen);
        (0..300).for_each(|_| first.hear_message(ALL[3], b"nonsense", at(1), &mut seen));
    }
    assert_eq!((seen.refused, seen.closed), (1_000, 1));
    // Later one message a second is heard.
    first.connect(ALL[3], at(11), &mut seen);
    (0..300).for_each(|_| first.hear_message(ALL[3], b"nonsense", at(11), &mut seen));
    assert_eq!((seen.refused, seen.closed), (1_010, 2));
}

#[test]
fn the_roster_that_is_known_is_nothing_new_and_an_older_one_is_refused() {
    let (mut first, mut seen) = (participant(), Seen::default());
    let newer = roster().with("newcomer", Identity::from_bytes(&[77; 32]).id()).unwrap();
    let newer = newer.sign(&owner()).unwrap();
    first.offer_roster(newer.clone(), &mut seen);
    first.connect(ALL[3], Duration::ZERO, &mut seen);
    first.hear_message(ALL[3], &shown(&newer), Duration::ZERO, &mut seen);
    assert_eq!(seen.refused, 0);
    first.hear_message(ALL[3], &shown(&signed()), Duration::ZERO, &mut seen);
    // The same with so many spaces that it takes long to read.
    let padded = newer.to_json() + &" ".repeat(1 << 20);
    let padded = Envelope::new(3, Message::Roster(padded.into_bytes())).to_bytes();
    first.hear_message(ALL[3], &padded, Duration::ZERO, &mut seen);
    assert_eq!((seen.refused, seen.versions.len()), (2, 1));
}
