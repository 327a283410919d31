//! The arguments that choose the run: a configuration or a run folder, and settings that override it.

use std::path::{Path, PathBuf};

use stlf_config::Config;
use stlf_lab::run::default_folder;
use stlf_lab::{Error, Kind, Observer};

use crate::error::Failure;
use crate::progress::{Stages, Watch};
use crate::ui::Ui;

/// A run, by its configuration or its folder.
#[derive(clap::Args)]
pub(crate) struct RunArgs {
    /// A configuration (TOML; `stlf new` writes one with all keys) or a run folder [default: all defaults]
    config: Option<PathBuf>,

    /// Settings that differ from the file's: KEY=VALUE, separated by spaces.
    #[arg(short = 'c', long = "set", value_name = "KEY=VALUE ...")]
    set: Vec<String>,

    /// A program of your own that has the data and the model of a device, as training.learner: its command line, in quotation marks, with
    /// {device} for the name of the device (docs/learners.md). data.devices names the devices.
    #[arg(long, value_name = "PROGRAM …")]
    learner: Option<String>,

    /// The run folder [default: runs/NAME-HASH, by the configuration]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

impl RunArgs {
    /// Whether nothing says what to run, so that all is as it always is.
    pub(crate) fn is_empty(&self) -> bool {
        self.config.is_none() && self.set.is_empty() && self.learner.is_none()
    }

    /// Returns the configuration and the run folder.
    pub(crate) fn resolve(&self) -> Result<(Config, PathBuf), Failure> {
        let given = self.config.as_deref().unwrap_or(Path::new("defaults"));
        let is_folder = self.config.is_some() && given.is_dir();
        let file = if is_folder { given.join("config.toml") } else { given.to_owned() };
        if !is_folder && is_table(given) {
            let message = format!("{} is a table, not a configuration", given.display());
            let hint = format!(
                "stlf new NAME --features {} writes a configuration for it",
                given.display()
            );
            return Err(Failure::input(message).hint(&hint));
        }
        let text = match &self.config {
            Some(_) => std::fs::read_to_string(&file).map_err(|e| unreadable(&file, &e))?,
            None => String::new(),
        };
        let learner = self.learner.as_ref();
        let learner =
            learner.map(|line| format!("training.learner={}", toml::Value::from(line.as_str())));
        let changes = self.set.iter().flat_map(|set| stlf_config::changes(set));
        let config = Config::parse(&text, &file)
            .and_then(|config| config.with(changes.chain(learner.as_deref())))
            .map_err(|e| failure(&e.into()))?;
        if let Some(missing) = missing(&config, &file) {
            return Err(missing);
        }
        let folder = match &self.to {
            Some(folder) => folder.clone(),
            None if is_folder => given.to_owned(),
            None => default_folder(given, &config).map_err(|e| failure(&e))?,
        };
        Ok((config, folder))
    }
}

/// Does work on this many seeds with progress for the user. Ctrl-C stops it between two steps, and nothing is lost.
pub(crate) fn watched<T>(
    seeds: usize,
    ui: &Ui,
    work: impl FnOnce(&Observer<'_>) -> Result<T, Error>,
) -> Result<T, Failure> {
    let stages = Stages::start(seeds, ui)?;
    let result = work(&|event| {
        stages.see(&event);
        Watch::flow()
    });
    stages.finish();
    result.map_err(|e| failure(&e))
}

/// Whether a file is a table of samples, by its name.
fn is_table(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    path.is_file() && ["csv", "tsv", "parquet"].iter().any(|table| extension == *table)
}

/// The failure that a file which the configuration names is not there, with the place where it was looked for.
fn missing(config: &Config, file: &Path) -> Option<Failure> {
    let data = &config.data;
    let named =
        [("features", &data.features), ("images", &data.images), ("answers", &data.answers)];
    let (key, path) = named
        .into_iter()
        .filter_map(|(key, path)| Some((key, path.as_ref()?)))
        .find(|(_, path)| matches!(path.try_exists(), Ok(false)))?;
    let tried = std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let message = format!("data.{key}: {} does not exist", tried.display());
    let beside = file.parent().filter(|_| path.is_relative()).map(|folder| folder.join(path));
    let hint = match beside.filter(|beside| beside.exists()) {
        Some(beside) => format!(
            "paths count from the folder in which stlf runs; the file is beside the configuration: -c data.{key}={}",
            beside.display()
        ),
        None => "paths count from the folder in which stlf runs".to_owned(),
    };
    Some(Failure::input(message).hint(&hint))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    let failure = Failure::input(format!("cannot read {}: {error}", path.display()));
    match path.file_name().is_some_and(|name| name == "config.toml") {
        true => failure.hint("this is not a run folder; name a run folder or a configuration"),
        false => failure.hint("`stlf new NAME` writes a configuration"),
    }
}

/// Turns an error of a run into a failure with its exit code.
pub(crate) fn failure(error: &Error) -> Failure {
    if let Error::Data(e) = error {
        return Failure::in_data(e);
    }
    let failure = match error.kind() {
        Kind::File => Failure::io(error.to_string()),
        Kind::Infeasible => Failure::infeasible(error.to_string()),
        Kind::Stopped => {
            return Failure::interrupted("stopped").hint("run the same command to continue");
        }
        Kind::Input => Failure::input(error.to_string()),
    };
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
