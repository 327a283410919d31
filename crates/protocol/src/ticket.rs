//! A ticket: the text with which one device joins a fleet. It names the owner's key and addresses, and holds a secret that is shown to
//! nobody: the device proves that it has it.

// An address is only a number; nothing is opened here.
use std::net::SocketAddr;
use std::str::FromStr;

use data_encoding::BASE32_NOPAD_VISUAL;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::identity::{Identity, PeerId};
use crate::roster::LONGEST_NAME;

/// What every ticket begins with.
const PREFIX: &str = "stlf-";

/// The version of what follows.
const VERSION: u8 = 1;

/// What a proof is for.
const PURPOSE: &str = "stlf-ticket/1";

/// The bytes by which a mistyped ticket is told from another one.
const CHECKSUM: usize = 4;

/// The most addresses of a ticket.
const MOST_ADDRESSES: usize = 8;

/// The secret of a ticket, in bytes.
pub const SECRET: usize = 16;

/// An invitation for one device.
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket(Content);

/// What a ticket consists of.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Content {
    version: u8,
    secret: [u8; SECRET],
    owner: [u8; 32],
    fleet: String,
    addresses: Vec<SocketAddr>,
}

/// Why a text is no ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Mistyped {
    /// It begins with something else.
    #[error("this is no ticket: a ticket begins with \"{PREFIX}\"")]
    Beginning,
    /// Its end does not fit the rest.
    #[error("this ticket is mistyped or not complete; copy all of it")]
    Checksum,
    /// It is of another version of this program.
    #[error("this ticket is of another version of stlf; use the same version everywhere")]
    Version,
}

impl Ticket {
    /// An invitation of an owner, who answers at these addresses, by a secret that was drawn for it.
    pub fn new(
        secret: [u8; SECRET],
        owner: PeerId,
        fleet: &str,
        addresses: &[SocketAddr],
    ) -> Ticket {
        let addresses = addresses.iter().take(MOST_ADDRESSES).copied().collect();
        let (owner, fleet) = (*owner.as_bytes(), fleet.to_owned());
        Ticket(Content { version: VERSION, secret, owner, fleet, addresses })
    }

    /// Returns by what the owner knows it. Nobody can tell the secret from this.
    pub fn id(&self) -> PeerId {
        self.key().id()
    }

    /// The key of whoever invites; nobody else is believed.
    pub fn owner(&self) -> PeerId {
        PeerId::from_bytes(self.0.owner)
    }

    /// Returns the name of the fleet that the ticket is for.
    pub fn fleet(&self) -> &str {
        &self.0.fleet
    }

    /// Returns where the owner answers.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.0.addresses
    }

    /// Proves that whoever has this key also has this ticket, and asks for this name.
    pub fn prove(&self, device: PeerId, name: &str) -> Vec<u8> {
        self.key().sign(PURPOSE, &claim(self.owner(), device, name))
    }

    fn key(&self) -> Identity {
        let secret = Sha256::new_with_prefix(PURPOSE).chain_update(self.0.secret).finalize();
        Identity::from_bytes(&secret.into())
    }
}

/// Returns whether a device with this key has the ticket that an owner knows by its id, and asks for this name.
pub fn is_proven(ticket: PeerId, owner: PeerId, device: PeerId, name: &str, proof: &[u8]) -> bool {
    ticket.has_signed(PURPOSE, &claim(owner, device, name), proof)
}

fn claim(owner: PeerId, device: PeerId, name: &str) -> Vec<u8> {
    [owner.as_bytes(), device.as_bytes(), name.as_bytes()].concat()
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    std::array::from_fn(|k| digest[k])
}

/// Never the secret.
impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket").field("id", &self.id()).field("fleet", &self.fleet()).finish()
    }
}

/// As it is given to a device, with the secret.
impl std::fmt::Display for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut bytes = postcard::to_allocvec(&self.0).unwrap_or_default();
        bytes.extend(checksum(&bytes));
        write!(f, "{PREFIX}{}", BASE32_NOPAD_VISUAL.encode(&bytes).to_lowercase())
    }
}

impl FromStr for Ticket {
    type Err = Mistyped;

    fn from_str(text: &str) -> Result<Ticket, Mistyped> {
        let text = text.trim();
        let begins = text.get(..PREFIX.len()).is_some_and(|p| p.eq_ignore_ascii_case(PREFIX));
        let rest = text.get(PREFIX.len()..).filter(|_| begins).ok_or(Mistyped::Beginning)?;
        let mistyped = Mistyped::Checksum;
        let bytes = BASE32_NOPAD_VISUAL.decode(rest.to_uppercase().as_bytes());
        let bytes = bytes.map_err(|_| mistyped)?;
        let (bytes, sum) = bytes.split_last_chunk::<CHECKSUM>().ok_or(mistyped)?;
        if *sum != checksum(bytes) {
            return Err(mistyped);
        }
        if bytes.first() != Some(&VERSION) {
            return Err(Mistyped::Version);
        }
        let (content, rest): (Content, &[u8]) =
            postcard::take_from_bytes(bytes).map_err(|_| mistyped)?;
        let fits = content.fleet.len() <= LONGEST_NAME && content.addresses.len() <= MOST_ADDRESSES;
        (rest.is_empty() && fits).then_some(Ticket(content)).ok_or(mistyped)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn identity(n: u8) -> Identity {
        Identity::from_bytes(&[n; 32])
    }

    fn ticket(n: u8) -> Ticket {
        let addresses = ["10.0.0.5:7000", "[fe80::1]:7000"].map(|a| a.parse().unwrap());
        Ticket::new([n; SECRET], identity(0).id(), "harbour", &addresses)
    }

    #[test]
    fn a_ticket_is_written_and_read_and_every_wrong_letter_is_noticed() {
        let text = ticket(7).to_string();
        assert_eq!(text.parse(), Ok(ticket(7)));
        assert_eq!(format!(" {}\n", text.to_uppercase()).parse(), Ok(ticket(7)));
        for at in PREFIX.len()..text.len() {
            let other = if text.as_bytes()[at] == b'q' { "w" } else { "q" };
            let wrong = [&text[..at], other, &text[at + 1..]].concat();
            assert_eq!(wrong.parse::<Ticket>(), Err(Mistyped::Checksum), "{wrong}");
            assert_eq!(text[..at].parse::<Ticket>(), Err(Mistyped::Checksum));
        }
        for wrong in ["", "stlf", "harbour", "ünïcode"] {
            assert_eq!(wrong.parse::<Ticket>(), Err(Mistyped::Beginning));
        }
        let later = Ticket(Content { version: 2, ..ticket(7).0 }).to_string();
        assert_eq!(later.parse::<Ticket>(), Err(Mistyped::Version));
        // What looks alike is taken for the same.
        assert_eq!(text.replace('o', "0").replace('b', "8").parse(), Ok(ticket(7)));
    }

    #[test]
    fn a_proof_is_of_one_ticket_one_owner_one_device_and_one_name() {
        let (owner, device) = (identity(0).id(), identity(1).id());
        let proof = ticket(7).prove(device, "gate");
        let holds = |ticket: Ticket, owner, device, name| {
            is_proven(ticket.id(), owner, device, name, &proof)
        };
        assert!(holds(ticket(7), owner, device, "gate"));
        assert!(!holds(ticket(8), owner, device, "gate"));
        assert!(!holds(ticket(7), identity(2).id(), device, "gate"));
        assert!(!holds(ticket(7), owner, identity(2).id(), "gate"));
        assert!(!holds(ticket(7), owner, device, "yard"));
        assert!(!format!("{:?}", ticket(7)).contains("7, 7"));
    }
}
