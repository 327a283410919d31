//! A secret key as a file that its owner alone may read: `stlf-key/1` and 64 hexadecimal digits.

use std::io::Write;
use std::path::{Path, PathBuf};

use stlf_protocol::identity::{Identity, hex, unhex};

const HEAD: &str = "stlf-key/1";

/// What can be wrong with a key file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// There is a key already; a key is never overwritten.
    #[error("{} is there already", .0.display())]
    Exists(PathBuf),
    /// It holds something else.
    #[error("{} is no key file", .0.display())]
    Unreadable(PathBuf),
    /// Others may read it.
    #[error("{} can be read by others than its owner", .0.display())]
    Open(PathBuf),
    /// The system has no random numbers.
    #[error("this system gives no random numbers: {0}")]
    NoRandom(String),
}

impl Error {
    /// What the user can do about it.
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

/// Makes a key and keeps it in a new file.
///
/// # Errors
/// The file is there already, or cannot be written.
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

/// Reads a key.
///
/// # Errors
/// It is none, or others may read it.
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
