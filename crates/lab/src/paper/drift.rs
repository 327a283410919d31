//! Drift: the accuracy of a fleet whose data move on, if it plans once, at every step, or when a change matters.

mod lives;
mod windows;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use stlf_config::fleet::load;
use stlf_config::{Config, Model};
use stlf_data::Dataset;
use stlf_figure::{Axis, lines, panels};
use stlf_method::adapt::Adapt;
use stlf_protocol::Setup;

use self::lives::{Lives, Policy, StepRow};
use self::windows::Windows;
use super::output::{Output, Table, percent};
use super::settings::Lab;
use super::spec::Spec;
use super::{Artifact, Made};
use crate::run::{open, seed_folder};
use crate::summary::Spread;
use crate::watch::Watch;
use crate::{Error, Folder};

/// A natural fleet whose data drift, as the spec describes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Drifting {
    /// The name by which users choose the fleet.
    pub(super) name: String,
    /// The name that the fleet has in tables.
    title: String,
    /// The table of the fleet's features in the data folder.
    table: PathBuf,
    /// The column with the batch of a row; their names are in the order of time.
    time: String,
    devices: usize,
    /// How many of them have labels.
    labeled: usize,
    /// The rows that a device holds at a time.
    window: usize,
    /// The rows by which its window moves on with every step.
    stride: usize,
    /// The most rows by which a device may be ahead of another.
    apart: usize,
    /// Whether devices with labels keep their first window for ever.
    #[serde(default)]
    labels_end: bool,
}

/// The steps of every training: few, since a window has few rows.
const TRAINING: usize = 3_000;

/// The steps of every training where it need only work.
const QUICK_TRAINING: usize = 200;

/// The name of the table with the results of a seed.
const ROWS: &str = "drift.csv";

/// A policy in a fleet, mean over draws: shares of 1.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Entry {
    fleet: String,
    policy: String,
    draws: usize,
    steps: usize,
    /// The mean accuracy over all steps.
    accuracy: f64,
    /// The mean difference to planning once, draw by draw.
    difference: f64,
    difference_half_interval: f64,
    /// The mean difference to doing so at every step.
    behind: f64,
    behind_half_interval: f64,
    /// The mean of the last third of the steps.
    last_third: f64,
    /// The mean over steps of the worst device.
    worst_device: f64,
    plans: f64,
    /// How often a device published new means.
    renewed: f64,
    trained: f64,
    /// What was sent in all steps, measuring included.
    bytes: f64,
    measuring_bytes: f64,
    joules: f64,
    /// Joules over those of doing everything at every step.
    energy: f64,
    /// The share of looks at other rows of the same batch that were alarms, and of looks at rows of which half or more were of later batches.
    false_alarms: Option<f64>,
    noticed: Option<f64>,
}

/// All fleets under all policies, as a table and a figure.
pub(super) fn make(artifact: Artifact, spec: &Spec, lab: &Lab<'_>) -> Result<Made, Error> {
    let fleets = fleets(spec, lab)?;
    let (mut entries, mut all) = (Vec::new(), Vec::new());
    for (place, fleet) in fleets.iter().enumerate() {
        (lab.heard)(&fleet.title, place + 1, fleets.len());
        let rows = fleet.rows(lab)?;
        entries.extend(Policy::ALL.into_iter().filter_map(|policy| entry(fleet, policy, &rows)));
        all.push(rows);
    }
    let mut output = Output::new(artifact, lab.folder);
    output.rows("steps", &all.concat())?;
    output.rows("", &entries)?;
    let table = table(&fleets, &entries);
    output.table(&table)?;
    output.figure(&picture(spec, &fleets, &all))?;
    Ok(output.made(spec, &table, note(&entries)))
}

/// The fleets that the user wants to see.
fn fleets<'s>(spec: &'s Spec, lab: &Lab<'_>) -> Result<Vec<&'s Drifting>, Error> {
    lab.wanted(&spec.drifting, |fleet| &fleet.name, "a fleet that drifts")
}

impl Drifting {
    fn path(&self, lab: &Lab<'_>) -> PathBuf {
        let quick = if lab.options.quick { "-quick" } else { "" };
        let (name, seeds) = (&self.name, lab.options.seeds);
        lab.folder.path().join("runs").join(format!("drift-{name}{quick}-{seeds}"))
    }

