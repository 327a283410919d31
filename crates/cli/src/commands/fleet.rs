//! `stlf fleet`: the roster of a fleet.

#[cfg(feature = "node")]
mod invite;

use std::path::{Path, PathBuf};

use stlf_node::key_file;
use stlf_planning::number_format::counted;
use stlf_protocol::roster::Invalid;
use stlf_protocol::{Identity, PeerId, Roster, SignedRoster};

use super::node::{key_failure, status};
use crate::error::Failure;
use crate::output::write_file_durably;
use crate::table::{Align, Table};
use crate::ui::Ui;

/// Manage the roster of a fleet: the list of its devices' keys, signed by its owner.
///
/// Devices refuse connections from keys that are not in the roster, and rosters that are unsigned or older than their own.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf fleet invite harbour --devices 3       makes the fleet and prints three tickets
  stlf fleet init harbour                     makes harbour/owner.key and harbour/roster.json
  stlf fleet add gate KEY --fleet harbour     KEY is what `stlf node init` printed on the device
  stlf fleet show --fleet harbour
  stlf fleet status --at node --watch")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Create a fleet: a folder with the owner's key and a roster without devices.
    Init {
        /// The fleet's name, and its folder's.
        name: String,
    },
    /// Invite devices: prints a ticket for each, and lets in who shows one (`stlf node join`).
    ///
    /// Makes the fleet where there is none. Runs until every ticket is used or has expired; stopped and started again without --devices,
    /// it goes on with the tickets that are open.
    #[cfg(feature = "node")]
    Invite(Box<invite::Args>),
    /// Add a device.
    Add {
        /// The device's name.
        name: String,
        /// Its public key, as printed by `stlf node init`.
        key: PeerId,
        #[command(flatten)]
        fleet: FleetArg,
    },
    /// Remove a device. Its place in the roster stays empty, so that the others keep theirs.
    Remove {
        /// The device's name.
        name: String,
        #[command(flatten)]
        fleet: FleetArg,
    },
    /// Show the state of all devices, as one device of the fleet sees them; the planner knows most.
    Status(status::Args),
    /// Show the devices, and check the signature.
    Show {
        #[command(flatten)]
        fleet: FleetArg,
    },
}

#[derive(clap::Args)]
struct FleetArg {
    /// The fleet's folder.
    #[arg(long = "fleet", value_name = "DIR", default_value = ".")]
    folder: PathBuf,
}

impl FleetArg {
    fn roster(&self) -> PathBuf {
        self.folder.join("roster.json")
    }

    fn read(&self) -> Result<SignedRoster, Failure> {
        let path = self.roster();
        let bytes = std::fs::read(&path).map_err(|e| {
            Failure::input(format!("cannot read {}: {e}", path.display()))
                .hint("name the fleet's folder with --fleet; `stlf fleet init` makes one")
        })?;
        SignedRoster::read(&bytes).map_err(|e| invalid(&path, &e))
    }

    fn owner(&self) -> Result<Identity, Failure> {
        key_file::read(&self.folder.join("owner.key")).map_err(|e| key_failure(&e))
    }

    /// Signs a changed roster and writes it. A device may get it at once, so that it must not be lost when the power fails: the next
    /// change would be another roster of the same version.
    fn keep(&self, changed: Result<Roster, Invalid>) -> Result<SignedRoster, Failure> {
        let (path, owner) = (self.roster(), self.owner()?);
        let signed = changed.and_then(|roster| roster.sign(&owner));
        let signed = signed.map_err(|e| invalid(&path, &e))?;
        write_file_durably(&path, signed.to_json().as_bytes())?;
        Ok(signed)
    }
}

fn invalid(path: &Path, error: &Invalid) -> Failure {
    Failure::input(format!("{}: {error}", path.display()))
}

/// Changes or shows a fleet.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    match &args.what {
        What::Init { name } => init(name, ui),
        #[cfg(feature = "node")]
        What::Invite(args) => invite::run(args, ui),
        What::Add { name, key, fleet } => {
            let signed = fleet.keep(fleet.read()?.roster().clone().with(name, *key))?;
            ui.print(&show(&signed))
        }
        What::Remove { name, fleet } => {
            let signed = fleet.keep(fleet.read()?.roster().clone().without(name))?;
            ui.print(&show(&signed))?;
            ui.print(&format!(
                "\nDevices do not know it yet: copy {} over the roster.json in the folder of one that stays \
                 (node, unless it was started with --to or --roster). It tells the others.\n",
                fleet.roster().display()
            ))
        }
        What::Show { fleet } => ui.print(&show(&fleet.read()?)),
        What::Status(args) => status::run(args, status::Scope::Fleet, ui),
    }
}

fn init(name: &str, ui: &Ui) -> Result<(), Failure> {
    let folder = PathBuf::from(name);
    std::fs::create_dir_all(&folder)
        .map_err(|e| Failure::io(format!("cannot create {}: {e}", folder.display())))?;
    let owner = key_file::create(&folder.join("owner.key")).map_err(|e| key_failure(&e))?;
    let fleet = FleetArg { folder };
    let called = Path::new(name).file_name().map_or(name.into(), |n| n.to_string_lossy());
    let signed = fleet.keep(Ok(Roster::new(&called, owner.id())))?;
    ui.print(&show(&signed))?;
    ui.print(&format!(
        "\nKeep {} secret: it signs every change to the fleet.\n",
        fleet.folder.join("owner.key").display()
    ))
}

fn show(signed: &SignedRoster) -> String {
    let roster = signed.roster();
    let present = roster.devices.iter().filter(|member| member.present).count();
    let mut text = format!(
        "{}, version {}: {}; signed by its owner {}\n",
        roster.fleet,
        roster.version,
        counted(present, "device"),
        roster.owner
    );
    if roster.devices.is_empty() {
        return text;
    }
    let mut table = Table::new(&[
        ("place", Align::Right),
        ("device", Align::Left),
        ("key", Align::Left),
        ("", Align::Left),
    ]);
    for (place, member) in roster.with_places() {
        let left = if member.present { "" } else { "has left" };
        table.row([
            place.to_string().into(),
            member.name.as_str().into(),
            member.key.to_string().into(),
            left.into(),
        ]);
    }
    text += &format!("\n{}", table.render());
    text
}
