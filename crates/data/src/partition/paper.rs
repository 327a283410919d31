//! Wang, Hosseinalipour and Brinton, "Multi-Source to Multi-Target Decentralized Federated Domain
//! Adaptation": the network of the paper's experiments.

mod dealing;

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::DEVICES;

/// Devices with labels first, then devices without. Every device has a few classes, in proportions of a
/// Dirichlet distribution, and a size from a normal distribution; a device without labels has the
/// classes of a random device with labels. Samples that no device drew, and those without a class,
/// are left out.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `devices` | 10 | devices | 1 to samples |
/// | `labeled-devices` | half | how many devices have labels; they come first | 1 to devices |
/// | `labeled-samples` | 1600 | mean of a labeled device's samples with a label | above 0 |
/// | `hidden-samples` | 200 | mean of a labeled device's samples without | at least 0 |
/// | `unlabeled-device-samples` | 1000 | mean of an unlabeled device's samples | above 0 |
/// | `deviation` | 1/6 | standard deviation of these three, as a fraction of the mean | at least 0 |
/// | `scale` | 1 | multiplies these three, for less data | above 0 |
/// | `classes-per-device` | 4 | classes of each device; the paper has `"all"` with MNIST-M and when split | 1 to classes, `"all"` |
/// | `alpha` | 5 | concentration of a device's classes | above 0 |
/// | `arrangement` | single | `single` (one domain), `mixed` (every device draws from all), `split` (every device draws from one) | |
/// | `unlabeled-domains` | none | the domains of the devices without labels, and of no other device; `arrangement` then holds among those with labels, and among those without | some of the domains |
/// | `unlabeled-classes` | all | classes of each device without labels, out of those of a device with labels | 1 to `classes-per-device` |
/// | `mislabeled-devices` | 0 | how many of the devices with labels, from the first on, have wrong ones: of each sample, the class after its own | at most `labeled-devices` |
/// | `disjoint` | true | whether a sample is dealt once. The published runs let every device draw from all samples, so that a target may hold a source's | true, false |
///
/// A class that has run out gives what it has, and the device's other classes make up for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Paper {
    /// The number of devices, at least 1.
    pub devices: usize,
    /// How many of them have labels; half if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labeled_devices: Option<usize>,
    /// Mean number of samples with a label, on a labeled device.
    pub labeled_samples: f64,
    /// Mean number of samples without a label, on a labeled device.
    pub hidden_samples: f64,
    /// Mean number of samples of an unlabeled device.
    pub unlabeled_device_samples: f64,
    /// The standard deviation as a fraction of the mean, at least 0.
    pub deviation: f64,
    /// A factor for the mean numbers of samples, above 0.
    pub scale: f64,
    /// How many classes a device has.
    pub classes_per_device: ClassesPerDevice,
    /// The concentration of a device's classes, above 0; smaller is more uneven.
    pub alpha: f64,
    /// How the domains are arranged on the devices.
    pub arrangement: Arrangement,
    /// The domains of the devices without labels, which no device with labels has; empty if all devices may have all domains.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unlabeled_domains: Vec<String>,
    /// How many of a labeled device's classes a device without labels has; all of them if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unlabeled_classes: Option<usize>,
    /// How many of the labeled devices, from the first on, have wrong labels: of each sample, the class after its own.
    #[serde(skip_serializing_if = "is_none")]
    pub mislabeled_devices: usize,
    /// Whether each sample is dealt to at most one device.
    pub disjoint: bool,
}

/// Returns whether no device has wrong labels.
fn is_none(mislabeled: &usize) -> bool {
    *mislabeled == 0
}

/// How the domains are arranged over the devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrangement {
    /// All devices have samples of one domain: the paper's M, U, MM.
    #[default]
    Single,
    /// Every device draws from all domains together and has samples of each: M+U.
    Mixed,
    /// Every device draws from one domain, by the toss of a coin, and no domain is without a device:
    /// M//U.
    Split,
}

/// How many classes a device has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number of classes, or \"all\"")]
pub enum ClassesPerDevice {
    /// This many classes, drawn at random.
    Count(usize),
    /// All classes that the data has.
    All(All),
}

/// The word `all`, instead of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum All {
    /// Every device has all classes.
    All,
}

impl FromStr for ClassesPerDevice {
    type Err = String;

    fn from_str(text: &str) -> Result<ClassesPerDevice, String> {
        match text {
            "all" => Ok(ClassesPerDevice::All(All::All)),
            _ => text
                .parse()
                .map(ClassesPerDevice::Count)
                .map_err(|_| "expected a number of classes, or all".to_owned()),
        }
    }
}

impl Default for Paper {
    fn default() -> Paper {
        Paper {
            devices: DEVICES,
            labeled_devices: None,
            labeled_samples: 1600.0,
            hidden_samples: 200.0,
            unlabeled_device_samples: 1000.0,
            deviation: 1.0 / 6.0,
            scale: 1.0,
            classes_per_device: ClassesPerDevice::Count(4),
            alpha: 5.0,
            arrangement: Arrangement::Single,
            unlabeled_domains: Vec::new(),
            unlabeled_classes: None,
            mislabeled_devices: 0,
            disjoint: true,
        }
    }
}

impl Paper {
    /// Returns the number of devices with labels; half of them, rounded up, if not given.
    pub fn labeled_devices(&self) -> usize {
        self.labeled_devices.unwrap_or(self.devices.div_ceil(2))
    }
}

#[cfg(test)]
mod tests;
