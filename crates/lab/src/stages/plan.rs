//! From measurements to roles and links.

use stlf::draw::Draw;
use stlf::energy::{Radio, Ranges};
use stlf::format::{PlanFile, ProblemFile, Run};
use stlf::plan::Plan;
use stlf::planner::{self, Outcome};
use stlf::problem::{ENERGY_EPSILON, Links, Model, Parts, Source};
use stlf::{Device, Problem};
use stlf_learn::Spec;

use super::SeedRun;
use super::measure::Measured;
use crate::config::{Config, EnergyModel, Planner};
use crate::record::{LinkRow, TrainingRow};
use crate::{Error, Stage};

/// The file that the stage ends with.
pub const FILE: &str = "plan.json";

/// The problem that was planned.
pub const PROBLEM: &str = "problem.json";

/// The plan's links.
pub const LINKS: &str = "links.csv";

/// K of every link between so many devices with this network, sender by sender.
pub fn energies(config: &Config, spec: &Spec, n: usize, seed: u64) -> Vec<f64> {
    let seed = Draw::Energy.seed(seed, 0);
    let bits = config.model_bits(spec);
    match config.energy.model {
        EnergyModel::Ranges => Ranges { bits, ..Ranges::default() }.draw(n, seed),
        EnergyModel::Radio => Radio { bits, ..Radio::default() }.draw(n, seed),
    }
}

/// d̂ and K of every link.
fn links(run: &SeedRun<'_>, measured: &Measured) -> Links {
    let n = run.fleet.len();
    let energy = energies(run.config, &run.spec, n, run.seed);
    if measured.are_links {
        let list = measured.pairs.iter();
        let list = list.map(|&(i, j, d)| (i as u32, j as u32, d, energy[i * n + j]));
        return Links::from_list(n, list.collect());
    }
    let mut divergence = vec![0.0; n * n];
    for &(i, j, d) in &measured.pairs {
        divergence[i * n + j] = d;
        divergence[j * n + i] = d;
    }
    Links::from_rows(n, divergence, energy)
}

/// The problem of these measurements.
pub fn problem(
    run: &SeedRun<'_>,
    table: &[TrainingRow],
    measured: &Measured,
) -> Result<Problem, Error> {
    let n = table.len();
    let planner = &run.config.planner;
    let preset = planner.preset;
    let weights = planner.weights();
    let bound = stlf::bound::Bound {
        kind: planner.bound,
        complexity: preset.complexity(),
        ..stlf::bound::Bound::default()
    };
    let device = |row: &TrainingRow| Device {
        name: row.device.clone(),
        labeled: row.labeled as u64,
        unlabeled: row.unlabeled as u64,
        source_error: row.source_error,
    };
    let problem = Problem::new(Parts {
        devices: table.iter().map(device).collect(),
        source: Source::Measured {
            links: links(run, measured),
            weights,
            bound,
            energy_epsilon: ENERGY_EPSILON,
            energy_unit: preset.energy_unit(),
            disagreement: None,
        },
        pins: vec![None; n],
        forbidden: Vec::new(),
        required: Vec::new(),
    })?;
    Ok(problem)
}

/// Plans, and keeps the problem, the plan and its links. Planning takes less time than reading a plan back, so
/// it is never skipped; that the result is the same every time is the planner's promise.
pub fn plan(run: &SeedRun<'_>, problem: &Problem) -> Result<Box<Plan>, Error> {
    let SeedRun { config, folder, seed, watch, .. } = run;
    let Planner { solver: method, polish, .. } = config.planner;
    let settings = planner::Settings { method, polish, ..planner::Settings::default() };
    let outcome = planner::plan(problem, &settings, &mut |_| watch.flow());
    watch.check()?;
    let plan = match outcome {
        Outcome::Planned(plan) => plan,
        Outcome::Infeasible(reason) => {
            return Err(Error::Infeasible { seed: *seed, reason: reason.to_string() });
        }
    };
    // A run folder tells no time, so that two runs of one configuration can be compared byte by byte.
    let timeless = Run { seconds: 0.0, interrupted: false };
    folder.write_json(PROBLEM, &ProblemFile::from_problem(problem))?;
    let links: Vec<LinkRow> = plan
        .links
        .iter()
        .map(|link| LinkRow {
            from: problem.name(link.from).to_owned(),
            to: problem.name(link.to).to_owned(),
            weight: link.weight,
            joules: problem.link_energy(link.from, link.to),
            divergence: divergence(problem, link.from, link.to),
        })
        .collect();
    folder.write_csv(LINKS, &links)?;
    folder.write_json(FILE, &PlanFile::new(problem, &plan, timeless))?;
    watch.see(Stage::Plan, 1, 1)?;
    Ok(plan)
}

fn divergence(problem: &Problem, from: usize, to: usize) -> Option<f64> {
    match problem.model() {
        Model::Measured(measured) => measured.links.get(from, to).map(|link| link.divergence),
        Model::Costs(_) => None,
    }
}
