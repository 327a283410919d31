//! `stlf run`: the whole method, from data to a comparison.

use stlf_lab::Shard;

use super::run_args::{RunArgs, watched};
use crate::comparison::comparison;
use crate::error::Failure;
use crate::ui::Ui;

/// Run the whole method: deal data, train, measure divergences, plan, transfer, compare.
///
/// Everything is kept in a run folder. If a run was stopped, the same command continues it, and it ends with the
/// same bytes as an uninterrupted run.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf run                             drawn digits, the paper's ten devices, five seeds
  stlf new mine && stlf run mine.toml  your own configuration
  stlf run mine.toml -c \"training.steps=500 seeds=[1]\" --to runs/quick
  stlf run runs/quick                  continue a run that was stopped
  stlf run -c 'data.devices=[\"gate\",\"pier\"]' --learner \"python -m stlf.learner pumps:Pumps data/{device}.csv\"")]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArgs,

    /// Do only the K-th of N shards of the run, to use several machines; see `stlf merge`.
    ///
    /// With at most as many shards as seeds, a shard is some of the seeds; with more, the shards divide the
    /// devices to train and the pairs to measure of a seed.
    #[arg(long, value_name = "K/N")]
    shard: Option<Shard>,
}

/// Runs the method and shows the comparison.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    let (config, folder) = args.run.resolve()?;
    if args.run.is_empty() {
        ui.note(
            "Without a configuration: drawn digits on the paper's ten devices, with five seeds. That takes a minute or so; \
             `stlf new NAME` writes a configuration for data of your own.\n",
        );
    }
    if let Some(shard) = args.shard {
        let seeds = shard.units(&config.seeds).len();
        watched(seeds, ui, |observer| stlf_lab::run_shard(&config, &folder, shard, observer))?;
        return ui.print(&format!("this shard is done, in {}\n", folder.display()));
    }
    let outcome =
        watched(config.seeds.len(), ui, |observer| stlf_lab::run(&config, &folder, observer))?;
    let methods = config.compare.methods().map_err(|e| Failure::input(e.to_string()))?;
    ui.print(&comparison(&outcome, &config, &methods))?;
    ui.print(&format!("\nEverything is in {}\n", folder.display()))
}
