//! Fleets that nobody arranged: each person, writer or month is a device. ST-LF beside FedAvg, rounds of it, pooled training and the best
//! single source.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use stlf_config::{Config, Model};
use stlf_data::labels::Labeled;
use stlf_data::partition::{ByDomain, Scheme};
use stlf_figure::bars;
use stlf_method::method::Method;

use super::output::{Output, Table};
use super::settings::Lab;
use super::spec::Spec;
use super::{Artifact, Made};
use crate::record::Row;
use crate::summary::{Line, Spread, paired, summarise};
use crate::{Error, compare};

/// A natural fleet, as the spec describes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct NaturalFleet {
    /// The name by which users choose the fleet.
    pub(super) name: String,
    /// The name that the fleet has in tables.
    title: String,
    /// The table of the fleet's features in the data folder.
    table: Option<PathBuf>,
    /// The column that names the device.
    device: Option<String>,
    /// The columns of the table that are no features.
    #[serde(default)]
    ignore: Vec<String>,
    /// Instead of a table: so many of MNIST's writers.
    writers: Option<usize>,
    /// The fraction of its labels that each device keeps.
    labeled: Option<Labeled>,
    /// Instead of that: so many devices, in the order of their names.
    labeled_first: Option<usize>,
    /// Steps of every device, where they are not the usual ones.
    steps: Option<usize>,
    /// Values of `data.standardise`, each a run.
    #[serde(default = "one_scale")]
    scales: Vec<String>,
}

/// What a scale is called where the key is left out.
const DEFAULT: &str = "default";

/// The steps of a run that only shows that everything works.
const QUICK_STEPS: usize = 200;

fn one_scale() -> Vec<String> {
    vec![DEFAULT.to_owned()]
}

/// A fleet with one scale of its features.
pub(super) struct Run<'s> {
    fleet: &'s NaturalFleet,
    scale: &'s str,
}

impl<'s> Run<'s> {
    /// Returns the run of a fleet with its usual scale.
    pub(super) fn usual(fleet: &'s NaturalFleet) -> Run<'s> {
        Run { fleet, scale: DEFAULT }
    }

    /// Returns the name that tables and progress have for the run.
    pub(super) fn title(&self) -> String {
        match self.scale {
            DEFAULT => self.fleet.title.clone(),
            scale => format!("{}, scale \"{scale}\"", self.fleet.title),
        }
    }

    /// Returns the run's folder among the runs; another choice of options has another one.
    pub(super) fn path(&self, lab: &Lab<'_>) -> PathBuf {
        let quick = if lab.options.quick { "-quick" } else { "" };
        let (name, scale, seeds) = (&self.fleet.name, self.scale, lab.options.seeds);
        lab.folder.path().join("runs").join(format!("natural-{name}-{scale}{quick}-{seeds}"))
    }

    pub(super) fn config(&self, lab: &Lab<'_>) -> Result<Config, Error> {
        let Some(folder) = &lab.options.data else {
            return Err(stlf_planning::Error::other("data", "natural fleets are read from files")
                .with_hint("name the folder that has MNIST and natural/: --data DIR")
                .into());
        };
        let mut config = Config { seeds: lab.seeds(), ..Config::default() };
        if self.scale != DEFAULT {
            config = config.with([format!("data.standardise={}", self.scale).as_str()])?;
        }
        config.training.steps =
            if lab.options.quick { Some(QUICK_STEPS) } else { self.fleet.steps };
        match &self.fleet.table {
            Some(table) => {
                let file = folder.join(table);
                if !file.is_file() {
                    let message = format!("there is no file {}", file.display());
                    let hint = "experiments/natural/README.md says where its data come from; --settings chooses other fleets";
                    return Err(stlf_planning::Error::other("data", message)
                        .with_hint(hint)
                        .into());
                }
                config.data.features = Some(file);
                config.data.device.clone_from(&self.fleet.device);
                config.data.ignore.clone_from(&self.fleet.ignore);
                config.training.model = Model::Mlp;
            }
            None => {
                config.data.domains = vec!["mnist".to_owned()];
                config.data.folder = Some(folder.clone());
                config.data.writers = self.fleet.writers;
            }
        }
        let labeled = match self.fleet.labeled_first {
            Some(first) => {
                let devices = stlf_config::fleet::load(&config)?.domains().len();
                Labeled::Each((0..devices).map(|i| f64::from(u8::from(i < first))).collect())
            }
            None => self.fleet.labeled.clone().unwrap_or_default(),
        };
        let scheme = ByDomain { labeled, ..ByDomain::default() };
        config.partition = Some(Scheme::ByDomain(scheme));
        Ok(config)
    }
}

/// A row of a run, with its fleet.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct TracedRow<'r> {
    fleet: &'r str,
    scale: &'r str,
    seed: u64,
    method: &'r str,
    target: &'r str,
    accuracy: Option<f64>,
    links: usize,
    joules: f64,
    all_joules: f64,
    bytes: u64,
    measuring_joules: f64,
    measuring_bytes: u64,
}

