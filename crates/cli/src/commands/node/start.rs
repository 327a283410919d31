//! `stlf node start`: this device in an epoch of its fleet.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use stlf::local::Training;
use stlf::words::{clean, counted, percent};
use stlf_lab::fleet::DeviceData;
use stlf_lab::folder::Folder;
use stlf_lab::record::PredictionRow;
use stlf_lab::stages::plan::energies;
use stlf_lab::stages::train::network;
use stlf_lab::{Config, run::device as dealt};
use stlf_node::device::{Holdings, Setup};
use stlf_node::network::{Error, Event, Options};
use stlf_node::{Device, Roster, SignedRoster, key_file};

use super::super::problem_args::positive;
use super::super::run_args::failure;
use super::key_failure;
use crate::error::Failure;
use crate::progress::Watch;
use crate::ui::Ui;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to run (TOML), the same on all devices but for [data] and [partition] [default: all defaults]
    config: Option<PathBuf>,

    /// Settings that differ from the file's: KEY=VALUE, separated by spaces.
    #[arg(short = 'c', long = "set", value_name = "KEY=VALUE ...")]
    set: Vec<String>,

    /// The fleet's signed roster.
    #[arg(long, value_name = "FILE", default_value = "roster.json")]
    roster: PathBuf,

    /// This device's key.
    #[arg(long, value_name = "FILE", default_value = "device.key")]
    key: PathBuf,

    /// Where to listen.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,

    /// Where other devices listen; those before this one in the roster are called, the others call.
    #[arg(long, value_delimiter = ',', value_name = "NAME=ADDRESS,...", value_parser = peer)]
    peers: Vec<(String, SocketAddr)>,

    /// Begin with those that have come after so many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = positive)]
    wait: f64,

    /// Give up after so many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0, value_parser = positive)]
    deadline: f64,

    /// Where the plan, the model and the outcome go.
    #[arg(long, value_name = "DIR", default_value = "node")]
    to: PathBuf,
}

fn peer(text: &str) -> Result<(String, SocketAddr), String> {
    let wrong = || "write NAME=ADDRESS, such as gate=10.0.0.5:7000".to_owned();
    let (name, address) = text.split_once('=').ok_or_else(wrong)?;
    Ok((name.to_owned(), address.parse().map_err(|_| wrong())?))
}

/// Takes part, and keeps what came of it.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    let config = match &args.config {
        Some(path) => Config::read(path),
        None => Ok(Config::default()),
    };
    let changes = args.set.iter().flat_map(|set| set.split_whitespace());
    let config = config.and_then(|config| config.with(changes)).map_err(|e| failure(&e))?;
    let identity = key_file::read(&args.key).map_err(|e| key_failure(&e))?;
    let roster = read_roster(args)?;
    let place = roster.place(identity.id()).ok_or_else(|| {
        Failure::input(format!("{} is not in the roster of {}", identity.id(), roster.fleet))
            .hint("its owner admits devices with `stlf fleet add`")
    })?;
    let seed = config.seeds.first().copied().unwrap_or_default();
    let (own, shape, classes) = dealt(&config, seed, place).map_err(|e| failure(&e))?;
    let setup = setup(&config, &own, shape, classes.len(), seed)?;
    let n = roster.devices.len();
    let energy = energies(&config, n, seed);
    let joules: BTreeMap<usize, f64> =
        (0..n).filter(|&to| to != place).map(|to| (to, energy[place * n + to])).collect();
    let holdings = Holdings {
        inputs: own.inputs.as_slice().into(),
        labels: own.labels.clone(),
        unlabeled: own.unlabeled,
    };
    let options = options(args, &roster)?;
    let none = || Failure::input("this device has no place in the roster");
    let mut device =
        Device::new(setup, roster.clone(), identity.clone(), holdings, joules).ok_or_else(none)?;
    Watch::listen()?;
    ui.note(&format!(
        "{}: training on {}\n",
        name(&roster, place),
        counted(own.labels.len(), "label")
    ));
    let mut go_on = || match Watch::is_interrupted() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    if !device.train(&mut go_on).map_err(|e| Failure::input(e.to_string()))? {
        return Err(Failure::interrupted("stopped"));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Failure::io(format!("cannot start: {e}")))?;
    let told = roster.clone();
    let mut observer = |event: Event| ui.note(&format!("{}\n", words(&told, &event)));
    let ended = runtime.block_on(stlf_node::network::run(
        device,
        roster.clone(),
        &identity,
        options,
        &mut observer,
    ));
    let device = ended.map_err(|e| ended_badly(&e))?;
    keep(args, ui, &roster, &device, &own, &classes)
}

