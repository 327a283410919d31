//! Which epoch a message is of.

use serde::{Deserialize, Serialize};

/// An epoch. Devices that do not hear of each other may begin epochs of the same number; who began them tells these apart, so that no
/// message of one is taken for a message of another.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct EpochId {
    /// Counts up at every device.
    pub number: u64,
    /// Drawn by the device that began it when that device started. Within one start a device uses no number twice.
    pub begun: u32,
}

impl From<u64> for EpochId {
    /// Of this number, where it does not matter who began it.
    fn from(number: u64) -> EpochId {
        EpochId { number, begun: 0 }
    }
}

impl std::fmt::Display for EpochId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.number, f)
    }
}
