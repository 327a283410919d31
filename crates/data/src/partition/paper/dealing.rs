//! How samples are dealt as the paper says.

use std::ops::Range;

use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Normal};

use super::{Arrangement, ClassesPerDevice, Paper};
use crate::partition::draw::{ByClass, apportion, dirichlet};
use crate::partition::{check_class_count, check_devices, check_positive};
use crate::{Class, Dataset, Error};

/// What one device holds, and how many labels it keeps.
pub(in crate::partition) struct Hand {
    pub(in crate::partition) samples: Vec<usize>,
    pub(in crate::partition) labeled: usize,
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
    pub(in crate::partition) fn deal(
        &self,
        data: &Dataset,
        rng: &mut ChaCha8Rng,
    ) -> Result<Vec<Hand>, Error> {
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

    /// Draws the set of classes that every device has.
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
