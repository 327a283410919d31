//! `stlf node status` and `stlf fleet status`: the status that a running device writes into its folder.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use stlf_node::Status;
use stlf_node::computing::Computing;
use stlf_node::status::Peer;
use stlf_node::status_file::{FILE, StatusFile};
use stlf_planning::number_format::{clean, counted, percent, size};

use crate::comparison::ask_for_labels;
use crate::error::Failure;
use crate::progress::Watch;
use crate::table::{Align, Table};
use crate::ui::Ui;

/// The age in seconds from which a status is that of a device that no longer runs; a running one renews it every second.
const STALE: f64 = 5.0;

/// The interval at which the table is redrawn.
const EVERY: Duration = Duration::from_secs(1);

/// The folder and the samples of a device, as `stlf ask` takes them.
pub(crate) const OWN_SAMPLES: &str = "node SAMPLES";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder of a device of the fleet (`stlf node start --to`).
    #[arg(long = "at", value_name = "DIR", default_value = "node")]
    folder: PathBuf,

    /// Refresh every second, until Ctrl-C.
    #[arg(long)]
    watch: bool,

    /// One JSON document instead of a table.
    #[arg(long, value_enum, default_value_t = Format::Text, conflicts_with = "watch")]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A table.
    Text,
    /// JSON.
    Json,
}

/// The part of the status that is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Only the device that wrote it.
    Device,
    /// All devices of the fleet, as that device sees them.
    Fleet,
}

/// Shows the status of a device.
pub(crate) fn run(args: &Args, scope: Scope, ui: &Ui) -> Result<(), Failure> {
    if args.format == Format::Json {
        let shown = read(&args.folder)?;
        return ui.write(|out| {
            serde_json::to_writer_pretty(&mut *out, &shown)?;
            writeln!(out)
        });
    }
    if !args.watch {
        return ui.print(&text(&read(&args.folder)?, scope));
    }
    Watch::listen()?;
    while !Watch::is_interrupted() {
        // Home, and all below it cleared.
        ui.print(&format!("\x1b[H\x1b[2J{}", text(&read(&args.folder)?, scope)))?;
        std::thread::sleep(EVERY);
    }
    Ok(())
}

/// Reads the status in a device's folder.
pub(crate) fn read(folder: &Path) -> Result<StatusFile, Failure> {
    let path = folder.join(FILE);
    let bytes = std::fs::read(&path).map_err(|e| {
        Failure::input(format!("cannot read {}: {e}", path.display()))
            .hint("name the folder of a device with --at; one that has not joined its fleet yet, or was never started, has no status")
    })?;
    serde_json::from_slice(&bytes)
        .map_err(|e| Failure::input(format!("{}: this is not a status file: {e}", path.display())))
}

/// Returns for how many seconds a device has not written its status, if it no longer runs.
pub(crate) fn stopped_for(shown: &StatusFile) -> Option<f64> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let age = now.map_or(0.0, |now| now.as_secs_f64() - shown.seconds);
    Some(age).filter(|age| *age > STALE)
}

