//! Which samples of a device keep their labels. The others keep theirs in the data set, hidden
//! from the method by being listed as unlabeled.

use std::collections::BTreeMap;
use std::str::FromStr;

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::partition::draw::apportion;
use crate::{Dataset, Error};

/// The fraction of each device's labels that it keeps, 0 (an unlabeled device) to 1 (all).
///
/// In files and arguments a number, for all devices, or a list with one number per device; or which fraction of the devices has labels at
/// all, `{ devices = 0.5 }`: then others are drawn for every seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a number from 0 to 1, a list of them, one per device, or { devices = 0.5 }"
)]
pub enum Labeled {
    /// The same fraction on every device.
    Alike(f64),
    /// One fraction per device, in their order.
    Each(Vec<f64>),
    /// All labels of some devices, none of the others.
    Some {
        /// The fraction of the devices that have labels: at least one does, and, below 1, at least one does not.
        devices: f64,
    },
}

impl Default for Labeled {
    /// Every label is kept, as FL benchmarks do.
    fn default() -> Labeled {
        Labeled::Alike(1.0)
    }
}

impl FromStr for Labeled {
    type Err = String;

    /// Parses `0.5`, `1,1,0.5,0` with one fraction per device, or `devices:0.5`.
    fn from_str(text: &str) -> Result<Labeled, String> {
        if let Some(devices) = text.strip_prefix("devices:").and_then(|d| d.trim().parse().ok()) {
            return Ok(Labeled::Some { devices });
        }
        let shares: Result<Vec<f64>, _> = text.split(',').map(|s| s.trim().parse()).collect();
        match shares.as_deref() {
            Ok([share]) => Ok(Labeled::Alike(*share)),
            Ok(shares) => Ok(Labeled::Each(shares.to_vec())),
            Err(_) => {
                Err("expected a number from 0 to 1, one per device, as in 1,1,0.5,0, or the fraction of devices that have labels, as in devices:0.5".into())
            }
        }
    }
}

impl Labeled {
    /// Returns the fraction of each of so many devices.
    pub(crate) fn shares(&self, devices: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
        match self {
            Labeled::Alike(share) => vec![*share; devices],
            Labeled::Each(shares) => shares.clone(),
            Labeled::Some { devices: share } => {
                let most = if *share < 1.0 { devices.saturating_sub(1).max(1) } else { devices };
                let some = (share * devices as f64).round() as usize;
                let mut shares = vec![0.0; devices];
                shares[..some.clamp(1, most)].fill(1.0);
                shares.shuffle(rng);
                shares
            }
        }
    }

    /// Checks the fractions for this many devices.
    pub(crate) fn check(&self, devices: usize) -> Result<(), Error> {
        let shares = match self {
            Labeled::Alike(share) | Labeled::Some { devices: share } => std::slice::from_ref(share),
            Labeled::Each(shares) if shares.len() != devices => {
                let message = format!("{} fractions for {devices} devices", shares.len());
                return Err(Error::setting("labeled", message)
                    .with_hint("give one fraction for all devices, or one per device"));
            }
            Labeled::Each(shares) => shares,
        };
        match shares.iter().find(|share| !(0.0..=1.0).contains(*share)) {
            Some(share) => {
                Err(Error::setting("labeled", format!("{share} is not between 0 and 1")))
            }
            None => Ok(()),
        }
    }
}

/// The number of these samples' labels that a fraction amounts to: at least one if it is above 0.
pub(crate) fn count(data: &Dataset, samples: &[usize], share: f64) -> usize {
    let with_label = samples.iter().filter(|&&s| data.label(s).is_some()).count();
    let kept = (share * with_label as f64).round() as usize;
    if share > 0.0 { kept.max(1).min(with_label) } else { 0 }
}

