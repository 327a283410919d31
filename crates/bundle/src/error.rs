//! What can be wrong with a bundle, or with samples for it.

use std::path::PathBuf;

/// A bundle or samples that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read or written, or new samples are not what they should be.
    #[error(transparent)]
    Data(#[from] stlf_data::Error),
    /// There is no bundle in a folder.
    #[error("{}: {message}", path.display())]
    NoBundle {
        /// The folder that was named as a bundle.
        path: PathBuf,
        /// What is missing in the folder.
        message: String,
        /// Which folder the user can name instead.
        hint: String,
    },
    /// The bundle is one of a user's learner, and something else was to work with it.
    #[error("{}: only the learner that made these models can predict with them", path.display())]
    OfLearner {
        /// The folder of the bundle.
        path: PathBuf,
    },
    /// The models are those of another learner.
    #[error("{}: these are models of the learner {expected}; this learner is {found}", path.display())]
    OtherLearner {
        /// The path of `models.json`.
        path: PathBuf,
        /// The learner of the models, with its classes.
        expected: String,
        /// The learner that was started, with its classes.
        found: String,
    },
    /// The document is no mixture, or contradicts itself.
    #[error("{}: {source}", path.display())]
    Document {
        /// The path of `mixture.json` or `models.json`.
        path: PathBuf,
        /// What is wrong, by its field.
        source: Box<stlf_formats::Error>,
    },
    /// A file is not the one that the document names.
    #[error(
        "{}: the file has changed since the bundle was written: its SHA-256 is {found}, expected {expected}",
        path.display()
    )]
    Changed {
        /// The path of the file.
        path: PathBuf,
        /// The hash that the document has.
        expected: String,
        /// The hash that the file has.
        found: String,
    },
    /// A file of parameters is none, or of another network.
    #[error("{}: {source}", path.display())]
    Model {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong with the parameters.
        source: stlf_learn::Error,
    },
    /// Samples are not what the mixture takes.
    #[error("{}: {message}", path.display())]
    Samples {
        /// The path of the samples.
        path: PathBuf,
        /// What was expected, and what was found.
        message: String,
        /// What the user can do about it.
        hint: String,
    },
    /// A mixture cannot be combined, or not be written as a file.
    #[error("{0}")]
    Mixture(String),
}

impl Error {
    /// Returns what the user can do about it, if there is anything to say.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Error::Data(e) => e.hint(),
            Error::NoBundle { hint, .. } | Error::Samples { hint, .. } => Some(hint),
            Error::Document { source, .. } => source.hint(),
            Error::Changed { .. } | Error::Model { .. } => {
                Some("copy the whole folder again from where it was written")
            }
            Error::OfLearner { .. } => Some(
                "`stlf predict DIR --learner \"PROGRAM …\"` starts it; models.json names the learner, the files and their weights",
            ),
            Error::OtherLearner { .. } => {
                Some("start the learner that made them; its name and classes must be the same")
            }
            Error::Mixture(_) => None,
        }
    }

    /// Whether the system refused something, and the input is not to blame.
    pub fn is_io(&self) -> bool {
        match self {
            Error::Data(stlf_data::Error::File { source, .. }) => {
                source.kind() != std::io::ErrorKind::NotFound
            }
            _ => false,
        }
    }
}
