//! Which samples each device holds, and which of them it has labels for.
//!
//! One file per partitioner, its origin in the first line. All draw from a seed: the same data,
//! scheme and seed give the same partition on every machine of one architecture, and the share of
//! labels does not change who holds what.

mod by_domain;
mod dirichlet;
pub(crate) mod draw;
mod iid;
mod paper;
mod pathological;
mod shard;
#[cfg(test)]
pub(crate) mod testing;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

pub use by_domain::ByDomain;
pub use dirichlet::Dirichlet;
pub use iid::Iid;
pub use paper::{All, Arrangement, ClassesPerDevice, Paper};
pub use pathological::{ClassAssignment, Pathological};
pub use shard::Shard;

use crate::labels::{self, Labeled};
use crate::{Dataset, Error};

/// The paper's number of devices, and flwr-datasets' in its examples.
const DEVICES: usize = 10;

/// Samples that a device should have at least, where a table does not say which device holds a row.
const SAMPLES_PER_DEVICE: usize = 20;

/// A partitioner with its settings. In files a table with `kind` and the settings, all of which have
/// defaults: `kind = "dirichlet"`, `alpha = 0.1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Scheme {
    /// The network of the paper's experiments.
    Paper(Paper),
    /// A random sample of everything for each device.
    Iid(Iid),
    /// Each class in proportions from a Dirichlet distribution.
    Dirichlet(Dirichlet),
    /// Shards of samples sorted by class.
    Shard(Shard),
    /// A fixed number of classes for each device.
    Pathological(Pathological),
    /// The samples of each domain for one or more devices of its own.
    ByDomain(ByDomain),
}

impl Default for Scheme {
    /// Returns the paper's network of ten devices.
    fn default() -> Scheme {
        Scheme::Paper(Paper::default())
    }
}

impl Scheme {
    /// The default for some data: a table that names its devices has already dealt its samples. Those of another table are dealt at
    /// random, and half of the devices hide their labels: if all had labels there would be nothing to decide.
    pub fn for_data(data: &Dataset) -> Scheme {
        if data.domain_column().is_some() {
            Scheme::ByDomain(ByDomain::default())
        } else if !data.columns().is_empty() {
            let devices = (data.len() / SAMPLES_PER_DEVICE).clamp(2, DEVICES);
            Scheme::Iid(Iid { devices, labeled: Labeled::Some { devices: 0.5 } })
        } else {
            Scheme::default()
        }
    }

    /// Says how [`Scheme::for_data`] deals the samples of a table, for users who did not say how to deal them.
    pub fn told_for_data(data: &Dataset) -> Option<String> {
        match (Scheme::for_data(data), data.domain_column()) {
            (_, Some(column)) => {
                Some(format!("The column {column} says which device holds which sample"))
            }
            (Scheme::Iid(iid), None) => Some(format!(
                "No column says which device holds which sample, so they are dealt at random to {} devices, about half of which hide their labels",
                iid.devices
            )),
            _ => None,
        }
    }

    /// The names of all kinds, as they are written in files.
    pub const KINDS: [&'static str; 6] =
        ["paper", "iid", "dirichlet", "shard", "pathological", "by-domain"];

    /// Returns the name of the partitioner.
    pub fn kind(&self) -> &'static str {
        match self {
            Scheme::Paper(_) => "paper",
            Scheme::Iid(_) => "iid",
            Scheme::Dirichlet(_) => "dirichlet",
            Scheme::Shard(_) => "shard",
            Scheme::Pathological(_) => "pathological",
            Scheme::ByDomain(_) => "by-domain",
        }
    }

    /// Whether every sample is dealt to some device.
    pub fn is_complete(&self) -> bool {
        !matches!(self, Scheme::Paper(_) | Scheme::Pathological(_))
    }

    /// Whether no sample is dealt to two devices.
    pub fn is_disjoint(&self) -> bool {
        !matches!(self, Scheme::Paper(Paper { disjoint: false, .. }))
    }

    /// How many devices, from the first on, have wrong labels: of each sample, the class after its own.
    pub fn mislabeled_devices(&self) -> usize {
        match self {
            Scheme::Paper(paper) => paper.mislabeled_devices,
            _ => 0,
        }
    }

