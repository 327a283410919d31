//! A whole run: all stages for every seed, what is finished skipped.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rayon::prelude::*;
use serde::Serialize;
use stlf::baselines::Assignment;
use stlf_data::domains::{self, Domain};
use stlf_data::{Dataset, features, folder::data_folder};

use crate::config::Config;
use crate::fleet::Fleet;
use crate::record::Row;
use crate::stages::transfer::Transfer;
use crate::stages::{measure, plan, train};
use crate::{Error, Folder};

/// The stages, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Samples are read or drawn, and dealt to devices.
    Deal,
    /// Devices train on their labels.
    Train,
    /// Divergences are measured.
    Measure,
    /// Roles and links are chosen.
    Plan,
    /// Models are sent, combined, and compared with other ways.
    Compare,
}

impl Stage {
    /// All of them.
    pub const ALL: [Stage; 5] =
        [Stage::Deal, Stage::Train, Stage::Measure, Stage::Plan, Stage::Compare];
}

/// What an observer hears: how far a stage of a seed is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The seed; none while data is read, which all seeds share.
    pub seed: Option<u64>,
    /// The stage.
    pub stage: Stage,
    /// Units of work that are done.
    pub done: usize,
    /// All of them.
    pub total: usize,
}

/// Hears of progress from any thread, and may stop the run.
pub type Observer<'a> = dyn Fn(Event) -> ControlFlow<()> + Sync + 'a;

/// One seed's line to the observer. Once it said stop, everything stops.
pub struct Watch<'a> {
    observer: &'a Observer<'a>,
    stopped: &'a AtomicBool,
    seed: Option<u64>,
}

impl Watch<'_> {
    /// Tells how far a stage is.
    pub fn see(&self, stage: Stage, done: usize, total: usize) -> Result<(), Error> {
        if (self.observer)(Event { seed: self.seed, stage, done, total }).is_break() {
            self.stopped.store(true, Ordering::Relaxed);
        }
        self.check()
    }

    /// Whether to go on.
    pub fn check(&self) -> Result<(), Error> {
        match self.stopped.load(Ordering::Relaxed) {
            true => Err(Error::Stopped),
            false => Ok(()),
        }
    }

    /// Counts the units of a stage, from any thread.
    pub fn counter(&self, stage: Stage, total: usize) -> Counter<'_> {
        Counter { watch: self, stage, total, done: AtomicUsize::new(0) }
    }
}

/// Counts the units of a stage.
pub struct Counter<'a> {
    watch: &'a Watch<'a>,
    stage: Stage,
    total: usize,
    done: AtomicUsize,
}

impl Counter<'_> {
    /// One more is done.
    pub fn one(&self) -> Result<(), Error> {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        self.watch.see(self.stage, done, self.total)
    }
}

/// What a run folder ends with: that it is finished, and of what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Manifest {
    format: &'static str,
    version: &'static str,
    config_sha256: String,
    seeds: Vec<u64>,
    files: Vec<File>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct File {
    path: String,
    sha256: String,
}

/// A finished stage of a seed, one per line of `events.jsonl`.
#[derive(Debug, Clone, Copy, Serialize)]
struct Finished {
    seed: u64,
    stage: Stage,
}

/// A share of a run's seeds, for one of several machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Which share, from 1.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

impl Shard {
    /// Every `of`-th seed, from the `number`-th on.
    fn seeds(self, seeds: &[u64]) -> Vec<u64> {
        seeds.iter().copied().skip(self.number - 1).step_by(self.of).collect()
    }
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let parts =
            text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
        match parts {
            Some((number, of)) if 1 <= number && number <= of => Ok(Shard { number, of }),
            _ => Err("write K/N, such as 3/16".to_owned()),
        }
    }
}

/// Runs everything that is not finished, and returns the rows of all seeds.
///
/// # Errors
/// [`Error::Stopped`] if the observer said so. Whatever ended it: what is finished stays, and the next call
/// goes on from there.
pub fn run(config: &Config, path: &Path, observer: &Observer<'_>) -> Result<Vec<Row>, Error> {
    let folder = open(config, path)?;
    let rows = seeds(config, &folder, &config.seeds, observer)?;
    folder.write_csv("results.csv", &rows)?;
    folder.write("results.jsonl", &lines(&rows))?;
    let events: Vec<Finished> = (config.seeds.iter())
        .flat_map(|&seed| Stage::ALL.map(|stage| Finished { seed, stage }))
        .collect();
    folder.write("events.jsonl", &lines(&events))?;
    let files = folder.hashes(&["manifest.json"])?;
    folder.write_json(
        "manifest.json",
        &Manifest {
            format: "stlf-run/1",
            version: env!("CARGO_PKG_VERSION"),
            config_sha256: config.hash()?,
            seeds: config.seeds.clone(),
            files: files.into_iter().map(|(path, sha256)| File { path, sha256 }).collect(),
        },
    )?;
    Ok(rows)
}

