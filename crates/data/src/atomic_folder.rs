//! A folder of results: every file in it appears whole or not at all.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;
use crate::atomic_file::{self, Prepared};

/// A folder of results, in which files appear whole or not at all.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Opens the folder, which is made where it is missing.
    pub fn open(path: &Path) -> Result<Folder, Error> {
        std::fs::create_dir_all(path).map_err(|e| Error::file(path, e))?;
        Ok(Folder { path: path.to_owned() })
    }

    /// Opens a folder inside this one, and makes it where it is missing.
    pub fn folder(&self, name: &str) -> Result<Folder, Error> {
        Folder::open(&self.path.join(name))
    }

    /// Returns the path of the folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a file inside the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file whole or not at all.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        Prepared::new(&self.file(name), |out| out.write_all(bytes))?.publish()
    }

    /// Writes a file whole or not at all, and returns once it is there even if the power fails.
    pub fn write_durably(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        Prepared::new(&self.file(name), |out| out.write_all(bytes))?.publish_durably()
    }

    /// Writes a value as JSON, whole or not at all, and returns once it is there even if the power fails.
    pub fn write_json_durably<T: Serialize>(&self, name: &str, value: &T) -> Result<(), Error> {
        self.write_durably(name, self.json(name, value)?.as_bytes())
    }

    /// Writes a value as JSON, as durably, into a file that its owner alone may read.
    pub fn write_json_privately<T: Serialize>(&self, name: &str, value: &T) -> Result<(), Error> {
        let text = self.json(name, value)?;
        let write = |out: &mut dyn std::io::Write| out.write_all(text.as_bytes());
        Prepared::private(&self.file(name), write)?.publish_durably()
    }

    /// The file's bytes, or `None` where there is no such file.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let path = self.file(name);
        match std::fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::file(&path, e)),
        }
    }

    /// Removes a folder inside, where there is one.
    pub fn remove_folder(&self, name: &str) -> Result<(), Error> {
        let path = self.file(name);
        unless_missing(&path, std::fs::remove_dir_all(&path))
    }

    /// Removes a file inside, where there is one.
    pub fn remove_file(&self, name: &str) -> Result<(), Error> {
        let path = self.file(name);
        unless_missing(&path, std::fs::remove_file(&path))
    }

    /// Removes what killed runs left half written, here and in every folder inside.
    pub fn sweep(&self) -> Result<(), Error> {
        atomic_file::sweep(&self.path)?;
        let failed = |e: std::io::Error| Error::file(&self.path, e);
        for entry in std::fs::read_dir(&self.path).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
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
        self.write(name, self.json(name, value)?.as_bytes())
    }

    fn json<T: Serialize>(&self, name: &str, value: &T) -> Result<String, Error> {
        let text = serde_json::to_string_pretty(value);
        text.map(|text| text + "\n").map_err(|e| self.broken(name, &e.to_string()))
    }

    /// A file that this program did not write so.
    pub fn broken(&self, name: &str, message: &str) -> Error {
        Error::content(&self.file(name), message)
            .with_hint("delete this file to have it made again")
    }
}

/// What is not there need not be removed.
fn unless_missing(path: &Path, removed: std::io::Result<()>) -> Result<(), Error> {
    match removed {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::file(path, e)),
        _ => Ok(()),
    }
}
