//! How devices meet: greetings, rosters, lost connections. Before a device has greeted, its messages are not handled and nothing is sent to
//! it.

use std::time::Duration;

use super::{Closing, Event, Participant, Surroundings, present};
use crate::identity::PeerId;
use crate::roster::{Place, SignedRoster};
use crate::wire::{Envelope, Hello, Message};

/// The number of messages from a device that may arrive before its greeting.
const MOST_BEFORE_GREETING: usize = 16;

/// The bytes that these may have together. One of them may have any length, since the first one alone may be a plan of a large fleet.
const MOST_BYTES_BEFORE_GREETING: usize = 1 << 20;

/// The messages of a device that arrived before its greeting, and how long they were together.
#[derive(Debug, Default)]
pub(super) struct Early {
    messages: Vec<Envelope>,
    bytes: usize,
}

impl Early {
    /// Keeps a message, unless it is too much. Whether it is kept.
    fn keep(&mut self, envelope: &Envelope, bytes: usize) -> bool {
        let all = self.bytes.saturating_add(bytes);
        let is_too_long = !self.messages.is_empty() && all > MOST_BYTES_BEFORE_GREETING;
        if is_too_long || self.messages.len() == MOST_BEFORE_GREETING {
            return false;
        }
        self.bytes = all;
        self.messages.push(envelope.clone());
        true
    }
}

impl Participant {
    /// There is a new connection to the device at a place, in place of any other. A greeting is sent on it.
    pub fn connect(&mut self, place: Place, now: Duration, world: &mut impl Surroundings) {
        self.look_at(now);
        self.connected.insert(place);
        self.forget(place);
        let hello = Hello {
            roster: self.roster().version,
            start: self.start,
            running: self.running_id(),
            settings: self.settings.clone(),
        };
        self.tell_known(place, Message::Hello(hello), world);
    }

    /// Forgets what was received on a connection that no longer exists, but not how much of it was refused.
    fn forget(&mut self, place: Place) {
        self.greeted.remove(&place);
        self.before_greeting.remove(&place);
    }

    /// The connection to the device at a place is lost, and there is no other.
    pub fn lose(&mut self, place: Place, now: Duration, world: &mut impl Surroundings) {
        self.look_at(now);
        self.connected.remove(&place);
        self.forget(place);
        let planner = self.membership.planner();
        let was_here = self.membership.here().contains(&place);
        self.membership.lost(place, now);
        if was_here {
            world.tell(self, Event::Lost(place));
        }
        // Who plans next may not have heard of the epoch that the last planner began, and must not use its number again.
        if planner == Some(place)
            && let Some(&next) = self.membership.here().first()
        {
            self.tell_known(next, Message::Known, world);
        }
    }

    /// Returns whether to handle a message now; one that arrived before its sender's greeting is kept for later.
    pub(super) fn is_greeted(
        &mut self,
        place: Place,
        envelope: &Envelope,
        bytes: usize,
    ) -> Result<bool, String> {
        // A roster speaks for itself.
        let is_first = matches!(envelope.message, Message::Hello(_) | Message::Roster(_));
        if is_first || self.greeted.contains(&place) {
            return Ok(true);
        }
        let is_unlike = self.membership.unlike().contains_key(&place);
        if is_unlike || !self.before_greeting.entry(place).or_default().keep(envelope, bytes) {
            return Err("it has not greeted, or has other settings".to_owned());
        }
        Ok(false)
    }

    /// Handles a greeting: a device with equal settings takes part from now on, and is sent again what it may have missed.
    pub(super) fn hear_hello(
        &mut self,
        place: Place,
        epoch: u64,
        hello: &Hello,
        world: &mut impl Surroundings,
    ) -> Result<(), String> {
        if self.greeted.contains(&place) || self.membership.unlike().contains_key(&place) {
            return Err("it has greeted before".to_owned());
        }
        if let Err(reason) = self.hear_known(place, epoch) {
            // It takes part all the same. What it knows of is believed once it has insisted on it.
            self.refuse(place, reason, world);
        }
        if hello.roster < self.roster().version {
            let roster = Message::Roster(self.roster.to_json().into_bytes());
            self.tell_known(place, roster, world);
        }
        if let Some(difference) = self.settings.difference(&hello.settings) {
            self.membership.set_apart(place, difference.clone(), self.now);
            world.tell(self, Event::Differs { from: place, difference });
            return Ok(());
        }
        self.greeted.insert(place);
        if self.starts.entry(place).or_default().greets(hello.start, self.now) {
            world.tell(self, Event::UsedTwice { from: place });
        }
        if self.membership.starts_anew(place, hello.start) {
            self.outbox.withdraw_complete(place);
        }
        self.membership.came(place, hello.start, hello.running, self.now);
        world.tell(self, Event::Came(place));
        self.outbox.to(place).into_iter().for_each(|bytes| world.send(place, bytes));
        self.fetch_again(place, world);
        for envelope in self.before_greeting.remove(&place).unwrap_or_default().messages {
            self.hear_envelope(place, &envelope, world);
        }
        Ok(())
    }

