//! Whole runs of the method, and their settings and results.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use stlf_config::Config;
use stlf_lab::record::{ExpectedRow, RefusedRow, Row, TrainingRow};
use stlf_lab::stages::{expectation, handover, train};
use stlf_lab::summary::{Spread, summarise as lines};
use stlf_lab::{Folder, Learners, Shard, Stage};

use crate::errors::{in_run, input};
use crate::learner::{Raised, user_learner, with_cause};
use crate::watch::{Event, watched};

/// A configuration as TOML with every key: from TOML, or from JSON where it was written in Python, with changes.
#[pyfunction]
#[pyo3(signature = (text, *, file, is_json=false, changes=Vec::new()))]
pub(crate) fn configure(
    py: Python<'_>,
    text: &str,
    file: PathBuf,
    is_json: bool,
    changes: Vec<String>,
) -> PyResult<String> {
    let wrong = |e: stlf_config::Error| in_run(py, &e.into());
    let converted;
    let text = if is_json {
        converted = toml_of_json(text)
            .map_err(|message| input(py, message, "a configuration holds what TOML can hold"))?;
        &converted
    } else {
        text
    };
    let config = Config::parse(text, &file).map_err(wrong)?;
    config.with(changes.iter().map(String::as_str)).and_then(|c| c.to_toml()).map_err(wrong)
}

fn toml_of_json(text: &str) -> Result<String, String> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    toml::to_string(&value).map_err(|e| e.to_string())
}

/// The folder that the same configuration finds again.
#[pyfunction]
pub(crate) fn default_folder(py: Python<'_>, config: &str, file: PathBuf) -> PyResult<PathBuf> {
    let config = Config::parse(config, &file).map_err(|e| in_run(py, &e.into()))?;
    stlf_lab::run::default_folder(&file, &config).map_err(|e| in_run(py, &e))
}

/// Runs everything that is not finished, or a shard of it; with learners, each the bridge to one by its device's name.
#[pyfunction]
#[pyo3(signature = (config, folder, *, learners=None, shard=None, progress=None))]
pub(crate) fn run(
    py: Python<'_>,
    config: &str,
    folder: PathBuf,
    learners: Option<Vec<(String, Bound<'_, PyAny>)>>,
    shard: Option<&str>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let config =
        Config::parse(config, Path::new("config.toml")).map_err(|e| in_run(py, &e.into()))?;
    let shard: Option<Shard> = shard
        .map(|text| text.parse())
        .transpose()
        .map_err(|form: String| input(py, format!("shard: {form}"), "the first is 1/16"))?;
    let raised = Raised::default();
    let learners = learners.map(|devices| -> PyResult<Learners> {
        let user = |(name, bridge)| Ok((name, user_learner(py, &bridge, &raised)?));
        let devices = devices.into_iter().map(user).collect::<PyResult<_>>()?;
        Learners::new(devices).map_err(|e| in_run(py, &e))
    });
    let learners = learners.transpose()?;
    let ended = watched(py, progress, |watch| {
        let observer = |event: stlf_lab::Event| {
            let stlf_lab::Event { seed, stage, done, total } = event;
            watch.see(Event { stage: name(stage), seed, done, total })
        };
        match (&learners, shard) {
            (Some(learners), _) => {
                stlf_lab::run_with(&config, learners, &folder, &observer).map(drop)
            }
            (None, Some(shard)) => stlf_lab::run_shard(&config, &folder, shard, &observer),
            (None, None) => stlf_lab::run(&config, &folder, &observer).map(drop),
        }
    })?;
    ended.map_err(|e| with_cause(py, in_run(py, &e), &raised))
}

fn name(stage: Stage) -> &'static str {
    match stage {
        Stage::Deal => "deal",
        Stage::Train => "train",
        Stage::Measure => "measure",
        Stage::Plan => "plan",
        Stage::Transfer => "transfer",
        Stage::Relay => "relay",
        Stage::Adapt => "adapt",
        Stage::Compare => "compare",
    }
}

/// What devices of a seed's folder are told, each with its name: that their own model is no better than guessing, that they refused what was handed to them, or that they may expect little.
#[pyfunction]
pub(crate) fn warnings(py: Python<'_>, folder: PathBuf) -> PyResult<Vec<String>> {
    let wrong = |e: stlf_data::Error| in_run(py, &e.into());
    let folder = Folder::open(&folder).map_err(wrong)?;
    let training: Option<Vec<TrainingRow>> = folder.read_csv(train::TABLE).map_err(wrong)?;
    let expected: Option<Vec<ExpectedRow>> = folder.read_csv(expectation::TABLE).map_err(wrong)?;
    let own = training.unwrap_or_default().into_iter().filter_map(|row| {
        let guessing = row.guessing()?;
        Some(format!("{}: {guessing}", row.device))
    });
    let refused: Option<Vec<RefusedRow>> = folder.read_csv(handover::REFUSED).map_err(wrong)?;
    let handed = refused.unwrap_or_default();
    let handed = handed.into_iter().map(|row| format!("{}: {}", row.to, row.told()));
    let received = expected.unwrap_or_default().into_iter().filter_map(|row| {
        let warning = row.warning?;
        Some(format!("{}: {warning}", row.target))
    });
    Ok(own.chain(handed).chain(received).collect())
}

/// Methods side by side, from the lines of `results.jsonl`.
#[pyfunction]
pub(crate) fn summarise<'py>(py: Python<'py>, results: &str) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let rows: Result<Vec<Row>, _> = results.lines().map(serde_json::from_str).collect();
    let rows = rows
        .map_err(|e| input(py, format!("results.jsonl: {e}"), "delete the file and run again"))?;
    let spread = |spread: Spread| (spread.mean, spread.half_interval());
    lines(&rows)
        .into_iter()
        .map(|line| {
            let entry = PyDict::new(py);
            entry.set_item("method", line.method)?;
            entry.set_item("accuracy", line.accuracy.map(spread))?;
            entry.set_item("targets", spread(line.targets))?;
            entry.set_item("links", spread(line.links))?;
            entry.set_item("joules", spread(line.total_joules))?;
            entry.set_item("energy_share", line.energy_share.map(spread))?;
            entry.set_item("bytes", spread(line.total_bytes))?;
            entry.set_item("seeds", line.targets.count)?;
            Ok(entry)
        })
        .collect()
}
