//! IDX, the format of MNIST: an array of unsigned bytes, or of integers, with one to four dimensions.
//!
//! Two zero bytes, a type byte, the number of dimensions, every dimension as a big-endian 32-bit
//! number, then the values with the last dimension fastest. A file may be compressed with gzip, which
//! its first bytes tell, whatever its name is.
//!
//! A header is never believed: memory grows with the bytes that are really there, and a compressed
//! file is unpacked no further than its header's dimensions.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::Error;
use crate::atomic_file::Prepared;
use crate::gzip::unpacked;

const UNSIGNED_BYTE: u8 = 0x08;
const INTEGER: u8 = 0x0c;
const MOST_DIMENSIONS: usize = 4;
/// More values than any file is meant to hold: three times all of MNIST-M in colour and then some.
const MOST_VALUES: u128 = 1 << 31;
/// Room reserved on the header's word alone: all of MNIST's training images.
const RESERVE: usize = 48 << 20;

/// An array of unsigned bytes with up to four dimensions, as an IDX file holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idx {
    dimensions: Vec<u32>,
    values: Vec<u8>,
}

impl Idx {
    /// An array of these dimensions; its values have the last dimension fastest.
    ///
    /// # Errors
    /// When the number of values is not the product of one to four dimensions.
    pub fn new(dimensions: Vec<u32>, values: Vec<u8>) -> Result<Idx, Error> {
        let product = product(&dimensions);
        let fits = (1..=MOST_DIMENSIONS).contains(&dimensions.len());
        if !fits || product != values.len() as u128 {
            let message = format!("{} values are not {}", values.len(), by(&dimensions));
            return Err(Error::setting("IDX array", message));
        }
        Ok(Idx { dimensions, values })
    }

    /// The dimensions, the slowest first: for images their number, rows and columns.
    pub fn dimensions(&self) -> &[u32] {
        &self.dimensions
    }

    /// Returns the values, the last dimension fastest.
    pub fn values(&self) -> &[u8] {
        &self.values
    }

    /// Returns the values without their dimensions.
    pub fn into_values(self) -> Vec<u8> {
        self.values
    }

    /// Reads a file, plain or gzip.
    ///
    /// # Errors
    /// See [`Idx::read`].
    pub fn read_file(path: &Path) -> Result<Idx, Error> {
        let file = File::open(path).map_err(|e| Error::file(path, e))?;
        Idx::read(BufReader::with_capacity(1 << 16, file), path)
    }

    /// Reads plain or gzip bytes to their end; errors name `path`.
    ///
    /// # Errors
    /// When the bytes are not IDX, hold something other than unsigned bytes, end early, go on after
    /// the last value, or promise an absurd amount.
    pub fn read(reader: impl Read, path: &Path) -> Result<Idx, Error> {
        let (dimensions, values) = read_array(reader, path, UNSIGNED_BYTE)?;
        Ok(Idx { dimensions, values })
    }

    /// Writes plain IDX.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, mut writer: impl Write) -> io::Result<()> {
        // `new` and `read` hold the number of dimensions at four or fewer.
        writer.write_all(&[0, 0, UNSIGNED_BYTE, self.dimensions.len() as u8])?;
        for dimension in &self.dimensions {
            writer.write_all(&dimension.to_be_bytes())?;
        }
        writer.write_all(&self.values)
    }

    /// Writes a file whole or not at all, compressed when its name ends in `.gz`.
    ///
    /// # Errors
    /// When the file cannot be written; what was there before is then still there.
    pub fn write_file(&self, path: &Path) -> Result<(), Error> {
        self.prepare(path)?.publish()
    }

    pub(crate) fn prepare(&self, path: &Path) -> Result<Prepared, Error> {
        let packed = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz"));
        Prepared::new(path, |writer| match packed {
            // Without a name and a time in it, so the same array gives the same file.
            true => {
                let mut encoder = GzEncoder::new(writer, Compression::default());
                self.write(&mut encoder)?;
                encoder.finish().map(drop)
            }
            false => self.write(writer),
        })
    }
}