    /// Models as sources train them, without hand-overs, so that a source that changes changes no other.
    fn config(&self, lab: &Lab<'_>) -> Result<Config, Error> {
        let Some(folder) = &lab.options.data else {
            return Err(stlf_planning::Error::other("data", "drift is read from a file")
                .with_hint("name the folder that has natural/: --data DIR")
                .into());
        };
        let file = folder.join(&self.table);
        if !file.is_file() {
            let message = format!("there is no file {}", file.display());
            let hint = "experiments/natural/README.md says where its data come from";
            return Err(stlf_planning::Error::other("data", message).with_hint(hint).into());
        }
        let mut config = Config { seeds: lab.seeds(), ..Config::default() };
        config.data.features = Some(file);
        config.data.device = Some(self.time.clone());
        config.training.model = Model::Mlp;
        config.training.steps = Some(if lab.options.quick { QUICK_TRAINING } else { TRAINING });
        config.transfer.adapt = Adapt::Off;
        config.planner.handovers = Some(false);
        Ok(config)
    }

    /// The steps of every seed under every policy; finished seeds are read back.
    fn rows(&self, lab: &Lab<'_>) -> Result<Vec<StepRow>, Error> {
        let config = self.config(lab)?;
        let folder: Folder = open(&config, &self.path(lab))?;
        let stopped = AtomicBool::new(false);
        let watch = Watch::new(lab.observer, &stopped);
        let data = load(&config)?;
        let of_seed = |&seed: &u64| {
            let folder = folder.folder(&seed_folder(seed))?;
            if let Some(rows) = folder.read_csv(ROWS)? {
                return Ok(rows);
            }
            let rows = self.of_seed(&config, &data, seed, &watch.of(seed))?;
            folder.write_csv(ROWS, &rows)?;
            Ok(rows)
        };
        let seeds: Vec<Vec<StepRow>> =
            config.seeds.par_iter().map(of_seed).collect::<Result<_, Error>>()?;
        Ok(seeds.concat())
    }

    fn of_seed(
        &self,
        config: &Config,
        data: &Dataset,
        seed: u64,
        watch: &Watch<'_>,
    ) -> Result<Vec<StepRow>, Error> {
        let windows = Windows::new(data, self, seed)?;
        let setup = Setup::new(config, data.shape(), data.classes().len(), seed)?;
        let lives = Lives::new(&setup, &windows, watch)?;
        let rows = Policy::ALL.par_iter().map(|&policy| lives.under(policy, &self.name));
        Ok(rows.collect::<Result<Vec<_>, Error>>()?.concat())
    }
}

