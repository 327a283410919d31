//! How different the devices' data are.

use rayon::prelude::*;
use stlf_config::fleet::DeviceData;
use stlf_config::{Config, Estimator, Noise};
use stlf_method::divergence::capacity::MOST_BITS;
use stlf_method::divergence::disclosure::check_inputs;
use stlf_method::divergence::{self, Estimate, all_pairs, sketch};
use stlf_planning::error::Reason;

use super::SeedRun;
use crate::record::{DivergenceRow, MeasuringRow};
use crate::shard::Block;
use crate::{Error, Folder, Stage};

/// The table that the stage ends with.
pub const TABLE: &str = "divergence.csv";

/// The name of the table of what measuring cost.
pub const COST: &str = "measuring.csv";

/// Until all pairs are there, those of each device with the devices after it.
const PARTS: &str = "pairs";

/// The divergences that were measured, and what that cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Two devices and their d̂: every pair once, or some links from a device to another.
    pub pairs: Vec<(usize, usize, f64)>,
    /// Whether these are all links that there are, each in one direction.
    pub are_links: bool,
    /// What every device sent so that they could be measured.
    pub cost: Vec<MeasuringRow>,
}

/// Returns d̂ from the table, or measures it anew.
pub fn measure(run: &SeedRun<'_>) -> Result<Measured, Error> {
    let rows = match run.folder.read_csv::<DivergenceRow>(TABLE)? {
        Some(rows) => rows,
        None => {
            let rows = match run.config.divergence.nearest {
                Some(count) => candidates(run, count)?,
                None => all(run)?,
            };
            run.folder.write_csv(COST, &cost(run)?)?;
            run.folder.write_csv(TABLE, &rows)?;
            rows
        }
    };
    run.folder.remove_folder(PARTS)?;
    let cost = match run.folder.read_csv(COST)? {
        Some(cost) => cost,
        None => cost(run)?,
    };
    Ok(Measured {
        pairs: pairs(run, &rows)?,
        are_links: run.config.divergence.nearest.is_some(),
        cost,
    })
}

/// Measures the pairs of some devices with those after them, for others to go on with.
pub fn some(run: &SeedRun<'_>, block: Block) -> Result<(), Error> {
    if run.folder.read_csv::<DivergenceRow>(TABLE)?.is_some() {
        return Ok(());
    }
    if run.config.divergence.nearest.is_some() {
        // One message a device gives all candidates at once.
        return if block.number == 0 { measure(run).map(|_| ()) } else { Ok(()) };
    }
    let parts = run.folder.folder(PARTS)?;
    let missing = missing(run, &parts, |first| block.has(first))?;
    match run.config.divergence.estimator() {
        Estimator::Classifier | Estimator::Published => by_row(run, &parts, &missing),
        Estimator::Discriminant | Estimator::Sketch | Estimator::Means | Estimator::Discrepancy => {
            together(run, &parts, &missing)
        }
    }
}

/// Returns the rows of all pairs, of which those that are kept in parts are read back.
fn all(run: &SeedRun<'_>) -> Result<Vec<DivergenceRow>, Error> {
    let parts = run.folder.folder(PARTS)?;
    let missing = missing(run, &parts, |_| true)?;
    match run.config.divergence.estimator() {
        // Pairs that take seconds each are kept as they come.
        Estimator::Classifier | Estimator::Published => by_row(run, &parts, &missing)?,
        Estimator::Discriminant | Estimator::Sketch | Estimator::Means | Estimator::Discrepancy => {
            together(run, &parts, &missing)?
        }
    }
    let mut rows = Vec::new();
    for first in 0..run.fleet.len() {
        rows.extend(parts.read_csv::<DivergenceRow>(&part(run, first))?.unwrap_or_default());
    }
    Ok(rows)
}

fn part(run: &SeedRun<'_>, first: usize) -> String {
    format!("{}.csv", run.fleet.devices[first].name)
}

