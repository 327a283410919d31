//! Writing of result files, whole or not at all.

use std::io::{self, Write};
use std::path::Path;

use stlf_data::atomic_file::{Prepared, folder, followed};

use crate::error::Failure;

/// Writes a file whole or not at all, so that no reader ever sees half of it.
pub(crate) fn write_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    Prepared::new(path, write)
        .and_then(Prepared::publish)
        .map_err(|e| Failure::io(format!("cannot write {e}")))
}

/// The same, and returns once the file is there even if the power fails.
pub(crate) fn write_file_durably(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    Prepared::new(path, |out| out.write_all(bytes))
        .and_then(Prepared::publish_durably)
        .map_err(|e| Failure::io(format!("cannot write {e}")))
}

/// Fails early if nothing can be written at a path, before hours of planning.
pub(crate) fn check_place(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        return Err(Failure::input(format!("{} is a directory", path.display()))
            .hint("name a file to write"));
    }
    let place = followed(path).map_err(|e| Failure::io(format!("{}: {e}", path.display())))?;
    // The end of a pipe, such as /dev/stdout, is there and in no folder.
    if !path.exists() && !folder(&place).is_dir() {
        return Err(Failure::input(format!("there is no directory {}", folder(&place).display()))
            .hint("create it, or write somewhere else"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_finished_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.json");
        let result = write_file(&path, |out| {
            out.write_all(b"half")?;
            Err(io::Error::other("no more"))
        });
        assert!(result.is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
