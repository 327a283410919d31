//! `stlf predict`: new samples through what a device ended with.

use std::path::{Path, PathBuf};

use stlf_bundle::models::Models;
use stlf_bundle::predictions::{Columns, csv, never_given};
use stlf_bundle::samples::Samples;
use stlf_learner::{Options, Program};
use stlf_planning::number_format::{clean, counted};

use super::bundle_args::{BundleArgs, failure};
use super::learner;
use crate::error::Failure;
use crate::output;
use crate::progress::Watch;
use crate::ui::Ui;

/// Predict the classes of new samples with what a device ended with.
///
/// A device has a bundle after an epoch (`mixture/` in its folder), and so has every device of a run (`seed-0/mixtures/NAME/`). New samples are
/// read and scaled as the device's own were: a table with the same columns, in any order and with others beside them, or a folder of
/// pictures of the same size; --resize takes pictures of any size. The result is a table of sample, class and probability. Where the device's
/// samples were windows of a series, a table of readings is cut in the same way, and the result also has the first row of each window,
/// counted from 0, and its time.
///
/// Models of a learner of yours (`models.json`) are used by that learner: start it with --learner so that the new samples are its data.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf predict node new.csv                              # the folder of a real device
  stlf predict runs/mine-1a2b3c4d new.csv --device d4    # a device of a run
  stlf predict node/mixture new.parquet -o out.csv --probabilities
  stlf predict node pictures/ --files
  stlf predict node vibration.csv                        # one row for each window
  stlf predict runs/rooms-1a2b3c4d photo.jpg --device garden-2 --resize
  stlf predict node --learner \"python -m stlf.learner pumps:Pumps new.csv\"")]
pub(crate) struct Args {
    #[command(flatten)]
    bundle: BundleArgs,
    /// The samples: a table, CSV or Parquet, or pictures, PNG or JPEG, in a folder.
    #[arg(value_name = "SAMPLES", required_unless_present = "learner", conflicts_with = "learner")]
    samples: Option<PathBuf>,
    /// The learner of the models, whose data are the samples: its command line, in quotation marks.
    #[arg(long, value_name = "PROGRAM …", conflicts_with_all = ["files", "resize"])]
    learner: Option<String>,
    /// Variables of the environment that the learner sees besides PATH, HOME, LANG and the like.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', requires = "learner")]
    learner_env: Vec<String>,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Add a column with the probability of each class.
    #[arg(long)]
    probabilities: bool,
    /// Add a column with the file of each picture.
    #[arg(long)]
    files: bool,
    /// Resize pictures of another size to the size that the device learned (`data.image-size` in its run).
    #[arg(long)]
    resize: bool,
}

/// Predicts the classes of samples, and writes the table of them.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    if let Some(path) = &args.output {
        output::check_place(path)?;
        let is_same = |samples: &PathBuf| {
            let both = [samples, path].map(std::fs::canonicalize);
            matches!(both, [Ok(samples), Ok(output)] if samples == output)
        };
        if args.samples.as_ref().is_some_and(is_same) {
            let message = format!("{} has the samples and cannot be the output", path.display());
            return Err(Failure::input(message).hint("name another file"));
        }
    }
    let table = match (&args.learner, &args.samples) {
        (None, Some(samples)) => by_mixture(args, samples, ui)?,
        (learner, _) => by_learner(args, learner.as_deref().unwrap_or_default(), ui)?,
    };
    match &args.output {
        Some(path) => output::write_file(path, |out| out.write_all(&table)),
        // Names of classes and files are text, and so is the table.
        None => ui.print(&String::from_utf8_lossy(&table)),
    }
}

/// The table by a mixture of built-in networks.
fn by_mixture(args: &Args, samples: &Path, ui: &Ui) -> Result<Vec<u8>, Failure> {
    let mixture = args.bundle.read()?;
    let read = if args.resize { Samples::read_resized } else { Samples::read };
    let samples = read(&mixture, samples).map_err(|e| failure(&e))?;
    if args.files && samples.files.is_none() {
        return Err(Failure::input("--files: rows of a table have no files of their own")
            .hint("leave it out; the column `sample` counts the rows from 0"));
    }
    let files = samples.files.as_deref().filter(|_| args.files);
    let beginnings = samples.beginnings.as_deref();
    let columns = Columns { probabilities: args.probabilities, files, beginnings };
    let predictions = mixture.predict(&samples.inputs).map_err(|e| failure(&e))?;
    ui.note(&missed(&never_given(&mixture.classes, &predictions), predictions.len()));
    csv(&mixture.classes, &predictions, columns).map_err(|e| failure(&e))
}

/// Returns a line for each class that no sample is given, though some should have it.
fn missed(classes: &[(&str, f64)], samples: usize) -> String {
    let line = |(class, expected): &(&str, f64)| {
        format!(
            "class {} is never predicted, though by the probabilities about {expected:.0} of {} should have it (--probabilities shows them)\n",
            clean(class),
            counted(samples, "sample")
        )
    };
    classes.iter().map(line).collect()
}

/// The table by the learner that made the models, of its own samples.
fn by_learner(args: &Args, program: &str, ui: &Ui) -> Result<Vec<u8>, Failure> {
    let bundle = args.bundle.find_of_learner()?;
    let folder = std::env::temp_dir().join(format!("stlf-learner-{}", std::process::id()));
    Watch::listen()?;
    let mut go_on = |_| Watch::flow();
    let predicted = Options::new(program, &folder, 0)
        .and_then(|options| {
            let options = Options { environment: args.learner_env.clone(), ..options };
            Program::start(options, &mut go_on)
        })
        .map_err(|e| learner::failure(&e))
        .and_then(|user| {
            let models = Models::read(&bundle, &user).map_err(|e| failure(&e))?;
            let predictions = models.predict(&user, &mut go_on);
            let predictions = predictions.map_err(|e| learner::failure(&e.into()))?;
            let predictions = predictions.ok_or_else(|| Failure::interrupted("stopped"))?;
            let columns =
                Columns { probabilities: args.probabilities, files: None, beginnings: None };
            ui.note(&missed(&never_given(&models.classes, &predictions), predictions.len()));
            csv(&models.classes, &predictions, columns).map_err(|e| failure(&e))
        });
    // Nobody misses it.
    let _ = std::fs::remove_dir_all(&folder);
    predicted
}