fn read_roster(args: &Args) -> Result<Roster, Failure> {
    let path = args.roster.display();
    let bytes = std::fs::read(&args.roster)
        .map_err(|e| Failure::input(format!("cannot read {path}: {e}")))?;
    let signed = SignedRoster::read(&bytes).map_err(|e| Failure::input(format!("{path}: {e}")))?;
    Ok(signed.roster().clone())
}

fn setup(
    config: &Config,
    own: &DeviceData,
    shape: stlf_data::Shape,
    classes: usize,
    seed: u64,
) -> Result<Setup, Failure> {
    let divergence = config.divergence.settings();
    stlf_node::exchange::check(&divergence, shape).map_err(|e| failure(&e.into()))?;
    if config.divergence.nearest.is_some() {
        return Err(
            Failure::input("real devices measure all pairs").hint("leave out divergence.nearest")
        );
    }
    if own.inputs.is_empty() {
        return Err(Failure::input("this device has no samples"));
    }
    Ok(Setup {
        spec: network(config, shape, classes).map_err(|e| failure(&e))?,
        shape,
        training: Training { descent: config.descent(), steps: config.training.steps },
        held_out: config.training.held_out,
        unlabeled_as: config.training.unlabeled_as,
        divergence,
        preset: config.planner.preset.into(),
        bound: config.planner.bound.into(),
        combine: config.planner.combine.into(),
        seed,
    })
}

fn options(args: &Args, roster: &Roster) -> Result<Options, Failure> {
    let mut peers = BTreeMap::new();
    for (name, address) in &args.peers {
        let place = roster.devices.iter().position(|member| member.name == *name);
        let place = place.ok_or_else(|| {
            Failure::input(format!("--peers: there is no device {name:?} in the roster"))
        })?;
        peers.insert(place, *address);
    }
    let seconds = |s: f64| Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX);
    Ok(Options {
        listen: args.listen,
        peers,
        wait: seconds(args.wait),
        deadline: seconds(args.deadline),
    })
}

fn name(roster: &Roster, place: usize) -> String {
    roster.devices.get(place).map_or(String::new(), |member| clean(&member.name))
}

fn words(roster: &Roster, event: &Event) -> String {
    match event {
        Event::Listens(address) => format!("listening on {address}"),
        Event::Came(place) => format!("{} is here", name(roster, *place)),
        Event::Lost(place) => format!("{} is lost", name(roster, *place)),
        Event::TurnedAway(key) => format!("turned away {key}, who is not in the roster"),
        Event::Began { epoch, devices } => {
            format!("epoch {epoch} begins with {}", counted(*devices, "device"))
        }
        Event::Planned => "there is a plan".to_owned(),
        Event::Refused { from, reason } => {
            format!("refused a message of {}: {reason}", name(roster, *from))
        }
    }
}

fn ended_badly(error: &Error) -> Failure {
    match error {
        Error::Alone(_) => Failure::io(error.to_string()).hint(
            "devices before this one in the roster are called at --peers; those after it call",
        ),
        Error::Listen { .. } | Error::Deadline(..) => Failure::io(error.to_string()),
    }
}

/// Writes plan, model and predictions, and tells.
fn keep(
    args: &Args,
    ui: &Ui,
    roster: &Roster,
    device: &Device,
    own: &DeviceData,
    classes: &[String],
) -> Result<(), Failure> {
    let folder = Folder::open(&args.to).map_err(|e| failure(&e))?;
    let wrong = |e: stlf_lab::Error| failure(&e);
    let Some(plan) = device.plan() else { return Err(Failure::io("there is no plan")) };
    folder.write_json("plan.json", plan).map_err(wrong)?;
    if let Some(model) = device.model() {
        let file = model.to_safetensors(device.spec()).map_err(|e| Failure::io(e.to_string()))?;
        folder.write("model.safetensors", &file).map_err(wrong)?;
    }
    let place = device.place();
    let Some(outcome) = device.outcome() else {
        let sent = plan.links.iter().filter(|link| link.from as usize == place).count();
        return ui.print(&format!(
            "{} is a source; its model went to {}\n",
            name(roster, place),
            counted(sent, "target")
        ));
    };
    let rows = PredictionRow::all(outcome, &own.places, classes);
    folder.write_csv("predictions.csv", &rows).map_err(wrong)?;
    let from: Vec<String> = plan
        .incoming(place)
        .map(|link| format!("{} {}", percent(link.weight), name(roster, link.from as usize)))
        .collect();
    let accuracy = own.truth.as_ref().map(|truth| outcome.accuracy(truth));
    let told = accuracy.map_or(String::new(), |a| format!("; accuracy {a}"));
    ui.print(&format!("{} is a target of {}{told}\n", name(roster, place), from.join(", ")))
}
