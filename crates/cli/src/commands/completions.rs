//! `stlf completions`: completion scripts for shells.

use clap::CommandFactory;
use clap_complete::Shell;

use super::Cli;
use crate::error::Failure;
use crate::ui::Ui;

/// Print a completion script for a shell.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf completions bash > ~/.local/share/bash-completion/completions/stlf
  stlf completions zsh > ~/.zfunc/_stlf
  stlf completions fish > ~/.config/fish/completions/stlf.fish")]
pub(crate) struct Args {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the completion script of a shell.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "stlf", &mut script);
    ui.write(|out| out.write_all(&script))
}
