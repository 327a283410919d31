//! What a mixture makes of samples, as a table.

use std::path::PathBuf;

use stlf_data::features::Beginning;
use stlf_learn::evaluate::{Predictions, likeliest};
use stlf_method::predictions::PredictionRow;

use crate::Error;

/// What is written besides a sample's place, class and probability.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Columns<'a> {
    /// The probability of every class, each in a column `p_CLASS`.
    pub probabilities: bool,
    /// The file of every sample, in a column `file`.
    pub files: Option<&'a [PathBuf]>,
    /// Where every window of a series begins: in a column `row`, counted from 0, and in a column `time`, where there are times.
    pub beginnings: Option<&'a [Beginning]>,
}

/// A class that is expected less often than this may be missing by chance: of three that are expected, none is there in one of twenty cases.
const EXPECTED: f64 = 3.0;

/// The classes that no sample is given, though by their probabilities some samples should have them, with how many that are.
pub fn never_given<'c>(classes: &'c [String], predictions: &Predictions) -> Vec<(&'c str, f64)> {
    let mut expected = vec![0.0; classes.len()];
    let mut is_given = vec![false; classes.len()];
    for probabilities in predictions.probabilities() {
        is_given[usize::from(likeliest(probabilities).0)] = true;
        expected.iter_mut().zip(probabilities).for_each(|(sum, p)| *sum += f64::from(*p));
    }
    let missed = classes.iter().zip(expected).zip(is_given);
    let missed = missed.filter(|((_, expected), is_given)| !is_given && *expected >= EXPECTED);
    missed.map(|((class, expected), _)| (class.as_str(), expected)).collect()
}

/// The table as CSV. Without further columns it is what a device writes of its own samples.
///
/// # Errors
/// It cannot be written.
pub fn csv(
    classes: &[String],
    predictions: &Predictions,
    columns: Columns<'_>,
) -> Result<Vec<u8>, Error> {
    let failed = |e: csv::Error| Error::Mixture(e.to_string());
    let places: Vec<usize> = (0..predictions.len()).collect();
    let rows = PredictionRow::all(predictions, &places, classes);
    let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    let mut head = ["sample", "class", "probability"].map(str::to_owned).to_vec();
    if columns.probabilities {
        head.extend(classes.iter().map(|class| format!("p_{class}")));
    }
    head.extend(columns.files.map(|_| "file".to_owned()));
    if let Some(beginnings) = columns.beginnings {
        let has_times = beginnings.iter().any(|beginning| beginning.time.is_some());
        head.push("row".to_owned());
        head.extend(has_times.then(|| "time".to_owned()));
    }
    writer.write_record(&head).map_err(failed)?;
    for (row, probabilities) in rows.iter().zip(predictions.probabilities()) {
        let more = if columns.probabilities { probabilities } else { &[] };
        let file = columns.files.and_then(|files| files.get(row.sample));
        let file = file.map(|file| file.to_string_lossy());
        let begins = columns.beginnings.and_then(|all| all.get(row.sample));
        let begins = begins.map(|begins| (begins.row, begins.time.as_slice()));
        writer.serialize((row, more, file.as_slice(), begins.as_slice())).map_err(failed)?;
    }
    writer.into_inner().map_err(|e| Error::Mixture(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_that_should_be_there_and_is_never_given_is_found() {
        let classes = ["calm", "storm"].map(str::to_owned);
        let of = |samples: usize, storm: f32| {
            let rows = (0..samples).flat_map(|_| [1.0 - storm, storm]).collect();
            let found = never_given(&classes, &Predictions::new(rows, 2));
            found.into_iter().map(|(class, count)| (class, count.round())).collect::<Vec<_>>()
        };
        assert_eq!(of(400, 0.01), [("storm", 4.0)]);
        assert_eq!(of(200, 0.01), [], "two could be missing by chance");
        assert_eq!(of(400, 0.9), [("calm", 40.0)]);
        let both = Predictions::new([0.6, 0.4, 0.4, 0.6].repeat(50), 2);
        assert_eq!(never_given(&classes, &both), []);
    }
}
