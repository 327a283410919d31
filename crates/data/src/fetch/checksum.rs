//! Computes checksums of files.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use md5::Md5;
use sha2::{Digest, Sha256};

use super::sources::Checksum;

impl Checksum {
    /// Returns the digest that a file must have, in hexadecimal.
    pub(super) fn expected(self) -> &'static str {
        match self {
            Checksum::Sha256(digest) | Checksum::Md5(digest) => digest,
        }
    }

    /// The digest of a file, by the same method.
    pub(super) fn of(self, file: &Path) -> io::Result<String> {
        let mut file = File::open(file)?;
        match self {
            Checksum::Sha256(_) => digest::<Sha256>(&mut file),
            Checksum::Md5(_) => digest::<Md5>(&mut file),
        }
    }
}

fn digest<D: Digest>(from: &mut impl Read) -> io::Result<String> {
    let mut hasher = D::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match from.read(&mut buffer)? {
            0 => break,
            n => hasher.update(&buffer[..n]),
        }
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_the_known_ones() {
        let of = |text: &str| {
            let sha256 = digest::<Sha256>(&mut text.as_bytes()).unwrap();
            let md5 = digest::<Md5>(&mut text.as_bytes()).unwrap();
            (sha256, md5)
        };
        let (sha256, md5) = of("abc");
        assert_eq!(sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(md5, "900150983cd24fb0d6963f7d28e17f72");
    }
}
