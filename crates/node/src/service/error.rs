//! The reasons why a device cannot take part, or ended early.

use std::net::SocketAddr;
use std::path::PathBuf;

use stlf_protocol::PeerId;
use stlf_protocol::privacy_ledger::Overspent;
use stlf_protocol::publication_record::Exhausted;
use stlf_protocol::roster::Invalid;
use stlf_protocol::setup::Unsupported;

use crate::{key_file, network};

/// What can go wrong with a service.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration, or data that it names, cannot be used.
    #[error(transparent)]
    Config(#[from] stlf_config::Error),
    /// The device's key cannot be used.
    #[error(transparent)]
    Key(#[from] key_file::Error),
    /// The file with the roster cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    RosterFile {
        /// The path of the roster.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file is not a roster with its owner's signature.
    #[error("{}: {source}", path.display())]
    Roster {
        /// The path of the roster.
        path: PathBuf,
        /// The reason why the roster is not valid.
        source: Invalid,
    },
    /// The folder holds the roster of another fleet.
    #[error("{}: {source}", path.display())]
    OtherFleet {
        /// The path of the given roster.
        path: PathBuf,
        /// The reason why the roster in the folder does not replace it.
        source: Invalid,
    },
    /// The device's key is not in the roster.
    #[error("{key} is not in the roster of {fleet}")]
    NotInRoster {
        /// The public key of the device.
        key: PeerId,
        /// The fleet's name.
        fleet: String,
    },
    /// An address is given for a device that is not in the roster.
    #[error("there is no device {name:?} in the roster")]
    UnknownPeer {
        /// The name that is not in the roster.
        name: String,
    },
    /// The relay that the configuration names has no valid address.
    #[error("node.relay: {url:?} is not an address such as \"https://relay.example.org\"")]
    Relay {
        /// The address as the configuration has it.
        url: String,
    },
    /// Real devices cannot do what the configuration asks for.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// A file of the device's folder cannot be read or written.
    #[error(transparent)]
    Folder(#[from] stlf_data::Error),
    /// The record of what was published, or of what was told of divergences, cannot be read, so that nobody knows what is spent or told.
    #[error("{}: this is not a record of what this device has published or told: {message}", path.display())]
    Ledger {
        /// The path of the record.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// A record of what was published or told went back to an earlier one, or is gone.
    #[error("{}: this record is older than what this device has published or told since, by {beside} beside it", path.display())]
    OlderRecord {
        /// The path of the record.
        path: PathBuf,
        /// The name of the file that says so.
        beside: &'static str,
    },
    /// Publishing would spend more privacy than the device may.
    #[error(transparent)]
    Overspent(#[from] Overspent),
    /// Publishing would tell more than others may know of a sample.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// The model cannot be written.
    #[error(transparent)]
    Model(#[from] stlf_learn::Error),
    /// The device cannot train on its labels.
    #[error(transparent)]
    Training(#[from] stlf_planning::Error),
    /// An address is in use, or does not belong to this machine.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address to listen on.
        address: SocketAddr,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The operating system does not give the threads that are needed.
    #[error("cannot start: {0}")]
    Start(std::io::Error),
    /// The network ended without an outcome.
    #[error(transparent)]
    Network(#[from] network::Error),
    /// The device was told to stop while it trained. Nothing of that training is kept.
    #[error("stopped")]
    StoppedInTraining,
    /// The device was told to stop before the one epoch that it was to take part in was over.
    #[error("stopped; started again, it continues where it was")]
    StoppedInEpoch,
}

impl Error {
    /// Returns advice for the user on what to do about the error.
    pub fn hint(&self) -> Option<String> {
        let fixed = match self {
            Error::Key(e) => return e.hint(),
            Error::Config(e) => e.hint(),
            Error::Unsupported(e) => e.hint(),
            Error::Folder(e) => e.hint(),
            Error::Ledger { .. } => Some(
                "restore its newest backup; if you delete it and told.json, the device counts from 0 and forgets what it has spent and told",
            ),
            Error::OlderRecord { .. } => Some(
                "restore a newer one; if there is none, and others may be told as much about this device's samples once more, delete told.json",
            ),
            Error::Overspent(_) => Some(
                "raise divergence.privacy.budget on this device, or leave it out of the fleet; data that were published before cost nothing",
            ),
            Error::Exhausted(_) => Some(
                "go back to the earlier seed, bandwidth and number of features, or use noise (divergence.privacy)",
            ),
            Error::Listen { .. } => Some(
                "is this device running already? --listen names another address, where others find it",
            ),
            Error::OtherFleet { .. } => Some("another folder (--to) belongs to another fleet"),
            Error::NotInRoster { .. } => Some("its owner admits devices with `stlf fleet add`"),
            Error::Network(network::Error::Alone(_)) => Some(
                "this device calls those before it in the roster, at --peers or where they joined from; those after it call this one",
            ),
            _ => None,
        };
        fixed.map(str::to_owned)
    }
}
