//! The reasons why nobody can be invited.

use std::path::PathBuf;

use stlf_protocol::roster::Invalid;

use crate::{key_file, network};

/// What can go wrong for the owner.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] stlf_config::Error),
    /// The owner's key cannot be used or made.
    #[error(transparent)]
    Key(#[from] key_file::Error),
    /// A file of the fleet's folder cannot be read or written.
    #[error(transparent)]
    Folder(#[from] stlf_data::Error),
    /// The fleet's folder has a key but no roster.
    #[error("{} does not exist", .0.display())]
    NoRoster(PathBuf),
    /// The roster cannot be used or signed.
    #[error("{}: {source}", path.display())]
    Roster {
        /// The path of the roster.
        path: PathBuf,
        /// The reason why it is not valid.
        source: Invalid,
    },
    /// Settings are given to a fleet that has agreed on its own.
    #[error("{fleet} has agreed on its settings, which stay as they are")]
    Agreed {
        /// The fleet's name.
        fleet: String,
    },
    /// There is nobody to wait for.
    #[error("{fleet} has no ticket that can still be used")]
    NoTicket {
        /// The fleet's name.
        fleet: String,
    },
    /// The operating system gives no random numbers.
    #[error("cannot get random numbers from the system: {0}")]
    NoRandom(String),
    /// The operating system does not give the threads that are needed.
    #[error("cannot start: {0}")]
    Start(std::io::Error),
    /// The address cannot be listened on.
    #[error(transparent)]
    Network(#[from] network::Error),
}

impl Error {
    /// Returns advice for the user on what to do about the error.
    pub fn hint(&self) -> Option<String> {
        let fixed = match self {
            Error::Key(e) => return e.hint(),
            Error::Config(e) => e.hint(),
            Error::Folder(e) => e.hint(),
            Error::NoRoster(_) => Some("restore the fleet's folder, or name another fleet"),
            Error::Agreed { .. } => Some("leave out the configuration, --classes and -c"),
            Error::NoTicket { .. } => Some("--devices N makes tickets for N more devices"),
            Error::Network(_) => {
                Some("is `stlf fleet invite` running already? --listen names another address")
            }
            _ => None,
        };
        fixed.map(str::to_owned)
    }
}
