//! From the files of a run folder, or a problem, to what the page shows.

use std::collections::BTreeMap;
use std::path::Path;

use stlf_config::Config;
use stlf_formats::{PlanFile, ProblemFile, ScaleEntry};
use stlf_method::method::Method;
use stlf_planning::Plan;
use stlf_planning::Problem;
use stlf_planning::bound::BoundKind;
use stlf_planning::planner::handover::refusal;
use stlf_planning::planner::{self, Observer, Outcome};
use stlf_planning::problem::Model;

use super::document::{
    self, Confusion, Device, Divergence, Document, Line, Measuring, Run, Section, Seed, Target,
    Trace,
};
use super::explained;
use super::planning::{planned, settings};
use crate::record::{
    ConfusionRow, DivergenceRow, ExpectedRow, FrontierRow, MeasuringRow, Row, StudentRow,
    TrainingRow,
};
use crate::run::seed_folder;
use crate::stages::{expectation, frontier, measure, plan, student, train, transfer};
use crate::summary::summarise;
use crate::{Error, Folder};

/// Divergences of larger fleets are left out: a picture of them shows nothing.
const MOST_SQUARE: usize = 200;

/// For larger fleets the successive method is not run for its trace.
const MOST_SUCCESSIVE: usize = 12;

/// The page of a run folder, finished or not. Whatever it takes to plan for it, `observer` may end; then it shows
/// less.
///
/// # Errors
/// Names the file that is missing or broken.
pub fn of_run(path: &Path, observer: &mut Observer<'_>) -> Result<Run, Error> {
    let config = Config::read(&path.join("config.toml"))?;
    let folder = Folder::open(path)?;
    let mut rows: Vec<Row> = Vec::new();
    let mut measuring: Vec<MeasuringRow> = Vec::new();
    let mut seeds = Vec::new();
    let mut confusion: Vec<(u64, Vec<ConfusionRow>)> = Vec::new();
    for &seed in &config.seeds {
        if !folder.file(&seed_folder(seed)).is_dir() {
            continue;
        }
        let inside = folder.folder(&seed_folder(seed))?;
        measuring.extend(inside.read_csv::<MeasuringRow>(measure::COST)?.unwrap_or_default());
        let own = results(&inside, &config)?;
        let taken = inside.read_csv(transfer::CONFUSION)?.unwrap_or_default();
        if let Some(shown) = of_seed(&inside, seed, &own, observer)? {
            // Also where none of them pays.
            let hands_on = config.planner.hands_on();
            seeds.push(Seed { hands_on, ..shown });
            confusion.push((seed, taken));
        }
        rows.extend(own);
    }
    let classes = classes(confusion.iter().flat_map(|(_, rows)| rows));
    for (seed, (_, taken)) in seeds.iter_mut().zip(&confusion) {
        seed.confusion = counts(taken, &classes);
    }
    let name = path.file_name().map_or_else(|| path.to_string_lossy(), |n| n.to_string_lossy());
    let count = measuring.iter().map(|m| m.seed).collect::<std::collections::BTreeSet<_>>().len();
    Ok(Run {
        name: name.into_owned(),
        finished: folder.file("manifest.json").is_file(),
        settings: sections(&config)?,
        summary: summary(&rows),
        measuring: (count > 0).then(|| Measuring {
            estimator: config.divergence.estimator().name().to_owned(),
            bytes: measuring.iter().map(|m| m.bytes as f64).sum::<f64>() / count as f64,
            joules: measuring.iter().map(|m| m.joules).sum::<f64>() / count as f64,
            protection: measure::protection(&config, &measuring),
        }),
        classes,
        seeds,
    })
}

/// The page of a problem alone, whose sources hand models on where `hands_on` says so. Whatever it takes to plan for it, `observer`
/// may end; then it shows less.
///
/// # Errors
/// The problem is not one.
pub fn of_problem(
    file: ProblemFile,
    name: &str,
    hands_on: bool,
    observer: &mut Observer<'_>,
) -> Result<Run, Error> {
    let scale = file.scale.unwrap_or_default();
    let problem = file.into_problem(None)?;
    let settings = settings(hands_on);
    let plan = planned(&problem, 0, &settings, observer)?;
    let shown = seed(0, &problem, &plan, &settings, &[], None, observer);
    Ok(alone(name, Seed { scale, ..shown }))
}

