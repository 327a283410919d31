//! Who of the roster is not connected, for how long, and where it is called.

use std::collections::BTreeMap;
use std::time::Duration;

use stlf_protocol::participant::Absence;
use stlf_protocol::roster::{Place, Roster};

use super::addresses::Addresses;

/// The time after which an absence is told for the first time; then after twice that time, and so on.
const FIRST_TOLD: Duration = Duration::from_secs(5);

/// The devices that are not connected.
pub(super) struct Absences {
    own: Place,
    away: BTreeMap<Place, Away>,
    now: Duration,
}

/// One of them.
struct Away {
    since: Duration,
    /// The length of the absence at which it is told next.
    told_at: Duration,
}

impl Absences {
    /// Nobody is missed yet by the device at this place.
    pub(super) fn new(own: Place) -> Absences {
        Absences { own, away: BTreeMap::new(), now: Duration::ZERO }
    }

    /// Returns how long a device is not there, at the time of the last look.
    pub(super) fn length(&self, place: Place) -> Option<Duration> {
        self.away.get(&place).map(|away| self.now.saturating_sub(away.since))
    }

    /// Looks at who is connected at this time, and returns the absences that are to be told.
    pub(super) fn look(
        &mut self,
        now: Duration,
        roster: &Roster,
        addresses: &Addresses,
        connected: impl Fn(Place) -> bool,
    ) -> Vec<(Place, Absence)> {
        self.now = now;
        for (place, member) in roster.with_places() {
            if place == self.own || !member.present || connected(place) {
                self.away.remove(&place);
            } else {
                self.away.entry(place).or_insert(Away { since: now, told_at: FIRST_TOLD });
            }
        }
        let mut due = Vec::new();
        for (place, away) in &mut self.away {
            let length = now.saturating_sub(away.since);
            if length >= away.told_at {
                away.told_at = 2 * length;
                due.push(*place);
            }
        }
        if due.is_empty() {
            return Vec::new();
        }
        let all = self.all(roster, addresses);
        due.into_iter().filter_map(|place| Some((place, *all.get(&place)?))).collect()
    }

    /// Returns all absences at the time of the last look.
    pub(super) fn all(&self, roster: &Roster, addresses: &Addresses) -> BTreeMap<Place, Absence> {
        let absence = |(&place, away): (&Place, &Away)| {
            let member = roster.at(place)?;
            let calls = place > self.own;
            let address = addresses.of(place, member).first().copied().filter(|_| !calls);
            let seconds = self.now.saturating_sub(away.since).as_secs();
            Some((place, Absence { seconds, calls, address }))
        };
        self.away.iter().filter_map(absence).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::net::SocketAddr;

    use stlf_protocol::Identity;

    use super::*;

    #[test]
    fn absences_are_told_ever_less_often_with_where_a_device_is_called() {
        let id = |n: u8| Identity::from_bytes(&[n; 32]).id();
        let at = |port: u16| SocketAddr::from(([10, 0, 0, 5], port));
        let names = ["gate", "yard", "dock", "roof"];
        let mut roster = Roster::new("harbour", id(0));
        for (name, n) in names.into_iter().zip(1..) {
            roster = roster.with(name, id(n)).unwrap();
        }
        let roster = roster.with_address(id(1), at(1)).unwrap().with_address(id(4), at(4)).unwrap();
        let mut absences = Absences::new(Place::new(2));
        let mut addresses = Addresses::default();
        let mut told = Vec::new();
        for second in 0..30 {
            let due = absences.look(Duration::from_secs(second), &roster, &addresses, |_| false);
            told.extend(due.iter().map(|(place, a)| format!("{} {a}", names[place.index()])));
        }
        let expected = [5, 10, 20].map(|s| {
            [
                format!("gate has not answered at 10.0.0.5:1 for {s} s"),
                format!("yard has been away for {s} s, and its address is not known"),
                format!("roof has not called for {s} s"),
            ]
        });
        assert_eq!(told, expected.concat());
        // Who has come is missed anew when it is lost, and what the user gave counts more than the roster.
        let gate = Place::new(0);
        addresses = Addresses::new(BTreeMap::from([(gate, at(9))]), BTreeMap::new(), None);
        let seconds = |absences: &Absences| {
            absences.all(&roster, &addresses).get(&gate).map(|a| (a.seconds, a.address))
        };
        assert_eq!(seconds(&absences), Some((29, Some(at(9)))));
        absences.look(Duration::from_secs(30), &roster, &addresses, |place| place == gate);
        assert_eq!(seconds(&absences), None);
        assert_eq!(absences.length(gate), None);
        absences.look(Duration::from_secs(31), &roster, &addresses, |_| false);
        assert_eq!(absences.length(gate), Some(Duration::ZERO));
        assert_eq!(seconds(&absences), Some((0, Some(at(9)))));
    }
}
