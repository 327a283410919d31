//! A whole run: all stages for every seed, what is finished skipped.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rayon::prelude::*;
use serde::Serialize;
use stlf_config::Config;
use stlf_config::answers::Unheard;
use stlf_config::fleet::{check_names, load};
use stlf_data::features::Scale;
use stlf_data::partition::Scheme;
use stlf_data::{Dataset, atomic_file};
use stlf_method::method::Method;
use stlf_protocol::Setup;

use crate::data_source;
use crate::folder::hashes;
use crate::record::{
    ClassRow, ComputingRow, ExpectedRow, MeasuringRow, RefusedRow, Row, ScaleRow, StudentRow,
    TrainingRow,
};
use crate::scale_choice::{self, Scaled};
use crate::shard::{Block, Shard};
use crate::stages::calibration::{self, Calibrated};
use crate::stages::measure::Refusing;
use crate::stages::transfer::{self, Transfer};
use crate::stages::{SeedRun, computing, expectation, handover, measure, plan, student, train};
use crate::watch::{Observer, Stage, Watch};
use crate::{Error, Folder, Learners};

/// The results of a run, and what it has to tell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// The results, one row per seed, method and target.
    pub rows: Vec<Row>,
    /// How devices trained alone, one per seed and device.
    pub training: Vec<TrainingRow>,
    /// What measuring cost, one per seed and device.
    pub measuring: Vec<MeasuringRow>,
    /// A sentence on how the samples of a table were dealt, where nobody had said how; without its full stop.
    pub dealt_by: Option<String>,
    /// What decided by whose values features are scaled, where that was chosen.
    pub tried_scales: Vec<ScaleRow>,
    /// The scale of features in each seed.
    pub scales: Vec<Scale>,
    /// What was measured of divergences in each seed, where that was.
    pub calibrated: Vec<Calibrated>,
    /// Targets of all seeds to which no source was near.
    pub strangers: usize,
    /// Targets that get the models of all sources, since no device is near another.
    pub mixed_for_strangers: usize,
    /// The energy of links into targets as a part of that of all links, one per seed.
    pub links_shares: Vec<f64>,
    /// The accuracy that targets may expect, one per seed and target.
    pub expected: Vec<ExpectedRow>,
    /// Models that sources refused, one per seed and hand-over.
    pub refused: Vec<RefusedRow>,
    /// What came of students, one per seed, method and target, where targets train any.
    pub students: Vec<StudentRow>,
    /// What devices compute for ST-LF, one per seed and device, where that is priced.
    pub computing: Vec<ComputingRow>,
    /// How often the classes are there and are predicted, one per seed and class.
    pub classes: Vec<ClassRow>,
    /// Devices that real ones would be refused like, since they have too few samples to measure: by seed.
    pub refusing: Vec<Refusing>,
    /// Answers that are about samples of no device, in any seed.
    pub unheard: Vec<Unheard>,
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

/// What is wanted of a run.
struct Job<'a> {
    config: &'a Config,
    folder: &'a Folder,
    /// The last stage that is carried out.
    until: Stage,
    methods: &'a [Method],
    /// Learners that are there already; else the configuration names any.
    learners: Option<&'a Learners>,
}

/// What devices have, in all seeds.
pub(crate) enum Holdings<'a> {
    /// Samples of one data set, which are dealt.
    Dealt(Box<Dataset>),
    /// Learners of the user's, with their data.
    Learners(Cow<'a, Learners>),
}

impl Holdings<'_> {
    /// Returns the names of the classes.
    fn classes(&self) -> &[String] {
        match self {
            Holdings::Dealt(data) => data.classes(),
            Holdings::Learners(learners) => learners.classes(),
        }
    }
}

/// Runs everything that is not finished, and ends the folder.
///
/// # Errors
/// [`Error::Stopped`] if the observer said so. Whatever ended it: what is finished stays, and the next call
/// goes on from there.
pub fn run(config: &Config, path: &Path, observer: &Observer<'_>) -> Result<Outcome, Error> {
    whole(config, None, path, observer)
}

/// The same with learners that are there already: those of `data.devices`, which the configuration need not be able to start.
///
/// # Errors
/// As [`run`].
pub fn run_with(
    config: &Config,
    learners: &Learners,
    path: &Path,
    observer: &Observer<'_>,
) -> Result<Outcome, Error> {
    whole(config, Some(learners), path, observer)
}

