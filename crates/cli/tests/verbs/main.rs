//! What people see of every verb, each in a file. One program, because to link nineteen takes longer than to run them.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests and their helpers")]

#[path = "../common/mod.rs"]
mod common;

mod ask;
mod bad_input;
mod browser;
mod data;
mod diff;
mod explain;
mod fleet;
mod learner;
mod limits;
mod live_page;
mod other_verbs;
mod own_data;
mod page_numbers;
mod plan;
mod predict;
mod report;
mod run;
mod series;
mod serve;
mod sweep;
