//! Conversion of our errors to exceptions of `stlf.errors`, with the messages of the command line.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use stlf_lab::Kind;
use stlf_planning::planner::Infeasible;

/// Makes an exception of `stlf.errors` from what is wrong and what to do about it.
fn exception(py: Python<'_>, name: &str, message: String, hint: Option<&str>) -> PyErr {
    let made = py
        .import("stlf.errors")
        .and_then(|errors| errors.getattr(name))
        .and_then(|class| class.call1((message, hint)));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// Returns the exception for wrong input.
pub(crate) fn input(py: Python<'_>, message: impl Into<String>, hint: &str) -> PyErr {
    exception(py, "InputError", message.into(), Some(hint))
}

/// Returns the exception for a document that cannot be used, with the name of the file if there is one.
pub(crate) fn in_document(
    py: Python<'_>,
    file: Option<&str>,
    error: &stlf_formats::Error,
) -> PyErr {
    let message = match file {
        Some(file) => format!("{file}: {error}"),
        None => error.to_string(),
    };
    exception(py, "InputError", message, error.hint())
}

/// Returns the exception for a value that cannot be used.
pub(crate) fn in_input(py: Python<'_>, error: &stlf_planning::Error) -> PyErr {
    exception(py, "InputError", error.to_string(), error.hint())
}

/// Returns the exception for a file that cannot be used.
pub(crate) fn in_file(py: Python<'_>, message: String, hint: &str) -> PyErr {
    exception(py, "FileError", message, Some(hint))
}

/// Returns the exception for a problem without a plan.
pub(crate) fn infeasible(py: Python<'_>, reason: &Infeasible) -> PyErr {
    let message = format!("no plan exists: {reason}");
    exception(py, "InfeasibleError", message, Some(&reason.hint()))
}

/// Returns the exception for a bundle, or for samples, that cannot be used.
pub(crate) fn in_bundle(py: Python<'_>, error: &stlf_bundle::Error) -> PyErr {
    let name = if error.is_io() { "FileError" } else { "InputError" };
    exception(py, name, error.to_string(), error.hint())
}

/// Returns the exception for an error of a device on the network.
pub(crate) fn in_service(py: Python<'_>, error: &stlf_node::service::Error) -> PyErr {
    use stlf_node::service::Error;
    let name = match error {
        Error::StoppedInTraining | Error::StoppedInEpoch => {
            return PyKeyboardInterrupt::new_err(error.to_string());
        }
        Error::Folder(_) | Error::Listen { .. } | Error::Start(_) | Error::Network(_) => {
            "FileError"
        }
        _ => "InputError",
    };
    exception(py, name, error.to_string(), error.hint().as_deref())
}

/// Returns the exception for an error of a run.
pub(crate) fn in_run(py: Python<'_>, error: &stlf_lab::Error) -> PyErr {
    let name = match error.kind() {
        Kind::Input => "InputError",
        Kind::Infeasible => "InfeasibleError",
        Kind::File => "FileError",
        Kind::Stopped => return PyKeyboardInterrupt::new_err(error.to_string()),
    };
    exception(py, name, error.to_string(), error.hint())
}
