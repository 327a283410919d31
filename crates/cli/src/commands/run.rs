//! `stlf run`: the whole method, from data to a comparison.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use stlf_lab::record::Row;
use stlf_lab::summary::summarise;
use stlf_lab::{Config, Error, Shard};

use crate::comparison::comparison;
use crate::error::Failure;
use crate::progress::{Stages, Watch};
use crate::ui::Ui;

/// Run the whole method: deal data, train, measure divergences, plan, transfer, compare.
///
/// Everything is kept in a run folder. A run that was stopped goes on where it was when the same command is given
/// again, and ends with the same bytes as one that was not.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf run                             drawn digits, the paper's ten devices, five seeds
  stlf new mine && stlf run mine.toml  a configuration of one's own
  stlf run mine.toml -c \"training.steps=500 seeds=[1]\" --to runs/quick")]
pub(crate) struct Args {
    /// The configuration (TOML); `stlf new` writes one with all keys [default: all defaults]
    config: Option<PathBuf>,

    /// Settings that differ from the file's: KEY=VALUE, separated by spaces.
    #[arg(short = 'c', long = "set", value_name = "KEY=VALUE ...")]
    set: Vec<String>,

    /// The run folder [default: runs/NAME-HASH, by the configuration]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,

    /// Only every N-th seed from the K-th on, as one of several machines; see `stlf merge`.
    #[arg(long, value_name = "K/N")]
    shard: Option<Shard>,
}

/// Runs and shows the comparison.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    let path = args.config.clone().unwrap_or_else(|| PathBuf::from("defaults"));
    let text = match &args.config {
        Some(path) => std::fs::read_to_string(path)
            .map_err(|e| Failure::input(format!("cannot read {}: {e}", path.display())))?,
        None => String::new(),
    };
    let config = Config::parse(&text, &path)
        .and_then(|config| config.with(args.set.iter().flat_map(|set| set.split_whitespace())))
        .map_err(|e| failure(&e))?;
    let folder = match &args.to {
        Some(folder) => folder.clone(),
        None => default_folder(&path, &config)?,
    };
    let rows = watched(&config, &folder, args.shard, ui)?;
    if args.shard.is_some() {
        return ui.print(&format!("this share is done, in {}\n", folder.display()));
    }
    ui.print(&comparison(&summarise(&rows), &config))?;
    ui.print(&format!("\nEverything is in {}\n", folder.display()))
}

/// Runs with progress; Ctrl-C stops it between two steps and loses nothing.
pub(crate) fn watched(
    config: &Config,
    folder: &Path,
    shard: Option<Shard>,
    ui: &Ui,
) -> Result<Vec<Row>, Failure> {
    let stages = Stages::start(config.seeds.len().div_ceil(shard.map_or(1, |s| s.of)), ui)?;
    let observer = |event| {
        stages.see(&event);
        if Watch::is_interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let rows = match shard {
        Some(shard) => stlf_lab::run_shard(config, folder, shard, &observer),
        None => stlf_lab::run(config, folder, &observer),
    };
    stages.finish();
    rows.map_err(|e| failure(&e))
}

/// A folder that the same configuration finds again.
fn default_folder(path: &Path, config: &Config) -> Result<PathBuf, Failure> {
    let name = path.file_stem().map_or("run".into(), |name| name.to_string_lossy());
    let hash = config.hash().map_err(|e| failure(&e))?;
    Ok(Path::new("runs").join(format!("{name}-{}", &hash[..8])))
}

/// As the user is told of it.
pub(crate) fn failure(error: &Error) -> Failure {
    let failure = match error {
        Error::File { source, .. } if source.kind() != std::io::ErrorKind::NotFound => {
            Failure::io(error.to_string())
        }
        Error::Data(e) => return Failure::in_data(e),
        Error::Infeasible { .. } => Failure::infeasible(error.to_string()),
        Error::Stopped => {
            return Failure::interrupted("stopped").hint("the same command goes on from here");
        }
        _ => Failure::input(error.to_string()),
    };
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
