//! Failures of `stlf node start`, as they are shown to the user.

use stlf_node::service::Error;

use super::key_failure;
use crate::error::Failure;

/// Turns an error of the service into a failure with its exit code.
pub(super) fn failure(error: &Error) -> Failure {
    let message = error.to_string();
    let failure = match error {
        Error::Key(e) => return key_failure(e),
        Error::Folder(e) => return Failure::in_data(e),
        Error::UnknownPeer { .. } => Failure::input(format!("--peers: {message}")),
        Error::Listen { .. } | Error::Start(_) | Error::Network(_) => Failure::io(message),
        Error::StoppedInTraining | Error::StoppedInEpoch => Failure::interrupted(message),
        _ => Failure::input(message),
    };
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
