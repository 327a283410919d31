//! How far a run is, by the files in its folder: whoever runs it need not be this program.

use std::path::Path;

use serde::Serialize;
use stlf_config::Config;

use crate::Error;
use crate::run::seed_folder;
use crate::stages::{measure, plan, train, transfer};
use crate::watch::Stage;

/// How much of a run is done, as its folder shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Whether the run is finished.
    pub finished: bool,
    /// The progress of each stage.
    pub stages: Vec<StageProgress>,
}

/// How far a stage is, over all seeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StageProgress {
    /// The stage that this is about.
    pub stage: Stage,
    /// The number of the stage's files that are there.
    pub done: usize,
    /// The number of files that the stage ends with.
    pub total: usize,
    /// While devices train: how many have a model, over all seeds. How many will have one is known once all are dealt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<usize>,
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
    let of_seed = |seed: &u64| models(&path.join(seed_folder(*seed)).join(train::MODELS));
    let models: usize = config.seeds.iter().map(of_seed).sum();
    let stage = |(stage, files): &(Stage, Vec<String>)| StageProgress {
        models: (*stage == Stage::Train).then_some(models),
        stage: *stage,
        done: count(files),
        total: files.len() * config.seeds.len(),
    };
    Ok(Progress {
        finished: path.join("manifest.json").is_file(),
        stages: stages.iter().map(stage).collect(),
    })
}

/// How many devices have a model in this folder, which need not be there yet.
fn models(folder: &Path) -> usize {
    let is_model = |name: &std::ffi::OsStr| {
        name.to_str().is_some_and(|n| n.ends_with(".safetensors") && n != train::WARM_UP)
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| is_model(&entry.file_name())).count()
}
