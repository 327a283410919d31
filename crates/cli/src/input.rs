//! Reading of input from files and from standard input.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

use stlf_config::Config;
use stlf_data::columns::PARQUET;
use stlf_formats::{LinkTable, PlanFile, PlanOrProblem, ProblemFile};
use stlf_lab::run::seed_folder;
use stlf_lab::stages::plan::{FILE as PLAN, PROBLEM};

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

/// Reads a plan or a problem, according to the format that the file names; of a run folder, the plan.
pub(crate) fn plan_or_problem(path: &Path) -> Result<PlanOrProblem, Failure> {
    either(&in_run(path, PLAN)?)
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
) -> Result<Result<LinkTable, stlf_planning::Error>, Failure> {
    Ok(LinkTable::read_parquet(bytes(path)?, model_bits))
}

#[cfg(not(feature = "parquet"))]
fn parquet(path: &Path, _: f64) -> Result<Result<LinkTable, stlf_planning::Error>, Failure> {
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
