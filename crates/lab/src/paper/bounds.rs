//! Left and right sides of Theorem 2 and Corollary 1, beside what was published.

use serde::Serialize;
use stlf_figure::bars;

use super::output::{Output, Table};
use super::settings::{Lab, Variant};
use super::spec::{Spec, published_bounds};
use super::{Artifact, Made};
use crate::Error;
use crate::record::BoundRow;
use crate::stages::bounds::TABLE;
use crate::summary::Spread;

/// The two sides of the bounds at one target of a run.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct TracedRow {
    setting: String,
    variant: &'static str,
    seed: u64,
    target: String,
    error: f64,
    source_error: f64,
    half_divergence: f64,
    noise: f64,
    theorem_2: f64,
    corollary_1: f64,
}

/// A setting: means over targets, then seeds.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Entry {
    setting: String,
    variant: &'static str,
    left: f64,
    theorem_2: f64,
    corollary_1: f64,
    /// Share of targets at which Theorem 2's right side is not below its left side.
    theorem_2_holds: f64,
    published_left: f64,
    published_theorem_2: f64,
    published_corollary_1: f64,
}

pub(super) fn make(artifact: Artifact, spec: &Spec, lab: &Lab<'_>) -> Result<Made, Error> {
    let runs = lab.runs(spec)?;
    let mut traced = Vec::new();
    let mut entries = Vec::new();
    let published = published_bounds();
    for (place, (setting, variant)) in runs.iter().enumerate() {
        lab.transfer((setting, *variant), (place, runs.len()))?;
        let mut rows: Vec<(u64, BoundRow)> = Vec::new();
        for seed in lab.seeds() {
            let folder = lab.seed(setting, *variant, seed)?;
            let own: Vec<BoundRow> = folder.read_csv(TABLE)?.unwrap_or_default();
            rows.extend(own.into_iter().map(|row| (seed, row)));
        }
        let mean = |value: &dyn Fn(&BoundRow) -> f64| {
            let seeds = lab.seeds();
            let of_seed = |seed: &u64| {
                let own: Vec<f64> =
                    rows.iter().filter(|(s, _)| s == seed).map(|(_, row)| value(row)).collect();
                Spread::of(&own).map(|spread| spread.mean)
            };
            let means: Vec<f64> = seeds.iter().filter_map(of_seed).collect();
            Spread::of(&means).map_or(f64::NAN, |spread| spread.mean)
        };
        let known = published.iter().find(|p| p.setting == setting.name);
        let published = |of: fn(&super::spec::PublishedBounds) -> f64| known.map_or(f64::NAN, of);
        entries.push(Entry {
            setting: setting.name.clone(),
            variant: variant.name(),
            left: mean(&|row| row.error),
            theorem_2: mean(&|row| row.theorem_2),
            corollary_1: mean(&|row| row.corollary_1),
            theorem_2_holds: mean(&|row| f64::from(u8::from(row.error <= row.theorem_2))),
            published_left: published(|p| p.left),
            published_theorem_2: published(|p| p.theorem_2),
            published_corollary_1: published(|p| p.corollary_1),
        });
        traced.extend(rows.into_iter().map(|(seed, row)| TracedRow {
            setting: setting.name.clone(),
            variant: variant.name(),
            seed,
            target: row.target,
            error: row.error,
            source_error: row.source_error,
            half_divergence: row.half_divergence,
            noise: row.noise,
            theorem_2: row.theorem_2,
            corollary_1: row.corollary_1,
        }));
    }
    let mut output = Output::new(artifact, lab.folder);
    output.rows("rows", &traced)?;
    output.rows("", &entries)?;
    let mut table = Table::new([
        "setting",
        "variant",
        "left",
        "published",
        "right, Theorem 2",
        "published",
        "right, Corollary 1",
        "published",
    ]);
    for e in &entries {
        let pair = |ours: f64, theirs: f64| [format!("{ours:.2}"), format!("{theirs:.2}")];
        let head = [e.setting.clone(), e.variant.to_owned()];
        table.row(
            head.into_iter()
                .chain(pair(e.left, e.published_left))
                .chain(pair(e.theorem_2, e.published_theorem_2))
                .chain(pair(e.corollary_1, e.published_corollary_1)),
        );
    }
    output.table(&table)?;
    output.figure(&picture(spec, &entries).draw())?;
    let holds = |variant: Variant| {
        let own: Vec<f64> = entries
            .iter()
            .filter(|e| e.variant == variant.name())
            .map(|e| e.theorem_2_holds)
            .collect();
        let share = Spread::of(&own).map(|s| s.mean);
        share.map(|s| format!("{:.0} % of targets ({})", 100.0 * s, variant.name()))
    };
    let held: Vec<String> = lab.variants().iter().filter_map(|v| holds(*v)).collect();
    let note = format!(
        "Theorem 2 holds at {}; where it does not, an estimated divergence or a training error is too small. Corollary 1 is far above: \
         ten times the complexity term alone is 7.8 with the constant of the published numbers (√(2 log₁₀ 2)), and 11.8 with the one \
         of the paper's text (√(2 ln 2)); an error is at most 1.",
        held.join(", ")
    );
    Ok(output.made(spec, &table, note))
}

fn picture(spec: &Spec, entries: &[Entry]) -> bars::Chart {
    let ours: Vec<&Entry> = entries.iter().filter(|e| e.variant == Variant::Ours.name()).collect();
    let series = |name: &str, value: &dyn Fn(&Entry) -> f64| bars::Series {
        name: name.to_owned(),
        values: ours.iter().map(|e| Some(bars::Value::exact(value(e)))).collect(),
    };
    bars::Chart {
        title: spec.title.clone(),
        y_label: "error or its bound (fraction)".to_owned(),
        groups: ours.iter().map(|e| e.setting.clone()).collect(),
        series: vec![
            series("left side (error)", &|e| e.left),
            series("right side (Theorem 2)", &|e| e.theorem_2),
            series("left side (error), as published", &|e| e.published_left),
            series("right side, as published", &|e| e.published_theorem_2),
        ],
        numbers: false,
        width: 900.0,
        height: 340.0,
        ..bars::Chart::default()
    }
}
