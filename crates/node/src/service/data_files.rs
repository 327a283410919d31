//! The table or the folder of pictures of a device, and whether it has changed since it was read. Contents are not looked at for that.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};
use stlf_config::Data;

use crate::data_change::ReadFrom;

/// Pictures lie in folders of domains and of classes.
const LEVELS: usize = 3;

/// By which a file, or a folder with all that is in it, is known to have changed.
type Stamp = [u8; 32];

/// What a device reads its samples from, and how it was when it was read.
#[derive(Debug)]
pub(super) struct DataFiles {
    /// What it is.
    pub(super) of: ReadFrom,
    path: PathBuf,
    /// None where there is nothing.
    read: Option<Stamp>,
    /// How it was at the last look.
    seen: Option<Stamp>,
}

impl DataFiles {
    /// Returns what these settings have a device read, which is about to be read; nothing if that is neither a table nor a folder of pictures.
    pub(super) fn of(data: &Data) -> Option<DataFiles> {
        let pictures = data.images.as_deref().map(|path| (ReadFrom::Pictures, path));
        let table = data.features.as_deref().map(|path| (ReadFrom::Table, path));
        pictures.or(table).map(|(of, path)| DataFiles::new(of, path))
    }

    fn new(of: ReadFrom, path: &Path) -> DataFiles {
        let read = stamp(path);
        DataFiles { of, path: path.to_owned(), read, seen: read }
    }

    /// Returns whether they have changed since they were read, and not since the last look. If so, they are about to be read.
    pub(super) fn have_changed(&mut self) -> bool {
        let now = stamp(&self.path);
        let are_at_rest = std::mem::replace(&mut self.seen, now) == now;
        let have_changed = are_at_rest && now != self.read;
        if have_changed {
            self.read = now;
        }
        have_changed
    }
}

/// A hash of the name, the size and the time of the last change of a file, or of all that is in a folder; nothing where there is none.
fn stamp(path: &Path) -> Option<Stamp> {
    let mut hasher = Sha256::new();
    add(path, LEVELS, &mut hasher).ok()?;
    Some(hasher.finalize().into())
}

fn add(path: &Path, levels: usize, hasher: &mut Sha256) -> io::Result<()> {
    let found = std::fs::metadata(path)?;
    if found.is_dir() {
        let mut inside = Vec::new();
        for entry in std::fs::read_dir(path)? {
            let name = entry?.file_name();
            // Those that are passed over when pictures are read.
            if !name.as_encoded_bytes().starts_with(b".") {
                inside.push(name);
            }
        }
        inside.sort();
        hasher.update((inside.len() as u64).to_le_bytes());
        for name in inside.iter().filter(|_| levels > 0) {
            hasher.update((name.len() as u64).to_le_bytes());
            hasher.update(name.as_encoded_bytes());
            add(&path.join(name), levels - 1, hasher)?;
        }
        return Ok(());
    }
    let since = found.modified().ok().and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    hasher.update(since.map_or(0, |since| since.as_nanos()).to_le_bytes());
    hasher.update(found.len().to_le_bytes());
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    /// Returns what three looks say.
    fn looks(files: &mut DataFiles) -> [bool; 3] {
        [files.have_changed(), files.have_changed(), files.have_changed()]
    }

    /// After a change: it may still be written, it is read, it was read.
    const READ_ONCE: [bool; 3] = [false, true, false];

    #[test]
    fn a_file_is_read_again_when_it_has_changed_and_is_at_rest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own.csv");
        std::fs::write(&path, "x\n1\n").unwrap();
        let mut file = DataFiles::new(ReadFrom::Table, &path);
        assert!(!file.have_changed() && !file.have_changed());
        for text in ["x\n1\n2\n", "x\n1\n2\n3\n"] {
            std::fs::write(&path, text).unwrap();
            assert!(!file.have_changed(), "it may still be written");
        }
        assert!(file.have_changed());
        assert!(!file.have_changed(), "it was read");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(looks(&mut file), READ_ONCE);
        std::fs::write(&path, "x\n1\n").unwrap();
        assert_eq!(looks(&mut file), READ_ONCE);
    }

    #[test]
    fn a_folder_has_changed_if_anything_in_it_was_added_removed_renamed_moved_or_written() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for class in ["site/calm", "site/storm"] {
            std::fs::create_dir_all(at(class)).unwrap();
        }
        std::fs::write(at("site/calm/1.png"), "a").unwrap();
        let mut pictures = DataFiles::new(ReadFrom::Pictures, folder.path());
        assert_eq!(looks(&mut pictures), [false; 3]);
        type Change<'a> = &'a dyn Fn() -> io::Result<()>;
        let changes: [(&str, Change<'_>); 6] = [
            ("added", &|| std::fs::write(at("site/calm/2.png"), "b")),
            ("written", &|| std::fs::write(at("site/calm/2.png"), "longer")),
            ("renamed", &|| std::fs::rename(at("site/calm/2.png"), at("site/calm/3.png"))),
            ("moved", &|| std::fs::rename(at("site/calm/3.png"), at("site/storm/3.png"))),
            ("removed", &|| std::fs::remove_file(at("site/storm/3.png"))),
            ("gone", &|| std::fs::remove_dir_all(folder.path())),
        ];
        for (what, change) in changes {
            // Hidden files are those that somebody is still writing.
            if folder.path().is_dir() {
                std::fs::write(at("site/calm/.half"), what).unwrap();
                assert_eq!(looks(&mut pictures), [false; 3], "before: {what}");
            }
            change().unwrap();
            assert_eq!(looks(&mut pictures), READ_ONCE, "{what}");
        }
    }

    #[test]
    fn a_device_with_pictures_or_a_table_has_files_to_look_at_and_no_other_has() {
        let of = |images: Option<&str>, features: Option<&str>| {
            let [images, features] = [images, features].map(|path| path.map(PathBuf::from));
            DataFiles::of(&Data { images, features, ..Data::default() }).map(|files| files.of)
        };
        assert_eq!(of(None, None), None);
        assert_eq!(of(None, Some("own.csv")), Some(ReadFrom::Table));
        assert_eq!(of(Some("own"), None), Some(ReadFrom::Pictures));
    }
}
