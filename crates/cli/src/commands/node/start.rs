//! `stlf node start`: this device among the others of its fleet.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::PoisonError;
use std::time::Duration;

use stlf_config::Config;
use stlf_config::fleet::DeviceData;
use stlf_config::fleet::device as dealt;
use stlf_node::key_file;
use stlf_node::network::{Event, Options, Order, View};
use stlf_planning::number_format::counted;
use stlf_protocol::device::Holdings;
use stlf_protocol::membership::Timing;
use stlf_protocol::roster::Invalid;
use stlf_protocol::shared::SharedSettings;
use stlf_protocol::{Device, Identity, Roster, Setup, SignedRoster};
use tokio::sync::mpsc::Sender;

use super::super::problem_args::positive;
use super::super::run_args::failure;
use super::state_dir::{Line, MODELS, StateDir};
use super::told::{ended_badly, name, tell_end, words};
use super::{key_failure, memory, metrics};
use crate::error::Failure;
use crate::progress::Watch;
use crate::ui::Ui;

/// The planner searches up to three times, and others have patience for twice that.
const PLANNING_IN_PATIENCE: u32 = 6;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to run (TOML), the same on all devices but for [data] and [partition] [default: all defaults]
    config: Option<PathBuf>,

    /// Settings that differ from the file's: KEY=VALUE, separated by spaces.
    #[arg(short = 'c', long = "set", value_name = "KEY=VALUE ...")]
    set: Vec<String>,

    /// This device's own data: a table of features, or a folder of pictures domain/class/*.png. Features keep their scale.
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,

    /// The fleet's signed roster.
    #[arg(long, visible_alias = "fleet", value_name = "FILE", default_value = "roster.json")]
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

    /// Leave once an epoch is over; else go on until Ctrl-C, and take part in every epoch.
    #[arg(long)]
    once: bool,

    /// Measure links, and count this many watts while a model is sent; else joules come from [energy].
    #[arg(long, value_parser = positive)]
    watts: Option<f64>,

    /// Begin with those that have come after so many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = positive)]
    wait: f64,

    /// After somebody joined or left, wait so long for others to do so too.
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = positive)]
    settle: f64,

    /// Leave out who holds an epoch up for so long. The planner searches for a sixth of it, or for planner.time-limit if that is less,
    /// then takes the best plan so far.
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = positive)]
    patience: f64,

    /// With --once: give up so many seconds after --wait.
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0, value_parser = positive)]
    deadline: f64,

    /// Where everything is kept; started again with the same folder, it goes on where it was.
    #[arg(long, value_name = "DIR", default_value = "node")]
    to: PathBuf,

    /// Serve numbers for Prometheus here, such as 127.0.0.1:9464.
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,

    /// How events are told on standard error.
    #[arg(long, value_enum, default_value_t = Log::Text)]
    log: Log,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Log {
    /// A sentence each.
    Text,
    /// A JSON document each, a line each.
    Json,
}

fn peer(text: &str) -> Result<(String, SocketAddr), String> {
    let wrong = || "write NAME=ADDRESS, such as gate=10.0.0.5:7000".to_owned();
    let (name, address) = text.split_once('=').ok_or_else(wrong)?;
    Ok((name.to_owned(), address.parse().map_err(|_| wrong())?))
}

