//! Every method in every setting, beside what was published.

use serde::Serialize;
use stlf_figure::{bars, panels};
use stlf_method::method::Method;

use super::output::{Output, Table, percent};
use super::settings::{Lab, Variant};
use super::spec::{PublishedAccuracy, Setting, Spec, published_accuracies};
use super::{Artifact, Made};
use crate::Error;
use crate::record::Row;
use crate::summary::{Line, Spread, summarise};

/// A row of a run, with its setting.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct TracedRow<'r> {
    setting: &'r str,
    variant: &'static str,
    seed: u64,
    method: &'r str,
    target: &'r str,
    accuracy: Option<f64>,
    links: usize,
    joules: f64,
    all_joules: f64,
    bytes: u64,
    measuring_bytes: u64,
}

/// A method in a setting. Energy is in percent of the most that any method takes there, as in the paper, for which a model has a gigabit
/// and measuring costs nothing. Bytes are the real ones, those of measuring and hand-overs too, in percent of the most as well.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Entry {
    setting: String,
    variant: &'static str,
    method: String,
    seeds: usize,
    accuracy: Option<f64>,
    accuracy_low: Option<f64>,
    accuracy_high: Option<f64>,
    energy: f64,
    sent: f64,
    published_accuracy: Option<f64>,
    accuracy_difference: Option<f64>,
    published_energy: Option<f64>,
}

struct Compared {
    setting: Setting,
    variant: Variant,
    rows: Vec<Row>,
    lines: Vec<Line>,
}

fn compared(spec: &Spec, lab: &Lab<'_>) -> Result<Vec<Compared>, Error> {
    let methods: Vec<Method> =
        spec.methods.iter().map(|m| m.parse()).collect::<Result<_, stlf_planning::Error>>()?;
    let runs = lab.runs(spec)?;
    let total = runs.len();
    let mut all = Vec::new();
    for (place, (setting, variant)) in runs.into_iter().enumerate() {
        let rows = lab.compare((&setting, variant), &methods, (place, total))?.rows;
        let lines = summarise(&rows);
        all.push(Compared { setting, variant, rows, lines });
    }
    Ok(all)
}

fn traced(all: &[Compared]) -> Vec<TracedRow<'_>> {
    let rows = all.iter().flat_map(|c| {
        c.rows.iter().map(|row| TracedRow {
            setting: &c.setting.name,
            variant: c.variant.name(),
            seed: row.seed,
            method: &row.method,
            target: &row.target,
            accuracy: row.accuracy,
            links: row.links,
            joules: row.joules,
            all_joules: row.all_joules,
            bytes: row.bytes,
            measuring_bytes: row.measuring_bytes,
        })
    });
    rows.collect()
}

fn entries(all: &[Compared]) -> Vec<Entry> {
    let published = published_accuracies();
    let mut entries = Vec::new();
    for c in all {
        let share = |of: fn(&Line) -> f64, line: &Line| {
            let most = c.lines.iter().map(of).fold(0.0, f64::max);
            if most > 0.0 { 100.0 * of(line) / most } else { 0.0 }
        };
        for line in &c.lines {
            let known = published_of(&published, &c.setting.name, &line.method);
            // A share is never outside of 0 to 1, whatever Student's t says of two seeds.
            let interval = line.accuracy.map(|a| a.interval());
            let interval = interval.map(|(low, high)| (low.max(0.0), high.min(1.0)));
            let accuracy = line.accuracy.map(|a| 100.0 * a.mean);
            entries.push(Entry {
                setting: c.setting.name.clone(),
                variant: c.variant.name(),
                method: line.method.clone(),
                seeds: line.targets.count,
                accuracy,
                accuracy_low: interval.map(|(low, _)| 100.0 * low),
                accuracy_high: interval.map(|(_, high)| 100.0 * high),
                energy: share(|line| line.joules.mean, line),
                sent: share(|line| line.total_bytes.mean, line),
                published_accuracy: known.map(|p| p.accuracy),
                accuracy_difference: accuracy.zip(known).map(|(a, p)| a - p.accuracy),
                published_energy: known.and_then(|p| p.energy),
            });
        }
    }
    entries
}

fn published_of<'p>(
    all: &'p [PublishedAccuracy],
    setting: &str,
    method: &str,
) -> Option<&'p PublishedAccuracy> {
    all.iter().find(|p| p.setting == setting && p.method == method)
}

/// The table of accuracies and energies.
pub(super) fn table(artifact: Artifact, spec: &Spec, lab: &Lab<'_>) -> Result<Made, Error> {
    let all = compared(spec, lab)?;
    let entries = entries(&all);
    let mut output = Output::new(artifact, lab.folder);
    output.rows("rows", &traced(&all))?;
    output.rows("", &entries)?;
    let mut table = Table::new([
        "setting",
        "method",
        "accuracy, %",
        "95 % interval",
        "published",
        "difference",
        "energy, %",
        "published",
        "sent with measuring, %",
    ]);
    for entry in &entries {
        let label =
            entry.method.parse::<Method>().map_or(entry.method.clone(), |m| m.label().into());
        let number = |value: Option<f64>| value.map_or("–".to_owned(), |v| format!("{v:.1}"));
        let interval = entry.accuracy_low.zip(entry.accuracy_high);
        let variant = if entry.variant == Variant::Ours.name() { "" } else { ", as in the paper" };
        table.row([
            entry.setting.clone(),
            format!("{label}{variant}"),
            number(entry.accuracy),
            interval.map_or("–".to_owned(), |(low, high)| format!("{low:.1} to {high:.1}")),
            number(entry.published_accuracy),
            entry.accuracy_difference.map_or("–".to_owned(), |d| format!("{d:+.1}")),
            format!("{:.0}", entry.energy),
            entry.published_energy.map_or("–".to_owned(), |e| format!("{e:.0}")),
            format!("{:.0}", entry.sent),
        ]);
    }
    output.table(&table)?;
    output.figure(&picture(spec, &all))?;
    Ok(output.made(spec, &table, standing(&all)))
}

