//! Reading of input from files and from standard input.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

use stlf_config::Config;
use stlf_data::columns::PARQUET;
use stlf_formats::{LinkTable, PlanFile, PlanOrProblem, ProblemFile};
use stlf_lab::run::seed_folder;
use stlf_lab::stages::plan::{FILE as PLAN, PROBLEM};
use stlf_node::status_file::FULL_PLAN;

use crate::commands::run_args::failure;
use crate::error::Failure;

/// A file of more bytes than this is parsed while it is read, to save memory; smaller ones are read whole first, to save time.
const LARGE: u64 = 64 << 20;

/// Reads a problem from a file, from standard input if the path is `-`, or from a run folder. A plan gives the problem that it repeats.
pub(crate) fn problem(path: &Path) -> Result<ProblemFile, Failure> {
    let path = &*in_run(path, PROBLEM)?;
    either(path)?.into_problem().map_err(|e| Failure::in_file(&name(path), &e))
}

/// Reads a plan from a file, from standard input if the path is `-`, or from a run folder.
pub(crate) fn plan(path: &Path) -> Result<PlanFile, Failure> {
    let path = &*in_run(path, PLAN)?;
    PlanFile::read(&bytes(path)?).map_err(|e| Failure::in_file(&name(path), &e))
}

/// Reads a plan or a problem, according to the format that the file names; of a run folder or of a device's, the plan.
pub(crate) fn plan_or_problem(path: &Path) -> Result<PlanOrProblem, Failure> {
    if let Some(full) = full_plan(path) {
        return either(&full);
    }
    let path = in_run(path, PLAN)?;
    if !is_large(&path) && !is_stdin(&path) && is_plan_by_places(&bytes(&path)?) {
        let what = "says who sends to whom, and not the numbers that this follows from";
        return Err(Failure::input(format!("{}: a device's plan {what}", name(&path)))
            .hint("a device writes both to full-plan.json in its folder with its next plan; of more than 64 devices, only the one that plans"));
    }
    either(&path)
}

/// The file in the folder of a real device that has its plan with all numbers, if the path is this folder, or the plan in it by which the device
/// continues.
pub(crate) fn full_plan(path: &Path) -> Option<PathBuf> {
    let folder =
        if path.is_dir() { path } else { path.parent().filter(|_| path.ends_with(PLAN))? };
    Some(folder.join(FULL_PLAN)).filter(|full| full.is_file())
}

/// Whether this is the plan by which a device continues. It has places in the roster instead of names, and no format.
fn is_plan_by_places(bytes: &[u8]) -> bool {
    let has = |file: &serde_json::Value, key: &str| file.get(key).is_some();
    serde_json::from_slice(bytes).is_ok_and(|file: serde_json::Value| {
        ["epoch", "sources", "targets", "objective"].iter().all(|key| has(&file, key))
            && !has(&file, "format")
    })
}

fn either(path: &Path) -> Result<PlanOrProblem, Failure> {
    let file = match is_large(path) {
        true => PlanOrProblem::read_from(|| File::open(path)),
        false => PlanOrProblem::read(&bytes(path)?),
    };
    file.map_err(|e| Failure::in_file(&name(path), &e))
}

/// Reads a table of links; its content tells whether it is CSV or Parquet.
pub(crate) fn links(path: &Path, model_bits: f64) -> Result<LinkTable, Failure> {
    if is_stdin(path) {
        let table = LinkTable::read_csv(bytes(path)?.as_slice(), model_bits);
        return table.map_err(|e| Failure::in_file(&name(path), &e));
    }
    let mut file = open(path)?;
    let mut magic = [0; 4];
    let is_parquet = file.read_exact(&mut magic).is_ok() && &magic == PARQUET;
    let table = if is_parquet {
        parquet(path, model_bits)?
    } else {
        file.rewind().map_err(|e| unreadable(path, &e))?;
        LinkTable::read_csv(file, model_bits)
    };
    table.map_err(|e| Failure::in_file(&name(path), &e))
}

#[cfg(feature = "parquet")]
fn parquet(
    path: &Path,
    model_bits: f64,
) -> Result<Result<LinkTable, stlf_formats::Error>, Failure> {
    Ok(LinkTable::read_parquet(bytes(path)?, model_bits))
}

#[cfg(not(feature = "parquet"))]
fn parquet(path: &Path, _: f64) -> Result<Result<LinkTable, stlf_formats::Error>, Failure> {
    Err(Failure::input(format!("{}: this program was built without Parquet", name(path)))
        .hint("use CSV, or build with --features parquet"))
}

/// Returns the path of a file within a run folder, or within the folder of one of its seeds; a path that is no folder is returned as it is.
pub(crate) fn in_run<'p>(path: &'p Path, file: &str) -> Result<Cow<'p, Path>, Failure> {
    let config = path.join("config.toml");
    if !path.is_dir() {
        return Ok(Cow::Borrowed(path));
    }
    if !config.is_file() {
        let inside = path.join(file);
        return match inside.is_file() {
            true => Ok(Cow::Owned(inside)),
            false => Err(Failure::input(format!("{} is a directory", path.display()))
                .hint("name a file, a run folder, or - for standard input")),
        };
    }
    let config = Config::read(&config).map_err(|e| failure(&e.into()))?;
    let first = config.seeds.first().copied().unwrap_or_default();
    Ok(Cow::Owned(path.join(seed_folder(first)).join(file)))
}

/// Returns the name of the input for messages.
pub(crate) fn name(path: &Path) -> String {
    if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn is_large(path: &Path) -> bool {
    !is_stdin(path) && path.metadata().is_ok_and(|m| m.is_file() && m.len() > LARGE)
}

fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = if is_stdin(path) {
        std::io::stdin().lock().read_to_end(&mut bytes)
    } else {
        open(path)?.read_to_end(&mut bytes)
    };
    read.map_err(|e| unreadable(path, &e))?;
    Ok(bytes)
}

fn open(path: &Path) -> Result<File, Failure> {
    File::open(path).map_err(|e| unreadable(path, &e))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    if error.kind() == std::io::ErrorKind::NotFound {
        if path.ends_with(PLAN) || path.ends_with(PROBLEM) {
            return Failure::input(format!("there is no file {}", path.display()))
                .hint("`stlf run` makes run folders, and `stlf plan FOLDER` continues one");
        }
        return Failure::input(format!("there is no file {}", path.display()))
            .hint("`stlf demo --write DIR` writes two examples, and `stlf run` makes run folders");
    }
    Failure::io(format!("cannot read {}: {error}", name(path)))
}
