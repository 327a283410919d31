//! `stlf measure`: the divergences between the devices' data.

use stlf_config::Config;
use stlf_lab::record::DivergenceRow;
use stlf_lab::run::seed_folder;
use stlf_lab::stages::measure::TABLE;
use stlf_lab::{Folder, Stage};
use stlf_planning::number_format::{counted, grouped};

use super::run_args::{RunArgs, watched};
use crate::comparison::{dealt, measuring, scale};
use crate::error::Failure;
use crate::table::{Align, Cell, Table};
use crate::ui::Ui;

/// With more devices than this, the table of all pairs is left out.
const MOST_DEVICES: usize = 12;

/// Measure how different the devices' data are, without moving them; nothing is trained.
///
/// 0: the data of two devices cannot be told apart; 2: every sample shows which device it came from.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf measure mine.toml
  stlf measure -c \"divergence.estimator=classifier seeds=[0]\"
  stlf measure -c \"divergence.privacy={epsilon=1,delta=1e-5}\"")]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArgs,
}

/// Measures and shows the divergences.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    let (config, path) = args.run.resolve()?;
    let outcome = watched(config.seeds.len(), ui, |observer| {
        stlf_lab::reach(&config, &path, Stage::Measure, observer)
    })?;
    let folder = Folder::open(&path).map_err(|e| Failure::in_data(&e))?;
    let mut tables = Vec::new();
    for &seed in &config.seeds {
        let inside = folder.folder(&seed_folder(seed)).map_err(|e| Failure::in_data(&e))?;
        let rows: Vec<DivergenceRow> =
            inside.read_csv(TABLE).map_err(|e| Failure::in_data(&e))?.unwrap_or_default();
        tables.push((seed, rows));
    }
    if let [(_, rows), ..] = &tables[..] {
        ui.print(&pairs(rows, &config))?;
    }
    ui.print(&spread(&tables))?;
    ui.print(&(measuring(&outcome, &config) + &dealt(&outcome) + &scale(&outcome)))?;
    ui.print(&format!(
        "\nAll pairs with their intervals are in {}/seed-*/{TABLE}\n",
        path.display()
    ))
}

/// Returns the pairs of the first seed as a square table, or an empty text if they are too many.
fn pairs(rows: &[DivergenceRow], config: &Config) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in rows.iter().flat_map(|row| [row.from.as_str(), row.to.as_str()]) {
        if !names.contains(&name) {
            names.push(name);
        }
        if names.len() > MOST_DEVICES {
            return String::new();
        }
    }
    let head: Vec<(&str, Align)> = std::iter::once(("", Align::Left))
        .chain(names.iter().map(|name| (*name, Align::Right)))
        .collect();
    let mut table = Table::new(&head);
    for &from in &names {
        let value = |to: &&str| {
            let is = |row: &&DivergenceRow| {
                (row.from == from && row.to == **to)
                    || config.divergence.nearest.is_none() && row.from == **to && row.to == from
            };
            rows.iter().find(is).map_or(String::new(), |row| {
                format!("{:.2}{}", row.divergence, if row.signal { "" } else { "?" })
            })
        };
        let cells =
            std::iter::once(Cell::from(from)).chain(names.iter().map(|to| value(to).into()));
        table.row(cells);
    }
    let first = config.seeds.first().map_or(String::new(), |seed| format!("Seed {seed}"));
    format!(
        "{first}; ? marks a pair whose interval includes 0: no measurable difference\n\n{}\n",
        table.render()
    )
}

/// Returns a table with one line for each seed.
fn spread(tables: &[(u64, Vec<DivergenceRow>)]) -> String {
    let mut table = Table::new(&[
        ("seed", Align::Right),
        ("pairs", Align::Right),
        ("least", Align::Right),
        ("median", Align::Right),
        ("most", Align::Right),
        ("without signal", Align::Right),
    ]);
    for (seed, rows) in tables {
        let mut values: Vec<f64> = rows.iter().map(|row| row.divergence).collect();
        values.sort_unstable_by(f64::total_cmp);
        let at = |place: usize| values.get(place).map_or(String::new(), |d| format!("{d:.2}"));
        let cells: [Cell; 6] = [
            seed.to_string().into(),
            grouped(rows.len() as u64).into(),
            at(0).into(),
            at(values.len() / 2).into(),
            at(values.len().saturating_sub(1)).into(),
            grouped(rows.iter().filter(|row| !row.signal).count() as u64).into(),
        ];
        table.row(cells);
    }
    format!("{}\n{} measured. ", table.render(), counted(tables.len(), "seed"))
}
