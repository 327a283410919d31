//! McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", 2017
//! (<https://arxiv.org/abs/1602.05629>); `ShardPartitioner` of flwr-datasets.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::draw::{ByClass, even_parts};
use super::{DEVICES, check_devices};
use crate::labels::Labeled;
use crate::{Dataset, Error};

/// Sorts the samples by class, cuts them into shards of one size, and deals every device the same
/// number of shards at random. Complete: where the samples do not divide, some shards have one more,
/// where flwr-datasets would leave the rest out.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `devices` | 10 | devices | 1 to samples |
/// | `shards-per-device` | 2 | shards of each device; with two, most devices have two classes | at least 1 |
/// | `labeled` | 1 | fraction of its labels that each device keeps | 0 to 1, or one per device |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Shard {
    /// The number of devices, at least 1.
    pub devices: usize,
    /// The number of shards that each device gets, at least 1.
    pub shards_per_device: usize,
    /// The fraction of its labels that each device keeps.
    pub labeled: Labeled,
}

impl Default for Shard {
    fn default() -> Shard {
        Shard { devices: DEVICES, shards_per_device: 2, labeled: Labeled::default() }
    }
}

impl Shard {
    pub(super) fn deal(
        &self,
        data: &Dataset,
        rng: &mut ChaCha8Rng,
    ) -> Result<Vec<Vec<usize>>, Error> {
        check_devices(self.devices, data)?;
        let by_class = ByClass::of(data, |_| true, rng);
        let sorted = by_class.classes.concat();
        let count = self.devices.saturating_mul(self.shards_per_device);
        if count == 0 || count > sorted.len() {
            let message = format!(
                "{} devices with {} shards each need {count} labeled samples at least, and there are {}",
                self.devices,
                self.shards_per_device,
                sorted.len()
            );
            return Err(Error::setting("shards-per-device", message)
                .with_hint("a device needs one shard or more, a shard one sample or more"));
        }
        let mut shards: Vec<&[usize]> = even_parts(&sorted, count).collect();
        shards.shuffle(rng);
        let dealt = shards.chunks_exact(self.shards_per_device);
        let mut devices: Vec<Vec<usize>> = dealt.map(<[&[usize]]>::concat).collect();
        by_class.deal_unlabeled(&mut devices);
        Ok(devices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::testing::{class_counts, samples_of};
    use crate::partition::{Scheme, deal};

    #[test]
    fn two_shards_are_two_classes_when_they_divide() {
        let data = samples_of(&[("x", &[40; 10])]);
        let partition = deal(&data, &Scheme::Shard(Shard::default()), 5).unwrap();
        for device in &partition.devices {
            let counts = class_counts(&data, device.samples());
            assert_eq!(device.len(), 40);
            assert!(counts.iter().all(|&count| count % 20 == 0), "whole shards: {counts:?}");
        }
    }

    #[test]
    fn more_shards_than_samples_are_refused() {
        let data = samples_of(&[("x", &[10, 9])]);
        let error = deal(&data, &Scheme::Shard(Shard::default()), 5).unwrap_err();
        assert_eq!(
            error.to_string(),
            "shards-per-device: 10 devices with 2 shards each need 20 labeled samples at least, \
             and there are 19"
        );
        let none = Shard { shards_per_device: 0, ..Shard::default() };
        assert!(deal(&data, &Scheme::Shard(none), 5).is_err());
    }
}