/// Takes part, and keeps what came of it.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    let config = config(args)?;
    let identity = key_file::read(&args.key).map_err(|e| key_failure(&e))?;
    let roster = read_roster(args, ui)?;
    let list = roster.roster().clone();
    let place = list.place(identity.id()).ok_or_else(|| {
        Failure::input(format!("{} is not in the roster of {}", identity.id(), list.fleet))
            .hint("its owner admits devices with `stlf fleet add`")
    })?;
    let seed = config.seeds.first().copied().unwrap_or_default();
    let (own, shape, classes) = dealt(&config, seed, place).map_err(|e| failure(&e.into()))?;
    let setup = setup(args, &config, &own, shape, classes.len(), seed)?;
    let settings = config.shared(shape, &classes, seed).map_err(|e| failure(&e.into()))?;
    let settings = SharedSettings::new(settings);
    let (spec, model_bits) = (setup.spec.clone(), setup.model_bits);
    let n = list.devices.len();
    let energy = setup.energies(n);
    let joules: BTreeMap<usize, f64> =
        (0..n).filter(|&to| to != place).map(|to| (to, energy[place * n + to])).collect();
    let holdings = Holdings {
        inputs: own.inputs.as_slice().into(),
        labels: own.labels.clone(),
        unlabeled: own.unlabeled,
    };
    let labels = own.labels.len();
    let mut kept = StateDir::open(&args.to, own, classes).map_err(|e| failure(&e))?;
    let (epoch, last_plan) = kept.epoch();
    let options = options(args, model_bits, &list, epoch, settings)?;
    let none = || Failure::input("this device has no place in the roster");
    let mut device =
        Device::new(setup, list.clone(), identity.clone(), holdings, joules).ok_or_else(none)?;
    can_listen(args.listen)?;
    Watch::listen()?;
    let trained = kept.training(&config, &spec);
    let has_trained = trained.is_some();
    device.resume(trained, last_plan);
    if has_trained {
        ui.note(&format!("{}: has trained before\n", name(&list, place)));
    } else {
        ui.note(&format!("{}: training on {}\n", name(&list, place), counted(labels, "label")));
        let mut go_on = || match Watch::is_interrupted() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        if !device.train(&mut go_on).map_err(|e| Failure::input(e.to_string()))? {
            return Err(Failure::interrupted("stopped"));
        }
        kept.keep_training(&config, &device).map_err(|e| failure(&e))?;
    }
    let device = take_part(args, ui, device, roster, &identity, options, &mut kept)?;
    tell_end(ui, &list, &device, &kept)
}

/// That the address is free and this machine's, before a long training and not after it.
fn can_listen(address: SocketAddr) -> Result<(), Failure> {
    let cannot = |e: std::io::Error| Failure::io(format!("cannot listen on {address}: {e}"));
    std::net::UdpSocket::bind(address).map(drop).map_err(cannot)
}

/// Runs the network until it ends, and has everything kept and told on the way.
fn take_part(
    args: &Args,
    ui: &Ui,
    device: Device,
    roster: SignedRoster,
    identity: &Identity,
    options: Options,
    kept: &mut StateDir,
) -> Result<Device, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Failure::io(format!("cannot start: {e}")))?;
    let metrics = metrics::Text::default();
    if let Some(address) = args.metrics {
        let bound = runtime.block_on(metrics::serve(address, metrics.clone()))?;
        ui.note(&format!("numbers for Prometheus at http://{bound}/metrics\n"));
    }
    let (orders, given) = tokio::sync::mpsc::channel(4);
    runtime.spawn(pass_on_orders(args.roster.clone(), orders));
    let mut failing = false;
    let mut observer = |view: &View<'_>, event: Event| {
        // What cannot be kept now is tried again with the next event; the epoch goes on in memory.
        let trouble = kept.hear(view, &event).err().map(|e| e.to_string());
        if let Some(trouble) = trouble.as_ref().filter(|_| !failing) {
            ui.note(&format!("cannot keep what happens: {trouble}\n"));
        }
        failing = trouble.is_some();
        let numbers = view.status().metrics() + &memory::metric();
        *metrics.lock().unwrap_or_else(PoisonError::into_inner) = numbers;
        match args.log {
            _ if event == Event::Alive => {}
            Log::Text => ui.note(&format!("{}\n", words(view.roster, &event))),
            Log::Json => {
                let line = serde_json::to_string(&Line::new(view, &event));
                ui.note(&format!("{}\n", line.unwrap_or_default()));
            }
        }
    };
    let ended = runtime.block_on(stlf_node::network::run(
        device,
        roster,
        identity,
        options,
        given,
        &mut observer,
    ));
    if args.once && Watch::is_interrupted() {
        return Err(Failure::interrupted("stopped; started again, it goes on where it was"));
    }
    ended.map_err(|e| ended_badly(&e))
}

/// Ctrl-C, and newer rosters as they are put where the first one was.
async fn pass_on_orders(roster: PathBuf, orders: Sender<Order>) {
    let changed = || std::fs::metadata(&roster).and_then(|m| m.modified()).ok();
    let mut known = changed();
    while !Watch::is_interrupted() {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = changed();
        if now != known {
            known = now;
            let read = std::fs::read(&roster).ok().and_then(|b| SignedRoster::read(&b).ok());
            if let Some(roster) = read {
                let _ = orders.send(Order::Roster(Box::new(roster))).await;
            }
        }
    }
    let _ = orders.send(Order::Stop).await;
}

