//! Wang, Hosseinalipour and Brinton, "Multi-Source to Multi-Target Decentralized Federated Domain
//! Adaptation": the network of the paper's experiments.

use std::ops::Range;
use std::str::FromStr;

use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Normal};
use serde::{Deserialize, Serialize};

use super::draw::{ByClass, apportion, dirichlet};
use super::{DEVICES, check_class_count, check_devices, check_positive};
use crate::{Class, Dataset, Error};

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
    /// How domains are arranged.
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

/// Whether no device has wrong labels.
fn is_none(mislabeled: &usize) -> bool {
    *mislabeled == 0
}

/// How the domains are arranged over the devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrangement {
    /// One domain: the paper's M, U, MM.
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
    /// All that the data has.
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

/// What one device holds, and how many labels it keeps.
pub(super) struct Hand {
    pub(super) samples: Vec<usize>,
    pub(super) labeled: usize,
}

/// Devices that draw from the same domains.
struct Side {
    devices: Range<usize>,
    domains: Vec<usize>,
}

/// Samples that some devices draw from.
struct Pool {
    domains: Vec<usize>,
    samples: ByClass,
}

impl Paper {
    /// How many devices have labels.
    pub fn labeled_devices(&self) -> usize {
        self.labeled_devices.unwrap_or(self.devices.div_ceil(2))
    }

    pub(super) fn deal(&self, data: &Dataset, rng: &mut ChaCha8Rng) -> Result<Vec<Hand>, Error> {
        self.check(data)?;
        let sides = self.sides(data)?;
        let mut pools: Vec<Pool> = Vec::new();
        // The pools of each side's devices: one for each domain when split, else one for all.
        let of_sides: Vec<Range<usize>> = (sides.iter())
            .map(|side| {
                let first = pools.len();
                match self.arrangement {
                    Arrangement::Split => {
                        pools.extend(side.domains.iter().map(|&d| Pool::of(data, vec![d], rng)));
                    }
                    Arrangement::Single | Arrangement::Mixed => {
                        pools.push(Pool::of(data, side.domains.clone(), rng));
                    }
                }
                first..pools.len()
            })
            .collect();
        let everywhere: Vec<Class> = (0..data.classes().len() as Class)
            .filter(|&class| {
                pools.iter().all(|pool| !pool.samples.classes[usize::from(class)].is_empty())
            })
            .collect();
        let per_device = match self.classes_per_device {
            ClassesPerDevice::Count(count) => count,
            ClassesPerDevice::All(_) => everywhere.len(),
        };
        check_class_count(per_device, everywhere.len())?;
        if let Some(count) = self.unlabeled_classes.filter(|c| !(1..=per_device).contains(c)) {
            let message = format!("{count} requested, and a device with labels has {per_device}");
            return Err(Error::setting("unlabeled-classes", message));
        }

        let own_pool: Vec<usize> = (sides.iter().zip(of_sides))
            .flat_map(|(side, pools)| {
                let tossed = toss(side.devices.len(), pools.len(), rng);
                tossed.into_iter().map(move |pool| pools.start + pool)
            })
            .collect();
        let classes = self.draw_classes(&everywhere, per_device, rng);
        let mut hands = Vec::with_capacity(self.devices);
        for (device, (pool, classes)) in own_pool.into_iter().zip(classes).enumerate() {
            let (labeled, hidden) = self.draw_sizes(device, rng)?;
            let shares = dirichlet(self.alpha, classes.len(), rng)?;
            let asked = labeled + hidden;
            let samples = self.take(&mut pools[pool].samples, &classes, &shares, asked, rng);
            let samples = samples.map_err(|there| {
                self.too_few(data, device, &pools[pool].domains, &classes, there, asked)
            })?;
            hands.push(Hand { samples, labeled });
        }
        if self.arrangement == Arrangement::Mixed {
            for side in &sides {
                every_device_has_every_domain(data, &hands, side)?;
            }
        }
        Ok(hands)
    }

