//! `stlf data build-mnist-m`: makes MNIST-M from MNIST and the user's photographs.

use std::path::PathBuf;

use stlf_data::domains::{Half, Recipe, build_mnist_m};

use super::super::numbers::whole;
use super::data_args::default_folder;
use crate::error::Failure;
use crate::progress::Steps;
use crate::ui::Ui;

/// Make MNIST-M from MNIST and any photographs.
///
/// Like the published set: a random piece of a photograph is put behind each digit, and its
/// colours are inverted where there is ink. Image i is made from MNIST's image i. Both halves are made.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf data fetch mnist && stlf data build-mnist-m --photos holidays
  stlf data build-mnist-m --photos BSDS500/images --samples 20000 --to data")]
pub(crate) struct Args {
    /// A folder of photographs, PNG or JPEG; subfolders are searched too.
    #[arg(long, value_name = "DIR")]
    photos: PathBuf,

    /// The folder with MNIST's files [default: STLF_DATA, else the user's cache folder]
    #[arg(long, value_name = "DIR")]
    mnist: Option<PathBuf>,

    /// The folder to put MNIST-M into [default: that of MNIST]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,

    /// At most this many images of each half, the first ones of MNIST.
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    samples: Option<usize>,

    /// The seed from which the pieces of photographs are drawn.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>)]
    seed: u64,
}

/// Makes both halves of MNIST-M.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    let mnist = match &args.mnist {
        Some(folder) => folder.clone(),
        None => default_folder()?,
    };
    let output = args.to.clone().unwrap_or_else(|| mnist.clone());
    std::fs::create_dir_all(&output)
        .map_err(|e| Failure::io(format!("cannot create {}: {e}", output.display())))?;
    for half in [Half::Train, Half::Test] {
        let recipe = Recipe {
            mnist: mnist.clone(),
            photographs: args.photos.clone(),
            output: output.clone(),
            half,
            samples: args.samples,
            seed: args.seed,
        };
        let steps = Steps::start(&format!("mnist-m, {half}, photographs"), ui);
        let built = build_mnist_m(&recipe, |done, all| steps.see(done, all));
        steps.finish();
        built.map_err(|e| Failure::in_data(&e))?;
    }
    ui.print(&format!("mnist-m is in {}\n", output.display()))
}
