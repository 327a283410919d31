//! The stages of one seed, each from files to files.

mod answers;
pub mod bounds;
mod bundles;
pub mod calibration;
pub mod compare;
pub mod computing;
pub mod distillation;
mod examination;
pub mod expectation;
pub mod frontier;
pub mod handover;
mod learning;
pub mod measure;
pub mod plan;
pub mod pretended;
pub mod shared_model;
pub mod student;
pub mod train;
pub mod transfer;
mod trust;

use std::sync::Arc;

use stlf_config::Config;
use stlf_config::fleet::Fleet;
use stlf_learn::Params;
use stlf_protocol::Setup;

use crate::watch::Watch;
use crate::{Folder, Learners};

/// One seed's run: what all its stages share.
pub struct SeedRun<'a> {
    /// The configuration of the run.
    pub config: &'a Config,
    /// The settings and networks that all devices share.
    pub setup: Setup,
    /// The devices with their data.
    pub fleet: Fleet,
    /// The values that built-in networks begin with.
    pub first: Arc<Params>,
    /// Their learners, where these are the user's.
    pub learners: Option<&'a Learners>,
    /// How well linear classifiers of the others do at each device with labels, where they were sent.
    pub scouted: Vec<f64>,
    /// What each device with labels sent so that a scale of features could be chosen.
    pub scouting_bytes: u64,
    /// Where the stages leave their files.
    pub folder: Folder,
    /// Hears of progress in this seed, and may stop the run.
    pub watch: Watch<'a>,
}
