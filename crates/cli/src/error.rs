//! What can go wrong, told as kind, cause and hint; the kind decides the exit code.

use std::io;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};

use crate::ui::Ui;

/// What went wrong, in the large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The input, or how the command was called: exit code 2.
    Input,
    /// The problem has no plan: exit code 3.
    Infeasible,
    /// A file or the system: exit code 1.
    Io,
    /// `stlf diff` found a difference and has shown it: exit code 1.
    Different,
    /// The user stopped it before there was a result: exit code 130.
    Interrupted,
    /// Whoever read our output has gone. Nothing to say, nothing failed: exit code 0.
    NobodyReads,
}

/// A failure as the user is told of it.
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

    /// The input or the call is wrong.
    pub(crate) fn input(message: impl Into<String>) -> Failure {
        Failure::new(Kind::Input, message)
    }

    /// There is no plan.
    pub(crate) fn infeasible(message: impl Into<String>) -> Failure {
        Failure::new(Kind::Infeasible, message)
    }

    /// The system refused something.
    pub(crate) fn io(message: impl Into<String>) -> Failure {
        Failure::new(Kind::Io, message)
    }

    /// A file says something that cannot be used.
    pub(crate) fn in_file(file: &str, error: &stlf_planning::Error) -> Failure {
        let failure = Failure::input(format!("{file}: {error}"));
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }

    /// Data cannot be read, dealt or downloaded.
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

    /// Ctrl-C came before the work was done.
    pub(crate) fn interrupted(message: impl Into<String>) -> Failure {
        Failure::new(Kind::Interrupted, message)
    }

    /// Two plans differ, which is a result and has been shown as one.
    pub(crate) fn different() -> Failure {
        Failure::new(Kind::Different, "")
    }

    /// Standard output cannot be written.
    pub(crate) fn stdout(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::new(Kind::NobodyReads, ""),
            _ => Failure::io(format!("cannot write to standard output: {error}")),
        }
    }

    /// What the user can do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    /// The hint, if there is one.
    pub(crate) fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Tells the user.
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

    /// 2 bad input, 3 infeasible, 130 interrupted, 1 anything else that is not success.
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
