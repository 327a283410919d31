//! `stlf diff`: what changed between two plans.

use std::path::PathBuf;

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use stlf_formats::{DiffFile, write_json};
use stlf_planning::diff::{Decisions, Diff, HandoverChange, LinkChange, diff};
use stlf_planning::number_format::clean;
use stlf_planning::number_format::{counted, percent, short};
use stlf_planning::plan::Terms;

use super::numbers::non_negative;
use crate::error::Failure;
use crate::input;
use crate::table::{Align, Cell, Table};
use crate::ui::Ui;

/// Compare two plans: roles, links, weights, costs.
///
/// Devices are matched by name. Plans are the same if the same devices have the same roles and
/// links; costs are shown but not compared.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf diff monday.json tuesday.json
  stlf diff exact.json successive.json --threshold 0.05
  stlf plan fleet.json --phi-e 10 --format json | stlf diff plan.json -

Exit codes: 0 the plans are the same, 1 they differ, 2 bad input.")]
pub(crate) struct Args {
    /// A plan (stlf-plan/2), a run folder, or - for standard input.
    a: PathBuf,

    /// The plan to compare it with.
    b: PathBuf,

    /// Weights of a link that differ by no more than this are the same.
    #[arg(long, value_name = "WEIGHT", default_value_t = 1e-3, value_parser = non_negative)]
    threshold: f64,

    /// What to print.
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    format: FormatArg,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    /// Tables for people.
    Text,
    /// One stlf-diff/1 document.
    Json,
}

/// Compares two plans and shows the changes; if there are any, fails without a message.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    if args.a == args.b && args.a.as_os_str() == "-" {
        return Err(Failure::input("both plans cannot come from standard input")
            .hint("give one of the two as a file"));
    }
    let changes = diff(&decisions(&args.a)?, &decisions(&args.b)?, args.threshold);
    match args.format {
        FormatArg::Text => ui.print(&text(&changes))?,
        FormatArg::Json => ui.write(|out| write_json(out, &DiffFile::new(&changes)))?,
    }
    if changes.same_plan() { Ok(()) } else { Err(Failure::different()) }
}

fn decisions(path: &std::path::Path) -> Result<Decisions, Failure> {
    input::plan(path)?.decisions().map_err(|e| Failure::in_file(&input::name(path), &e))
}

fn text(changes: &Diff) -> String {
    if changes.same_plan() && changes.before == changes.after {
        return "The plans are the same.\n".to_owned();
    }
    let mut blocks = Vec::new();
    for (devices, which) in
        [(&changes.removed_devices, "first"), (&changes.added_devices, "second")]
    {
        if !devices.is_empty() {
            let names = clean(&devices.join(", "));
            blocks.push(format!("Only in the {which} plan: {names}\n"));
        }
    }
    if !changes.roles.is_empty() {
        let mut table =
            Table::new(&[("device", Align::Left), ("was", Align::Left), ("is now", Align::Left)]);
        for change in &changes.roles {
            let cells: [Cell; 3] =
                [change.device.as_str().into(), change.before.into(), change.after.into()];
            table.row(cells);
        }
        blocks.push(table.render());
    }
    if !changes.links.is_empty() {
        blocks.push(links(&changes.links));
    }
    if !changes.handovers.is_empty() {
        blocks.push(handovers(&changes.handovers));
    }
    if changes.same_plan() {
        blocks.push("The same roles and links, at a different cost.\n".to_owned());
    }
    blocks.push(terms(changes.before, changes.after));
    blocks.join("\n")
}

fn links(changes: &[LinkChange]) -> String {
    let style = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
    let (gone, new, other) =
        (style(AnsiColor::Red), style(AnsiColor::Green), style(AnsiColor::Yellow));
    let count = |is: fn(&LinkChange) -> bool| changes.iter().filter(|c| is(c)).count();
    let mut text = format!(
        "{} removed, {} added, {} with another weight\n",
        counted(count(|c| c.after.is_none()), "link"),
        count(|c| c.before.is_none()),
        count(|c| c.before.is_some() && c.after.is_some()),
    );
    for change in changes {
        let link = clean(&format!("{} → {}", change.from, change.to));
        text += &match (change.before, change.after) {
            (Some(before), None) => format!("  {gone}- {link}{gone:#}  {}\n", percent(before)),
            (None, Some(after)) => format!("  {new}+ {link}{new:#}  {}\n", percent(after)),
            (before, after) => format!(
                "  {other}~ {link}{other:#}  {} → {}\n",
                percent(before.unwrap_or(0.0)),
                percent(after.unwrap_or(0.0))
            ),
        };
    }
    text
}

/// Returns a table of the changed hand-overs: for each source, whose model it trained and now trains.
fn handovers(changes: &[HandoverChange]) -> String {
    let mut table = Table::new(&[
        ("source", Align::Left),
        ("took the model of", Align::Left),
        ("now takes", Align::Left),
    ]);
    for change in changes {
        let model = |from: &Option<String>| from.clone().unwrap_or_else(|| "its own".to_owned());
        let cells: [Cell; 3] =
            [change.to.as_str().into(), model(&change.before).into(), model(&change.after).into()];
        table.row(cells);
    }
    table.render()
}

fn terms(before: Terms, after: Terms) -> String {
    let mut table = Table::new(&[
        ("", Align::Left),
        ("was", Align::Right),
        ("is now", Align::Right),
        ("change", Align::Right),
    ]);
    for (name, was, is) in [
        ("sources", before.source, after.source),
        ("targets", before.target, after.target),
        ("energy", before.energy, after.energy),
        ("objective", before.total(), after.total()),
    ] {
        let change = if is == was {
            "0".to_owned()
        } else if was == 0.0 {
            format!("{:+.4}", is - was)
        } else {
            format!("{:+.4} ({:+.1} %)", is - was, 100.0 * (is - was) / was.abs())
        };
        table.row([name.into(), short(was).into(), short(is).into(), change.into()]);
    }
    table.render()
}
