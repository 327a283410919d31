//! Who belongs to a fleet: a list that its owner signed. `stlf-roster/1`.

// An address is only a number; nothing is opened here.
use std::collections::BTreeSet;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::identity::{Identity, PeerId, hex, unhex};

/// What a signature of a roster is for.
const PURPOSE: &str = "stlf-roster/1";

/// More devices than this have no one plan.
pub const MOST_DEVICES: usize = 10_000;

/// The longest name, in bytes.
pub const LONGEST_NAME: usize = 64;

/// The devices of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Roster {
    /// The version of the format, `stlf-roster/1`.
    pub format: Format,
    /// The fleet's name.
    pub fleet: String,
    /// Counts up with every change.
    pub version: u64,
    /// The public key of the owner, who alone may sign rosters.
    pub owner: PeerId,
    /// In the order in which they joined, which is theirs for ever.
    pub devices: Vec<Member>,
}

/// The version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Format {
    /// The only one so far.
    #[serde(rename = "stlf-roster/1")]
    V1,
}

/// A device's place in the roster, which it keeps as long as the fleet lives. Its index among the members of an epoch, by which problems
/// and plans count, is another number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Place(u32);

impl Place {
    /// The place of the device at this index of [`Roster::devices`]. A roster has at most [`MOST_DEVICES`], so that every index fits.
    pub const fn new(index: usize) -> Place {
        debug_assert!(index <= u32::MAX as usize);
        Place(index as u32)
    }

    /// Its index in [`Roster::devices`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.0, f)
    }
}

/// A device of the fleet, or one that belonged to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Its name, unlike any other's.
    pub name: String,
    /// The public key by which others know it.
    pub key: PeerId,
    /// Whether it still belongs to the fleet. Who left keeps the place, so that nobody else's changes.
    pub present: bool,
    /// Where it listened when it joined; `None` if it was added by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddr>,
}

/// A roster as it is kept and passed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedRoster {
    roster: Roster,
    signature: String,
}

/// Why a roster is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// It is no roster.
    #[error("this is no roster: {0}")]
    Unreadable(String),
    /// The owner did not sign it as it is.
    #[error("the owner of {fleet:?} has not signed this roster")]
    Unsigned {
        /// The fleet that it claims to be of.
        fleet: String,
    },
    /// It is of another fleet or owner.
    #[error("this roster is of another fleet or owner")]
    Foreign,
    /// It is not newer than the one known.
    #[error("this roster has version {offered}, and version {known} is known")]
    Older {
        /// The version of the roster that is offered.
        offered: u64,
        /// The version that is known.
        known: u64,
    },
    /// It lists what cannot be.
    #[error("{0}")]
    Devices(String),
}

impl Roster {
    /// A fleet without devices.
    pub fn new(fleet: &str, owner: PeerId) -> Roster {
        let (format, fleet) = (Format::V1, fleet.to_owned());
        Roster { format, fleet, version: 1, owner, devices: Vec::new() }
    }

    /// The same with one more device.
    ///
    /// # Errors
    /// A name or key that is taken.
    pub fn with(mut self, name: &str, key: PeerId) -> Result<Roster, Invalid> {
        self.devices.push(Member { name: name.to_owned(), key, present: true, address: None });
        self.version += 1;
        self.check()?;
        Ok(self)
    }

    /// The same with the address at which a device listens.
    ///
    /// # Errors
    /// There is no such device.
    pub fn with_address(mut self, key: PeerId, address: SocketAddr) -> Result<Roster, Invalid> {
        let found = self.devices.iter_mut().find(|member| member.key == key && member.present);
        let member = found.ok_or_else(|| Invalid::Devices(format!("there is no device {key}")))?;
        member.address = Some(address);
        self.version += 1;
        Ok(self)
    }

    /// The same without a device.
    ///
    /// # Errors
    /// There is no such device.
    pub fn without(mut self, name: &str) -> Result<Roster, Invalid> {
        let found = self.devices.iter_mut().find(|member| member.name == name && member.present);
        let member =
            found.ok_or_else(|| Invalid::Devices(format!("there is no device {name:?}")))?;
        member.present = false;
        self.version += 1;
        Ok(self)
    }

    /// The place of a key; `None` for a stranger and for who has left.
    pub fn place(&self, key: PeerId) -> Option<Place> {
        let mut all = self.with_places();
        all.find(|(_, member)| member.key == key && member.present).map(|(place, _)| place)
    }

    /// The device at a place, also if it has left.
    pub fn at(&self, place: Place) -> Option<&Member> {
        self.devices.get(place.index())
    }

    /// What a device is called in sentences: its name, or its place where the roster has none.
    pub fn name_of(&self, place: Place) -> String {
        self.at(place).map_or_else(|| format!("place {place}"), |member| member.name.clone())
    }

    /// All devices with their places, also those that have left.
    pub fn with_places(&self) -> impl Iterator<Item = (Place, &Member)> {
        self.devices.iter().enumerate().map(|(index, member)| (Place::new(index), member))
    }

