//! `stlf node`: this device as a member of a fleet.

#[cfg(feature = "node")]
mod failure;
#[cfg(feature = "node")]
mod join;
#[cfg(feature = "node")]
mod start;
#[cfg(feature = "node")]
mod start_args;
pub(crate) mod status;
#[cfg(feature = "node")]
mod told;

use std::path::PathBuf;

use stlf_node::key_file;

use crate::error::Failure;
use crate::ui::Ui;

/// This device as a member of a fleet.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf node join TICKET --name gate --data sensors.csv     with the owner's ticket
  stlf node start                                          again, after it has joined
  stlf node init                                           makes device.key
  stlf node id device.key
  stlf node start mine.toml --roster roster.json --peers gate=10.0.0.5:7000
  stlf node start --learner \"python -m stlf.learner pumps:Pumps\"
  stlf node status --watch")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Make a key for this device.
    ///
    /// The file stays on the device. What is printed is given to the owner of a fleet: `stlf fleet add`.
    Init {
        /// The file; never overwritten.
        #[arg(default_value = "device.key")]
        key: PathBuf,
    },
    /// Join a fleet with a ticket of its owner, and take part until Ctrl-C.
    ///
    /// Makes this device's key, shows the ticket to the owner, learns the settings of the fleet and who belongs to it, and starts. A
    /// ticket is for one device; run again with the same ticket and folder, it goes on where it was.
    #[cfg(feature = "node")]
    Join(Box<join::Args>),
    /// Take part in the fleet, until Ctrl-C.
    ///
    /// Trains on this device's own labels, measures with the others, plans or follows the plan, sends or receives models; again
    /// whenever devices come or go. Killed and started again, it goes on where it was.
    #[cfg(feature = "node")]
    Start(Box<start_args::Args>),
    /// Take part in the fleet; this build cannot, because it has no network.
    #[cfg(not(feature = "node"))]
    #[command(disable_help_flag = true)]
    Start {
        #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
        _whatever: Vec<String>,
    },
    /// Show the state of this device.
    Status(status::Args),
    /// Print the public key by which others know a device.
    Id {
        /// The file.
        #[arg(default_value = "device.key")]
        key: PathBuf,
    },
}

/// Makes or shows a key.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    let identity = match &args.what {
        What::Init { key } => key_file::create(key),
        What::Id { key } => key_file::read(key),
        #[cfg(feature = "node")]
        What::Join(args) => return join::run(args, ui),
        #[cfg(feature = "node")]
        What::Start(args) => return start::run(args, ui),
        #[cfg(not(feature = "node"))]
        What::Start { .. } => {
            return Err(Failure::input("this stlf was built without the network")
                .hint("build with --features node, which is a default feature"));
        }
        What::Status(args) => return status::run(args, status::Scope::Device, ui),
    };
    ui.print(&format!("{}\n", identity.map_err(|e| key_failure(&e))?.id()))
}

/// Turns an error of a key file into a failure with its exit code.
pub(crate) fn key_failure(error: &key_file::Error) -> Failure {
    let is_missing = |e: &std::io::Error| e.kind() == std::io::ErrorKind::NotFound;
    let failure = match error {
        key_file::Error::File { source, .. } if !is_missing(source) => {
            Failure::io(error.to_string())
        }
        key_file::Error::NoRandom(_) => Failure::io(error.to_string()),
        _ => Failure::input(error.to_string()),
    };
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
