//! How many lines a device writes of what others can cause at will: messages that it refuses, devices that come and go or differ, links that
//! they have forbidden, callers that it turns away. Of a flood from one member only the beginning is told, and the lines of all others are
//! told as ever. Messages and callers are counted in the status too. And when the status is shown after
//! such an event.

use std::collections::BTreeMap;
use std::time::Duration;

use stlf_protocol::Place;

use crate::network::Event;

/// The most lines in a minute of what one member causes, or all together that are no members.
const MOST: u32 = 100;

const MINUTE: Duration = Duration::from_secs(60);

/// How often, at most, the status is shown after events that others cause. A device of a large fleet hears of all others at once.
const SHOWN_EVERY: Duration = Duration::from_millis(250);

/// Who causes an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    /// Callers that are no members, whose keys cost nothing.
    Strangers,
    /// The device at this place of the roster.
    Member(Place),
}

impl Cause {
    /// Returns who can cause an event as often as it likes; nobody of what is the device's own, and of what comes once in an epoch, since
    /// whoever has epochs begin again and again is left out.
    fn of(event: &Event) -> Option<Cause> {
        let place = match event {
            Event::TurnedAway(_) => return Some(Cause::Strangers),
            Event::Came(from) | Event::Lost(from) | Event::LeftOut(from) => from,
            Event::Absent { from, .. }
            | Event::NotKnownTo { from }
            | Event::UsedTwice { from }
            | Event::Differs { from, .. }
            | Event::Received { from, .. }
            | Event::NotReceived { from, .. }
            | Event::Distrusts { from }
            | Event::Awaits { from }
            | Event::TrainsOn { from, .. }
            | Event::TrainedOn { from, .. }
            | Event::Refused { from, .. } => from,
            // The receiver says that nothing usable came.
            Event::Forbidden { to, .. } => to,
            Event::Listens(_)
            | Event::CannotSearch(_)
            | Event::Roster(_)
            | Event::Began { .. }
            | Event::Measured
            | Event::Judged
            | Event::Planned { .. }
            | Event::NoPlan(_)
            | Event::Ended
            | Event::Complete
            | Event::Alive => return None,
        };
        Some(Cause::Member(*place))
    }
}

/// What was told in the running minute.
#[derive(Debug, Default)]
pub(super) struct LineLimit {
    /// When it began, if anything was told in it.
    since: Option<Duration>,
    told: BTreeMap<Cause, u32>,
    untold: u64,
}

impl LineLimit {
    /// Returns whether to tell of an event at this time.
    pub(super) fn takes(&mut self, event: &Event, now: Duration) -> bool {
        let Some(cause) = Cause::of(event) else { return true };
        self.since.get_or_insert(now);
        let told = self.told.entry(cause).or_default();
        let takes = *told < MOST;
        match takes {
            true => *told += 1,
            false => self.untold += 1,
        }
        takes
    }

    /// Begins another minute when one is over. Returns the number of events in it that were not told, if there are any.
    pub(super) fn over(&mut self, now: Duration) -> Option<u64> {
        if now.saturating_sub(self.since?) < MINUTE {
            return None;
        }
        let untold = std::mem::take(self).untold;
        (untold > 0).then_some(untold)
    }
}

/// When to show the status.
#[derive(Debug, Default)]
pub(super) struct ShownPace {
    next: Duration,
}

impl ShownPace {
    /// Returns whether to show the status after an event at this time. What is not shown then is shown within a second, with [`Event::Alive`].
    pub(super) fn shows(&mut self, event: &Event, now: Duration) -> bool {
        let shows = Cause::of(event).is_none() || now >= self.next;
        if shows {
            self.next = now + SHOWN_EVERY;
        }
        shows
    }
}

#[cfg(test)]
mod tests {
    use stlf_planning::plan::Way;
    use stlf_protocol::PeerId;

    use super::*;

    const FLOOD: usize = 1_000;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn of_a_flood_the_beginning_is_told_and_then_its_size() {
        let mut limit = LineLimit::default();
        let refused = Event::Refused { from: Place::new(1), reason: String::new() };
        let told = (0..FLOOD).filter(|_| limit.takes(&refused, at(7))).count();
        assert_eq!(told, MOST as usize);
        assert!(limit.takes(&Event::Ended, at(8)), "nobody causes that at will");
        assert_eq!(limit.over(at(66)), None);
        assert_eq!(limit.over(at(67)), Some(900));
        assert_eq!(limit.over(at(200)), None, "it is told once");
        assert!(limit.takes(&refused, at(201)));
        assert_eq!(limit.over(at(300)), None, "nothing was left out");
    }

    #[test]
    fn the_status_is_shown_at_once_and_not_for_each_of_many_that_come_together() {
        let mut pace = ShownPace::default();
        let came = |k: usize| Event::Came(Place::new(k));
        let after = Duration::from_millis;
        let shown = (0..FLOOD).filter(|&k| pace.shows(&came(k), at(5) + after(k as u64)));
        assert_eq!(shown.count(), 4);
        // What the device itself does is shown at once, and then a while has passed again.
        assert!(pace.shows(&Event::Measured, at(6)) && pace.shows(&Event::Alive, at(6)));
        assert!(!pace.shows(&came(1), at(6) + after(249)));
        assert!(pace.shows(&came(1), at(6) + after(250)));
    }

    #[test]
    fn who_comes_and_goes_silences_nobody_else() {
        let mut limit = LineLimit::default();
        let (one, other) = (Place::new(1), Place::new(2));
        let floods = [
            Event::Came(one),
            Event::Lost(one),
            Event::LeftOut(one),
            Event::Forbidden { from: other, to: one },
            Event::NotReceived { from: one, reason: String::new() },
            Event::Distrusts { from: one },
            Event::TrainedOn { from: one, way: Way::First },
        ];
        let all = floods.iter().cycle().take(FLOOD);
        assert_eq!(all.filter(|event| limit.takes(event, at(1))).count(), MOST as usize);
        let stranger = Event::TurnedAway(PeerId::from_bytes([7; 32]));
        let all = std::iter::repeat_n(&stranger, FLOOD);
        assert_eq!(all.filter(|event| limit.takes(event, at(2))).count(), MOST as usize);
        assert!(limit.takes(&Event::Came(other), at(3)));
        assert!(limit.takes(&Event::Forbidden { from: one, to: other }, at(3)));
        assert_eq!(limit.over(at(61)), Some(2 * 900));
    }
}