fn text(shown: &StatusFile, scope: Scope) -> String {
    let StatusFile { most_memory, protection, data, student_cost, status, .. } = shown;
    let mut text = format!(
        "{} of {} (roster {}): epoch {}, {}",
        clean(&status.device),
        clean(&status.fleet),
        status.roster,
        status.epoch,
        status.stage
    );
    if let Some(age) = stopped_for(shown) {
        text += &format!("; not running, last seen {age:.0} s ago");
    }
    text.push('\n');
    if let Some(reason) = &status.no_plan {
        text += &format!("there is no plan: {}\n", clean(reason));
    }
    let here = status.devices.iter().filter(|peer| peer.here).count();
    let planner =
        status.planner.as_ref().map_or_else(String::new, |p| format!(", {} plans", clean(p)));
    text += &format!("{here} of {} here{planner}\n", counted(status.devices.len(), "device"));
    for (peer, difference) in status.devices.iter().filter_map(|p| Some((p, p.differs.as_ref()?))) {
        text += &format!("{} takes no part: {}\n", clean(&peer.name), clean(difference));
    }
    for (peer, absence) in status.devices.iter().filter_map(|p| Some((p, p.absence.as_ref()?))) {
        text += &format!("{} {absence}\n", clean(&peer.name));
    }
    for (peer, trouble) in status.devices.iter().filter_map(|p| Some((p, p.key_trouble()?))) {
        text += &format!("{}: {trouble}\n", clean(&peer.name));
    }
    if !status.waits_for.is_empty() {
        let names: Vec<String> = status.waits_for.iter().map(|name| clean(name)).collect();
        text += &format!("waits for the model of {}\n", names.join(", "));
    }
    if !status.refuses.is_empty() {
        let names: Vec<String> = status.refuses.iter().map(|name| clean(name)).collect();
        text += &format!("refuses the model of {}\n", names.join(", "));
    }
    if !status.withheld.is_empty() {
        let names: Vec<String> = status.withheld.iter().map(|name| clean(name)).collect();
        text += &format!(
            "tells no new divergence to the means of {}: that would tell too much about this device's samples\n",
            names.join(", ")
        );
    }
    for peer in status.devices.iter().filter(|peer| peer.refused_by.len() > 1) {
        let names: Vec<String> = peer.refused_by.iter().map(|name| clean(name)).collect();
        let (peer, names) = (clean(&peer.name), names.join(", "));
        text += &format!("{names} got no usable model from {peer}: look at {peer}\n");
    }
    if let Some(student) = &status.student {
        text += &format!("its student: {}\n", with_cost(student, student_cost.as_ref()));
    }
    if let Some(expected) = &status.expected {
        text += &format!("expect {expected}\n");
    }
    if let Some(warning) = &status.warning {
        text += &format!("{}\n", ask_for_labels(&clean(warning), OWN_SAMPLES));
    }
    if let Some(guessing) = &status.guessing {
        text += &format!("{}\n", clean(guessing));
    }
    match scope {
        Scope::Device => {
            if let Some(own) = status.devices.iter().find(|peer| peer.name == status.device) {
                text += &format!("role {}{}\n", role(own), from(own));
            }
        }
        Scope::Fleet => text += &format!("\n{}", table(status)),
    }
    if let Some(change) = data {
        text += &format!("{}\n", clean(&change.to_string()));
    }
    if let Some(protection) = protection {
        text += &format!("privacy: {}\n", clean(&protection.to_string()));
    }
    let t = status.traffic;
    text += &format!(
        "sent {}, received {}; {} refused, {} turned away{}\n",
        size(t.sent as f64),
        size(t.received as f64),
        counted(t.refused as usize, "message"),
        counted(t.turned_away as usize, "stranger"),
        most_memory.map_or_else(String::new, |m| format!("; at most {} of memory", size(m as f64)))
    );
    text
}

/// What came of a student, with what it cost.
pub(crate) fn with_cost(student: &str, cost: Option<&Computing>) -> String {
    let cost = cost.map_or(String::new(), |cost| format!(", which took {cost}"));
    format!("{}{cost}", clean(student))
}

fn role(peer: &Peer) -> &str {
    peer.role.as_deref().unwrap_or("–")
}

fn from(peer: &Peer) -> String {
    let links =
        peer.from.iter().map(|(name, weight)| format!("{} {}", percent(*weight), clean(name)));
    let links: Vec<String> = links.collect();
    match &peer.handed_from {
        Some(name) => format!(", trains on the model of {}", clean(name)),
        None if links.is_empty() => String::new(),
        None => format!(", models from {}", links.join(", ")),
    }
}

fn table(status: &Status) -> String {
    let left = Align::Left;
    let mut table = Table::new(&[
        ("device", left),
        ("connected", left),
        ("epoch", left),
        ("role", left),
        ("done", left),
        ("receives", left),
    ]);
    let yes = |is: bool| if is { "yes" } else { "no" };
    for peer in &status.devices {
        let links = peer.from.iter().map(|(name, w)| format!("{} {name}", percent(*w)));
        let handed = peer.handed_from.iter().map(|name| format!("{name}, to train on"));
        table.row([
            peer.name.as_str().into(),
            connected(peer).into(),
            yes(peer.takes_part).into(),
            role(peer).into(),
            peer.done.map_or("–", yes).into(),
            links.chain(handed).collect::<Vec<_>>().join(", ").into(),
        ]);
    }
    let mut text = table.render();
    let is_unknown = |peer: &Peer| peer.takes_part && peer.done.is_none();
    if status.devices.iter().any(is_unknown) {
        let planner =
            status.planner.as_ref().map_or_else(String::new, |p| format!(", {}", clean(p)));
        text += &format!(
            "until the epoch is over only its planner{planner}, knows which others are done\n"
        );
    }
    text
}

/// Says whether a device is connected, and that two are if they run with its key.
pub(crate) fn connected(peer: &Peer) -> &'static str {
    match peer.used_twice {
        Some(_) => "by two devices",
        None if peer.here => "yes",
        None => "no",
    }
}