fn whole(
    config: &Config,
    learners: Option<&Learners>,
    path: &Path,
    observer: &Observer<'_>,
) -> Result<Outcome, Error> {
    let methods = config.compare.methods()?;
    let folder = open(config, path)?;
    let job = Job { config, folder: &folder, until: Stage::Compare, methods: &methods, learners };
    let outcome = job.shard(Shard::WHOLE, observer)?;
    folder.write_csv("results.csv", &outcome.rows)?;
    folder.write("results.jsonl", &lines(&outcome.rows))?;
    let events: Vec<Finished> = (config.seeds.iter())
        .flat_map(|&seed| Stage::ALL.map(|stage| Finished { seed, stage }))
        .collect();
    folder.write("events.jsonl", &lines(&events))?;
    let files = hashes(&folder, &["manifest.json", "report.html"])?;
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
    Ok(outcome)
}

/// Compares these methods, which need not be those of the configuration, and does what they need.
///
/// # Errors
/// As [`run`].
pub fn compare(
    config: &Config,
    path: &Path,
    methods: &[Method],
    observer: &Observer<'_>,
) -> Result<Outcome, Error> {
    let folder = open(config, path)?;
    let job = Job { config, folder: &folder, until: Stage::Compare, methods, learners: None };
    job.shard(Shard::WHOLE, observer)
}

/// Runs all that a stage needs, and the stage, for every seed.
///
/// # Errors
/// As [`run`].
pub fn reach(
    config: &Config,
    path: &Path,
    until: Stage,
    observer: &Observer<'_>,
) -> Result<Outcome, Error> {
    let folder = open(config, path)?;
    let job = Job { config, folder: &folder, until, methods: &[], learners: None };
    job.shard(Shard::WHOLE, observer)
}

/// Runs one shard. Shards may run at the same time, in one folder or in several that [`crate::merge`]
/// joins; [`run`] then finds what they did and ends the folder.
///
/// # Errors
/// As [`run`].
pub fn run_shard(
    config: &Config,
    path: &Path,
    shard: Shard,
    observer: &Observer<'_>,
) -> Result<(), Error> {
    let methods = config.compare.methods()?;
    let folder = open(config, path)?;
    let until = Stage::Compare;
    let job = Job { config, folder: &folder, until, methods: &methods, learners: None };
    job.shard(shard, observer).map(|_| ())
}

/// The configuration of a run, in its folder.
pub(crate) const CONFIG: &str = "config.toml";

/// Opens the folder of this configuration's run.
pub(crate) fn open(config: &Config, path: &Path) -> Result<Folder, Error> {
    let folder = Folder::open(path)?;
    let text = config.to_toml()?;
    match folder.read(CONFIG)? {
        None => {
            atomic_file::sweep(path)?;
            folder.write(CONFIG, text.as_bytes())?;
        }
        Some(found) if found == text.as_bytes() => folder.sweep()?,
        Some(found) if is_but_for_answers(config, &found)? => {
            folder.sweep()?;
            folder.write(CONFIG, text.as_bytes())?;
        }
        Some(_) => {
            let message = "this folder holds a run of another configuration";
            let hint = "name another folder, or delete this one";
            return Err(Error::folder(&folder.file(CONFIG), message, hint));
        }
    }
    Ok(folder)
}

/// Whether this is the text of the same configuration with other answers or none. What came of those is made again.
fn is_but_for_answers(config: &Config, found: &[u8]) -> Result<bool, Error> {
    let found = String::from_utf8_lossy(found);
    let Ok(found) = Config::parse(&found, Path::new(CONFIG)) else { return Ok(false) };
    Ok(found.without_answers().to_toml()? == config.without_answers().to_toml()?)
}

/// A folder that the same configuration finds again: `runs/NAME-HASH`, by the file's name.
///
/// # Errors
/// A configuration that cannot be written.
pub fn default_folder(file: &Path, config: &Config) -> Result<PathBuf, Error> {
    let name = file.file_stem().map_or("run".into(), |name| name.to_string_lossy());
    Ok(Path::new("runs").join(format!("{name}-{}", &config.hash()?[..8])))
}

/// The folder of a seed inside that of its run.
pub fn seed_folder(seed: u64) -> String {
    format!("seed-{seed}")
}

