//! What can be wrong with an input. Outcomes of planning (infeasible, limits) are not errors.

/// An input that cannot be used: which field, what is wrong with it, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not a document of the expected form.
    #[error("line {line}, column {column}: {message}")]
    Syntax {
        /// The line of the text, counted from 1.
        line: usize,
        /// The column of the line, counted from 1.
        column: usize,
        /// What the parser met.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// A field holds something that cannot be used.
    #[error("{field}: {message}")]
    Field {
        /// The path of the field, with the device's name where there is one.
        field: String,
        /// What is wrong with the value.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
}

impl Error {
    /// What is wrong, and where.
    pub fn field(field: impl Into<String>, message: impl Into<String>) -> Error {
        Error::Field { field: field.into(), message: message.into(), hint: None }
    }

    /// Returns the same error with a hint on what to do about it.
    pub fn with_hint(mut self, text: impl Into<String>) -> Error {
        match &mut self {
            Error::Syntax { hint, .. } | Error::Field { hint, .. } => *hint = Some(text.into()),
        }
        self
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Error::Syntax { hint, .. } | Error::Field { hint, .. } => hint.as_deref(),
        }
    }
}

/// The candidate that `word` was most likely meant to be.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|c| (strsim::damerau_levenshtein(&word.to_lowercase(), &c.to_lowercase()), c))
        .min()
        .filter(|(distance, c)| *distance <= c.len().max(word.len()) / 3 + 1)
        .map(|(_, c)| c)
}
