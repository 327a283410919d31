//! The lines of `stlf-learner/1`: one JSON object each, requests of stlf and answers of the learner.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The name and version of what is spoken.
pub const PROTOCOL: &str = "stlf-learner/1";

/// A line that stlf writes. All files are in the folder of the greeting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// The number of the request, which its answers have as well.
    pub id: u64,
    /// What is asked for.
    #[serde(flatten)]
    pub ask: Ask,
}

/// What stlf asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    /// The first request.
    Hello {
        /// The name and version of what is spoken, `stlf-learner/1`.
        protocol: String,
        /// The folder of all files, which belongs to stlf and the learner alone.
        folder: String,
        /// A seed for everything that the learner draws before it is asked to train.
        seed: u64,
    },
    /// Write what there is of samples: `labels` (I64, n; −1 for a sample without a label) and `features` (F32, n × d).
    Describe {
        /// The file to write.
        to: String,
    },
    /// Train a model and write it.
    Train {
        /// A file with the samples to train on, by their numbers: `rows` (I64).
        rows: String,
        /// A file with the model to go on from; null for the learner's own first values.
        start: Option<String>,
        /// The file to write.
        to: String,
        /// A seed for everything that is drawn.
        seed: u64,
    },
    /// Train a student and write it. Only a learner that says that it `adapts` is asked for this.
    Adapt {
        /// A file with the samples to train on, by their numbers: `rows` (I64). Some may have labels.
        rows: String,
        /// A file with what the mixture of received models says of each of them: `probabilities` (F32, samples × classes).
        teacher: String,
        /// A file with the model to go on from, which is one of those that were received.
        start: String,
        /// The file to write.
        to: String,
        /// A seed for everything that is drawn.
        seed: u64,
    },
    /// Write the `probabilities` (F32, samples × classes) that a model gives some samples.
    Predict {
        /// A file with the model.
        model: String,
        /// A file with the samples, by their numbers: `rows` (I64).
        rows: String,
        /// If it is there: alter each sample a little before it is predicted, in a way that is drawn from this seed and does not depend on
        /// the model. Only a learner that says that it `adapts` is asked for this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        altered: Option<u64>,
        /// The file to write.
        to: String,
    },
    /// Give up a request that is under way. It has no answer of its own; the request is answered as usual, or with `cancelled`.
    Cancel {
        /// The number of that request.
        request: u64,
    },
    /// End. It has no answer. The end of standard input means the same.
    Stop {},
}

impl Ask {
    /// Returns what the learner does meanwhile, for messages.
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            Ask::Hello { .. } => "greet",
            Ask::Describe { .. } => "describe its samples",
            Ask::Train { .. } => "train",
            Ask::Adapt { .. } => "train a student",
            Ask::Predict { altered: None, .. } => "predict",
            Ask::Predict { altered: Some(_), .. } => "predict altered samples",
            Ask::Cancel { .. } => "give up",
            Ask::Stop {} => "end",
        }
    }
}

/// A line that the learner writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reply {
    /// The number of the request.
    pub id: u64,
    /// What the learner says of it.
    #[serde(flatten)]
    pub answer: Answer,
}

/// What a learner says of a request. All but `progress` end it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It is done.
    Ok(#[schemars(with = "Done")] Value),
    /// It is under way. A learner that says nothing for a minute is taken for dead.
    Progress {
        /// So much is done.
        done: u64,
        /// Of so much; 0 if that is not known.
        total: u64,
    },
    /// It was given up, as asked for.
    Cancelled {},
    /// It cannot be done, and the learner is ready for the next request.
    Error {
        /// Why not, for people.
        message: String,
    },
}

/// What `ok` says: of a greeting, of samples, or nothing.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum Done {
    Welcome(Welcome),
    Described(Described),
    Nothing {},
}

/// What a learner answers to the greeting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Welcome {
    /// The name and version of what is spoken, `stlf-learner/1`.
    pub protocol: String,
    /// The learner's name and version, the same on all devices of a fleet.
    pub name: String,
    /// The names of all classes, the same on all devices of a fleet. Labels are numbers of classes, from 0.
    pub classes: Vec<String>,
    /// The tensors of a model with their shapes, the same on all devices of a fleet. All are F32.
    pub model: BTreeMap<String, Vec<usize>>,
    /// Whether it can train students: `adapt`, and `predict` of altered samples. Absent: no.
    #[serde(default, skip_serializing_if = "is_not")]
    pub adapts: bool,
}

fn is_not(adapts: &bool) -> bool {
    !adapts
}

/// What a learner answers when it has described its samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Described {
    /// How many samples there are.
    pub samples: usize,
}

/// A line of either side.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(title = "stlf-learner/1")]
#[allow(dead_code, reason = "only its schema is used")]
enum Line {
    Request(Request),
    Reply(Reply),
}

/// Returns the JSON schema of every line.
pub fn schema() -> Value {
    schemars::schema_for!(Line).to_value()
}
