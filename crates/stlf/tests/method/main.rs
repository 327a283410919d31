//! The method from outside, a file for each part of it.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests and their helpers")]

mod calibration;
mod divergence;
mod golden;
mod handover;
mod problem_reader;
mod reasons;
mod rings;
mod schemas;
mod what_if;
