//! Which samples a device would like to have labeled, as a table that somebody can fill in.

use std::path::PathBuf;

use serde::Serialize;
use stlf_learn::evaluate::likeliest;
use stlf_method::ask::ask;
use stlf_method::known::Known;

use crate::{Error, Mixture};

/// A sample that somebody should label.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Question {
    /// The device whose sample it is.
    pub device: String,
    /// The sample's place in the data set, from 0.
    pub sample: usize,
    /// Its file; empty for a row of a table.
    pub file: Option<PathBuf>,
    /// The first row of a window of a series, counted from 0; no column for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<usize>,
    /// The class that the mixture takes for the likeliest.
    pub class: String,
    /// The probability of that class, 0 to 1.
    pub probability: f32,
    /// The class that the mixture takes for the second likeliest.
    pub or: String,
    /// The label, which is to be filled in.
    pub label: String,
}

impl Mixture {
    /// The samples whose labels would tell most, of those with these inputs and places, the most telling one first. The mixture is asked
    /// without the student, which is often too sure.
    ///
    /// # Errors
    /// No model, or inputs of another network.
    pub fn questions(
        &self,
        inputs: &[f32],
        places: &[usize],
        known: &[Known],
        count: usize,
    ) -> Result<Vec<Question>, Error> {
        let predictions = self.of_all_members(inputs)?;
        let question = |at: usize| {
            let probabilities = predictions.of(at);
            let (first, probability) = likeliest(probabilities);
            let mut others = probabilities.to_vec();
            others[usize::from(first)] = -1.0;
            let name = |class: u16| self.classes[usize::from(class)].clone();
            Question {
                device: self.device.clone(),
                sample: places[at],
                file: None,
                row: None,
                class: name(first),
                probability,
                or: name(likeliest(&others).0),
                label: String::new(),
            }
        };
        Ok(ask(&predictions, known, count).into_iter().map(question).collect())
    }
}

/// Questions as CSV.
///
/// # Errors
/// It cannot be written.
pub fn csv(questions: &[Question]) -> Result<Vec<u8>, Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    questions
        .iter()
        .try_for_each(|question| writer.serialize(question))
        .map_err(|e| Error::Mixture(e.to_string()))?;
    writer.into_inner().map_err(|e| Error::Mixture(e.to_string()))
}
