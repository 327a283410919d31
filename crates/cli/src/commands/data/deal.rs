//! Counts of a partition: devices by classes and domains.

use serde::Serialize;
use stlf_data::Dataset;
use stlf_data::partition::{Partition, Scheme, Share};

/// The document that `stlf data inspect --format json` writes.
#[derive(Serialize)]
pub(crate) struct Deal<'a> {
    format: &'static str,
    pub(crate) scheme: &'a Scheme,
    pub(crate) seed: u64,
    /// The number of samples of the data set.
    pub(crate) samples: usize,
    /// The number of different samples that at least one device holds.
    pub(crate) dealt: usize,
    pub(crate) classes: &'a [String],
    pub(crate) domains: &'a [String],
    pub(crate) devices: Vec<Device<'a>>,
}

/// Counts of the samples that one device holds.
#[derive(Serialize)]
pub(crate) struct Device<'a> {
    pub(crate) name: &'a str,
    pub(crate) labeled: usize,
    pub(crate) unlabeled: usize,
    /// The number of samples of each class whose labels the device knows.
    pub(crate) labeled_by_class: Vec<usize>,
    /// The number of samples of each class whose labels are hidden from the device.
    pub(crate) hidden_by_class: Vec<usize>,
    /// The number of samples whose class nobody knows.
    pub(crate) without_class: usize,
    pub(crate) by_domain: Vec<usize>,
}

impl<'a> Deal<'a> {
    /// Counts the samples of a partition.
    pub(crate) fn count(
        data: &'a Dataset,
        scheme: &'a Scheme,
        seed: u64,
        partition: &'a Partition,
    ) -> Deal<'a> {
        let mut held = vec![false; data.len()];
        partition.devices.iter().flat_map(Share::samples).for_each(|s| held[s] = true);
        Deal {
            format: "stlf-deal/1",
            scheme,
            seed,
            samples: data.len(),
            dealt: held.iter().filter(|&&is_held| is_held).count(),
            classes: data.classes(),
            domains: data.domains(),
            devices: partition.devices.iter().map(|share| Device::count(data, share)).collect(),
        }
    }
}

impl<'a> Device<'a> {
    fn count(data: &Dataset, share: &'a Share) -> Device<'a> {
        let by_class = |samples: &[usize]| {
            let mut counts = vec![0; data.classes().len()];
            let classes = samples.iter().filter_map(|&s| data.label(s));
            classes.for_each(|class| counts[usize::from(class)] += 1);
            counts
        };
        let mut by_domain = vec![0; data.domains().len()];
        share.samples().for_each(|sample| by_domain[data.domain(sample)] += 1);
        let (labeled_by_class, hidden_by_class) =
            (by_class(&share.labeled), by_class(&share.unlabeled));
        Device {
            name: &share.name,
            labeled: share.labeled.len(),
            unlabeled: share.unlabeled.len(),
            without_class: share.unlabeled.len() - hidden_by_class.iter().sum::<usize>(),
            labeled_by_class,
            hidden_by_class,
            by_domain,
        }
    }

    /// Returns the number of samples of a class, with and without a label.
    pub(crate) fn of_class(&self, class: usize) -> usize {
        self.labeled_by_class[class] + self.hidden_by_class[class]
    }

    /// Returns the domains of its samples in words: `mnist`, or `mnist 120, usps 30`.
    pub(crate) fn domains(&self, names: &[String]) -> String {
        let own: Vec<(&String, usize)> =
            names.iter().zip(self.by_domain.iter().copied()).filter(|(_, n)| *n > 0).collect();
        match own[..] {
            [(name, _)] => name.clone(),
            _ => {
                let words: Vec<String> =
                    own.iter().map(|(name, n)| format!("{name} {n}")).collect();
                words.join(", ")
            }
        }
    }
}
