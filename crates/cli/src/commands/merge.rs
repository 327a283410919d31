//! `stlf merge`: joins the shards of several machines into one run.

use std::path::PathBuf;

use super::run_args::{failure, watched};
use crate::comparison::comparison;
use crate::error::Failure;
use crate::ui::Ui;

/// Join the shards of a run into one run folder, finish what is missing, and compare.
///
/// All must come from one configuration. Shards in one folder need no merging: run it again
/// without --shard.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf merge shard-1 shard-2 shard-3 --to runs/whole")]
pub(crate) struct Args {
    /// The folders of the shards.
    #[arg(required = true)]
    folders: Vec<PathBuf>,

    /// The folder of the whole run.
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
}

/// Joins the shards, finishes the run and shows the comparison.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    let config = stlf_lab::merge(&args.folders, &args.to).map_err(|e| failure(&e))?;
    let outcome =
        watched(config.seeds.len(), ui, |observer| stlf_lab::run(&config, &args.to, observer))?;
    let methods = config.compare.methods().map_err(|e| Failure::input(e.to_string()))?;
    ui.print(&comparison(&outcome, &config, &methods))?;
    ui.print(&format!("\nEverything is in {}\n", args.to.display()))
}
