//! The only place that writes to the terminal.

use std::io::{BufWriter, IsTerminal, Write};

use crate::error::Failure;

/// Standard output for results, standard error for everything else.
pub(crate) struct Ui;

impl Ui {
    /// Writes a result, without colours if the terminal or the user does not want them.
    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        let mut out = anstream::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::stdout)
    }

    /// Writes a result that is not text for people, such as a JSON document.
    pub(crate) fn write(
        &self,
        write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<(), Failure> {
        let mut out = BufWriter::new(std::io::stdout().lock());
        write(&mut out).and_then(|()| out.flush()).map_err(Failure::stdout)
    }

    /// Shows a message to the user. If nobody can see it, nothing is lost.
    pub(crate) fn note(&self, text: &str) {
        let mut err = anstream::stderr().lock();
        let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }

    /// Returns whether a person sees the messages, on a terminal.
    pub(crate) fn is_watched(&self) -> bool {
        std::io::stderr().is_terminal()
    }
}
