//! The kinds of things that can be wrong with a value, each with what is needed to act on it.

use std::fmt;

use super::Range;
use crate::device::Role;

/// What is wrong with a value. `Display` makes the sentence of it, without the field.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// A number is not what it may be.
    #[error("{}", range.sentence(*value))]
    OutOfRange {
        /// The number.
        value: f64,
        /// What it may be.
        range: Range,
    },
    /// There are more or fewer than there must be.
    #[error("{}", of.sentence(*found, *expected))]
    Length {
        /// How many there are.
        found: usize,
        /// How many there must be.
        expected: usize,
        /// What is counted.
        of: Counted,
    },
    /// Numbers that do not make up whole samples.
    #[error("{numbers} numbers are not samples of {}×{}×{}", shape[0], shape[1], shape[2])]
    NotWhole {
        /// How many numbers there are.
        numbers: usize,
        /// Channels, rows and columns of a sample.
        shape: [usize; 3],
    },
    /// A feature of a sample is not a finite number.
    #[error("gives {value} as feature {feature} of sample {sample}")]
    NotFinite {
        /// The number.
        value: f64,
        /// The sample, counted from 0.
        sample: usize,
        /// The feature, counted from 0.
        feature: usize,
    },
    /// A device has fewer samples than are needed.
    #[error("{message}")]
    TooFewSamples {
        /// How many there are.
        present: u64,
        /// How many are needed at least, different ones where that matters.
        needed: u64,
        /// What cannot be done with so few.
        message: String,
    },
    /// The counts of a device's samples are too large to be added.
    #[error("labeled + unlabeled is too large")]
    TooManySamples {
        /// The count with labels.
        labeled: u64,
        /// The count without labels.
        unlabeled: u64,
    },
    /// What is needed is not there.
    #[error("{message}")]
    Missing {
        /// The sentence that says what is not there.
        message: String,
    },
    /// A name that nothing has.
    #[error("{}", what.sentence(given))]
    Unknown {
        /// What was to have that name.
        what: Named,
        /// The name.
        given: String,
        /// The name that was likely meant.
        meant: Option<String>,
    },
    /// Two devices have the same name.
    #[error("{name:?} is also the name of devices[{first}]")]
    SameName {
        /// The name of both.
        name: String,
        /// The first of the two.
        first: usize,
    },
    /// A device without labeled data was to be a source.
    #[error("{device} has no labeled data and cannot be a source")]
    NoLabels {
        /// The name of the device.
        device: String,
    },
    /// A device was to have two roles.
    #[error("needs {device} to be a {needed}, but it is fixed as a {fixed}")]
    TwoRoles {
        /// The name of the device.
        device: String,
        /// The role that this field needs.
        needed: Role,
        /// The role that the device has.
        fixed: Role,
    },
    /// A device has another role than the one that is needed.
    #[error("is not a {needed}")]
    OtherRole {
        /// The name of the device.
        device: String,
        /// The role that is needed.
        needed: Role,
    },
    /// A link that the problem does not have.
    #[error("there is no link {from} → {to}")]
    NoLink {
        /// The name of the sender.
        from: String,
        /// The name of the receiver.
        to: String,
    },
    /// A link from a device to itself.
    #[error("{device} cannot send to itself")]
    SelfLink {
        /// The name of the device.
        device: String,
    },
    /// Hand-overs in a circle that no plan has.
    #[error(transparent)]
    Ring(#[from] BrokenRing),
    /// A label that is none of the classes.
    #[error("has the label {label}, where {classes} classes are numbered from 0")]
    UnknownClass {
        /// The label.
        label: usize,
        /// How many classes there are.
        classes: usize,
    },
    /// A number that was told is not the one that comes out.
    #[error("{message}")]
    Differs {
        /// The number that was told.
        told: f64,
        /// The number that comes out.
        computed: f64,
        /// What follows from it.
        message: String,
    },
    /// What a field holds excludes what another one holds.
    #[error("{message}")]
    Conflict {
        /// The path of the other field.
        with: String,
        /// Why both cannot be.
        message: String,
    },
    /// Others could learn more of samples than the device allows.
    #[error("{message}")]
    Discloses {
        /// What others could learn.
        message: String,
    },
    /// What no other kind says, such as the message of another library.
    #[error("{message}")]
    Other {
        /// The sentence that says what is wrong.
        message: String,
    },
}

/// What there must be a number of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Counted {
    /// The rows of a matrix, one for each device.
    Rows,
    /// The entries of this row of a matrix, counted from 0.
    EntriesOfRow(usize),
    /// The entries of a list, one for each device.
    Entries,
    /// Matrices, one for each receiver.
    Matrices,
    /// The parameters of a network.
    Parameters,
    /// The parameters of a network, of which a message holds so many.
    MostParameters,
    /// The numbers of a vector.
    Numbers,
    /// The classes of a document, one for each output of its network.
    Classes,
    /// The units of a document, one for each column.
    Units,
    /// The roles of a plan, one for each device.
    Roles,
    /// The devices of a fleet.
    Devices,
}

impl Counted {
    fn sentence(self, found: usize, expected: usize) -> String {
        let rows = if found == 1 { "1 row".into() } else { format!("{found} rows") };
        let entries = if found == 1 { "1 entry".into() } else { format!("{found} entries") };
        match self {
            Counted::Rows => format!("has {rows}, expected {expected}, one per device"),
            Counted::EntriesOfRow(row) => {
                format!("row {} has {entries}, expected {expected}", row + 1)
            }
            Counted::Entries => format!("has {entries}, expected {expected}, one per device"),
            Counted::Matrices => {
                format!("has {found} matrices, expected {expected}, one per receiver")
            }
            Counted::Parameters => format!("{found} parameters for a network of {expected}"),
            Counted::MostParameters => format!("{found} parameters are too many for a message"),
            Counted::Numbers => format!("{found} numbers, not {expected}"),
            Counted::Classes => {
                format!("{found} classes, but the network has {expected} outputs")
            }
            Counted::Units => format!("{found} units for {expected} columns"),
            Counted::Roles => format!("{found} roles for {expected} devices"),
            Counted::Devices => format!("is for {found} devices, expected {expected}"),
        }
    }
}

/// What was to have a name that nothing has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Named {
    /// A device.
    Device,
    /// A method that plans are compared with.
    Method,
    /// A way to combine models.
    Combination,
    /// A column of a table.
    Column,
}

impl Named {
    fn sentence(self, given: &str) -> String {
        match self {
            Named::Device => format!("there is no device {given:?}"),
            Named::Method => format!("there is no method {given:?}"),
            Named::Combination => format!("{given:?} is not a way to combine models"),
            Named::Column => "unknown column".to_owned(),
        }
    }
}

/// What no plan can do with hand-overs in a circle.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BrokenRing {
    /// A ring hands its model on to a source that is not on it.
    Leaves {
        /// The number of a source that the model comes to and that is not on the ring.
        to: usize,
    },
    /// Not exactly one source of a ring sends to targets.
    Senders {
        /// The numbers of the sources on the ring that do.
        senders: Vec<usize>,
    },
}

impl BrokenRing {
    /// Returns the rule that is broken.
    pub fn rule(&self) -> &'static str {
        match self {
            BrokenRing::Leaves { .. } => "a ring hands its model on to a source that is not on it",
            BrokenRing::Senders { .. } => "one source of a ring, its last, sends to targets",
        }
    }
}

impl fmt::Display for BrokenRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.rule())
    }
}

impl std::error::Error for BrokenRing {}
