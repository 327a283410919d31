//! What a device has published with base noise alone, of which samples, and whether it may publish others.
//!
//! The difference of two means gives the samples away in which they differ, if these are few. So a device that has published means goes on publishing the same ones
//! until its data are different enough: all publications together, and everything that can be computed from them, must keep to the
//! [rule](stlf_method::divergence::disclosure) that one publication keeps to.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use stlf_method::divergence::disclosure::Limit;
use stlf_method::divergence::gaussian_mechanism::composed;
use stlf_method::divergence::leverage::{Alike, AsOften, different_behind_last, leverages};
use stlf_method::divergence::sketch::{Settings, Sketch};

use crate::identity::hex;

const FORMAT: &str = "stlf-published/1";

/// More of a number than this is no rounding.
const ROUNDING: f64 = 1e-6;

/// Means of a device's data as they are now.
#[derive(Debug, Clone, PartialEq)]
pub struct CurrentMeans {
    /// What the features follow from, hashed.
    features: String,
    sketch: Sketch,
    samples: SampleNames,
    /// Returns how far one sample moves them at most, in standard deviations of their noise.
    ratio: f64,
}

impl CurrentMeans {
    /// Of samples with these [names](sample_names), with noise of this ratio.
    pub(crate) fn new(
        features: &[u8],
        sketch: Sketch,
        samples: SampleNames,
        ratio: f64,
    ) -> CurrentMeans {
        CurrentMeans { features: hex(features), sketch, samples, ratio }
    }
}

/// By which a device's samples are known again in its records ([`Device::sample_names`](crate::Device::sample_names)). Only the device itself can compute them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SampleNames {
    /// A name for each. A sample that is there twice has two.
    pub(crate) all: BTreeSet<String>,
    /// Of each that repeats another, the name of the one that it repeats.
    pub(crate) repeated: BTreeMap<String, String>,
}

/// Returns what samples with these bytes are known by in records. Whoever knows `key` can find out whether a sample is among them.
pub(crate) fn sample_names(samples: impl Iterator<Item = Vec<u8>>, key: &[u8; 32]) -> SampleNames {
    let mut seen: BTreeMap<[u8; 32], u64> = BTreeMap::new();
    let mut names = SampleNames::default();
    for bytes in samples {
        let hash = Sha256::new_with_prefix(key).chain_update(bytes);
        let times = seen.entry(hash.clone().finalize().into()).or_default();
        *times += 1;
        let name =
            |times: u64| hex(&hash.clone().chain_update(times.to_le_bytes()).finalize()[..16]);
        if *times > 1 {
            names.repeated.insert(name(*times), name(1));
        }
        names.all.insert(name(*times));
    }
    names
}

/// What was published once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Published {
    features: String,
    samples: u64,
    /// How many of them [count](stlf_method::divergence::disclosure::independent), if some are there again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    counted: Option<u64>,
    mean: Vec<f32>,
    /// How far one sample moves it at most, in standard deviations of its noise. Records of earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
}

impl Published {
    /// Where nothing else is known it has base noise.
    fn ratio(&self) -> f64 {
        let settings =
            Settings::default().with(|s| (s.features, s.base_noise) = (self.mean.len(), true));
        self.ratio.unwrap_or_else(|| settings.ratio(self.samples))
    }
}

/// Everything that a device has published with base noise alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    format: String,
    publications: Vec<Published>,
    /// Of every sample, the publications that it was in.
    samples: BTreeMap<String, Vec<usize>>,
    /// Of each sample that repeats another, the name of that.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    repeated: BTreeMap<String, String>,
}

impl Default for Record {
    fn default() -> Record {
        let (samples, repeated) = (BTreeMap::new(), BTreeMap::new());
        Record { format: FORMAT.to_owned(), publications: Vec::new(), samples, repeated }
    }
}

/// What a device publishes.
#[derive(Debug, Clone, PartialEq)]
pub struct Admitted {
    /// Everything that it has published then.
    pub record: Record,
    /// The means of random features that it publishes.
    pub sketch: Sketch,
    /// In how many samples the data behind the means differ from the device's data as they are now.
    pub behind: usize,
}

/// The same samples were published by other features, and by these as well others could rebuild them.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(
    "this device has published means of its samples with other settings; together with these they would tell {told:.2} numbers about a sample. {most} are \
     allowed in all, and at a time half of what is left"
)]
pub struct Exhausted {
    /// The numbers that would be told about some sample.
    pub told: f64,
    /// Those that may be.
    pub most: f64,
}