impl<'r> TracedRow<'r> {
    fn new(run: &'r Run<'_>, row: &'r Row) -> TracedRow<'r> {
        TracedRow {
            fleet: &run.fleet.name,
            scale: run.scale,
            seed: row.seed,
            method: &row.method,
            target: &row.target,
            accuracy: row.accuracy,
            links: row.links,
            joules: row.joules,
            all_joules: row.all_joules,
            bytes: row.bytes,
            measuring_joules: row.measuring_joules,
            measuring_bytes: row.measuring_bytes,
        }
    }
}

/// A method on a fleet: percent, except bytes.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Entry {
    fleet: String,
    scale: String,
    method: String,
    draws: usize,
    accuracy: Option<f64>,
    /// Half of the 95 % interval of the mean.
    accuracy_half_interval: Option<f64>,
    /// The mean difference to the method that is compared with, draw by draw.
    difference: Option<f64>,
    difference_half_interval: Option<f64>,
    /// The mean over draws of the target with the lowest accuracy.
    worst_device: Option<f64>,
    /// Links, hand-overs and measuring in percent of all links; none where data would move.
    energy: Option<f64>,
    /// What these send; none where data would move.
    bytes: Option<f64>,
}

fn entry(run: &Run<'_>, line: &Line, rows: &[Row], with: &str) -> Entry {
    let percent = |share: f64| 100.0 * share;
    let difference = (line.method != with).then(|| paired(rows, &line.method, with)).flatten();
    let sends = line.method != Method::Pooled.name();
    Entry {
        fleet: run.fleet.name.clone(),
        scale: run.scale.to_owned(),
        method: line.method.clone(),
        draws: line.targets.count,
        accuracy: line.accuracy.map(|a| percent(a.mean)),
        accuracy_half_interval: line.accuracy.map(|a| percent(a.half_interval())),
        difference: difference.map(|d| percent(d.mean)),
        difference_half_interval: difference.map(|d| percent(d.half_interval())),
        worst_device: line.worst.map(|w| percent(w.mean)),
        energy: line.energy_share.filter(|_| sends).map(|e| percent(e.mean)),
        bytes: sends.then_some(line.total_bytes.mean),
    }
}

/// All fleets, as a table and a figure.
pub(super) fn make(artifact: Artifact, spec: &Spec, lab: &Lab<'_>) -> Result<Made, Error> {
    let methods: Vec<Method> =
        spec.methods.iter().map(|m| m.parse()).collect::<Result<_, stlf_planning::Error>>()?;
    let with = spec.compared_with.as_deref().unwrap_or(Method::FedAvg.name());
    let runs = runs(spec, lab)?;
    let (mut all, mut lines, mut entries) = (Vec::new(), Vec::new(), Vec::new());
    for (place, run) in runs.iter().enumerate() {
        (lab.heard)(&run.title(), place + 1, runs.len());
        let rows = compare(&run.config(lab)?, &run.path(lab), &methods, lab.observer)?.rows;
        let of_run = summarise(&rows);
        entries.extend(of_run.iter().map(|line| entry(run, line, &rows, with)));
        lines.push(of_run);
        all.push(rows);
    }
    let traced: Vec<TracedRow<'_>> = runs
        .iter()
        .zip(&all)
        .flat_map(|(run, rows)| rows.iter().map(|row| TracedRow::new(run, row)))
        .collect();
    let mut output = Output::new(artifact, lab.folder);
    output.rows("rows", &traced)?;
    output.rows("", &entries)?;
    let table = table(&runs, &entries, with);
    output.table(&table)?;
    output.figure(&picture(spec, &runs, &lines).draw())?;
    Ok(output.made(spec, &table, note(&runs, &entries)))
}

