//! Targets whose domain no source has seen: what views at sources and students at targets make of it, for ST-LF and for FedAvg over all
//! links, beside KD3A, pooled training and labels of the target's own domain.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use stlf_config::Config;
use stlf_config::fleet::load;
use stlf_data::domains::Colour;
use stlf_data::partition::{All, Arrangement, ClassesPerDevice, Paper, Scheme};
use stlf_figure::bars;
use stlf_learn::Augment;
use stlf_method::adapt::Adapt;
use stlf_method::method::Method;

use super::output::{Output, Table, percent};
use super::settings::Lab;
use super::spec::Spec;
use super::{Artifact, Made};
use crate::record::{Row, StudentRow};
use crate::run::{Holdings, open, seed_folder, seed_run};
use crate::shard::Block;
use crate::stages::{student, train};
use crate::summary::{Spread, summarise};
use crate::watch::Watch;
use crate::{Error, Folder, compare};

/// A case of the spec, in which the targets' domain is at no source.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Stranger {
    /// The name by which users choose the case.
    pub(super) name: String,
    /// The name that the case has in tables.
    pub(super) title: String,
    /// The data sets of the sources.
    real: Vec<String>,
    /// The drawn digits that stand in for these data sets.
    drawn: Vec<String>,
    /// The data set of the targets, and what stands in for it.
    unseen: [String; 2],
    /// The classes of a target; all if not given.
    classes: Option<usize>,
    /// The mean number of a target's samples; the usual one if not given.
    samples: Option<f64>,
    /// How many sources have wrong labels.
    #[serde(default)]
    mislabeled: usize,
    /// Whether the first source ends its training after a tenth of the steps.
    #[serde(default)]
    half_trained: bool,
    /// Whether methods that train networks of their own are shown.
    #[serde(default)]
    trains: bool,
}

/// What a case is run with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Pictures as they are, mixtures alone.
    Plain,
    /// Views at sources, students at targets: the defaults.
    Views,
    /// One device with labels of the target's own domain, in grey as all others see it.
    OwnLabels,
}

/// The mean number of a target's samples, where a case has no other.
const USUAL_SAMPLES: f64 = 1000.0;

/// How many labels of the target's own domain the comparison has.
const OWN_LABELS: f64 = 1150.0;

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Plain => "plain",
            Kind::Views => "views",
            // Without the colour it was a run in which this device saw more than others.
            Kind::OwnLabels => "own-labels-grey",
        }
    }
}

/// A method in a case: shares of 1, except bytes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Entry {
    case: String,
    method: String,
    draws: usize,
    /// Sources saw pictures as they are; targets use the mixture.
    plain: Option<f64>,
    /// Sources saw views; targets use the mixture.
    views: Option<f64>,
    /// Sources saw views; targets use every student.
    all_students: Option<f64>,
    /// Sources saw views; targets use the students that the guard accepts: the defaults.
    guarded: Option<f64>,
    /// Half of the 95 % interval of the mean.
    guarded_half_interval: Option<f64>,
    /// The mean over draws of the target with the lowest accuracy, guarded.
    worst_target: Option<f64>,
    /// The share of students that are accepted.
    accepted: Option<f64>,
    /// The share of these with which the target is less accurate than with the mixture.
    wrongly_accepted: Option<f64>,
    /// Links, hand-overs and measuring over all links once.
    energy: Option<f64>,
    bytes: Option<f64>,
}

/// All cases, as a table and a figure.
pub(super) fn make(artifact: Artifact, spec: &Spec, lab: &Lab<'_>) -> Result<Made, Error> {
    let methods: Vec<Method> =
        spec.methods.iter().map(|m| m.parse()).collect::<Result<_, stlf_planning::Error>>()?;
    let cases = cases(spec, lab)?;
    let mut entries = Vec::new();
    for (place, case) in cases.iter().enumerate() {
        let own = |method: &&Method| case.trains || !method.trains();
        let shown: Vec<Method> = methods.iter().filter(own).copied().collect();
        let taught: Vec<Method> = shown.iter().filter(|m| !m.trains()).copied().collect();
        (lab.heard)(&case.title, place + 1, cases.len());
        let plain = case.run(Kind::Plain, &taught, lab)?;
        let views = case.run(Kind::Views, &shown, lab)?;
        let students = case.students(&taught, lab)?;
        for &method in &shown {
            entries.push(entry(case, method, &plain, &views, &students));
        }
        if case.trains {
            let own = case.run(Kind::OwnLabels, &[Method::FedAvg], lab)?;
            entries.push(with_own_labels(case, &own));
        }
    }
    let mut output = Output::new(artifact, lab.folder);
    output.rows("", &entries)?;
    let table = table(&cases, &entries);
    output.table(&table)?;
    output.figure(&picture(spec, &cases, &entries).draw())?;
    Ok(output.made(spec, &table, note(&entries)))
}

