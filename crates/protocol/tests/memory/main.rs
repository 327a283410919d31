//! Devices within one program, without a network.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests and their helpers")]

#[path = "../common/mod.rs"]
mod common;

mod attack;
mod categories;
mod coalition;
mod differencing;
mod divergence_protocol;
mod epoch;
mod examiners;
mod exploration;
mod few_values;
mod handed;
mod handover;
mod introduction;
mod jobs;
mod learners;
mod liars;
mod lost;
mod membership_inference;
mod phases;
mod reconstruction;
mod replies;
mod rings;
mod samples;
mod shared;
mod simulation;
mod trials;
mod unchanged;
mod verdicts;
