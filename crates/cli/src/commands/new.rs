//! `stlf new`: writes a configuration for the user to change.

use std::path::PathBuf;

use stlf_config::TEMPLATE;

use crate::error::Failure;
use crate::output::write_file;
use crate::ui::Ui;

/// Write a configuration with every key, its default and its meaning.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf new mine && stlf run mine.toml")]
pub(crate) struct Args {
    /// The configuration's name; NAME.toml is written.
    name: String,
}

/// Writes the file, but never overwrites one.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    let name = args.name.strip_suffix(".toml").unwrap_or(&args.name);
    let path = PathBuf::from(format!("{name}.toml"));
    if path.exists() {
        return Err(Failure::input(format!("{} already exists", path.display()))
            .hint("choose another name"));
    }
    write_file(&path, |out| out.write_all(TEMPLATE.as_bytes()))?;
    ui.print(&format!("wrote {0}; change it and run: stlf run {0}\n", path.display()))
}
