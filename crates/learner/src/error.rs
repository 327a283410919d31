//! What can be wrong with a learner. Each message says what was expected and what was found.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use crate::dialogue::quoted;

/// What a learner did that ends a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No program is named, or a quotation mark has no partner.
    #[error("{command:?} names no program: {message}")]
    Command {
        /// What was given.
        command: String,
        /// What is wrong with it.
        message: &'static str,
    },
    /// The program cannot be started.
    #[error("cannot start {program}: {source}")]
    Start {
        /// Its name.
        program: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The folder of the two, or a file in it, cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    Folder {
        /// The path.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The program ended.
    #[error("the learner was to {verb}, but it ended ({status}){log}")]
    Ended {
        /// What it was to do.
        verb: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// The last lines of its log.
        log: Log,
    },
    /// The program says nothing.
    #[error("the learner was to {verb}, but it said nothing for {after:?}{log}")]
    Silent {
        /// What it was to do.
        verb: &'static str,
        /// For so long.
        after: Duration,
        /// The last lines of its log.
        log: Log,
    },
    /// A line that is no message, or none that was expected.
    #[error("the learner was to {verb}, but it wrote {line:?}: {message}")]
    Line {
        /// What it was to do.
        verb: &'static str,
        /// The line, cut if it is long.
        line: String,
        /// What is wrong with it.
        message: String,
    },
    /// A file that is not what its line says.
    #[error("the learner said {line:?}, but {file} {message}")]
    File {
        /// The line.
        line: String,
        /// The name of the file.
        file: String,
        /// What is wrong with it.
        message: String,
    },
    /// The learner fills its folder. It is ended, and the folder emptied.
    #[error(
        "the learner was to {verb}, but it filled {} with {bytes} bytes; at most {most} were expected",
        folder.display()
    )]
    TooMuch {
        /// What it was to do.
        verb: &'static str,
        /// The folder of the two.
        folder: PathBuf,
        /// What was in it.
        bytes: u64,
        /// What may be in it.
        most: u64,
    },
    /// The learner says that it cannot do something.
    #[error("the learner was to {verb}, and says: {message}")]
    Refused {
        /// What it was to do.
        verb: &'static str,
        /// What it says.
        message: String,
    },
    /// Started again, the learner is another one.
    #[error("started again, the learner says that it is {now}; before it was {before}")]
    Another {
        /// What it said first.
        before: String,
        /// What it says now.
        now: String,
    },
    /// It was to be stopped before the learner was of use. The learner is ended.
    #[error("stopped while the learner was to {verb}")]
    Stopped {
        /// What it was to do.
        verb: &'static str,
    },
    /// The learner failed as often as it may.
    #[error("started {times} times; the last time, {last}")]
    GaveUp {
        /// How often it was started for this.
        times: usize,
        /// How it failed last.
        last: Box<Error>,
    },
    /// What the learner tells of its samples cannot be.
    #[error(transparent)]
    Samples(#[from] stlf_planning::Error),
}

impl Error {
    /// The error that a line is wrong.
    pub(crate) fn line(verb: &'static str, line: &str, message: impl Into<String>) -> Error {
        Error::Line { verb, line: quoted(line), message: message.into() }
    }

    /// Whether the program may do better when it is started again.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Error::Ended { .. } | Error::Silent { .. })
    }

    /// Whether nobody knows any more what the program is at.
    pub(crate) fn is_lost(&self) -> bool {
        self.may_pass()
            || matches!(self, Error::Line { .. } | Error::Another { .. } | Error::TooMuch { .. })
    }

    /// Returns advice for the user on what to do about the error.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Error::Samples(e) => e.hint(),
            Error::GaveUp { last, .. } => last.hint(),
            Error::Command { .. } | Error::Start { .. } => Some(
                "write it as for a shell, such as --learner \"python -m stlf.learner pumps:Pumps\"",
            ),
            Error::Silent { .. } => {
                Some("a learner says \"progress\" now and then while it trains or predicts")
            }
            Error::Line { .. } => Some(
                "standard output is for messages alone; print to standard error; `stlf learner check` tries a learner",
            ),
            Error::File { .. } | Error::Ended { .. } | Error::Refused { .. } => {
                Some("`stlf learner check` tries a learner, step by step")
            }
            Error::TooMuch { .. } => Some(
                "a learner writes the files that it is asked for, and its own elsewhere; --learner-disk allows more",
            ),
            Error::Folder { .. } | Error::Another { .. } | Error::Stopped { .. } => None,
        }
    }
}

impl From<Error> for stlf_planning::Error {
    fn from(error: Error) -> stlf_planning::Error {
        let hint = error.hint().map(str::to_owned);
        let field = stlf_planning::Error::field("learner", error.to_string());
        match hint {
            Some(hint) => field.with_hint(hint),
            None => field,
        }
    }
}

/// The last lines of a learner's log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log(pub Vec<String>);

impl std::fmt::Display for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.is_empty() {
            true => write!(f, "; its log is empty"),
            false => write!(f, "; its log ends with: {}", self.0.join(" | ")),
        }
    }
}
