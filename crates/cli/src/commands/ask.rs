//! `stlf ask`: the samples whose labels would help most.

use std::path::PathBuf;

use stlf_bundle::folder::{find, read};
use stlf_bundle::questions::{Question, csv};
use stlf_bundle::samples::Samples;
use stlf_config::answers::{Answers, has_answers};
use stlf_lab::questions::questions;

use super::bundle_args::{BundleArgs, failure};
use super::numbers::whole;
use super::run_args;
use crate::error::Failure;
use crate::output;
use crate::ui::Ui;

/// Name the samples whose labels would help a target most.
///
/// Of each target, these are the samples that its mixture is least sure of. Tables gain most, some from ten labels on; for pictures of a new domain label about a hundred. Fill in
/// the column `label`, and name the table as `data.answers`: targets then weigh the models that they receive by these labels, train a student on some of
/// them, and judge it by the others. Nothing of this leaves a device, and the plan stays as it is. What has a label already is not asked: a row with
/// something in the column of labels, a picture in the folder of a class.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf ask runs/mine-1a2b3c4d --labels 10 -o asked.csv    # every target of a run
  stlf run mine.toml -c data.answers=asked.csv            # once the labels are filled in
  stlf ask node sensors.csv --labels 10 -o asked.csv      # a real device, and its samples
  stlf ask node sensors.csv --answers asked.csv           # more, but not these again")]
pub(crate) struct Args {
    #[command(flatten)]
    bundle: BundleArgs,
    /// The device's samples: a table, CSV or Parquet, or pictures in a folder. Left out for a run, which knows its data.
    #[arg(value_name = "SAMPLES")]
    samples: Option<PathBuf>,
    /// How many samples to name for each target.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole::<usize>)]
    labels: usize,
    /// The column of the table with the labels that are there already. Left out: `label`, where the table has one.
    #[arg(long, value_name = "COLUMN", requires = "samples")]
    label_column: Option<String>,
    /// A table of answers, whose samples are not asked again.
    #[arg(long, value_name = "FILE", requires = "samples")]
    answers: Option<PathBuf>,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Finds the samples to ask for, and writes their table.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    if let Some(path) = &args.output {
        output::check_place(path)?;
        if has_answers(path) {
            let message = format!("{} has answers already", path.display());
            return Err(
                Failure::input(message).hint("name another file, so that they are not lost")
            );
        }
    }
    if args.labels == 0 {
        return Err(Failure::input("--labels: 0 would ask for nothing").hint("ask for at least 1"));
    }
    let questions = match &args.samples {
        Some(_) => of_device(args)?,
        None => of_run(args)?,
    };
    if questions.is_empty() {
        return Err(Failure::input(
            "there is nothing to ask: every sample is labeled, or no device is a target",
        ));
    }
    let table = csv(&questions).map_err(|e| failure(&e))?;
    match &args.output {
        Some(path) => {
            output::write_file(path, |out| out.write_all(&table))?;
            let file = path.display();
            ui.print(&format!(
                "{file}: {} samples. Fill in the column label, then: -c data.answers={file}\n",
                questions.len()
            ))
        }
        // Names of classes and files are text, and so is the table.
        None => ui.print(&String::from_utf8_lossy(&table)),
    }
}

/// The questions of the targets of a run.
fn of_run(args: &Args) -> Result<Vec<Question>, Failure> {
    let BundleArgs { dir, device, seed } = &args.bundle;
    if find(dir, None, *seed).is_ok() {
        let message = format!("{}: a device's bundle does not hold its samples", dir.display());
        let hint = format!("name them: stlf ask {} SAMPLES", dir.display());
        return Err(Failure::input(message).hint(&hint));
    }
    questions(dir, device.as_deref(), *seed, args.labels).map_err(|e| run_args::failure(&e))
}

/// The questions of one device, about samples that are named.
fn of_device(args: &Args) -> Result<Vec<Question>, Failure> {
    let BundleArgs { dir, device, seed } = &args.bundle;
    let mixture = find(dir, device.as_deref(), *seed).and_then(|path| read(&path));
    let mixture = mixture.map_err(|e| failure(&e))?;
    let path = args.samples.as_deref().unwrap_or(dir);
    let label = args.label_column.as_deref();
    let samples = Samples::read_own(&mixture, path, label).map_err(|e| failure(&e))?;
    let places: Vec<usize> = (0..samples.count).collect();
    let mut known = samples.known;
    if let Some(path) = &args.answers {
        let answers = Answers::read(path, &mixture.classes);
        let answered = answers.and_then(|a| a.of(&mixture.device, &places, &known));
        known.extend(answered.map_err(|e| run_args::failure(&e.into()))?);
    }
    let mut questions = mixture
        .questions(&samples.inputs, &places, &known, args.labels)
        .map_err(|e| failure(&e))?;
    if let Some(files) = &samples.files {
        questions
            .iter_mut()
            .for_each(|question| question.file = files.get(question.sample).cloned());
    }
    if let Some(beginnings) = &samples.beginnings {
        questions
            .iter_mut()
            .for_each(|question| question.row = beginnings.get(question.sample).map(|b| b.row));
    }
    Ok(questions)
}
