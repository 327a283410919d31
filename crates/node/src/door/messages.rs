//! What a device that joins and the owner say to each other: JSON, each message after its length.

use std::net::SocketAddr;
use std::time::Duration;

use iroh::endpoint::{RecvStream, SendStream};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use stlf_protocol::PeerId;
use stlf_protocol::terms::Brought;
use stlf_protocol::wire::LONGEST_ROSTER;
use tokio::time::timeout;

/// The name and version of this protocol.
pub(crate) const PROTOCOL: &[u8] = b"stlf/join/2";

/// The most bytes of what a device says: the names of its columns and classes.
const MOST_ASKED: usize = 1 << 20;

/// The most bytes of an answer: the settings and the roster, written as JSON once more.
const MOST_ANSWERED: usize = 2 * LONGEST_ROSTER;

/// How long a device may take to read its data and say what they are.
pub(super) const LONGEST_SILENCE: Duration = Duration::from_secs(600);

/// A device shows its ticket.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Knock {
    /// By what the owner knows the ticket.
    pub(crate) ticket: PeerId,
    /// How the device wants to be called.
    pub(crate) name: String,
    /// That it has the ticket.
    pub(crate) proof: Vec<u8>,
}

/// It has read its data by the settings of the fleet, and asks to join.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Asks {
    /// What its data are.
    pub(crate) brought: Brought,
    /// The settings that it changes, each KEY=VALUE.
    pub(crate) changes: Vec<String>,
    /// Where others reach it.
    pub(crate) listens: SocketAddr,
}

/// What the owner answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The ticket is valid. These are the settings by which data are read, as TOML.
    Terms(String),
    /// So many more devices are awaited before all agree.
    Waits(usize),
    /// It belongs to the fleet.
    Welcome {
        /// The settings that all agreed on, as TOML.
        settings: String,
        /// The signed roster.
        roster: String,
    },
    /// It cannot join, for this reason.
    Refused(Refusal),
}

/// Why a device cannot join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    /// The reason, as text for people.
    pub(crate) reason: String,
    /// The first setting in which the device differs from the fleet, if it is refused because of that.
    pub(crate) setting: Option<String>,
}

impl<T: std::fmt::Display> From<T> for Refusal {
    fn from(reason: T) -> Refusal {
        Refusal { reason: reason.to_string(), setting: None }
    }
}

/// Sends a message.
pub(crate) async fn send<T: Serialize>(out: &mut SendStream, message: &T) -> Result<(), String> {
    let bytes = serde_json::to_vec(message).map_err(|e| e.to_string())?;
    let length = u32::try_from(bytes.len()).map_err(|e| e.to_string())?;
    out.write_all(&length.to_le_bytes()).await.map_err(|e| e.to_string())?;
    out.write_all(&bytes).await.map_err(|e| e.to_string())
}

/// Receives what a device says.
pub(super) async fn asked<T: DeserializeOwned>(from: &mut RecvStream) -> Result<T, String> {
    receive(from, MOST_ASKED).await
}

/// Receives what the owner answers.
pub(crate) async fn answered(from: &mut RecvStream) -> Result<Answer, String> {
    receive(from, MOST_ANSWERED).await
}

async fn receive<T: DeserializeOwned>(from: &mut RecvStream, most: usize) -> Result<T, String> {
    let read = async {
        let mut length = [0; 4];
        from.read_exact(&mut length).await.map_err(|e| e.to_string())?;
        let length = u32::from_le_bytes(length) as usize;
        if length > most {
            return Err(format!("a message of {length} bytes, more than {most}"));
        }
        let mut bytes = vec![0; length];
        from.read_exact(&mut bytes).await.map_err(|e| e.to_string())?;
        serde_json::from_slice(&bytes).map_err(|e| e.to_string())
    };
    timeout(LONGEST_SILENCE, read).await.map_err(|_| "nothing came for long".to_owned())?
}
