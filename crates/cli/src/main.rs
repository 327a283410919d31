//! `stlf`: which devices train, which receive whose models, and over which links.

mod commands;
mod comparison;
mod error;
mod input;
mod opener;
mod output;
mod progress;
mod report;
mod table;
mod ui;

use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = commands::parse();
    let ui = ui::Ui;
    match commands::run(&cli, &ui) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report(&ui);
            failure.exit_code()
        }
    }
}
