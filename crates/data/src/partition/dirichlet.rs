//! Yurochkin et al., "Bayesian Nonparametric Federated Learning of Neural Networks", 2019
//! (<https://arxiv.org/abs/1905.12022>); `DirichletPartitioner` of flwr-datasets.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::draw::{ByClass, dirichlet};
use super::{DEVICES, check_devices, check_positive};
use crate::labels::Labeled;
use crate::{Dataset, Error};

/// How often a draw that leaves a device too small is repeated, as in flwr-datasets.
const REPEATS: usize = 10;

/// Deals each class in proportions from a symmetric Dirichlet distribution over the devices: the smaller
/// `alpha`, the fewer devices have most of a class. Complete.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `devices` | 10 | devices | 1 to samples |
/// | `alpha` | 0.5 | concentration | above 0 |
/// | `min-partition-size` | 10 | a draw that leaves a device fewer samples is repeated, ten times at most | at least 1 |
/// | `self-balancing` | false | a device with more than its even share gets nothing of further classes | true, false |
/// | `labeled` | 1 | fraction of its labels that each device keeps | 0 to 1, or one per device |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Dirichlet {
    /// The number of devices, at least 1.
    pub devices: usize,
    /// The concentration of the Dirichlet distribution, above 0; smaller is more uneven.
    pub alpha: f64,
    /// The fewest samples of a device.
    pub min_partition_size: usize,
    /// Whether full devices are left out of further classes.
    pub self_balancing: bool,
    /// The fraction of its labels that each device keeps.
    pub labeled: Labeled,
}

impl Default for Dirichlet {
    fn default() -> Dirichlet {
        Dirichlet {
            devices: DEVICES,
            alpha: 0.5,
            min_partition_size: 10,
            self_balancing: false,
            labeled: Labeled::default(),
        }
    }
}

impl Dirichlet {
    pub(super) fn deal(
        &self,
        data: &Dataset,
        rng: &mut ChaCha8Rng,
    ) -> Result<Vec<Vec<usize>>, Error> {
        check_devices(self.devices, data)?;
        check_positive("alpha", self.alpha)?;
        let least = self.min_partition_size.max(1);
        if self.devices * least > data.len() {
            let message = format!(
                "{} devices of at least {least} samples need {}, and there are {}",
                self.devices,
                self.devices * least,
                data.len()
            );
            return Err(Error::setting("min-partition-size", message)
                .with_hint("lower it, or use fewer devices"));
        }
        let mut smallest = 0;
        for _ in 0..=REPEATS {
            let devices = self.draw(data, rng)?;
            let size = devices.iter().map(Vec::len).min().unwrap_or(0);
            if size >= least {
                return Ok(devices);
            }
            smallest = smallest.max(size);
        }
        let message = format!(
            "in {} draws with alpha {} some device always had fewer than {least} samples, at best {smallest}",
            REPEATS + 1,
            self.alpha
        );
        Err(Error::setting("min-partition-size", message)
            .with_hint("raise alpha, lower min-partition-size, or use fewer devices"))
    }

    fn draw(&self, data: &Dataset, rng: &mut ChaCha8Rng) -> Result<Vec<Vec<usize>>, Error> {
        let by_class = ByClass::of(data, |_| true, rng);
        let even = data.len() as f64 / self.devices as f64;
        let mut devices = vec![Vec::new(); self.devices];
        by_class.deal_unlabeled(&mut devices);
        for class in by_class.present() {
            let samples = &by_class.classes[usize::from(class)];
            let mut shares = dirichlet(self.alpha, self.devices, rng)?;
            if self.self_balancing {
                for (share, device) in shares.iter_mut().zip(&devices) {
                    if device.len() as f64 > even {
                        *share = 0.0;
                    }
                }
                // All that is left may belong to full devices, in floating point: then they share it.
                let sum: f64 = shares.iter().sum();
                match sum > 0.0 {
                    true => shares.iter_mut().for_each(|share| *share /= sum),
                    false => shares.fill(1.0 / self.devices as f64),
                }
            }
            let (mut sum, mut start) = (0.0, 0);
            for (k, (device, share)) in devices.iter_mut().zip(&shares).enumerate() {
                sum += share;
                let end = match k + 1 == self.devices {
                    true => samples.len(),
                    false => ((sum * samples.len() as f64) as usize).clamp(start, samples.len()),
                };
                device.extend_from_slice(&samples[start..end]);
                start = end;
            }
        }
        Ok(devices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::testing::{class_counts, samples_of};
    use crate::partition::{Scheme, deal};

    fn sizes(alpha: f64, self_balancing: bool) -> (usize, f64) {
        let data = samples_of(&[("x", &[500; 10])]);
        let scheme = Dirichlet { alpha, self_balancing, ..Dirichlet::default() };
        let partition = deal(&data, &Scheme::Dirichlet(scheme), 11).unwrap();
        let largest = partition.devices.iter().map(|d| d.len()).max().unwrap();
        // The share of a device's largest class, on average.
        let skew = partition.devices.iter().map(|device| {
            let counts = class_counts(&data, device.samples());
            *counts.iter().max().unwrap() as f64 / device.len() as f64
        });
        (largest, skew.sum::<f64>() / 10.0)
    }

    #[test]
    fn a_small_alpha_skews_and_a_large_one_does_not() {
        assert!(sizes(0.1, false).1 > 0.4);
        assert!(sizes(1000.0, false).1 < 0.15);
    }

    #[test]
    fn balancing_keeps_the_largest_device_small() {
        assert!(sizes(0.3, true).0 < sizes(0.3, false).0);
    }

    #[test]
    fn what_cannot_be_drawn_is_said() {
        let data = samples_of(&[("x", &[20, 20])]);
        let message = |alpha: f64, least: usize| {
            let scheme =
                Dirichlet { devices: 4, alpha, min_partition_size: least, ..Dirichlet::default() };
            deal(&data, &Scheme::Dirichlet(scheme), 1).err().map(|e| e.to_string())
        };
        assert_eq!(message(0.0, 1).as_deref(), Some("alpha: 0 is not above 0"));
        assert_eq!(message(f64::NAN, 1).as_deref(), Some("alpha: NaN is not above 0"));
        assert_eq!(
            message(1.0, 11).as_deref(),
            Some("min-partition-size: 4 devices of at least 11 samples need 44, and there are 40")
        );
        assert_eq!(
            message(1e-3, 5).as_deref(),
            Some(
                "min-partition-size: in 11 draws with alpha 0.001 some device always had fewer \
                 than 5 samples, at best 0"
            )
        );
    }
}
