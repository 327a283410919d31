//! What to run, as a TOML file. Every key has a default; unknown ones are refused.

pub mod answers;
mod changes;
mod checks;
mod compare;
mod data;
mod divergence;
mod error;
mod fada;
pub mod fleet;
mod learners;
mod node;
pub mod own_data;
mod sections;
mod shared;
mod standardise;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
mod wrong;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest, Sha256};
use stlf_data::partition::Scheme;
use stlf_data::words::in_words;
use stlf_data::{Dataset, Shape};
use stlf_learn::{Augment, Layout, Spec};
use stlf_method::local_training;
use stlf_planning::energy::PAPER_MODEL_BITS;
use stlf_planning::problem::{Preset, Strangers};

pub use crate::changes::changes;
pub use compare::{Compare, Fada};
pub use data::Data;
pub use divergence::{Accepted, Divergence, Estimator, Noise, Privacy};
pub use error::Error;
pub use fada::Settings as FadaSettings;
pub use node::{Node, Search};
pub use sections::{Energy, EnergyModel, Model, Planner, Training, Transfer};
pub use shared::CLASSES;
pub use wrong::Wrong;

/// The fewest readings of a window that the network for series takes.
const SHORTEST_WINDOW: usize = 8;

/// A file with every key, its default and its meaning.
pub const TEMPLATE: &str = include_str!("template.toml");

/// The whole configuration of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// One run of everything per seed.
    pub seeds: Vec<u64>,
    /// `[data]`: where samples come from.
    pub data: Data,
    /// How they are dealt to devices; left out, as [`Scheme::for_data`] says.
    #[serde(deserialize_with = "scheme", skip_serializing_if = "Option::is_none")]
    pub partition: Option<Scheme>,
    /// `[training]`: how devices train their models.
    pub training: Training,
    /// How the difference of two devices' data is measured.
    pub divergence: Divergence,
    /// `[energy]`: what it costs to send a model over a link.
    pub energy: Energy,
    /// How roles and links are chosen.
    pub planner: Planner,
    /// What targets do with the models that they receive.
    pub transfer: Transfer,
    /// `[compare]`: the methods that are compared.
    pub compare: Compare,
    /// How real devices find each other.
    #[serde(skip_serializing_if = "Node::is_default")]
    pub node: Node,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            seeds: (0..5).collect(),
            data: Data::default(),
            partition: None,
            training: Training::default(),
            divergence: Divergence::default(),
            energy: Energy::default(),
            planner: Planner::default(),
            transfer: Transfer::default(),
            compare: Compare::default(),
            node: Node::default(),
        }
    }
}

impl Config {
    /// Reads a configuration. Errors name the file, the line and the key, and what was likely meant.
    pub fn read(path: &Path) -> Result<Config, Error> {
        let text = std::fs::read_to_string(path).map_err(Error::file(path))?;
        Config::parse(&text, path)
    }

    /// Reads a configuration from text; `path` is only named in errors.
    pub fn parse(text: &str, path: &Path) -> Result<Config, Error> {
        let config: Config = toml::from_str(text).map_err(|e| {
            let line = e.span().map(|span| text[..span.start].matches('\n').count() + 1);
            let message = in_words(e.message());
            let hint = error::suggestion(&message);
            let what = Wrong::Unreadable(message);
            Error::Setting { path: path.to_owned(), line, what, hint }
        })?;
        config.check(path)?;
        Ok(config)
    }