/// The dimensions and the values of a file of 32-bit integers, plain or gzip.
///
/// # Errors
/// As [`Idx::read`].
pub fn read_integers(path: &Path) -> Result<(Vec<u32>, Vec<i32>), Error> {
    let file = File::open(path).map_err(|e| Error::file(path, e))?;
    let reader = BufReader::with_capacity(1 << 16, file);
    let (dimensions, bytes) = read_array(reader, path, INTEGER)?;
    let integer = |b: &[u8]| i32::from_be_bytes([b[0], b[1], b[2], b[3]]);
    Ok((dimensions, bytes.chunks_exact(4).map(integer).collect()))
}

/// The dimensions of an array of this element type, and the bytes of its values.
fn read_array(reader: impl Read, path: &Path, wanted: u8) -> Result<(Vec<u32>, Vec<u8>), Error> {
    let mut reader = unpacked(reader).map_err(|e| Error::file(path, e))?;
    let size: u128 = if wanted == INTEGER { 4 } else { 1 };
    let wanted_name = element_type(wanted).unwrap_or_default();
    let broken = |e: io::Error| match e.kind() {
        io::ErrorKind::UnexpectedEof => {
            Error::content(path, "the gzip data ends early").with_hint(INCOMPLETE)
        }
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            Error::content(path, format!("the gzip data is corrupt ({e})")).with_hint(INCOMPLETE)
        }
        _ => Error::file(path, e),
    };
    let mut read = |count: usize| {
        let mut bytes = Vec::new();
        reader.by_ref().take(count as u64).read_to_end(&mut bytes).map_err(broken)?;
        Ok::<_, Error>(bytes)
    };

    let magic = read(4)?;
    let [zero, also_zero, kind, count] = magic[..] else {
        let message = match magic.is_empty() {
            true => "the file is empty".to_owned(),
            false => format!("not an IDX file: it has only {} bytes", magic.len()),
        };
        return Err(Error::content(path, message).with_hint(INCOMPLETE));
    };
    let known = element_type(kind);
    if [zero, also_zero] != [0, 0] || known.is_none() {
        let start: Vec<String> = magic.iter().map(|b| format!("{b:02x}")).collect();
        let message = format!("not an IDX file: it starts with {}", start.join(" "));
        return Err(Error::content(path, message).with_hint(format!(
            "an IDX file of {wanted_name} starts with 00 00 {wanted:02x}, or is gzip of that"
        )));
    }
    if let Some(name) = known
        && kind != wanted
    {
        let message =
            format!("holds {name} (type {kind:02x}), expected {wanted_name} (type {wanted:02x})");
        return Err(Error::content(path, message));
    }
    if !(1..=MOST_DIMENSIONS).contains(&usize::from(count)) {
        let message = format!("has {count} dimensions, expected 1 to {MOST_DIMENSIONS}");
        return Err(Error::content(path, message));
    }
    let header = read(4 * usize::from(count))?;
    if header.len() < 4 * usize::from(count) {
        return Err(Error::content(path, "the file ends inside its header").with_hint(INCOMPLETE));
    }
    let dimensions: Vec<u32> =
        header.chunks_exact(4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]])).collect();

    let promised = product(&dimensions);
    if promised > MOST_VALUES {
        let message = format!(
            "the header promises {} values, more than the {MOST_VALUES} that are read at most",
            by(&dimensions)
        );
        return Err(Error::content(path, message));
    }
    let bytes = promised * size;
    let mut values = Vec::with_capacity((bytes as usize).min(RESERVE));
    // One byte more than promised shows whether the file ends where it should.
    reader.take(bytes as u64 + 1).read_to_end(&mut values).map_err(broken)?;
    if (values.len() as u128) < bytes {
        let found = values.len() as u128 / size;
        let message = format!(
            "truncated: the header promises {} values, {found} of {promised} are there",
            by(&dimensions)
        );
        return Err(Error::content(path, message).with_hint(INCOMPLETE));
    }
    if values.len() as u128 > bytes {
        let message =
            format!("continues after the {} values that its header promises", by(&dimensions));
        return Err(Error::content(path, message));
    }
    values.shrink_to_fit();
    Ok((dimensions, values))
}

