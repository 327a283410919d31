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
    /// What a device with a learner of the user's writes in the folder of its models.
    Models,
    /// The lines that stlf and a learner of the user's write to each other.
    Learner,
}

/// Prints the JSON schema of a format.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    let schema = match args.format {
        Format::Problem => stlf_formats::problem_schema(),
        Format::Plan => stlf_formats::plan_schema(),
        Format::Mixture => stlf_formats::mixture_schema(),
        Format::Models => stlf_formats::models_schema(),
        Format::Learner => stlf_learner::message::schema(),
    };
    ui.print(&format!("{schema:#}\n"))
}
