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
        /// The command that was given.
        command: String,
        /// What is wrong with the command.
        message: &'static str,
    },
    /// The program cannot be started.
    #[error("cannot start {program}: {source}")]
    Start {
        /// The name of the program.
        program: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The folder of the two, or a file in it, cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    Folder {
        /// The path that cannot be used.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The program ended before it answered.
    #[error("the learner was to {verb}, but it ended ({status}){log}")]
    Ended {
        /// What the learner was to do.
        verb: &'static str,
        /// The exit status with which the program ended.
        status: ExitStatus,
        /// The last lines of its log.
        log: Log,
    },
    /// The program says nothing for too long.
    #[error("the learner was to {verb}, but it said nothing for {after:?}{log}")]
    Silent {
        /// What the learner was to do.
        verb: &'static str,
        /// How long it has said nothing.
        after: Duration,
        /// The last lines of its log.
        log: Log,
    },
    /// A line that is no message, or none that was expected.
    #[error("the learner was to {verb}, but it wrote {line:?}: {message}")]
    Line {
        /// What the learner was to do.
        verb: &'static str,
        /// The line, cut if it is long.
        line: String,
        /// What is wrong with the line.
        message: String,
    },
    /// A file that is not what its line says.
    #[error("the learner said {line:?}, but {file} {message}")]
    File {
        /// The line in which the learner named the file.
        line: String,
        /// The name of the file.
        file: String,
        /// What is wrong with the file.
        message: String,
    },
    /// The learner fills its folder. It is ended, and the folder emptied.
    #[error(
        "the learner was to {verb}, but it filled {} with {bytes} bytes; at most {most} were expected",
        folder.display()
    )]
    TooMuch {
        /// What the learner was to do.
        verb: &'static str,
        /// The folder that stlf and the learner share.
        folder: PathBuf,
        /// The number of bytes that were in the folder.
        bytes: u64,
        /// The largest number of bytes that was expected there.
        most: u64,
    },
    /// The learner says that it cannot do something.
    #[error("the learner was to {verb}, and says: {message}")]
    Refused {
        /// What the learner was to do.
        verb: &'static str,
        /// The message that the learner gave.
        message: String,
    },
    /// Started again, the learner is another one.
    #[error("started again, the learner says that it is {now}; before it was {before}")]
    Another {
        /// What it said of itself when it was started first.
        before: String,
        /// What it says of itself now.
        now: String,
    },
    /// It was to be stopped before the learner was of use. The learner is ended.
    #[error("stopped while the learner was to {verb}")]
    Stopped {
        /// What the learner was to do.
        verb: &'static str,
    },
    /// The learner failed as often as it may.
    #[error("started {times} times; the last time, {last}")]
    GaveUp {
        /// How often it was started for this.
        times: usize,
        /// The error of the last attempt.
        last: Box<Error>,
    },
    /// What the learner tells of its samples cannot be.
    #[error(transparent)]
    Samples(#[from] stlf_planning::Error),
}

impl Error {
    /// Returns the error that a line is wrong.
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
        let field = stlf_planning::Error::other("learner", error.to_string());
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
