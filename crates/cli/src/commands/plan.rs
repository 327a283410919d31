//! `stlf plan`: makes a plan from the measurements of devices.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use stlf_formats::{PlanFile, Run, write_json};
use stlf_planning::Plan;
use stlf_planning::Problem;
use stlf_planning::planner::handover::refusal;
use stlf_planning::planner::{self, Infeasible, Method, Outcome, Settings};

use super::numbers::{fraction, positive};
use super::problem_args::ProblemArgs;
use crate::error::Failure;
use crate::progress::Watch;
use crate::ui::Ui;
use crate::{output, report};

/// Plan a fleet: roles, link weights, energy, and a proof of how good the plan is.
///
/// Reads measurements (samples, errors, divergences, link energies) and decides which devices
/// train, which models each other device receives, with what weights, and over which links. The plan
/// is proven optimal, or has a bound on its distance from the optimum.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf plan fleet.json
  stlf plan fleet.json --links links.csv --format json | jq .sources
  stlf plan fleet.json --bound paper --solver successive
  stlf plan fleet.json --phi-e 0.5 --time-limit 10 -o plan.json
  stlf plan runs/mine-1a2b3c4d         a run's first seed; what is missing until then is done
  stlf plan runs/mine-1a2b3c4d/seed-3 --phi-e 0.5")]
pub(crate) struct Args {
    #[command(flatten)]
    problem: ProblemArgs,

    /// The solver.
    #[arg(long, value_enum, default_value_t = SolverArg::Exact)]
    solver: SolverArg,

    /// Keep the successive solver's own weights, rounded but not improved.
    #[arg(long)]
    no_polish: bool,

    /// Let sources hand their models on to other sources, which continue training them: fewer links for the same mixture. Under the pooled bound only;
    /// the plan then nearly always has a gap instead of a proof.
    #[arg(long)]
    handovers: bool,

    /// End the search after this time with the best plan so far.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = positive)]
    time_limit: f64,

    /// Stop at a plan this close to the optimum, such as 0.01 for 1 %.
    #[arg(long, value_name = "FRACTION", default_value_t = 0.0, value_parser = fraction)]
    gap: f64,

    /// What to print.
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    format: FormatArg,

    /// Write the plan (stlf-plan/2, JSON) to a file.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SolverArg {
    /// The optimum, with proof.
    Exact,
    /// The paper's algorithm, polished; shows how far from the optimum it ends.
    Successive,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    /// Tables for people.
    Text,
    /// One stlf-plan/2 document.
    Json,
}

/// Plans a problem and shows the plan.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    if let Some(path) = &args.output {
        output::check_place(path)?;
    }
    let method = match args.solver {
        SolverArg::Exact => Method::Exact,
        SolverArg::Successive => Method::Successive,
    };
    args.problem.prepare(ui)?;
    let needs_paper = (method == Method::Successive).then_some("the successive solver");
    let problem = args.problem.load(needs_paper)?;
    if args.handovers {
        check_handovers(&problem)?;
    }
    let settings = Settings::default().by(method).within(args.gap);
    let settings = settings.polished(!args.no_polish).handing_on(args.handovers);
    let (outcome, run) = watched(&problem, &settings, Some(args.time_limit), ui)?;
    match outcome {
        Outcome::Planned(plan) => show(args, ui, &problem, &plan, run),
        Outcome::Infeasible(reason) => {
            if args.format == FormatArg::Json {
                let document = PlanFile::infeasible(&problem, &reason, method, run);
                ui.write(|out| write_json(out, &document))?;
            }
            Err(infeasible(&reason))
        }
    }
}

/// Refuses hand-overs if the problem cannot have any.
pub(crate) fn check_handovers(problem: &Problem) -> Result<(), Failure> {
    match refusal(problem) {
        Some(reason) => Err(Failure::input(format!("--handovers: {reason}"))),
        None => Ok(()),
    }
}

/// Converts a time limit of the command line; one too long to represent becomes `None`, no limit.
pub(crate) fn seconds(limit: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(limit).ok()
}

/// Plans with progress for the user, and measures only the time of that.
pub(crate) fn watched(
    problem: &Problem,
    settings: &Settings,
    time_limit: Option<f64>,
    ui: &Ui,
) -> Result<(Outcome, Run), Failure> {
    let mut watch = Watch::start(time_limit.and_then(seconds), ui)?;
    let outcome = planner::plan(problem, settings, &mut |progress| watch.see(progress));
    let seconds = watch.finish().as_secs_f64();
    Ok((outcome, Run { seconds, interrupted: Watch::is_interrupted() }))
}

fn show(args: &Args, ui: &Ui, problem: &Problem, plan: &Plan, run: Run) -> Result<(), Failure> {
    let document = || PlanFile::new(problem, plan, run);
    match (&args.output, args.format) {
        (None, FormatArg::Text) => ui.print(&report::plan(problem, plan, run)),
        (None, FormatArg::Json) => ui.write(|out| write_json(out, &document())),
        (Some(path), FormatArg::Text) => {
            output::write_file(path, |out| write_json(out, &document()))?;
            ui.print(&report::plan(problem, plan, run))
        }
        (Some(path), FormatArg::Json) => {
            let document = document();
            output::write_file(path, |out| write_json(out, &document))?;
            ui.write(|out| write_json(out, &document))
        }
    }
}

/// Returns the failure that no plan exists, with advice on what would help.
pub(crate) fn infeasible(reason: &Infeasible) -> Failure {
    Failure::infeasible(format!("no plan exists: {reason}")).hint(reason.hint())
}
