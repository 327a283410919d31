//! What the owner of a fleet keeps of the tickets that were given out: until when each is valid, and who has used it. No secrets.
//! `stlf-invitations/1`.

// An address is only a number; nothing is opened here.
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::identity::PeerId;
use crate::roster::Roster;
use crate::terms::Brought;

/// The invitations of a fleet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Invitations {
    format: Format,
    /// Where the owner answers, as every ticket says that is not used yet.
    pub listen: Option<SocketAddr>,
    /// The configuration that devices are given, as TOML.
    pub settings: String,
    /// What the devices bring, once they have agreed on it.
    pub agreed: Option<Brought>,
    tickets: Vec<Invited>,
}

/// The version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Format {
    #[serde(rename = "stlf-invitations/1")]
    V1,
}

/// One ticket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Invited {
    ticket: PeerId,
    /// Seconds since 1970.
    expires: u64,
    used: Option<Used>,
}

/// Who used a ticket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Used {
    name: String,
    key: PeerId,
}

/// How a ticket stands for a device that shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nobody has used the ticket yet: the device may join with it.
    Open,
    /// It has joined with this ticket before, under this name, and may ask for the roster again.
    Joined(String),
}

/// Why a ticket is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The owner did not make it, or the proof does not hold.
    #[error(
        "this ticket is not one of this fleet's, or newer ones have replaced it; ask the owner for another"
    )]
    Unknown,
    /// It is no longer valid.
    #[error("this ticket expired {0} s ago; ask the owner for another")]
    Expired(u64),
    /// Another device has used it.
    #[error(
        "this ticket was used by {name} (key {key}); each device needs its own, ask the owner for another"
    )]
    Used {
        /// The name of that device.
        name: String,
        /// The public key of that device.
        key: PeerId,
    },
}

impl Invitations {
    /// None yet, for devices that are given these settings.
    pub fn new(settings: String) -> Invitations {
        let (listen, agreed, tickets) = (None, None, Vec::new());
        Invitations { format: Format::V1, listen, settings, agreed, tickets }
    }

    /// Adds a ticket that is valid until this time, in seconds since 1970.
    pub fn add(&mut self, ticket: PeerId, expires: u64) {
        self.tickets.push(Invited { ticket, expires, used: None });
    }

    /// Takes back all tickets that nobody has used, and returns how many of them could still be used at this time.
    pub fn take_back(&mut self, now: u64) -> usize {
        let open = self.open(now);
        self.tickets.retain(|invited| invited.used.is_some());
        open
    }

    /// Returns how a ticket stands for a device at this time.
    ///
    /// # Errors
    /// It is unknown, used or too late.
    pub fn standing(&self, ticket: PeerId, device: PeerId, now: u64) -> Result<Standing, Refused> {
        let found = self.tickets.iter().find(|invited| invited.ticket == ticket);
        let invited = found.ok_or(Refused::Unknown)?;
        match &invited.used {
            Some(used) if used.key == device => Ok(Standing::Joined(used.name.clone())),
            Some(Used { name, key }) => Err(Refused::Used { name: name.clone(), key: *key }),
            None if now >= invited.expires => Err(Refused::Expired(now - invited.expires)),
            None => Ok(Standing::Open),
        }
    }

    /// Takes note that a device has used a ticket.
    pub fn set_used(&mut self, ticket: PeerId, name: &str, device: PeerId) {
        let used = Used { name: name.to_owned(), key: device };
        let found = self.tickets.iter_mut().find(|invited| invited.ticket == ticket);
        if let Some(invited) = found {
            invited.used = Some(used);
        }
    }

    /// Returns how many tickets can still be used at this time.
    pub fn open(&self, now: u64) -> usize {
        self.tickets
            .iter()
            .filter(|invited| invited.used.is_none() && now < invited.expires)
            .count()
    }

    /// Until when each device may still come that has used a ticket and was never in this roster, in seconds since 1970: its owner was stopped
    /// between the two.
    pub fn unlisted(&self, roster: &Roster, now: u64) -> impl Iterator<Item = u64> {
        let is_listed = move |key: PeerId| roster.devices.iter().any(|member| member.key == key);
        let valid = self.tickets.iter().filter(move |invited| now < invited.expires);
        valid.filter_map(move |Invited { used, expires, .. }| {
            used.as_ref().filter(|used| !is_listed(used.key)).map(|_| *expires)
        })
    }

    /// Returns when the last ticket that can still be used expires, in seconds since 1970.
    pub fn last(&self) -> Option<u64> {
        let open = self.tickets.iter().filter(|invited| invited.used.is_none());
        open.map(|invited| invited.expires).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_for_one_device_and_for_a_time() {
        let id = |n: u8| PeerId::from_bytes([n; 32]);
        let mut invitations = Invitations::new(String::new());
        invitations.add(id(1), 100);
        invitations.add(id(2), 200);
        assert_eq!((invitations.open(99), invitations.open(100), invitations.open(200)), (2, 1, 0));
        assert_eq!(invitations.last(), Some(200));
        assert_eq!(invitations.standing(id(3), id(9), 0), Err(Refused::Unknown));
        assert_eq!(invitations.standing(id(1), id(9), 99), Ok(Standing::Open));
        assert_eq!(invitations.standing(id(1), id(9), 103), Err(Refused::Expired(3)));
        invitations.set_used(id(1), "gate", id(9));
        assert_eq!(invitations.open(0), 1);
        // Whoever has used it may ask again, at any time, because an answer can be lost.
        let joined = Ok(Standing::Joined("gate".to_owned()));
        assert_eq!(invitations.standing(id(1), id(9), 300), joined);
        let used = Err(Refused::Used { name: "gate".to_owned(), key: id(9) });
        assert_eq!(invitations.standing(id(1), id(8), 0), used);
        assert_eq!((invitations.take_back(0), invitations.open(0)), (1, 0));
        assert_eq!(invitations.standing(id(2), id(9), 0), Err(Refused::Unknown));
        // A ticket that was used on disk alone is one that its device is still awaited with.
        let roster = Roster::new("harbour", id(7));
        assert_eq!(invitations.unlisted(&roster, 99).collect::<Vec<_>>(), [100]);
        assert_eq!(invitations.unlisted(&roster, 100).count(), 0);
        let joined = roster.with("gate", id(9)).and_then(|roster| roster.without("gate"));
        assert_eq!(joined.map(|roster| invitations.unlisted(&roster, 99).count()), Ok(0));
        let text = serde_json::to_string(&invitations);
        let read = text.and_then(|text| serde_json::from_str::<Invitations>(&text));
        assert_eq!(read.ok(), Some(invitations));
    }
}
