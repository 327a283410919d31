//! `stlf data inspect`: shows which device holds which samples.

use std::path::PathBuf;

use clap::ValueEnum;
use stlf_figure::{Figure, circles};
use stlf_formats::write_json;
use stlf_planning::number_format::{counted, grouped};

use super::data_args::DataArgs;
use super::deal::{Deal, Device};
use super::scheme_args::SchemeArgs;
use crate::error::Failure;
use crate::output;
use crate::table::{Align, Table};
use crate::ui::Ui;

/// With more classes than this, a table by class is too wide to read.
const MOST_CLASSES: usize = 20;

/// Show how data is dealt to devices: a table and a plot of devices by classes.
///
/// Nothing is trained. The labels that a partition hides from the method are counted here.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf data inspect
  stlf data inspect --domains strokes,strokes-coarse -c \"arrangement=split classes-per-device=all\"
  stlf data inspect --domains mnist --partition pathological -c classes-per-device=3 --labeled 0.5
  stlf data inspect --images photos --partition by-domain --plot devices.svg
  stlf data inspect --features sensors.csv --label activity --partition iid --format json | jq .devices
  stlf data inspect --features vibration.csv --window 128 --stride 64")]
pub(crate) struct Args {
    #[command(flatten)]
    data: DataArgs,

    #[command(flatten)]
    scheme: SchemeArgs,

    /// What to print.
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    format: FormatArg,

    /// Draw devices by classes (SVG).
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    /// A table for people.
    Text,
    /// One document with all counts.
    Json,
}

/// Deals the data and shows the result.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    if let Some(path) = &args.plot {
        output::check_place(path)?;
    }
    let data = args.data.load(args.scheme.seed)?;
    let (scheme, partition) = args.scheme.deal(&data)?;
    let deal = Deal::count(&data, &scheme, args.scheme.seed, &partition);
    if let Some(path) = &args.plot {
        let drawn = draw(&deal);
        output::write_file(path, |out| out.write_all(drawn.to_svg().as_bytes()))?;
    }
    match args.format {
        FormatArg::Json => ui.write(|out| write_json(out, &deal)),
        FormatArg::Text => {
            let shape = data.shape();
            let head = format!(
                "{}: {} of {shape}, {} classes\n{}\n\n",
                deal.domains.join(" and "),
                counted(deal.samples, "sample"),
                deal.classes.len(),
                summary(&deal)
            );
            let head = match args.scheme.dealt_by(&data) {
                Some(how) => {
                    head.trim_end().to_owned()
                        + &format!("\n{how}; --partition deals them differently.\n\n")
                }
                None => head,
            };
            ui.print(&(head + &table(&deal)))
        }
    }
}

/// Returns a sentence on the partition: the devices, their samples, and how many are left over.
fn summary(deal: &Deal<'_>) -> String {
    let held: usize = deal.devices.iter().map(|d| d.labeled + d.unlabeled).sum();
    let with_labels = deal.devices.iter().filter(|d| d.labeled > 0).count();
    let mut text = format!(
        "{} partition, seed {}: {}, {with_labels} with labels, hold {}",
        deal.scheme.kind(),
        deal.seed,
        counted(deal.devices.len(), "device"),
        counted(held, "sample"),
    );
    if held > deal.dealt {
        text += &format!(" ({} different ones)", grouped(deal.dealt as u64));
    }
    match deal.samples - deal.dealt {
        0 => text,
        left => text + &format!("; {} left out", grouped(left as u64)),
    }
}

fn table(deal: &Deal<'_>) -> String {
    let by_class = deal.classes.len() <= MOST_CLASSES;
    let without_class = deal.devices.iter().any(|d| d.without_class > 0);
    let mut columns = vec![
        ("device", Align::Left),
        ("domain", Align::Left),
        ("labeled", Align::Right),
        ("unlabeled", Align::Right),
    ];
    match by_class {
        true => columns.extend(deal.classes.iter().map(|c| (c.as_str(), Align::Right))),
        false => columns.push(("classes", Align::Right)),
    }
    if without_class {
        columns.push(("no class", Align::Right));
    }
    let number = |count: usize| match count {
        0 => "·".to_owned(),
        _ => count.to_string(),
    };
    let mut table = Table::new(&columns);
    for device in &deal.devices {
        let mut row = vec![
            device.name.to_owned(),
            device.domains(deal.domains),
            number(device.labeled),
            number(device.unlabeled),
        ];
        let classes = 0..deal.classes.len();
        match by_class {
            true => row.extend(classes.map(|class| number(device.of_class(class)))),
            false => {
                row.push(classes.filter(|&class| device.of_class(class) > 0).count().to_string());
            }
        }
        if without_class {
            row.push(number(device.without_class));
        }
        table.row(row.into_iter().map(Into::into));
    }
    table.render()
}

fn draw(deal: &Deal<'_>) -> Figure {
    let cell = |device: &Device<'_>, class: usize| {
        let known = device.labeled_by_class[class];
        let all = known + device.hidden_by_class[class];
        let note = format!(
            "{}: {} of {}, {} with labels",
            named(deal, device),
            grouped(all as u64),
            deal.classes[class],
            grouped(known as u64)
        );
        circles::Cell { whole: all as f64, part: known as f64, note }
    };
    let row = |device| (0..deal.classes.len()).map(|class| cell(device, class)).collect();
    circles::Table {
        title: format!("Who holds what, {}", counted(deal.devices.len(), "device")),
        subtitle: summary(deal),
        rows: deal.devices.iter().map(|device| named(deal, device)).collect(),
        columns: deal.classes.to_vec(),
        cells: deal.devices.iter().map(row).collect(),
        whole_label: "all samples; area is their number".to_owned(),
        part_label: "labels known".to_owned(),
        ..circles::Table::default()
    }
    .draw()
}

/// Returns a device's name, with its domains if the data set has several.
fn named(deal: &Deal<'_>, device: &Device<'_>) -> String {
    match deal.domains {
        [_] => device.name.to_owned(),
        _ => format!("{} · {}", device.name, device.domains(deal.domains)),
    }
}
