//! A secret key as a file that only its owner may read: `stlf-key/1` and 64 hexadecimal digits.

use std::io::Write;
use std::path::{Path, PathBuf};

use stlf_protocol::identity::{Identity, hex, unhex};

const HEAD: &str = "stlf-key/1";

/// The reason why a key file cannot be used or made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused to read or write the file.
    #[error("{}: {source}", path.display())]
    File {
        /// The path of the key file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file exists already; a key is never overwritten.
    #[error("{} already exists", .0.display())]
    Exists(PathBuf),
    /// The file does not contain a key.
    #[error("{} is not a key file", .0.display())]
    Unreadable(PathBuf),
    /// Other users than the owner may read the file.
    #[error("{} can be read by others than its owner", .0.display())]
    Open(PathBuf),
    /// The operating system gives no random numbers.
    #[error("cannot get random numbers from the system: {0}")]
    NoRandom(String),
}

impl Error {
    /// Returns advice for the user on what to do about the error.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Exists(_) => Some("a key is never overwritten; name another file".to_owned()),
            Error::Open(path) => Some(format!("chmod 600 {}", path.display())),
            Error::File { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                Some("`stlf node init` makes a key".to_owned())
            }
            Error::File { .. } | Error::Unreadable(_) | Error::NoRandom(_) => None,
        }
    }
}

/// Makes a key and writes it to a new file.
///
/// # Errors
/// Fails if the file exists already or cannot be written.
pub fn create(path: &Path) -> Result<Identity, Error> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|e| Error::NoRandom(e.to_string()))?;
    let identity = Identity::from_bytes(&secret);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let wrong = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::AlreadyExists => Error::Exists(path.to_owned()),
        _ => Error::File { path: path.to_owned(), source },
    };
    let mut file = options.open(path).map_err(wrong)?;
    let text = format!("{HEAD} {}\n", hex(&identity.to_bytes()));
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(wrong)?;
    Ok(identity)
}

/// Reads a key from a file.
///
/// # Errors
/// Fails if the file is not a key, or if other users may read it.
pub fn read(path: &Path) -> Result<Identity, Error> {
    let wrong = |source| Error::File { path: path.to_owned(), source };
    let text = std::fs::read_to_string(path).map_err(wrong)?;
    #[cfg(unix)]
    {
        let mode = std::fs::metadata(path).map_err(wrong)?;
        if std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o077 != 0 {
            return Err(Error::Open(path.to_owned()));
        }
    }
    let digits = text.trim_end().strip_prefix(HEAD).map(str::trim_start);
    let secret: Option<[u8; 32]> = digits.and_then(unhex).and_then(|bytes| bytes.try_into().ok());
    let secret = secret.ok_or_else(|| Error::Unreadable(path.to_owned()))?;
    Ok(Identity::from_bytes(&secret))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_kept_once_and_for_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("device.key");
        let made = create(&path).unwrap();
        assert_eq!(read(&path).unwrap().id(), made.id());
        assert!(matches!(create(&path), Err(Error::Exists(_))));
        let other = create(&folder.path().join("other.key")).unwrap();
        assert_ne!(other.id(), made.id());
        std::fs::write(folder.path().join("wrong.key"), "no key").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let wrong = folder.path().join("wrong.key");
            assert!(matches!(read(&wrong), Err(Error::Open(_))));
            std::fs::set_permissions(&wrong, std::fs::Permissions::from_mode(0o600)).unwrap();
            assert!(matches!(read(&wrong), Err(Error::Unreadable(_))));
        }
    }
}
