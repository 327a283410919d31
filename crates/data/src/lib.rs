//! Data sets, and how they are dealt to devices.
//!
//! The way of the data: files, or the embedded generator → [`Dataset`] → a partition (which samples
//! each device holds, and which of them it has labels for) → [`Dataset::inputs`] and
//! [`Dataset::labels`] of those samples, which is what training takes.
//!
//! Everything random is drawn from a seed that comes in as an argument.

pub mod atomic_file;
pub mod atomic_folder;
pub mod columns;
pub mod dataset;
pub mod domains;
pub mod error;
pub mod features;
#[cfg(feature = "fetch")]
pub mod fetch;
pub mod folder;
mod gzip;
pub mod idx;
#[cfg(feature = "images")]
pub mod image_folder;
pub mod labels;
pub mod partition;
#[cfg(feature = "images")]
mod picture;
pub mod quiet;
pub mod scaling;
pub mod whole_folder;
pub mod words;

pub use dataset::{Class, Dataset, Shape};
pub use error::Error;
pub use scaling::Scaling;