/// The rows of a policy by seed, in the order of steps.
fn by_seed(policy: Policy, rows: &[StepRow]) -> Vec<Vec<&StepRow>> {
    let own: Vec<&StepRow> = rows.iter().filter(|row| row.policy == policy.name()).collect();
    own.chunk_by(|a, b| a.seed == b.seed).map(<[&StepRow]>::to_vec).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

fn entry(fleet: &Drifting, policy: Policy, rows: &[StepRow]) -> Option<Entry> {
    let seeds = by_seed(policy, rows);
    let accuracies = |policy: Policy| -> Vec<f64> {
        by_seed(policy, rows).iter().map(|of| mean(of.iter().map(|row| row.accuracy))).collect()
    };
    let own = accuracies(policy);
    let minus = |other: Policy| {
        let pairs = own.iter().zip(accuracies(other));
        Spread::of(&pairs.map(|(own, other)| own - other).collect::<Vec<f64>>())
    };
    let (once, always) = (minus(Policy::Once)?, minus(Policy::Always)?);
    let steps = seeds.iter().map(Vec::len).max()?;
    let total = |seeds: &[Vec<&StepRow>], value: &dyn Fn(&StepRow) -> f64| {
        mean(seeds.iter().map(|of| of.iter().map(|row| value(row)).sum::<f64>()))
    };
    let sum = |value: &dyn Fn(&StepRow) -> f64| total(&seeds, value);
    let share = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
    let joules = |row: &StepRow| row.joules;
    Some(Entry {
        fleet: fleet.name.clone(),
        policy: policy.name().to_owned(),
        draws: seeds.len(),
        steps,
        accuracy: mean(own.iter().copied()),
        difference: once.mean,
        difference_half_interval: once.half_interval(),
        behind: always.mean,
        behind_half_interval: always.half_interval(),
        last_third: mean(seeds.iter().map(|of| {
            let last = &of[of.len() - of.len().div_ceil(3)..];
            mean(last.iter().map(|row| row.accuracy))
        })),
        worst_device: mean(seeds.iter().map(|of| mean(of.iter().map(|row| row.worst_device)))),
        plans: sum(&|row| f64::from(u8::from(row.planned))),
        renewed: sum(&|row| row.renewed as f64),
        trained: sum(&|row| row.trained as f64),
        bytes: sum(&|row| row.bytes as f64),
        measuring_bytes: sum(&|row| row.measuring_bytes as f64),
        joules: sum(&joules),
        energy: sum(&joules) / total(&by_seed(Policy::Always, rows), &joules),
        false_alarms: share(
            sum(&|row| row.alarms_alike as f64),
            sum(&|row| row.looks_alike as f64),
        ),
        noticed: share(sum(&|row| row.alarms_apart as f64), sum(&|row| row.looks_apart as f64)),
    })
}

fn table(fleets: &[&Drifting], entries: &[Entry]) -> Table {
    let mut table = Table::new([
        "fleet",
        "measures, plans and trains",
        "accuracy, %",
        "minus once, paired 95 %",
        "last third, %",
        "worst device, %",
        "plans",
        "devices measured",
        "trainings",
        "kB sent",
        "of that measuring",
        "energy, % of every step",
    ]);
    for fleet in fleets {
        for entry in entries.iter().filter(|entry| entry.fleet == fleet.name) {
            let difference = match entry.policy == Policy::Once.name() {
                true => "–".to_owned(),
                false => format!(
                    "{:+.1} ± {}",
                    100.0 * entry.difference,
                    percent(entry.difference_half_interval)
                ),
            };
            table.row([
                fleet.title.clone(),
                entry.policy.clone(),
                percent(entry.accuracy),
                difference,
                percent(entry.last_third),
                percent(entry.worst_device),
                format!("{:.1}", entry.plans),
                format!("{:.1}", entry.renewed),
                format!("{:.1}", entry.trained),
                format!("{:.0}", entry.bytes / 1e3),
                format!("{:.0}", entry.measuring_bytes / 1e3),
                format!("{:.0}", 100.0 * entry.energy),
            ]);
        }
    }
    table
}

/// What doing it when it matters loses and saves, and how often the rule is right.
fn note(entries: &[Entry]) -> String {
    let matters = entries.iter().filter(|entry| entry.policy == Policy::WhenItMatters.name());
    let sentence = |entry: &Entry| {
        let share = |share: Option<f64>| share.map_or("–".to_owned(), percent);
        format!(
            "{}: when it matters is {:+.1} ± {} points from every step, at {:.0} % of its energy. The rule raised an alarm at {} % of the looks at \
             other rows of the same batch, and at {} % of those at windows of which half or more was of later batches.",
            entry.fleet,
            100.0 * entry.behind,
            percent(entry.behind_half_interval),
            100.0 * entry.energy,
            share(entry.false_alarms),
            share(entry.noticed),
        )
    };
    matters.map(sentence).collect::<Vec<_>>().join(" ")
}

fn picture(spec: &Spec, fleets: &[&Drifting], all: &[Vec<StepRow>]) -> stlf_figure::Figure {
    // The policy of interest is drawn above the others.
    let order = [Policy::WhenItMatters, Policy::Always, Policy::Once];
    let chart = |(fleet, rows): (&&Drifting, &Vec<StepRow>)| {
        let series = order.map(|policy| {
            let seeds = by_seed(policy, rows);
            let steps = seeds.iter().map(Vec::len).min().unwrap_or(0);
            let at = |step: usize| {
                let values: Vec<f64> = seeds.iter().map(|of| 100.0 * of[step].accuracy).collect();
                Spread::of(&values)
            };
            let spreads: Vec<Spread> = (0..steps).filter_map(at).collect();
            let points = spreads.iter().enumerate().map(|(k, s)| ((k + 1) as f64, s.mean));
            lines::Series {
                band: Some(spreads.iter().map(Spread::interval).collect()),
                ..lines::Series::new(policy.name(), points.collect())
            }
        });
        let chart = lines::Chart {
            title: fleet.title.clone(),
            x: Axis::linear("step"),
            y: Axis { range: Some((0.0, 100.0)), ..Axis::linear("accuracy without labels, %") },
            series: series.to_vec(),
            width: 480.0,
            ..lines::Chart::default()
        };
        chart.draw()
    };
    panels::arrange(&spec.title, 2, fleets.iter().zip(all).map(chart).collect())
}