/// The page of a plan alone. Whatever it takes to explain it, `observer` may end; then it shows less.
///
/// # Errors
/// It is no plan for the problem that it repeats, or repeats none.
pub fn of_plan(file: &PlanFile, name: &str, observer: &mut Observer<'_>) -> Result<Run, Error> {
    let (problem, plan) = file.restore_checked()?;
    let settings = settings(!plan.handovers.is_empty());
    Ok(alone(name, seed(0, &problem, &plan, &settings, &[], None, observer)))
}

/// Returns the page of a single problem or plan, without a run around it.
fn alone(name: &str, seed: Seed) -> Run {
    Run {
        name: name.to_owned(),
        finished: true,
        settings: Vec::new(),
        summary: Vec::new(),
        measuring: None,
        classes: Vec::new(),
        seeds: vec![seed],
    }
}

/// A page of one run, or of two side by side.
pub fn document(title: &str, runs: Vec<Run>) -> Document {
    let version = env!("CARGO_PKG_VERSION");
    Document { format: "stlf-report/1", title: title.to_owned(), version, live: None, runs }
}

/// The rows of all methods that are finished, those of the configuration first.
fn results(folder: &Folder, config: &Config) -> Result<Vec<Row>, Error> {
    let mut methods = config.compare.methods()?;
    methods.extend(Method::ALL.into_iter().filter(|m| !methods.contains(m)).collect::<Vec<_>>());
    let results = folder.file("results");
    let mut rows = Vec::new();
    if results.is_dir() {
        let results = folder.folder("results")?;
        for method in methods {
            rows.extend(results.read_csv(&transfer::table(method))?.unwrap_or_default());
        }
    }
    Ok(rows)
}

/// Returns one seed of a run, once it has a plan.
fn of_seed(
    folder: &Folder,
    number: u64,
    rows: &[Row],
    observer: &mut Observer<'_>,
) -> Result<Option<Seed>, Error> {
    let Some(bytes) = folder.read(plan::FILE)? else { return Ok(None) };
    let file = PlanFile::read(&bytes)
        .and_then(|file| file.restore())
        .map_err(|e| folder.broken(plan::FILE, &e.to_string()))?;
    let (problem, own) = (file.0.with_bound(file.1.bound), file.1);
    let frontier: Vec<FrontierRow> = folder.read_csv(frontier::TABLE)?.unwrap_or_default();
    let pairs: Option<Vec<DivergenceRow>> = folder.read_csv(measure::TABLE)?;
    // The run made its frontier without hand-overs where its own plan has none.
    let settings = settings(!own.handovers.is_empty());
    let mut shown = seed(number, &problem, &own, &settings, &frontier, pairs.as_deref(), observer);
    let expected = folder.read_csv(expectation::TABLE)?.unwrap_or_default();
    shown.targets = targets(rows, &expected, &student::read(folder, &[Method::StLf])?);
    let training: Vec<TrainingRow> = folder.read_csv(train::TABLE)?.unwrap_or_default();
    for device in &mut shown.devices {
        let own = training.iter().find(|row| row.device == device.name);
        device.guessing = own.and_then(|row| Some(row.guessing()?.to_string()));
    }
    Ok(Some(shown))
}

/// A problem with its plan, and the plans along the weight of energy, made with these settings.
fn seed(
    seed: u64,
    problem: &Problem,
    own: &Plan,
    settings: &planner::Settings,
    frontier: &[FrontierRow],
    pairs: Option<&[DivergenceRow]>,
    observer: &mut Observer<'_>,
) -> Seed {
    let mut plans = Vec::new();
    let mut chosen = 0;
    let own_weight = frontier::own_weight(problem);
    let weights: Vec<f64> = match frontier {
        [] => frontier::weights(problem, settings, observer).unwrap_or_else(|| vec![own_weight]),
        rows => rows.iter().map(|row| row.energy_weight).collect(),
    };
    for weight in weights {
        let mut plan = if weight == own_weight {
            chosen = plans.len();
            explained::plan(problem, own, true, observer)
        } else {
            match frontier::plan_at(problem, weight, settings, observer) {
                Some((at_weight, plan)) => explained::plan(&at_weight, &plan, false, observer),
                None => continue,
            }
        };
        let row = frontier.iter().find(|row| row.energy_weight == weight);
        plan.accuracy = row.and_then(|row| row.accuracy);
        plans.push(plan);
    }
    Seed {
        seed,
        devices: devices(problem),
        scale: ScaleEntry::of(problem),
        divergence: divergence(problem, pairs),
        plans,
        chosen,
        hands_on: settings.handovers.is_some(),
        no_handovers: refusal(problem),
        traces: traces(problem, own, observer),
        targets: Vec::new(),
        confusion: Vec::new(),
    }
}

