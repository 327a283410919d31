//! Labels that somebody gave to samples that `stlf ask` named.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use stlf_data::Class;
use stlf_data::words::nearest;
use stlf_method::known::Known;

use crate::fleet::{DeviceData, Fleet};
use crate::{Error, Wrong};

/// A table of answers: columns `sample` and `label`, perhaps `device`, and others that are not looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Answers {
    path: PathBuf,
    rows: Vec<Answer>,
}

/// An answer that counts for nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unheard {
    /// Its line in the table, the header being line 1.
    pub line: usize,
    /// The device that it names; empty if it names none.
    pub device: String,
    /// The sample's place in the data, from 0.
    pub sample: usize,
    /// Whether there is such a device, which does not hold the sample then.
    pub is_known: bool,
}

impl fmt::Display for Unheard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unheard { line, device, sample, is_known } = self;
        match is_known {
            _ if device.is_empty() => write!(f, "line {line}: no device holds sample {sample}"),
            true => write!(f, "line {line}: {device} does not hold sample {sample}"),
            false => write!(f, "line {line}: there is no device {device}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Answer {
    line: usize,
    device: String,
    sample: usize,
    class: Class,
}

#[derive(Deserialize)]
struct Row {
    #[serde(default)]
    device: String,
    sample: String,
    label: String,
}

/// Whether a file is a table of questions of which somebody has answered some.
pub fn has_answers(path: &Path) -> bool {
    let Ok(text) = std::fs::read(path) else { return false };
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(&text[..]);
    reader.deserialize::<Row>().any(|row| row.is_ok_and(|row| !row.label.is_empty()))
}

impl Answers {
    /// Reads the answers of a table, in which a label is the name of a class; rows without a label are questions, not answers.
    ///
    /// # Errors
    /// A table that cannot be read or has no answer, or a label that is no class.
    pub fn read(path: &Path, classes: &[String]) -> Result<Answers, Error> {
        let text = std::fs::read(path).map_err(Error::file(path))?;
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(&text[..]);
        let mut rows = Vec::new();
        // The head is the first line.
        for (at, row) in reader.deserialize().enumerate() {
            let line = at + 2;
            let row: Row = row
                .map_err(|e| wrong(path, Some(line), Wrong::Unreadable(e.to_string()), COLUMNS))?;
            if row.label.is_empty() {
                continue;
            }
            let Ok(sample) = row.sample.parse() else {
                return Err(wrong(path, Some(line), Wrong::NoSample(row.sample), COLUMNS));
            };
            let Some(class) = classes.iter().position(|class| *class == row.label) else {
                let names = classes.iter().map(String::as_str);
                let likely =
                    nearest(&row.label, names).map(|class| format!("did you mean {class}?"));
                let hint = likely.unwrap_or_else(|| format!("there are: {}", classes.join(", ")));
                return Err(wrong(path, Some(line), Wrong::NoClass(row.label), &hint));
            };
            rows.push(Answer { line, device: row.device, sample, class: class as Class });
        }
        if rows.is_empty() {
            return Err(wrong(path, None, Wrong::NoAnswer, "fill in the column label"));
        }
        Ok(Answers { path: path.to_owned(), rows })
    }

    /// The answers that a device has about its samples of a data set, by their place among them: rows with its name, or with none. Some samples
    /// may have a label already, which an answer must not contradict. What another device was told is not this one's, also where both hold the
    /// sample.
    ///
    /// # Errors
    /// Two labels for one sample.
    pub fn of(
        &self,
        device: &str,
        places: &[usize],
        labeled: &[Known],
    ) -> Result<Vec<Known>, Error> {
        let labels: HashMap<usize, Class> = labeled.iter().copied().collect();
        let mut known: Vec<Known> = Vec::new();
        for row in &self.rows {
            if !row.device.is_empty() && row.device != device {
                continue;
            }
            let Some(at) = places.iter().position(|place| *place == row.sample) else { continue };
            let earlier = known.iter().find(|(sample, _)| *sample == at).map(|(_, class)| class);
            match labels.get(&at).or(earlier) {
                None => known.push((at, row.class)),
                Some(same) if *same == row.class => {}
                Some(_) => {
                    let what = Wrong::TwoLabels(row.sample);
                    return Err(wrong(&self.path, Some(row.line), what, "remove one of them"));
                }
            }
        }
        known.sort_unstable();
        Ok(known)
    }

    /// Those that no device of a fleet hears, since they are about samples that it does not hold.
    pub fn unheard(&self, fleet: &Fleet) -> Vec<Unheard> {
        let is_of =
            |row: &Answer, device: &DeviceData| row.device.is_empty() || row.device == device.name;
        let unheard = self.rows.iter().filter_map(|row| {
            let mut devices = fleet.devices.iter().filter(|device| is_of(row, device)).peekable();
            let is_known = devices.peek().is_some();
            let is_heard = devices.any(|device| device.places.contains(&row.sample));
            let Answer { line, ref device, sample, .. } = *row;
            (!is_heard).then(|| Unheard { line, device: device.clone(), sample, is_known })
        });
        unheard.collect()
    }

    /// Refuses answers about samples that a data set of so many does not have.
    ///
    /// # Errors
    /// Names the first of them.
    pub fn check(&self, samples: usize) -> Result<(), Error> {
        let Some(row) = self.rows.iter().find(|row| row.sample >= samples) else { return Ok(()) };
        let what = Wrong::Beyond { sample: row.sample, samples };
        Err(wrong(&self.path, Some(row.line), what, "samples are counted from 0"))
    }
}

const COLUMNS: &str =
    "an answer has the columns sample, a number from 0, and label; `stlf ask` writes such a table";

fn wrong(path: &Path, line: Option<usize>, what: Wrong, hint: &str) -> Error {
    Error::Setting { path: path.to_owned(), line, what, hint: Some(hint.to_owned()) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use stlf_data::Shape;
    use stlf_data::features::Scale;
    use stlf_data::scaling::Scaling;

    use super::*;

    fn answers(text: &str) -> Result<Answers, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("answers.csv");
        std::fs::write(&path, text).unwrap();
        Answers::read(&path, &["calm".to_owned(), "storm".to_owned()])
    }

    #[test]
    fn answers_are_those_of_the_device_and_its_samples() {
        let text = "device,sample,class,label\na,7,calm,storm\nb,7,calm,calm\n,9,calm, calm \na,8,storm,\n";
        let answers = answers(text).unwrap();
        let places = [9, 8, 7];
        assert_eq!(answers.of("a", &places, &[]).unwrap(), [(0, 0), (2, 1)]);
        assert_eq!(answers.of("b", &places, &[]).unwrap(), [(0, 0), (2, 0)]);
        assert_eq!(answers.of("a", &[1, 2], &[]).unwrap(), []);
        // A label that is there already is no news.
        assert_eq!(answers.of("a", &places, &[(0, 0)]).unwrap(), [(2, 1)]);
        answers.check(10).unwrap();
        let message = answers.check(9).unwrap_err().to_string();
        assert!(message.ends_with("line 4: there is no sample 9: the data has 9"), "{message}");
    }

    #[test]
    fn answers_that_count_for_nobody_are_told_with_the_reason() {
        let device = |name: &str, places: &[usize]| DeviceData {
            name: name.to_owned(),
            places: places.to_vec(),
            inputs: vec![0.0; places.len()].into(),
            scaling: Scaling::Features { columns: Vec::new(), units: Vec::new(), series: None },
            labels: Vec::new(),
            unlabeled: places.len(),
            answers: Vec::new(),
            truth: None,
        };
        let devices = vec![device("a", &[7, 8]), device("b", &[8, 9])];
        let shape = Shape { channels: 1, height: 1, width: 1 };
        let fleet = Fleet { devices, shape, scale: Scale::None };
        let text = "device,sample,label\na,7,calm\na,9,calm\nc,7,calm\n,9,storm\n,1,calm\nb,7,\n";
        let told: Vec<String> =
            answers(text).unwrap().unheard(&fleet).iter().map(Unheard::to_string).collect();
        let expected = [
            "line 3: a does not hold sample 9",
            "line 4: there is no device c",
            "line 6: no device holds sample 1",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_line() {
        let refused = |text: &str| {
            let error = answers(text).unwrap_err();
            (error.to_string(), error.hint().unwrap_or_default().to_owned())
        };
        let (message, hint) = refused("sample,label\n1,calm\n2,strom\n");
        assert!(message.ends_with("line 3: \"strom\" is not a class of the data"), "{message}");
        assert_eq!(hint, "did you mean storm?");
        for empty in ["", "sample,label\n1,\n"] {
            let (message, hint) = refused(empty);
            assert!(message.ends_with("answers.csv: no row has a label"), "{message}");
            assert_eq!(hint, "fill in the column label");
        }
        let (message, hint) = refused("sample,label\nx,calm\n");
        assert!(message.ends_with("line 2: \"x\" is not the number of a sample"), "{message}");
        assert_eq!(hint, COLUMNS);
        let (message, _) = refused("sample,labels\n1,calm\n");
        assert!(message.contains("missing field `label`"), "{message}");
        let (message, hint) = refused("label\ncalm\n");
        assert!(message.contains("line 2: "), "{message}");
        assert_eq!(hint, COLUMNS);
        let twice = answers("sample,label\n1,calm\n1,storm\n").unwrap();
        let message = twice.of("a", &[0, 1], &[]).unwrap_err().to_string();
        assert!(message.ends_with("line 3: sample 1 has another label already"), "{message}");
        let message = twice.of("a", &[1], &[(0, 1)]).unwrap_err().to_string();
        assert!(message.ends_with("line 2: sample 1 has another label already"), "{message}");
    }
}
