//! Arrays as safetensors files: written for the learner, and read from it with every check.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use stlf_data::Class;
use stlf_learn::evaluate::Predictions;

/// What a safetensors file has besides numbers, for the few arrays that are read here.
pub(crate) const HEADER: u64 = 64 << 10;

/// The most bytes of a description of samples.
const MOST_SAMPLES: u64 = 8 << 30;

/// How far probabilities may be from a sum of 1: single precision, and many classes.
const ROUNDING: f64 = 1e-3;

/// The samples of a learner, in its own order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Samples {
    /// The class of each, where it has a label.
    pub(crate) labels: Vec<Option<Class>>,
    /// The true class of each, where the learner tells them.
    pub(crate) truth: Option<Vec<Class>>,
    /// The features of all samples, one sample after the other.
    pub(crate) features: Vec<f32>,
    /// The number of features of each sample.
    pub(crate) width: usize,
}

/// Returns the file with the numbers of some samples.
pub(crate) fn rows_file(rows: impl Iterator<Item = usize>) -> Result<Vec<u8>, String> {
    let bytes: Vec<u8> = rows.flat_map(|row| (row as i64).to_le_bytes()).collect();
    let view = TensorView::new(Dtype::I64, vec![bytes.len() / 8], &bytes);
    view.and_then(|view| safetensors::serialize([("rows", view)], None::<HashMap<String, String>>))
        .map_err(|e| e.to_string())
}

/// Returns the file with the probabilities of some samples.
pub(crate) fn probabilities_file(predictions: &Predictions) -> Result<Vec<u8>, String> {
    let numbers = predictions.as_slice();
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let shape = vec![predictions.len(), numbers.len() / predictions.len().max(1)];
    let view = TensorView::new(Dtype::F32, shape, &bytes);
    let views = view.map(|view| [("probabilities", view)]);
    views
        .and_then(|views| safetensors::serialize(views, None::<HashMap<String, String>>))
        .map_err(|e| e.to_string())
}

/// Returns the bytes of a file that the learner wrote, if it is a plain file and not longer than this.
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let about = std::fs::symlink_metadata(path).map_err(|e| format!("cannot be read: {e}"))?;
    if !about.is_file() {
        return Err("is no plain file".to_owned());
    }
    if about.len() > most {
        return Err(format!("has {} bytes, where at most {most} were expected", about.len()));
    }
    let mut bytes = Vec::with_capacity(about.len() as usize);
    let file = File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes));
    file.map_err(|e| format!("cannot be read: {e}"))?;
    Ok(bytes)
}

/// Reads the description of so many samples of so many classes.
pub(crate) fn samples(path: &Path, count: usize, classes: usize) -> Result<Samples, String> {
    let bytes = read(path, MOST_SAMPLES)?;
    let file = open(&bytes)?;
    let known = file.names();
    let expected = ["labels", "features", "truth"];
    if let Some(other) = known.iter().find(|name| !expected.contains(*name)) {
        return Err(format!("has an array {other}; only labels, features and truth were expected"));
    }
    let labels = labels(&file, "labels", count, classes)?;
    let truth =
        match known.contains(&"truth") {
            true => {
                let truth: Option<Vec<Class>> =
                    self::labels(&file, "truth", count, classes)?.into_iter().collect();
                Some(truth.ok_or(
                    "has no truth for some samples; leave it out, or tell the class of each",
                )?)
            }
            false => None,
        };
    if !known.contains(&"features") {
        return Ok(Samples { labels, truth, features: Vec::new(), width: 0 });
    }
    let features = array(&file, "features", Dtype::F32, &[Some(count), None])?;
    let width = features.shape()[1];
    let features = finite(&features)?;
    Ok(Samples { labels, truth, features, width })
}

