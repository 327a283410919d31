//! Few labels, well asked: the accuracy of ST-LF's targets against how many labels of their own samples somebody told them.

use std::path::PathBuf;

use serde::Serialize;
use stlf_config::Config;
use stlf_figure::bars;
use stlf_method::method::Method;

use super::natural::Run;
use super::output::{Output, Table, percent};
use super::settings::{Lab, Variant};
use super::spec::{self, Spec};
use super::strangers::Kind;
use super::{Artifact, Made};
use crate::record::Row;
use crate::summary::{paired, summarise};
use crate::{Error, compare};

/// A fleet whose targets ask for labels of some of their samples.
struct Case {
    name: String,
    title: String,
    config: Config,
    path: PathBuf,
}

/// A fleet and a number of labels: shares of 1.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Entry {
    case: String,
    /// How many each target asks for.
    labels: usize,
    draws: usize,
    accuracy: Option<f64>,
    /// Half of the 95 % interval of the mean.
    accuracy_half_interval: Option<f64>,
    /// The mean gain over no labels, draw by draw.
    gain: Option<f64>,
    gain_half_interval: Option<f64>,
    /// The mean over draws of the target with the lowest accuracy.
    worst_target: Option<f64>,
}

/// All fleets with every number of labels, as a table and a figure.
pub(super) fn make(artifact: Artifact, spec: &Spec, lab: &Lab<'_>) -> Result<Made, Error> {
    let cases = cases(spec, lab)?;
    let (mut entries, all) = (Vec::new(), cases.len() * spec.labels.len());
    for case in &cases {
        // Every number of labels is a method of its own.
        let mut of_case: Vec<Row> = Vec::new();
        for &labels in &spec.labels {
            (lab.heard)(&format!("{}, {labels} labels", case.title), entries.len() + 1, all);
            let mut config = case.config.clone();
            config.transfer.ask = labels;
            let path = case.path.with_file_name(format!("{}-ask-{labels}", file_name(&case.path)));
            let rows = compare(&config, &path, &[Method::StLf], lab.observer)?.rows;
            of_case.extend(rows.into_iter().map(|row| Row { method: labels.to_string(), ..row }));
            entries.push(entry(case, labels, &of_case));
        }
    }
    let mut output = Output::new(artifact, lab.folder);
    output.rows("", &entries)?;
    let table = table(spec, &cases, &entries);
    output.table(&table)?;
    output.figure(&picture(spec, &cases, &entries).draw())?;
    let note = "Asked for are the samples that a target's mixture is least sure of. Those that its student was trained on \
                do not count; the others among them count for these too.";
    Ok(output.made(spec, &table, note.to_owned()))
}

fn file_name(path: &std::path::Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The fleets that the user wants to see.
fn cases(spec: &Spec, lab: &Lab<'_>) -> Result<Vec<Case>, Error> {
    let settings = spec::settings();
    let named = spec.settings.iter().filter_map(|name| settings.iter().find(|s| s.name == *name));
    let mut cases: Vec<Case> = named
        .map(|setting| Case {
            name: setting.name.clone(),
            title: format!("{}, domains known", setting.name),
            config: lab.config(setting, Variant::Ours),
            path: lab.path(setting, Variant::Ours),
        })
        .collect();
    cases.extend(spec.stranger.iter().map(|case| Case {
        name: case.name.clone(),
        title: case.title.clone(),
        config: case.config(Kind::Views, lab),
        path: case.path(Kind::Views, lab),
    }));
    if lab.options.data.is_some() {
        for fleet in &spec.fleet {
            let run = Run::usual(fleet);
            let (title, config, path) = (run.title(), run.config(lab)?, run.path(lab));
            cases.push(Case { name: fleet.name.clone(), title, config, path });
        }
    }
    let wanted = lab.wanted(&cases, |case| &case.name, "shown here")?;
    let wanted: Vec<String> = wanted.iter().map(|case| case.name.clone()).collect();
    cases.retain(|case| wanted.contains(&case.name));
    Ok(cases)
}

fn entry(case: &Case, labels: usize, of_case: &[Row]) -> Entry {
    let name = labels.to_string();
    let line = summarise(of_case).into_iter().find(|line| line.method == name);
    let accuracy = line.as_ref().and_then(|line| line.accuracy);
    let gain = (labels > 0).then(|| paired(of_case, &name, "0")).flatten();
    Entry {
        case: case.name.clone(),
        labels,
        draws: line.as_ref().map_or(0, |line| line.targets.count),
        accuracy: accuracy.map(|a| a.mean),
        accuracy_half_interval: accuracy.map(|a| a.half_interval()),
        gain: gain.map(|g| g.mean),
        gain_half_interval: gain.map(|g| g.half_interval()),
        worst_target: line.and_then(|line| line.worst).map(|w| w.mean),
    }
}

fn table(spec: &Spec, cases: &[Case], entries: &[Entry]) -> Table {
    let mut head = vec!["targets".to_owned()];
    head.extend(spec.labels.iter().map(|labels| format!("{labels} labels, %")));
    let mut table = Table::new(head.iter().map(String::as_str));
    for case in cases {
        let cell = |entry: &Entry| {
            let mean = entry.accuracy.map_or("–".to_owned(), percent);
            match entry.gain.zip(entry.gain_half_interval) {
                Some((gain, half)) => {
                    format!("{mean} ({:+.1} ± {})", 100.0 * gain, percent(half))
                }
                None => mean,
            }
        };
        let own = entries.iter().filter(|entry| entry.case == case.name);
        table.row([case.title.clone()].into_iter().chain(own.map(cell)));
    }
    table
}

fn picture(spec: &Spec, cases: &[Case], entries: &[Entry]) -> bars::Chart {
    let series = spec.labels.iter().map(|&labels| {
        let value = |case: &Case| {
            let own = entries.iter().find(|e| e.case == case.name && e.labels == labels)?;
            let (mean, half) = (100.0 * own.accuracy?, 100.0 * own.accuracy_half_interval?);
            Some(bars::Value { mean, low: mean - half, high: mean + half })
        };
        bars::Series { name: format!("{labels} labels"), values: cases.iter().map(value).collect() }
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