    /// Devices with labels and devices without, where these have domains of their own; else all devices.
    fn sides(&self, data: &Dataset) -> Result<Vec<Side>, Error> {
        let all = 0..data.domains().len();
        if self.unlabeled_domains.is_empty() {
            return Ok(vec![Side { devices: 0..self.devices, domains: all.collect() }]);
        }
        let wrong = |message: String| Error::setting("unlabeled-domains", message);
        let there = || format!("the domains are {}", data.domains().join(", "));
        if let Some(name) = self.unlabeled_domains.iter().find(|&d| !data.domains().contains(d)) {
            return Err(wrong(format!("the data has no domain {name:?}")).with_hint(there()));
        }
        let (unseen, seen): (Vec<usize>, Vec<usize>) =
            all.partition(|&domain| self.unlabeled_domains.contains(&data.domains()[domain]));
        if seen.is_empty() {
            let message = "no domain is left for the devices with labels".to_owned();
            return Err(wrong(message).with_hint(there()));
        }
        let labeled = self.labeled_devices();
        let sides = vec![
            Side { devices: 0..labeled, domains: seen },
            Side { devices: labeled..self.devices, domains: unseen },
        ];
        for (side, which) in sides.iter().zip(["labeled", "unlabeled"]) {
            let least = if self.arrangement == Arrangement::Split { side.domains.len() } else { 1 };
            if side.devices.len() < least {
                let (devices, names) = (side.devices.len(), names(data, &side.domains));
                return Err(wrong(format!("{devices} {which} devices for {names}"))
                    .with_hint("change devices or labeled-devices"));
            }
        }
        Ok(sides)
    }

    fn check(&self, data: &Dataset) -> Result<(), Error> {
        check_devices(self.devices, data)?;
        for (setting, value) in [
            ("alpha", self.alpha),
            ("scale", self.scale),
            ("labeled-samples", self.labeled_samples),
            ("unlabeled-device-samples", self.unlabeled_device_samples),
        ] {
            check_positive(setting, value)?;
        }
        for (setting, value) in
            [("hidden-samples", self.hidden_samples), ("deviation", self.deviation)]
        {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(Error::setting(setting, format!("{value} is not 0 or more")));
            }
        }
        if !(1..=self.devices).contains(&self.labeled_devices()) {
            let message = format!("{} of {} devices", self.labeled_devices(), self.devices);
            return Err(Error::setting("labeled-devices", message)
                .with_hint("at least one device needs labels, or no device can train"));
        }
        if self.mislabeled_devices > self.labeled_devices() {
            let (wrong, labeled) = (self.mislabeled_devices, self.labeled_devices());
            let message = format!("{wrong} requested, and {labeled} devices have labels");
            return Err(Error::setting("mislabeled-devices", message));
        }
        let domains = data.domains().len();
        match self.arrangement {
            Arrangement::Single if domains > 1 => {
                let message = format!("single is for one domain, and the data has {domains}");
                Err(Error::setting("arrangement", message).with_hint("use mixed or split"))
            }
            Arrangement::Mixed | Arrangement::Split if domains < 2 => {
                let message = format!("{domains} domain cannot be mixed or split");
                Err(Error::setting("arrangement", message).with_hint("use single"))
            }
            Arrangement::Split if self.devices < domains => {
                let message = format!("{} devices for {domains} domains", self.devices);
                Err(Error::setting("devices", message)
                    .with_hint("split gives every domain a device"))
            }
            _ => Ok(()),
        }
    }

    /// The classes of every device.
    fn draw_classes(&self, all: &[Class], count: usize, rng: &mut ChaCha8Rng) -> Vec<Vec<Class>> {
        let mut sets: Vec<Vec<Class>> = Vec::with_capacity(self.devices);
        let labeled = self.labeled_devices();
        for device in 0..self.devices {
            let mut set: Vec<Class> = match device < labeled {
                true => all.sample(rng, count).copied().collect(),
                false => {
                    let set = &sets[rng.random_range(0..labeled)];
                    match self.unlabeled_classes {
                        Some(count) => set.sample(rng, count).copied().collect(),
                        None => set.clone(),
                    }
                }
            };
            set.sort_unstable();
            sets.push(set);
        }
        sets
    }

    /// How many samples with and without a label; at least one with on a labeled device.
    fn draw_sizes(&self, device: usize, rng: &mut ChaCha8Rng) -> Result<(usize, usize), Error> {
        let mut draw = |mean: f64, least: f64| {
            let mean = mean * self.scale;
            let normal = Normal::new(mean, mean * self.deviation)
                .map_err(|e| Error::setting("deviation", e.to_string()))?;
            Ok::<usize, Error>(normal.sample(rng).round().max(least) as usize)
        };
        if device < self.labeled_devices() {
            Ok((draw(self.labeled_samples, 1.0)?, draw(self.hidden_samples, 0.0)?))
        } else {
            Ok((0, draw(self.unlabeled_device_samples, 1.0)?))
        }
    }

    /// Draws from a pool; on failure, what each class has there.
    fn take(
        &self,
        pool: &mut ByClass,
        classes: &[Class],
        shares: &[f64],
        asked: usize,
        rng: &mut impl Rng,
    ) -> Result<Vec<usize>, Vec<usize>> {
        let there: Vec<usize> =
            classes.iter().map(|&class| pool.classes[usize::from(class)].len()).collect();
        let counts = apportion(shares, asked, &there).ok_or(there)?;
        let mut samples = Vec::with_capacity(asked);
        for (&class, count) in classes.iter().zip(counts) {
            let of_class = &mut pool.classes[usize::from(class)];
            if self.disjoint {
                samples.extend(of_class.drain(of_class.len() - count..));
            } else {
                samples.extend_from_slice(of_class.partial_shuffle(rng, count).0);
            }
        }
        Ok(samples)
    }

    fn too_few(
        &self,
        data: &Dataset,
        device: usize,
        domains: &[usize],
        classes: &[Class],
        there: Vec<usize>,
        asked: usize,
    ) -> Error {
        let domains = names(data, domains);
        let left = if self.disjoint { " left" } else { "" };
        let each: Vec<String> = classes
            .iter()
            .zip(&there)
            .map(|(&class, there)| format!("{}: {there}", data.classes()[usize::from(class)]))
            .collect();
        let message = format!(
            "device d{} asks for {asked} samples of {domains}, and its classes have {}{left} ({})",
            device + 1,
            there.iter().sum::<usize>(),
            each.join(", ")
        );
        Error::setting("scale", message).with_hint(
            "lower scale, use fewer devices, or let devices share samples with disjoint = false",
        )
    }
}

