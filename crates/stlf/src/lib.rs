//! ST-LF: who trains, who receives whose model, with what weight, over which link.
//!
//! Given N devices with errors ε̂_i on their own labels, divergences d̂_ij of their data and the
//! energy K_ij of sending a model, choose roles ψ (source 0, target 1) and link weights α:
//!
//! ```text
//! minimise  φ^S Σ_i (1−ψ_i) S_i  +  φ^T Σ_j ψ_j T_j(α)  +  φ^E Σ_ij [energy of link i→j]
//! such that Σ_i α_ij = ψ_j,   only labeled devices are sources,   only sources send.
//! ```
//!
//! These are the names that stay as they are between versions. A file becomes a [`Problem`], [`plan`] finds the best
//! [`Plan`], [`explain`] says why it is so:
//!
//! ```
//! use std::ops::ControlFlow;
//!
//! let text = br#"{
//!     "format": "stlf-problem/1",
//!     "devices": [
//!         {"name": "car", "labeled": 900, "unlabeled": 100, "source_error": 0.05},
//!         {"name": "van", "labeled": 0, "unlabeled": 500}
//!     ],
//!     "divergence": [[0, 0.3], [0.3, 0]],
//!     "link_energy": [[0, 2.0], [2.0, 0]]
//! }"#;
//! let problem = stlf::ProblemFile::read(text)?.into_problem(None)?;
//! let settings = stlf::PlannerSettings::default();
//! let outcome = stlf::plan(&problem, &settings, &mut |_| ControlFlow::Continue(()));
//! let stlf::Outcome::Planned(plan) = outcome else { panic!("a labeled device reaches the other") };
//! assert_eq!(plan.roles, [stlf::Role::Source, stlf::Role::Target]);
//! assert_eq!(plan.status, stlf::Status::Optimal);
//! # Ok::<(), stlf::Error>(())
//! ```
//!
//! The crates beneath (`stlf_planning`, `stlf_formats`, `stlf_method`) have more, which may change.

pub use stlf_formats::{
    DiffFile, Error, ExplanationFile, LinkTable, PlanFile, ProblemFile, write_json,
};
pub use stlf_method::combine::{Combine, combine};
pub use stlf_method::divergence::{Measurement, Settings as DivergenceSettings, measure};
pub use stlf_planning::bound::{Bound, BoundKind, Complexity};
pub use stlf_planning::diff::{Decisions, Diff, diff};
pub use stlf_planning::error::{
    BrokenRing, Counted, Error as ValueError, Field, Named, Range, Reason,
};
pub use stlf_planning::explain::{Explanation, explain};
pub use stlf_planning::plan::{Handover, Plan, PlanLink, Status, Terms};
pub use stlf_planning::planner::{
    Infeasible, Method as Solver, Outcome, Progress, Settings as PlannerSettings, plan,
};
pub use stlf_planning::problem::{
    EnergyUnit, Link, Links, Parts, Preset, Problem, Source as ProblemSource, Weights,
};
pub use stlf_planning::sweep::{Segment, Sweep, sweep};
pub use stlf_planning::{Device, Role};
