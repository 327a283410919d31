//! How the paper's method descends, and what roles it ends with, for two sets of source errors.

use serde::Serialize;
use stlf_figure::{Axis, bars, lines, panels};
use stlf_planning::Plan;
use stlf_planning::Problem;
use stlf_planning::Role;
use stlf_planning::bound::BoundKind;
use stlf_planning::number_format::short;
use stlf_planning::plan::Status;
use stlf_planning::planner::Method;
use stlf_planning::problem::Preset;

use super::network::{LABELED, Network, go_on, planned, random_divergence};
use super::output::{Output, Table};
use super::settings::Lab;
use super::spec::Spec;
use super::{Artifact, Made};
use crate::Error;

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct ObjectiveRow {
    case: String,
    iteration: usize,
    objective: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct RoleRow {
    case: String,
    device: String,
    source_error: Option<f64>,
    successive: Role,
    exact: Role,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct EndRow {
    case: String,
    iterations: usize,
    relaxed: Option<f64>,
    rounded: Option<f64>,
    exact: f64,
    exact_is_proven: bool,
}

struct Solved {
    name: String,
    problem: Problem,
    successive: Box<Plan>,
    exact: Box<Plan>,
}

pub(super) fn make(artifact: Artifact, spec: &Spec, lab: &Lab<'_>) -> Result<Made, Error> {
    let mut solved = Vec::new();
    let divergence = random_divergence();
    for case in &spec.case {
        let network = Network {
            errors: &case.errors,
            divergence: &divergence,
            preset: Preset::Paper,
            energy_weight: None,
            kind: BoundKind::Paper,
        };
        let problem = network.problem()?;
        solved.push(Solved {
            name: case.name.clone(),
            successive: planned(&problem, Method::Successive, false, &mut go_on)?,
            exact: planned(&problem, Method::Exact, true, &mut go_on)?,
            problem,
        });
    }
    let mut output = Output::new(artifact, lab.folder);
    let objectives = solved.iter().flat_map(|case| {
        let trace = case.successive.solver.trace.iter().enumerate();
        trace.map(|(k, &objective)| ObjectiveRow {
            case: case.name.clone(),
            iteration: k + 1,
            objective,
        })
    });
    output.rows("", &objectives.collect::<Vec<_>>())?;
    let roles = solved.iter().zip(&spec.case).flat_map(|(s, case)| {
        (0..s.problem.len()).map(|i| RoleRow {
            case: s.name.clone(),
            device: s.problem.name(i).to_owned(),
            source_error: case.errors.get(i).copied(),
            successive: s.successive.roles[i],
            exact: s.exact.roles[i],
        })
    });
    output.rows("roles", &roles.collect::<Vec<_>>())?;
    let ends = solved.iter().map(|case| EndRow {
        case: case.name.clone(),
        iterations: case.successive.solver.trace.len(),
        relaxed: case.successive.solver.trace.last().copied(),
        rounded: case.successive.solver.successive.map(|r| r.rounded_objective),
        exact: case.exact.objective(),
        exact_is_proven: case.exact.status == Status::Optimal,
    });
    output.rows("ends", &ends.collect::<Vec<_>>())?;
    output.figure(&picture(spec, &solved))?;
    let table = table(&solved);
    output.table(&table)?;
    let monotone = solved
        .iter()
        .all(|s| s.successive.solver.trace.windows(2).all(|w| w[1] <= w[0] + 1e-6 * w[0].abs()));
    let third = solved.last().map(|s| s.exact.roles[2]);
    let note = format!(
        "The objective {} from iteration to iteration. Device 3 is a {} in the second case, as in the paper. \
         The paper shows no scale for its objective; the dashed lines are the proven optima.",
        if monotone { "falls" } else { "does not always fall" },
        third.map_or(String::new(), |role| role.to_string()),
    );
    Ok(output.made(spec, &table, note))
}

fn picture(spec: &Spec, solved: &[Solved]) -> stlf_figure::Figure {
    let mut series = Vec::new();
    for (place, case) in solved.iter().enumerate() {
        let trace = &case.successive.solver.trace;
        let points: Vec<(f64, f64)> =
            trace.iter().enumerate().map(|(k, &o)| ((k + 1) as f64, o)).collect();
        let (first, last) = (1.0, trace.len().max(2) as f64);
        // The colour of a case is the same in both panels.
        let style = lines::Style::nth(place);
        series.push(lines::Series {
            style: Some(style),
            ..lines::Series::new(format!("{}: relaxed roles", case.name), points)
        });
        let optimum = case.exact.objective();
        let style = lines::Style { dash: Some((6.0, 4.0)), marker: None, ..style };
        series.push(lines::Series {
            style: Some(style),
            ..lines::Series::new(
                format!("{}: best valid plan, proven", case.name),
                vec![(first, optimum), (last, optimum)],
            )
        });
    }
    let left = lines::Chart {
        title: "Objective per iteration".to_owned(),
        x: Axis::linear("iteration"),
        y: Axis::linear("objective (no unit)"),
        series,
        width: 560.0,
        ..lines::Chart::default()
    };
    let psi = |plan: &Plan, i: usize| f64::from(u8::from(plan.roles[i] == Role::Target));
    let right = bars::Chart {
        title: "Roles of the devices with labels".to_owned(),
        y_label: "role ψ: 0 source, 1 target".to_owned(),
        y_range: Some((0.0, 1.0)),
        groups: (1..=LABELED).map(|i| format!("device {i}")).collect(),
        series: solved
            .iter()
            .map(|case| bars::Series {
                name: case.name.clone(),
                values: (0..LABELED)
                    .map(|i| Some(bars::Value::exact(psi(&case.exact, i))))
                    .collect(),
            })
            .collect(),
        numbers: false,
        width: 480.0,
        ..bars::Chart::default()
    };
    panels::arrange(&spec.title, 2, vec![left.draw(), right.draw()])
}

fn table(solved: &[Solved]) -> Table {
    let mut table = Table::new([
        "errors",
        "iterations",
        "first objective",
        "last, relaxed",
        "rounded",
        "exact optimum",
        "device 3",
    ]);
    for case in solved {
        let trace = &case.successive.solver.trace;
        let report = case.successive.solver.successive;
        let number = |value: Option<f64>| value.map_or("–".to_owned(), short);
        table.row([
            case.name.clone(),
            trace.len().to_string(),
            number(trace.first().copied()),
            number(trace.last().copied()),
            number(report.map(|r| r.rounded_objective)),
            short(case.exact.objective()),
            case.exact.roles[2].to_string(),
        ]);
    }
    table
}
