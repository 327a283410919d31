//! `stlf compare`: a comparison with other methods.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use stlf_method::method::Method;

use super::run_args::{RunArgs, watched};
use crate::comparison::comparison;
use crate::error::Failure;
use crate::ui::Ui;

/// Compare methods on a run, including methods that its configuration does not name. Missing stages are done first.
///
/// fada and psi-fada train their own networks, which takes minutes.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stlf compare runs/mine-1a2b3c4d --methods st-lf,fada,oracle
  stlf compare mine.toml --methods st-lf,sm")]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArgs,

    /// The methods, separated by commas [default: those of the configuration]
    #[arg(long, value_delimiter = ',', value_name = "METHOD,...", value_parser = method_parser())]
    methods: Vec<Method>,
}

fn method_parser() -> impl TypedValueParser<Value = Method> {
    let names = Method::ALL.map(|method| PossibleValue::new(method.name()));
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Method>())
}

/// Compares the methods and shows the table.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<(), Failure> {
    let (config, folder) = args.run.resolve()?;
    let mut methods = args.methods.clone();
    if methods.is_empty() {
        methods = config.compare.methods().map_err(|e| Failure::input(e.to_string()))?;
    }
    let outcome = watched(config.seeds.len(), ui, |observer| {
        stlf_lab::compare(&config, &folder, &methods, observer)
    })?;
    ui.print(&comparison(&outcome, &config, &methods))?;
    ui.print(&format!("\nEvery method's rows are in {}/seed-*/results\n", folder.display()))
}
