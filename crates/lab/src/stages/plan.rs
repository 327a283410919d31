//! Plans: from measurements to roles and links.

use stlf_formats::{PlanFile, ProblemFile, Run};
use stlf_planning::Device;
use stlf_planning::Problem;
use stlf_planning::plan::Plan;
use stlf_planning::planner::Outcome;
use stlf_planning::problem::{Links, Model};
use stlf_protocol::Setup;

use super::SeedRun;
use super::measure::Measured;
use crate::baselines::Assignment;
use crate::record::{LinkRow, TrainingRow};
use crate::watch::Watch;
use crate::{Error, Stage};

/// The file that the stage ends with.
pub const FILE: &str = "plan.json";

/// The name of the file with the problem that was planned.
pub const PROBLEM: &str = "problem.json";

/// The name of the table of the plan's links.
pub const LINKS: &str = "links.csv";

/// Returns d̂ and K of every link.
fn links(run: &SeedRun<'_>, measured: &Measured) -> Links {
    let n = run.fleet.len();
    let energy = run.setup.energies(n);
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

/// Returns the problem that these measurements make.
pub fn problem(
    run: &SeedRun<'_>,
    table: &[TrainingRow],
    measured: &Measured,
) -> Result<Problem, Error> {
    let device = |row: &TrainingRow| Device {
        name: row.device.clone(),
        labeled: row.labeled as u64,
        unlabeled: row.unlabeled as u64,
        source_error: row.source_error,
    };
    let devices = table.iter().map(device).collect();
    Ok(run.setup.problem(devices, links(run, measured), Vec::new())?)
}

/// Plans, and keeps the problem, the plan and its links. Planning takes less time than reading a plan back, so
/// it is never skipped; that the result is the same every time is the planner's promise.
pub fn plan(run: &SeedRun<'_>, problem: &Problem) -> Result<Box<Plan>, Error> {
    let SeedRun { setup, folder, watch, .. } = run;
    let plan = planned(setup, problem, watch)?;
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

/// Returns what the plan is without hand-overs.
pub fn links_only(run: &SeedRun<'_>, problem: &Problem) -> Result<Assignment, Error> {
    let mut setup = run.setup.clone();
    setup.planner = setup.planner.handing_on(false);
    // What was measured is for rings: links alone cost more than the budget.
    let problem = problem.with_energy_weight(setup.weights.energy);
    let problem = problem.with_calibration(setup.calibration);
    let plan = planned(&setup, &problem, &run.watch)?;
    Ok(Assignment::from(&*plan))
}

/// The plan of a problem, within the limit of time.
pub(super) fn planned(
    setup: &Setup,
    problem: &Problem,
    watch: &Watch<'_>,
) -> Result<Box<Plan>, Error> {
    match within_limit(setup, problem, watch)? {
        Outcome::Planned(plan) => Ok(plan),
        Outcome::Infeasible(reason) => {
            Err(Error::Infeasible { seed: setup.seed, reason: reason.to_string() })
        }
    }
}

/// The best plan that the limit of time allows, unless the run was stopped.
fn within_limit(setup: &Setup, problem: &Problem, watch: &Watch<'_>) -> Result<Outcome, Error> {
    let flow = watch.within(setup.planning);
    let outcome = setup.plan(problem, &mut |_| flow());
    watch.check()?;
    Ok(outcome)
}

fn divergence(problem: &Problem, from: usize, to: usize) -> Option<f64> {
    match problem.model() {
        Model::Measured(measured) => measured.links.get(from, to).map(|link| link.divergence),
        Model::Costs(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::sync::atomic::AtomicBool;

    use stlf_config::Config;
    use stlf_data::Shape;
    use stlf_planning::bound::BoundKind;
    use stlf_planning::plan::Status;
    use stlf_planning::problem::{Parts, Preset};

    use super::*;

    /// Devices that are all alike, half of them with labels: a search among them goes on for hours.
    fn alike(n: usize) -> Problem {
        let device = |i: usize| Device {
            name: format!("d{i}"),
            labeled: if i < n / 2 { 100 } else { 0 },
            unlabeled: 100,
            source_error: (i < n / 2).then_some(0.3),
        };
        let square = |own: f64, other: f64| -> Vec<f64> {
            (0..n * n).map(|k| if k / n == k % n { own } else { other }).collect()
        };
        let links = Links::from_rows(n, square(0.0, 0.2), square(f64::INFINITY, 1.0));
        let devices = (0..n).map(device).collect();
        let (preset, kind) = (Preset::Balanced, BoundKind::default());
        Problem::new(Parts::measured(devices, links, preset, preset.weights(), kind)).unwrap()
    }

    fn searching(seconds: &str) -> Setup {
        let change = format!("planner.time-limit={seconds}");
        let config = Config::default().with([change.as_str()]).unwrap();
        Setup::new(&config, Shape::grey(28), 10, 0).unwrap()
    }

    #[test]
    fn a_search_ends_with_its_limit_and_says_so() {
        let observer = |_| ControlFlow::Continue(());
        let stopped = AtomicBool::new(false);
        let setup = searching("0.2");
        let outcome = within_limit(&setup, &alike(64), &Watch::new(&observer, &stopped));
        let Ok(Outcome::Planned(plan)) = outcome else { panic!("{outcome:?}") };
        assert!(matches!(plan.status, Status::Feasible(_)), "{:?}", plan.status);
        assert!(plan.lower_bound < plan.objective());
    }

    #[test]
    fn a_search_ends_when_the_run_is_stopped() {
        let observer = |_| ControlFlow::Continue(());
        let stopped = AtomicBool::new(true);
        let setup = searching("3600");
        let outcome = within_limit(&setup, &alike(64), &Watch::new(&observer, &stopped));
        assert!(matches!(outcome, Err(Error::Stopped)), "{outcome:?}");
    }
}
