//! `stlf report`: a run as one page to look at.

use std::path::{Path, PathBuf};

use stlf::format::ProblemFile;
use stlf_lab::report::document::Run;
use stlf_lab::report::{document, html, of_problem, of_run};

use super::plan::seconds;
use super::problem_args::positive;
use super::run_args::failure;
use crate::error::Failure;
use crate::output::{check_place, write_file};
use crate::progress::Watch;
use crate::ui::Ui;
use crate::{input, opener};

/// Write a run as one HTML page: the fleet, divergences, methods, the frontier of energy and accuracy.
///
/// The page holds everything it shows and needs no network. With two runs it compares them. A problem (JSON) gives
/// a page of its plan alone.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf report runs/demo                        writes runs/demo/report.html
  stlf report runs/demo --open                 and shows it in a browser
  stlf report runs/a runs/b -o compared.html
  stlf report fleet.json -o fleet.html")]
pub(crate) struct Args {
    /// A run folder or a problem (stlf-problem/1); two are compared.
    #[arg(required = true, num_args = 1..=2, value_name = "RUN")]
    runs: Vec<PathBuf>,

    /// Where to write the page [default: report.html in the run folder, or beside the problem]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Show the page in a browser.
    #[arg(long)]
    open: bool,

    /// End planning after this time, all plans together; the page shows what is known then.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = positive)]
    time_limit: f64,
}

/// Writes the page.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    let output = match (&args.output, &args.runs[..]) {
        (Some(output), _) => output.clone(),
        (None, [run]) if run.is_dir() => run.join("report.html"),
        (None, [problem]) => problem.with_extension("html"),
        (None, _) => PathBuf::from("report.html"),
    };
    check_place(&output)?;
    let mut watch = Watch::start(seconds(args.time_limit), ui)?;
    let runs: Result<Vec<_>, _> = args.runs.iter().map(|run| read(run, &mut watch)).collect();
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

/// What a page shows of a run folder or a problem.
pub(crate) fn read(path: &Path, watch: &mut Watch) -> Result<Run, Failure> {
    if path.join("config.toml").is_file() {
        return of_run(path, &mut |progress| watch.see(progress)).map_err(|e| failure(&e));
    }
    problem(input::problem(path)?, path, watch)
}

/// What a page shows of a problem from this place.
pub(crate) fn problem(file: ProblemFile, path: &Path, watch: &mut Watch) -> Result<Run, Failure> {
    let name = path.file_stem().map_or("problem".into(), |name| name.to_string_lossy());
    of_problem(file, &name, &mut |progress| watch.see(progress)).map_err(|e| failure(&e))
}