const INCOMPLETE: &str = "the file may be an incomplete download: delete it and fetch it again";

/// Returns the name of an element type of the format, or `None` if there is no such type.
fn element_type(kind: u8) -> Option<&'static str> {
    Some(match kind {
        UNSIGNED_BYTE => "unsigned bytes",
        0x09 => "signed bytes",
        0x0b => "16-bit integers",
        0x0c => "32-bit integers",
        0x0d => "32-bit floats",
        0x0e => "64-bit floats",
        _ => return None,
    })
}

/// Cannot overflow: four numbers under 2³² multiply to less than 2¹²⁸.
fn product(dimensions: &[u32]) -> u128 {
    dimensions.iter().take(MOST_DIMENSIONS).map(|&d| u128::from(d)).product()
}

/// Returns dimensions as people write them, such as `28×28`.
pub(crate) fn by(dimensions: &[u32]) -> String {
    dimensions.iter().map(u32::to_string).collect::<Vec<_>>().join("×")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8]) -> Result<Idx, Error> {
        Idx::read(bytes, Path::new("x"))
    }

    fn error(bytes: &[u8]) -> String {
        read(bytes).unwrap_err().to_string()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    const TWO: [u8; 10] = [0, 0, 8, 1, 0, 0, 0, 2, 7, 9];

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!(error(b""), "x: the file is empty");
        assert_eq!(error(&[0, 0]), "x: not an IDX file: it has only 2 bytes");
        assert_eq!(error(b"\x89PNG\r\n"), "x: not an IDX file: it starts with 89 50 4e 47");
        assert_eq!(error(&[0, 0, 7, 1]), "x: not an IDX file: it starts with 00 00 07 01");
        assert_eq!(
            error(&[0, 0, 0x0d, 1, 0, 0, 0, 0]),
            "x: holds 32-bit floats (type 0d), expected unsigned bytes (type 08)"
        );
        assert_eq!(error(&[0, 0, 8, 0]), "x: has 0 dimensions, expected 1 to 4");
        assert_eq!(error(&[0, 0, 8, 5]), "x: has 5 dimensions, expected 1 to 4");
        assert_eq!(error(&TWO[..7]), "x: the file ends inside its header");
        assert_eq!(
            error(&TWO[..9]),
            "x: truncated: the header promises 2 values, 1 of 2 are there"
        );
        let longer = [&TWO[..], &[1]].concat();
        assert_eq!(error(&longer), "x: continues after the 2 values that its header promises");
        assert!(read(&TWO[..9]).unwrap_err().hint().unwrap().contains("incomplete download"));
    }

    #[test]
    fn integers_are_read_and_are_no_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("i");
        let head = [0, 0, 0x0c, 2, 0, 0, 0, 1, 0, 0, 0, 2];
        let values = [0, 0, 1, 2, 0xff, 0xff, 0xff, 0xff];
        for bytes in [[&head[..], &values].concat(), gzip(&[&head[..], &values].concat())] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(read_integers(&path).unwrap(), (vec![1, 2], vec![258, -1]));
        }
        std::fs::write(&path, [&head[..], &values[..7]].concat()).unwrap();
        let short = read_integers(&path).unwrap_err().to_string();
        assert!(short.ends_with("the header promises 1×2 values, 1 of 2 are there"), "{short}");
        std::fs::write(&path, TWO).unwrap();
        let other = read_integers(&path).unwrap_err().to_string();
        assert!(other.ends_with("(type 08), expected 32-bit integers (type 0c)"), "{other}");
    }

    #[test]
    fn headers_that_lie_are_refused_without_memory() {
        let mut bytes = vec![0, 0, 8, 4];
        bytes.extend([0xff; 16]);
        assert!(error(&bytes).contains("the header promises 4294967295×4294967295×"));
        // Within the limit, but the values are not there.
        let lie = [0, 0, 8, 1, 0x7f, 0xff, 0xff, 0xff, 1];
        assert!(error(&lie).contains("1 of 2147483647 are there"));
        let none = [0, 0, 8, 2, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(read(&none).unwrap().dimensions(), [0, u32::MAX]);
    }

    #[test]
    fn gzip_is_told_by_its_bytes_and_unpacked_no_further_than_the_header_says() {
        assert_eq!(read(&gzip(&TWO)).unwrap().values(), [7, 9]);
        let mut bomb = TWO.to_vec();
        bomb.resize(50_000_000, 0);
        let bomb = gzip(&bomb);
        assert!(bomb.len() < 100_000);
        assert_eq!(error(&bomb), "x: continues after the 2 values that its header promises");
        let whole = gzip(&TWO);
        assert_eq!(error(&whole[..whole.len() - 9]), "x: the gzip data ends early");
        let mut wrong = whole.clone();
        let checksum = wrong.len() - 6;
        wrong[checksum] ^= 1;
        assert!(error(&wrong).starts_with("x: the gzip data is corrupt"));
    }

    #[test]
    fn an_array_must_fit_its_dimensions() {
        assert!(Idx::new(vec![2, 3], vec![0; 6]).is_ok());
        let error = Idx::new(vec![2, 3], vec![0; 5]).unwrap_err();
        assert_eq!(error.to_string(), "IDX array: 5 values are not 2×3");
        assert!(Idx::new(vec![1; 5], vec![0]).is_err());
        assert!(Idx::new(vec![], vec![0]).is_err());
    }

    fn array() -> impl Strategy<Value = Idx> {
        prop::collection::vec(0u32..6, 1..=4).prop_flat_map(|dimensions| {
            let count = product(&dimensions) as usize;
            prop::collection::vec(any::<u8>(), count)
                .prop_map(move |values| Idx::new(dimensions.clone(), values).unwrap())
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(array in array()) {
            let mut bytes = Vec::new();
            array.write(&mut bytes).unwrap();
            prop_assert_eq!(&read(&bytes).unwrap(), &array);
            prop_assert_eq!(&read(&gzip(&bytes)).unwrap(), &array);
        }

        #[test]
        fn every_shorter_or_longer_file_is_an_error(array in array(), cut in any::<prop::sample::Index>()) {
            let mut bytes = Vec::new();
            array.write(&mut bytes).unwrap();
            prop_assert!(read(&bytes[..cut.index(bytes.len())]).is_err());
            let packed = gzip(&bytes);
            prop_assert!(read(&packed[..cut.index(packed.len())]).is_err());
            bytes.push(0);
            prop_assert!(read(&bytes).is_err());
            prop_assert!(read(&gzip(&bytes)).is_err());
        }
    }

    #[test]
    fn files_are_packed_by_their_name() {
        let folder = tempfile::tempdir().unwrap();
        let array = Idx::new(vec![2, 2], vec![1, 2, 3, 4]).unwrap();
        for (name, start) in [("a", [0, 0]), ("a.gz", crate::gzip::MAGIC)] {
            let path = folder.path().join(name);
            array.write_file(&path).unwrap();
            assert_eq!(std::fs::read(&path).unwrap()[..2], start);
            assert_eq!(Idx::read_file(&path).unwrap(), array);
        }
        let missing = Idx::read_file(&folder.path().join("none")).unwrap_err();
        assert!(matches!(missing, Error::File { .. }));
    }
}
