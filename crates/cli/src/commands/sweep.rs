//! `stlf sweep`: the energy weights at which the plan changes.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use stlf_figure::lines::Guide;
use stlf_figure::{Axis, Figure, steps};
use stlf_planning::Problem;
use stlf_planning::Role;
use stlf_planning::diff::{Decisions, diff};
use stlf_planning::number_format::{counted, energy, percent, short};
use stlf_planning::plan::Terms;
use stlf_planning::planner::Settings;
use stlf_planning::problem::Model;
use stlf_planning::sweep::{Segment, Sweep, sweep};

use super::numbers::{fraction, positive};
use super::plan::{check_handovers, infeasible};
use super::problem_args::ProblemArgs;
use crate::error::Failure;
use crate::output;
use crate::progress::Watch;
use crate::report::duration;
use crate::table::{Align, Table};
use crate::ui::Ui;

/// Find the energy weights at which the plan changes.
///
/// The optimal plan changes at a finite number of energy weights. This finds all of them in a
/// range, exactly, with two plans per change, and shows how energy is traded for error.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf sweep fleet.json --energy-weight 1e-3..1e4
  stlf sweep fleet.json --energy-weight 1e-3..1e4 --csv sweep.csv --svg sweep.svg
  stlf sweep fleet.json --energy-weight 0.01..10 --bound paper --format csv | head")]
pub(crate) struct Args {
    #[command(flatten)]
    problem: ProblemArgs,

    /// The range of energy weights, such as 1e-3..1e4.
    #[arg(long, value_name = "FROM..TO", default_value = "1e-3..1e4", value_parser = range)]
    energy_weight: Range,

    /// Let sources hand their models on, as in `stlf plan --handovers`; breakpoints are then rarely proven.
    #[arg(long)]
    handovers: bool,

    /// Write the table as CSV to a file.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Draw energy, links and error bound against the energy weight.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Stop after this time, for all plans together, and show what is known.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = positive)]
    time_limit: f64,

    /// Stop each search at a plan this close to the optimum; breakpoints are then approximate.
    #[arg(long, value_name = "FRACTION", default_value_t = 0.0, value_parser = fraction)]
    gap: f64,

    /// What to print [default: text on a terminal or with --csv, else csv]
    #[arg(long, value_enum)]
    format: Option<FormatArg>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    /// A table for people.
    Text,
    /// Comma-separated values with a header.
    Csv,
}

/// A range between two numbers above 0.
#[derive(Debug, Clone, Copy)]
struct Range {
    low: f64,
    high: f64,
}

fn range(text: &str) -> Result<Range, String> {
    let form = "expected two numbers above 0 with the smaller first, such as 1e-3..1e4";
    let (low, high) = text.split_once("..").ok_or(form)?;
    let (low, high) = (positive(low.trim())?, positive(high.trim())?);
    if low < high { Ok(Range { low, high }) } else { Err(form.to_owned()) }
}

/// Sweeps the range and shows the segments.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    for path in [&args.csv, &args.svg].into_iter().flatten() {
        output::check_place(path)?;
    }
    let problem = args.problem.load(None)?;
    let Model::Measured(measured) = problem.model() else {
        return Err(Failure::input("raw costs have no energy weight to sweep")
            .hint("give errors, divergences and energies instead of costs"));
    };
    let Range { low, high } = args.energy_weight;
    if args.handovers {
        check_handovers(&problem)?;
    }
    let settings = Settings::default().within(args.gap).handing_on(args.handovers);
    let mut watch = Watch::start(Duration::try_from_secs_f64(args.time_limit).ok(), ui)?;
    let swept = sweep(&problem, low..=high, &settings, &mut |progress| watch.see(progress));
    let seconds = watch.finish().as_secs_f64();
    let swept = swept.map_err(|reason| infeasible(&reason))?;
    if let Some(path) = &args.csv {
        output::write_file(path, |out| csv(out, &problem, &swept.segments))?;
    }
    if let Some(path) = &args.svg {
        let drawn = draw(&problem, measured.weights.energy, &swept);
        output::write_file(path, |out| out.write_all(drawn.to_svg().as_bytes()))?;
    }
    let summary = format!("{}; {}\n", summary(&swept), duration(seconds));
    let as_text = args.csv.is_some() || io::stdout().is_terminal();
    let default = if as_text { FormatArg::Text } else { FormatArg::Csv };
    match args.format.unwrap_or(default) {
        FormatArg::Text => ui.print(&format!("{}\n{summary}", table(&problem, &swept.segments))),
        FormatArg::Csv => {
            ui.write(|out| csv(out, &problem, &swept.segments))?;
            ui.note(&summary);
            Ok(())
        }
    }
}

fn summary(swept: &Sweep) -> String {
    let plans = counted(swept.segments.len(), "plan");
    let solves = counted(swept.solves, "solve");
    if swept.proven {
        format!("{plans}, every breakpoint proven by {solves}")
    } else {
        let gap = percent(swept.largest_gap);
        format!("{plans} known after {solves}, not all proven (gap up to {gap})")
    }
}