impl Record {
    /// Reads a record.
    ///
    /// # Errors
    /// Says why these bytes are none.
    pub fn read(bytes: &[u8]) -> Result<Record, String> {
        let record: Record = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        if record.format != FORMAT {
            return Err(format!("this is {:?}, not {FORMAT:?}", record.format));
        }
        let known = record.publications.len();
        let ascends = |inside: &Vec<usize>| {
            inside.is_sorted_by(|a, b| a < b) && inside.last().is_some_and(|&k| k < known)
        };
        let count = |k: usize| record.samples.values().filter(|inside| inside.contains(&k)).count();
        let is_ratio = |p: &Published| p.ratio.is_none_or(|ratio| ratio > 0.0 && ratio.is_finite());
        let fits = |(k, p): (usize, &Published)| {
            p.samples > 0 && count(k) as u64 == p.samples && is_ratio(p)
        };
        let are_ones = record.samples.values().all(ascends);
        match are_ones && record.publications.iter().enumerate().all(fits) {
            true => Ok(record),
            false => Err("a publication has other samples than it says".to_owned()),
        }
    }

    /// The number of different publications.
    pub fn publications(&self) -> usize {
        self.publications.len()
    }

    /// How far one sample moves all publications together at most, in standard deviations of their noise.
    pub fn ratio(&self) -> f64 {
        composed(self.publications.iter().map(Published::ratio))
    }

    /// The most numbers that all publications together tell about one sample.
    pub fn most_told(&self) -> f64 {
        self.told(&self.groups()).into_iter().fold(0.0, f64::max)
    }

    /// Returns what a device publishes whose data are these now: the same means as before if they are of the same samples; else new ones if all
    /// publications then keep to `limit`; else again what it published last.
    ///
    /// # Errors
    /// It has published nothing by these features that it could publish again.
    pub fn with(&self, means: CurrentMeans, limit: Limit) -> Result<Admitted, Exhausted> {
        let same_features = |k: &usize| self.publications[*k].features == means.features;
        let earlier: Vec<usize> = (0..self.publications.len()).filter(same_features).collect();
        if let Some(&same) = earlier.iter().find(|&&k| self.behind(k, &means) == 0) {
            return Ok(self.again(same, 0));
        }
        match (self.allowed(&means, limit), earlier.last()) {
            (Ok(record), _) => Ok(Admitted { record, sketch: means.sketch, behind: 0 }),
            (Err(_), Some(&last)) => Ok(self.again(last, self.behind(last, &means))),
            (Err(told), None) => Err(Exhausted { told, most: limit.most }),
        }
    }

    fn again(&self, publication: usize, behind: usize) -> Admitted {
        let Published { samples, counted, mean, .. } = &self.publications[publication];
        let sketch =
            Sketch { samples: counted.unwrap_or(*samples), mean: mean.clone(), covariance: None };
        Admitted { record: self.clone(), sketch, behind }
    }

    /// In how many samples a publication and a device's data differ.
    fn behind(&self, publication: usize, means: &CurrentMeans) -> usize {
        let Published { samples, .. } = self.publications[publication];
        let was = |id: &&String| self.samples.get(*id).is_some_and(|k| k.contains(&publication));
        let common = means.samples.all.iter().filter(was).count();
        samples as usize + means.samples.all.len() - 2 * common
    }

    /// The record with one more publication, or how many numbers it would tell about some sample. What follows the first one uses at most half of
    /// what is left for each sample, so that something is left for the next; and what it adds to them is about different samples, not about one that is there often.
    fn allowed(&self, means: &CurrentMeans, limit: Limit) -> Result<Record, f64> {
        let mut record = self.clone();
        let next = self.publications.len();
        let CurrentMeans { features, sketch, samples: names, ratio } = means;
        let (features, samples, mean) =
            (features.clone(), names.all.len() as u64, sketch.mean.clone());
        let counted = Some(sketch.samples).filter(|&counted| counted != samples);
        let published = Published { features, samples, counted, mean, ratio: Some(*ratio) };
        record.publications.push(published);
        let is_first = !names.all.iter().any(|id| self.samples.contains_key(id));
        for id in &names.all {
            record.samples.entry(id.clone()).or_default().push(next);
        }
        record.repeated.extend(names.repeated.clone());
        let groups = record.groups();
        let Limit { most, .. } = limit;
        let (before, after) = (self.told(&groups), record.told(&groups));
        let left = |before: f64| if is_first { most - before } else { (most - before) / 2.0 };
        let is_fine = |(&b, &a): (&f64, &f64)| a - b <= left(b).max(0.0) + ROUNDING;
        if !before.iter().zip(&after).all(is_fine) {
            return Err(after.into_iter().fold(0.0, f64::max));
        }
        let told_by_last = record.told_by_last();
        if told_by_last > most + ROUNDING { Err(told_by_last) } else { Ok(record) }
    }

