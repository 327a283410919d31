//! Downloads data sets: checked, resumable, and never half-written under their names.
//!
//! MNIST comes as the files it is read from. USPS and MNIST-M come as archives in other formats, which
//! are converted to IDX and then removed. What is there already is left as it is, so an archive or a
//! file that was put into the folder by hand serves as well as a download.

mod checksum;
mod download;
mod mnist_m;
mod sources;
mod usps;

#[cfg(test)]
mod tests;

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

pub use sources::{Checksum, Source, sources};

use ureq::Agent;

use crate::Error;
use crate::domains::{Domain, Half};
use crate::idx::Idx;
use download::{Outcome, agent, download};

/// The hint for MNIST-M, which users can also make themselves.
const BUILD: &str = "build it from MNIST and any photographs: stlf data build-mnist-m --photos DIR";

/// How much of a file has been downloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The name of the file that is being downloaded.
    pub file: &'a str,
    /// Bytes that are here, those of an earlier attempt included.
    pub done: u64,
    /// All of its bytes, where the mirror says so.
    pub total: Option<u64>,
}

/// Is called with the progress, many times a second, and says whether to continue.
pub type Observer<'a> = dyn FnMut(&Progress<'_>) -> ControlFlow<()> + 'a;

/// How the download of a data set ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// All files of the domain are in the folder.
    All {
        /// The files that were not there before.
        new: Vec<PathBuf>,
        /// The files that were there already.
        kept: Vec<PathBuf>,
    },
    /// The observer said stop. Fetching again resumes from there.
    Stopped,
}

/// Brings the files of a domain into a folder. `mirror`, where given, is asked instead of the public
/// ones: a folder's address.
///
/// # Errors
/// [`Error::Download`] when no mirror has a file, with a hint that names every file that is missing;
/// others when the folder cannot be written, or an archive is not what it should be.
pub fn fetch(
    domain: Domain,
    folder: &Path,
    mirror: Option<&str>,
    observer: &mut Observer<'_>,
) -> Result<Fetched, Error> {
    let mut sources = sources(domain);
    if sources.is_empty() {
        return Err(Error::setting("data set", format!("{domain} is drawn, not downloaded")));
    }
    if let Some(mirror) = mirror {
        let mirror = format!("{}/", mirror.trim_end_matches('/'));
        sources.iter_mut().for_each(|source| source.mirrors = vec![mirror.clone()]);
    }
    fetch_all(&agent(), domain, &sources, folder, observer)
}

fn fetch_all(
    agent: &Agent,
    domain: Domain,
    sources: &[Source],
    folder: &Path,
    observer: &mut Observer<'_>,
) -> Result<Fetched, Error> {
    fs::create_dir_all(folder).map_err(|e| Error::file(folder, e))?;
    let (mut new, mut kept) = (Vec::new(), Vec::new());
    for (k, source) in sources.iter().enumerate() {
        let files = files_of(domain, source, folder);
        if files.iter().all(|file| is_there(file)) {
            kept.extend(files);
            continue;
        }
        // An archive that somebody put here, or that an earlier run could not convert.
        if !folder.join(&source.file).exists() {
            match download(agent, source, folder, observer) {
                Ok(Outcome::Done) => {}
                Ok(Outcome::Stopped) => return Ok(Fetched::Stopped),
                Err(error) => return Err(error.with_hint(by_hand(domain, &sources[k..], folder))),
            }
        }
        if let (Some(half), [images, labels]) = (source.archive_of, &files[..]) {
            let archive = folder.join(&source.file);
            convert(domain, half, &archive, images, labels).map_err(|error| match domain {
                Domain::MnistM => error.with_hint(BUILD),
                _ => error,
            })?;
        }
        new.extend(files);
    }
    Ok(Fetched::All { new, kept })
}

/// The files that a source ends up as.
fn files_of(domain: Domain, source: &Source, folder: &Path) -> Vec<PathBuf> {
    let names = match source.archive_of {
        Some(half) => domain.file_names(half).map_or(Vec::new(), |names| names.to_vec()),
        None => vec![source.file.clone()],
    };
    names.iter().map(|name| folder.join(name)).collect()
}

/// Whether the file is there, packed or plain.
fn is_there(packed: &Path) -> bool {
    packed.exists() || packed.with_extension("").exists()
}

/// From an archive to the two files of a half; the archive goes once they are there.
fn convert(
    domain: Domain,
    half: Half,
    archive: &Path,
    images: &Path,
    labels: &Path,
) -> Result<(), Error> {
    let (image_array, label_array): (Idx, Idx) = match domain {
        Domain::Usps => usps::read(archive, half)?,
        _ => mnist_m::read(archive, half)?,
    };
    // Both are written before either has its name.
    let prepared = [image_array.prepare(images)?, label_array.prepare(labels)?];
    prepared.into_iter().try_for_each(|file| file.publish())?;
    fs::remove_file(archive).map_err(|e| Error::file(archive, e))
}

/// Returns a hint on how to get the missing files without a network.
fn by_hand(domain: Domain, missing: &[Source], folder: &Path) -> String {
    let mut text = format!("put the files into {} by hand, then run this again:", folder.display());
    for source in missing {
        text += &format!("\n  {} from {}", source.file, source.mirrors.join(" or "));
    }
    if domain == Domain::MnistM {
        text = text + "\nor " + BUILD;
    }
    text
}
