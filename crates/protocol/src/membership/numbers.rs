//! The numbers of epochs that a device has heard of, and which of them it believes.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::roster::Place;

/// A number further than this from the last epoch that a device took part in is not believed at once, so that nobody can use numbers up.
/// With an epoch every minute a device that was away for two years is still within it.
const FURTHEST: u64 = 1 << 20;

/// The same for a device that never took part, and may join a fleet of any age.
const FURTHEST_FROM_NOTHING: u64 = 1 << 31;

/// A number that is further away comes nearer by so much at most whenever somebody has insisted on it for as long as patience lasts. Whoever
/// has a fleet count faster than it needs to cannot keep those out that were away meanwhile, and needs thousands of years to use numbers up.
const NEARER_BY: u64 = 1 << 29;

/// An epoch that somebody begins may be so far from what this device believes in: its planner may have come nearer to a number that this
/// device has not heard of yet. Within the time of patience all that are begun together get no further than that.
const NEAR: u64 = 1 << 30;

/// What a device knows of numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Numbers {
    /// The highest one that is believed.
    highest: u64,
    /// The last one that this device took part under, or that somebody insisted on for long.
    trusted: u64,
    /// What was trusted when others were last allowed to begin an epoch so far away, and when that was.
    base: (u64, Duration),
    /// Those too far away to be believed at once: who claims them, and since when.
    far: BTreeMap<Place, (u64, Duration)>,
}

impl Numbers {
    /// Of a device that took part under this number last.
    pub(super) fn from(last: u64, now: Duration) -> Numbers {
        Numbers { highest: last, trusted: last, base: (last, now), far: BTreeMap::new() }
    }

    /// The highest one that is believed.
    pub(super) fn highest(&self) -> u64 {
        self.highest
    }

    /// The device takes part under this one.
    pub(super) fn take_part(&mut self, number: u64, patience: Duration, now: Duration) {
        let (base, since) = self.base_at(patience, now);
        self.base = (base, since);
        self.highest = self.highest.max(number);
        self.trusted = self.trusted.max(number);
    }

    /// Somebody knows of this one. Whether it is believed.
    pub(super) fn hear(&mut self, number: u64) -> bool {
        let believed = number <= self.furthest();
        if believed {
            self.highest = self.highest.max(number);
        }
        believed
    }

    fn furthest(&self) -> u64 {
        furthest_from(self.trusted)
    }

    /// Returns from what, and since when, it is counted how far others get.
    fn base_at(&self, patience: Duration, now: Duration) -> (u64, Duration) {
        match now.saturating_sub(self.base.1) >= patience {
            true => (self.trusted, now),
            false => self.base,
        }
    }

    /// Returns whether an epoch may have this number.
    pub(super) fn is_near(&self, number: u64, patience: Duration, now: Duration) -> bool {
        let (base, _) = self.base_at(patience, now);
        number <= furthest_from(base).saturating_add(NEAR).min(u64::MAX - 1)
    }

    /// The same from a device that may insist on it.
    pub(super) fn hear_from(&mut self, from: Place, number: u64, now: Duration) -> bool {
        let believed = self.hear(number);
        if believed {
            self.far.remove(&from);
        } else {
            let (claimed, _) = self.far.entry(from).or_insert((number, now));
            *claimed = number.max(*claimed);
        }
        believed
    }

    /// A device is gone, and insists on nothing.
    pub(super) fn forget(&mut self, place: Place) {
        self.far.remove(&place);
    }

    /// Comes nearer to numbers that others have insisted on for so long; who they are.
    pub(super) fn come_nearer(&mut self, patience: Duration, now: Duration) -> Vec<Place> {
        let insists = |since: Duration| now.saturating_sub(since) >= patience;
        let claims = self.far.iter_mut().filter(|(_, (_, since))| insists(*since));
        let (mut nearest, mut by) = (0, Vec::new());
        for (place, (claimed, since)) in claims {
            *since = now;
            nearest = nearest.max(*claimed);
            by.push(*place);
        }
        if nearest > self.trusted {
            let most = self.highest.max(self.trusted).saturating_add(NEARER_BY);
            let next = nearest.min(most).min(u64::MAX - 1);
            self.trusted = next;
            self.highest = self.highest.max(next);
            // What the device has come to believe by itself takes nothing from what others may begin.
            self.base = (next.max(self.base.0), now);
            self.far.retain(|_, (claimed, _)| *claimed > next);
        }
        by
    }
}

/// The furthest number that is believed at once by a device that trusts this one.
fn furthest_from(trusted: u64) -> u64 {
    match trusted {
        0 => FURTHEST_FROM_NOTHING,
        last => last.saturating_add(FURTHEST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_begins_epochs_gets_no_further_than_one_step_in_each_patience() {
        let (patience, step) = (Duration::from_secs(4), FURTHEST + NEAR);
        let at = Duration::from_millis;
        let mut numbers = Numbers::from(7, at(0));
        // One far ahead, and then ever further.
        let mut last = 7;
        for k in 0..4_000 {
            for by in [NEAR, FURTHEST, 1] {
                if numbers.is_near(last + by, patience, at(k)) {
                    last += by;
                    numbers.take_part(last, patience, at(k));
                }
            }
        }
        assert!((7 + NEAR..=7 + step).contains(&last), "{last}");
        let next = last + NEAR;
        assert!(!numbers.is_near(next, patience, at(3_999)));
        assert!(numbers.is_near(next, patience, at(4_000)));
        assert!(!numbers.is_near(u64::MAX - 1, patience, at(1_000_000)));
        // Who was away comes nearer by half of that in the same time, and is believed where it is then.
        let mut away = Numbers::from(7, at(0));
        for times in 1..=4 {
            away.hear_from(Place::new(1), last, at(4_000 * (times - 1)));
            away.come_nearer(patience, at(4_000 * times));
        }
        assert!(away.highest() == last && away.is_near(last + 1, patience, at(16_000)));
    }

    #[test]
    fn who_was_away_comes_nearer_to_what_others_insist_on() {
        let (mut numbers, other, patience) =
            (Numbers::from(7, Duration::ZERO), Place::new(3), Duration::from_secs(4));
        let far = 7 + 3 * NEARER_BY / 2;
        let at = |seconds: u64| Duration::from_secs(seconds);
        assert!(!numbers.hear_from(other, far, at(0)));
        assert!(numbers.come_nearer(patience, at(3)).is_empty());
        assert_eq!(numbers.come_nearer(patience, at(4)), [other]);
        assert_eq!(numbers.highest(), 7 + NEARER_BY);
        assert!(!numbers.hear_from(other, far + 1, at(5)));
        assert_eq!(numbers.come_nearer(patience, at(8)), [other]);
        assert_eq!(numbers.highest(), far + 1);
        assert!(numbers.hear_from(other, far + 2, at(9)));
        assert!(numbers.come_nearer(patience, at(99)).is_empty());
        // Whoever is gone insists on nothing.
        numbers.hear_from(other, u64::MAX, at(100));
        numbers.forget(other);
        assert!(numbers.come_nearer(patience, at(200)).is_empty());
    }
}
