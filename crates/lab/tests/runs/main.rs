//! Tests of whole runs that are small enough to be quick.
#![allow(clippy::unwrap_used, reason = "tests and their helpers")]

mod ask;
mod baselines;
mod baselines_fada;
mod calibration;
mod drift;
mod expectation;
mod handover;
mod learners;
mod liars;
mod mixtures;
mod natural;
mod paper;
mod run;
mod scale;
mod strangers;
mod students;
