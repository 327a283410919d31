//! Why a device cannot take part, or left before its end.

use std::net::SocketAddr;
use std::path::PathBuf;

use stlf_protocol::PeerId;
use stlf_protocol::roster::Invalid;
use stlf_protocol::setup::Unsupported;

use crate::{key_file, network};

/// What can go wrong with a service.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration cannot be used, or data that it names.
    #[error(transparent)]
    Config(#[from] stlf_config::Error),
    /// The key cannot be used.
    #[error(transparent)]
    Key(#[from] key_file::Error),
    /// The roster cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    RosterFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The roster is none that its owner signed.
    #[error("{}: {source}", path.display())]
    Roster {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Invalid,
    },
    /// The folder holds the roster of another fleet.
    #[error("{}: {source}", path.display())]
    OtherFleet {
        /// The file with the roster that was named.
        path: PathBuf,
        /// Why the one in the folder does not replace it.
        source: Invalid,
    },
    /// The roster does not have this device.
    #[error("{key} is not in the roster of {fleet}")]
    NotInRoster {
        /// What others know the device by.
        key: PeerId,
        /// The fleet's name.
        fleet: String,
    },
    /// The roster does not have a device whose address is given.
    #[error("there is no device {name:?} in the roster")]
    UnknownPeer {
        /// The name.
        name: String,
    },
    /// Real devices cannot do what the configuration asks for.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// A file of the device's folder cannot be read or written.
    #[error(transparent)]
    Folder(#[from] stlf_data::Error),
    /// The model cannot be kept.
    #[error(transparent)]
    Model(#[from] stlf_learn::Error),
    /// The device cannot train on its labels.
    #[error(transparent)]
    Training(#[from] stlf_planning::Error),
    /// An address is taken, or is not this machine's.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The system gives no threads.
    #[error("cannot start: {0}")]
    Start(std::io::Error),
    /// The network ended without an outcome.
    #[error(transparent)]
    Network(#[from] network::Error),
    /// It was told to stop while it trained, of which nothing is kept.
    #[error("stopped")]
    StoppedInTraining,
    /// It was told to stop before the one epoch was over that it was to take part in.
    #[error("stopped; started again, it goes on where it was")]
    StoppedInEpoch,
}

impl Error {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        let fixed = match self {
            Error::Key(e) => return e.hint(),
            Error::Config(e) => e.hint(),
            Error::Unsupported(e) => e.hint(),
            Error::Folder(e) => e.hint(),
            Error::OtherFleet { .. } => Some("another folder (--to) belongs to another fleet"),
            Error::NotInRoster { .. } => Some("its owner admits devices with `stlf fleet add`"),
            Error::Network(network::Error::Alone(_)) => Some(
                "devices before this one in the roster are called at --peers; those after it call",
            ),
            _ => None,
        };
        fixed.map(str::to_owned)
    }
}
