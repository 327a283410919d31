//! What can go wrong with a run.

use std::path::{Path, PathBuf};

/// Why a run ended before its end. What was finished stays finished.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file or folder that cannot be used.
        path: PathBuf,
        /// The error that the operating system gave.
        source: std::io::Error,
    },
    /// A configuration that cannot be used, or data that it names.
    #[error(transparent)]
    Config(#[from] stlf_config::Error),
    /// A file of the run folder that is not what this program writes, or belongs to another run.
    #[error("{}: {message}", path.display())]
    Folder {
        /// The file that is wrong.
        path: PathBuf,
        /// What is wrong with the file.
        message: String,
        /// What the user can do about it, if there is anything to say.
        hint: Option<String>,
    },
    /// The data cannot be used, or cannot be dealt as asked.
    #[error(transparent)]
    Data(#[from] stlf_data::Error),
    /// A network cannot be made or trained.
    #[error(transparent)]
    Learn(#[from] stlf_learn::Error),
    /// The measurements make no problem, or a method cannot work on it.
    #[error(transparent)]
    Method(#[from] stlf_planning::Error),
    /// A problem or a plan cannot be read.
    #[error(transparent)]
    Document(#[from] stlf_formats::Error),
    /// The learner of a device has failed. On a real device it would be a target, or use another's model; a simulation ends.
    #[error("{device}: {source}")]
    Learner {
        /// The name of the device.
        device: String,
        /// The error that its learner made or told of.
        source: stlf_planning::Error,
    },
    /// What a device ends with cannot be written.
    #[error(transparent)]
    Bundle(#[from] stlf_bundle::Error),
    /// The problem of a seed has no plan.
    #[error("seed {seed}: {reason}")]
    Infeasible {
        /// The seed whose problem has no plan.
        seed: u64,
        /// Why there is none, such as a device that nobody can serve.
        reason: String,
    },
    /// The observer asked to stop the run.
    #[error("stopped; start it again to continue")]
    Stopped,
}

/// What is to blame, in the large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What was given: a configuration, data, a folder.
    Input,
    /// The measurements, of which no plan follows.
    Infeasible,
    /// A file, or the system that could not read or write it.
    File,
    /// Nothing: the observer asked to stop.
    Stopped,
}

impl Error {
    /// Returns what is to blame, in the large.
    pub fn kind(&self) -> Kind {
        let readable = |source: &std::io::Error| source.kind() == std::io::ErrorKind::NotFound;
        match self {
            Error::File { source, .. } | Error::Data(stlf_data::Error::File { source, .. })
                if !readable(source) =>
            {
                Kind::File
            }
            Error::Bundle(e) if e.is_io() => Kind::File,
            Error::Infeasible { .. } => Kind::Infeasible,
            Error::Stopped => Kind::Stopped,
            _ => Kind::Input,
        }
    }

    /// Returns a function that makes what the system said of a file an error.
    pub fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
        |source| Error::File { path: path.to_owned(), source }
    }

    pub(crate) fn folder(path: &Path, message: impl Into<String>, hint: &str) -> Error {
        let hint = Some(hint.to_owned());
        Error::Folder { path: path.to_owned(), message: message.into(), hint }
    }

    /// Returns what the user can do about it, if there is anything to say.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Error::Folder { hint, .. } => hint.as_deref(),
            Error::Config(e) => e.hint(),
            Error::Data(e) => e.hint(),
            Error::Document(e) => e.hint(),
            Error::Method(e) | Error::Learner { source: e, .. } => e.hint(),
            Error::Bundle(e) => e.hint(),
            Error::File { .. } | Error::Learn(_) | Error::Infeasible { .. } | Error::Stopped => {
                None
            }
        }
    }
}
