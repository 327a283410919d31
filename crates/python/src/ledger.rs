//! The record of what a device has published with noise. It has the format of the one that `stlf node` keeps.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use stlf_data::atomic_folder::Folder;
use stlf_method::divergence::privacy::Privacy;
use stlf_protocol::privacy_ledger::{Ledger, Publication};

use crate::errors::{in_file, in_run, input};
use crate::privacy::check_delta;

/// What a file records. Only a file that is not there means that nothing was published.
fn read(py: Python<'_>, path: &Path) -> PyResult<Ledger> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Ledger::default()),
        Err(source) => return Err(failed(py, path, source)),
    };
    Ledger::read(&bytes).map_err(|message| {
        let hint = "restore it from a backup; without it, what was spent is forgotten";
        in_file(py, format!("{}: {message}", path.display()), hint)
    })
}

/// The folder of a record, made where it is missing, and the record's name in it.
fn placed<'a>(py: Python<'_>, path: &'a Path) -> PyResult<(Folder, &'a str)> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        let message = format!("ledger: {} is no name of a file", path.display());
        return Err(input(py, message, "try privacy.json"));
    };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folder = Folder::open(parent.unwrap_or(Path::new("."))).map_err(in_data(py))?;
    Ok((folder, name))
}

/// Keeps other processes and threads from the record until it is dropped.
fn locked(py: Python<'_>, path: &Path) -> PyResult<File> {
    let mut beside = OsString::from(path);
    beside.push(".lock");
    let locked = py.detach(|| {
        let file = OpenOptions::new().create(true).append(true).open(&beside)?;
        file.lock().map(|()| file)
    });
    locked.map_err(|source| failed(py, Path::new(&beside), source))
}

fn failed(py: Python<'_>, path: &Path, source: std::io::Error) -> PyErr {
    in_data(py)(stlf_data::Error::File { path: path.to_owned(), source })
}

fn in_data(py: Python<'_>) -> impl Fn(stlf_data::Error) -> PyErr {
    move |error| in_run(py, &error.into())
}

/// Counts a publication whose noise comes from this seed. Nothing may leave the device before this returns.
pub(crate) fn count(
    py: Python<'_>,
    path: &Path,
    noise_seed: &[u8; 32],
    privacy: Privacy,
    budget: Option<f64>,
) -> PyResult<()> {
    let (folder, name) = placed(py, path)?;
    let _locked = locked(py, path)?;
    let publication = Publication::new(noise_seed, privacy.ratio());
    let ledger = read(py, path)?.with(publication, privacy.delta(), budget).map_err(|e| {
        let hint = "raise the budget, or publish what was published before again";
        input(py, e.to_string(), hint)
    })?;
    folder.write_json_durably(name, &ledger).map_err(in_data(py))
}

/// The number of publications in a record, and the ε that they spent together at this δ.
#[pyfunction]
pub(crate) fn privacy_recorded(
    py: Python<'_>,
    path: PathBuf,
    delta: f64,
) -> PyResult<(usize, f64)> {
    check_delta(py, delta)?;
    let ledger = read(py, &path)?;
    Ok((ledger.publications(), ledger.spent(delta)))
}
