//! Bundles: a mixture as a folder, written whole or not at all, and read with every file checked.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use stlf_data::whole_folder::PreparedFolder;
use stlf_formats::{FileEntry, MixtureFile, StudentEntry, write_json};
use stlf_learn::{Params, Spec};
use stlf_method::student::Student;

use crate::{Error, Member, Mixture};
use crate::{document, models};

/// The name of the file in a bundle that describes the mixture.
pub const DOCUMENT: &str = "mixture.json";

/// The name of the file in a bundle with the plan.
pub const PLAN: &str = "plan.json";

/// The bundle in the folder of a real device.
pub const OF_DEVICE: &str = "mixture";

/// The bundles of a seed of a run, one for each device.
pub const OF_SEED: &str = "mixtures";

pub(crate) const STUDENT: &str = "student";

/// Files that were written before, by their hash: a bundle beside others need not have its own copy of a model.
pub type Written = HashMap<String, PathBuf>;

/// Prepares a bundle, which takes the place of the one that is there when it is published; the plan is the bytes of `stlf-plan/2`. Files
/// with the bytes of one that is known are shared with it, and those of this one are known from then on.
///
/// # Errors
/// A file cannot be written. Then the bundle that is there stays as it is.
pub fn prepare(
    path: &Path,
    mixture: &Mixture,
    plan: &[u8],
    written: &mut Written,
) -> Result<PreparedFolder, Error> {
    let new = PreparedFolder::new(path)?;
    let mut files = Files::new(&new, written);
    let bytes_of = |params: &Params| {
        params.to_safetensors(&mixture.spec).map_err(|e| Error::Mixture(e.to_string()))
    };
    let names = file_names(&mixture.members);
    let members = mixture.members.iter().zip(names);
    let members: Vec<FileEntry> = members
        .map(|(member, name)| files.put(format!("{name}.safetensors"), &bytes_of(&member.params)?))
        .collect::<Result<_, Error>>()?;
    let student = mixture.student.as_ref().map(|own| -> Result<_, Error> {
        let FileEntry { file, sha256 } =
            files.put(format!("{STUDENT}.safetensors"), &bytes_of(&own.params)?)?;
        Ok(StudentEntry { file, sha256, share: own.share })
    });
    let (student, plan) = (student.transpose()?, files.put(PLAN.to_owned(), plan)?);
    files.go_to(path);
    let mut text = Vec::new();
    write_json(&mut text, &document::written(mixture, &members, student, plan))
        .map_err(|e| Error::Mixture(e.to_string()))?;
    new.write(DOCUMENT, &text)?;
    Ok(new)
}

/// The files of a bundle that is being prepared. Only once all are there are they known to others: until then the files of the bundle before
/// have their names.
pub(crate) struct Files<'f> {
    new: &'f PreparedFolder,
    written: &'f mut Written,
    put: Vec<FileEntry>,
}

impl<'f> Files<'f> {
    /// Returns a list of files that is empty so far.
    pub(crate) fn new(new: &'f PreparedFolder, written: &'f mut Written) -> Files<'f> {
        Files { new, written, put: Vec::new() }
    }

    /// Writes a file, or shares it with one that is known to be the same.
    pub(crate) fn put(&mut self, file: String, bytes: &[u8]) -> Result<FileEntry, Error> {
        let sha256 = sha256(bytes);
        match self.written.get(&sha256) {
            Some(same) => self.new.share(&file, bytes, same)?,
            None => self.new.write(&file, bytes)?,
        }
        let entry = FileEntry { file, sha256 };
        self.put.push(entry.clone());
        Ok(entry)
    }

    /// All are there, and go to this path.
    pub(crate) fn go_to(self, path: &Path) {
        let known = self.put.into_iter().map(|entry| (entry.sha256, path.join(entry.file)));
        self.written.extend(known);
    }
}

/// What each member's file is called: its device, if files can be called so.
pub(crate) fn file_names(members: &[Member]) -> Vec<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
    let named = |at: usize, name: &str| {
        let is_first = members[..at].iter().all(|other| !other.name.eq_ignore_ascii_case(name));
        is_first
            && !name.is_empty()
            && !name.starts_with('.')
            && name.chars().all(is_plain)
            && !name.eq_ignore_ascii_case(STUDENT)
    };
    let file = |(at, member): (usize, &Member)| match named(at, &member.name) {
        true => member.name.clone(),
        // No name that is taken as it is has a tilde.
        false => format!("member~{}", at + 1),
    };
    members.iter().enumerate().map(file).collect()
}

/// Reads a bundle. Every file is checked against the hash that the document has of it.
///
/// # Errors
/// Names the file that is missing, damaged or another one, or the field that cannot be.
pub fn read(path: &Path) -> Result<Mixture, Error> {
    let at = path.join(DOCUMENT);
    let unread = |e: stlf_formats::Error| Error::Document { path: at.clone(), source: e.into() };
    let wrong = |value: stlf_planning::Error| unread(value.into());
    let file = MixtureFile::read(&bytes(&at)?).map_err(unread)?;
    let spec = document::spec(&file).map_err(wrong)?;
    let scaling = document::scaling(&file).map_err(wrong)?;
    document::check(&file).map_err(wrong)?;
    checked(path, &file.plan.file, &file.plan.sha256)?;
    let members = file.members.iter().map(|entry| {
        let params = model(path, &spec, &entry.file, &entry.sha256)?;
        Ok(Member { name: entry.name.clone(), weight: entry.weight, params })
    });
    let members = members.collect::<Result<_, Error>>()?;
    let student = file.student.as_ref().map(|own| -> Result<_, Error> {
        let params = model(path, &spec, &own.file, &own.sha256)?;
        Ok(Student { params, share: own.share })
    });
    Ok(Mixture {
        device: file.device.clone(),
        role: file.role,
        epoch: file.epoch,
        seed: file.seed,
        classes: file.classes.clone(),
        scaling,
        combine: document::combined(file.combine),
        class_shares: file.class_shares.clone(),
        members,
        student: student.transpose()?,
        expected: file.expected.map(document::expected).transpose().map_err(wrong)?,
        spec,
    })
}

