//! USPS as LIBSVM distributes it: bzip2, a line per sample, `label index:value …`.
//!
//! Labels are the digit plus 1, indices 1 to 256 row by row, values −1 (ground) to 1 (ink). Pixels
//! become ⌊255 · (value + 1) / 2⌋ in single precision, which is what torchvision makes of them.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use bzip2::read::MultiBzDecoder;

use crate::Error;
use crate::domains::Half;
use crate::idx::Idx;

const PIXELS: usize = 256;
const CLASSES: u8 = 10;

/// Returns the number of samples that a half has.
const fn samples(half: Half) -> usize {
    match half {
        Half::Train => 7_291,
        Half::Test => 2_007,
    }
}

/// Reads the images and labels of a half from the archive.
pub(super) fn read(archive: &Path, half: Half) -> Result<(Idx, Idx), Error> {
    let file = File::open(archive).map_err(|e| Error::file(archive, e))?;
    let lines = BufReader::new(MultiBzDecoder::new(BufReader::new(file))).lines();
    let (mut images, mut labels) = (Vec::new(), Vec::new());
    for (number, line) in lines.enumerate() {
        let line = line.map_err(|e| Error::content(archive, format!("not bzip2 text: {e}")))?;
        let (label, pixels) = sample(&line)
            .map_err(|why| Error::content(archive, format!("line {}: {why}", number + 1)))?;
        labels.push(label);
        images.extend_from_slice(&pixels);
    }
    if labels.len() != samples(half) {
        let message = format!("{} samples, not {}", labels.len(), samples(half));
        return Err(Error::content(archive, message));
    }
    let count = labels.len() as u32;
    Ok((Idx::new(vec![count, 16, 16], images)?, Idx::new(vec![count], labels)?))
}

/// One line. A value that is not listed is 0, as always in this format.
fn sample(line: &str) -> Result<(u8, [u8; PIXELS]), String> {
    let mut words = line.split_ascii_whitespace();
    let label = words.next().unwrap_or_default();
    let digit = match label.parse::<u8>() {
        Ok(label @ 1..=CLASSES) => label - 1,
        _ => return Err(format!("the label {label:?} is not one of 1 to {CLASSES}")),
    };
    let mut pixels = [pixel(0.0); PIXELS];
    for word in words {
        let entry = word.split_once(':').and_then(|(index, value)| {
            let index: usize = index.parse().ok()?;
            let value: f32 = value.parse().ok()?;
            ((1..=PIXELS).contains(&index) && (-1.0..=1.0).contains(&value))
                .then_some((index, value))
        });
        let (index, value) = entry.ok_or_else(|| {
            format!("{word:?} is not an index of 1 to {PIXELS} and a value of -1 to 1")
        })?;
        pixels[index - 1] = pixel(value);
    }
    Ok((digit, pixels))
}

fn pixel(value: f32) -> u8 {
    ((value + 1.0) / 2.0 * 255.0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use bzip2::Compression;
    use bzip2::write::BzEncoder;
    use std::io::Write;

    fn read_text(text: &str) -> Result<(Idx, Idx), Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("usps.t.bz2");
        let mut encoder = BzEncoder::new(File::create(&path).unwrap(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap();
        read(&path, Half::Test)
    }

    #[test]
    fn lines_become_images() {
        let mut text = "10 1:-1 2:1 17:0.5 256:-0.999\n".to_owned();
        text += &"1 3:1\n".repeat(2006);
        let (images, labels) = read_text(&text).unwrap();
        assert_eq!(images.dimensions(), [2007, 16, 16]);
        assert_eq!((labels.values()[0], labels.values()[1]), (9, 0));
        let first = &images.values()[..256];
        assert_eq!((first[0], first[1], first[2], first[16], first[255]), (0, 255, 127, 191, 0));
    }

    #[test]
    fn what_is_no_sample_is_named_with_its_line() {
        let message = |text: &str| read_text(text).unwrap_err().to_string();
        assert!(message("1 1:0\n").ends_with("1 samples, not 2007"));
        assert!(
            message("1 1:0\n11 1:0\n").ends_with("line 2: the label \"11\" is not one of 1 to 10")
        );
        for word in ["257:0", "0:0", "1:2", "1:nan", "1", "x:1"] {
            let message = message(&format!("1 {word}\n"));
            assert!(message.contains(&format!("line 1: {word:?} is not an index")), "{message}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("usps.bz2");
        std::fs::write(&path, "<html>not found</html>").unwrap();
        let message = read(&path, Half::Train).unwrap_err().to_string();
        assert!(message.contains("not bzip2 text"), "{message}");
    }
}
