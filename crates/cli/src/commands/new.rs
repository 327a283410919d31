//! `stlf new`: writes a configuration for the user to change.

use std::path::PathBuf;

use stlf_config::TEMPLATE;
use stlf_config::own_data::{Written, for_table};
use stlf_data::features;

use super::run_args::failure;
use super::window_args::WindowArgs;
use crate::error::Failure;
use crate::output::write_file;
use crate::ui::Ui;

/// Write a configuration with its keys, their defaults and their meanings; for data of your own, one that runs as it is.
///
/// With --features the file names the table, its columns and how its rows are dealt to devices. Columns that are not numbers are left
/// out. With --window the table has readings in the order of time, and samples are windows of them.
///
/// With --images the file names a folder of pictures, DEVICE/CLASS/*.png or .jpg; those without a class are in DEVICE/unlabeled.
/// Pictures of any size are resized for the built-in network.
///
/// If every device has labels, half of them hide theirs, so that the run can measure accuracy; the file says so.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf new mine && stlf run mine.toml
  stlf new mine --features sensors.csv && stlf run mine.toml
  stlf new mine --features sensors.csv --label activity --device patient
  stlf new mine --features vibration.csv --window 128 && stlf run mine.toml
  stlf new rooms --images photos && stlf run rooms.toml")]
pub(crate) struct Args {
    /// The configuration's name; NAME.toml is written.
    name: String,

    /// A table of features, CSV or Parquet, one sample per row.
    #[arg(long, value_name = "TABLE")]
    features: Option<PathBuf>,

    /// The column of the table with the labels; empty where there is none.
    #[arg(long, value_name = "COLUMN", default_value = "label", requires = "features")]
    label: String,

    /// The column of the table that names the device [default: device or domain, if there is one]
    #[arg(long, value_name = "COLUMN", requires = "features")]
    device: Option<String>,

    #[command(flatten)]
    windows: WindowArgs,

    /// A folder of pictures, DEVICE/CLASS/*.png or .jpg.
    #[cfg(feature = "images")]
    #[arg(long, value_name = "FOLDER", conflicts_with = "features")]
    images: Option<PathBuf>,
}

impl Args {
    /// The configuration for the user's own data, if they name any.
    fn for_own_data(&self) -> Option<Result<Written, stlf_config::Error>> {
        #[cfg(feature = "images")]
        if let Some(folder) = &self.images {
            return Some(stlf_config::own_data::for_pictures(folder));
        }
        self.features.as_ref().map(|table| for_table(table, self.options()))
    }

    /// Returns the options by which the table is read.
    fn options(&self) -> features::Options {
        features::Options {
            label: self.label.clone(),
            domain: self.device.clone(),
            windows: self.windows.size(),
            time: self.windows.time.clone(),
            ..features::Options::default()
        }
    }
}

/// Writes the file, but never overwrites one.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    let name = args.name.strip_suffix(".toml").unwrap_or(&args.name);
    let path = PathBuf::from(format!("{name}.toml"));
    if path.exists() {
        return Err(Failure::input(format!("{} already exists", path.display()))
            .hint("choose another name"));
    }
    if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty() && !f.is_dir()) {
        return Err(Failure::input(format!("there is no folder {}", folder.display()))
            .hint("make it first, or choose a name without it"));
    }
    let (text, told, next) = match args.for_own_data() {
        None => (TEMPLATE.to_owned(), Vec::new(), "change it and run"),
        Some(made) => {
            let Written { text, told } = made.map_err(|e| failure(&e.into()))?;
            (text, told, "run")
        }
    };
    write_file(&path, |out| out.write_all(text.as_bytes()))?;
    let told: String = told.iter().map(|sentence| format!("{sentence}\n")).collect();
    ui.print(&format!("{told}wrote {0}; {next}: stlf run {0}\n", path.display()))
}