impl Pool {
    fn of(data: &Dataset, domains: Vec<usize>, rng: &mut ChaCha8Rng) -> Pool {
        let samples = ByClass::of(data, |sample| domains.contains(&data.domain(sample)), rng);
        Pool { domains, samples }
    }
}

/// The pool of each of so many devices: at random, but none without a device.
fn toss(devices: usize, pools: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
    let mut own: Vec<usize> = (0..devices).map(|_| rng.random_range(0..pools)).collect();
    // One device at random is given to each pool that the coin forgot.
    let mut devices: Vec<usize> = (0..devices).collect();
    devices.shuffle(rng);
    for pool in 0..pools {
        let count = |own: &[usize], pool| own.iter().filter(|&&p| p == pool).count();
        if count(&own, pool) == 0
            && let Some(&device) = devices.iter().find(|&&d| count(&own, own[d]) > 1)
        {
            own[device] = pool;
        }
    }
    own
}

fn names(data: &Dataset, domains: &[usize]) -> String {
    let names: Vec<&str> = domains.iter().map(|&domain| data.domains()[domain].as_str()).collect();
    names.join(" and ")
}

fn every_device_has_every_domain(data: &Dataset, hands: &[Hand], side: &Side) -> Result<(), Error> {
    for device in side.devices.clone() {
        let hand = &hands[device];
        for &domain in &side.domains {
            let name = &data.domains()[domain];
            if !hand.samples.iter().any(|&s| data.domain(s) == domain) {
                let message = format!(
                    "device d{} drew {} samples and none of {name}",
                    device + 1,
                    hand.samples.len()
                );
                return Err(Error::setting("arrangement", message)
                    .with_hint("raise scale, use another seed, or add samples of that domain"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