/// Splits a device's samples into those that keep their label, `kept` of them if so many have
/// one, and the others. Both ascend.
///
/// Every class keeps its proportion, and at least one label as long as there are as many to keep as
/// classes: a class of which a device has no label at all is one that it cannot learn, which a small
/// share would otherwise bring about by accident.
pub(crate) fn split(
    data: &Dataset,
    samples: &[usize],
    kept: usize,
    rng: &mut ChaCha8Rng,
) -> (Vec<usize>, Vec<usize>) {
    let mut by_class: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    let mut unlabeled = Vec::new();
    for &sample in samples {
        match data.label(sample) {
            Some(class) => by_class.entry(class).or_default().push(sample),
            None => unlabeled.push(sample),
        }
    }
    let room: Vec<usize> = by_class.values().map(Vec::len).collect();
    let weights: Vec<f64> = room.iter().map(|&n| n as f64).collect();
    let kept = kept.min(room.iter().sum());
    let mut quotas = apportion(&weights, kept, &room).unwrap_or(room);
    while let Some(without) = quotas.iter().position(|&quota| quota == 0) {
        match (0..quotas.len()).max_by_key(|&k| quotas[k]) {
            Some(most) if quotas[most] > 1 => {
                quotas[most] -= 1;
                quotas[without] += 1;
            }
            _ => break,
        }
    }
    let mut labeled = Vec::with_capacity(kept);
    for (mut of_class, quota) in by_class.into_values().zip(quotas) {
        of_class.shuffle(rng);
        labeled.extend_from_slice(&of_class[..quota]);
        unlabeled.extend_from_slice(&of_class[quota..]);
    }
    labeled.sort_unstable();
    unlabeled.sort_unstable();
    (labeled, unlabeled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::testing::samples_of;
    use rand::SeedableRng;

    fn kept_by_class(data: &Dataset, kept: usize) -> Vec<usize> {
        let all: Vec<usize> = (0..data.len()).collect();
        let (labeled, unlabeled) = split(data, &all, kept, &mut ChaCha8Rng::seed_from_u64(1));
        let mut both = [labeled.clone(), unlabeled].concat();
        both.sort_unstable();
        assert_eq!(both, all);
        let mut counts = vec![0; data.classes().len()];
        for sample in labeled {
            counts[usize::from(data.label(sample).unwrap())] += 1;
        }
        counts
    }

    #[test]
    fn classes_keep_their_proportion_and_none_is_lost() {
        let data = samples_of(&[("x", &[90, 9, 1])]);
        assert_eq!(kept_by_class(&data, 100), [90, 9, 1]);
        assert_eq!(kept_by_class(&data, 10), [8, 1, 1]);
        assert_eq!(kept_by_class(&data, 3), [1, 1, 1]);
        assert_eq!(kept_by_class(&data, 2).iter().sum::<usize>(), 2);
        assert_eq!(kept_by_class(&data, 0), [0, 0, 0]);
        assert_eq!(kept_by_class(&data, 1000), [90, 9, 1]);
    }

    #[test]
    fn a_share_is_one_number_or_one_per_device() {
        assert_eq!("0.5".parse(), Ok(Labeled::Alike(0.5)));
        assert_eq!("1, 0.25,0".parse(), Ok(Labeled::Each(vec![1.0, 0.25, 0.0])));
        assert!("half".parse::<Labeled>().is_err());
        let message = |text: &str, devices| {
            let labeled: Labeled = text.parse().unwrap();
            labeled.check(devices).err().map(|e| e.to_string())
        };
        assert_eq!(message("0.5", 7), None);
        assert_eq!(message("1,0", 2), None);
        assert_eq!(message("1,0", 3).as_deref(), Some("labeled: 2 fractions for 3 devices"));
        assert_eq!(message("1,1.5", 2).as_deref(), Some("labeled: 1.5 is not between 0 and 1"));
        assert_eq!(message("NaN", 2).as_deref(), Some("labeled: NaN is not between 0 and 1"));
    }

    #[test]
    fn some_devices_have_all_labels_and_every_seed_draws_others() {
        assert_eq!("devices:0.5".parse(), Ok(Labeled::Some { devices: 0.5 }));
        let drawn = |devices: f64, of: usize, seed| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            Labeled::Some { devices }.shares(of, &mut rng)
        };
        let count = |shares: Vec<f64>| shares.iter().sum::<f64>();
        assert_eq!(
            [0.5, 0.3, 0.01, 0.99, 1.0].map(|d| count(drawn(d, 10, 1))),
            [5.0, 3.0, 1.0, 9.0, 10.0]
        );
        assert_eq!(count(drawn(0.5, 1, 1)), 1.0);
        let halves: std::collections::BTreeSet<String> =
            (0..20).map(|seed| format!("{:?}", drawn(0.5, 10, seed))).collect();
        assert!(halves.len() > 15);
    }

    #[test]
    fn a_small_share_of_few_labels_is_still_a_label() {
        let data = samples_of(&[("x", &[3])]);
        assert_eq!(
            [0.0, 0.01, 0.5, 1.0].map(|share| count(&data, &[0, 1, 2], share)),
            [0, 1, 2, 3]
        );
        assert_eq!(count(&data, &[], 0.5), 0);
    }
}