/// Writes one line for each segment. Names of sources are quoted and separated by `;`.
fn csv(out: &mut dyn Write, problem: &Problem, segments: &[Segment]) -> io::Result<()> {
    writeln!(
        out,
        "energy_weight_from,energy_weight_to,joules,links,sources,error_bound,objective_from,objective_to,source_names,handovers"
    )?;
    for s in segments {
        let names: Vec<&str> = (0..s.roles.len())
            .filter(|&i| s.roles[i] == Role::Source)
            .map(|i| problem.name(i))
            .collect();
        writeln!(
            out,
            "{},{},{},{},{},{},{},{},\"{}\",{}",
            s.from,
            s.to,
            s.joules,
            s.links.len(),
            s.sources(),
            s.error_bound,
            s.objective(s.from),
            s.objective(s.to),
            names.join(";").replace('"', "\"\""),
            s.handovers.len()
        )?;
    }
    Ok(())
}

fn table(problem: &Problem, segments: &[Segment]) -> String {
    let mut table = Table::new(&[
        ("from", Align::Right),
        ("to", Align::Right),
        ("energy", Align::Right),
        ("links", Align::Right),
        ("sources", Align::Right),
        ("error bound", Align::Right),
        ("what changes", Align::Left),
    ]);
    let mut previous: Option<Decisions> = None;
    for s in segments {
        let decisions = decisions(problem, s);
        let change = previous.as_ref().map_or(String::new(), |p| changes(p, &decisions));
        table.row([
            short(s.from).into(),
            short(s.to).into(),
            energy(s.joules).into(),
            links(s).into(),
            s.sources().to_string().into(),
            short(s.error_bound).into(),
            change.into(),
        ]);
        previous = Some(decisions);
    }
    table.render()
}

/// Returns the number of links, and of hand-overs if there are any.
fn links(segment: &Segment) -> String {
    match segment.handovers.len() {
        0 => segment.links.len().to_string(),
        handovers => format!("{} + {}", segment.links.len(), counted(handovers, "hand-over")),
    }
}

fn decisions(problem: &Problem, segment: &Segment) -> Decisions {
    Decisions {
        names: (0..problem.len()).map(|i| problem.name(i).to_owned()).collect(),
        roles: segment.roles.clone(),
        handovers: segment.handovers.clone(),
        links: segment.links.clone(),
        terms: Terms { target: segment.error_bound, ..Terms::default() },
    }
}

/// Returns in a few words what a breakpoint changes.
fn changes(before: &Decisions, after: &Decisions) -> String {
    const MOST: usize = 3;
    let changes = diff(before, after, 1e-3);
    let mut words: Vec<String> = changes
        .roles
        .iter()
        .map(|change| format!("{} becomes a {}", change.device, change.after))
        .collect();
    let (gone, new) = (
        changes.links.iter().filter(|c| c.after.is_none()),
        changes.links.iter().filter(|c| c.before.is_none()),
    );
    words.extend(gone.map(|c| format!("−{} → {}", c.from, c.to)));
    words.extend(new.map(|c| format!("+{} → {}", c.from, c.to)));
    words.extend(changes.handovers.iter().map(|c| match &c.after {
        Some(from) => format!("{} takes {from}'s model", c.to),
        None => format!("{} takes no model", c.to),
    }));
    if words.len() > MOST {
        let more = words.len() - MOST;
        words.truncate(MOST);
        words.push(format!("{more} more"));
    }
    words.join(", ")
}

fn draw(problem: &Problem, energy_weight: f64, swept: &Sweep) -> Figure {
    let segments = &swept.segments;
    let panel = |label: &str, from_zero, value: fn(&Segment) -> f64| steps::Panel {
        label: label.to_owned(),
        values: segments.iter().map(value).collect(),
        from_zero,
    };
    let note = |s: &Segment| {
        format!(
            "energy weight {} to {}\n{}, {}, {}\nerror bound {}",
            short(s.from),
            short(s.to),
            energy(s.joules),
            counted(s.links.len(), "link"),
            counted(s.sources(), "source"),
            short(s.error_bound)
        )
    };
    let label = format!("φᴱ = {} in the problem", short(energy_weight));
    steps::Chart {
        title: format!("Energy against error, {}", counted(problem.len(), "device")),
        subtitle: format!("{} bound; {}", problem.bound_kind(), summary(swept)),
        x: Axis::log("energy weight φᴱ"),
        edges: segments.iter().map(|s| s.from).chain(segments.last().map(|s| s.to)).collect(),
        panels: vec![
            panel("energy (joules)", true, |s| s.joules),
            panel("links in use", true, |s| s.links.len() as f64),
            panel("error bound, sources and targets", false, |s| s.error_bound),
        ],
        guide: Some(Guide { at: energy_weight, label }),
        notes: segments.iter().map(note).collect(),
        ..steps::Chart::default()
    }
    .draw()
}
