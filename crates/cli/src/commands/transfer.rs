//! `stlf transfer`: sends the models to their targets.

use stlf_config::Config;
use stlf_lab::record::{ExpectedRow, LinkRow, StudentRow};
use stlf_lab::run::seed_folder;
use stlf_lab::stages::plan::LINKS;
use stlf_lab::stages::transfer::FOLDER;
use stlf_lab::{Folder, Outcome, Stage};
use stlf_method::expectation::Expected;
use stlf_planning::number_format::{energy, percent};

use super::run_args::{RunArgs, watched};
use crate::comparison::{
    calibration, dealt, expected, guessing, never_predicted, refused, refusing, scale, students,
    unheard,
};
use crate::error::Failure;
use crate::table::{Align, Cell, Table};
use crate::ui::Ui;

/// Send models to their targets according to the plan, and combine them there. Missing stages are done first.
///
/// Every target's predictions are kept as a table and, where parameters are averaged (planner.combine),
/// its model as safetensors.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf transfer runs/mine-1a2b3c4d
  stlf transfer mine.toml -c planner.combine=parameters")]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArgs,
}

/// Transfers the models and shows which device received what.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    let (config, folder) = args.run.resolve()?;
    let outcome = watched(config.seeds.len(), ui, |observer| {
        stlf_lab::reach(&config, &folder, Stage::Transfer, observer)
    })?;
    if outcome.rows.is_empty() {
        return ui.print("There is no target: every device trains for itself.\n");
    }
    let folder = Folder::open(&folder).map_err(|e| Failure::in_data(&e))?;
    let notes = [
        dealt(&outcome),
        scale(&outcome),
        calibration(&outcome, &config),
        guessing(&outcome),
        never_predicted(&outcome),
        refusing(&outcome),
        unheard(&outcome, &config),
        refused(&outcome),
        expected(&outcome),
        students(&outcome, &config),
    ]
    .concat();
    ui.print(&(received(&outcome, &config, &folder)? + &notes))?;
    ui.print(&format!(
        "\nEvery target's predictions are in {}/seed-*/{FOLDER}\n",
        folder.path().display()
    ))
}

/// An expected accuracy with its interval, as short as a table needs it.
fn interval(row: &ExpectedRow) -> String {
    match row.said() {
        Some(Expected { accuracy, low, high }) => {
            format!("{} ({} to {})", percent(accuracy), percent(low), percent(high))
        }
        None => "too few labels".to_owned(),
    }
}

fn received(outcome: &Outcome, config: &Config, folder: &Folder) -> Result<String, Failure> {
    let columns = [
        ("seed", Align::Right),
        ("target", Align::Left),
        ("models", Align::Left),
        ("energy", Align::Right),
        ("samples", Align::Right),
        ("expected accuracy", Align::Right),
        ("accuracy", Align::Right),
    ]
    .into_iter()
    .chain((!outcome.students.is_empty()).then_some(("student", Align::Left)))
    .collect::<Vec<_>>();
    let mut table = Table::new(&columns);
    for &seed in &config.seeds {
        let inside = folder.folder(&seed_folder(seed)).map_err(|e| Failure::in_data(&e))?;
        let links: Vec<LinkRow> =
            inside.read_csv(LINKS).map_err(|e| Failure::in_data(&e))?.unwrap_or_default();
        for row in outcome.rows.iter().filter(|row| row.seed == seed) {
            let models: Vec<String> = links
                .iter()
                .filter(|link| link.to == row.target)
                .map(|link| format!("{} {}", link.from, percent(link.weight)))
                .collect();
            let is_of_row = |e: &&ExpectedRow| (e.seed, &e.target) == (seed, &row.target);
            let mut cells: Vec<Cell> = vec![
                seed.to_string().into(),
                row.target.as_str().into(),
                models.join(", ").into(),
                energy(row.joules).into(),
                row.samples.to_string().into(),
                outcome.expected.iter().find(is_of_row).map_or(String::new(), interval).into(),
                row.accuracy.map_or("not known".to_owned(), percent).into(),
            ];
            let own =
                |student: &&StudentRow| (student.seed, &student.target) == (seed, &row.target);
            if !outcome.students.is_empty() {
                let student = outcome.students.iter().find(own);
                cells.push(student.map(|s| s.outcome.clone()).unwrap_or_default().into());
            }
            table.row(cells);
        }
    }
    Ok(table.render())
}