/// The cases that the user wants to see.
fn cases<'s>(spec: &'s Spec, lab: &Lab<'_>) -> Result<Vec<&'s Stranger>, Error> {
    lab.wanted(&spec.stranger, |case| &case.name, "a case of strangers")
}

impl Stranger {
    fn run(&self, kind: Kind, methods: &[Method], lab: &Lab<'_>) -> Result<Vec<Row>, Error> {
        let (config, path) = (self.config(kind, lab), self.path(kind, lab));
        if self.half_trained {
            half_train(&config, &path, lab)?;
        }
        Ok(compare(&config, &path, methods, lab.observer)?.rows)
    }

    /// What came of the students of these methods, in all seeds.
    fn students(&self, methods: &[Method], lab: &Lab<'_>) -> Result<Vec<StudentRow>, Error> {
        let mut rows = Vec::new();
        for seed in lab.seeds() {
            let folder = self.path(Kind::Views, lab).join(seed_folder(seed));
            rows.extend(student::read(&Folder::open(&folder)?, methods)?);
        }
        Ok(rows)
    }

    /// Returns the run's folder among the runs; another choice of options has another one.
    pub(super) fn path(&self, kind: Kind, lab: &Lab<'_>) -> PathBuf {
        let data = if lab.options.data.is_some() { "real" } else { "drawn" };
        let quick = if lab.options.quick { "-quick" } else { "" };
        let (name, kind, seeds) = (&self.name, kind.name(), lab.options.seeds);
        lab.folder
            .path()
            .join("runs")
            .join(format!("strangers-{name}-{kind}-{data}{quick}-{seeds}"))
    }

    pub(super) fn config(&self, kind: Kind, lab: &Lab<'_>) -> Config {
        let mut config = Config { seeds: lab.seeds(), ..Config::default() };
        let real = lab.options.data.is_some();
        let unseen = &self.unseen[usize::from(!real)];
        let seen = if real { &self.real } else { &self.drawn };
        config.data.folder.clone_from(&lab.options.data);
        let mut paper = Paper {
            arrangement: Arrangement::Split,
            classes_per_device: ClassesPerDevice::All(All::All),
            unlabeled_classes: self.classes,
            unlabeled_device_samples: self.samples.unwrap_or(USUAL_SAMPLES),
            mislabeled_devices: self.mislabeled,
            disjoint: !real,
            ..Paper::default()
        };
        match kind {
            Kind::OwnLabels => {
                config.data.domains = vec![unseen.clone()];
                config.data.colour = Some(Colour::Grey);
                paper.arrangement = Arrangement::Single;
                paper.labeled_devices = Some(1);
                paper.labeled_samples = OWN_LABELS / (1.0 - config.training.held_out);
                paper.devices = 6;
                config.transfer.adapt = Adapt::Off;
            }
            Kind::Plain | Kind::Views => {
                config.data.domains = seen.iter().chain([unseen]).cloned().collect();
                paper.unlabeled_domains = vec![unseen.clone()];
            }
        }
        if kind == Kind::Plain {
            config.training.augment = Some(Augment::None);
            config.transfer.adapt = Adapt::Off;
        }
        config.compare.students = vec![Method::StLf.name().into(), Method::FedAvg.name().into()];
        if lab.options.quick {
            paper.scale = 0.15;
            // Enough for students, where these are the question.
            let is_about_sources = self.mislabeled > 0 || self.half_trained;
            let usual = if is_about_sources { USUAL_SAMPLES } else { 2.5 * USUAL_SAMPLES };
            paper.unlabeled_device_samples = self.samples.unwrap_or(usual);
            config.data.samples = Some(6_000);
            config.training.steps = Some(200);
            config.compare.kd3a_rounds = Some(2);
        }
        config.partition = Some(Scheme::Paper(paper));
        config
    }
}

