//! `stlf schema`: the file formats, for editors and validators.

use clap::ValueEnum;

use crate::error::Failure;
use crate::ui::Ui;

/// Print the JSON schema of a file format.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf schema problem > stlf-problem.schema.json
  stlf schema plan | jq '.properties | keys'")]
pub(crate) struct Args {
    /// The format.
    #[arg(value_enum)]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// What `stlf plan` reads.
    Problem,
    /// What `stlf plan` writes.
    Plan,
    /// What devices and runs write in the folder of a mixture.
    Mixture,
}

/// Prints the schema.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    let schema = match args.format {
        Format::Problem => stlf_formats::problem_schema(),
        Format::Plan => stlf_formats::plan_schema(),
        Format::Mixture => stlf_formats::mixture_schema(),
    };
    ui.print(&format!("{schema:#}\n"))
}
