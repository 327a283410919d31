//! What a run folder holds, file by file: hashed, and brought together with that of another run.

use std::path::Path;

use sha2::{Digest, Sha256};

use crate::{Error, Folder};

/// Copies every file that is not there yet.
pub(crate) fn copy(from: &Folder, to: &Folder) -> Result<(), Error> {
    for (path, _) in hashes(from, &[])? {
        let (inside, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let target = to.folder(inside)?;
        if target.read(name)?.is_none()
            && let Some(bytes) = from.read(&path)?
        {
            target.write(name, &bytes)?;
        }
    }
    Ok(())
}

/// Every file inside with its hash, sorted by name; hidden ones and those named are left out.
pub(crate) fn hashes(folder: &Folder, leave_out: &[&str]) -> Result<Vec<(String, String)>, Error> {
    let mut found = Vec::new();
    collect(folder, Path::new(""), leave_out, &mut found)?;
    found.sort();
    Ok(found)
}

fn collect(
    folder: &Folder,
    inside: &Path,
    leave_out: &[&str],
    found: &mut Vec<(String, String)>,
) -> Result<(), Error> {
    let path = folder.path().join(inside);
    for entry in std::fs::read_dir(&path).map_err(Error::file(&path))? {
        let entry = entry.map_err(Error::file(&path))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let relative = inside.join(&name);
        if name.starts_with('.') || leave_out.contains(&name.as_str()) {
            continue;
        }
        if entry.path().is_dir() {
            collect(folder, &relative, leave_out, found)?;
        } else {
            let bytes = std::fs::read(entry.path()).map_err(Error::file(&entry.path()))?;
            let portable = relative.to_string_lossy().replace('\\', "/");
            found.push((portable, sha256(&bytes)));
        }
    }
    Ok(())
}

/// Writes two digits for each byte.
pub(crate) fn in_hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the SHA-256 checksum of these bytes, in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    in_hexadecimal(&Sha256::digest(bytes))
}
