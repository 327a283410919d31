//! What divergences do to roles and weights: all alike, one device near to all, at random.

use serde::Serialize;
use stlf_figure::{Colour, heat, panels};
use stlf_planning::Plan;
use stlf_planning::Problem;
use stlf_planning::Role;
use stlf_planning::bound::BoundKind;
use stlf_planning::number_format::{mixture, short};
use stlf_planning::planner::Method;
use stlf_planning::problem::Preset;

use super::network::{DEVICES, LABELED, Network, go_on, planned, random_divergence, square};
use super::output::{Output, Table};
use super::settings::Lab;
use super::spec::Spec;
use super::{Artifact, Made};
use crate::Error;

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct LinkRow {
    regime: &'static str,
    solver: &'static str,
    from: String,
    to: String,
    divergence: f64,
    weight: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct RoleRow {
    regime: &'static str,
    solver: &'static str,
    device: String,
    role: Role,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct DivergenceRow {
    regime: &'static str,
    from: String,
    to: String,
    divergence: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct PlanRow {
    regime: &'static str,
    solver: &'static str,
    objective: f64,
}

struct Regime {
    name: &'static str,
    divergence: Vec<f64>,
    plans: Vec<(&'static str, Box<Plan>)>,
    problem: Problem,
}

/// Row by row; 1 is the greatest here, as in the paper.
fn regimes() -> [(&'static str, Vec<f64>); 3] {
    [
        ("uniform", square(|_, _| 1.0)),
        ("extreme", square(|i, _| if i == 0 { 0.0 } else { 1.0 })),
        ("random", random_divergence()),
    ]
}

/// ε̂ of the devices with labels, which are all alike.
const ERRORS: [f64; LABELED] = [0.1; LABELED];

/// So small that weights follow divergences alone.
const ENERGY_WEIGHT: f64 = 1e-3;

/// The two ways to plan that are compared.
const SUCCESSIVE: &str = "paper's bound, successive";
const POOLED: &str = "pooled bound, exact";

pub(super) fn make(artifact: Artifact, spec: &Spec, lab: &Lab<'_>) -> Result<Made, Error> {
    let mut all = Vec::new();
    for (name, divergence) in regimes() {
        let network = |preset, kind| Network {
            errors: &ERRORS,
            divergence: &divergence,
            preset,
            energy_weight: Some(ENERGY_WEIGHT),
            kind,
        };
        let paper = network(Preset::Paper, BoundKind::Paper).problem()?;
        let pooled = network(Preset::Balanced, BoundKind::Pooled).problem()?;
        let plans = vec![
            (SUCCESSIVE, planned(&paper, Method::Successive, false, &mut go_on)?),
            (POOLED, planned(&pooled, Method::Exact, true, &mut go_on)?),
        ];
        all.push(Regime { name, divergence, plans, problem: pooled });
    }
    let mut output = Output::new(artifact, lab.folder);
    let links = all.iter().flat_map(|regime| {
        regime.plans.iter().flat_map(|(solver, plan)| {
            plan.links.iter().map(|link| LinkRow {
                regime: regime.name,
                solver,
                from: regime.problem.name(link.from).to_owned(),
                to: regime.problem.name(link.to).to_owned(),
                divergence: regime.divergence[link.from * DEVICES + link.to],
                weight: link.weight,
            })
        })
    });
    output.rows("", &links.collect::<Vec<_>>())?;
    let roles = all.iter().flat_map(|regime| {
        regime.plans.iter().flat_map(|(solver, plan)| {
            (0..DEVICES).map(|i| RoleRow {
                regime: regime.name,
                solver,
                device: regime.problem.name(i).to_owned(),
                role: plan.roles[i],
            })
        })
    });
    output.rows("roles", &roles.collect::<Vec<_>>())?;
    let plans = all.iter().flat_map(|regime| {
        regime.plans.iter().map(|(solver, plan)| PlanRow {
            regime: regime.name,
            solver,
            objective: plan.objective(),
        })
    });
    output.rows("plans", &plans.collect::<Vec<_>>())?;
    let divergences = all.iter().flat_map(|regime| {
        let pairs = (0..DEVICES).flat_map(|i| (i + 1..DEVICES).map(move |j| (i, j)));
        pairs.map(|(i, j)| DivergenceRow {
            regime: regime.name,
            from: regime.problem.name(i).to_owned(),
            to: regime.problem.name(j).to_owned(),
            divergence: regime.divergence[i * DEVICES + j],
        })
    });
    output.rows("divergences", &divergences.collect::<Vec<_>>())?;
    output.figure(&picture(spec, &all))?;
    let table = table(&all);
    output.table(&table)?;
    let note = "Alike divergences: under the pooled bound sources share every target equally, as the paper shows; its own \
                bound is indifferent, and its method stops at equal shares because it starts there. One device near to all: it \
                serves everybody. Random: near sources weigh most."
        .to_owned();
    Ok(output.made(spec, &table, note))
}

fn picture(spec: &Spec, all: &[Regime]) -> stlf_figure::Figure {
    let names: Vec<String> = (1..=DEVICES).map(|i| format!("d{i}")).collect();
    let cells = |values: &dyn Fn(usize, usize) -> Option<f64>| -> Vec<Vec<Option<f64>>> {
        (0..DEVICES).map(|i| (0..DEVICES).map(|j| values(i, j)).collect()).collect()
    };
    let mut figures = Vec::new();
    for regime in all {
        let map = heat::Map {
            title: format!("{}: divergence", regime.name),
            rows: names.clone(),
            columns: names.clone(),
            values: cells(&|i, j| (i != j).then(|| regime.divergence[i * DEVICES + j])),
            range: Some((0.0, 1.0)),
            width: 380.0,
            ..heat::Map::default()
        };
        figures.push(map.draw());
    }
    for solver in 0..2 {
        for regime in all {
            let (name, plan) = &regime.plans[solver];
            let badge = |role: Role| match role {
                Role::Source => heat::Badge { letter: "S".to_owned(), colour: Colour::nth(2) },
                Role::Target => heat::Badge { letter: "T".to_owned(), colour: Colour::nth(1) },
            };
            let badges: Vec<_> = plan.roles.iter().map(|role| Some(badge(*role))).collect();
            let weight = |from, to| {
                let link = plan.links.iter().find(|l| l.from == from && l.to == to);
                Some(link.map_or(0.0, |l| l.weight))
            };
            let map = heat::Map {
                title: format!("{}: weights", regime.name),
                subtitle: (*name).to_owned(),
                rows: names[..LABELED].to_vec(),
                columns: names.clone(),
                rows_label: "sender".to_owned(),
                columns_label: "receiver".to_owned(),
                values: cells(&weight).into_iter().take(LABELED).collect(),
                range: Some((0.0, 1.0)),
                row_badges: badges[..LABELED].to_vec(),
                column_badges: badges,
                width: 380.0,
                ..heat::Map::default()
            };
            figures.push(map.draw());
        }
    }
    panels::arrange(&spec.title, 3, figures)
}

fn table(all: &[Regime]) -> Table {
    let mut table = Table::new(["regime", "planned by", "sources", "d6 receives", "objective"]);
    for regime in all {
        for (solver, plan) in &regime.plans {
            let sources: Vec<&str> =
                plan.with_role(Role::Source).map(|i| regime.problem.name(i)).collect();
            table.row([
                regime.name.to_owned(),
                (*solver).to_owned(),
                sources.join(" "),
                mixture(&regime.problem, plan.incoming(5)),
                short(plan.objective()),
            ]);
        }
    }
    table
}
