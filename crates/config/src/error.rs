//! What can be wrong with a configuration.

use std::path::{Path, PathBuf};

use crate::Wrong;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file that cannot be read.
        path: PathBuf,
        /// The error that the operating system gave.
        source: std::io::Error,
    },
    /// The text cannot be read as a configuration, or names what is not there.
    #[error("{}{}: {what}", path.display(), line.map(|l| format!(", line {l}")).unwrap_or_default())]
    Setting {
        /// The file with the wrong key.
        path: PathBuf,
        /// The line, from 1, where it is known.
        line: Option<usize>,
        /// What is wrong.
        what: Wrong,
        /// What the user can do about it, if there is anything to say.
        hint: Option<String>,
    },
    /// A key has a value that it cannot have, or not together with another key.
    #[error("{}: {source}", path.display())]
    Value {
        /// The file with the wrong key.
        path: PathBuf,
        /// The key, and what is wrong with its value.
        source: stlf_planning::Error,
    },
    /// The data that it names cannot be read, or cannot be dealt as asked.
    #[error(transparent)]
    Data(#[from] stlf_data::Error),
}

impl Error {
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
        |source| Error::File { path: path.to_owned(), source }
    }

    /// Returns what the user can do about it, if there is anything to say.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Error::Setting { hint, .. } => hint.as_deref(),
            Error::Value { source, .. } => source.hint(),
            Error::Data(e) => e.hint(),
            Error::File { .. } => None,
        }
    }
}

/// What an unknown key was likely meant to be, from the parser's list of the known ones.
pub(crate) fn suggestion(message: &str) -> Option<String> {
    if message == "missing field `kind`" {
        return Some("[partition] needs its kind, such as kind = \"paper\"".to_owned());
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = quoted.next().filter(|_| message.starts_with("unknown"))?;
    stlf_data::words::nearest(unknown, quoted).map(|known| format!("did you mean {known}?"))
}
