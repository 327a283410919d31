//! The reasons why a device cannot join, each one sentence.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use stlf_config::CLASSES;
use stlf_protocol::setup::Unsupported;

use crate::{key_file, network, service};

/// What can go wrong for a device that joins.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device's own settings or data cannot be used.
    #[error(transparent)]
    Config(#[from] stlf_config::Error),
    /// The device's key cannot be used or made.
    #[error(transparent)]
    Key(#[from] key_file::Error),
    /// A file of the device's folder cannot be read or written.
    #[error(transparent)]
    Folder(#[from] stlf_data::Error),
    /// Real devices cannot do what the settings ask for, or these data are too few.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The device could not start with its data for another reason.
    #[error(transparent)]
    Unable(Box<service::Error>),
    /// The folder is that of another device.
    #[error("{} is the folder of {name}, which has joined {fleet} with another ticket", folder.display())]
    OtherTicket {
        /// The folder in which this device was to keep what it has.
        folder: PathBuf,
        /// The name of the device that it is of.
        name: String,
        /// The fleet that this device joined.
        fleet: String,
    },
    /// No data are named.
    #[error("no data given: use --data or --learner")]
    NoData,
    /// Nobody answers at any of the ticket's addresses.
    #[error("nobody answers at {address} for {} s", within.as_secs())]
    NoAnswer {
        /// The address of the ticket.
        address: SocketAddr,
        /// How long this was tried.
        within: Duration,
    },
    /// The program that answers has not the key that the ticket names.
    #[error(
        "the program at {address} did not make this ticket: it has another key or another version"
    )]
    OtherKey {
        /// The address of the ticket.
        address: SocketAddr,
    },
    /// The owner of the fleet says no.
    #[error("{fleet} refuses: {reason}")]
    Refused {
        /// The name of the fleet in the ticket.
        fleet: String,
        /// The reason, as the owner's program gives it.
        reason: String,
        /// The first setting in which this device differs from the fleet, if it is refused because of that.
        setting: Option<String>,
    },
    /// The owner sent what cannot be used.
    #[error("cannot use what the owner of {fleet} answered: {message}")]
    Unusable {
        /// The name of the fleet in the ticket.
        fleet: String,
        /// What is wrong with it.
        message: String,
    },
    /// The operating system does not give the threads that are needed.
    #[error("cannot start: {0}")]
    Start(std::io::Error),
    /// The address cannot be listened on.
    #[error(transparent)]
    Network(#[from] network::Error),
    /// The device was told to stop.
    #[error("stopped; this ticket can still be used")]
    Stopped,
}

impl From<service::Error> for Error {
    fn from(error: service::Error) -> Error {
        match error {
            service::Error::Config(e) => Error::Config(e),
            service::Error::Folder(e) => Error::Folder(e),
            service::Error::Unsupported(e) => Error::Unsupported(e),
            other => Error::Unable(Box::new(other)),
        }
    }
}

impl Error {
    /// Returns advice for the user on what to do about the error.
    pub fn hint(&self) -> Option<String> {
        let fixed = match self {
            Error::Key(e) => return e.hint(),
            Error::Unable(e) => return e.hint(),
            Error::Config(e) => e.hint(),
            Error::Folder(e) => e.hint(),
            Error::Unsupported(e) => e.hint(),
            Error::OtherTicket { .. } => Some("another folder (--to) is for another device"),
            Error::NoData => Some(
                "--data takes a table or a folder of pictures, --learner a program of your own",
            ),
            Error::NoAnswer { .. } => Some(
                "is `stlf fleet invite` still running on the owner's machine, and do firewalls let UDP pass?",
            ),
            Error::Refused { setting: Some(setting), .. } if setting == CLASSES => Some(
                "where a device may lack some classes, the owner names all of them: stlf fleet invite NAME --classes A,B",
            ),
            Error::OtherKey { .. } => Some("ask the owner of the fleet for a new ticket"),
            _ => None,
        };
        fixed.map(str::to_owned)
    }
}