impl Job<'_> {
    /// Does a shard of the job. If it fails before it has kept anything, the folder is free for a configuration that is put right.
    fn shard(&self, shard: Shard, observer: &Observer<'_>) -> Result<Outcome, Error> {
        let outcome = self.all_seeds(shard, observer);
        let has_failed = outcome.as_ref().is_err_and(|e| !matches!(e, Error::Stopped));
        if has_failed && hashes(self.folder, &[CONFIG, data_source::FILE])?.is_empty() {
            for name in [CONFIG, data_source::FILE] {
                let file = self.folder.file(name);
                if file.exists() {
                    std::fs::remove_file(&file).map_err(Error::file(&file))?;
                }
            }
            remove_if_empty(self.folder.path());
        }
        outcome
    }

    /// What came of a shard, in the order of the seeds.
    fn all_seeds(&self, shard: Shard, observer: &Observer<'_>) -> Result<Outcome, Error> {
        let stopped = AtomicBool::new(false);
        let watch = Watch::new(observer, &stopped);
        let holdings = self.holdings(&watch)?;
        let config = match &holdings {
            Holdings::Dealt(_) => Cow::Borrowed(self.config),
            Holdings::Learners(learners) => Cow::Owned(learners.configured(self.config)?),
        };
        let outcomes: Vec<Outcome> = shard
            .units(&self.config.seeds)
            .par_iter()
            .map(|&(seed, block)| self.one_seed(&config, &holdings, seed, block, watch.of(seed)))
            .collect::<Result<_, Error>>()?;
        let dealt_by = match &holdings {
            Holdings::Dealt(data) if self.config.partition.is_none() => Scheme::told_for_data(data),
            _ => None,
        };
        let mut all = Outcome { dealt_by, ..Outcome::default() };
        let mut is_first = true;
        for outcome in outcomes {
            all.rows.extend(outcome.rows);
            all.training.extend(outcome.training);
            all.measuring.extend(outcome.measuring);
            all.tried_scales.extend(outcome.tried_scales);
            all.scales.extend(outcome.scales);
            all.calibrated.extend(outcome.calibrated);
            all.strangers += outcome.strangers;
            all.mixed_for_strangers += outcome.mixed_for_strangers;
            all.links_shares.extend(outcome.links_shares);
            all.expected.extend(outcome.expected);
            all.refused.extend(outcome.refused);
            all.students.extend(outcome.students);
            all.computing.extend(outcome.computing);
            all.classes.extend(outcome.classes);
            all.refusing.extend(outcome.refusing);
            // Who holds a sample may differ from seed to seed.
            match is_first {
                true => all.unheard = outcome.unheard,
                false => all.unheard.retain(|answer| outcome.unheard.contains(answer)),
            }
            is_first = false;
        }
        Ok(all)
    }

    /// Reads the data, or takes or starts the learners that have them.
    fn holdings(&self, watch: &Watch<'_>) -> Result<Holdings<'_>, Error> {
        if let Some(learners) = self.learners {
            return Ok(Holdings::Learners(Cow::Borrowed(learners)));
        }
        match Learners::start(self.config, self.folder, watch)? {
            Some(learners) => Ok(Holdings::Learners(Cow::Owned(learners))),
            None => {
                watch.see(Stage::Deal, 0, 1)?;
                let data = load(self.config)?;
                data_source::check(self.config, self.folder)?;
                watch.see(Stage::Deal, 1, 1)?;
                Ok(Holdings::Dealt(Box::new(data)))
            }
        }
    }

    fn one_seed(
        &self,
        config: &Config,
        holdings: &Holdings<'_>,
        seed: u64,
        block: Block,
        watch: Watch<'_>,
    ) -> Result<Outcome, Error> {
        let (run, tried) = seed_run(config, holdings, seed, self.folder, watch)?;
        let run = &run;
        let mut outcome = Outcome { scales: vec![run.fleet.scale], ..Outcome::default() };
        outcome.refusing = measure::refusing(run);
        if let Holdings::Dealt(data) = holdings
            && let Some(answers) = stlf_config::fleet::answers(config, data)?
        {
            outcome.unheard = answers.unheard(&run.fleet);
        }
        if !tried.is_empty() && block.is_whole() {
            run.folder.write_csv(scale_choice::TABLE, &tried)?;
            outcome.tried_scales = tried;
        }
        if !block.is_whole() {
            train::some(run, block)?;
            measure::some(run, block)?;
            return Ok(outcome);
        }
        if self.until == Stage::Measure {
            outcome.measuring = measure::measure(run)?.cost;
            return Ok(outcome);
        }
        let trained = train::train(run)?;
        let measured = measure::measure(run)?;
        let problem = plan::problem(run, &trained.table, &measured)?;
        let (problem, calibrated) = calibration::calibrated(run, problem, &measured)?;
        outcome.calibrated.extend(calibrated);
        let plan = plan::plan(run, &problem)?;
        outcome.training.clone_from(&trained.table);
        outcome.measuring.clone_from(&measured.cost);
        let strangers = plan.strangers(&problem);
        let is_mixed = |to: &&usize| !problem.required_into(**to).is_empty();
        outcome.links_shares.extend(plan.links_share(&problem));
        outcome.strangers = strangers.len();
        outcome.mixed_for_strangers = strangers.iter().filter(is_mixed).count();
        if self.until == Stage::Plan {
            return Ok(outcome);
        }
        let transfer = Transfer::new(run, &trained.models, &problem, &measured.cost, &plan);
        outcome.rows = transfer.transfer(holdings.classes())?;
        transfer.bounds()?;
        transfer.frontier(&plan)?;
        let mut shown = vec![Method::StLf];
        if self.until == Stage::Compare {
            outcome.rows = transfer.compare(self.methods)?;
            shown = self.methods.to_vec();
        }
        outcome.expected = run.folder.read_csv(expectation::TABLE)?.unwrap_or_default();
        outcome.classes = run.folder.read_csv(transfer::CLASSES)?.unwrap_or_default();
        outcome.refused = run.folder.read_csv(handover::REFUSED)?.unwrap_or_default();
        outcome.students = student::read(&run.folder, &shown)?;
        outcome.computing = computing::computing(run, &plan)?;
        Ok(outcome)
    }
}

