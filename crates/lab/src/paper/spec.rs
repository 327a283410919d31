//! What each figure and table is made of, from the files under `experiments/`.

use serde::Deserialize;
use stlf_data::partition::{Arrangement, ClassesPerDevice};

use super::Artifact;
use super::drift::Drifting;
use super::liars::Deceived;
use super::natural::NaturalFleet;
use super::strangers::Stranger;

/// A spec file of an experiment.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Spec {
    /// The title of the figure or table.
    pub(super) title: String,
    /// Its label in the paper, where the paper has it.
    pub(super) paper: Option<String>,
    /// For the reader of the file.
    #[serde(rename = "kind")]
    pub(super) _kind: String,
    /// The paper's settings that are run, by name.
    #[serde(default)]
    pub(super) settings: Vec<String>,
    /// The methods that are compared, by name.
    #[serde(default)]
    pub(super) methods: Vec<String>,
    /// The method that the others' differences are to.
    pub(super) compared_with: Option<String>,
    /// The natural fleets that are run.
    #[serde(default)]
    pub(super) fleet: Vec<NaturalFleet>,
    /// Targets whose domain no source has seen.
    #[serde(default)]
    pub(super) stranger: Vec<Stranger>,
    /// The fleets that are run in which some devices lie.
    #[serde(default)]
    pub(super) deceived: Vec<Deceived>,
    /// The fleets that are run whose data drift.
    #[serde(default)]
    pub(super) drifting: Vec<Drifting>,
    /// How many labels each target asks for, one run for each number.
    #[serde(default)]
    pub(super) labels: Vec<usize>,
    /// The sets of source errors that are planned with.
    #[serde(default)]
    pub(super) case: Vec<Case>,
    /// The least φ^E of a sweep.
    pub(super) least: Option<f64>,
    /// The largest φ^E of a sweep.
    pub(super) most: Option<f64>,
    /// The number of weights in a sweep.
    pub(super) points: Option<usize>,
    /// Single energy weights instead of a range.
    #[serde(default)]
    pub(super) energy_weights: Vec<f64>,
}

/// Source errors of the devices with labels.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    /// What is the matter with them.
    pub(super) name: String,
    /// ε̂ of each labeled device.
    pub(super) errors: Vec<f64>,
}

/// One of the paper's nine settings, of data sets and how they are dealt.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Setting {
    /// The name that the paper gives the setting.
    pub(super) name: String,
    /// The data sets that the paper used.
    pub(super) real: Vec<String>,
    /// The drawn digits that stand in for these data sets.
    pub(super) drawn: Vec<String>,
    /// How the domains are arranged on the devices.
    pub(super) arrangement: Arrangement,
    /// How many classes a device has.
    pub(super) classes: ClassesPerDevice,
    /// Whether a sample is dealt once at most, where the real data allow it.
    #[serde(default = "yes")]
    pub(super) disjoint: bool,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
struct SettingsFile {
    setting: Vec<Setting>,
}

/// A published accuracy and energy, in percent.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct PublishedAccuracy {
    pub(super) setting: String,
    pub(super) method: String,
    pub(super) accuracy: f64,
    pub(super) energy: Option<f64>,
}

/// The sides of the bounds as the paper has published them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct PublishedBounds {
    pub(super) setting: String,
    pub(super) left: f64,
    pub(super) theorem_2: f64,
    pub(super) corollary_1: f64,
}

/// Returns the spec of an artifact, which is built into the program.
pub(super) fn of(artifact: Artifact) -> Spec {
    let text = match artifact {
        Artifact::Fig3 => include_str!("../../../../experiments/fig3/spec.toml"),
        Artifact::Fig4 => include_str!("../../../../experiments/fig4/spec.toml"),
        Artifact::Fig5 => include_str!("../../../../experiments/fig5/spec.toml"),
        Artifact::Fig6 => include_str!("../../../../experiments/fig6/spec.toml"),
        Artifact::Fig7 => include_str!("../../../../experiments/fig7/spec.toml"),
        Artifact::Fig8 => include_str!("../../../../experiments/fig8/spec.toml"),
        Artifact::Table1 => include_str!("../../../../experiments/table1/spec.toml"),
        Artifact::Table2 => include_str!("../../../../experiments/table2/spec.toml"),
        Artifact::Natural => include_str!("../../../../experiments/natural/spec.toml"),
        Artifact::Strangers => include_str!("../../../../experiments/strangers/spec.toml"),
        Artifact::Guards => include_str!("../../../../experiments/guards/spec.toml"),
        Artifact::Labels => include_str!("../../../../experiments/labels/spec.toml"),
        Artifact::Liars => include_str!("../../../../experiments/liars/spec.toml"),
        Artifact::Drift => include_str!("../../../../experiments/drift/spec.toml"),
    };
    embedded(toml::from_str(text))
}

/// Returns all nine settings of the paper.
pub(super) fn settings() -> Vec<Setting> {
    let text = include_str!("../../../../experiments/settings.toml");
    embedded(toml::from_str::<SettingsFile>(text)).setting
}

/// Returns the rows of the paper's table of accuracies and energies.
pub(super) fn published_accuracies() -> Vec<PublishedAccuracy> {
    rows(include_str!("../../../../experiments/published-accuracy.csv"))
}

/// Returns the rows of the paper's table of bounds.
pub(super) fn published_bounds() -> Vec<PublishedBounds> {
    rows(include_str!("../../../../experiments/published-bounds.csv"))
}

fn rows<R: serde::de::DeserializeOwned>(text: &str) -> Vec<R> {
    let rows: Result<Vec<R>, _> = csv::Reader::from_reader(text.as_bytes()).deserialize().collect();
    embedded(rows)
}

/// What came with the program and was read by its tests.
#[allow(clippy::panic, reason = "a file inside of the program that a test reads")]
fn embedded<T, E: std::fmt::Display>(read: Result<T, E>) -> T {
    read.unwrap_or_else(|e| panic!("a file under experiments/ is broken: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_specs_are_read_and_name_what_there_is() {
        let settings = settings();
        assert_eq!(settings.len(), 9);
        for artifact in Artifact::ALL {
            let spec = of(artifact);
            assert!(spec.settings.iter().all(|name| settings.iter().any(|s| s.name == *name)));
            assert!(spec.methods.iter().all(|m| m.parse::<stlf_method::method::Method>().is_ok()));
            assert!(!spec.title.is_empty());
            assert_eq!(spec.paper.is_some_and(|label| !label.is_empty()), artifact.is_published());
            let asks = artifact == Artifact::Labels;
            assert_eq!(spec.labels.is_empty(), !asks);
            assert_eq!(spec.deceived.is_empty(), artifact != Artifact::Liars);
            assert_eq!(spec.drifting.is_empty(), artifact != Artifact::Drift);
            assert_eq!(spec.fleet.is_empty(), artifact != Artifact::Natural && !asks);
            let has_strangers = [Artifact::Strangers, Artifact::Guards].contains(&artifact) || asks;
            assert_eq!(spec.stranger.is_empty(), !has_strangers);
        }
        let published = published_accuracies();
        assert_eq!(published.len(), 9 * 9);
        assert!(published.iter().all(|row| settings.iter().any(|s| s.name == row.setting)));
        assert_eq!(published_bounds().len(), 9);
    }
}
