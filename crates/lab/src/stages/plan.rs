//! From measurements to roles and links.

use std::ops::ControlFlow;

use stlf::bound::BoundKind;
use stlf::energy::{Radio, Ranges};
use stlf::format::{PlanFile, ProblemFile, Run};
use stlf::plan::Plan;
use stlf::planner::{self, Method, Outcome};
use stlf::problem::{Links, Model, Parts, Source};
use stlf::{Device, Problem};

use super::Draw;
use crate::config::{self, Config, EnergyModel};
use crate::record::{LinkRow, TrainingRow};
use crate::run::Watch;
use crate::{Error, Folder};

/// The file that the stage ends with.
pub const FILE: &str = "plan.json";

/// ε_E of the energy term.
const ENERGY_EPSILON: f64 = 1e-3;

/// The problem of these measurements.
pub fn problem(
    config: &Config,
    table: &[TrainingRow],
    divergence: Vec<f64>,
    seed: u64,
) -> Result<Problem, Error> {
    let n = table.len();
    let seed = Draw::Energy.seed(seed, 0);
    let energy = match config.energy.model {
        EnergyModel::Ranges => Ranges::default().draw(n, seed),
        EnergyModel::Radio => Radio::default().draw(n, seed),
    };
    let planner = &config.planner;
    let preset = match planner.preset {
        config::Preset::Balanced => stlf::problem::Preset::Balanced,
        config::Preset::Paper => stlf::problem::Preset::Paper,
    };
    let mut weights = preset.weights();
    weights.source = planner.phi_s.unwrap_or(weights.source);
    weights.target = planner.phi_t.unwrap_or(weights.target);
    weights.energy = planner.phi_e.unwrap_or(weights.energy);
    let kind = match planner.bound {
        config::Bound::Pooled => BoundKind::Pooled,
        config::Bound::Paper => BoundKind::Paper,
    };
    let bound = stlf::bound::Bound {
        kind,
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
            links: Links::from_rows(n, divergence, energy),
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
pub fn plan(
    config: &Config,
    problem: &Problem,
    folder: &Folder,
    seed: u64,
    watch: &Watch<'_>,
) -> Result<Box<Plan>, Error> {
    let method = match config.planner.solver {
        config::Solver::Exact => Method::Exact,
        config::Solver::Successive => Method::Successive,
    };
    let settings = planner::Settings { method, ..planner::Settings::default() };
    let mut observer = |_: &planner::Progress| match watch.check() {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    };
    let outcome = planner::plan(problem, &settings, &mut observer);
    watch.check()?;
    let plan = match outcome {
        Outcome::Planned(plan) => plan,
        Outcome::Infeasible(reason) => {
            return Err(Error::Infeasible { seed, reason: reason.to_string() });
        }
    };
    // A run folder tells no time, so that two runs of one configuration can be compared byte by byte.
    let run = Run { seconds: 0.0, interrupted: false };
    folder.write_json("problem.json", &ProblemFile::from_problem(problem))?;
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
    folder.write_csv("links.csv", &links)?;
    folder.write_json(FILE, &PlanFile::new(problem, &plan, run))?;
    Ok(plan)
}

fn divergence(problem: &Problem, from: usize, to: usize) -> Option<f64> {
    match problem.model() {
        Model::Measured(measured) => measured.links.get(from, to).map(|link| link.divergence),
        Model::Costs(_) => None,
    }
}