/// Devices, of those asked for, whose pairs are not there yet.
fn missing(
    run: &SeedRun<'_>,
    parts: &Folder,
    asked: impl Fn(usize) -> bool,
) -> Result<Vec<usize>, Error> {
    let mut missing = Vec::new();
    for first in (0..run.fleet.len()).filter(|&first| asked(first)) {
        if parts.read(&part(run, first))?.is_none() {
            missing.push(first);
        }
    }
    Ok(missing)
}

/// Measures each device's pairs on their own.
fn by_row(run: &SeedRun<'_>, parts: &Folder, missing: &[usize]) -> Result<(), Error> {
    let total = missing.iter().map(|first| run.fleet.len() - first - 1).sum();
    let count = run.watch.counter(Stage::Measure, total);
    missing.par_iter().try_for_each(|&first| estimates(run, parts, &[first], &mut |_| count.flow()))
}

/// All in one go, for estimators whose messages serve all pairs.
fn together(run: &SeedRun<'_>, parts: &Folder, missing: &[usize]) -> Result<(), Error> {
    let watch = &run.watch;
    estimates(run, parts, missing, &mut |p| watch.goes_on(Stage::Measure, p.done, p.total))
}

/// Measures these devices with those after them, and keeps the results.
fn estimates(
    run: &SeedRun<'_>,
    parts: &Folder,
    devices: &[usize],
    observer: &mut divergence::Observer<'_>,
) -> Result<(), Error> {
    let pairs: Vec<(usize, usize)> = (all_pairs(run.fleet.len()).into_iter())
        .filter(|(first, _)| devices.contains(first))
        .collect();
    let settings = run.setup.divergence.clone();
    let seed = run.setup.divergence_seed();
    let inputs = run.fleet.inputs();
    let estimates =
        divergence::measure_pairs(&inputs, run.setup.shape, &settings, &pairs, seed, observer)?;
    let estimates = estimates.ok_or(Error::Stopped)?;
    for &device in devices {
        let own = pairs.iter().zip(&estimates).filter(|((first, _), _)| *first == device);
        let rows: Vec<DivergenceRow> = own.map(|(&(i, j), e)| row(run, i, j, *e)).collect();
        parts.write_csv(&part(run, device), &rows)?;
    }
    Ok(())
}

/// Links from the so many nearest devices with labels to every device.
fn candidates(run: &SeedRun<'_>, count: usize) -> Result<Vec<DivergenceRow>, Error> {
    let alone = run.config.divergence.sketch(run.config.data.embedding(), run.setup.shape);
    let settings = alone.with(|s| s.overlap = run.config.data.overlap());
    let seed = run.setup.divergence_seed();
    let mut see = |p: divergence::Progress| run.watch.goes_on(Stage::Measure, p.done, p.total);
    let devices = &run.fleet.devices;
    let senders: Vec<usize> =
        (0..devices.len()).filter(|&i| !devices[i].labels.is_empty()).collect();
    let receivers: Vec<usize> = (0..devices.len()).collect();
    let (inputs, shape) = (run.fleet.inputs(), run.setup.shape);
    let nearest =
        sketch::nearest(&inputs, shape, &settings, &senders, &receivers, count, seed, &mut see)?;
    let nearest = nearest.ok_or(Error::Stopped)?;
    Ok(nearest.into_iter().map(|c| row(run, c.from, c.to, c.divergence)).collect())
}

fn row(run: &SeedRun<'_>, from: usize, to: usize, estimate: Estimate) -> DivergenceRow {
    DivergenceRow {
        from: run.fleet.devices[from].name.clone(),
        to: run.fleet.devices[to].name.clone(),
        divergence: estimate.value,
        low: estimate.low,
        high: estimate.high,
        signal: estimate.has_signal(),
    }
}

