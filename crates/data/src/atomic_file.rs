//! Files written whole or not at all.
//!
//! A link is followed, so that it stays a link and its file is replaced. What is no file, such as a pipe or `/dev/null`, cannot be
//! replaced without being destroyed: it is written to, once everything is there.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::{Error, whole_folder};

/// What the names of all that is not whole yet begin with.
pub(crate) const PREFIX: &str = ".stlf-";

/// A file that is written but not yet visible under its name. Dropped, it leaves nothing behind.
///
/// Several files that belong together are all prepared before the first is published.
#[derive(Debug)]
pub struct Prepared {
    content: Content,
    /// The place where the file will be; symbolic links are followed.
    path: PathBuf,
}

#[derive(Debug)]
enum Content {
    /// A temporary file next to the file that it becomes.
    Beside(NamedTempFile),
    /// The bytes for something that is not a regular file.
    Bytes(Vec<u8>),
}

impl Prepared {
    /// Writes a temporary file beside `path`, which everybody may read once it is published.
    pub fn new(
        path: &Path,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Prepared, Error> {
        let prepared = Prepared::private(path, write)?;
        if let Content::Beside(file) = &prepared.content {
            make_readable(file.as_file()).map_err(|e| Error::file(path, e))?;
        }
        Ok(prepared)
    }

    /// Prepares a file that its owner alone may read.
    pub fn private(
        path: &Path,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Prepared, Error> {
        let failed = |e: io::Error| Error::file(path, e);
        if is_special(path) {
            let mut bytes = Vec::new();
            write(&mut bytes).map_err(failed)?;
            return Ok(Prepared { content: Content::Bytes(bytes), path: path.to_owned() });
        }
        let place = followed(path).map_err(failed)?;
        // The temporary name says nothing to anybody; an error is about the file itself.
        let file = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempfile_in(folder(&place))
            .map_err(|e| failed(e.kind().into()))?;
        // Where the file system knows no locks, [`sweep`] cannot take this one either.
        let _ = file.as_file().try_lock();
        let mut buffer = BufWriter::new(file.as_file());
        write(&mut buffer).and_then(|()| buffer.flush()).map_err(failed)?;
        drop(buffer);
        Ok(Prepared { content: Content::Beside(file), path: place })
    }

    /// Gives the file its name as [`Prepared::publish`] does, and returns once it is there even if the power fails.
    pub fn publish_durably(self) -> Result<(), Error> {
        let path = self.path.clone();
        let failed = |e: io::Error| Error::file(&path, e);
        if let Content::Beside(file) = &self.content {
            file.as_file().sync_all().map_err(failed)?;
        }
        self.publish()?;
        // Elsewhere folders cannot be opened.
        #[cfg(unix)]
        std::fs::File::open(folder(&path)).and_then(|folder| folder.sync_all()).map_err(failed)?;
        Ok(())
    }

    /// Gives the file its name, replacing what had it.
    pub fn publish(self) -> Result<(), Error> {
        let Prepared { content, path } = self;
        match content {
            Content::Beside(file) => file.persist(&path).map(drop).map_err(|e| e.error),
            Content::Bytes(bytes) => {
                let open = std::fs::OpenOptions::new().write(true).open(&path);
                open.and_then(|mut special| special.write_all(&bytes))
            }
        }
        .map_err(|e| Error::file(&path, e))
    }
}

/// Returns the folder that a path is in, which is `.` for a bare name.
pub fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Returns where the path leads, with every link at its end followed, even if there is no file yet.
///
/// # Errors
/// Links that lead in a circle.
pub fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut place = path.to_owned();
    for _ in 0..MOST_LINKS {
        match std::fs::read_link(&place) {
            Ok(next) => place = folder(&place).join(next),
            Err(_) => return Ok(place),
        }
    }
    Err(io::Error::other("too many links, one to the next"))
}

/// The number of links in a row that are followed, as on Linux.
const MOST_LINKS: usize = 40;

/// Whether something is there that is neither a file nor a folder.
fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Removes what killed writers left in a folder. What is still being written is locked by
/// its writer, and stays.
pub fn sweep(folder: &Path) -> Result<(), Error> {
    let failed = |e: io::Error| Error::file(folder, e);
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        if whole_folder::put_back(&path).map_err(|e| Error::file(&path, e))? {
            continue;
        }
        if entry.file_name().to_string_lossy().starts_with(PREFIX) && is_abandoned(&path) {
            let remove = match path.is_dir() {
                true => std::fs::remove_dir_all(&path),
                false => std::fs::remove_file(&path),
            };
            match remove {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(Error::file(&path, e)),
                _ => {}
            }
        }
    }
    Ok(())
}

fn is_abandoned(path: &Path) -> bool {
    std::fs::File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}

/// Temporary files are private; data is not.
#[cfg(unix)]
fn make_readable(file: &std::fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn make_readable(_: &std::fs::File) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        Prepared::new(&path, |w| w.write_all(b"old")).unwrap().publish().unwrap();
        let error = Prepared::new(&path, |w| {
            w.write_all(b"new")?;
            Err(io::Error::other("no more paper"))
        })
        .unwrap_err();
        assert!(error.to_string().ends_with("x: no more paper"));
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        drop(Prepared::new(&path, |w| w.write_all(b"never published")).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_its_file_is_replaced() {
        let inside = tempfile::tempdir().unwrap();
        let (other, inside) = (inside.path().join("other"), inside.path());
        std::fs::create_dir(&other).unwrap();
        for (link, leads_to, file) in
            [("a", "other/x", "x"), ("b", "a", "x"), ("c", "other/new", "new")]
        {
            let link = inside.join(link);
            std::os::unix::fs::symlink(leads_to, &link).unwrap();
            Prepared::new(&link, |w| w.write_all(b"new")).unwrap().publish().unwrap();
            assert!(link.is_symlink());
            assert_eq!(std::fs::read(other.join(file)).unwrap(), b"new");
            assert!(!other.join(file).is_symlink());
        }
        let circle = inside.join("circle");
        std::os::unix::fs::symlink("circle", &circle).unwrap();
        let error = Prepared::new(&circle, |w| w.write_all(b"new")).unwrap_err();
        assert!(error.to_string().contains("too many links"), "{error}");
    }

    #[test]
    fn what_a_killed_writer_left_is_swept_and_what_is_being_written_stays() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path();
        std::fs::write(inside.join(".stlf-abandoned"), b"half").unwrap();
        std::fs::write(inside.join("done"), b"whole").unwrap();
        std::fs::write(inside.join(".hidden"), b"someone else's").unwrap();
        let writing = Prepared::new(&inside.join("soon"), |w| w.write_all(b"whole")).unwrap();
        sweep(inside).unwrap();
        writing.publish().unwrap();
        let mut left: Vec<_> =
            std::fs::read_dir(inside).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [".hidden", "done", "soon"]);
    }
}
