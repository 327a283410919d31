//! The commands, with one file for each; their doc comments are the help texts.

mod ask;
mod bundle_args;
mod compare;
mod completions;
mod data;
mod demo;
mod diff;
mod explain;
mod export;
mod fleet;
mod learner;
mod man;
mod measure;
mod merge;
mod new;
mod node;
mod numbers;
mod plan;
mod predict;
mod problem_args;
mod report;
mod reproduce;
mod run;
pub(crate) mod run_args;
mod schema;
mod serve;
mod sweep;
mod transfer;
mod window_args;

use clap::{Arg, Command, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::error::Failure;
use crate::ui::Ui;

/// Decides which devices train, which receive whose model with what weight, and over which links.
#[derive(Parser)]
#[command(name = "stlf", version, arg_required_else_help = true)]
#[command(after_help = "\
Start with `stlf demo`. Files are described by `stlf schema problem` and `stlf schema plan`.
Exit codes: 0 done, 1 a file or the system failed, 2 bad input, 3 no plan exists, 130 interrupted.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Run(run::Args),
    New(new::Args),
    Measure(measure::Args),
    Plan(plan::Args),
    Transfer(transfer::Args),
    Compare(compare::Args),
    Predict(predict::Args),
    Ask(ask::Args),
    Export(export::Args),
    Report(report::Args),
    Serve(serve::Args),
    Reproduce(reproduce::Args),
    Merge(merge::Args),
    Explain(explain::Args),
    Sweep(sweep::Args),
    Diff(diff::Args),
    Data(data::Args),
    Fleet(fleet::Args),
    Node(node::Args),
    Learner(learner::Args),
    Demo(demo::Args),
    Schema(schema::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Reads the command line, or ends the program with help or with what is wrong.
pub(crate) fn parse() -> Cli {
    let matches = values_may_be_negative(Cli::command()).get_matches();
    Cli::from_arg_matches(&matches).unwrap_or_else(|e| e.exit())
}

/// The same command where -1 is a value and no option, so that whoever gives a negative number reads which numbers are allowed.
fn values_may_be_negative(command: Command) -> Command {
    let negative = |arg: Arg| match arg.get_action().takes_values() {
        true => arg.allow_negative_numbers(true),
        false => arg,
    };
    command.mut_args(negative).mut_subcommands(values_may_be_negative)
}

/// Runs the verb.
pub(crate) fn run(cli: &Cli, ui: &Ui) -> Result<(), Failure> {
    match &cli.verb {
        Verb::Run(args) => run::run(args, ui),
        Verb::New(args) => new::run(args, ui),
        Verb::Measure(args) => measure::run(args, ui),
        Verb::Plan(args) => plan::run(args, ui),
        Verb::Transfer(args) => transfer::run(args, ui),
        Verb::Compare(args) => compare::run(args, ui),
        Verb::Predict(args) => predict::run(args, ui),
        Verb::Ask(args) => ask::run(args, ui),
        Verb::Export(args) => export::run(args, ui),
        Verb::Reproduce(args) => reproduce::run(args, ui),
        Verb::Serve(args) => serve::run(args, ui),
        Verb::Report(args) => report::run(args, ui),
        Verb::Merge(args) => merge::run(args, ui),
        Verb::Explain(args) => explain::run(args, ui),
        Verb::Sweep(args) => sweep::run(args, ui),
        Verb::Diff(args) => diff::run(args, ui),
        Verb::Fleet(args) => fleet::run(args, ui),
        Verb::Node(args) => node::run(args, ui),
        Verb::Learner(args) => learner::run(args, ui),
        Verb::Data(args) => data::run(args, ui),
        Verb::Demo(args) => demo::run(args, ui),
        Verb::Schema(args) => schema::run(args, ui),
        Verb::Completions(args) => completions::run(args, ui),
        Verb::Man(args) => man::run(args, ui),
    }
}
