//! `stlf export`: what a device ended with, for other programs.

use std::path::PathBuf;

use stlf_bundle::{mlflow, onnx};

use super::bundle_args::{BundleArgs, failure};
use crate::error::Failure;
use crate::output;
use crate::ui::Ui;

/// Write what a device ended with for other programs: the whole mixture as one ONNX file, or as a folder for MLflow.
///
/// The graph takes samples as they are: `samples` is a table's features, double, one row a sample, or pixels from 0 to 255, float, sample ×
/// channels × rows × columns. It gives `probabilities`, one column a class, and `label`, the place of the likeliest class. The names of
/// classes and columns, the members with their weights and the epoch are in the metadata of the file. Models of a learner of yours cannot be
/// exported: only the learner knows how to predict with them; its arrays lie beside `models.json` as safetensors files.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf export node --onnx mixture.onnx
  stlf export runs/mine-1a2b3c4d --device d4 --onnx d4.onnx
  stlf export node --mlflow served && mlflow models serve -m served --env-manager local")]
#[command(group = clap::ArgGroup::new("to").required(true).multiple(true))]
pub(crate) struct Args {
    #[command(flatten)]
    bundle: BundleArgs,
    /// Write an ONNX file.
    #[arg(long, value_name = "FILE", group = "to")]
    onnx: Option<PathBuf>,
    /// Write a folder that `mlflow models serve` takes.
    #[arg(long, value_name = "FOLDER", group = "to")]
    mlflow: Option<PathBuf>,
}

/// Writes the mixture in the formats that are asked for.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    if let Some(path) = &args.onnx {
        output::check_place(path)?;
    }
    let mixture = args.bundle.read_to_export()?;
    if let Some(path) = &args.onnx {
        let file = onnx::write(&mixture).map_err(|e| failure(&e))?;
        output::write_file(path, |out| out.write_all(&file))?;
        ui.print(&format!("wrote {}\n", path.display()))?;
    }
    if let Some(path) = &args.mlflow {
        mlflow::write(path, &mixture).map_err(|e| failure(&e))?;
        ui.print(&format!("wrote {}\n", path.display()))?;
    }
    Ok(())
}
