//! The whole method over seeds: deal, train, measure, plan, transfer, compare.
//!
//! A [`Config`] says what to run, a run folder holds what came of it. Every stage leaves its result as
//! a file that appears whole or not at all; started again, a run goes on where it was and ends with the same
//! bytes. Nothing in a run folder tells the time.

pub mod config;
pub mod error;
pub mod fleet;
pub mod folder;
pub mod record;
pub mod run;
pub mod stages;
pub mod summary;

pub use config::Config;
pub use error::Error;
pub use folder::Folder;
pub use run::{Event, Observer, Shard, Stage, merge, run, run_shard};
