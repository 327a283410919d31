//! What the weight of energy does to links, on problems that were measured.

use serde::Serialize;
use stlf_figure::{Axis, Colour, heat, lines, panels};
use stlf_formats::{PresetEntry, ProblemFile};
use stlf_planning::Plan;
use stlf_planning::Problem;
use stlf_planning::Role;
use stlf_planning::bound::BoundKind;
use stlf_planning::number_format::short;
use stlf_planning::planner::Method;

use super::network::planned;
use super::output::{Output, Table, percent};
use super::settings::{Lab, Variant};
use super::spec::{Setting, Spec};
use super::{Artifact, Made};
use crate::stages::plan::PROBLEM;
use crate::{Error, Event, Stage};

#[derive(Serialize, Clone)]
#[serde(rename_all = "kebab-case")]
struct Point {
    setting: String,
    variant: &'static str,
    energy_weight: f64,
    joules: f64,
    links: usize,
    /// Transmissions that all-to-all would take and this plan does not.
    saved: usize,
    proven: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct WeightRow {
    setting: String,
    variant: &'static str,
    energy_weight: f64,
    from: String,
    to: String,
    weight: f64,
}

/// The problem of a run's first seed with the paper's weights, and this one on energy in joules.
fn problem(
    lab: &Lab<'_>,
    setting: &Setting,
    variant: Variant,
    weight: f64,
) -> Result<Problem, Error> {
    let seed = lab.seeds().first().copied().unwrap_or_default();
    let folder = lab.seed(setting, variant, seed)?;
    let bytes = folder.read(PROBLEM)?.unwrap_or_default();
    let broken = |e: stlf_formats::Error| folder.broken(PROBLEM, &e.to_string());
    let mut file = ProblemFile::read(&bytes).map_err(broken)?;
    file.set_preset(PresetEntry::Paper);
    file.weights.get_or_insert_default().energy = Some(weight);
    file.bound.get_or_insert_default().kind = Some(match variant {
        Variant::Ours => BoundKind::Pooled,
        Variant::Faithful => BoundKind::Paper,
    });
    Ok(file.into_problem(None).map_err(broken)?)
}

/// Returns the plan by a variant's own planner.
fn plan(lab: &Lab<'_>, problem: &Problem, variant: Variant) -> Result<Box<Plan>, Error> {
    let (method, polish) = match variant {
        Variant::Ours => (Method::Exact, true),
        Variant::Faithful => (Method::Successive, false),
    };
    let event = Event { seed: None, stage: Stage::Plan, done: 0, total: 1 };
    planned(problem, method, polish, &mut || (lab.observer)(event))
}

fn transferred(lab: &Lab<'_>, spec: &Spec) -> Result<Vec<(Setting, Variant)>, Error> {
    let runs = lab.runs(spec)?;
    for (place, (setting, variant)) in runs.iter().enumerate() {
        lab.transfer((setting, *variant), (place, runs.len()))?;
    }
    Ok(runs)
}

/// Energy and transmissions along the weight of energy.
pub(super) fn sweep(artifact: Artifact, spec: &Spec, lab: &Lab<'_>) -> Result<Made, Error> {
    let runs = transferred(lab, spec)?;
    let (least, most) = (spec.least.unwrap_or(1e-3), spec.most.unwrap_or(1e4));
    let points = spec.points.unwrap_or(2).max(2);
    let step = (most / least).powf(1.0 / (points - 1) as f64);
    let mut rows: Vec<Point> = Vec::new();
    for (setting, variant) in &runs {
        for k in 0..points {
            let energy_weight = least * step.powi(k as i32);
            let problem = problem(lab, setting, *variant, energy_weight)?;
            let plan = plan(lab, &problem, *variant)?;
            let sources = plan.with_role(Role::Source).count();
            let targets = plan.with_role(Role::Target).count();
            rows.push(Point {
                setting: setting.name.clone(),
                variant: variant.name(),
                energy_weight,
                joules: plan.joules(&problem).unwrap_or(0.0),
                links: plan.links.len(),
                saved: (sources * targets).saturating_sub(plan.links.len()),
                proven: plan.status == stlf_planning::plan::Status::Optimal,
            });
        }
    }
    let mut output = Output::new(artifact, lab.folder);
    output.rows("", &rows)?;
    output.figure(&sweep_picture(spec, &runs, &rows))?;
    let mut table = Table::new([
        "setting",
        "variant",
        "joules, cheap energy",
        "joules, expensive energy",
        "links, cheap",
        "links, expensive",
        "energy saved, %",
    ]);
    for (setting, variant) in &runs {
        let own: Vec<&Point> = of(&rows, setting, *variant).collect();
        if let (Some(first), Some(last)) = (own.first(), own.last()) {
            table.row([
                setting.name.clone(),
                variant.name().to_owned(),
                short(first.joules),
                short(last.joules),
                first.links.to_string(),
                last.links.to_string(),
                percent(1.0 - last.joules / first.joules),
            ]);
        }
    }
    output.table(&table)?;
    let note = "As in the paper, energy and links fall as φ^E rises and settle at one link per target. Under the paper's own bound one \
                link per target is optimal at any weight (docs/findings.md), so that only the pooled bound, or a method that stops \
                early, has more."
        .to_owned();
    Ok(output.made(spec, &table, note))
}

fn of<'r>(
    rows: &'r [Point],
    setting: &'r Setting,
    variant: Variant,
) -> impl Iterator<Item = &'r Point> {
    rows.iter().filter(move |r| r.setting == setting.name && r.variant == variant.name())
}

