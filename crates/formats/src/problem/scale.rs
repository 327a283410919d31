//! On what scale errors and divergences are: shares, unless the file says that it has its own.
//!
//! Six percent written as 6 would make any device a target and nothing would look wrong, so a file that means it must say it.

use std::ops::Bound::Included;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use stlf_planning::error::{Error, Field, Range};
use stlf_planning::problem::{Model, Problem};

/// What errors and divergences may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ScaleEntry {
    /// An error is a fraction, 0 to 1; a divergence is 0 to 2.
    #[default]
    Unit,
    /// Anything at least 0, such as the percent of the paper's published instances.
    Free,
}

const MOST_ERROR: f64 = 1.0;
const MOST_DIVERGENCE: f64 = 2.0;

impl ScaleEntry {
    /// Refuses an error that is not on this scale.
    ///
    /// # Errors
    /// Names the field and what was likely meant.
    pub fn check_error(self, value: f64, field: impl FnOnce() -> Field) -> Result<(), Error> {
        self.check(value, MOST_ERROR, field)
    }

    /// Refuses a divergence that is not on this scale.
    ///
    /// # Errors
    /// Names the field and what was likely meant.
    pub fn check_divergence(self, value: f64, field: impl FnOnce() -> Field) -> Result<(), Error> {
        self.check(value, MOST_DIVERGENCE, field)
    }

    fn check(self, value: f64, most: f64, field: impl FnOnce() -> Field) -> Result<(), Error> {
        if self == ScaleEntry::Free || value <= most {
            return Ok(());
        }
        let meant = match value / 100.0 {
            share if share <= most => format!("did you mean {share}? "),
            _ => String::new(),
        };
        Range::new(Included(0.0), Included(most)).check(value, field).map_err(|e| {
            e.with_hint(format!(
                "{meant}numbers on another scale need \"scale\": \"free\" in the file"
            ))
        })
    }

    /// Refuses a problem with a number that is not on this scale.
    pub(super) fn check_problem(self, problem: &Problem) -> Result<(), Error> {
        let Model::Measured(m) = problem.model() else { return Ok(()) };
        for (i, device) in m.devices.iter().enumerate() {
            let at = || Field::of_device(format!("devices[{i}].source_error"), device.name.clone());
            device.source_error.map_or(Ok(()), |error| self.check_error(error, at))?;
        }
        for to in 0..problem.len() {
            for link in m.links.incoming(to) {
                let from = link.from;
                let path = || format!("divergence[{from}][{to}]");
                let at = || Field::of_link(path(), problem.name(from), problem.name(to));
                self.check_divergence(link.divergence, at)?;
            }
        }
        Ok(())
    }

    /// The scale that a problem's numbers need.
    pub fn of(problem: &Problem) -> ScaleEntry {
        let Model::Measured(measured) = problem.model() else { return ScaleEntry::Unit };
        let mut errors = measured.devices.iter().filter_map(|device| device.source_error);
        let mut links = (0..measured.devices.len()).flat_map(|to| measured.links.incoming(to));
        let fits = errors.all(|error| error <= MOST_ERROR)
            && links.all(|link| link.divergence <= MOST_DIVERGENCE);
        if fits { ScaleEntry::Unit } else { ScaleEntry::Free }
    }
}