    /// The fraction of labels that each device keeps; the paper's partitioner counts them instead.
    fn labeled(&self) -> Option<&Labeled> {
        match self {
            Scheme::Paper(_) => None,
            Scheme::Iid(iid) => Some(&iid.labeled),
            Scheme::Dirichlet(dirichlet) => Some(&dirichlet.labeled),
            Scheme::Shard(shard) => Some(&shard.labeled),
            Scheme::Pathological(pathological) => Some(&pathological.labeled),
            Scheme::ByDomain(by_domain) => Some(&by_domain.labeled),
        }
    }
}

/// The samples of a data set as they are dealt to devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// The devices in order; every one has at least one sample.
    pub devices: Vec<Share>,
}

/// What one device holds: indices of samples in the data set, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// `d1`, `d2`, …, or the domain's name.
    pub name: String,
    /// The samples whose labels the device knows.
    pub labeled: Vec<usize>,
    /// The samples whose labels, where there are any, are hidden from the method.
    pub unlabeled: Vec<usize>,
}

impl Share {
    /// Returns all samples of the device, the labeled ones first.
    pub fn samples(&self) -> impl Iterator<Item = usize> {
        self.labeled.iter().chain(&self.unlabeled).copied()
    }

    /// Returns the number of samples that the device has.
    pub fn len(&self) -> usize {
        self.labeled.len() + self.unlabeled.len()
    }

    /// Whether the device has no sample, which no partition's device is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Deals a data set to devices.
///
/// # Errors
/// A setting out of its range, or one that this data cannot satisfy: the error names the setting, the
/// class or domain with too few samples, how many there are and how many are needed.
pub fn deal(data: &Dataset, scheme: &Scheme, seed: u64) -> Result<Partition, Error> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut names = None;
    let mut kept = None;
    let hands: Vec<Vec<usize>> = match scheme {
        Scheme::Paper(paper) => {
            let hands = paper.deal(data, &mut rng)?;
            kept = Some(hands.iter().map(|hand| hand.labeled).collect::<Vec<usize>>());
            hands.into_iter().map(|hand| hand.samples).collect()
        }
        Scheme::Iid(iid) => iid.deal(data, &mut rng)?,
        Scheme::Dirichlet(dirichlet) => dirichlet.deal(data, &mut rng)?,
        Scheme::Shard(shard) => shard.deal(data, &mut rng)?,
        Scheme::Pathological(pathological) => pathological.deal(data, &mut rng)?,
        Scheme::ByDomain(by_domain) => {
            names = Some(by_domain.names(data));
            by_domain.deal(data, &mut rng)?
        }
    };
    if let Some(labeled) = scheme.labeled() {
        labeled.check(hands.len())?;
        rng.set_stream(u64::MAX);
        let shares = labeled.shares(hands.len(), &mut rng);
        let counts = hands.iter().zip(shares).map(|(h, share)| labels::count(data, h, share));
        kept = Some(counts.collect());
    }
    let names =
        names.unwrap_or_else(|| (1..=hands.len()).map(|device| format!("d{device}")).collect());
    let mut devices = Vec::with_capacity(hands.len());
    for (k, (name, (hand, kept))) in
        names.into_iter().zip(hands.iter().zip(kept.unwrap_or_default())).enumerate()
    {
        if hand.is_empty() {
            let message = format!("device {name} would have no sample");
            return Err(Error::setting("devices", message).with_hint("use fewer devices"));
        }
        // A stream of its own for each device's labels.
        rng.set_stream(1 + k as u64);
        let (labeled, unlabeled) = labels::split(data, hand, kept, &mut rng);
        devices.push(Share { name, labeled, unlabeled });
    }
    Ok(Partition { devices })
}

fn check_devices(devices: usize, data: &Dataset) -> Result<(), Error> {
    if (1..=data.len()).contains(&devices) {
        return Ok(());
    }
    let message = format!("{devices} requested, but the data has {} samples", data.len());
    Err(Error::setting("devices", message).with_hint("every device needs a sample"))
}

fn check_positive(setting: &str, value: f64) -> Result<(), Error> {
    if value > 0.0 && value.is_finite() {
        return Ok(());
    }
    Err(Error::setting(setting, format!("{value} is not above 0")))
}

fn check_class_count(asked: usize, classes: usize) -> Result<(), Error> {
    if (1..=classes).contains(&asked) {
        return Ok(());
    }
    let message = format!("{asked} requested, but the data has {classes} classes");
    let hint = format!(
        "choose at most {classes}; samples dealt at random: partition.kind = \"iid\"; a table of your own: stlf new NAME --features TABLE"
    );
    Err(Error::setting("classes-per-device", message).with_hint(hint))
}