/// Returns the devices of a problem as the page shows them.
pub(super) fn devices(problem: &Problem) -> Vec<Device> {
    let measured = match problem.model() {
        Model::Measured(m) => Some(&m.devices),
        Model::Costs(_) => None,
    };
    let device = |i: usize| {
        let own = measured.map(|devices| &devices[i]);
        Device {
            name: problem.name(i).to_owned(),
            labeled: own.map_or(0, |d| d.labeled),
            unlabeled: own.map_or(0, |d| d.unlabeled),
            source_error: own.and_then(|d| d.source_error),
            eligible: problem.eligible(i),
            pin: problem.pin(i),
            guessing: None,
        }
    };
    (0..problem.len()).map(device).collect()
}

/// d̂ of a problem, with the intervals that were measured.
pub(super) fn divergence(problem: &Problem, pairs: Option<&[DivergenceRow]>) -> Option<Divergence> {
    let Model::Measured(measured) = problem.model() else { return None };
    let n = problem.len();
    if n > MOST_SQUARE {
        return None;
    }
    let square = |cell: &dyn Fn(usize, usize) -> Option<f64>| -> Vec<Vec<Option<f64>>> {
        (0..n)
            .map(|i| (0..n).map(|j| if i == j { Some(0.0) } else { cell(i, j) }).collect())
            .collect()
    };
    let intervals: BTreeMap<(&str, &str), (f64, f64)> = (pairs.unwrap_or_default().iter())
        .map(|row| ((row.from.as_str(), row.to.as_str()), (row.low, row.high)))
        .collect();
    let interval = |i: usize, j: usize| {
        let (a, b) = (problem.name(i), problem.name(j));
        intervals.get(&(a, b)).or_else(|| intervals.get(&(b, a)))
    };
    let known = !intervals.is_empty();
    Some(Divergence {
        values: square(&|i, j| measured.links.get(i, j).map(|link| link.divergence)),
        low: known.then(|| square(&|i, j| interval(i, j).map(|(low, _)| *low))),
        high: known.then(|| square(&|i, j| interval(i, j).map(|(_, high)| *high))),
    })
}

/// How the paper's method descends on this problem, under its own bound, what plan it ends with, and where the best one lies.
fn traces(problem: &Problem, own: &Plan, observer: &mut Observer<'_>) -> Vec<Trace> {
    let trace =
        |name: &str, values: Vec<f64>, valid| Trace { name: name.to_owned(), values, valid };
    let named = |plan: &Plan| {
        let relaxed = "paper's solver, relaxed (not a valid plan)";
        let mut traces = vec![trace(relaxed, plan.solver.trace.clone(), false)];
        if let Some(report) = plan.solver.successive {
            let rounded = "paper's solver, rounded to a valid plan";
            let ends = Some(report.rounded_objective).filter(|ends| ends.is_finite());
            traces.extend(ends.map(|ends| trace(rounded, vec![ends], true)));
            let best = match report.exact_is_proven {
                true => "best valid plan, proven optimal",
                false => "best valid plan known",
            };
            traces.push(trace(best, vec![report.exact_objective], true));
        }
        traces
    };
    if !own.solver.trace.is_empty() {
        return named(own);
    }
    let is_measured = matches!(problem.model(), Model::Measured(_));
    if problem.len() > MOST_SUCCESSIVE || !is_measured {
        return Vec::new();
    }
    let method = planner::Method::Successive;
    let settings = planner::Settings::default().by(method);
    let paper = problem.with_bound(BoundKind::Paper);
    match planner::plan(&paper, &settings, observer) {
        Outcome::Planned(plan) => named(&plan),
        Outcome::Infeasible(_) => Vec::new(),
    }
}

