//! The messages that this device has sent in the running epoch. When a connection breaks, messages are lost without notice, so all of them
//! are sent again on the next connection; a receiver that has them already ignores them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::roster::Place;
use crate::wire::{Envelope, Message};

/// At most this many turns of a pair can be lost without notice: a device sends its next turn only once the other's has arrived, and the
/// other sent that after it had received this device's last turn but one.
const TURNS: usize = 2;

/// The messages of an epoch, by receiver, in the order in which they were sent.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    said: BTreeMap<Place, Vec<Said>>,
}

#[derive(Debug)]
struct Said {
    bytes: Arc<[u8]>,
    is_turn: bool,
    is_complete: bool,
}

impl Outbox {
    /// Keeps a message, and returns its bytes as they are sent. A message that goes to all devices is stored only once.
    pub(super) fn keep(&mut self, to: Place, envelope: &Envelope) -> Arc<[u8]> {
        let bytes = envelope.to_bytes();
        let others = self.said.values().filter_map(|said| said.last());
        let known = others.map(|said| &said.bytes).find(|known| known[..] == bytes[..]).cloned();
        let bytes = known.unwrap_or_else(|| bytes.into());
        let is_turn = matches!(envelope.message, Message::Turn(_));
        let said = self.said.entry(to).or_default();
        let mut turns = said.iter().enumerate().filter(|(_, s)| s.is_turn).map(|(at, _)| at);
        if let (true, Some(oldest), TURNS) = (is_turn, turns.next(), turns.count() + 1) {
            said.remove(oldest);
        }
        let is_complete = envelope.message == Message::Complete;
        said.push(Said { bytes: bytes.clone(), is_turn, is_complete });
        bytes
    }

    /// Returns all messages that were sent to a device.
    pub(super) fn to(&self, place: Place) -> Vec<Arc<[u8]>> {
        self.said.get(&place).into_iter().flatten().map(|said| said.bytes.clone()).collect()
    }

    /// Forgets that a device was told that the epoch is over: it has started anew, and for it the epoch is not.
    pub(super) fn withdraw_complete(&mut self, place: Place) {
        if let Some(said) = self.said.get_mut(&place) {
            said.retain(|said| !said.is_complete);
        }
    }

    /// Forgets all messages, because another epoch begins.
    pub(super) fn clear(&mut self) {
        self.said.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Said as InTurn, Turn};

    #[test]
    fn what_goes_to_all_is_kept_once_and_of_turns_the_last() {
        let mut outbox = Outbox::default();
        let turn = |number| {
            let said = InTurn::Params(vec![0.5; 9]);
            Envelope::new(3, Message::Turn(Turn { number, said }))
        };
        let places = [0, 1, 2].map(Place::new);
        let begin = Envelope::new(3, Message::Begin(places.to_vec()));
        let [one, two] = [1, 2].map(|to| outbox.keep(places[to], &begin));
        assert!(Arc::ptr_eq(&one, &two));
        for number in 0..5 {
            outbox.keep(places[1], &turn(number));
        }
        let expected = [begin.to_bytes(), turn(3).to_bytes(), turn(4).to_bytes()];
        assert!(outbox.to(places[1]).iter().map(|bytes| bytes.to_vec()).eq(expected));
        assert_eq!((outbox.to(places[2]).len(), outbox.to(Place::new(3)).len()), (1, 0));
        let complete = Envelope::new(3, Message::Complete);
        let before = outbox.to(places[1]).len();
        outbox.keep(places[1], &complete);
        assert_eq!(outbox.to(places[1]).len(), before + 1);
        outbox.withdraw_complete(places[1]);
        assert_eq!(outbox.to(places[1]).len(), before);
        outbox.clear();
        assert!(outbox.to(places[1]).is_empty());
    }
}
