//! Numbers as the terminal writes them.

use pyo3::prelude::*;
use stlf_planning::number_format;

/// A number with four digits.
#[pyfunction]
pub(crate) fn short(value: f64) -> String {
    number_format::short(value)
}

/// A fraction as percent.
#[pyfunction]
pub(crate) fn percent(fraction: f64) -> String {
    number_format::percent(fraction)
}

/// An energy in a unit that fits.
#[pyfunction]
pub(crate) fn energy(joules: f64) -> String {
    number_format::energy(joules)
}
