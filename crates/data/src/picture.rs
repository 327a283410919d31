//! Reads PNG and JPEG files, and lists those of a folder.

use std::fs;
use std::path::{Path, PathBuf};

use image::{DynamicImage, ImageDecoder, ImageError, ImageReader};

use crate::Error;

/// The size of a picture and whether it is coloured, as its header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) coloured: bool,
}

/// The entries of a folder by name, without hidden ones.
pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |e| Error::file(folder, e);
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

/// Whether a path is a file named as a picture that can be read.
pub(crate) fn is_picture(path: &Path) -> bool {
    let known = |e: &std::ffi::OsStr| {
        ["png", "jpg", "jpeg"].iter().any(|known| e.eq_ignore_ascii_case(known))
    };
    path.extension().is_some_and(known) && path.is_file()
}

/// Reads no further than the header.
pub(crate) fn header(path: &Path) -> Result<Header, Error> {
    let decoder = reader(path)?.into_decoder().map_err(|e| unreadable(path, e))?;
    let (width, height) = decoder.dimensions();
    Ok(Header { width, height, coloured: decoder.color_type().has_color() })
}

/// Reads a picture from a file.
pub(crate) fn open(path: &Path) -> Result<DynamicImage, Error> {
    reader(path)?.decode().map_err(|e| unreadable(path, e))
}

fn reader(path: &Path) -> Result<ImageReader<std::io::BufReader<fs::File>>, Error> {
    let reader = ImageReader::open(path).and_then(ImageReader::with_guessed_format);
    reader.map_err(|e| Error::file(path, e))
}

fn unreadable(path: &Path, error: ImageError) -> Error {
    match error {
        ImageError::IoError(e) if e.kind() != std::io::ErrorKind::UnexpectedEof => {
            Error::file(path, e)
        }
        error => Error::content(path, format!("cannot be read as a picture: {error}"))
            .with_hint("remove the file, or save it again as PNG or JPEG"),
    }
}