    pub(super) fn hear_roster(
        &mut self,
        bytes: &[u8],
        world: &mut impl Surroundings,
    ) -> Result<(), String> {
        // Whoever hears of a newer one passes it on, also to those that have it.
        if bytes == self.roster.to_json().as_bytes() {
            return Ok(());
        }
        // Anything else costs a device the reading of it, and counts if it is of no use.
        let roster = SignedRoster::read(bytes).map_err(|e| e.to_string())?;
        roster.replaces(&self.roster).map_err(|e| e.to_string())?;
        self.use_roster(roster, world);
        Ok(())
    }

    /// Takes the first message of a device that is not in the roster. A newer roster that the owner signed and that has it makes it a
    /// member; returns whether it is one now.
    pub fn introduce(
        &mut self,
        key: PeerId,
        bytes: &[u8],
        now: Duration,
        world: &mut impl Surroundings,
    ) -> bool {
        self.look_at(now);
        let Ok(bytes) = self.device.limits().read_roster(bytes) else { return false };
        let Ok(roster) = SignedRoster::read(&bytes) else { return false };
        let has_it = roster.roster().place(key).is_some();
        if has_it && roster.replaces(&self.roster).is_ok() {
            self.use_roster(roster, world);
        }
        self.roster().place(key).is_some()
    }

    /// Returns what this device says first to one that does not know it: the roster that it is in.
    pub fn introduction(&self) -> Vec<u8> {
        let roster = self.roster.to_json().into_bytes();
        Envelope::new(self.membership.epoch(), Message::Roster(roster)).to_bytes()
    }

    /// Uses a roster that the user gave, if it is newer and of the same fleet.
    pub fn offer_roster(&mut self, roster: SignedRoster, world: &mut impl Surroundings) {
        if roster.replaces(&self.roster).is_ok() {
            self.use_roster(roster, world);
        }
    }

    /// Uses a newer roster: disconnects the devices that are no longer in it, and sends it to the others.
    fn use_roster(&mut self, roster: SignedRoster, world: &mut impl Surroundings) {
        let list = roster.roster().clone();
        self.membership.expect(present(&list));
        self.device.set_roster(list.clone());
        self.roster = roster.clone();
        let gone = |place: &Place| !list.at(*place).is_some_and(|member| member.present);
        let left: Vec<Place> = self.connected.iter().copied().filter(gone).collect();
        for place in left {
            self.connected.remove(&place);
            world.close(place, Closing::Removed);
            self.forget(place);
            self.membership.lost(place, self.now);
            world.tell(self, Event::Lost(place));
        }
        for &place in &self.connected {
            self.tell_known(place, Message::Roster(roster.to_json().into_bytes()), world);
        }
        world.tell(self, Event::Roster(Box::new(roster)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_a_greeting_sixteen_messages_are_kept_and_a_megabyte_or_one() {
        let message = |number: u64| Envelope::new(number, Message::Known);
        let mut early = Early::default();
        assert!((0..16).all(|k| early.keep(&message(k), 100)));
        assert!(!early.keep(&message(16), 1) && early.messages.len() == 16);
        let mut early = Early::default();
        assert!(early.keep(&message(0), 50 << 20), "the first may be a plan");
        assert!(!early.keep(&message(1), 1));
        let mut early = Early::default();
        assert!(early.keep(&message(0), 1) && early.keep(&message(1), 1 << 19));
        assert!(!early.keep(&message(2), 1 << 19) && early.keep(&message(3), 1 << 18));
    }
}
