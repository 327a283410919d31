//! Li et al., "Federated Learning on Non-IID Data Silos: An Experimental Study", 2022
//! (<https://arxiv.org/abs/2102.02079>); `PathologicalPartitioner` of flwr-datasets.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::draw::{ByClass, even_parts};
use super::{DEVICES, check_class_count, check_devices};
use crate::labels::Labeled;
use crate::{Class, Dataset, Error};

/// Gives every device the same number of classes, and cuts each class evenly among the devices
/// that have it. A class that no device has is left out.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `devices` | 10 | devices | 1 to samples |
/// | `classes-per-device` | 2 | classes of each device | 1 to classes |
/// | `class-assignment` | random | which classes: `random`, `deterministic` (device i: i, i+1, …) or `first-deterministic` (i, then random; the paper's) | |
/// | `labeled` | 1 | fraction of its labels that each device keeps | 0 to 1, or one per device |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Pathological {
    /// The number of devices, at least 1.
    pub devices: usize,
    /// The number of classes that each device has, at least 1.
    pub classes_per_device: usize,
    /// How the classes of each device are chosen.
    pub class_assignment: ClassAssignment,
    /// The fraction of its labels that each device keeps.
    pub labeled: Labeled,
}

/// How it is decided which classes a device gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClassAssignment {
    /// Each device has classes that are drawn at random.
    #[default]
    Random,
    /// Device i has the classes i, i + 1, … round and round.
    Deterministic,
    /// Device i has class i and random others, so that no class is left out while devices suffice.
    FirstDeterministic,
}

impl Default for Pathological {
    fn default() -> Pathological {
        Pathological {
            devices: DEVICES,
            classes_per_device: 2,
            class_assignment: ClassAssignment::default(),
            labeled: Labeled::default(),
        }
    }
}

impl Pathological {
    pub(super) fn deal(
        &self,
        data: &Dataset,
        rng: &mut ChaCha8Rng,
    ) -> Result<Vec<Vec<usize>>, Error> {
        check_devices(self.devices, data)?;
        let by_class = ByClass::of(data, |_| true, rng);
        let present = by_class.present();
        check_class_count(self.classes_per_device, present.len())?;
        let classes: Vec<Vec<Class>> =
            (0..self.devices).map(|device| self.assign(device, &present, rng)).collect();
        let mut devices = vec![Vec::new(); self.devices];
        for class in present {
            let samples = &by_class.classes[usize::from(class)];
            let takers: Vec<usize> =
                (0..self.devices).filter(|&device| classes[device].contains(&class)).collect();
            if takers.len() > samples.len() {
                let message = format!(
                    "class {} has {} samples, and {} devices ask for it",
                    data.classes()[usize::from(class)],
                    samples.len(),
                    takers.len()
                );
                return Err(Error::setting("classes-per-device", message)
                    .with_hint("lower it, use fewer devices, or deal classes as `deterministic`"));
            }
            if !takers.is_empty() {
                for (device, part) in takers.iter().zip(even_parts(samples, takers.len())) {
                    devices[*device].extend_from_slice(part);
                }
            }
        }
        by_class.deal_unlabeled(&mut devices);
        Ok(devices)
    }

    fn assign(&self, device: usize, present: &[Class], rng: &mut ChaCha8Rng) -> Vec<Class> {
        let mut classes = present.to_vec();
        let first = device % classes.len();
        match self.class_assignment {
            ClassAssignment::Random => classes.shuffle(rng),
            ClassAssignment::Deterministic => classes.rotate_left(first),
            ClassAssignment::FirstDeterministic => {
                classes.swap(0, first);
                classes[1..].shuffle(rng);
            }
        }
        classes.truncate(self.classes_per_device);
        classes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::testing::{class_counts, samples_of};
    use crate::partition::{Scheme, deal};

    #[test]
    fn every_device_has_its_number_of_classes() {
        let data = samples_of(&[("x", &[100; 10])]);
        for class_assignment in [
            ClassAssignment::Random,
            ClassAssignment::Deterministic,
            ClassAssignment::FirstDeterministic,
        ] {
            let scheme =
                Pathological { classes_per_device: 3, class_assignment, ..Pathological::default() };
            let partition = deal(&data, &Scheme::Pathological(scheme), 2).unwrap();
            for (k, device) in partition.devices.iter().enumerate() {
                let counts = class_counts(&data, device.samples());
                assert_eq!(counts.iter().filter(|&&count| count > 0).count(), 3);
                if class_assignment != ClassAssignment::Random {
                    assert!(counts[k] > 0, "device {k} has class {k}");
                    let dealt: usize = partition.devices.iter().map(|d| d.len()).sum();
                    assert_eq!(dealt, 1000, "no class is left out");
                }
            }
        }
    }

    #[test]
    fn too_many_classes_or_takers_are_refused() {
        let data = samples_of(&[("x", &[100, 100, 2])]);
        let message = |classes_per_device| {
            let scheme = Pathological { classes_per_device, ..Pathological::default() };
            deal(&data, &Scheme::Pathological(scheme), 2).err().map(|e| e.to_string())
        };
        assert_eq!(
            message(4).as_deref(),
            Some("classes-per-device: 4 requested, but the data has 3 classes")
        );
        assert_eq!(
            message(3).as_deref(),
            Some("classes-per-device: class 2 has 2 samples, and 10 devices ask for it")
        );
    }
}
