//! Files: versioned structs apart from the domain types, read with errors that name the field.
//!
//! | file | struct |
//! |---|---|
//! | `stlf-problem/1` (JSON) | [`ProblemFile`] |
//! | `stlf-plan/2` (JSON) | [`PlanFile`] |
//! | `stlf-mixture/1` (JSON) | [`MixtureFile`] |
//! | `stlf-models/1` (JSON) | [`ModelsFile`] |
//! | `stlf-explanation/1` (JSON) | [`ExplanationFile`] |
//! | `stlf-diff/1` (JSON) | [`DiffFile`] |
//! | a table of links (CSV, Parquet) | [`LinkTable`] |

mod diff;
mod document;
mod error;
mod explanation;
mod json;
mod link_table;
mod matrix;
mod mixture;
mod models;
mod plan;
mod plan_or_problem;
mod problem;

pub use diff::DiffFile;
pub use error::Error;
pub use explanation::ExplanationFile;
pub use json::write_json;
pub use link_table::LinkTable;
pub use matrix::Matrix;
pub use mixture::{
    CombineEntry, ExpectedEntry, FileEntry, InputEntry, LayerEntry, MemberEntry, MixtureFile,
    MixtureFormat, ScalingEntry, SeriesEntry, StudentEntry, UnitEntry,
};
pub use models::{ModelsFile, ModelsFormat};
pub use plan::{
    Energy, Followed, IterationEnded, MAX_EMBEDDED_LINKS, PlanFile, PlanFormat, PlanLinkEntry,
    PlanStatus, Run, SettingsEntry, SolverEntry, SolverName, StoppedBy, TermsEntry,
};
pub use plan_or_problem::PlanOrProblem;
pub use problem::{
    BoundEntry, ComplexityEntry, ComplexityName, CostsEntry, DeviceEntry, EnergyUnitEntry,
    LinkEnds, Overrides, PresetEntry, ProblemFile, ProblemFormat, ScaleEntry, WeightsEntry,
};

/// Returns the JSON schema of `stlf-problem/1`.
pub fn problem_schema() -> serde_json::Value {
    schemars::schema_for!(ProblemFile).to_value()
}

/// Returns the JSON schema of `stlf-plan/2`.
pub fn plan_schema() -> serde_json::Value {
    schemars::schema_for!(PlanFile).to_value()
}

/// Returns the JSON schema of `stlf-mixture/1`.
pub fn mixture_schema() -> serde_json::Value {
    schemars::schema_for!(MixtureFile).to_value()
}

/// Returns the JSON schema of `stlf-models/1`.
pub fn models_schema() -> serde_json::Value {
    schemars::schema_for!(ModelsFile).to_value()
}
