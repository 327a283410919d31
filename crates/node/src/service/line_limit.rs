//! How many lines a device writes of what others can cause at will: messages that it refuses, and callers that it turns away. All are
//! counted in its status; of a flood only the beginning is told.

use std::time::Duration;

use crate::network::Event;

/// The most lines of this kind in a minute.
const MOST: u32 = 100;

const MINUTE: Duration = Duration::from_secs(60);

/// What was told in the running minute.
#[derive(Debug, Default)]
pub(super) struct LineLimit {
    /// When it began.
    since: Duration,
    told: u32,
    untold: u64,
}

impl LineLimit {
    /// Returns whether to tell of an event at this time.
    pub(super) fn takes(&mut self, event: &Event, now: Duration) -> bool {
        if !matches!(event, Event::Refused { .. } | Event::TurnedAway(_) | Event::NotKnownTo { .. })
        {
            return true;
        }
        let takes = self.told < MOST;
        match takes {
            true => self.told += 1,
            false => self.untold += 1,
        }
        if self.told == 1 {
            self.since = now;
        }
        takes
    }

    /// Begins another minute when one is over. Returns the number of events in it that were not told, if there are any.
    pub(super) fn over(&mut self, now: Duration) -> Option<u64> {
        if self.told == 0 || now.saturating_sub(self.since) < MINUTE {
            return None;
        }
        let untold = std::mem::take(self).untold;
        (untold > 0).then_some(untold)
    }
}

#[cfg(test)]
mod tests {
    use stlf_protocol::Place;

    use super::*;

    #[test]
    fn of_a_flood_the_beginning_is_told_and_then_its_size() {
        let mut limit = LineLimit::default();
        let refused = Event::Refused { from: Place::new(1), reason: String::new() };
        let at = Duration::from_secs;
        let told = (0..1_000).filter(|_| limit.takes(&refused, at(7))).count();
        assert_eq!(told, MOST as usize);
        assert!(limit.takes(&Event::Ended, at(8)), "nobody causes that at will");
        assert_eq!(limit.over(at(66)), None);
        assert_eq!(limit.over(at(67)), Some(900));
        assert_eq!(limit.over(at(200)), None, "it is told once");
        assert!(limit.takes(&refused, at(201)));
        assert_eq!(limit.over(at(300)), None, "nothing was left out");
    }
}
