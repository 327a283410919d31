//! Why a figure could not become a PNG.

use std::fmt;

/// A figure that cannot be drawn in pixels.
#[derive(Debug)]
pub enum Error {
    /// No pixels at all, or more than can be drawn.
    Size {
        /// The figure's width.
        width: f64,
        /// The figure's height.
        height: f64,
        /// Pixels per unit that were asked for.
        scale: f64,
        /// The most pixels that are drawn.
        most: usize,
    },
    /// The pixels could not be written as PNG.
    Encoding(png::EncodingError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Size { width, height, scale, most } => write!(
                f,
                "a figure of {width}×{height} at scale {scale} has no pixels or more than {most}"
            ),
            Error::Encoding(_) => write!(f, "the picture could not be written as PNG"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Size { .. } => None,
            Error::Encoding(source) => Some(source),
        }
    }
}

impl From<png::EncodingError> for Error {
    fn from(source: png::EncodingError) -> Error {
        Error::Encoding(source)
    }
}
