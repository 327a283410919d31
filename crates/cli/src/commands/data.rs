//! `stlf data`: download data sets, and see how they are dealt to devices.

#[cfg(feature = "images")]
mod build_mnist_m;
mod data_args;
mod deal;
#[cfg(feature = "fetch")]
mod fetch;
mod inspect;
mod scheme_args;

use clap::Subcommand;

use crate::error::Failure;
use crate::ui::Ui;

/// Download data sets, and see how they are dealt to devices.
///
/// Files are in the folder that STLF_DATA names, or else in the user's cache folder. The strokes domains
/// are drawn and need no files.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf data inspect
  stlf data fetch mnist
  stlf data inspect --domains mnist,usps --partition dirichlet -c alpha=0.1 --plot devices.svg")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    #[cfg(feature = "fetch")]
    Fetch(fetch::Args),
    Inspect(Box<inspect::Args>),
    #[cfg(feature = "images")]
    BuildMnistM(build_mnist_m::Args),
}

/// Runs the verb.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    match &args.verb {
        #[cfg(feature = "fetch")]
        Verb::Fetch(args) => fetch::run(args, ui),
        Verb::Inspect(args) => inspect::run(args, ui),
        #[cfg(feature = "images")]
        Verb::BuildMnistM(args) => build_mnist_m::run(args, ui),
    }
}
