//! What noise buys of differential privacy.

use pyo3::prelude::*;
use stlf_method::divergence::gaussian_mechanism::{composed, epsilon as least_epsilon};
use stlf_method::divergence::privacy::Privacy;

use crate::errors::{in_input, input};

/// The least noise that is (ε, δ)-differentially private, in units of what one sample changes.
#[pyfunction]
pub(crate) fn noise_multiplier(py: Python<'_>, epsilon: f64, delta: f64) -> PyResult<f64> {
    let privacy = Privacy::new(epsilon, delta);
    privacy.check().map_err(|e| in_input(py, &e))?;
    Ok(privacy.deviation(1.0))
}

/// The ε that publications with such noise spend together.
#[pyfunction]
pub(crate) fn privacy_spent(py: Python<'_>, multipliers: Vec<f64>, delta: f64) -> PyResult<f64> {
    if let Some(wrong) = multipliers.iter().find(|m| !(**m > 0.0 && m.is_finite())) {
        let message = format!("multipliers: {wrong} is no noise");
        return Err(input(py, message, "noise_multiplier gives one, above 0"));
    }
    check_delta(py, delta)?;
    Ok(least_epsilon(composed(multipliers.iter().map(|m| 1.0 / m)), delta))
}

pub(crate) fn check_delta(py: Python<'_>, delta: f64) -> PyResult<()> {
    match delta > 0.0 && delta < 1.0 {
        true => Ok(()),
        false => Err(input(py, format!("delta: {delta} is not in 0 < δ < 1"), "try 1e-5")),
    }
}