    fn check(&self) -> Result<(), Invalid> {
        let wrong = |message: String| Err(Invalid::Devices(message));
        if self.devices.len() > MOST_DEVICES {
            return wrong(format!("{} devices are more than {MOST_DEVICES}", self.devices.len()));
        }
        let (mut names, mut keys) = (BTreeSet::new(), BTreeSet::new());
        for Member { name, key, .. } in &self.devices {
            if name.is_empty() || name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
                return wrong(format!("{name:?} is no name"));
            }
            if !names.insert(name) {
                return wrong(format!("two devices are called {name:?}"));
            }
            if !keys.insert(key) {
                return wrong(format!("{name:?} has the key of another device"));
            }
        }
        Ok(())
    }

    /// Returns what is signed. Fields stand in one order and there are no floats, so that equal rosters give equal bytes.
    fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Signs it.
    ///
    /// # Errors
    /// This is not the owner's key, or the roster lists what cannot be.
    pub fn sign(self, owner: &Identity) -> Result<SignedRoster, Invalid> {
        self.check()?;
        if owner.id() != self.owner {
            return Err(Invalid::Foreign);
        }
        let signature = hex(&owner.sign(PURPOSE, &self.bytes()));
        Ok(SignedRoster { roster: self, signature })
    }
}

impl SignedRoster {
    /// Reads a roster and checks its signature and what it lists.
    ///
    /// # Errors
    /// It is none, or nobody signed it so.
    pub fn read(bytes: &[u8]) -> Result<SignedRoster, Invalid> {
        let signed: SignedRoster =
            serde_json::from_slice(bytes).map_err(|e| Invalid::Unreadable(e.to_string()))?;
        let signature = unhex(&signed.signature).unwrap_or_default();
        let roster = &signed.roster;
        if !roster.owner.has_signed(PURPOSE, &roster.bytes(), &signature) {
            return Err(Invalid::Unsigned { fleet: roster.fleet.clone() });
        }
        roster.check()?;
        Ok(signed)
    }

    /// Returns it as it is written.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Returns the roster, whose signature was checked.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Returns whether it may take the place of a known one: of the same fleet and owner, and newer.
    ///
    /// # Errors
    /// Says why not.
    pub fn replaces(&self, known: &SignedRoster) -> Result<(), Invalid> {
        let (new, old) = (&self.roster, &known.roster);
        if (&new.fleet, new.owner) != (&old.fleet, old.owner) {
            return Err(Invalid::Foreign);
        }
        if new.version <= old.version {
            return Err(Invalid::Older { offered: new.version, known: old.version });
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn identity(n: u8) -> Identity {
        Identity::from_bytes(&[n; 32])
    }

    fn fleet() -> Roster {
        let roster = Roster::new("harbour", identity(0).id());
        roster.with("gate", identity(1).id()).unwrap().with("yard", identity(2).id()).unwrap()
    }

    #[test]
    fn a_signed_roster_is_read_back_and_a_changed_one_is_not() {
        let signed = fleet().sign(&identity(0)).unwrap();
        let text = signed.to_json();
        assert_eq!(SignedRoster::read(text.as_bytes()).unwrap(), signed);
        let stranger = identity(9).id().to_string();
        for (from, to) in [
            ("gate", "date"),
            ("\"version\": 3", "\"version\": 4"),
            (&*identity(1).id().to_string(), &*stranger),
        ] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text);
            let refused = SignedRoster::read(changed.as_bytes()).unwrap_err();
            assert!(matches!(refused, Invalid::Unsigned { .. }), "{refused}");
        }
        assert!(matches!(fleet().sign(&identity(1)), Err(Invalid::Foreign)));
        assert!(matches!(SignedRoster::read(b"{}"), Err(Invalid::Unreadable(_))));
    }

    #[test]
    fn an_address_is_signed_and_a_roster_without_any_is_written_as_ever() {
        let address = "10.0.0.5:7000".parse().unwrap();
        let known = fleet().with_address(identity(2).id(), address).unwrap();
        assert_eq!((known.version, known.devices[1].address), (4, Some(address)));
        assert!(fleet().with_address(identity(3).id(), address).is_err());
        let text = known.sign(&identity(0)).unwrap().to_json();
        assert!(SignedRoster::read(text.as_bytes()).is_ok());
        let elsewhere = text.replace("10.0.0.5", "10.0.0.9");
        assert!(matches!(SignedRoster::read(elsewhere.as_bytes()), Err(Invalid::Unsigned { .. })));
        assert!(!fleet().sign(&identity(0)).unwrap().to_json().contains("address"));
    }

    #[test]
    fn places_stay_and_names_and_keys_are_ones_own() {
        let roster = fleet().without("gate").unwrap();
        assert_eq!(
            (roster.place(identity(1).id()), roster.place(identity(2).id())),
            (None, Some(Place::new(1)))
        );
        assert!(fleet().with("gate", identity(3).id()).is_err());
        assert!(fleet().with("dock", identity(2).id()).is_err());
        assert!(fleet().with("", identity(3).id()).is_err());
        assert!(fleet().with("a\nb", identity(3).id()).is_err());
        assert!(fleet().without("dock").is_err());
    }

    #[test]
    fn only_a_newer_roster_of_the_same_fleet_takes_over() {
        let old = fleet().sign(&identity(0)).unwrap();
        let new = fleet().with("dock", identity(3).id()).unwrap().sign(&identity(0)).unwrap();
        assert_eq!(new.replaces(&old), Ok(()));
        assert_eq!(old.replaces(&new), Err(Invalid::Older { offered: 3, known: 4 }));
        assert_eq!(old.replaces(&old), Err(Invalid::Older { offered: 3, known: 3 }));
        let other = Roster::new("harbour", identity(5).id()).sign(&identity(5)).unwrap();
        assert_eq!(other.replaces(&old), Err(Invalid::Foreign));
    }
}
