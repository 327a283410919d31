//! Devices over a real network on this machine.
#![cfg(feature = "network")]
#![allow(clippy::unwrap_used, reason = "tests and their helpers")]

#[path = "../../../protocol/tests/common/mod.rs"]
mod common;

mod faults;
mod jobs;
mod joining;
mod learners;
mod loopback;
mod moving;
mod net;
mod publications;
mod relay;
mod service;
