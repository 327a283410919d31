//! How devices meet: greetings, rosters, lost connections. Before a device has greeted, its messages are not handled and nothing is sent to
//! it.

use std::sync::atomic::Ordering;

use iroh::endpoint::Connection;
use stlf_protocol::roster::{Invalid, Place, SignedRoster};
use stlf_protocol::wire::{Envelope, Hello, Message, PROBE_BYTES};

use super::Event;
use super::member::{Member, Observer, add_traffic, present};

/// The number of messages from a device that may arrive before its greeting.
const MOST_BEFORE_GREETING: usize = 16;

impl Member {
    /// Takes up a new connection, and sends a greeting on it.
    pub(super) fn connect(&mut self, place: Place, connection: Connection) {
        if let Some(old) = self.connections.insert(place, connection) {
            add_traffic(&mut self.tally, &old);
            old.close(200_u32.into(), b"there is a newer connection");
        }
        self.forget(place);
        let hello = Hello {
            roster: self.roster.roster().version,
            start: self.start,
            running: self.running(),
            settings: self.settings.clone(),
        };
        self.tell_known(place, Message::Hello(hello));
    }

    /// Forgets what was received on a connection that no longer exists.
    fn forget(&mut self, place: Place) {
        self.refused.remove(&place);
        self.greeted.remove(&place);
        self.before_greeting.remove(&place);
        self.untimely.remove(&place);
    }

    pub(super) fn lose(&mut self, place: Place, id: usize, observer: &mut Observer<'_>) {
        // A newer connection may have taken the place of the one that was lost.
        if self.connections.get(&place).is_none_or(|known| known.stable_id() != id) {
            return;
        }
        if let Some(connection) = self.connections.remove(&place) {
            add_traffic(&mut self.tally, &connection);
        }
        self.forget(place);
        let planner = self.membership.planner();
        let was_here = self.membership.here().contains(&place);
        self.membership.lost(place, self.now);
        if was_here {
            self.tell(Event::Lost(place), observer);
        }
        // Who plans next may not have heard of the epoch that the last planner began, and must not use its number again.
        if planner == Some(place)
            && let Some(&next) = self.membership.here().first()
        {
            self.tell_known(next, Message::Known);
        }
    }

    /// Returns whether to handle a message now; one that arrived before its sender's greeting is kept for later.
    pub(super) fn is_greeted(&mut self, place: Place, envelope: &Envelope) -> Result<bool, String> {
        // A roster speaks for itself.
        let is_first = matches!(envelope.message, Message::Hello(_) | Message::Roster(_));
        if is_first || self.greeted.contains(&place) {
            return Ok(true);
        }
        let kept = self.before_greeting.entry(place).or_default();
        if kept.len() == MOST_BEFORE_GREETING || self.membership.unlike().contains_key(&place) {
            return Err("it has not greeted, or has other settings".to_owned());
        }
        kept.push(envelope.clone());
        Ok(false)
    }

    /// Handles a greeting: a device with equal settings takes part from now on, and is sent again what it may have missed.
    pub(super) fn hear_hello(
        &mut self,
        place: Place,
        epoch: u64,
        hello: &Hello,
        observer: &mut Observer<'_>,
    ) -> Result<(), String> {
        if self.greeted.contains(&place) || self.membership.unlike().contains_key(&place) {
            return Err("it has greeted before".to_owned());
        }
        self.hear_known(epoch)?;
        if hello.roster < self.roster.roster().version {
            self.tell_known(place, Message::Roster(self.roster.to_json().into_bytes()));
        }
        if let Some(difference) = self.settings.difference(&hello.settings) {
            self.membership.set_apart(place, difference.clone(), self.now);
            self.tell(Event::Differs { from: place, difference }, observer);
            return Ok(());
        }
        self.greeted.insert(place);
        self.membership.came(place, hello.start, hello.running, self.now);
        self.tell(Event::Came(place), observer);
        self.rates.came(place);
        self.probe(place);
        for bytes in self.outbox.to(place) {
            self.transmit(place, bytes);
        }
        self.fetch_again(place, observer);
        for envelope in self.before_greeting.remove(&place).unwrap_or_default() {
            self.hear_envelope(place, &envelope, observer);
        }
        Ok(())
    }

    /// Sends the next probe over a link, if links are measured and nothing else is on its way there.
    pub(super) fn probe(&mut self, to: Place) {
        if self.joule_bits_per_second > 0.0 && self.rates.takes_probe(to) {
            self.tell_known(to, Message::Probe(vec![0; PROBE_BYTES]));
        }
    }

    /// Handles the number of an epoch that another device knows of.
    pub(super) fn hear_known(&mut self, epoch: u64) -> Result<(), String> {
        match self.membership.heard_of(epoch) {
            true => Ok(()),
            false => Err(format!("epoch {epoch} is too far from the last one here")),
        }
    }

    pub(super) fn hear_roster(
        &mut self,
        bytes: &[u8],
        observer: &mut Observer<'_>,
    ) -> Result<(), String> {
        let roster = SignedRoster::read(bytes).map_err(|e| e.to_string())?;
        match roster.replaces(&self.roster) {
            Ok(()) => self.use_roster(roster, observer),
            // Whoever hears of a newer one passes it on, also to those that have it.
            Err(Invalid::Older { .. }) => {}
            Err(foreign) => return Err(foreign.to_string()),
        }
        Ok(())
    }

    /// Uses a roster that the user gave, if it is newer and of the same fleet.
    pub(super) fn offer_roster(&mut self, roster: SignedRoster, observer: &mut Observer<'_>) {
        if roster.replaces(&self.roster).is_ok() {
            self.use_roster(roster, observer);
        }
    }

    /// Uses a newer roster: disconnects the devices that are no longer in it, and sends it to the others.
    fn use_roster(&mut self, roster: SignedRoster, observer: &mut Observer<'_>) {
        let list = roster.roster().clone();
        self.membership.expect(present(&list));
        self.device.set_roster(list.clone());
        self.ears.longest.store(self.device.limits().longest(), Ordering::Relaxed);
        self.roster = roster.clone();
        let gone = |place: Place| !list.at(place).is_some_and(|member| member.present);
        let left: Vec<Place> = self.places().into_iter().filter(|&place| gone(place)).collect();
        for place in left {
            if let Some(connection) = self.connections.remove(&place) {
                connection.close(403_u32.into(), b"no longer in the roster");
            }
            self.forget(place);
            self.membership.lost(place, self.now);
            self.tell(Event::Lost(place), observer);
        }
        for place in self.places() {
            self.tell_known(place, Message::Roster(roster.to_json().into_bytes()));
        }
        self.tell(Event::Roster(Box::new(roster)), observer);
    }
}
