//! The whole method over seeds: deal, train, measure, plan, transfer, compare.
//!
//! A [`Config`](stlf_config::Config) says what to run, a run folder holds what came of it. Every stage leaves its result as
//! a file that appears whole or not at all; started again, a run goes on where it was and ends with the same
//! bytes. Nothing in a run folder tells the time.

pub mod baselines;
mod data_source;
pub mod error;
mod folder;
pub mod learners;
pub mod methods;
pub mod paper;
pub mod questions;
pub mod record;
pub mod report;
pub mod run;
mod scale_choice;
mod shard;
pub mod stages;
pub mod summary;
mod watch;

pub use error::{Error, Kind};
pub use learners::Learners;
pub use run::{Outcome, compare, reach, run, run_shard, run_with};
pub use shard::{Shard, merge};
pub use stlf_data::atomic_folder::Folder;
pub use watch::{Event, Observer, Stage};
