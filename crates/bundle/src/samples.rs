//! New samples for a mixture, read and scaled as the device's own were.

use std::path::{Path, PathBuf};

use stlf_data::dataset::{Values, check_features};
use stlf_data::features::{Beginning, Labels};
use stlf_data::{Dataset, Scaling, features};
use stlf_method::known::Known;

use crate::{Error, Mixture};

/// Samples as inputs of a mixture.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples {
    /// The inputs, one after the other.
    pub inputs: Vec<f32>,
    /// The number of samples.
    pub count: usize,
    /// The file of each picture; none for a table.
    pub files: Option<Vec<PathBuf>>,
    /// Where each window of a series begins; none for others.
    pub beginnings: Option<Vec<Beginning>>,
    /// Those that have a label already, where they are a device's own; none else.
    pub known: Vec<Known>,
}

/// Whether samples are new ones or the device's own.
#[cfg_attr(not(feature = "images"), allow(dead_code, reason = "only pictures are resized"))]
#[derive(Debug, Clone, Copy)]
enum Whose<'a> {
    /// New ones, whose labels nobody asks for; pictures of another size are resized or not.
    New { resize: bool },
    /// The device's own, with labels in this column of a table.
    Own { label: Option<&'a str> },
}

impl Samples {
    /// Reads samples: for a mixture that was trained on a table, a table (CSV, plain or gzip, or Parquet) that has its columns and may have
    /// others, from which windows are cut if those were samples in training; for one that was trained on pictures, a picture or a folder of pictures.
    ///
    /// # Errors
    /// Names the file, and the row and column or the picture that cannot be used.
    pub fn read(mixture: &Mixture, path: &Path) -> Result<Samples, Error> {
        Samples::read_as(mixture, path, Whose::New { resize: false })
    }

    /// As [`Samples::read`], with pictures of another size resized to that of the mixture's.
    ///
    /// # Errors
    /// As [`Samples::read`].
    pub fn read_resized(mixture: &Mixture, path: &Path) -> Result<Samples, Error> {
        Samples::read_as(mixture, path, Whose::New { resize: true })
    }

    /// Reads a device's own samples as its training did: pictures are resized, and labels that are there are known. In a table they are in the
    /// column of this name; without one in `label`, if the table has that.
    ///
    /// # Errors
    /// As [`Samples::read`], or a label that is no class of the mixture.
    pub fn read_own(mixture: &Mixture, path: &Path, label: Option<&str>) -> Result<Samples, Error> {
        Samples::read_as(mixture, path, Whose::Own { label })
    }

    fn read_as(mixture: &Mixture, path: &Path, whose: Whose<'_>) -> Result<Samples, Error> {
        match &mixture.scaling {
            Scaling::Features { columns, series, .. } => {
                if path.is_dir() {
                    return Err(Error::Samples {
                        path: path.to_owned(),
                        message: "this is a folder, but the mixture takes rows of a table"
                            .to_owned(),
                        hint: format!(
                            "name a CSV or Parquet file with the columns {}",
                            columns.join(", ")
                        ),
                    });
                }
                let labels = match whose {
                    Whose::New { .. } => None,
                    Whose::Own { label } => {
                        Some(Labels { column: label, classes: &mixture.classes })
                    }
                };
                let data = features::load_columns(path, columns, series.as_ref(), labels)?;
                let beginnings = series.as_ref().map(|_| data.beginnings().to_vec());
                let (inputs, count) = (inputs(mixture, &data), data.len());
                Ok(Samples { inputs, count, files: None, beginnings, known: known(&data) })
            }
            Scaling::Pixels => pictures(mixture, path, whose),
        }
    }

    /// Scales samples that lie one after the other: pixels from 0 to 255, or features as they are in a table, or windows, channel by channel.
    ///
    /// # Errors
    /// They are not whole samples, or contain what is no pixel or no finite number.
    pub fn scaled(mixture: &Mixture, values: &[f64]) -> Result<Samples, Error> {
        let shape = mixture.sample_shape();
        let count = values.len() / shape.len();
        let inputs = match &mixture.scaling {
            Scaling::Features { series, .. } => {
                check_features(values, shape)?;
                let readings = series.as_ref().map_or(1, |series| series.windows.length);
                mixture.scaling.inputs_of(values, readings)
            }
            Scaling::Pixels => {
                let pixels: Vec<u8> = values.iter().map(|&value| value as u8).collect();
                let is_other = |(value, pixel): &(&f64, &u8)| f64::from(**pixel) != **value;
                if let Some((value, _)) = values.iter().zip(&pixels).find(is_other) {
                    let message =
                        format!("{value} is no pixel, which is a whole number from 0 to 255");
                    return Err(Error::Mixture(message));
                }
                let labels = vec![None; count];
                let pixels = Values::Pixels(pixels);
                inputs(mixture, &Dataset::new("samples", shape, pixels, labels, Vec::new())?)
            }
        };
        Ok(Samples { inputs, count, files: None, beginnings: None, known: Vec::new() })
    }
}

fn inputs(mixture: &Mixture, data: &Dataset) -> Vec<f32> {
    mixture.scaling.inputs(data, &(0..data.len()).collect::<Vec<usize>>())
}

/// Returns the samples that have a label.
fn known(data: &Dataset) -> Vec<Known> {
    (0..data.len()).filter_map(|sample| Some((sample, data.label(sample)?))).collect()
}

#[cfg(feature = "images")]
fn pictures(mixture: &Mixture, path: &Path, whose: Whose<'_>) -> Result<Samples, Error> {
    let is_table = |extension: &std::ffi::OsStr| {
        ["csv", "gz", "parquet"].iter().any(|known| extension.eq_ignore_ascii_case(known))
    };
    if path.extension().is_some_and(is_table) {
        return Err(Error::Samples {
            path: path.to_owned(),
            message: "this is a table, but the mixture takes pictures".to_owned(),
            hint: format!("name a folder of PNG or JPEG files of {}", mixture.spec.input()),
        });
    }
    let shape = mixture.spec.input();
    let (resize, classes) = match whose {
        Whose::New { resize } => (resize, None),
        Whose::Own { .. } => (true, Some(&mixture.classes[..])),
    };
    let (data, files) = stlf_data::image_folder::load_with_paths(path, shape, resize, classes)?;
    let (inputs, count) = (inputs(mixture, &data), data.len());
    Ok(Samples { inputs, count, files: Some(files), beginnings: None, known: known(&data) })
}

#[cfg(not(feature = "images"))]
fn pictures(_: &Mixture, path: &Path, _: Whose<'_>) -> Result<Samples, Error> {
    Err(Error::Samples {
        path: path.to_owned(),
        message: "this build does not read pictures".to_owned(),
        hint: "build with the feature `images`".to_owned(),
    })
}
