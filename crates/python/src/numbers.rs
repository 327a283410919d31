//! Numbers as the terminal writes them.

use pyo3::prelude::*;
use stlf_planning::number_format;

/// Returns a number with four digits, as the terminal writes it.
#[pyfunction]
pub(crate) fn short(value: f64) -> String {
    number_format::short(value)
}

/// Returns a fraction as a percentage, as the terminal writes it.
#[pyfunction]
pub(crate) fn percent(fraction: f64) -> String {
    number_format::percent(fraction)
}

/// An energy in a unit that fits.
#[pyfunction]
pub(crate) fn energy(joules: f64) -> String {
    number_format::energy(joules)
}
