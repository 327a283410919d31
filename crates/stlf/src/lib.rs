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
//! The way of the data: [`format`](mod@format) (a file) → [`problem`] (S, T, K by [`bound`] and
//! [`energy`]) → [`planner`] → [`plan`] → [`explain`], [`sweep`], [`diff`] → [`format`](mod@format).
//!
//! The crate opens no file, prints nothing, reads no clock and no global random source.

pub mod baselines;
pub mod class_shares;
pub mod combine;
pub mod divergence;
pub mod draw;
pub mod energy;
pub mod format;
pub mod local;
pub mod method;

pub use stlf_planning::{
    Device, Error, Plan, Problem, Role, bound, device, diff, error, explain, plan, planner,
    problem, sweep, words,
};