/// A seed of a run, with its devices and their data, and what decided how features are scaled, where that was open.
pub(crate) fn seed_run<'a>(
    config: &'a Config,
    holdings: &'a Holdings<'_>,
    seed: u64,
    folder: &Folder,
    watch: Watch<'a>,
) -> Result<(SeedRun<'a>, Vec<ScaleRow>), Error> {
    let (Scaled { fleet, tried, scouted, bytes }, learners) = match holdings {
        Holdings::Dealt(data) => {
            let mut scaled = scale_choice::deal(config, data, seed)?;
            if let Some(answers) = stlf_config::fleet::answers(config, data)? {
                scaled.fleet.answer(&answers)?;
            }
            (scaled, None)
        }
        Holdings::Learners(learners) => (Scaled::unscouted(learners.fleet()?), Some(&**learners)),
    };
    let source = [&config.data.images, &config.data.features].into_iter().flatten().next();
    let named_in = source.map_or(folder.path(), |path| path.as_path());
    check_names(fleet.devices.iter().map(|device| device.name.as_str()), named_in)?;
    let setup = Setup::new(config, fleet.shape, holdings.classes().len(), seed)?;
    let first = Arc::new(setup.first_model());
    let run = SeedRun {
        config,
        setup: match learners {
            Some(learners) => Setup { model_bits: config.model_bits(learners.layout()), ..setup },
            None => setup,
        },
        fleet,
        first,
        learners,
        scouted,
        scouting_bytes: bytes,
        folder: folder.folder(&seed_folder(seed))?,
        watch,
    };
    Ok((run, tried))
}

/// Removes a folder in which there are folders at most, with these. Where it cannot be removed nothing is lost.
fn remove_if_empty(path: &Path) {
    let inside = std::fs::read_dir(path).into_iter().flatten().flatten();
    inside.filter(|entry| entry.path().is_dir()).for_each(|entry| remove_if_empty(&entry.path()));
    let _ = std::fs::remove_dir(path);
}

fn lines<T: Serialize>(items: &[T]) -> Vec<u8> {
    let line = |item: &T| serde_json::to_string(item).map(|line| line + "\n").unwrap_or_default();
    items.iter().map(line).collect::<String>().into_bytes()
}