/// Reads the classes of so many samples, of so many classes; none where there is no label.
fn labels(
    file: &SafeTensors<'_>,
    name: &str,
    count: usize,
    classes: usize,
) -> Result<Vec<Option<Class>>, String> {
    let label = |(at, bytes): (usize, &[u8])| {
        let number = bytes.try_into().map(i64::from_le_bytes).unwrap_or_default();
        match usize::try_from(number) {
            Err(_) if number == -1 => Ok(None),
            Ok(class) if class < classes => Ok(Some(class as Class)),
            _ => Err(format!(
                "has the label {number} for sample {at}; expected 0 to {}, or -1 for none",
                classes.saturating_sub(1)
            )),
        }
    };
    let numbers = array(file, name, Dtype::I64, &[Some(count)])?;
    numbers.data().chunks_exact(8).enumerate().map(label).collect()
}

/// Reads the probabilities of so many samples and classes.
pub(crate) fn probabilities(
    path: &Path,
    samples: usize,
    classes: usize,
) -> Result<Predictions, String> {
    let bytes = read(path, 4 * (samples * classes) as u64 + HEADER)?;
    let file = open(&bytes)?;
    let shape = [Some(samples), Some(classes)];
    let numbers = finite(&array(&file, "probabilities", Dtype::F32, &shape)?)?;
    checked_probabilities(numbers, classes)
}

/// Returns numbers as the probabilities of so many classes, one row per sample, if they are probabilities.
///
/// # Errors
/// Says which row has none, and what it has.
pub fn checked_probabilities(numbers: Vec<f32>, classes: usize) -> Result<Predictions, String> {
    for (at, row) in numbers.chunks_exact(classes.max(1)).enumerate() {
        let sum: f64 = row.iter().copied().map(f64::from).sum();
        let is_in_range = row.iter().all(|p| (0.0..=1.0 + ROUNDING).contains(&f64::from(*p)));
        if !is_in_range || (sum - 1.0).abs() > ROUNDING {
            let shown: Vec<String> = row.iter().take(5).map(|p| format!("{p}")).collect();
            let more = if row.len() > 5 { ", …" } else { "" };
            return Err(format!(
                "has no probabilities in row {at}: [{}{more}], sum {sum:.4}; expected 0 to 1, sum 1",
                shown.join(", ")
            ));
        }
    }
    Ok(Predictions::new(numbers, classes))
}

fn open(bytes: &[u8]) -> Result<SafeTensors<'_>, String> {
    SafeTensors::deserialize(bytes).map_err(|e| format!("is no safetensors file: {e}"))
}

/// Returns an array of this kind and shape, where `None` is any length.
fn array<'f>(
    file: &SafeTensors<'f>,
    name: &str,
    kind: Dtype,
    shape: &[Option<usize>],
) -> Result<TensorView<'f>, String> {
    let found = || file.names().join(", ");
    let view = file.tensor(name).map_err(|_| format!("has no {name}; it has: {}", found()))?;
    let fits = view.shape().len() == shape.len()
        && view.shape().iter().zip(shape).all(|(has, needs)| needs.is_none_or(|n| n == *has));
    if view.dtype() != kind || !fits {
        let expected: Vec<String> =
            shape.iter().map(|side| side.map_or("any".to_owned(), |n| n.to_string())).collect();
        return Err(format!(
            "has {name} as {:?} of shape {:?}; expected {kind:?} of shape [{}]",
            view.dtype(),
            view.shape(),
            expected.join(", ")
        ));
    }
    Ok(view)
}

/// Returns the numbers of an array, all of which are finite.
fn finite(view: &TensorView<'_>) -> Result<Vec<f32>, String> {
    let numbers = view.data().chunks_exact(4);
    let numbers: Vec<f32> = numbers.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    match numbers.iter().position(|number| !number.is_finite()) {
        Some(at) => {
            let width = view.shape().last().copied().unwrap_or(1).max(1);
            Err(format!("has {} in row {}, column {}", numbers[at], at / width, at % width))
        }
        None => Ok(numbers),
    }
}
