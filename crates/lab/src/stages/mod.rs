//! The stages of one seed, each from files to files.

pub mod bounds;
pub mod compare;
pub mod frontier;
pub mod measure;
pub mod plan;
pub mod train;
pub mod transfer;

use stlf_data::Shape;
use stlf_learn::Spec;

use crate::Folder;
use crate::config::Config;
use crate::fleet::Fleet;
use crate::watch::Watch;

/// One seed's run: what all its stages share.
pub struct SeedRun<'a> {
    /// What to run.
    pub config: &'a Config,
    /// Of an input.
    pub shape: Shape,
    /// The network of every device.
    pub spec: Spec,
    /// The devices.
    pub fleet: Fleet,
    /// Where the stages leave their files.
    pub folder: Folder,
    /// The seed.
    pub seed: u64,
    /// Who hears of progress.
    pub watch: Watch<'a>,
}

/// A seed of its own for each thing that is drawn in one seed's run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Draw {
    Initial = 1,
    HeldOut = 2,
    Training = 3,
    Divergence = 4,
    Energy = 5,
    Baseline = 6,
}

impl Draw {
    /// For the run's seed and the number of the thing drawn.
    pub(crate) fn seed(self, seed: u64, number: usize) -> u64 {
        let parts = [self as u64, number as u64];
        parts.iter().fold(seed.wrapping_add(0x9e37_79b9_7f4a_7c15), |mixed, part| {
            let z = (mixed ^ part.wrapping_mul(0xff51_afd7_ed55_8ccd))
                .wrapping_mul(0xc4ce_b9fe_1a85_ec53);
            z ^ (z >> 29)
        })
    }
}
