//! `NaturalIdPartitioner` of flwr-datasets (<https://flower.ai/docs/datasets/>), with the domain as the natural id.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::draw::even_parts;
use crate::labels::Labeled;
use crate::{Dataset, Error};

/// Every domain is a device, or several that share it evenly at random. Complete.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `devices-per-domain` | 1 | devices of each domain | 1 to the domain's samples |
/// | `labeled` | 1 | fraction of its labels that each device keeps | 0 to 1, or one per device |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ByDomain {
    /// How many devices share a domain.
    pub devices_per_domain: usize,
    /// The fraction of its labels that each device keeps.
    pub labeled: Labeled,
}

impl Default for ByDomain {
    fn default() -> ByDomain {
        ByDomain { devices_per_domain: 1, labeled: Labeled::default() }
    }
}

impl ByDomain {
    pub(super) fn deal(
        &self,
        data: &Dataset,
        rng: &mut ChaCha8Rng,
    ) -> Result<Vec<Vec<usize>>, Error> {
        let mut domains = vec![Vec::new(); data.domains().len()];
        for sample in 0..data.len() {
            domains[data.domain(sample)].push(sample);
        }
        let mut devices = Vec::new();
        for (name, mut samples) in data.domains().iter().zip(domains) {
            if self.devices_per_domain == 0 || self.devices_per_domain > samples.len() {
                let message = format!(
                    "{} requested, but domain {name} has {} samples",
                    self.devices_per_domain,
                    samples.len()
                );
                return Err(Error::setting("devices-per-domain", message)
                    .with_hint("every device needs a sample"));
            }
            samples.shuffle(rng);
            devices.extend(even_parts(&samples, self.devices_per_domain).map(<[usize]>::to_vec));
        }
        Ok(devices)
    }

    /// The domain's name, numbered where several devices share it.
    pub(super) fn names(&self, data: &Dataset) -> Vec<String> {
        let numbered = |domain: &String, k: usize| match self.devices_per_domain {
            1 => domain.clone(),
            _ => format!("{domain}-{}", k + 1),
        };
        let domains = data.domains().iter();
        domains.flat_map(|d| (0..self.devices_per_domain).map(move |k| numbered(d, k))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::testing::samples_of;
    use crate::partition::{Scheme, deal};

    #[test]
    fn a_device_has_one_domain_and_its_name() {
        let data = samples_of(&[("clean", &[5, 5]), ("coarse", &[3, 4])]);
        for (devices_per_domain, names) in
            [(1, vec!["clean", "coarse"]), (2, vec!["clean-1", "clean-2", "coarse-1", "coarse-2"])]
        {
            let scheme = ByDomain { devices_per_domain, ..ByDomain::default() };
            let partition = deal(&data, &Scheme::ByDomain(scheme), 1).unwrap();
            let found: Vec<&str> = partition.devices.iter().map(|d| d.name.as_str()).collect();
            assert_eq!(found, names);
            for device in &partition.devices {
                let mut domains = device.samples().map(|s| &data.domains()[data.domain(s)]);
                assert!(domains.all(|domain| device.name.starts_with(domain.as_str())));
            }
        }
        let scheme = ByDomain { devices_per_domain: 8, ..ByDomain::default() };
        let error = deal(&data, &Scheme::ByDomain(scheme), 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "devices-per-domain: 8 requested, but domain coarse has 7 samples"
        );
    }
}
