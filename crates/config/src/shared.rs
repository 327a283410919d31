//! What must be the same on all devices of a fleet, of a configuration and of the data that it names.

use stlf_data::Shape;
use stlf_data::features::{self, Scale};
use stlf_method::divergence;
use toml::Value;

use crate::{Config, Error, Noise};

/// The sections that all devices follow. `[data]`, `[partition]` and `[node]` are each device's own, and `[compare]` is for the simulator.
const SECTIONS: [&str; 5] = ["training", "divergence", "energy", "planner", "transfer"];

/// The name of the setting that lists all classes.
pub const CLASSES: &str = "data.classes";

impl Config {
    /// Returns everything that must be the same everywhere, by name, as it takes effect: a default that is written out is no
    /// difference. Samples that are rows of a table have the names of their columns.
    ///
    /// # Errors
    /// Settings that cannot be written as TOML.
    pub fn shared(
        &self,
        shape: Shape,
        scale: Scale,
        columns: Option<&[String]>,
        classes: &[String],
        seed: u64,
    ) -> Result<Vec<(String, String)>, Error> {
        let mut settings =
            vec![("seeds".to_owned(), seed.to_string()), (CLASSES.to_owned(), classes.join(", "))];
        if columns.is_some() {
            let windows = self.data.windows();
            let length = windows.map_or("none".to_owned(), |windows| windows.length.to_string());
            settings.push(("data.window".to_owned(), length));
            let stride = windows.map(|windows| windows.stride.to_string());
            settings.extend(stride.map(|stride| ("data.stride".to_owned(), stride)));
        }
        // Where columns differ, so may the shape, and the columns say which.
        settings.extend(columns.map(|columns| ("data.columns".to_owned(), columns.join(", "))));
        settings.push(("data.shape".to_owned(), shape.to_string()));
        if columns.is_some() {
            settings.push(("data.standardise".to_owned(), scale.name().to_owned()));
        }
        let table = in_effect(self, shape).to_table()?;
        for section in SECTIONS {
            if let Some(value) = table.get(section) {
                flatten(section, value, &mut settings);
            }
        }
        // Where these differ, so do others that follow from them, and they are the ones to name.
        let first =
            ["divergence.estimator", "training.model", "training.augment", "planner.all-links"];
        let place = |name: &str| first.iter().position(|f| *f == name).unwrap_or(first.len());
        settings.sort_by_key(|(name, _)| place(name));
        Ok(settings)
    }

    /// The names of the features in their order; `None` where samples are pictures.
    ///
    /// # Errors
    /// A table of features that cannot be read.
    pub fn feature_columns(&self) -> Result<Option<Vec<String>>, Error> {
        let Some(table) = self.data.table() else {
            return Ok(None);
        };
        Ok(Some(features::columns(table, &self.data.table_options())?))
    }
}

/// With the defaults of what is left out, and without what each device accepts for itself.
fn in_effect(config: &Config, shape: Shape) -> Config {
    let mut config = config.clone();
    config.training.augment = Some(config.training.augment(shape));
    config.training.steps = Some(config.training.steps(shape));
    let training = &mut config.training;
    (training.learner, training.learner_env, training.learner_disk) = (None, Vec::new(), None);
    config.divergence = config.divergence.by(config.divergence.estimator());
    let embedding = config.data.embedding();
    let measuring = &mut config.divergence;
    measuring.accept = None;
    if let Some(Noise::Always(privacy)) = &mut measuring.privacy {
        privacy.budget = None;
    }
    match measuring.settings(embedding, shape) {
        divergence::Settings::Discriminant(settings) => {
            measuring.features = Some(settings.features)
        }
        divergence::Settings::Sketch(settings) => {
            measuring.features = Some(settings.features);
            measuring.bandwidth = settings.bandwidth.known();
            if !settings.publishes_covariance() {
                measuring.privacy = Some(measuring.privacy.unwrap_or(Noise::Auto));
            }
        }
        divergence::Settings::Classifier(settings) => {
            measuring.rounds = Some(settings.rounds);
            measuring.steps = Some(settings.steps);
            measuring.repeats = Some(settings.repeats);
        }
    }
    let weights = config.planner.weights();
    config.planner.phi_s = Some(weights.source);
    config.planner.phi_t = Some(weights.target);
    config.planner.phi_e = Some(weights.energy);
    config.planner.handovers = Some(config.planner.hands_on());
    config.planner.calibration = Some(config.planner.calibration.unwrap_or(1.0));
    config.planner.strangers = Some(config.strangers(shape));
    config.planner.all_links = Some(config.planner.sends_all());
    config.planner.liars = Some(config.planner.liars.unwrap_or_default());
    config.planner.examiners = Some(config.planner.examiners.unwrap_or(true));
    config
}

fn flatten(name: &str, value: &Value, settings: &mut Vec<(String, String)>) {
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                flatten(&format!("{name}.{key}"), value, settings);
            }
        }
        Value::String(text) => settings.push((name.to_owned(), text.clone())),
        other => settings.push((name.to_owned(), other.to_string())),
    }
}
