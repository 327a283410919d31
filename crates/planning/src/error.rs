//! What can be wrong with an input, as data. Outcomes of planning (infeasible, limits) are not errors.

mod range;
mod reason;

use std::fmt;

pub use range::Range;
pub use reason::{BrokenRing, Counted, Named, Reason};

/// An input that cannot be used: which field, what is wrong with it, and what to do.
///
/// ```
/// use stlf_planning::error::{Error, Range, Reason};
///
/// let error = Range::ABOVE_ZERO.check(-1.0, || "energy_epsilon").unwrap_err();
/// assert_eq!(error.field.path, "energy_epsilon");
/// assert_eq!(*error.reason, Reason::OutOfRange { value: -1.0, range: Range::ABOVE_ZERO });
/// assert_eq!(error.to_string(), "energy_epsilon: -1 is not above 0");
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{field}: {reason}")]
#[non_exhaustive]
pub struct Error {
    /// The field that holds what cannot be used.
    pub field: Field,
    /// What is wrong with it. In a box, because every result carries the room for an error.
    pub reason: Box<Reason>,
    /// What the user can do about it, if there is anything to say.
    pub hint: Option<String>,
}

impl Error {
    /// Returns an error about the value of this field, without a hint.
    pub fn new(field: impl Into<Field>, reason: Reason) -> Error {
        Error { field: field.into(), reason: Box::new(reason), hint: None }
    }

    /// Returns an error for which there is only a sentence, such as the message of another library.
    pub fn other(field: impl Into<Field>, message: impl Into<String>) -> Error {
        Error::new(field, Reason::Other { message: message.into() })
    }

    /// Returns the error that what this field needs is not there, with the sentence that says so.
    pub fn missing(field: impl Into<Field>, message: impl Into<String>) -> Error {
        Error::new(field, Reason::Missing { message: message.into() })
    }

    /// Returns the error that a device has no sample, with the sentence that says so.
    pub fn no_samples(field: impl Into<Field>, message: impl Into<String>) -> Error {
        let message = message.into();
        Error::new(field, Reason::TooFewSamples { present: 0, needed: 1, message })
    }

    /// Returns the error that this field excludes what another one holds, with the sentence that says so.
    pub fn conflict(
        field: impl Into<Field>,
        with: impl Into<String>,
        message: impl Into<String>,
    ) -> Error {
        Error::new(field, Reason::Conflict { with: with.into(), message: message.into() })
    }

    /// Returns the same error with a hint on what to do about it.
    pub fn with_hint(mut self, text: impl Into<String>) -> Error {
        self.hint = Some(text.into());
        self
    }

    /// Returns the same error about a field inside this one.
    pub fn inside(mut self, outer: &str) -> Error {
        self.field.path = format!("{outer}.{}", self.field.path);
        self
    }

    /// Returns what the user can do about it, if there is anything to say.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

/// A field of an input, and the devices that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The path of the field, such as `devices[3].labeled`.
    pub path: String,
    /// The name of the device that it is about, those of sender and receiver for a link, or none.
    pub devices: Vec<String>,
}

impl Field {
    /// Returns the field of a device.
    pub fn of_device(path: impl Into<String>, name: impl Into<String>) -> Field {
        Field { path: path.into(), devices: vec![name.into()] }
    }

    /// Returns the field of a link from one device to another.
    pub fn of_link(
        path: impl Into<String>,
        from: impl Into<String>,
        to: impl Into<String>,
    ) -> Field {
        Field { path: path.into(), devices: vec![from.into(), to.into()] }
    }
}

impl From<String> for Field {
    fn from(path: String) -> Field {
        Field { path, devices: Vec::new() }
    }
}

impl From<&str> for Field {
    fn from(path: &str) -> Field {
        path.to_owned().into()
    }
}

/// The path, and who it is about: `devices[3].labeled (camera)`, `divergence[0][4] (A → E)`.
impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        match self.devices.is_empty() {
            true => Ok(()),
            false => write!(f, " ({})", self.devices.join(" → ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_names_its_devices() {
        assert_eq!(Field::from("weights.source").to_string(), "weights.source");
        let of_device = Field::of_device("devices[3].labeled", "camera");
        assert_eq!(of_device.to_string(), "devices[3].labeled (camera)");
        let of_link = Field::of_link("divergence[0][4]", "A", "E");
        assert_eq!(of_link.to_string(), "divergence[0][4] (A → E)");
        let inside = Error::other(of_link, "is odd").inside("problem");
        assert_eq!(inside.to_string(), "problem.divergence[0][4] (A → E): is odd");
    }
}
