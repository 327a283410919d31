//! What is on its way to other devices: a device that does not take what it is sent must not fill the memory of those that send.

use std::collections::BTreeMap;

use stlf_protocol::roster::Place;

/// The most bytes that may be on their way to one device. All messages of an epoch to one device are far fewer.
const MOST_BYTES: usize = 64 << 20;

/// The most messages that may be on their way to one device.
const MOST_MESSAGES: usize = 4_096;

/// Messages and bytes on their way, by receiver.
#[derive(Debug, Default)]
pub(super) struct Waiting(BTreeMap<Place, (usize, usize)>);

impl Waiting {
    /// Counts a message as sent, unless too much is on its way there already.
    #[must_use]
    pub(super) fn takes(&mut self, to: Place, bytes: usize) -> bool {
        let (messages, waiting) = self.0.entry(to).or_default();
        // One message always may, however long.
        if *messages >= MOST_MESSAGES || (*messages > 0 && *waiting + bytes > MOST_BYTES) {
            return false;
        }
        (*messages, *waiting) = (*messages + 1, *waiting + bytes);
        true
    }

    /// Counts a message as arrived, or as one that never will.
    pub(super) fn is_through(&mut self, to: Place, bytes: usize) {
        let (messages, waiting) = self.0.entry(to).or_default();
        (*messages, *waiting) = (messages.saturating_sub(1), waiting.saturating_sub(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_much_is_on_its_way_to_each() {
        let (mut waiting, [one, other]) = (Waiting::default(), [0, 1].map(Place::new));
        assert!(waiting.takes(one, 2 * MOST_BYTES), "a single message");
        assert!(!waiting.takes(one, 1));
        assert!(waiting.takes(other, 1), "another device");
        waiting.is_through(one, 2 * MOST_BYTES);
        let taken = (0..2 * MOST_MESSAGES).filter(|_| waiting.takes(one, 1)).count();
        assert_eq!(taken, MOST_MESSAGES);
        waiting.is_through(one, 1);
        assert!(waiting.takes(one, 1) && !waiting.takes(one, 1));
    }
}
