//! Folders written whole or not at all: until the last file of a new one is on the disk, the one before stays as it is.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Error;
use crate::atomic_file::{self, PREFIX};

/// What the name of a folder begins with while another takes its place, where the system cannot exchange the two in one step.
const BEFORE: &str = ".stlf-before-";

/// A folder that is written but not yet visible under its name. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub struct PreparedFolder {
    inside: TempDir,
    /// Held open and locked, so that nobody takes the folder for abandoned.
    _lock: Option<File>,
    /// The path that the folder gets when it is published.
    place: PathBuf,
}

impl PreparedFolder {
    /// Begins a folder beside the place where it goes.
    ///
    /// # Errors
    /// Nothing can be written there.
    pub fn new(place: &Path) -> Result<PreparedFolder, Error> {
        let inside = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(atomic_file::folder(place))
            .map_err(|e| Error::file(place, e.kind().into()))?;
        make_readable(inside.path()).map_err(|e| Error::file(place, e))?;
        // Where folders cannot be opened or locked, nobody sweeps this one either.
        let lock = File::open(inside.path()).ok();
        let _ = lock.as_ref().map(File::try_lock);
        Ok(PreparedFolder { inside, _lock: lock, place: place.to_owned() })
    }

    /// Writes a file of the folder.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let write = || {
            let mut file = File::create_new(self.inside.path().join(name))?;
            file.write_all(bytes)
        };
        write().map_err(|e| Error::file(&self.place.join(name), e))
    }

    /// The same where another file is known to have these bytes: takes no more room, if the system can have one file under two names.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn share(&self, name: &str, bytes: &[u8], same: &Path) -> Result<(), Error> {
        match std::fs::hard_link(same, self.inside.path().join(name)) {
            Ok(()) => Ok(()),
            Err(_) => self.write(name, bytes),
        }
    }

    /// Gives the folder its name as [`PreparedFolder::publish`] does, and returns once it is there even if the power fails.
    ///
    /// # Errors
    /// The system refuses to.
    pub fn publish_durably(self) -> Result<(), Error> {
        let place = self.place.clone();
        let failed = |e: io::Error| Error::file(&place, e);
        for entry in std::fs::read_dir(self.inside.path()).map_err(failed)? {
            let file = entry.and_then(|entry| File::open(entry.path()));
            file.and_then(|file| file.sync_all()).map_err(failed)?;
        }
        self.publish()?;
        // Elsewhere folders cannot be opened.
        #[cfg(unix)]
        File::open(atomic_file::folder(&place)).and_then(|f| f.sync_all()).map_err(failed)?;
        Ok(())
    }

    /// Gives the folder its name, and removes the one that had it.
    ///
    /// # Errors
    /// The system refuses to. Then the old one is still there.
    pub fn publish(self) -> Result<(), Error> {
        let PreparedFolder { inside, place, _lock } = self;
        let new = inside.keep();
        let taken = match std::fs::symlink_metadata(&place).is_ok() {
            true => replace(&new, &place),
            false => std::fs::rename(&new, &place),
        };
        taken.map_err(|e| {
            // It is of no use to anybody; what cannot be removed now is swept later.
            let _ = std::fs::remove_dir_all(&new);
            Error::file(&place, e)
        })
    }
}

/// Puts a folder in the place of another one.
fn replace(new: &Path, place: &Path) -> io::Result<()> {
    if exchange(new, place).is_ok() {
        // What cannot be removed now is swept later.
        let _ = std::fs::remove_dir_all(new);
        return Ok(());
    }
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let before = atomic_file::folder(place).join(format!("{BEFORE}{name}"));
    std::fs::rename(place, &before)?;
    if let Err(e) = std::fs::rename(new, place) {
        std::fs::rename(&before, place)?;
        return Err(e);
    }
    let _ = std::fs::remove_dir_all(&before);
    Ok(())
}