/// A figure of some of the methods.
pub(super) fn figure(artifact: Artifact, spec: &Spec, lab: &Lab<'_>) -> Result<Made, Error> {
    let all = compared(spec, lab)?;
    let mut output = Output::new(artifact, lab.folder);
    output.rows("", &entries(&all))?;
    output.figure(&picture(spec, &all))?;
    let head = ["setting", "variant"].into_iter().map(str::to_owned);
    let labels =
        spec.methods.iter().map(|m| m.parse::<Method>().map_or(m.clone(), |m| m.label().into()));
    let names: Vec<String> = head.chain(labels).collect();
    let mut table = Table::new(names.iter().map(String::as_str));
    for c in &all {
        let accuracy = |method: &String| {
            let line = c.lines.iter().find(|line| line.method == *method);
            line.and_then(|l| l.accuracy).map_or("–".to_owned(), |a| percent(a.mean))
        };
        let cells = [c.setting.name.clone(), c.variant.name().to_owned()];
        table.row(cells.into_iter().chain(spec.methods.iter().map(accuracy)));
    }
    output.table(&table)?;
    Ok(output.made(spec, &table, standing(&all)))
}

/// How ST-LF compares, with and without hand-overs, flattering or not.
fn standing(all: &[Compared]) -> String {
    let ours = [Method::StLf, Method::Links];
    let of = |method: Method| standing_of(method, &ours.map(Method::name), all);
    ours.into_iter().filter_map(of).collect::<Vec<_>>().join(" ")
}

fn standing_of(method: Method, ours: &[&str], all: &[Compared]) -> Option<String> {
    let mut above = 0;
    let mut behind = Vec::new();
    let accuracy = |line: &Line| line.accuracy.map(|a| a.mean);
    for c in all.iter().filter(|c| c.variant == Variant::Ours) {
        let own = c.lines.iter().find(|l| l.method == method.name()).and_then(accuracy)?;
        let best = c
            .lines
            .iter()
            .filter(|l| !ours.contains(&l.method.as_str()) && l.method != Method::Oracle.name())
            .filter_map(|l| Some((accuracy(l)?, l)))
            .max_by(|a, b| a.0.total_cmp(&b.0));
        match best {
            Some((best, line)) if own < best => {
                let name =
                    line.method.parse::<Method>().map_or(line.method.as_str(), |m| m.label());
                let points = 100.0 * (best - own);
                behind.push(format!("{} ({name} has {points:.1} points more)", c.setting.name));
            }
            _ => above += 1,
        }
    }
    let settings = above + behind.len();
    let mut note = format!(
        "{} is above every method except ST-LF's own and Oracle in {above} of {settings} settings.",
        method.label()
    );
    if !behind.is_empty() {
        note += &format!(" Behind in {}.", behind.join(", "));
    }
    Some(note)
}

fn picture(spec: &Spec, all: &[Compared]) -> stlf_figure::Figure {
    let value = |spread: Spread| {
        let (low, high) = spread.interval();
        bars::Value {
            mean: 100.0 * spread.mean,
            low: 100.0 * low.max(0.0),
            high: 100.0 * high.min(1.0),
        }
    };
    let published = published_accuracies();
    let panel = |title: &str, settings: &[String]| {
        let of = |name: &String, variant: Variant, method: &str| {
            let c = all.iter().find(|c| c.setting.name == *name && c.variant == variant)?;
            let line = c.lines.iter().find(|line| line.method == method)?;
            line.accuracy.map(value)
        };
        let methods: Vec<&String> =
            spec.methods.iter().filter(|m| *m != Method::Local.name()).collect();
        let mut series: Vec<bars::Series> = methods
            .iter()
            .map(|method| bars::Series {
                name: method.parse::<Method>().map_or((*method).clone(), |m| m.label().into()),
                values: settings.iter().map(|s| of(s, Variant::Ours, method)).collect(),
            })
            .collect();
        if all.iter().any(|c| c.variant == Variant::Faithful) {
            let faithful = |s| of(s, Variant::Faithful, Method::StLf.name());
            let name = "ST-LF as in the paper".to_owned();
            series.push(bars::Series { name, values: settings.iter().map(faithful).collect() });
        }
        let known = |s: &String| {
            let row = published_of(&published, s, Method::StLf.name())?;
            Some(bars::Value::exact(row.accuracy))
        };
        let name = "ST-LF as published".to_owned();
        series.push(bars::Series { name, values: settings.iter().map(known).collect() });
        bars::Chart {
            title: title.to_owned(),
            subtitle: "whiskers: 95 % confidence interval of the mean over seeds".to_owned(),
            y_label: "target accuracy, %".to_owned(),
            y_range: Some((0.0, 100.0)),
            groups: settings.to_vec(),
            series,
            highlight: Some(0),
            numbers: false,
            width: 900.0,
            height: 300.0,
        }
        .draw()
    };
    let kinds = ["single domain", "mixed domains", "split domains"];
    let figures = kinds.iter().zip(spec.settings.chunks(3)).map(|(kind, chunk)| panel(kind, chunk));
    panels::arrange(&spec.title, 1, figures.collect())
}
