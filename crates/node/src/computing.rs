//! What a device's student cost in computing.

use serde::{Deserialize, Serialize};
use stlf_method::adapt::Tried;
use stlf_planning::number_format::{energy, short};
use stlf_protocol::Device;

/// What training took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Computing {
    /// Billions of floating-point operations.
    pub gflop: f64,
    /// Joules, where it is known how many operations the device's processor does with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joules: Option<f64>,
}

impl Computing {
    /// Returns what the built-in network of a device took to train the student that it has as a target, whether it uses it or not; nothing if it has
    /// trained none. One that was trained earlier, and of the same, cost that then.
    pub fn of_student(device: &Device, gflop_per_joule: Option<f64>) -> Option<Computing> {
        let tried = device.combined()?.tried.as_ref()?;
        if matches!(tried, Tried::Not(_)) {
            return None;
        }
        let setup = device.setup();
        let gflop = setup.schooling.operations(&setup.spec) as f64 / 1e9;
        Some(Computing { gflop, joules: gflop_per_joule.map(|per_joule| gflop / per_joule) })
    }
}

impl std::fmt::Display for Computing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Computing { gflop, joules } = self;
        write!(f, "{} GFLOP of computing", short(*gflop))?;
        joules.map_or(Ok(()), |joules| write!(f, ", {}", energy(joules)))
    }
}
