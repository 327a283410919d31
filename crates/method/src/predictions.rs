//! What a target makes of its samples, as the rows of a table; the simulator and real devices write the same.

use serde::{Deserialize, Serialize};
use stlf_data::Class;
use stlf_learn::evaluate::Predictions;

/// What a target makes of one of its samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PredictionRow {
    /// The sample's place in the data set, from 0.
    pub sample: usize,
    /// The likeliest class.
    pub class: String,
    /// Its probability.
    pub probability: f32,
}

impl PredictionRow {
    /// What is made of the samples at these places, sorted by place.
    pub fn all(
        predictions: &Predictions,
        places: &[usize],
        classes: &[String],
    ) -> Vec<PredictionRow> {
        let predicted = predictions.classes().zip(predictions.probabilities()).zip(places);
        let row = |((class, probabilities), &sample): ((Class, &[f32]), &usize)| PredictionRow {
            sample,
            class: classes[usize::from(class)].clone(),
            probability: probabilities[usize::from(class)],
        };
        let mut rows: Vec<PredictionRow> = predicted.map(row).collect();
        rows.sort_by_key(|row| row.sample);
        rows
    }
}