/// Exchanges two folders in one step.
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?)
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether a path is that of a folder whose writer was killed between the two steps; if so, the folder has its name again, unless
/// another has it.
pub(crate) fn put_back(path: &Path) -> io::Result<bool> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Some(name) = name.strip_prefix(BEFORE).filter(|_| path.is_dir()) else {
        return Ok(false);
    };
    let place = atomic_file::folder(path).join(name);
    match place.exists() {
        true => std::fs::remove_dir_all(path)?,
        false => std::fs::rename(path, place)?,
    }
    Ok(true)
}

/// Temporary folders are private; results are not.
#[cfg(unix)]
fn make_readable(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_readable(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atomic_file::sweep;

    /// Returns the names of everything in a folder, hidden or not.
    fn names(folder: &Path) -> Vec<String> {
        let name = |e: io::Result<std::fs::DirEntry>| e.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<String> = std::fs::read_dir(folder).unwrap().map(name).collect();
        names.sort();
        names
    }

    /// A folder with one file of this name.
    fn prepared(place: &Path, file: &str) -> PreparedFolder {
        let new = PreparedFolder::new(place).unwrap();
        new.write(file, file.as_bytes()).unwrap();
        new
    }

    #[test]
    fn the_old_one_stays_until_the_new_one_is_whole_and_nothing_is_left_of_either() {
        let inside = tempfile::tempdir().unwrap();
        let place = inside.path().join("result");
        prepared(&place, "first").publish().unwrap();
        assert_eq!(names(&place), ["first"]);
        let second = prepared(&place, "second");
        assert_eq!(names(&place), ["first"]);
        // While it is written, nobody takes it for abandoned.
        sweep(inside.path()).unwrap();
        second.publish_durably().unwrap();
        assert_eq!(
            (names(&place), names(inside.path())),
            (vec!["second".into()], vec!["result".into()])
        );
        drop(prepared(&place, "never"));
        assert_eq!(
            (names(&place), names(inside.path())),
            (vec!["second".into()], vec!["result".into()])
        );
        assert!(PreparedFolder::new(&inside.path().join("none/result")).is_err());
    }

    #[test]
    fn a_killed_writer_leaves_the_old_one() {
        let inside = tempfile::tempdir().unwrap();
        let place = inside.path().join("result");
        prepared(&place, "first").publish().unwrap();
        // Killed while it wrote: nobody removes the folder or holds its lock.
        let PreparedFolder { inside: half, .. } = prepared(&place, "half");
        let _ = half.keep();
        assert_eq!(names(inside.path()).len(), 2);
        sweep(inside.path()).unwrap();
        assert_eq!(
            (names(&place), names(inside.path())),
            (vec!["first".into()], vec!["result".into()])
        );
        // Killed between two steps, where folders cannot be exchanged in one.
        let before = inside.path().join(".stlf-before-result");
        std::fs::rename(&place, &before).unwrap();
        sweep(inside.path()).unwrap();
        assert_eq!(
            (names(&place), names(inside.path())),
            (vec!["first".into()], vec!["result".into()])
        );
        // Killed after them.
        std::fs::create_dir(&before).unwrap();
        sweep(inside.path()).unwrap();
        assert_eq!(
            (names(&place), names(inside.path())),
            (vec!["first".into()], vec!["result".into()])
        );
    }

    #[test]
    fn a_file_can_be_shared() {
        let inside = tempfile::tempdir().unwrap();
        let same = inside.path().join("model");
        std::fs::write(&same, b"bytes").unwrap();
        let new = PreparedFolder::new(&inside.path().join("result")).unwrap();
        new.share("a", b"bytes", &same).unwrap();
        new.share("b", b"bytes", &inside.path().join("none")).unwrap();
        new.publish().unwrap();
        for name in ["a", "b"] {
            assert_eq!(std::fs::read(inside.path().join("result").join(name)).unwrap(), b"bytes");
        }
    }
}
