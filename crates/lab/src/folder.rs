//! The run folder: every file appears whole or not at all, and says whether its stage is done.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use stlf_data::atomic_file::{self, Prepared};

use crate::Error;

/// A folder of results.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder, made where it is missing.
    pub fn open(path: &Path) -> Result<Folder, Error> {
        std::fs::create_dir_all(path).map_err(Error::file(path))?;
        Ok(Folder { path: path.to_owned() })
    }

    /// Opens or creates a folder inside this one.
    pub fn folder(&self, name: &str) -> Result<Folder, Error> {
        Folder::open(&self.path.join(name))
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file inside.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file whole or not at all.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        Ok(Prepared::new(&self.file(name), |out| out.write_all(bytes))?.publish()?)
    }

    /// The file's bytes, or `None` where there is no such file.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let path = self.file(name);
        match std::fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::file(&path)(e)),
        }
    }

    /// Removes a folder inside, where there is one.
    pub fn remove_folder(&self, name: &str) -> Result<(), Error> {
        let path = self.file(name);
        match std::fs::remove_dir_all(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::file(&path)(e)),
            _ => Ok(()),
        }
    }

    /// Removes what killed runs left half written, here and in every folder inside.
    pub fn sweep(&self) -> Result<(), Error> {
        atomic_file::sweep(&self.path)?;
        for entry in std::fs::read_dir(&self.path).map_err(Error::file(&self.path))? {
            let path = entry.map_err(Error::file(&self.path))?.path();
            if path.is_dir() && !path.is_symlink() {
                Folder { path }.sweep()?;
            }
        }
        Ok(())
    }

    /// Writes rows as CSV with a head line.
    pub fn write_csv<R: Serialize>(&self, name: &str, rows: &[R]) -> Result<(), Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let mut write = || -> Result<(), csv::Error> {
            rows.iter().try_for_each(|row| writer.serialize(row))?;
            writer.flush().map_err(csv::Error::from)
        };
        write().map_err(|e| self.broken(name, &e.to_string()))?;
        let bytes = writer.into_inner().map_err(|e| self.broken(name, &e.to_string()))?;
        self.write(name, &bytes)
    }

    /// The rows of a CSV file, or `None` where there is no such file.
    pub fn read_csv<R: DeserializeOwned>(&self, name: &str) -> Result<Option<Vec<R>>, Error> {
        let Some(bytes) = self.read(name)? else { return Ok(None) };
        let rows: Result<Vec<R>, csv::Error> =
            csv::Reader::from_reader(&bytes[..]).deserialize().collect();
        rows.map(Some).map_err(|e| self.broken(name, &e.to_string()))
    }

    /// Writes a value as JSON for people.
    pub fn write_json<T: Serialize>(&self, name: &str, value: &T) -> Result<(), Error> {
        let text =
            serde_json::to_string_pretty(value).map_err(|e| self.broken(name, &e.to_string()))?;
        self.write(name, format!("{text}\n").as_bytes())
    }

    /// A file that this program did not write so.
    pub fn broken(&self, name: &str, message: &str) -> Error {
        Error::folder(&self.file(name), message, "delete this file to have it made again")
    }

    /// Copies every file that is not there yet.
    pub(crate) fn copy_to(&self, to: &Folder) -> Result<(), Error> {
        for (path, _) in self.hashes(&[])? {
            let (inside, name) = path.rsplit_once('/').unwrap_or(("", &path));
            let target = to.folder(inside)?;
            if target.read(name)?.is_none()
                && let Some(bytes) = self.read(&path)?
            {
                target.write(name, &bytes)?;
            }
        }
        Ok(())
    }

    /// Every file inside with its hash, sorted by name; hidden ones and those named are left out.
    pub(crate) fn hashes(&self, leave_out: &[&str]) -> Result<Vec<(String, String)>, Error> {
        let mut found = Vec::new();
        self.collect(Path::new(""), leave_out, &mut found)?;
        found.sort();
        Ok(found)
    }

    fn collect(
        &self,
        inside: &Path,
        leave_out: &[&str],
        found: &mut Vec<(String, String)>,
    ) -> Result<(), Error> {
        let path = self.path.join(inside);
        for entry in std::fs::read_dir(&path).map_err(Error::file(&path))? {
            let entry = entry.map_err(Error::file(&path))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let relative = inside.join(&name);
            if name.starts_with('.') || leave_out.contains(&name.as_str()) {
                continue;
            }
            if entry.path().is_dir() {
                self.collect(&relative, leave_out, found)?;
            } else {
                let bytes = std::fs::read(entry.path()).map_err(Error::file(&entry.path()))?;
                let portable = relative.to_string_lossy().replace('\\', "/");
                found.push((portable, sha256(&bytes)));
            }
        }
        Ok(())
    }
}

/// Returns the SHA-256 hash in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