fn targets(rows: &[Row], expected: &[ExpectedRow], students: &[StudentRow]) -> Vec<Target> {
    let mut targets: Vec<Target> = Vec::new();
    for row in rows {
        let place = match targets.iter().position(|t| t.name == row.target) {
            Some(place) => place,
            None => {
                let (name, samples) = (row.target.clone(), row.samples);
                let student = students.iter().find(|s| s.target == name);
                let expected = expected.iter().find(|e| e.target == name);
                let expected =
                    expected.and_then(ExpectedRow::said).map(|e| [e.low, e.accuracy, e.high]);
                let (links, joules, accuracies) = (0, 0.0, BTreeMap::new());
                targets.push(Target {
                    name,
                    samples,
                    links,
                    joules,
                    accuracies,
                    expected,
                    student: student.map(|s| s.outcome.clone()),
                    student_gflop: student.and_then(|s| s.gflop),
                    student_joules: student.and_then(|s| s.joules),
                });
                targets.len() - 1
            }
        };
        let target = &mut targets[place];
        if row.method == Method::StLf.name() {
            (target.links, target.joules) = (row.links, row.joules);
        }
        target.accuracies.insert(row.method.clone(), row.accuracy);
    }
    targets
}

/// All classes that are named, numbers in their order.
fn classes<'a>(rows: impl Iterator<Item = &'a ConfusionRow>) -> Vec<String> {
    let mut names: Vec<String> =
        rows.flat_map(|row| [row.class.clone(), row.given.clone()]).collect();
    names.sort_by(|a, b| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(x), Ok(y)) => x.total_cmp(&y),
        _ => a.cmp(b),
    });
    names.dedup();
    names
}

fn counts(rows: &[ConfusionRow], classes: &[String]) -> Vec<Confusion> {
    let mut found: Vec<Confusion> = Vec::new();
    let place = |name: &str| classes.iter().position(|class| class == name);
    for row in rows {
        if found.last().is_none_or(|c| c.target != row.target) {
            let counts = vec![vec![0; classes.len()]; classes.len()];
            found.push(Confusion { target: row.target.clone(), counts });
        }
        if let (Some(c), Some(i), Some(j)) =
            (found.last_mut(), place(&row.class), place(&row.given))
        {
            c.counts[i][j] += row.samples;
        }
    }
    found
}

fn summary(rows: &[Row]) -> Vec<Line> {
    let line = |line: crate::summary::Line| {
        let label = line.method.parse::<Method>().map_or(line.method.clone(), |m| m.label().into());
        Line {
            label,
            method: line.method,
            accuracy: line.accuracy.map(|a| document::Spread::from(a).within_one()),
            targets: line.targets.into(),
            links: line.links.into(),
            joules: line.total_joules.into(),
            energy_share: line.energy_share.map(Into::into),
            bytes: line.total_bytes.into(),
        }
    };
    summarise(rows).into_iter().map(line).collect()
}

/// The configuration, section by section; sections inside sections as `a.b`.
fn sections(config: &Config) -> Result<Vec<Section>, Error> {
    let text = config.to_toml()?;
    let table: toml::Table = text.parse().unwrap_or_default();
    let mut sections = vec![Section { section: String::new(), keys: Vec::new() }];
    let mut waiting = vec![(String::new(), table)];
    while let Some((name, table)) = waiting.pop() {
        let mut keys = Vec::new();
        let mut inside = Vec::new();
        for (key, value) in table {
            match value {
                toml::Value::Table(table) => {
                    let name = if name.is_empty() { key } else { format!("{name}.{key}") };
                    inside.push((name, table));
                }
                value => keys.push((key, value.to_string())),
            }
        }
        inside.reverse();
        waiting.extend(inside);
        match name.is_empty() {
            true => sections[0].keys = keys,
            false => sections.push(Section { section: name, keys }),
        }
    }
    Ok(sections)
}
