//! `stlf man`: manual pages.

use std::path::PathBuf;

use clap::CommandFactory;

use super::Cli;
use crate::error::Failure;
use crate::ui::Ui;

/// Write manual pages, one for every verb, into a folder.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf man ~/.local/share/man/man1
  man stlf-run")]
pub(crate) struct Args {
    /// The folder; it is created.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes the manual pages into a folder.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    let failed = |e: std::io::Error| {
        Failure::io(format!("cannot write manual pages to {}: {e}", args.folder.display()))
    };
    std::fs::create_dir_all(&args.folder).map_err(failed)?;
    let mut command = Cli::command();
    command.build();
    clap_mangen::generate_to(command, &args.folder).map_err(failed)?;
    ui.print(&format!("wrote manual pages to {}\n", args.folder.display()))
}
