//! `stlf node join`: from a ticket to a device that takes part.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use stlf_node::joining::{Error, Event, Options, join};
use stlf_planning::number_format::{clean, counted};
use stlf_protocol::Ticket;

use super::start::{take_part, with_learner};
use super::start_args::{OwnLearner, Part, changes};
use super::{failure, key_failure};
use crate::commands::learner;
use crate::error::Failure;
use crate::progress::Watch;
use crate::ui::Ui;

/// How long the owner may not answer.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf node join stlf-ai5… --name gate --data sensors.csv
  stlf node start                                            the same device again, later
  stlf node join stlf-ai5… --name gate --learner \"python -m stlf.learner pumps:Pumps\"
  # on a port that a firewall lets pass
  stlf node join stlf-ai5… --name gate --data sensors.csv --listen 10.0.0.6:7000")]
pub(crate) struct Args {
    /// The ticket that the owner of the fleet gave you; each device needs its own.
    ticket: Ticket,

    /// A name for this device that no other device of the fleet has.
    #[arg(long)]
    name: String,

    /// This device's own data: a table of features, or a folder of pictures domain/class/*.png.
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,

    #[command(flatten)]
    own: OwnLearner,

    /// Settings of this device: KEY=VALUE, separated by spaces. What all devices share cannot be changed.
    #[arg(short = 'c', long = "set", value_name = "KEY=VALUE ...")]
    set: Vec<String>,

    /// Where to listen [default: the address from which it reaches the owner, and a port that the system chooses]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    #[command(flatten)]
    part: Part,
}

/// Joins a fleet with a ticket, and takes part.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    // The seed of the fleet is not known yet; the learner is started by it once the device has joined.
    let learner = args.own.start(&args.part.to, 0).map_err(|e| learner::failure(&e))?;
    let options = Options {
        ticket: args.ticket.clone(),
        name: args.name.clone(),
        data: args.data.clone(),
        learner,
        changes: changes(&args.set).into_iter().map(str::to_owned).collect(),
        folder: args.part.to.clone(),
        listen: args.listen,
        patience: PATIENCE,
    };
    Watch::listen()?;
    let fleet = clean(args.ticket.fleet());
    let mut tell = |event: &Event| ui.note(&format!("{}\n", sentence(event, &fleet)));
    let joined = join(&options, &mut tell, &Watch::is_interrupted).map_err(|e| failure(&e))?;
    // It is ended before it is started again: there is one in a folder.
    drop(options);
    let mut options = joined.options(&args.part.to).map_err(|e| failure(&e.into()))?;
    // With port 0 the system chose one for joining, which the others call; it stays, unless the device is to listen at another address now.
    let is_of_then = |listen: &SocketAddr| listen.port() == 0 && listen.ip() == options.listen.ip();
    let listen = args.listen.filter(|listen| !is_of_then(listen));
    options.follows = args.listen.is_none();
    options.listen = listen.unwrap_or(options.listen);
    args.part.set(&mut options);
    let options = with_learner(options, &args.own, &args.part, ui)?;
    take_part(options, args.part.log, ui)
}

fn sentence(event: &Event, fleet: &str) -> String {
    match event {
        Event::NoAnswer { address, left } => {
            format!("the owner of {fleet} does not answer at {address}; trying for {left} s more")
        }
        Event::Waits(devices) => {
            format!("waiting for {} to join {fleet}", counted(*devices, "more device"))
        }
        Event::Joined(devices) => {
            format!("joined {fleet}, which has {}", counted(*devices, "device"))
        }
        Event::HasJoined => {
            format!("joined {fleet} before, and goes on with the settings that it got then")
        }
        _ => String::new(),
    }
}

/// Turns an error of joining into a failure with its exit code.
fn failure(error: &Error) -> Failure {
    let message = clean(&error.to_string());
    let failure = match error {
        Error::Key(e) => return key_failure(e),
        Error::Folder(e) => return Failure::in_data(e),
        Error::Unable(e) => return failure::failure(e),
        Error::NoAnswer { .. } | Error::Start(_) | Error::Network(_) => Failure::io(message),
        Error::Stopped => Failure::interrupted(message),
        _ => Failure::input(message),
    };
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
