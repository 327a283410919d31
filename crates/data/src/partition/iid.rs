//! `IidPartitioner` of flwr-datasets (<https://flower.ai/docs/datasets/>): every device has a random sample of everything.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::draw::even_parts;
use super::{DEVICES, check_devices};
use crate::labels::Labeled;
use crate::{Dataset, Error};

/// Shuffles all samples and cuts them into parts that differ by at most one sample. Complete.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `devices` | 10 | devices | 1 to samples |
/// | `labeled` | 1 | fraction of its labels that each device keeps | 0 to 1, or one per device |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Iid {
    /// The number of devices, at least 1.
    pub devices: usize,
    /// The fraction of its labels that each device keeps.
    pub labeled: Labeled,
}

impl Default for Iid {
    fn default() -> Iid {
        Iid { devices: DEVICES, labeled: Labeled::default() }
    }
}

impl Iid {
    pub(super) fn deal(
        &self,
        data: &Dataset,
        rng: &mut ChaCha8Rng,
    ) -> Result<Vec<Vec<usize>>, Error> {
        check_devices(self.devices, data)?;
        let mut all: Vec<usize> = (0..data.len()).collect();
        all.shuffle(rng);
        Ok(even_parts(&all, self.devices).map(<[usize]>::to_vec).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::testing::{class_counts, samples_of};
    use crate::partition::{Scheme, deal};

    #[test]
    fn devices_look_alike() {
        let data = samples_of(&[("x", &[400, 100])]);
        let scheme = Scheme::Iid(Iid { devices: 5, ..Iid::default() });
        for share in deal(&data, &scheme, 1).unwrap().devices {
            assert_eq!(share.len(), 100);
            assert!((65..=95).contains(&class_counts(&data, share.samples())[0]));
        }
    }
}