/// Copies a bundle whole or not at all, after every file of it was checked.
///
/// # Errors
/// It cannot be read or written.
pub fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let (mixture, plan) = (read(from)?, bytes(&from.join(PLAN))?);
    Ok(prepare(to, &mixture, &plan, &mut Written::new())?.publish()?)
}

pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, Error> {
    let failed = |source| stlf_data::Error::File { path: path.to_owned(), source };
    Ok(std::fs::read(path).map_err(failed)?)
}

/// The bytes of a file that has this hash.
pub(crate) fn checked(folder: &Path, file: &str, sha256: &str) -> Result<Vec<u8>, Error> {
    let path = folder.join(file);
    let bytes = bytes(&path)?;
    let found = self::sha256(&bytes);
    if !found.eq_ignore_ascii_case(sha256) {
        return Err(Error::Changed { path, expected: sha256.to_owned(), found });
    }
    Ok(bytes)
}

fn model(folder: &Path, spec: &Spec, file: &str, sha256: &str) -> Result<Params, Error> {
    let bytes = checked(folder, file, sha256)?;
    let wrong = |source| Error::Model { path: folder.join(file), source };
    // Before room is made for parameters that a document only claims.
    if spec.parameters().saturating_mul(4) > bytes.len() {
        let message = format!("{} bytes for {} parameters", bytes.len(), spec.parameters());
        return Err(wrong(stlf_learn::Error::Params(message)));
    }
    Params::from_safetensors(spec, &bytes).map_err(wrong)
}

/// The SHA-256 of a file, by which [`Written`] knows it, in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bundle that a user means by a folder: a bundle, the folder of a real device, or that of a run or of one of its seeds, in which
/// each device has one. Without a seed it is the first that has bundles.
///
/// # Errors
/// There is none, it is one of a user's learner, or a device must be named.
pub fn find(path: &Path, device: Option<&str>, seed: Option<u64>) -> Result<PathBuf, Error> {
    let bundle = find_any(path, device, seed)?;
    match is_of_learner(&bundle) {
        true => Err(Error::OfLearner { path: bundle }),
        false => Ok(bundle),
    }
}

/// Whether the bundle is one of a user's learner ([`models`]).
pub fn is_of_learner(bundle: &Path) -> bool {
    bundle.join(models::DOCUMENT).is_file()
}

fn is_bundle(path: &Path) -> bool {
    path.join(DOCUMENT).is_file() || is_of_learner(path)
}

/// As [`find`], but the bundle may be one of a user's learner.
///
/// # Errors
/// There is none, or a device must be named.
pub fn find_any(path: &Path, device: Option<&str>, seed: Option<u64>) -> Result<PathBuf, Error> {
    let none = |message: String, hint: &str| Error::NoBundle {
        path: path.to_owned(),
        message,
        hint: hint.to_owned(),
    };
    let alone = [path.to_owned(), path.join(OF_DEVICE)];
    if let Some(bundle) = alone.into_iter().find(|bundle| is_bundle(bundle)) {
        return Ok(bundle);
    }
    let Some(of_seed) = bundles_of_run(path, seed) else {
        let (message, hint) = match seed {
            _ if !path.is_dir() => (
                "there is no such folder".to_owned(),
                "name a bundle, a device's folder or a run folder",
            ),
            Some(seed) => (
                format!("seed {seed} has no mixtures"),
                "`stlf run` ends with the mixtures of all its seeds",
            ),
            None => (
                "there is no mixture here".to_owned(),
                "name a bundle, a device's folder after an epoch, or a finished run folder",
            ),
        };
        return Err(none(message, hint));
    };
    let devices = devices(&of_seed);
    match device {
        Some(name) if devices.iter().any(|device| device == name) => Ok(of_seed.join(name)),
        Some(name) => {
            let hint = format!("the devices are: {}", devices.join(", "));
            Err(none(format!("there is no mixture of a device {name:?}"), &hint))
        }
        None => {
            let first = devices.first().map_or("NAME", String::as_str);
            let hint = format!(
                "say whose, as in --device {first}; the devices are: {}",
                devices.join(", ")
            );
            Err(none("this run has a mixture for every device".to_owned(), &hint))
        }
    }
}

/// The devices that have bundles here, numbers in names by their size.
fn devices(of_seed: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(of_seed).into_iter().flatten().flatten();
    let bundles = entries.filter(|entry| is_bundle(&entry.path()));
    let mut names: Vec<String> =
        bundles.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    names
}

/// Where the bundles of a run folder or of a seed's are.
fn bundles_of_run(path: &Path, seed: Option<u64>) -> Option<PathBuf> {
    if path.join(OF_SEED).is_dir() {
        return Some(path.join(OF_SEED));
    }
    let entries = std::fs::read_dir(path).ok()?.flatten();
    let number = |entry: &std::fs::DirEntry| -> Option<u64> {
        entry.file_name().to_str()?.strip_prefix("seed-")?.parse().ok()
    };
    let mut seeds: Vec<(u64, PathBuf)> = entries
        .filter_map(|entry| Some((number(&entry)?, entry.path().join(OF_SEED))))
        .filter(|(number, bundles)| bundles.is_dir() && seed.is_none_or(|seed| seed == *number))
        .collect();
    seeds.sort();
    seeds.into_iter().next().map(|(_, bundles)| bundles)
}