/// Runs one share of the seeds. Shares may run at the same time, in one folder or in several that [`merge`]
/// joins; [`run`] then finds everything finished and ends the folder.
///
/// # Errors
/// As [`run`].
pub fn run_shard(
    config: &Config,
    path: &Path,
    shard: Shard,
    observer: &Observer<'_>,
) -> Result<Vec<Row>, Error> {
    seeds(config, &open(config, path)?, &shard.seeds(&config.seeds), observer)
}

/// Brings the finished stages of several folders of one configuration into one, and returns that configuration.
///
/// # Errors
/// Names the folder whose configuration is another, or that is none.
pub fn merge(parts: &[impl AsRef<Path>], to: &Path) -> Result<Config, Error> {
    let mut config: Option<(Config, String)> = None;
    for part in parts {
        let path = part.as_ref().join("config.toml");
        let text = std::fs::read_to_string(&path).map_err(Error::file(&path))?;
        match &config {
            None => config = Some((Config::parse(&text, &path)?, text)),
            Some((_, first)) if *first == text => {}
            Some(_) => {
                let message = "this folder holds a run of another configuration";
                return Err(Error::folder(&path, message, "merge the shards of one run only"));
            }
        }
    }
    let none = || Error::folder(to, "there is nothing to merge", "name the folders of the shards");
    let (config, _) = config.ok_or_else(none)?;
    let folder = open(&config, to)?;
    for part in parts {
        let part = Folder::open(part.as_ref())?;
        for seed in &config.seeds {
            let name = format!("seed-{seed}");
            if part.file(&name).is_dir() {
                part.folder(&name)?.copy_to(&folder.folder(&name)?)?;
            }
        }
    }
    Ok(config)
}

/// The folder of this configuration's run.
fn open(config: &Config, path: &Path) -> Result<Folder, Error> {
    let folder = Folder::open(path)?;
    let text = config.to_toml()?;
    match folder.read("config.toml")? {
        None => folder.write("config.toml", text.as_bytes())?,
        Some(found) if found == text.as_bytes() => {}
        Some(_) => {
            let message = "this folder holds a run of another configuration";
            let hint = "name another folder, or delete this one";
            return Err(Error::folder(&folder.file("config.toml"), message, hint));
        }
    }
    Ok(folder)
}

/// The rows of these seeds, in order.
fn seeds(
    config: &Config,
    folder: &Folder,
    seeds: &[u64],
    observer: &Observer<'_>,
) -> Result<Vec<Row>, Error> {
    let stopped = AtomicBool::new(false);
    let shared = Watch { observer, stopped: &stopped, seed: None };
    shared.see(Stage::Deal, 0, 1)?;
    let data = load(config)?;
    shared.see(Stage::Deal, 1, 1)?;
    let rows: Vec<Vec<Row>> = seeds
        .par_iter()
        .map(|&seed| {
            let watch = Watch { observer, stopped: &stopped, seed: Some(seed) };
            one_seed(config, &data, &folder.folder(&format!("seed-{seed}"))?, seed, &watch)
        })
        .collect::<Result<_, Error>>()?;
    Ok(rows.concat())
}

fn lines<T: Serialize>(items: &[T]) -> Vec<u8> {
    let line = |item: &T| serde_json::to_string(item).map(|line| line + "\n").unwrap_or_default();
    items.iter().map(line).collect::<String>().into_bytes()
}

/// The data set that all seeds share.
fn load(config: &Config) -> Result<Dataset, Error> {
    let data = &config.data;
    #[cfg(feature = "images")]
    if let Some(folder) = &data.images {
        let options = stlf_data::image_folder::Options::default();
        return Ok(stlf_data::image_folder::load(folder, &options)?);
    }
    if let Some(table) = &data.features {
        let options =
            features::Options { label: data.label.clone(), ..features::Options::default() };
        return Ok(features::load(table, &options)?);
    }
    let names: Vec<Domain> = data.domains.iter().map(|d| d.parse()).collect::<Result<_, _>>()?;
    let folder = data.folder.clone().or_else(data_folder);
    let options = domains::Options { folder, samples: data.samples, ..domains::Options::default() };
    Ok(domains::load(&names, &options)?)
}

fn one_seed(
    config: &Config,
    data: &Dataset,
    folder: &Folder,
    seed: u64,
    watch: &Watch<'_>,
) -> Result<Vec<Row>, Error> {
    let fleet = Fleet::deal(data, &config.partition, seed)?;
    let spec = train::network(config, data.shape(), data.classes().len())?;
    let trained = train::train(config, &spec, &fleet, folder, seed, watch)?;
    let divergence = measure::measure(config, data.shape(), &fleet, folder, seed, watch)?;
    let problem = plan::problem(config, &trained.table, divergence, seed)?;
    let plan = plan::plan(config, &problem, folder, seed, watch)?;
    watch.see(Stage::Plan, 1, 1)?;
    let transfer = Transfer {
        config,
        spec: &spec,
        fleet: &fleet,
        models: &trained.models,
        problem: &problem,
        plan: Assignment::from(&*plan),
        seed,
    };
    transfer.compare(folder, watch)
}