fn sweep_picture(spec: &Spec, runs: &[(Setting, Variant)], rows: &[Point]) -> stlf_figure::Figure {
    let charts = spec.settings.iter().flat_map(|name| {
        let chart = |title: &str, y: &str, value: &dyn Fn(&Point) -> f64| {
            let own = runs.iter().filter(|(setting, _)| setting.name == *name);
            let series = own.map(|(setting, variant)| {
                let points = of(rows, setting, *variant).map(|r| (r.energy_weight, value(r)));
                lines::Series::steps(variant.name(), points.collect())
            });
            let chart = lines::Chart {
                title: format!("{name}: {title}"),
                x: Axis::log("weight of energy φᴱ (per joule)"),
                y: Axis { from_zero: true, ..Axis::linear(y) },
                series: series.collect(),
                width: 480.0,
                height: 300.0,
                ..lines::Chart::default()
            };
            chart.draw()
        };
        [
            chart("energy", "energy of links (joules)", &|r| r.joules),
            chart("transmissions saved", "links saved (number)", &|r| r.saved as f64),
        ]
    });
    panels::arrange(&spec.title, 2, charts.collect())
}

/// Weights at a few weights of energy.
pub(super) fn weights(artifact: Artifact, spec: &Spec, lab: &Lab<'_>) -> Result<Made, Error> {
    let runs = transferred(lab, spec)?;
    let mut rows = Vec::new();
    let mut figures = Vec::new();
    let mut table = Table::new(["setting", "variant", "φ^E", "links", "largest weight", "joules"]);
    for (setting, variant) in &runs {
        for &energy_weight in &spec.energy_weights {
            let problem = problem(lab, setting, *variant, energy_weight)?;
            let plan = plan(lab, &problem, *variant)?;
            rows.extend(plan.links.iter().map(|link| WeightRow {
                setting: setting.name.clone(),
                variant: variant.name(),
                energy_weight,
                from: problem.name(link.from).to_owned(),
                to: problem.name(link.to).to_owned(),
                weight: link.weight,
            }));
            table.row([
                setting.name.clone(),
                variant.name().to_owned(),
                short(energy_weight),
                plan.links.len().to_string(),
                short(plan.links.iter().map(|l| l.weight).fold(0.0, f64::max)),
                short(plan.joules(&problem).unwrap_or(0.0)),
            ]);
            figures.push(map(setting, *variant, energy_weight, &problem, &plan));
        }
    }
    let mut output = Output::new(artifact, lab.folder);
    output.rows("", &rows)?;
    output.figure(&panels::arrange(&spec.title, spec.energy_weights.len(), figures))?;
    output.table(&table)?;
    let note = "More expensive energy leaves fewer links with more weight each, as in the paper."
        .to_owned();
    Ok(output.made(spec, &table, note))
}

fn map(
    setting: &Setting,
    variant: Variant,
    energy_weight: f64,
    problem: &Problem,
    plan: &Plan,
) -> stlf_figure::Figure {
    let senders: Vec<usize> = (0..problem.len()).filter(|&i| problem.eligible(i)).collect();
    let name = |i: usize| problem.name(i).to_owned();
    let weight = |from: usize, to: usize| {
        let link = plan.links.iter().find(|l| l.from == from && l.to == to);
        Some(link.map_or(0.0, |l| l.weight))
    };
    let badge = |i: usize| {
        let (letter, colour) = match plan.roles[i] {
            Role::Source => ("S", Colour::nth(2)),
            Role::Target => ("T", Colour::nth(1)),
        };
        Some(heat::Badge { letter: letter.to_owned(), colour })
    };
    let map = heat::Map {
        title: format!("{}: φᴱ = {} per joule", setting.name, short(energy_weight)),
        subtitle: variant.name().to_owned(),
        rows: senders.iter().map(|&i| name(i)).collect(),
        columns: (0..problem.len()).map(name).collect(),
        rows_label: "sender".to_owned(),
        columns_label: "receiver".to_owned(),
        values: senders
            .iter()
            .map(|&from| (0..problem.len()).map(|to| weight(from, to)).collect())
            .collect(),
        range: Some((0.0, 1.0)),
        row_badges: senders.iter().map(|&i| badge(i)).collect(),
        column_badges: (0..problem.len()).map(badge).collect(),
        width: 400.0,
        ..heat::Map::default()
    };
    map.draw()
}
