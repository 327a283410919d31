//! `stlf report`: one HTML page about a run.

use std::path::{Path, PathBuf};

use stlf_formats::PlanOrProblem;
use stlf_lab::report::document::Run;
use stlf_lab::report::{document, html, of_plan, of_problem, of_run};

use super::numbers::positive;
use super::plan::{check_handovers, seconds};
use super::run_args::failure;
use crate::error::Failure;
use crate::input;
use crate::opener;
use crate::output::{check_place, write_file};
use crate::progress::Watch;
use crate::ui::Ui;

/// Write a run as one HTML page: the fleet, divergences, methods, the frontier of energy and accuracy.
///
/// The page holds everything it shows and needs no network. With two runs it compares them. A plan or a problem
/// (JSON) gives a page of its plan alone.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf report runs/demo                        writes runs/demo/report.html
  stlf report runs/demo --open                 and shows it in a browser
  stlf report runs/a runs/b -o compared.html
  stlf report fleet.json -o fleet.html
  stlf report fleet.json --handovers")]
pub(crate) struct Args {
    /// A run folder, a plan (stlf-plan/2) or a problem (stlf-problem/1); two are compared.
    #[arg(required = true, num_args = 1..=2, value_name = "RUN")]
    runs: Vec<PathBuf>,

    /// Where to write the page [default: report.html in the run folder, or beside the file]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Let sources of a problem hand their models on, as in `stlf plan --handovers`.
    #[arg(long)]
    handovers: bool,

    /// Show the page in a browser.
    #[arg(long)]
    open: bool,

    /// Stop planning after this time, for all plans together; the page shows what is then known [default: 60; for a problem with more
    /// than 200 devices: 4]
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    time_limit: Option<f64>,
}

/// The time limit for planning a page, in seconds.
pub(crate) const LIMIT: f64 = 60.0;

/// The time limit for the page of a large problem that nobody gave a limit: it opens at once, and shows the gap.
const SOON: f64 = 4.0;

/// A problem with more devices than this is large.
const LARGE: usize = 200;

/// Writes the report page of runs, a plan or a problem.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    let output = match (&args.output, &args.runs[..]) {
        (Some(output), _) => output.clone(),
        (None, [run]) if run.is_dir() => run.join("report.html"),
        (None, [problem]) => problem.with_extension("html"),
        (None, _) => PathBuf::from("report.html"),
    };
    check_place(&output)?;
    let mut watch = Watch::start(seconds(args.time_limit.unwrap_or(LIMIT)), ui)?;
    let soon = args.time_limit.is_none();
    let read = |run: &PathBuf| read(run, args.handovers, soon, &mut watch);
    let runs: Result<Vec<_>, _> = args.runs.iter().map(read).collect();
    watch.finish();
    let runs = runs?;
    let title = runs.iter().map(|run| run.name.as_str()).collect::<Vec<_>>().join(" and ");
    let page = html(&document(&title, runs));
    write_file(&output, |out| out.write_all(page.as_bytes()))?;
    ui.print(&format!("wrote {}\n", output.display()))?;
    if args.open {
        opener::open(&output)?;
    }
    Ok(())
}

/// Reads what a page shows of a run folder, a plan or a problem; `handovers` is accepted only if there is no plan yet. With `soon`, a
/// large problem is planned for seconds only.
pub(crate) fn read(
    path: &Path,
    handovers: bool,
    soon: bool,
    watch: &mut Watch,
) -> Result<Run, Failure> {
    if path.join("config.toml").is_file() {
        check_unplanned(handovers, path)?;
        return of_run(path, &mut |progress| watch.see(progress)).map_err(|e| failure(&e));
    }
    alone(input::plan_or_problem(path)?, path, handovers, soon, watch)
}

/// Returns what a page shows of a plan or a problem; `path` gives its name.
pub(crate) fn alone(
    file: PlanOrProblem,
    path: &Path,
    handovers: bool,
    soon: bool,
    watch: &mut Watch,
) -> Result<Run, Failure> {
    let devices = match &file {
        PlanOrProblem::Plan(file) => file.sources.len() + file.targets.len(),
        PlanOrProblem::Problem(file) => match (&file.devices, &file.costs) {
            (Some(devices), _) => devices.len(),
            (None, costs) => costs.as_ref().map_or(0, |costs| costs.source.len()),
        },
    };
    if soon && devices > LARGE {
        // Reading a large file is no planning.
        watch.restart_with(seconds(SOON));
    }
    let name = path.file_stem().map_or("problem".into(), |name| name.to_string_lossy());
    match file {
        PlanOrProblem::Plan(file) => {
            check_unplanned(handovers, path)?;
            of_plan(&file, &name, &mut |progress| watch.see(progress))
        }
        PlanOrProblem::Problem(file) => {
            if handovers {
                let problem = file.clone().into_problem(None);
                check_handovers(&problem.map_err(|e| Failure::in_file(&input::name(path), &e))?)?;
            }
            of_problem(*file, &name, handovers, &mut |progress| watch.see(progress))
        }
    }
    .map_err(|e| failure(&e))
}

/// Refuses to ask for hand-overs if the plan is already made.
fn check_unplanned(handovers: bool, path: &Path) -> Result<(), Failure> {
    if !handovers {
        return Ok(());
    }
    Err(Failure::input(format!("--handovers: the plan of {} is already made", path.display())).hint(
        "`stlf plan --handovers` makes a plan with hand-overs, `planner.handovers = true` a run",
    ))
}
