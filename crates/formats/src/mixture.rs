//! `stlf-mixture/1`: what a device ended with, complete enough to put it to work: models, their weights, and how a sample becomes an input.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stlf_planning::Role;

use super::document::{Kind, parse};
use super::error::Error;

const KIND: Kind = Kind { format: "stlf-mixture/1", earlier: &[], noun: "mixture" };

/// A device's mixture. The files that it names lie beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schemars(title = "stlf-mixture/1")]
pub struct MixtureFile {
    /// The version of this format.
    pub format: MixtureFormat,
    /// The device whose mixture it is.
    pub device: String,
    /// Its role in the plan. A source's mixture is its own model.
    pub role: Role,
    /// The epoch that it comes from; absent in a simulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// The seed of the simulation that it comes from; absent on a real device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The names of the classes, in the order of the network's outputs.
    pub classes: Vec<String>,
    /// How a sample becomes an input.
    pub input: InputEntry,
    /// The layers of the network, which is the same for all models.
    pub network: Vec<LayerEntry>,
    /// How several models become one.
    pub combine: CombineEntry,
    /// The shares of the classes at the device, by which predictions are corrected; only with `corrected`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class_shares: Option<Vec<f64>>,
    /// The models with their weights. What counts is a weight's share of the sum.
    pub members: Vec<MemberEntry>,
    /// A model that the device trained for itself; absent where it uses none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub student: Option<StudentEntry>,
    /// The accuracy that the device may expect on its own samples, without a label; absent for a source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<ExpectedEntry>,
    /// The plan that the device followed, `stlf-plan/2`.
    pub plan: FileEntry,
}

/// The version of the format of mixtures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MixtureFormat {
    /// The only one so far.
    #[serde(rename = "stlf-mixture/1")]
    V1,
}

/// How a sample becomes an input of the network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with shape and scaling")]
pub struct InputEntry {
    /// Channels, rows and columns of an input; a row of a table has one channel and one row, a window of a series has one row and as many
    /// columns as readings.
    pub shape: [usize; 3],
    /// What is done to a sample's numbers.
    pub scaling: ScalingEntry,
    /// The columns of a table that are its features, or the channels of a series, in their order; absent for pictures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<String>>,
    /// What windows are cut from; absent where samples are rows or pictures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<SeriesEntry>,
    /// With `units`: the unit of every column. Where there are two lists, the inputs by the second follow those by the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<Vec<UnitEntry>>,
}

/// How a table of readings in the order of time is cut into windows, each of them a sample: channel by channel, in the order of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with window and stride")]
pub struct SeriesEntry {
    /// The readings of a window, at least 1.
    pub window: usize,
    /// The readings from the beginning of a window to that of the next, at least 1.
    pub stride: usize,
    /// The column of times, by which gaps are found; absent where no reading is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The column that names the device, where a table has several; windows lie within one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

/// What is done to the numbers of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScalingEntry {
    /// Pixels 0 to 255 become −1 to 1.
    Pixels,
    /// Features become (value − centre) / deviation, within the limit.
    Units,
    /// Features stay as they are.
    None,
}

/// How one feature becomes an input.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with centre, deviation and limit")]
pub struct UnitEntry {
    /// What becomes 0.
    pub centre: f64,
    /// The distance from it that becomes 1; inputs are 0 where it is at most 1e-12 of the centre.
    pub deviation: f64,
    /// Inputs end here, on both sides of 0; absent where they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
}

/// A layer, with PyTorch's meaning.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum LayerEntry {
    /// Filters of so many rows and columns, stride 1, no padding.
    Conv2d {
        /// The number of filters.
        channels: usize,
        /// Rows and columns of a filter.
        kernel: usize,
    },
    /// The largest of every 2 × 2 pixels.
    MaxPool2d,
    /// Filters of so many readings of a series, stride 1, no padding.
    Conv1d {
        /// The number of filters.
        channels: usize,
        /// Readings of a filter.
        kernel: usize,
    },
    /// The largest of every two readings of a series.
    MaxPool1d,
    /// max(x, 0) of every number.
    Relu,
    /// Does nothing once the network is trained.
    Dropout {
        /// How often a number was zero in training.
        p: f32,
    },
    /// Does nothing once the network is trained.
    Dropout2d {
        /// How often a channel was zero in training.
        p: f32,
    },
    /// All inputs to so many numbers.
    Linear {
        /// How many numbers come out.
        outputs: usize,
    },
}

/// How several models become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CombineEntry {
    /// Probabilities are mixed by their weights.
    Predictions,
    /// Each model's probabilities are multiplied by the class shares and sum to 1 again; then they are mixed.
    Corrected,
    /// The parameters are averaged by their weights.
    Parameters,
}

/// A model of the mixture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with name, weight, file and sha256")]
pub struct MemberEntry {
    /// The device whose model it is.
    pub name: String,
    /// Its weight, above 0.
    pub weight: f64,
    /// The name of its file, safetensors with PyTorch's names and layouts.
    pub file: String,
    /// The SHA-256 of the file, in hexadecimal.
    pub sha256: String,
}

/// An accuracy with its 90 % interval, each from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with accuracy, low and high")]
pub struct ExpectedEntry {
    /// The expected accuracy.
    pub accuracy: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// A model that the device trained for itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with file, sha256 and share")]
pub struct StudentEntry {
    /// The name of its file, safetensors with PyTorch's names and layouts.
    pub file: String,
    /// The SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// Its share of the device's predictions, above 0 and at most 1; the rest is that of all members. Absent: a half.
    #[serde(default = "half", skip_serializing_if = "is_half")]
    pub share: f64,
}

fn half() -> f64 {
    0.5
}

fn is_half(share: &f64) -> bool {
    *share == half()
}

/// A file beside this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with file and sha256")]
pub struct FileEntry {
    /// Its name.
    pub file: String,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
}

impl MixtureFile {
    /// Reads a mixture.
    ///
    /// # Errors
    /// Says what is wrong, where, and what to do about it.
    pub fn read(bytes: &[u8]) -> Result<MixtureFile, Error> {
        parse(&KIND, || Ok(serde_json::Deserializer::from_slice(bytes)))
    }
}
