//! Devices as processes of their own, on one machine or on hosts that a test makes.
#![cfg(feature = "node")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests and their helpers")]

#[path = "../common/mod.rs"]
mod common;

#[cfg(target_os = "linux")]
mod capture;
#[cfg(target_os = "linux")]
mod clocks;
mod daemon;
#[cfg(target_os = "linux")]
mod disk;
mod drift;
mod guide;
mod hundred;
mod learners;
#[cfg(target_os = "linux")]
mod moving;
#[cfg(target_os = "linux")]
mod namespaces;
mod node;
mod soak;
