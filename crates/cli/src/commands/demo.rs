//! `stlf demo`: the whole method on drawn digits, or two small fleets, planned and explained in plain words.

use std::path::{Path, PathBuf};
use std::time::Instant;

use stlf_config::Config;
use stlf_formats::{ProblemFile, Run};
use stlf_planning::Plan;
use stlf_planning::Problem;
use stlf_planning::bound::BoundKind;
use stlf_planning::number_format::short;
use stlf_planning::planner::{Method, Outcome, Settings};

use super::plan::{infeasible, watched};
use crate::comparison::comparison;
use crate::error::Failure;
use crate::output::write_file;
use crate::report;
use crate::ui::Ui;

const CARS: Example =
    Example { file: "five-cars.json", text: include_str!("../../examples/five-cars.json") };

const TEN: Example =
    Example { file: "ten-devices.json", text: include_str!("../../examples/ten-devices.json") };

/// A fleet that comes with the program.
struct Example {
    file: &'static str,
    text: &'static str,
}

/// Show the whole method at work: ten devices with drawn digits train, measure, plan, transfer and compare.
///
/// Needs no file and no network, and takes about a minute on two idle cores.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf demo
  stlf demo --planner                 two small fleets, planned and explained
  stlf demo --write examples && stlf plan examples/five-cars.json")]
pub(crate) struct Args {
    /// The run folder.
    #[arg(long, value_name = "DIR", default_value = "runs/demo")]
    to: PathBuf,

    /// Only plan two small example fleets, and explain what happens.
    #[arg(long)]
    planner: bool,

    /// Write the example problems to this directory instead, to copy from.
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
}

/// Runs the method, plans the examples, or writes them to disk.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    if let Some(folder) = &args.write {
        std::fs::create_dir_all(folder)
            .map_err(|e| Failure::io(format!("cannot create {}: {e}", folder.display())))?;
        for example in [CARS, TEN] {
            let path = folder.join(example.file);
            write_file(&path, |out| out.write_all(example.text.as_bytes()))?;
            ui.print(&format!("wrote {}\n", path.display()))?;
        }
        return Ok(());
    }
    if args.planner {
        cars(ui)?;
        return ten_devices(ui);
    }
    whole_method(&args.to, ui)
}

/// The seeds of the demo, enough of them to see a spread.
const SEEDS: [u64; 3] = [0, 1, 2];

fn whole_method(folder: &Path, ui: &Ui) -> Result<(), Failure> {
    ui.print(
        "Ten devices hold digits that were drawn with different pens. Five have labels for most of theirs, of four kinds\n\
         of digit each; five have none. Nobody sends digits: devices train on their own labels, measure how different\n\
         their data are, and send models over the links that are worth their energy.\n\n",
    )?;
    let config = Config { seeds: SEEDS.to_vec(), ..Config::default() };
    let started = Instant::now();
    let seeds = config.seeds.len();
    let outcome =
        super::run_args::watched(seeds, ui, |observer| stlf_lab::run(&config, folder, observer))?;
    let methods = config.compare.methods().map_err(|e| Failure::input(e.to_string()))?;
    ui.print(&comparison(&outcome, &config, &methods))?;
    ui.print(&format!(
        "\n{} on this machine. Look at it, and ask why each device has its role:\n  stlf report {} --open\n  \
         stlf explain {}\nEverything is in {}; `stlf new mine` writes a configuration for data of your own.\n",
        report::duration(started.elapsed().as_secs_f64()),
        folder.display(),
        folder.display(),
        folder.display(),
    ))
}

fn cars(ui: &Ui) -> Result<(), Failure> {
    ui.print(
        "FIVE CARS\n\
         Five cars want to recognise what they see. C and D drive in the same surroundings and have\n\
         labeled what they saw; so has B, elsewhere. A drives where C and D do but has hardly any\n\
         labels. E has none, and its surroundings are somewhere between B's and D's.\n\
         Nobody sends pictures: only models travel, and each transfer costs energy. To decide:\n\
         who trains (source), who receives (target), and whose models make up each target's own.\n\n",
    )?;
    let problem = CARS.problem()?;
    let (plan, run) = plan(&problem, Method::Exact, ui)?;
    ui.print(&report::plan(&problem, &plan, run))?;
    ui.print(
        "\nA could train on its few labels but would err a lot, so it mixes the models of the two cars\n\
         whose data resemble its own; a mixture is surer than either alone, and worth a second link.\n\
         E mixes the two it lies between. B, C and D gain nothing from each other that would pay.\n\n",
    )
}

fn ten_devices(ui: &Ui) -> Result<(), Failure> {
    ui.print(
        "TEN DEVICES\n\
         The paper's network: d1 to d5 have labels, and their own models err on 4, 27, 45, 9 and 45 %\n\
         of their data; d6 to d10 have no labels at all.\n\n",
    )?;
    let problem = TEN.problem()?;
    let (pooled, run) = plan(&problem, Method::Exact, ui)?;
    ui.print(&report::plan(&problem, &pooled, run))?;
    ui.print(
        "\nThe same fleet under the paper's own bound, where one source per target is always best, and\n\
         by the paper's own method, successive convex approximation:\n\n",
    )?;
    let problem = problem.with_bound(BoundKind::Paper);
    let (exact, exact_run) = plan(&problem, Method::Exact, ui)?;
    let (successive, run) = plan(&problem, Method::Successive, ui)?;
    ui.print(&report::plan(&problem, &successive, run))?;
    ui.print(&format!(
        "\nThe exact search needed {} for {}, {}; the paper's method needed {}.\n\
         Next: `stlf demo --write examples`, then `stlf plan examples/ten-devices.json --help`.\n",
        report::duration(exact_run.seconds),
        short(exact.objective()),
        report::certainty(&exact, exact_run),
        report::duration(run.seconds),
    ))
}

impl Example {
    fn problem(&self) -> Result<Problem, Failure> {
        ProblemFile::read(self.text.as_bytes())
            .and_then(|file| file.into_problem(None))
            .map_err(|e| Failure::in_file(self.file, &e))
    }
}

fn plan(problem: &Problem, method: Method, ui: &Ui) -> Result<(Box<Plan>, Run), Failure> {
    let settings = Settings::default().by(method);
    match watched(problem, &settings, None, ui)? {
        (Outcome::Planned(plan), run) => Ok((plan, run)),
        (Outcome::Infeasible(reason), _) => Err(infeasible(&reason)),
    }
}
