//! The arguments that choose the problem: a file, a table of links, and settings that override the file's.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use stlf_config::Config;
use stlf_formats::{Overrides, PresetEntry, ProblemFile, WeightsEntry};
use stlf_lab::Stage;
use stlf_lab::stages::plan::PROBLEM;
use stlf_planning::Problem;
use stlf_planning::bound::BoundKind;
use stlf_planning::energy::PAPER_MODEL_BITS;

use super::numbers::{non_negative, positive};
use super::run_args::{failure, watched};
use crate::error::Failure;
use crate::input;
use crate::ui::Ui;

/// The bits of the built-in network for pictures of 28 × 28 in ten classes, 32 for each of its 21,840 parameters.
const NETWORK_BITS: f64 = 698_880.0;

/// A problem and what overrides its settings.
#[derive(clap::Args)]
pub(crate) struct ProblemArgs {
    /// A problem (stlf-problem/1, JSON) or a plan, which repeats its problem; - for standard input; or a run folder.
    pub(crate) file: PathBuf,

    /// The links as a CSV or Parquet table: from, to, divergence, energy.
    ///
    /// A pair that is not listed has no link. Instead of energy (joules) the table may have
    /// bits_per_second and watts, or joules_per_bit.
    #[arg(long, value_name = "TABLE")]
    links: Option<PathBuf>,

    /// Size of a model, for link tables without energies.
    ///
    /// By default that of the built-in network for pictures, 698880 bits; with the preset paper the
    /// paper's, 1e9.
    #[arg(long, value_name = "BITS", value_parser = positive)]
    model_bits: Option<f64>,

    /// The generalisation bound: under pooled a target can have several sources.
    #[arg(long, value_enum)]
    pub(crate) bound: Option<BoundArg>,

    /// Replace the file's weights, complexity and energy unit by a preset.
    #[arg(long, value_enum)]
    preset: Option<PresetArg>,

    /// Weight of the sources' error bounds.
    #[arg(long, value_name = "WEIGHT", value_parser = non_negative)]
    phi_s: Option<f64>,

    /// Weight of the targets' error bounds.
    #[arg(long, value_name = "WEIGHT", value_parser = non_negative)]
    phi_t: Option<f64>,

    /// Weight of the links' energy.
    #[arg(long, value_name = "WEIGHT", value_parser = non_negative)]
    phi_e: Option<f64>,
}

/// The bits of a model of which nothing else is known.
fn usual_bits(file: &ProblemFile) -> f64 {
    match file.preset {
        Some(PresetEntry::Paper) => PAPER_MODEL_BITS,
        Some(PresetEntry::Balanced) | None => NETWORK_BITS,
    }
}

/// Which bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BoundArg {
    /// Sources' sampling errors are independent, so mixing can pay off.
    Pooled,
    /// The paper's: one source per target is best.
    Paper,
}

/// Which preset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PresetArg {
    /// Weights 1, 1, 0.05; complexity none; energy in mean links.
    Balanced,
    /// Weights 1, 5, 1; Massart's complexity; energy in joules.
    Paper,
}

impl ProblemArgs {
    /// Continues a run until it has a problem, if a run folder without one was given.
    pub(crate) fn prepare(&self, ui: &Ui) -> Result<(), Failure> {
        let config = self.file.join("config.toml");
        if !config.is_file() || input::in_run(&self.file, PROBLEM)?.is_file() {
            return Ok(());
        }
        let config = Config::read(&config).map_err(|e| failure(&e.into()))?;
        watched(config.seeds.len(), ui, |observer| {
            stlf_lab::reach(&config, &self.file, Stage::Plan, observer)
        })?;
        Ok(())
    }

    /// Reads the problem. `needs_paper` names what works only under the paper's bound, if anything does.
    pub(crate) fn load(&self, needs_paper: Option<&str>) -> Result<Problem, Failure> {
        if self.links.as_deref().is_some_and(is_stdin) && is_stdin(&self.file) {
            return Err(Failure::input("standard input cannot be both the problem and its links")
                .hint("give one of the two as a file"));
        }
        let mut file = input::problem(&self.file)?;
        self.override_settings(&mut file)?;
        if let (Some(what), None) = (needs_paper, &file.costs) {
            if file.bound_kind() == Some(BoundKind::Pooled) {
                return Err(Failure::input(format!("{what} works only under the paper's bound"))
                    .hint("add --bound paper"));
            }
            file.bound.get_or_insert_default().kind = Some(BoundKind::Paper);
        }
        let links = match &self.links {
            Some(table) => {
                Some(input::links(table, self.model_bits.unwrap_or_else(|| usual_bits(&file)))?)
            }
            None => None,
        };
        file.into_problem(links).map_err(|e| Failure::in_file(&self.names(), &e))
    }

    fn override_settings(&self, file: &mut ProblemFile) -> Result<(), Failure> {
        if file.costs.is_some() {
            return self.refuse_with_costs();
        }
        file.set(&Overrides {
            preset: self.preset.map(|preset| match preset {
                PresetArg::Balanced => PresetEntry::Balanced,
                PresetArg::Paper => PresetEntry::Paper,
            }),
            weights: WeightsEntry { source: self.phi_s, target: self.phi_t, energy: self.phi_e },
            bound: self.bound.map(|bound| match bound {
                BoundArg::Pooled => BoundKind::Pooled,
                BoundArg::Paper => BoundKind::Paper,
            }),
        });
        Ok(())
    }

    /// Refuses options that need measurements. Raw costs are weighted already; only `--bound paper` is accepted, because it changes
    /// nothing.
    fn refuse_with_costs(&self) -> Result<(), Failure> {
        let given = [
            ("--bound pooled", self.bound == Some(BoundArg::Pooled)),
            ("--preset", self.preset.is_some()),
            ("--phi-s", self.phi_s.is_some()),
            ("--phi-t", self.phi_t.is_some()),
            ("--phi-e", self.phi_e.is_some()),
            ("--links", self.links.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((option, _)) => Err(Failure::input(format!(
                "{}: {option} needs measurements, and this problem holds raw costs",
                input::name(&self.file)
            ))
            .hint(format!("leave {option} out: raw costs are planned as they are"))),
        }
    }

    /// Returns the name of the input for messages.
    fn names(&self) -> String {
        match &self.links {
            Some(table) => format!("{} with {}", input::name(&self.file), input::name(table)),
            None => input::name(&self.file),
        }
    }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use stlf_data::Shape;

    use super::*;

    #[test]
    fn a_model_is_as_large_as_the_built_in_network() {
        let network = Config::default().network(Shape::grey(28), 10).unwrap();
        assert_eq!(8.0 * stlf_config::model_bytes(&network) as f64, NETWORK_BITS);
    }
}