/// Has the first source of every seed train for a tenth of its steps. The run that follows finds its model, and trains the others.
fn half_train(config: &Config, path: &Path, lab: &Lab<'_>) -> Result<(), Error> {
    let folder = open(config, path)?;
    let stopped = AtomicBool::new(false);
    let watch = Watch::new(lab.observer, &stopped);
    let holdings = Holdings::Dealt(Box::new(load(config)?));
    config.seeds.par_iter().try_for_each(|&seed| {
        let (mut run, _) = seed_run(config, &holdings, seed, &folder, watch.of(seed))?;
        run.setup.training.steps /= 10;
        train::some(&run, Block { number: 0, of: run.fleet.len() })
    })
}

/// The mean over draws of a mean over targets.
fn mean_of(
    rows: &[StudentRow],
    method: Method,
    value: impl Fn(&StudentRow) -> Option<f64>,
) -> Option<f64> {
    let own = rows.iter().filter(|row| row.method == method.name());
    let mut draws: Vec<(u64, Vec<f64>)> = Vec::new();
    for row in own {
        let Some(value) = value(row) else { continue };
        match draws.last_mut().filter(|(seed, _)| *seed == row.seed) {
            Some((_, values)) => values.push(value),
            None => draws.push((row.seed, vec![value])),
        }
    }
    let means = draws.iter().filter_map(|(_, values)| Spread::of(values)).map(|s| s.mean);
    Spread::of(&means.collect::<Vec<f64>>()).map(|spread| spread.mean)
}

fn entry(
    case: &Stranger,
    method: Method,
    plain: &[Row],
    views: &[Row],
    students: &[StudentRow],
) -> Entry {
    let line = |rows: &[Row]| summarise(rows).into_iter().find(|l| l.method == method.name());
    let (plain, views) = (line(plain), line(views));
    let own: Vec<&StudentRow> = students.iter().filter(|s| s.method == method.name()).collect();
    let tried = own.iter().filter(|s| s.tried).count();
    let accepted: Vec<&&StudentRow> = own.iter().filter(|s| s.accepted).collect();
    let is_wrong = |s: &&&&StudentRow| s.student_accuracy < s.mixture_accuracy;
    let wrong = accepted.iter().filter(is_wrong).count();
    let share = |part: usize, of: usize| (of > 0).then(|| part as f64 / of as f64);
    let sends = method != Method::Pooled;
    let guarded = views.as_ref().and_then(|line| line.accuracy);
    let with_all = |s: &StudentRow| s.student_accuracy.or(s.mixture_accuracy);
    Entry {
        case: case.name.clone(),
        method: method.name().to_owned(),
        draws: views.as_ref().map_or(0, |line| line.targets.count),
        plain: plain.and_then(|line| line.accuracy).map(|a| a.mean),
        views: mean_of(students, method, |s| s.mixture_accuracy),
        all_students: mean_of(students, method, with_all),
        guarded: guarded.map(|a| a.mean),
        guarded_half_interval: guarded.map(|a| a.half_interval()),
        worst_target: views.as_ref().and_then(|line| line.worst).map(|w| w.mean),
        accepted: share(accepted.len(), tried),
        wrongly_accepted: share(wrong, accepted.len()),
        energy: views.as_ref().filter(|_| sends).and_then(|l| l.energy_share).map(|e| e.mean),
        bytes: views.as_ref().filter(|_| sends).map(|line| line.total_bytes.mean),
    }
}

/// A device of the target's own domain with labels, whose model all take.
fn with_own_labels(case: &Stranger, rows: &[Row]) -> Entry {
    let line = summarise(rows).into_iter().next();
    let accuracy = line.as_ref().and_then(|line| line.accuracy);
    Entry {
        case: case.name.clone(),
        method: "own-labels".to_owned(),
        draws: line.as_ref().map_or(0, |line| line.targets.count),
        plain: None,
        views: accuracy.map(|a| a.mean),
        all_students: None,
        guarded: None,
        guarded_half_interval: None,
        worst_target: line.and_then(|line| line.worst).map(|w| w.mean),
        accepted: None,
        wrongly_accepted: None,
        energy: None,
        bytes: None,
    }
}