    /// The samples, those together that were in the same publications and count alike: one that is there again does not.
    fn groups(&self) -> Vec<Alike> {
        let mut groups: BTreeMap<(&Vec<usize>, bool), usize> = BTreeMap::new();
        for (name, inside) in &self.samples {
            *groups.entry((inside, self.repeated.contains_key(name))).or_default() += 1;
        }
        let alike = |((inside, is_repeated), samples): ((&Vec<usize>, bool), usize)| Alike {
            samples,
            counts: if is_repeated { 0.0 } else { 1.0 },
            inside: inside.clone(),
        };
        groups.into_iter().map(alike).collect()
    }

    /// The numbers about each of the different samples by which the last publication differs from those before it.
    fn told_by_last(&self) -> f64 {
        let Some(last) = self.publications.last() else { return 0.0 };
        let alike = |k: &usize| self.publications[*k].features == last.features;
        let publications: Vec<usize> = (0..self.publications.len()).filter(alike).collect();
        let mut times: BTreeMap<&str, BTreeMap<usize, usize>> = BTreeMap::new();
        for (name, inside) in &self.samples {
            let sample = times.entry(self.repeated.get(name).unwrap_or(name)).or_default();
            inside.iter().for_each(|k| *sample.entry(*k).or_default() += 1);
        }
        let mut as_often: BTreeMap<BTreeMap<usize, usize>, usize> = BTreeMap::new();
        times.into_values().for_each(|times| *as_often.entry(times).or_default() += 1);
        let as_often: Vec<AsOften> =
            as_often.into_iter().map(|(times, samples)| AsOften { samples, times }).collect();
        last.mean.len() as f64 / different_behind_last(&as_often, &publications)
    }

