//! Who is at the owner's door: callers that have shown no valid ticket yet, and devices that have. Anybody who reaches the port can call,
//! so that the two are counted apart.

use std::collections::VecDeque;
use std::future::Future;

use tokio::task::{AbortHandle, JoinSet};

/// The number of callers without a valid ticket that are heard at the same time. A device shows its ticket with its first message, so that of
/// more the one that came first goes.
const MOST_CALLERS: usize = 64;

/// The number of devices with a ticket that are answered at the same time.
pub(super) const MOST_DEVICES: usize = 256;

/// All whose calls are being answered.
#[derive(Debug, Default)]
pub(super) struct Guests {
    answering: JoinSet<()>,
    /// Those without a valid ticket so far, with their numbers; the first one has come first.
    callers: VecDeque<(u64, AbortHandle)>,
    /// Those with a ticket.
    devices: Vec<AbortHandle>,
    /// The number of all that ever came.
    came: u64,
}

impl Guests {
    /// Answers somebody who calls, in a way that is told the caller's number.
    pub(super) fn answer<F>(&mut self, answer: impl FnOnce(u64) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.forget_who_left();
        if self.callers.len() >= MOST_CALLERS
            && let Some((_, first)) = self.callers.pop_front()
        {
            first.abort();
        }
        self.came += 1;
        self.callers.push_back((self.came, self.answering.spawn(answer(self.came))));
    }

    /// Returns whether so many call that whoever does should first show that its address is its own.
    pub(super) fn are_many(&self) -> bool {
        self.callers.len() > MOST_CALLERS / 2
    }

    /// The caller with this number has shown a valid ticket. Returns whether it is answered on; else too many are, and it may call again.
    pub(super) fn has_ticket(&mut self, number: u64) -> bool {
        self.forget_who_left();
        let Some(at) = self.callers.iter().position(|(caller, _)| *caller == number) else {
            return false;
        };
        let Some((_, handle)) = self.callers.remove(at) else { return false };
        if self.devices.len() >= MOST_DEVICES {
            handle.abort();
            return false;
        }
        self.devices.push(handle);
        true
    }

    /// Forgets those whose call is over.
    pub(super) fn forget_who_left(&mut self) {
        while self.answering.try_join_next().is_some() {}
        self.callers.retain(|(_, handle)| !handle.is_finished());
        self.devices.retain(|handle| !handle.is_finished());
    }

    /// Returns once everybody is answered.
    pub(super) async fn leave(&mut self) {
        while self.answering.join_next().await.is_some() {}
    }

    /// Sends everybody away.
    pub(super) fn send_away(&mut self) {
        self.answering.abort_all();
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test]
    async fn of_too_many_callers_the_first_goes_and_devices_with_a_ticket_stay() {
        let mut guests = Guests::default();
        guests.answer(|_| pending());
        assert!(guests.has_ticket(1) && !guests.has_ticket(1));
        for _ in 0..MOST_CALLERS {
            guests.answer(|_| pending());
        }
        assert!(guests.are_many());
        guests.answer(|_| pending());
        let callers: Vec<u64> = guests.callers.iter().map(|(number, _)| *number).collect();
        assert_eq!((callers[0], callers.len()), (3, MOST_CALLERS));
        assert!(!guests.has_ticket(2), "it was sent away");
        // The one that was sent away is over, and the device with a ticket is not.
        assert!(guests.answering.join_next().await.is_some_and(|ended| ended.is_err()));
        assert!(!guests.devices[0].is_finished());
        guests.send_away();
        guests.leave().await;
        guests.forget_who_left();
        assert!(guests.callers.is_empty() && guests.devices.is_empty());
    }
}
