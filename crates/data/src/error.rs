//! What can be wrong with data.

use std::path::{Path, PathBuf};

/// Data that cannot be used: where it is, what is wrong with it, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file that cannot be used.
        path: PathBuf,
        /// The error that the operating system gave.
        source: std::io::Error,
    },
    /// A file is not what it should be: truncated, of another format, or contradicting its sibling.
    #[error("{}: {message}", path.display())]
    Content {
        /// The file that cannot be used.
        path: PathBuf,
        /// What is wrong with its content.
        message: String,
        /// What the user can do about it, if there is anything to say.
        hint: Option<String>,
    },
    /// A setting that cannot be used, or that this data cannot satisfy.
    #[error("{setting}: {message}")]
    Setting {
        /// The setting's name as the user writes it.
        setting: String,
        /// What is wrong with the value.
        message: String,
        /// What the user can do about it, if there is anything to say.
        hint: Option<String>,
    },
    /// A file that no mirror had.
    #[error("{file} could not be downloaded ({})", tries.join("; "))]
    Download {
        /// The name of the file that was wanted.
        file: String,
        /// One text for each mirror, with the reason why it failed.
        tries: Vec<String>,
        /// What the user can do about it, if there is anything to say.
        hint: Option<String>,
    },
}

impl Error {
    /// The system refused to read or write a file.
    pub(crate) fn file(path: &Path, source: std::io::Error) -> Error {
        Error::File { path: path.to_owned(), source }
    }

    /// A file is not what it should be.
    pub(crate) fn content(path: &Path, message: impl Into<String>) -> Error {
        Error::Content { path: path.to_owned(), message: message.into(), hint: None }
    }

    /// Returns an error about a setting that cannot be used, without a hint.
    pub(crate) fn setting(setting: impl Into<String>, message: impl Into<String>) -> Error {
        Error::Setting { setting: setting.into(), message: message.into(), hint: None }
    }

    /// The same error with what to do about it. What the system says speaks for itself.
    pub(crate) fn with_hint(mut self, text: impl Into<String>) -> Error {
        if let Error::Content { hint, .. }
        | Error::Setting { hint, .. }
        | Error::Download { hint, .. } = &mut self
        {
            *hint = Some(text.into());
        }
        self
    }

    /// Returns what the user can do about it, if there is anything to say.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Error::File { .. } => None,
            Error::Content { hint, .. }
            | Error::Setting { hint, .. }
            | Error::Download { hint, .. } => hint.as_deref(),
        }
    }
}
