//! `stlf reproduce`: makes the paper's figures and tables again.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use stlf_lab::paper::{Artifact, Made, Options, reproduce};

use super::numbers::within;
use super::run_args::failure;
use crate::error::Failure;
use crate::output::write_file;
use crate::progress::{Stages, Watch};
use crate::ui::Ui;

/// Reproduce the paper's figures and tables, next to the published numbers, and compare methods on natural fleets, on strangers, with few labels, among liars and under drift, and guards of students.
///
/// Without --data it uses drawn digits, which stand in for MNIST, USPS and MNIST-M; with it, the real sets. Every
/// figure is written as CSV and SVG, every table as CSV, Markdown and LaTeX. Runs are kept and not repeated.
///
/// Six of them are not in the paper. `natural`: people, writers of digits and months as devices. Their files are expected in the
/// folder natural/ of --data; experiments/natural/README.md says which. `strangers`: targets whose domain no source has seen.
/// `guards`: how often students that do harm are accepted, at which threshold.
/// `labels`: what 10, 30 and 100 labels of their own samples bring targets. `liars`: what
/// targets lose to sources that lie. `drift`: what it costs not to measure and plan again when data change, and what it costs to do so;
/// it reads the gas sensors of natural/.
///
/// A PNG of a figure: rsvg-convert --zoom 2 fig3.svg -o fig3.png
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf reproduce fig3
  stlf reproduce all --quick                       everything, small and fast
  stlf reproduce table1 --settings M,MM//U         two of the nine settings
  stlf reproduce table1 --data data --seeds 5      the real data sets
  stlf reproduce all --data data --paper-faithful  also the paper's method as published
  stlf reproduce natural --data data               people, writers and months as devices
  stlf reproduce strangers --data data             targets whose domain no source has seen
  stlf reproduce guards                            how often guards of students err
  stlf reproduce labels --data data                targets that ask for some labels
  stlf reproduce liars                             sources that lie
  stlf reproduce drift --data data                 devices whose data change

The specs are under experiments/, each with what the paper shows and what to expect.")]
pub(crate) struct Args {
    /// fig3, fig4, fig5, fig6, fig7, fig8, table1, table2, all of these (all), natural, strangers, guards, labels, liars or drift.
    #[arg(required = true, value_name = "WHAT", value_parser = Names, hide_possible_values = true)]
    what: Vec<What>,

    /// The folder with the files of MNIST, USPS and MNIST-M [default: drawn digits instead]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// The number of seeds [default: 5, for natural, strangers, guards, labels and drift 10, or 2 with --quick]
    #[arg(long, value_name = "K", value_parser = within(1..=10_000))]
    seeds: Option<u32>,

    /// Use small fleets and short training: the numbers mean little, but it shows that everything works.
    #[arg(long)]
    quick: bool,

    /// Also run the paper's method as published: its bound, its successive planner, its divergences, averaged parameters.
    #[arg(long)]
    paper_faithful: bool,

    /// Only these settings, fleets or cases, such as M,MM//U or har; experiments/*/README.md lists the names [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    settings: Vec<String>,

    /// Where figures, tables and runs go.
    #[arg(long, value_name = "DIR", default_value = "reproduced")]
    to: PathBuf,
}

/// One figure or table, or all of the paper.
#[derive(Clone, Copy)]
enum What {
    One(Artifact),
    All,
}

/// Reads a [`What`], and tells completions which there are.
#[derive(Clone)]
struct Names;

impl TypedValueParser for Names {
    type Value = What;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<What, clap::Error> {
        StringValueParser::new().try_map(|text| what(&text)).parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let names = Artifact::ALL.map(Artifact::name).into_iter().chain(["all"]);
        Some(Box::new(names.map(PossibleValue::new)))
    }
}

fn what(text: &str) -> Result<What, String> {
    match text {
        "all" => Ok(What::All),
        one => one.parse().map(What::One).map_err(|e: stlf_planning::Error| e.to_string()),
    }
}

/// Makes the figures and tables, and shows the tables.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    let mut artifacts: Vec<Artifact> = Vec::new();
    for what in &args.what {
        match what {
            What::One(artifact) => artifacts.push(*artifact),
            What::All => artifacts.extend(Artifact::ALL.into_iter().filter(|a| a.is_published())),
        }
    }
    artifacts.sort_unstable();
    artifacts.dedup();
    let options = |artifact: Artifact| Options {
        data: args.data.clone(),
        seeds: match args.seeds {
            Some(seeds) => seeds as usize,
            None if args.quick => 2,
            None => artifact.usual_seeds(),
        },
        quick: args.quick,
        paper_faithful: args.paper_faithful,
        settings: args.settings.clone(),
    };
    let mut text = head(args);
    for artifact in artifacts {
        let options = options(artifact);
        let made = section(&watched(artifact, &options, &args.to, ui)?, options.seeds);
        ui.print(&made)?;
        text += &made;
    }
    let summary = args.to.join("README.md");
    write_file(&summary, |out| out.write_all(text.as_bytes()))?;
    ui.print(&format!(
        "Everything is in {}, the tables together in {}\n",
        args.to.display(),
        summary.display()
    ))
}

/// Makes one figure or table, with a progress bar for every stage of every setting.
fn watched(artifact: Artifact, options: &Options, to: &Path, ui: &Ui) -> Result<Made, Failure> {
    Watch::listen()?;
    let stages = Mutex::new(None::<Stages>);
    let heard = |setting: &str, number: usize, of: usize| {
        let Ok(mut stages) = stages.lock() else { return };
        if let Some(last) = stages.take() {
            last.finish();
        }
        if ui.is_watched() {
            ui.note(&format!("{}: {setting}, {number} of {of}\n", artifact.name()));
        }
        *stages = Stages::start(options.seeds, ui).ok();
    };
    let observer = |event| {
        if let Ok(stages) = stages.lock()
            && let Some(stages) = &*stages
        {
            stages.see(&event);
        }
        Watch::flow()
    };
    let made = reproduce(artifact, options, to, &heard, &observer);
    if let Ok(mut stages) = stages.lock()
        && let Some(last) = stages.take()
    {
        last.finish();
    }
    made.map_err(|e| failure(&e))
}

fn head(args: &Args) -> String {
    let data = match &args.data {
        Some(folder) => format!("the data sets in `{}`", folder.display()),
        None => "drawn digits, which stand in for the paper's data sets".to_owned(),
    };
    let small = if args.quick {
        " Small fleets and short training (`--quick`): the numbers mean little."
    } else {
        ""
    };
    format!("# The paper, reproduced\n\nOn {data}.{small}\n\n")
}

fn section(made: &Made, seeds: usize) -> String {
    let names: Vec<String> = made
        .files
        .iter()
        .filter_map(|file| file.file_name())
        .map(|name| format!("`{}`", name.to_string_lossy()))
        .collect();
    format!(
        "## {}: {}\n\n{}: {seeds}.\n\n{}\n{}\n\nFiles: {}\n\n",
        made.artifact.name(),
        made.title,
        if made.artifact.is_published() { "Seeds" } else { "Draws" },
        made.table,
        made.note,
        names.join(", ")
    )
}
