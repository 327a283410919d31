//! MNIST-M as a PyTorch archive: gzip, tar, and within a zip file whose entries `…/data/N` are the
//! tensors' bytes: images n×28×28×3 of unsigned bytes, and labels of 64 bits.
//!
//! The pickled program beside them is not read: the two tensors are told apart by their sizes. That
//! they are what they should be is seen in the labels, which are MNIST's and so must have its counts.

use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use zip::ZipArchive;

use crate::Error;
use crate::domains::Half;
use crate::idx::Idx;

const IMAGE: usize = 28 * 28 * 3;
const LABEL: usize = size_of::<i64>();

/// No archive unpacks to more than this: the larger half has 142 MB.
const LARGEST: u64 = 256 << 20;

/// How many samples of each digit MNIST has.
const fn counts(half: Half) -> [usize; 10] {
    match half {
        Half::Train => [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
        Half::Test => [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
    }
}

/// Reads the images and labels of a half from the archive.
pub(super) fn read(archive: &Path, half: Half) -> Result<(Idx, Idx), Error> {
    let expected = counts(half);
    let samples: usize = expected.iter().sum();
    let wrong = |message: String| Error::content(archive, message);
    let mut tensors = unpack(archive)?;
    let mut tensor = |what: &str, bytes: usize| {
        let at = tensors.iter().position(|tensor| tensor.len() == bytes);
        at.map(|at| tensors.swap_remove(at))
            .ok_or_else(|| wrong(format!("it has no {what} of {bytes} bytes")))
    };
    let images = tensor("images", samples * IMAGE)?;
    let labels = tensor("labels", samples * LABEL)?;
    let (words, _) = labels.as_chunks::<LABEL>();
    let labels: Vec<u8> = words
        .iter()
        .map(|word| u8::try_from(i64::from_le_bytes(*word)).unwrap_or(u8::MAX))
        .collect();
    for (digit, &count) in expected.iter().enumerate() {
        let found = labels.iter().filter(|&&label| usize::from(label) == digit).count();
        if found != count {
            return Err(wrong(format!("{found} labels are {digit}, and MNIST has {count}")));
        }
    }
    let n = samples as u32;
    Ok((Idx::new(vec![n, 28, 28, 3], images)?, Idx::new(vec![n], labels)?))
}

/// The bytes of every tensor in the first file of the archive.
fn unpack(archive: &Path) -> Result<Vec<Vec<u8>>, Error> {
    let wrong = |message: String| Error::content(archive, message);
    let file = File::open(archive).map_err(|e| Error::file(archive, e))?;
    let plain = MultiGzDecoder::new(BufReader::new(file)).take(LARGEST);
    let mut tar = tar::Archive::new(plain);
    let broken_tar = |e: std::io::Error| wrong(format!("not a tar archive in gzip: {e}"));
    let mut pickle = Vec::new();
    for entry in tar.entries().map_err(broken_tar)? {
        let mut entry = entry.map_err(broken_tar)?;
        if entry.header().entry_type().is_file() {
            entry.read_to_end(&mut pickle).map_err(broken_tar)?;
            break;
        }
    }
    let broken = |e: zip::result::ZipError| wrong(format!("not a PyTorch file: {e}"));
    let mut zip = ZipArchive::new(Cursor::new(pickle)).map_err(broken)?;
    let mut tensors = Vec::new();
    for at in 0..zip.len() {
        let mut entry = zip.by_index(at).map_err(broken)?;
        if entry.name().map_err(broken)?.rsplit('/').nth(1) == Some("data") {
            let mut bytes = Vec::new();
            let read = entry.by_ref().take(LARGEST).read_to_end(&mut bytes);
            read.map_err(|e| wrong(format!("not a PyTorch file: {e}")))?;
            tensors.push(bytes);
        }
    }
    Ok(tensors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    /// An archive as `torch.save` and `tar czf` make it.
    fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let stored =
            SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        for (name, bytes) in entries {
            zip.start_file(*name, stored).unwrap();
            zip.write_all(bytes).unwrap();
        }
        let pickle = zip.finish().unwrap().into_inner();
        let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        let mut header = tar::Header::new_gnu();
        header.set_size(pickle.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append_data(&mut header, "mnist_m_test.pt", &pickle[..]).unwrap();
        tar.into_inner().unwrap().finish().unwrap()
    }

    fn read_bytes(bytes: &[u8]) -> Result<(Idx, Idx), Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mnist_m_test.pt.tar.gz");
        std::fs::write(&path, bytes).unwrap();
        read(&path, Half::Test)
    }

    fn labels() -> Vec<u8> {
        let digits = (0i64..10).zip(counts(Half::Test));
        digits.flat_map(|(digit, count)| digit.to_le_bytes().repeat(count)).collect()
    }

    #[test]
    fn tensors_are_told_apart_by_their_sizes() {
        let mut images = vec![7; 10_000 * IMAGE];
        images[1] = 200;
        let labels = labels();
        let entries: [(&str, &[u8]); 4] = [
            ("mnist_m_test/data.pkl", b"a program"),
            ("mnist_m_test/data/0", &images),
            ("mnist_m_test/data/1", &labels),
            ("mnist_m_test/version", b"3\n"),
        ];
        let (found, digits) = read_bytes(&archive(&entries)).unwrap();
        assert_eq!(found.dimensions(), [10_000, 28, 28, 3]);
        assert_eq!(found.values(), images);
        assert_eq!((digits.values()[0], digits.values()[9_999]), (0, 9));
    }

    #[test]
    fn what_is_not_mnist_m_is_refused() {
        let images = vec![0; 10_000 * IMAGE];
        let mut labels = labels();
        let message = |bytes: &[u8]| read_bytes(bytes).unwrap_err().to_string();
        assert!(message(b"<html>").contains("not a tar archive in gzip"));
        assert!(
            message(&archive(&[("a/data/0", b"few")])).contains("it has no images of 23520000")
        );
        let without = message(&archive(&[("a/data/0", &images)]));
        assert!(without.contains("it has no labels of 80000 bytes"), "{without}");
        labels[0] = 3;
        let other = message(&archive(&[("a/data/0", &images), ("a/data/1", &labels)]));
        assert!(other.contains("979 labels are 0, and MNIST has 980"), "{other}");
    }
}