    /// Returns how many numbers all publications together tell about a sample of each group. Different features tell different numbers.
    fn told(&self, groups: &[Alike]) -> Vec<f64> {
        let mut by_features: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (k, publication) in self.publications.iter().enumerate() {
            by_features.entry(&publication.features).or_default().push(k);
        }
        let mut told = vec![0.0; groups.len()];
        for publications in by_features.values() {
            let means = self.publications[publications[0]].mean.len() as f64;
            let leverages = leverages(groups, publications);
            told.iter_mut().zip(leverages).for_each(|(told, leverage)| *told += means * leverage);
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Of a sample, with ten means of more than ten columns each: 100 samples for a publication.
    const MOST: Limit = Limit { most: 0.1 };

    /// Means of samples that are known by their numbers, by the features of this name.
    fn means(samples: impl IntoIterator<Item = u32>, features: u8) -> CurrentMeans {
        let inputs: Vec<f32> = samples.into_iter().map(|x| x as f32).collect();
        let mean = vec![inputs.iter().sum::<f32>() / 3.0; 10];
        let sketch = Sketch { samples: inputs.len() as u64, mean, covariance: None };
        let bytes = inputs.iter().map(|x| x.to_le_bytes().to_vec());
        CurrentMeans::new(&[features], sketch, sample_names(bytes, &[7; 32]), 2.5)
    }

    fn published(record: &Record, samples: std::ops::Range<u32>) -> Admitted {
        record.with(means(samples, 1), MOST).unwrap()
    }

    #[test]
    fn the_same_samples_are_published_alike_in_any_order() {
        let first = published(&Record::default(), 0..300);
        assert_eq!((first.record.publications(), first.behind), (1, 0));
        let again = first.record.with(means((0..300).rev(), 1), MOST).unwrap();
        assert_eq!(again, first);
        let two = means([5, 5], 1);
        assert_eq!(two.samples.all.len(), 2, "a sample that is there twice is two");
        assert_eq!(two.samples.repeated.len(), 1);
    }

    #[test]
    fn few_changes_are_not_published_and_many_are() {
        let first = published(&Record::default(), 0..300);
        for (samples, behind) in
            [(0..301, 1), (1..300, 1), (1..301, 2), (20..320, 40), (0..450, 150)]
        {
            let next = published(&first.record, samples);
            let expected = Admitted { behind, ..first.clone() };
            assert_eq!(next, expected, "{behind}");
        }
        for samples in [0..520, 150..450, 1_000..1_100] {
            let next = published(&first.record, samples.clone());
            assert_eq!((next.record.publications(), next.behind), (2, 0), "{samples:?}");
            assert_eq!(next.sketch, means(samples, 1).sketch);
            assert!(next.record.most_told() <= MOST.most + 1e-9);
        }
        // Neither is what lies between two that were published.
        let second = published(&first.record, 0..520);
        assert_eq!(published(&second.record, 0..301).behind, 219);
        assert_eq!(published(&second.record, 0..300).sketch, first.sketch);
    }

    #[test]
    fn a_sample_that_is_there_again_and_again_is_no_crowd() {
        let first = published(&Record::default(), 0..300);
        let with = |more: Vec<u32>| {
            let next = first.record.with(means((0..300).chain(more), 1), MOST).unwrap();
            (next.record.publications(), next.behind)
        };
        assert_eq!(with((300..540).collect()), (2, 0));
        for often in [1, 79, 240, 1_200, 3_000] {
            assert_eq!(with(vec![300; often]), (1, often), "{often}");
        }
        // Two or three that are there often are no crowd either.
        assert_eq!(with((0..3_000).map(|k| 300 + k % 3).collect()), (1, 3_000));
        // Each of many may be there often.
        assert_eq!(with((0..3_000).map(|k| 300 + k % 240).collect()), (2, 0));
        // One that is half of all is no crowd the first time either, and a few times is nothing.
        let often = |count: u32, times| means((0..count).chain(vec![7; times]), 1);
        assert!(Record::default().with(often(300, 300), MOST).is_err());
        let first = Record::default().with(often(300, 9), MOST).unwrap();
        let next = first.record.with(often(700, 9), MOST).unwrap();
        assert_eq!((next.record.publications(), next.behind), (2, 0));
        // All of a table ten times are no more than once.
        let ten_times = |count: u32| means((0..10 * count).map(|k| k % count), 1);
        assert!(Record::default().with(ten_times(99), MOST).is_err());
        let first = Record::default().with(ten_times(100), MOST).unwrap();
        assert_eq!((first.record.publications(), first.sketch), (1, ten_times(100).sketch));
        // It stays on disk which samples repeat others.
        let text = serde_json::to_string(&next.record).unwrap();
        assert_eq!(Record::read(text.as_bytes()), Ok(next.record));
    }

    #[test]
    fn other_features_count_together() {
        let all = |features| means(0..150, features);
        let first = Record::default().with(all(1), MOST).unwrap().record;
        assert!((first.most_told() - 10.0 / 150.0).abs() < 1e-9);
        let refused = first.with(all(2), MOST).unwrap_err();
        assert!((refused.told - 20.0 / 150.0).abs() < 1e-9, "{refused}");
        // With samples enough there is room for both, and for no third.
        let many = |features| means(0..320, features);
        let first = Record::default().with(many(1), MOST).unwrap().record;
        let second = first.with(many(2), MOST).unwrap().record;
        assert!(second.with(many(3), MOST).is_err());
        assert_eq!(second.with(many(1), MOST).unwrap().record, second);
    }

    #[test]
    fn all_publications_together_spend_what_their_noise_leaves() {
        let first = published(&Record::default(), 0..300);
        let second = published(&first.record, 300..600);
        assert!((second.record.ratio() - 2.5 * 2f64.sqrt()).abs() < 1e-12);
        // A record of an earlier version says nothing of noise: ten means of 300 samples have base noise.
        let text = serde_json::to_string(&first.record).unwrap().replace(",\"ratio\":2.5", "");
        let earlier = Record::read(text.as_bytes()).unwrap();
        let expected = 2.0 * (63.0_f64 * 10.0 / 300.0).sqrt();
        assert!((earlier.ratio() - expected).abs() < 1e-9, "{}", earlier.ratio());
    }

    #[test]
    fn what_is_no_record_is_never_an_empty_one() {
        let good = published(&Record::default(), 0..120).record;
        let text = serde_json::to_string(&good).unwrap();
        assert_eq!(Record::read(text.as_bytes()), Ok(good));
        for bad in [
            "",
            "{}",
            &text[..text.len() - 1],
            &text.replace("published/1", "published/2"),
            &text.replace(":120", ":119"),
            &text.replacen("[0]", "[]", 1),
            &text.replacen("[0]", "[0,1]", 1),
            &text.replacen("[0]", "[0,0]", 1),
            &text.replace("2.5", "-2.5"),
        ] {
            assert!(Record::read(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn whatever_changes_no_sample_is_told_too_much_of(
            changes in prop::collection::vec((0..1_000u32, 1..400u32, 1..3u8), 1..20)
        ) {
            let mut record = Record::default();
            for (from, count, features) in changes {
                if let Ok(next) = record.with(means(from..from + count, features), MOST) {
                    record = next.record;
                }
                prop_assert!(record.most_told() <= MOST.most + 1e-4);
            }
        }
    }

    #[test]
    fn data_that_change_bit_by_bit_are_published_again_and_again() {
        let mut record = Record::default();
        let mut most_behind = 0;
        for epoch in 0..100 {
            // A window over a stream, of which a fiftieth is new in every epoch.
            let next = published(&record, 10 * epoch..10 * epoch + 500);
            (record, most_behind) = (next.record, most_behind.max(next.behind));
        }
        println!("{} publications, at most {most_behind} behind", record.publications());
        assert!(record.publications() >= 4 && most_behind <= 700);
    }
}
