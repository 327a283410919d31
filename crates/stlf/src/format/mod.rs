//! Files: versioned structs apart from the domain types, read with errors that name the field.
//!
//! | file | struct |
//! |---|---|
//! | `stlf-problem/1` (JSON) | [`ProblemFile`] |
//! | `stlf-plan/1` (JSON) | [`PlanFile`] |
//! | a table of links (CSV, Parquet) | [`LinkTable`] |

mod document;
mod link_table;
mod matrix;
mod plan;
mod problem;

pub use link_table::LinkTable;
pub use matrix::Matrix;
pub use plan::{
    Decisions, Energy, IterationEnded, MAX_EMBEDDED_LINKS, PlanFile, PlanFormat, PlanLinkEntry,
    PlanStatus, Run, SettingsEntry, SolverEntry, SolverName, StoppedBy, TermsEntry,
};
pub use problem::{
    BoundEntry, ComplexityEntry, ComplexityName, CostsEntry, DeviceEntry, EnergyUnitEntry,
    LinkEnds, PresetEntry, ProblemFile, ProblemFormat, WeightsEntry,
};

/// The JSON schema of `stlf-problem/1`.
pub fn problem_schema() -> serde_json::Value {
    schemars::schema_for!(ProblemFile).to_value()
}

/// The JSON schema of `stlf-plan/1`.
pub fn plan_schema() -> serde_json::Value {
    schemars::schema_for!(PlanFile).to_value()
}
