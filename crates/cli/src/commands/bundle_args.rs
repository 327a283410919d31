//! Which bundle a command is about.

use std::path::PathBuf;

use stlf_bundle::folder::{find, find_any, is_of_learner, read};
use stlf_bundle::{Error, Mixture};

use super::numbers::whole;
use crate::error::Failure;

/// The bundle that a command puts to work.
#[derive(clap::Args)]
pub(crate) struct BundleArgs {
    /// A bundle, the folder of a real device, or a run folder.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// In a run folder: the device whose mixture to use. There is one for every device.
    #[arg(long, value_name = "NAME")]
    pub(crate) device: Option<String>,
    /// In a run folder: the seed to use [default: the lowest]
    #[arg(long, value_parser = whole::<u64>)]
    pub(crate) seed: Option<u64>,
}

impl BundleArgs {
    /// Reads the bundle, with every file checked.
    pub(crate) fn read(&self) -> Result<Mixture, Failure> {
        let path = find(&self.dir, self.device.as_deref(), self.seed);
        path.and_then(|path| read(&path)).map_err(|e| failure(&e))
    }

    /// Reads a bundle that other programs are to use, which they cannot do with models of a user's learner.
    pub(crate) fn read_to_export(&self) -> Result<Mixture, Failure> {
        let found = find_any(&self.dir, self.device.as_deref(), self.seed);
        let bundle = found.map_err(|e| failure(&e))?;
        if is_of_learner(&bundle) {
            let message = format!(
                "{}: cannot be exported: only the learner that made these models can predict with them",
                bundle.display()
            );
            let hint = "`stlf predict DIR --learner \"PROGRAM …\"` starts it; its models are the safetensors files beside models.json";
            return Err(Failure::input(message).hint(hint));
        }
        read(&bundle).map_err(|e| failure(&e))
    }

    /// Returns the bundle, which must be one of a learner of the user's.
    pub(crate) fn find_of_learner(&self) -> Result<PathBuf, Failure> {
        let bundle =
            find_any(&self.dir, self.device.as_deref(), self.seed).map_err(|e| failure(&e))?;
        match is_of_learner(&bundle) {
            true => Ok(bundle),
            false => {
                let message = format!("{}: these models are built-in networks", bundle.display());
                Err(Failure::input(message).hint("leave out --learner, and name the samples"))
            }
        }
    }
}

/// What went wrong with a bundle or with samples for it.
pub(crate) fn failure(error: &Error) -> Failure {
    let failure = match error.is_io() {
        true => Failure::io(error.to_string()),
        false => Failure::input(error.to_string()),
    };
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
