//! Failures, with kind, cause and hint; the kind decides the exit code.

use std::io;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};

use crate::ui::Ui;

/// The kind of a failure, which decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The input or the arguments are wrong: exit code 2.
    Input,
    /// The problem has no plan: exit code 3.
    Infeasible,
    /// A file or the operating system failed: exit code 1.
    Io,
    /// `stlf diff` found a difference and has shown it: exit code 1.
    Different,
    /// The user stopped the command before there was a result: exit code 130.
    Interrupted,
    /// The reader of standard output has gone. Nothing failed and nothing is printed: exit code 0.
    NobodyReads,
}

/// A failure as it is shown to the user.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
    hint: Option<String>,
}

impl Failure {
    fn new(kind: Kind, message: impl Into<String>) -> Failure {
        Failure { kind, message: message.into(), hint: None }
    }

    /// Returns the failure that the input or the arguments are wrong.
    pub(crate) fn input(message: impl Into<String>) -> Failure {
        Failure::new(Kind::Input, message)
    }

    /// Returns the failure that no plan exists.
    pub(crate) fn infeasible(message: impl Into<String>) -> Failure {
        Failure::new(Kind::Infeasible, message)
    }

    /// Returns the failure that the operating system refused something.
    pub(crate) fn io(message: impl Into<String>) -> Failure {
        Failure::new(Kind::Io, message)
    }

    /// Returns the failure that the content of a file cannot be used.
    pub(crate) fn in_file(file: &str, error: &stlf_formats::Error) -> Failure {
        let failure = Failure::input(format!("{file}: {error}"));
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }

    /// Returns the failure that data cannot be read, dealt or downloaded.
    pub(crate) fn in_data(error: &stlf_data::Error) -> Failure {
        let failure = match error {
            stlf_data::Error::File { source, .. } if source.kind() != io::ErrorKind::NotFound => {
                Failure::io(error.to_string())
            }
            stlf_data::Error::Download { .. } => Failure::io(error.to_string()),
            _ => Failure::input(error.to_string()),
        };
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }

    /// Returns the failure that Ctrl-C was pressed before the work was done.
    pub(crate) fn interrupted(message: impl Into<String>) -> Failure {
        Failure::new(Kind::Interrupted, message)
    }

    /// Returns the failure that two plans differ, which is a result and has been shown as one.
    pub(crate) fn different() -> Failure {
        Failure::new(Kind::Different, "")
    }

    /// Returns the failure that standard output cannot be written.
    pub(crate) fn stdout(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::new(Kind::NobodyReads, ""),
            _ => Failure::io(format!("cannot write to standard output: {error}")),
        }
    }

    /// Adds advice for the user on what to do about the failure.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the advice for the user, if there is any.
    pub(crate) fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Shows the failure to the user.
    pub(crate) fn report(&self, ui: &Ui) {
        if matches!(self.kind, Kind::NobodyReads | Kind::Different) {
            return;
        }
        let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
        let cyan = Style::new().fg_color(Some(AnsiColor::Cyan.into()));
        ui.note(&format!("{red}error{red:#}: {}\n", self.message));
        if let Some(hint) = &self.hint {
            ui.note(&format!("{cyan}hint{cyan:#}: {hint}\n"));
        }
    }

    /// Returns the exit code: 2 for bad input, 3 if infeasible, 130 if interrupted, 0 or 1 for the other kinds.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self.kind {
            Kind::NobodyReads => 0,
            Kind::Io | Kind::Different => 1,
            Kind::Input => 2,
            Kind::Infeasible => 3,
            Kind::Interrupted => 130,
        })
    }
}
