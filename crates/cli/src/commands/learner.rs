//! `stlf learner`: programs of the user's that learn for a device.

use stlf_learner::conformance::{Checked, Outcome, check};
use stlf_learner::{Error, Options};
use stlf_planning::number_format::clean;

use crate::error::Failure;
use crate::ui::Ui;

/// Programs of your own that learn for a device.
///
/// A learner owns the data and the model of a device, in any language: it speaks stlf-learner/1 on standard input and output
/// (`stlf schema learner`, docs/learners.md). `stlf node start --learner` runs it in a fleet.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf learner check \"python -m stlf.learner pumps:Pumps\"
  stlf learner check ./pumps --env CUDA_VISIBLE_DEVICES
  stlf node start --learner \"python -m stlf.learner pumps:Pumps\" --roster roster.json")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Try whether a program is a learner, step by step.
    ///
    /// Starts the program on this machine and asks it for everything that a device of a fleet asks for: to greet, describe its samples,
    /// train, go on from a model, predict, give up, end. Says what passed. The exit code is 2 if a step failed.
    Check {
        /// The program with its arguments, in quotation marks.
        #[arg(value_name = "PROGRAM …")]
        program: String,

        #[command(flatten)]
        environment: Environment,
    },
}

/// What a learner sees of the environment.
#[derive(clap::Args)]
pub(crate) struct Environment {
    /// Variables of the environment that the learner sees besides PATH, HOME, LANG and the like.
    #[arg(long = "env", value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) names: Vec<String>,
}

/// Tries whether a learner keeps to what it must do, and prints every step.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    let What::Check { program, environment } = &args.what;
    let folder = std::env::temp_dir().join(format!("stlf-learner-{}", std::process::id()));
    let options = Options {
        environment: environment.names.clone(),
        ..Options::new(program, &folder, 0).map_err(|e| failure(&e))?
    };
    let steps = check(&options);
    // Nobody misses it.
    let _ = std::fs::remove_dir_all(&folder);
    ui.print(&steps.iter().map(line).collect::<String>())?;
    let failed = steps.iter().filter(|step| matches!(step.outcome, Outcome::Failed(_))).count();
    match failed {
        0 => ui.print(&format!("{} is a learner\n", clean(program))),
        _ => Err(Failure::input(format!("{failed} of {} steps failed", steps.len()))
            .hint("docs/learners.md says what a learner must do")),
    }
}

fn line(step: &Checked) -> String {
    let (mark, told) = match &step.outcome {
        Outcome::Passed(told) => ("passed", told),
        Outcome::Failed(told) => ("FAILED", told),
        Outcome::Skipped(told) => ("skipped", told),
    };
    format!("{mark:<8}{}: {}\n", step.what, clean(told))
}

/// Turns an error of a learner into a failure with its exit code.
pub(crate) fn failure(error: &Error) -> Failure {
    let failure = match error {
        Error::Folder { .. } => Failure::io(error.to_string()),
        Error::Stopped { .. } => Failure::interrupted(error.to_string()),
        _ => Failure::input(clean(&error.to_string())),
    };
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