/// What protects the samples behind what devices published to measure, in a sentence (docs/privacy.md).
pub fn protection(config: &Config, rows: &[MeasuringRow]) -> String {
    let noisy: Vec<f64> = rows.iter().filter_map(|row| row.epsilon).collect();
    let of_means =
        matches!(config.divergence.estimator(), Estimator::Means | Estimator::Discrepancy);
    let is_limited = of_means && config.divergence.privacy != Some(Noise::None);
    let (delta, all) = (config.divergence.delta(), rows.len());
    match noisy.first() {
        Some(epsilon) if noisy.len() == all => {
            format!("Every device added noise: (ε = {epsilon}, δ = {delta})-differential privacy.")
        }
        Some(epsilon) => format!(
            "{} of {all} devices added noise: (ε = {epsilon}, δ = {delta})-differential privacy. Not invertible: a mean of the others tells at most {MOST_BITS} bits.",
            noisy.len()
        ),
        None if is_limited => {
            format!(
                "Not invertible: a published mean tells at most {MOST_BITS} bits about a device's samples."
            )
        }
        None => {
            "Others could rebuild samples from what is published; real devices must accept that."
                .to_owned()
        }
    }
}

/// A device of a seed that a real one would be refused like: it has too few samples to measure by them.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusing {
    /// The name of the device.
    pub device: String,
    /// What a real device would say, with what to do about it.
    pub why: stlf_planning::Error,
}

/// The devices of a run that would take no part in a real fleet, by the rule that real devices start with.
pub fn refusing(run: &SeedRun<'_>) -> Vec<Refusing> {
    let accepts = run.config.divergence.accepts_disclosure();
    let why = |own: &DeviceData| {
        let checked = check_inputs(&run.setup.divergence, run.setup.shape, &own.inputs, accepts);
        // Of estimators that need consent, [`protection`] speaks.
        checked.err().filter(|why| matches!(*why.reason, Reason::TooFewSamples { .. }))
    };
    let refused = |own: &DeviceData| Some(Refusing { device: own.name.clone(), why: why(own)? });
    run.fleet.devices.par_iter().filter_map(refused).collect()
}

/// What every device sends, and the joules of that over its mean link.
fn cost(run: &SeedRun<'_>) -> Result<Vec<MeasuringRow>, Error> {
    let n = run.fleet.len();
    let bytes = run.setup.divergence.clone().bytes(n, run.setup.shape)?;
    let energy = run.setup.energies(n);
    let epsilon = |device: usize| match &run.setup.divergence {
        divergence::Settings::Sketch(settings) => {
            let samples = run.fleet.devices[device].places.len() as u64;
            settings.privacy_of(samples).map(|privacy| privacy.epsilon())
        }
        _ => None,
    };
    let row = |from: usize| {
        let has_labels = !run.fleet.devices[from].labels.is_empty();
        let bytes = bytes + if has_labels { run.scouting_bytes } else { 0 };
        let links = (0..n).filter(|&to| to != from).map(|to| energy[from * n + to]);
        let mean = links.sum::<f64>() / (n as f64 - 1.0).max(1.0);
        MeasuringRow {
            seed: run.setup.seed,
            device: run.fleet.devices[from].name.clone(),
            bytes,
            joules: mean * 8.0 * bytes as f64 / run.setup.model_bits,
            epsilon: epsilon(from),
        }
    };
    Ok((0..n).map(row).collect())
}

/// The rows by number; every pair must be there, unless they are links of their own.
fn pairs(run: &SeedRun<'_>, rows: &[DivergenceRow]) -> Result<Vec<(usize, usize, f64)>, Error> {
    let places = run.fleet.places();
    let place = |name: &str| {
        let found = places.get(name).copied();
        found.ok_or_else(|| run.folder.broken(TABLE, &format!("there is no device {name}")))
    };
    let pair = |row: &DivergenceRow| Ok((place(&row.from)?, place(&row.to)?, row.divergence));
    let pairs: Vec<(usize, usize, f64)> = rows.iter().map(pair).collect::<Result<_, Error>>()?;
    if run.config.divergence.nearest.is_none() {
        let mut found: Vec<(usize, usize)> =
            pairs.iter().map(|&(i, j, _)| (i.min(j), i.max(j))).collect();
        found.sort_unstable();
        if found != all_pairs(run.fleet.len()) {
            return Err(run.folder.broken(TABLE, "a pair of devices is missing").into());
        }
    }
    Ok(pairs)
}