/// The fleets that the user wants to see, each with every scale; quickly, with the first.
fn runs<'s>(spec: &'s Spec, lab: &Lab<'_>) -> Result<Vec<Run<'s>>, Error> {
    let scales = if lab.options.quick { 1 } else { usize::MAX };
    let of = |fleet: &'s NaturalFleet| {
        fleet.scales.iter().take(scales).map(move |scale| Run { fleet, scale })
    };
    let wanted = lab.wanted(&spec.fleet, |fleet| &fleet.name, "a natural fleet")?;
    Ok(wanted.into_iter().flat_map(of).collect())
}

/// Returns the name that a method has in tables.
fn label(method: &str) -> String {
    match method.parse::<Method>() {
        Ok(Method::Oracle) => "best single source, by hindsight".to_owned(),
        Ok(known) => known.label().to_owned(),
        Err(_) => method.to_owned(),
    }
}

fn table(runs: &[Run<'_>], entries: &[Entry], with: &str) -> Table {
    let difference = format!("minus {}, paired 95 %", label(with));
    let mut table = Table::new([
        "fleet",
        "method",
        "accuracy, %",
        difference.as_str(),
        "worst device, %",
        "energy, % of all links",
        "kB sent",
    ]);
    let number = |value: Option<f64>, decimals: usize| {
        value.map_or("–".to_owned(), |v| format!("{v:.decimals$}"))
    };
    for run in runs {
        let own = entries.iter().filter(|e| e.fleet == run.fleet.name && e.scale == run.scale);
        for entry in own {
            let difference = entry.difference.zip(entry.difference_half_interval);
            let difference = difference.map(|(mean, half)| format!("{mean:+.1} ± {half:.1}"));
            table.row([
                run.title(),
                label(&entry.method),
                number(entry.accuracy, 1),
                difference.unwrap_or("–".to_owned()),
                number(entry.worst_device, 1),
                number(entry.energy, 0),
                number(entry.bytes.map(|bytes| bytes / 1e3), 0),
            ]);
        }
    }
    table
}

/// Where ST-LF stands, flattering or not.
fn note(runs: &[Run<'_>], entries: &[Entry]) -> String {
    let ours = |e: &&Entry| e.method.starts_with(Method::StLf.name());
    let sentence = |method: &str| {
        let certain = |sign: f64| {
            let own = entries.iter().filter(|e| e.method == method);
            let is = |e: &&Entry| {
                let difference = e.difference.zip(e.difference_half_interval);
                difference.is_some_and(|(mean, half)| sign * mean > half)
            };
            own.filter(is).count()
        };
        format!(
            "{} is ahead of FedAvg in {} of {} rows beyond its interval, behind in {}.",
            label(method),
            certain(1.0),
            runs.len(),
            certain(-1.0)
        )
    };
    let mut names: Vec<&str> = Vec::new();
    for entry in entries.iter().filter(ours) {
        if !names.contains(&entry.method.as_str()) {
            names.push(&entry.method);
        }
    }
    names.into_iter().map(sentence).collect::<Vec<_>>().join(" ")
}

fn picture(spec: &Spec, runs: &[Run<'_>], lines: &[Vec<Line>]) -> bars::Chart {
    let value = |spread: Spread| {
        let (low, high) = spread.interval();
        bars::Value {
            mean: 100.0 * spread.mean,
            low: 100.0 * low.max(0.0),
            high: 100.0 * high.min(1.0),
        }
    };
    let of = |lines: &Vec<Line>, method: &str| {
        lines.iter().find(|line| line.method == method)?.accuracy.map(value)
    };
    let series = spec.methods.iter().map(|method| bars::Series {
        name: label(method),
        values: lines.iter().map(|lines| of(lines, method)).collect(),
    });
    bars::Chart {
        title: spec.title.clone(),
        y_label: "target accuracy, %".to_owned(),
        y_range: Some((0.0, 100.0)),
        groups: runs.iter().map(|run| format!("{} {}", run.fleet.name, run.scale)).collect(),
        series: series.collect(),
        numbers: false,
        width: 900.0,
        height: 360.0,
        ..bars::Chart::default()
    }
}