    /// Returns a hash of the whole configuration but for answers: the same run goes on with these.
    pub fn hash(&self) -> Result<String, Error> {
        let digest = Sha256::digest(self.without_answers().to_toml()?.as_bytes());
        Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The same configuration before anybody answered.
    pub fn without_answers(&self) -> Config {
        let data = Data { answers: None, ..self.data.clone() };
        Config { data, ..self.clone() }
    }

    /// The text of the whole configuration, defaults included.
    pub fn to_toml(&self) -> Result<String, Error> {
        toml::to_string_pretty(self).map_err(|e| Error::Setting {
            path: PathBuf::from("config.toml"),
            line: None,
            what: Wrong::Unreadable(e.to_string()),
            hint: None,
        })
    }

    fn to_table(&self) -> Result<toml::Table, Error> {
        toml::Table::try_from(self).map_err(|e| changes::unreadable(&e))
    }

    /// Returns how these samples are dealt to devices.
    pub fn scheme(&self, data: &Dataset) -> Scheme {
        self.partition.clone().unwrap_or_else(|| Scheme::for_data(data))
    }

    /// M, the bits that a model of this network is taken to have where energy is counted.
    pub fn model_bits(&self, of: &impl AsRef<Layout>) -> f64 {
        let of_preset = match self.planner.preset {
            Preset::Paper => PAPER_MODEL_BITS,
            Preset::Balanced => 8.0 * model_bytes(of) as f64,
        };
        self.energy.model_bits.unwrap_or(of_preset)
    }

    /// Returns the network that the configuration names, for inputs of this shape.
    ///
    /// # Errors
    /// No class is known, or the network does not take such inputs.
    pub fn network(&self, shape: Shape, classes: usize) -> Result<Spec, stlf_learn::Error> {
        match self.training.model {
            _ if classes == 0 => {
                let message = "no sample has a label, so that no class is known; \
                               name them, the same on all devices: data.classes = [\"a\", \"b\"]";
                Err(stlf_learn::Error::Training(message.to_owned()))
            }
            Model::Cnn if self.data.windows().is_some() => {
                if shape.width < SHORTEST_WINDOW {
                    let message = format!(
                        "the cnn takes windows of at least {SHORTEST_WINDOW} readings, not {}; \
                         use a longer data.window, or model = \"mlp\"",
                        shape.width
                    );
                    return Err(stlf_learn::Error::Training(message));
                }
                Spec::series_cnn(shape.channels, shape.width, classes)
            }
            Model::Cnn if !Spec::is_for_cnn(shape) => {
                let other = match shape.is_picture() {
                    true => {
                        "set data.image-size = 28 to resize them (or 32, 64, 96, which take longer), or use model = \"mlp\""
                    }
                    false => "use model = \"mlp\"",
                };
                let message = format!(
                    "the cnn takes pictures of 28 to 96 pixels a side, not {shape}; {other}"
                );
                Err(stlf_learn::Error::Training(message))
            }
            Model::Cnn => Spec::cnn(shape, classes),
            Model::Mlp => Spec::mlp(shape, classes),
        }
    }

    /// Returns how devices train on their own labels, with inputs of this shape.
    ///
    /// # Errors
    /// Views are asked for, and the inputs are no pictures.
    pub fn training(&self, shape: Shape) -> Result<local_training::Training, stlf_learn::Error> {
        let (descent, steps) = (self.descent(), self.training.steps(shape));
        let augment = self.training.augment(shape);
        augment.check(shape)?;
        Ok(local_training::Training { descent, augment, steps, averaged: false })
    }

    /// What a device gets to which no source is near, with inputs of this shape.
    pub fn strangers(&self, shape: Shape) -> Strangers {
        self.planner.strangers(self.training.augment(shape) != Augment::None)
    }

    /// Returns the settings of gradient descent, as `[training]` has them.
    pub fn descent(&self) -> stlf_learn::Descent {
        let &Training { batch, learning_rate, momentum, weight_decay, .. } = &self.training;
        stlf_learn::Descent { batch, learning_rate, momentum, weight_decay }
    }
}

/// What a model of this network has when it is sent.
pub fn model_bytes(of: &impl AsRef<Layout>) -> u64 {
    (of.as_ref().parameters() * size_of::<f32>()) as u64
}

/// `[partition]`; without a key it is as if it were not there.
fn scheme<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Scheme>, D::Error> {
    let table = toml::Table::deserialize(input)?;
    let read = || Scheme::deserialize(toml::Value::Table(table.clone())).map(Some);
    if table.is_empty() { Ok(None) } else { read() }
        .map_err(|e: toml::de::Error| serde::de::Error::custom(e.message()))
}
