//! How far a run is, by the files in its folder: whoever runs it need not be this program.

use std::path::Path;

use serde::Serialize;
use stlf_config::Config;

use crate::Error;
use crate::run::seed_folder;
use crate::stages::{measure, plan, train, transfer};
use crate::watch::Stage;

/// How far a run is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Whether it is finished.
    pub finished: bool,
    /// The progress of each stage.
    pub stages: Vec<StageProgress>,
}

/// How far a stage is, over all seeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StageProgress {
    /// The stage of the run.
    pub stage: Stage,
    /// Files that are there.
    pub done: usize,
    /// Files that there will be.
    pub total: usize,
}

/// Looks at a run folder.
///
/// # Errors
/// It is none.
pub fn progress(path: &Path) -> Result<Progress, Error> {
    let config = Config::read(&path.join("config.toml"))?;
    let count = |files: &[String]| {
        let inside = config.seeds.iter().map(|seed| path.join(seed_folder(*seed)));
        inside.map(|seed| files.iter().filter(|file| seed.join(file).is_file()).count()).sum()
    };
    let methods = config.compare.methods()?;
    let results = methods.iter().map(|m| format!("results/{}", transfer::table(*m))).collect();
    let ours = format!("results/{}", transfer::table(stlf_method::method::Method::StLf));
    let stages = [
        (Stage::Train, vec![train::TABLE.to_owned()]),
        (Stage::Measure, vec![measure::TABLE.to_owned()]),
        (Stage::Plan, vec![plan::FILE.to_owned()]),
        (Stage::Transfer, vec![ours]),
        (Stage::Compare, results),
    ];
    let stage = |(stage, files): &(Stage, Vec<String>)| StageProgress {
        stage: *stage,
        done: count(files),
        total: files.len() * config.seeds.len(),
    };
    Ok(Progress {
        finished: path.join("manifest.json").is_file(),
        stages: stages.iter().map(stage).collect(),
    })
}
