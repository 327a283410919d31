//! The paper's figures and tables, made again, and six of ours, on natural fleets, on strangers, on guards, on few labels, on liars and on drift: each is a spec under `experiments/`, and what it gives is
//! written as tables, pictures and rows that every number can be traced to.

mod bounds;
mod convergence;
mod drift;
mod energy;
mod guards;
mod labels;
mod liars;
mod methods;
mod natural;
mod network;
mod output;
mod regimes;
mod settings;
mod spec;
mod strangers;

use std::path::{Path, PathBuf};

use stlf_data::words::nearest;

use self::settings::Lab;
pub use self::settings::{Options, Variant};
use crate::watch::Observer;
use crate::{Error, Folder};

/// A figure or table, of the paper or beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Artifact {
    /// Figure 3: the objective per iteration, and roles, for two sets of source errors.
    Fig3,
    /// Figure 4: roles and weights under uniform, extreme and random divergences.
    Fig4,
    /// Figure 5: energy and transmissions against the weight of energy.
    Fig5,
    /// Figure 6: link weights at three weights of energy.
    Fig6,
    /// Figure 7: the accuracy of targets with ST-LF's roles and other weights.
    Fig7,
    /// Figure 8: the accuracy of targets with other roles.
    Fig8,
    /// Table 1: accuracy and energy of every method in the paper's settings.
    Table1,
    /// Table 2: both sides of Theorem 2 and Corollary 1.
    Table2,
    /// Natural fleets, which the paper does not have.
    Natural,
    /// Targets whose domain no source has seen, which the paper does not have either.
    Strangers,
    /// Guards of students, and how often each of them errs.
    Guards,
    /// Targets that ask for some labels, another one of ours.
    Labels,
    /// Sources that lie, and what targets lose to them, one more of ours.
    Liars,
    /// Devices whose data move on: the last one of ours.
    Drift,
}

impl Artifact {
    /// All of them, in the paper's order, ours last.
    pub const ALL: [Artifact; 14] = [
        Artifact::Fig3,
        Artifact::Fig4,
        Artifact::Fig5,
        Artifact::Fig6,
        Artifact::Fig7,
        Artifact::Fig8,
        Artifact::Table1,
        Artifact::Table2,
        Artifact::Natural,
        Artifact::Strangers,
        Artifact::Guards,
        Artifact::Labels,
        Artifact::Liars,
        Artifact::Drift,
    ];

    /// Returns whether the paper has this figure or table.
    pub fn is_published(self) -> bool {
        !matches!(
            self,
            Artifact::Natural
                | Artifact::Strangers
                | Artifact::Guards
                | Artifact::Labels
                | Artifact::Liars
                | Artifact::Drift
        )
    }

    /// How many seeds it has unless told otherwise.
    pub fn usual_seeds(self) -> usize {
        if self.is_published() || self == Artifact::Liars { 5 } else { 10 }
    }

    /// Returns the name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Artifact::Fig3 => "fig3",
            Artifact::Fig4 => "fig4",
            Artifact::Fig5 => "fig5",
            Artifact::Fig6 => "fig6",
            Artifact::Fig7 => "fig7",
            Artifact::Fig8 => "fig8",
            Artifact::Table1 => "table1",
            Artifact::Table2 => "table2",
            Artifact::Natural => "natural",
            Artifact::Strangers => "strangers",
            Artifact::Guards => "guards",
            Artifact::Labels => "labels",
            Artifact::Liars => "liars",
            Artifact::Drift => "drift",
        }
    }
}

impl std::str::FromStr for Artifact {
    type Err = stlf_planning::Error;

    fn from_str(text: &str) -> Result<Artifact, stlf_planning::Error> {
        let names = Artifact::ALL.map(Artifact::name);
        let found = Artifact::ALL.into_iter().find(|artifact| artifact.name() == text);
        found.ok_or_else(|| {
            let known = || format!("there are {} and all", names.join(", "));
            let hint = nearest(text, names).map_or_else(known, |n| format!("did you mean {n}?"));
            stlf_planning::Error::other("figure or table", format!("there is no {text:?}; {hint}"))
        })
    }
}

/// What was made of one artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The figure or table that was made.
    pub artifact: Artifact,
    /// The title of the figure or table.
    pub title: String,
    /// The files, as they were written.
    pub files: Vec<PathBuf>,
    /// The main result as a Markdown table.
    pub table: String,
    /// A sentence or two on what is seen, and where it differs from the paper.
    pub note: String,
}

/// Hears which setting is run, as its name and place among so many, before its stages are heard of.
pub type Heard<'a> = dyn Fn(&str, usize, usize) + Sync + 'a;

/// Makes one artifact again, in a folder that keeps the runs that it takes; what is there already is not run again.
///
/// # Errors
/// As [`crate::run()`].
pub fn reproduce(
    artifact: Artifact,
    options: &Options,
    to: &Path,
    heard: &Heard<'_>,
    observer: &Observer<'_>,
) -> Result<Made, Error> {
    let folder = Folder::open(to)?;
    let lab = Lab { options, folder: &folder, heard, observer };
    let spec = spec::of(artifact);
    match artifact {
        Artifact::Fig3 => convergence::make(artifact, &spec, &lab),
        Artifact::Fig4 => regimes::make(artifact, &spec, &lab),
        Artifact::Fig5 => energy::sweep(artifact, &spec, &lab),
        Artifact::Fig6 => energy::weights(artifact, &spec, &lab),
        Artifact::Fig7 | Artifact::Fig8 => methods::figure(artifact, &spec, &lab),
        Artifact::Table1 => methods::table(artifact, &spec, &lab),
        Artifact::Table2 => bounds::make(artifact, &spec, &lab),
        Artifact::Natural => natural::make(artifact, &spec, &lab),
        Artifact::Strangers => strangers::make(artifact, &spec, &lab),
        Artifact::Guards => guards::make(artifact, &spec, &lab),
        Artifact::Labels => labels::make(artifact, &spec, &lab),
        Artifact::Liars => liars::make(artifact, &spec, &lab),
        Artifact::Drift => drift::make(artifact, &spec, &lab),
    }
}
