//! `stlf-models/1`: what a device with a learner of the user's ended with. Who predicts with it is that learner; the files that it names lie beside it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stlf_planning::Role;

use super::document::{Kind, parse};
use super::error::Error;
use super::mixture::{CombineEntry, ExpectedEntry, FileEntry, MemberEntry, StudentEntry};

const KIND: Kind = Kind { format: "stlf-models/1", earlier: &[], noun: "list of models" };

/// The models of a device whose learner is a program or a class of the user's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schemars(title = "stlf-models/1")]
pub struct ModelsFile {
    /// The version of this format.
    pub format: ModelsFormat,
    /// The device whose models they are.
    pub device: String,
    /// Its role in the plan. A source has its own model.
    pub role: Role,
    /// The epoch that they come from; absent in a simulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// The seed of the simulation that they come from; absent on a real device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The name and version of the learner whose models they are.
    pub learner: String,
    /// The names of the classes, in the order of the probabilities.
    pub classes: Vec<String>,
    /// How several models become one.
    pub combine: CombineEntry,
    /// The models with their weights. What counts is a weight's share of the sum.
    pub members: Vec<MemberEntry>,
    /// The student that the learner trained, if the device uses one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub student: Option<StudentEntry>,
    /// The accuracy that the device may expect on its own samples, if it is a target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<ExpectedEntry>,
    /// The plan that the device followed, `stlf-plan/2`.
    pub plan: FileEntry,
}

/// The version of the format of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ModelsFormat {
    /// The only one so far.
    #[serde(rename = "stlf-models/1")]
    V1,
}

impl ModelsFile {
    /// Reads a list of models.
    ///
    /// # Errors
    /// Says what is wrong, where, and what to do about it.
    pub fn read(bytes: &[u8]) -> Result<ModelsFile, Error> {
        parse(&KIND, || Ok(serde_json::Deserializer::from_slice(bytes)))
    }
}