/// The settings, with this device's own data where --data names it.
fn config(args: &Args) -> Result<Config, Failure> {
    let config = match &args.config {
        Some(path) => Config::read(path),
        None => Ok(Config::default()),
    };
    let own: Vec<String> = args
        .data
        .iter()
        .flat_map(|path| {
            let key = if path.is_dir() { "images" } else { "features" };
            let one = ["data.standardise=false", "partition.kind=iid", "partition.devices=1"];
            let data = format!("data.{key}={}", path.display());
            [data].into_iter().chain(one.map(str::to_owned))
        })
        .collect();
    let changes = args.set.iter().flat_map(|set| set.split_whitespace());
    let changes = own.iter().map(String::as_str).chain(changes);
    config.and_then(|config| config.with(changes)).map_err(|e| failure(&e.into()))
}

/// The roster that was named, or the one that was heard of since, if that is newer.
fn read_roster(args: &Args, ui: &Ui) -> Result<SignedRoster, Failure> {
    let path = args.roster.display();
    let bytes = std::fs::read(&args.roster)
        .map_err(|e| Failure::input(format!("cannot read {path}: {e}")))?;
    let named = SignedRoster::read(&bytes).map_err(|e| Failure::input(format!("{path}: {e}")))?;
    let Some(heard) = StateDir::roster(&args.to) else { return Ok(named) };
    match heard.replaces(&named) {
        Ok(()) => {
            let version = heard.roster().version;
            ui.note(&format!("{path} is old; using version {version}, which others sent\n"));
            Ok(heard)
        }
        Err(Invalid::Older { .. }) => Ok(named),
        Err(e) => {
            let hint = "another folder (--to) belongs to another fleet";
            Err(Failure::input(format!("{path}: {e}")).hint(hint))
        }
    }
}

fn setup(
    args: &Args,
    config: &Config,
    own: &DeviceData,
    shape: stlf_data::Shape,
    classes: usize,
    seed: u64,
) -> Result<Setup, Failure> {
    let samples = own.inputs.len() / shape.len().max(1);
    let setup = Setup::for_devices(config, shape, classes, samples, seed).map_err(|e| {
        let failure = Failure::input(e.to_string());
        match e.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    let measures_links = args.watts.is_some();
    Ok(Setup { measures_links, planning: planning(args.patience, config), ..setup })
}

/// How long the planner searches: as long as others have patience for it, or less where the configuration says so.
fn planning(patience: f64, config: &Config) -> Duration {
    let most = seconds(patience) / PLANNING_IN_PATIENCE;
    config.planner.limit().map_or(most, |limit| limit.min(most))
}

fn options(
    args: &Args,
    model_bits: f64,
    roster: &Roster,
    epoch: u64,
    settings: SharedSettings,
) -> Result<Options, Failure> {
    let mut peers = BTreeMap::new();
    for (name, address) in &args.peers {
        let place = roster.devices.iter().position(|member| member.name == *name);
        let place = place.ok_or_else(|| {
            Failure::input(format!("--peers: there is no device {name:?} in the roster"))
        })?;
        peers.insert(place, *address);
    }
    let timing = Timing {
        wait: seconds(args.wait),
        settle: seconds(args.settle),
        patience: seconds(args.patience),
    };
    Ok(Options {
        listen: args.listen,
        peers,
        timing,
        once: args.once.then(|| seconds(args.deadline)),
        epoch,
        store: Some(args.to.join(MODELS)),
        joule_bits_per_second: args.watts.unwrap_or_default() * model_bits,
        settings,
    })
}

fn seconds(s: f64) -> Duration {
    Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_planner_searches_as_long_as_patience_and_configuration_allow() {
        let within = |limit: &str| {
            let config = Config::default().with([format!("planner.time-limit={limit}").as_str()]);
            planning(30.0, &config.unwrap())
        };
        assert_eq!(planning(30.0, &Config::default()), Duration::from_secs(5));
        assert_eq!(within("2.5"), Duration::from_millis(2_500));
        assert_eq!(within("3600"), Duration::from_secs(5));
    }
}