/// Returns the name that a method has in tables.
fn label(method: &str) -> String {
    match method.parse::<Method>() {
        Ok(known) => known.label().to_owned(),
        Err(_) => "1,150 labels of its own domain".to_owned(),
    }
}

fn table(cases: &[&Stranger], entries: &[Entry]) -> Table {
    let mut table = Table::new([
        "targets",
        "method",
        "plain, %",
        "views, %",
        "+ all students, %",
        "guarded, %",
        "worst target, %",
        "accepted, %",
        "of these wrongly, %",
        "energy, % of all links",
        "kB sent",
    ]);
    let number = |value: Option<f64>| value.map_or("–".to_owned(), percent);
    let whole = |value: Option<f64>| value.map_or("–".to_owned(), |v| format!("{v:.0}"));
    for case in cases {
        for entry in entries.iter().filter(|e| e.case == case.name) {
            let guarded = entry.guarded.zip(entry.guarded_half_interval);
            let guarded =
                guarded.map(|(mean, half)| format!("{} ± {}", percent(mean), percent(half)));
            table.row([
                case.title.clone(),
                label(&entry.method),
                number(entry.plain),
                number(entry.views),
                number(entry.all_students),
                guarded.unwrap_or("–".to_owned()),
                number(entry.worst_target),
                whole(entry.accepted.map(|a| 100.0 * a)),
                whole(entry.wrongly_accepted.map(|w| 100.0 * w)),
                whole(entry.energy.map(|e| 100.0 * e)),
                whole(entry.bytes.map(|bytes| bytes / 1e3)),
            ]);
        }
    }
    table
}

/// What KD3A sends for its accuracy, beside ST-LF.
fn note(entries: &[Entry]) -> String {
    let of = |case: &str, method: Method| {
        entries.iter().find(|e| e.case == case && e.method == method.name())
    };
    let sentence = |kd3a: &Entry| {
        let ours = of(&kd3a.case, Method::StLf)?;
        let (sent, accuracy) = (kd3a.bytes? / ours.bytes?, percent(kd3a.guarded?));
        let ours = percent(ours.guarded?);
        Some(format!(
            "{}: KD3A has {accuracy} % and sends {sent:.0} times as much as ST-LF, which has {ours} %.",
            kd3a.case
        ))
    };
    let kd3a = entries.iter().filter(|e| e.method == Method::Kd3a.name());
    kd3a.filter_map(sentence).collect::<Vec<_>>().join(" ")
}

fn picture(spec: &Spec, cases: &[&Stranger], entries: &[Entry]) -> bars::Chart {
    type Column = (&'static str, Method, fn(&Entry) -> Option<f64>);
    let columns: [Column; 4] = [
        ("ST-LF, plain", Method::StLf, |e| e.plain),
        ("ST-LF, views", Method::StLf, |e| e.views),
        ("ST-LF, guarded students", Method::StLf, |e| e.guarded),
        ("FedAvg, guarded students", Method::FedAvg, |e| e.guarded),
    ];
    let bar =
        |share: f64| bars::Value { mean: 100.0 * share, low: 100.0 * share, high: 100.0 * share };
    let series = columns.into_iter().map(|(name, method, value)| {
        let of = |case: &&Stranger| {
            let own = entries.iter().find(|e| e.case == case.name && e.method == method.name());
            own.and_then(value).map(bar)
        };
        bars::Series { name: name.to_owned(), values: cases.iter().map(of).collect() }
    });
    bars::Chart {
        title: spec.title.clone(),
        y_label: "target accuracy, %".to_owned(),
        y_range: Some((0.0, 100.0)),
        groups: cases.iter().map(|case| case.name.clone()).collect(),
        series: series.collect(),
        numbers: false,
        width: 900.0,
        height: 360.0,
        ..bars::Chart::default()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
