//! A seed of its own for each thing that is drawn in one run, so that a simulator and real devices draw alike.
//!
//! [`Draw`] names what a run draws; `derive` goes further down, to pairs of devices and parts of an estimator. Both keep their way of
//! mixing: with another one every result would change.

/// The random draws of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draw {
    /// The initial values of a network, the same on all devices.
    Initial = 1,
    /// Which labels a device holds out.
    HeldOut = 2,
    /// The training of a device.
    Training = 3,
    /// The measuring of divergences.
    Divergence = 4,
    /// Link energies that are not measured.
    Energy = 5,
    /// What baselines draw.
    Baseline = 6,
    /// The training of a model that was handed to a device.
    Relay = 7,
    /// The training of a model that comes to a device for the second time, on a ring.
    Ring = 8,
    /// The student of a target.
    Student = 9,
}

impl Draw {
    /// Returns the seed for the run's seed and the number of the thing drawn.
    pub fn seed(self, seed: u64, number: usize) -> u64 {
        let parts = [self as u64, number as u64];
        parts.iter().fold(seed.wrapping_add(0x9e37_79b9_7f4a_7c15), |mixed, part| {
            let z = (mixed ^ part.wrapping_mul(0xff51_afd7_ed55_8ccd))
                .wrapping_mul(0xc4ce_b9fe_1a85_ec53);
            z ^ (z >> 29)
        })
    }
}

/// Derives a seed of its own for one of many things that are drawn from one seed, named by numbers (SplitMix64's mixing).
pub(crate) fn derive(seed: u64, of: &[u64]) -> u64 {
    of.iter().fold(seed, |seed, part| {
        let mut z =
            (seed ^ part.wrapping_mul(0xd6e8_feb8_6659_fd93)).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}
