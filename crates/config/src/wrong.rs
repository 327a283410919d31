//! What can be wrong with a setting, with a change of one, or with what settings name, as data. What to do about it is said beside it.

use stlf_data::features::NotNumbers;

use crate::own_data::list;

/// What is wrong, one sentence each.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Wrong {
    /// Text that cannot be read, as its parser says it.
    #[error("{0}")]
    Unreadable(String),
    /// A change that the configuration cannot have, as its parser says it.
    #[error("{change}: {reason}")]
    Change {
        /// The change, KEY=VALUE.
        change: String,
        /// Why it cannot be.
        reason: String,
    },
    /// A change without a key or a value.
    #[error("{0:?} is not a setting")]
    NoChange(String),
    /// A change with a quote that is not closed.
    #[error("{0:?} has a quote that is not closed")]
    OpenQuote(String),
    /// A change of a key within something that has no keys.
    #[error("{key}: {part} is not a table")]
    NoTable {
        /// The whole key.
        key: String,
        /// The part of it that has no keys.
        part: String,
    },
    /// The name of a device by which no file can be called, cut where it is long.
    #[error("no file can be called by the name of the device {0:?}")]
    Name(String),
    /// A scale that a device with its own rows alone cannot know.
    #[error(
        "data.standardise: {0:?} needs the rows of all devices, but this device has only its own"
    )]
    NeedsFleet(&'static str),
    /// A partition does not have this device.
    #[error("partition: {devices} devices, none at place {place}")]
    NoPlace {
        /// How many devices it has.
        devices: usize,
        /// The place of the device in the roster.
        place: usize,
    },
    /// No answer has a label.
    #[error("no row has a label")]
    NoAnswer,
    /// An answer is about something that is no number of a sample.
    #[error("{0:?} is not the number of a sample")]
    NoSample(String),
    /// An answer is about a sample that the data do not have.
    #[error("there is no sample {sample}: the data has {samples}")]
    Beyond {
        /// The number of the sample.
        sample: usize,
        /// How many samples there are.
        samples: usize,
    },
    /// An answer that is no class.
    #[error("{0:?} is not a class of the data")]
    NoClass(String),
    /// An answer about a sample that has another label.
    #[error("sample {0} has another label already")]
    TwoLabels(usize),
    /// No column of a table can be a feature.
    #[error("no column is a number in every row: {}", list(.0))]
    NoNumbers(Vec<NotNumbers>),
    /// No row of a table has a label.
    #[error("column {column:?}: no row has a label")]
    NoLabel {
        /// The column of labels.
        column: String,
    },
    /// All rows of a table have the same label.
    #[error("column {column:?}: all labels are {class:?}: there is nothing to learn")]
    OneClass {
        /// The column of labels.
        column: String,
        /// The label.
        class: String,
    },
    /// All rows of a table are of one device.
    #[error("column {column:?} names one device only: there is nothing to plan")]
    OneDevice {
        /// The column of devices.
        column: String,
    },
    /// All pictures are in the folder of one device.
    #[error("there is one device only: there is nothing to plan")]
    OneFolder,
    /// No picture is in the folder of a class.
    #[error("no picture has a label")]
    NoLabeledPicture,
}
