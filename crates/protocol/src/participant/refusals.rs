//! How much of what a device says was refused lately, whichever connections it said it on.

use std::time::Duration;

/// A device of which this many messages were refused lately is not heard.
const MOST: u32 = 1_000;

/// One that was refused is forgotten after this long. An honest device has fewer, also where it says again what is of no use any more.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(1);

/// The refused messages of one device.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    count: u32,
    /// Up to when those are counted that are forgotten.
    since: Duration,
}

impl Refusals {
    /// Returns whether too many were refused for this device to be heard now.
    pub(super) fn are_too_many(&mut self, now: Duration) -> bool {
        self.forget(now);
        self.count >= MOST
    }

    /// Counts one more. Whether they are too many now.
    pub(super) fn add(&mut self, now: Duration) -> bool {
        self.forget(now);
        self.count = self.count.saturating_add(1);
        self.count >= MOST
    }

    fn forget(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.since);
        let forgotten = passed.as_secs() / FORGOTTEN_AFTER.as_secs();
        let forgotten = u32::try_from(forgotten).unwrap_or(u32::MAX).min(self.count);
        self.count -= forgotten;
        self.since += FORGOTTEN_AFTER * forgotten;
        if self.count == 0 {
            self.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_forgotten_one_a_second_and_not_before() {
        let (mut refusals, at) = (Refusals::default(), Duration::from_millis);
        assert!((1..MOST).all(|_| !refusals.add(at(500))));
        assert!(refusals.add(at(500)) && refusals.are_too_many(at(1_499)));
        assert!(!refusals.are_too_many(at(1_500)));
        assert!(refusals.add(at(1_600)) && refusals.are_too_many(at(2_499)));
        assert!(!refusals.are_too_many(at(2_500)));
        // After a day nothing is left of them.
        let later = Duration::from_secs(86_400);
        assert!((1..MOST).all(|_| !refusals.add(later)) && refusals.add(later));
    }
}
