//! Connections from keys that are not in the roster: who shows a newer roster of the owner that has it becomes a member.

use std::time::Duration;

use iroh::endpoint::Connection;
use stlf_protocol::identity::PeerId;
use stlf_protocol::participant::Event;

use super::{Member, NOT_IN_ROSTER, Observer, PeerNews, World};

/// The number of devices that may be connected without being in the roster, until they have shown one that has them.
const MOST_STRANGERS: usize = 8;

/// How long such a device has for that.
const STRANGER_PATIENCE: Duration = Duration::from_secs(2);

impl Member {
    /// Handles what a key says that is not in the roster: the first message must be a newer one that has it.
    pub(super) fn hear_stranger(
        &mut self,
        key: PeerId,
        news: PeerNews,
        now: Duration,
        observer: &mut Observer<'_>,
    ) {
        let Member { participant, outside } = self;
        let known = outside.strangers.get(&key).map(|(connection, _)| connection.stable_id());
        match news {
            PeerNews::Came(connection)
                if known.is_some() || outside.strangers.len() < MOST_STRANGERS =>
            {
                if let Some((old, _)) = outside.strangers.insert(key, (connection, now)) {
                    old.close(NOT_IN_ROSTER.into(), b"there is a newer connection");
                }
            }
            PeerNews::Came(connection) => self.turn_away(key, &connection, observer),
            PeerNews::Message(id, bytes, _permit) if known == Some(id) => {
                let world = &mut World { outside, observer };
                if participant.introduce(key, &bytes, now, world) {
                    self.look_at_strangers(now, observer);
                } else if let Some((connection, _)) = outside.strangers.remove(&key) {
                    self.turn_away(key, &connection, observer);
                }
            }
            PeerNews::Lost(id) if known == Some(id) => {
                outside.strangers.remove(&key);
            }
            _ => {}
        }
    }

    /// Connects strangers that the roster has by now, and turns away who has said nothing for long.
    pub(super) fn look_at_strangers(&mut self, now: Duration, observer: &mut Observer<'_>) {
        let keys: Vec<PeerId> = self.outside.strangers.keys().copied().collect();
        for key in keys {
            let Member { participant, outside } = self;
            let place = participant.roster().place(key);
            let is_late = |since: Duration| now.saturating_sub(since) > STRANGER_PATIENCE;
            let decided = |since: Duration| place.is_some() || is_late(since);
            if !outside.strangers.get(&key).is_some_and(|(_, since)| decided(*since)) {
                continue;
            }
            let Some((connection, _)) = outside.strangers.remove(&key) else { continue };
            if let Some(place) = place {
                outside.came(place, connection);
                participant.connect(place, now, &mut World { outside, observer });
            } else {
                self.turn_away(key, &connection, observer);
            }
        }
    }

    fn turn_away(&mut self, key: PeerId, connection: &Connection, observer: &mut Observer<'_>) {
        connection.close(NOT_IN_ROSTER.into(), b"not in the roster");
        self.outside.tally.turned_away += 1;
        self.tell(Event::TurnedAway(key), observer);
    }
}
