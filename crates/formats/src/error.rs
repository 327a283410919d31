//! What can be wrong with a document: its text, its form, or a value in it.

use stlf_planning::error::{Error as ValueError, Field};

/// A document that cannot be used, and what to do about it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not a document of the expected form.
    #[error("line {line}, column {column}: {message}")]
    Syntax {
        /// The line of the text, counted from 1.
        line: usize,
        /// The column of the line, counted from 1.
        column: usize,
        /// What is wrong with the text, in plain words.
        message: String,
        /// What the user can do about it.
        hint: String,
    },
    /// The document has another format, or another version of it.
    #[error("format: {found:?} is not {expected:?}")]
    Format {
        /// The format that the document names.
        found: String,
        /// The format that was to be read.
        expected: &'static str,
        /// What the user can do about it.
        hint: String,
    },
    /// At this place the text does not say what the format has there.
    #[error("{field}: {message} (line {line}, column {column})")]
    Form {
        /// The field, as far as it is known.
        field: Field,
        /// What is wrong there, in plain words.
        message: String,
        /// The line of the text, counted from 1.
        line: usize,
        /// The column of the line, counted from 1.
        column: usize,
        /// What the user can do about it.
        hint: String,
    },
    /// A row of a table cannot be read.
    #[error("row {row}: {message}")]
    Row {
        /// The row, as a spreadsheet counts: from 1, and the header is one.
        row: u64,
        /// What is wrong with it, in plain words.
        message: String,
        /// What the user can do about it, if there is anything to say.
        hint: Option<String>,
    },
    /// A value cannot be used.
    #[error(transparent)]
    Value(#[from] ValueError),
}

impl Error {
    /// Returns what the user can do about it, if there is anything to say.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Error::Syntax { hint, .. } | Error::Format { hint, .. } | Error::Form { hint, .. } => {
                Some(hint)
            }
            Error::Row { hint, .. } => hint.as_deref(),
            Error::Value(value) => value.hint(),
        }
    }
}
