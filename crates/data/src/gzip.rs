//! Files that may be compressed with gzip, which their first bytes tell, whatever their names are.

use std::io::{self, Cursor, Read};

use flate2::read::MultiGzDecoder;

/// The first bytes of a compressed file.
pub(crate) const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The bytes that a reader gives, unpacked where they are compressed.
pub(crate) fn unpacked<'r>(mut reader: impl Read + 'r) -> io::Result<Box<dyn Read + 'r>> {
    let mut start = Vec::with_capacity(MAGIC.len());
    reader.by_ref().take(MAGIC.len() as u64).read_to_end(&mut start)?;
    let packed = start == MAGIC;
    let bytes = Cursor::new(start).chain(reader);
    Ok(if packed { Box::new(MultiGzDecoder::new(bytes)) } else { Box::new(bytes) })
}
