//! Which divergences a device has told, about which samples, and whether it may tell more.
//!
//! A device tells how far it is from everybody's means: that is its reply to them. Who publishes means of its own choice learns something about the device by the
//! reply, and by many of them its covariance ([`stlf_method::divergence::replies`]). The same means get the same reply again, which tells nothing. New means get a
//! new one as long as everything that was ever told about each of the device's samples keeps to the [rule](stlf_method::divergence::disclosure) of publications, and
//! as long as their sender has had few. Otherwise the last reply to that sender is repeated.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use stlf_method::divergence::replies::{MOST_TO_ONE_PEER, told_by_one};

use crate::identity::hex;
use crate::published_data::PublishedData;
use crate::roster::Place;
use crate::told::{self, Told};
use crate::wire::Digest;

const FORMAT: &str = "stlf-replies/1";

/// More of a number than this is no rounding.
const ROUNDING: f64 = 1e-9;

/// What is said of a device that gets no reply and never had one: nobody is near of whom nothing is known.
const UNKNOWN: f64 = 2.0;

/// A reply that was given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    /// The digest of the means that it is a reply to.
    means: String,
    divergence: f64,
    /// What all replies before it told.
    before: f64,
}

/// Everything that a device has told of divergences.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyRecord {
    format: String,
    /// The numbers that all replies told, of each the part that is about one sample.
    told: f64,
    /// The same for every sample that the device ever had, counted while it had it. Samples are known by names that only the device itself can compute.
    samples: Told,
    /// The last replies to each place.
    replies: BTreeMap<Place, Vec<Reply>>,
}

impl Default for ReplyRecord {
    fn default() -> ReplyRecord {
        let (samples, replies) = (BTreeMap::new(), BTreeMap::new());
        ReplyRecord { format: FORMAT.to_owned(), told: 0.0, samples, replies }
    }
}

impl ReplyRecord {
    /// Reads a record.
    ///
    /// # Errors
    /// Says why these bytes are none.
    pub fn read(bytes: &[u8]) -> Result<ReplyRecord, String> {
        let record: ReplyRecord = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        if record.format != FORMAT {
            return Err(format!("this is {:?}, not {FORMAT:?}", record.format));
        }
        let within = |told: f64| (0.0..=record.told + ROUNDING).contains(&told);
        let is_one =
            |reply: &Reply| within(reply.before) && (0.0..=UNKNOWN).contains(&reply.divergence);
        let are_ones = record.replies.values().flatten().all(is_one);
        match are_ones && record.samples.values().all(|&told| within(told)) {
            true => Ok(record),
            false => Err("it tells more about a sample or in a reply than in all".to_owned()),
        }
    }

    /// Returns how much all replies told. It only grows.
    pub fn told(&self) -> f64 {
        self.told
    }
}

/// What a device says to everyone in an epoch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Replies {
    /// How far each place is said to be, ascending.
    pub(crate) divergences: Vec<(Place, f64)>,
    /// Those of them that published new means and get no new reply.
    pub(crate) withheld: BTreeSet<Place>,
}

/// A record, and the samples that the device has now.
#[derive(Debug, Clone, PartialEq)]
pub struct Replying {
    record: ReplyRecord,
    samples: BTreeSet<String>,
    /// What a reply tells about each of them.
    told_by_one: f64,
    /// The most numbers that may be told about a sample.
    most: f64,
}

impl Replying {
    /// With samples of these names, about each of which a reply tells so much, and `most` numbers may be told.
    pub(crate) fn new(
        record: ReplyRecord,
        samples: BTreeSet<String>,
        told_by_one: f64,
        most: f64,
    ) -> Replying {
        Replying { record, samples, told_by_one, most }
    }

    /// The same samples, after everything that this record has.
    pub(crate) fn after(&self, record: ReplyRecord) -> Replying {
        Replying { record, ..self.clone() }
    }

    /// The same, of a device that replies by these data and not by those that it has now.
    pub(crate) fn about(&self, data: &PublishedData) -> Replying {
        let (record, samples) = (self.record.clone(), data.samples().clone());
        Replying::new(record, samples, told_by_one(data.counted()), self.most)
    }

    /// The same, of a device that gives no new reply.
    pub(crate) fn without_new_ones(&self) -> Replying {
        Replying { most: 0.0, ..self.clone() }
    }

    /// Returns what the device has told.
    pub fn record(&self) -> &ReplyRecord {
        &self.record
    }

    /// Replies to everyone's means, in this order if not all get a new reply. `measured` says how far the means of a place are.
    pub(crate) fn reply(
        &mut self,
        means: &[(Place, Digest)],
        measured: impl Fn(Place) -> f64,
    ) -> Replies {
        let (mut divergences, mut withheld) = (BTreeMap::new(), BTreeSet::new());
        let about_one = self.told_by_one;
        let (mut most_told, half) = (self.most_told(), self.told_about_half());
        let before = self.record.told;
        for (place, digest) in means {
            let given = self.record.replies.get(place).map_or(&[][..], Vec::as_slice);
            // What half of the samples were there for was told about nearly the same data.
            let is_late = |reply: &&Reply| reply.before >= before - half - ROUNDING;
            let means = hex(digest);
            let divergence = match given.iter().filter(is_late).find(|reply| reply.means == means) {
                Some(same) => same.divergence,
                None if most_told + about_one <= self.most + ROUNDING
                    && given.iter().filter(is_late).count() < MOST_TO_ONE_PEER =>
                {
                    let (divergence, before) = (measured(*place), self.record.told);
                    most_told += about_one;
                    self.record.told += about_one;
                    let given = self.record.replies.entry(*place).or_default();
                    given.push(Reply { means, divergence, before });
                    // Older ones say nothing about what may be told.
                    given.drain(..given.len().saturating_sub(MOST_TO_ONE_PEER));
                    divergence
                }
                None => {
                    withheld.insert(*place);
                    given.last().map_or(UNKNOWN, |last| last.divergence)
                }
            };
            divergences.insert(*place, divergence);
        }
        let more = self.record.told - before;
        if more > 0.0 {
            told::add(&mut self.record.samples, &self.samples, more);
        }
        Replies { divergences: divergences.into_iter().collect(), withheld }
    }

    /// The most that was told about a sample of the device's.
    fn most_told(&self) -> f64 {
        told::most(&self.record.samples, &self.samples)
    }

    /// Returns what was told about at least half of them.
    fn told_about_half(&self) -> f64 {
        told::about_half(&self.record.samples, &self.samples)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(samples: std::ops::Range<usize>) -> BTreeSet<String> {
        samples.map(|k| format!("{k:05}")).collect()
    }

    /// A device with these samples, about each of which one number may be told: two replies for every sample.
    fn device(record: &ReplyRecord, samples: std::ops::Range<usize>) -> Replying {
        let about_one = told_by_one(samples.len() as f64);
        Replying::new(record.clone(), names(samples), about_one, 1.0)
    }

    /// Replies to as many peers, who publish these means.
    fn told(device: &mut Replying, peers: usize, means: u8, divergence: f64) -> Replies {
        let means: Vec<(Place, Digest)> =
            (0..peers).map(|peer| (Place::new(peer), [means; 16])).collect();
        device.reply(&means, |_| divergence)
    }

    fn all(divergence: f64, peers: usize) -> Vec<(Place, f64)> {
        (0..peers).map(|peer| (Place::new(peer), divergence)).collect()
    }

    #[test]
    fn the_same_means_get_the_same_reply_and_new_ones_few() {
        let mut device = device(&ReplyRecord::default(), 0..100);
        for (means, divergence) in (0..MOST_TO_ONE_PEER as u8).zip([0.5, 0.6]) {
            for _ in 0..3 {
                let replies = told(&mut device, 2, means, divergence);
                assert_eq!((replies.divergences, replies.withheld.len()), (all(divergence, 2), 0));
            }
        }
        let record = device.record().clone();
        // Now the last is repeated, whatever would be measured; what was told before still is.
        let replies = told(&mut device, 2, 99, 1.5);
        assert_eq!((replies.divergences, replies.withheld.len()), (all(0.6, 2), 2));
        assert_eq!(told(&mut device, 2, 0, 1.5).divergences, all(0.5, 2));
        assert_eq!(*device.record(), record);
        // Somebody else still gets a reply.
        let replies = told(&mut device, 3, 99, 1.5);
        assert_eq!((replies.divergences[2].1, replies.withheld.len()), (1.5, 2));
    }

    #[test]
    fn all_together_get_as_many_as_the_samples_allow() {
        let mut device = device(&ReplyRecord::default(), 0..100);
        let replies = told(&mut device, 300, 1, 0.5);
        let (near, far) = replies.divergences.split_at(200);
        assert!(near.iter().all(|(_, d)| *d == 0.5) && far.iter().all(|(_, d)| *d == UNKNOWN));
        assert_eq!(replies.withheld, (200..300).map(Place::new).collect());
        assert!((device.most_told() - 1.0).abs() < ROUNDING);
        assert_eq!(told(&mut device, 300, 1, 0.7), replies);
        assert_eq!(told(&mut device, 300, 2, 0.7).withheld.len(), 300);
    }

    #[test]
    fn new_data_are_told_of_anew_and_old_samples_keep_their_count() {
        let mut first = device(&ReplyRecord::default(), 0..100);
        (0..8).for_each(|means| drop(told(&mut first, 25, means, 0.5)));
        // A quarter is new: nearly the same data.
        let mut later = device(first.record(), 25..125);
        assert_eq!(told(&mut later, 25, 20, 0.9).withheld.len(), 25);
        // Most of it is, and whoever had its replies gets others; but some old samples have been told about too often with others.
        let mut other = device(first.record(), 60..160);
        assert_eq!(told(&mut other, 25, 20, 0.9).divergences, all(0.9, 25));
        assert_eq!(told(&mut other, 150, 21, 0.9).withheld.len(), 25);
        let mut fresh = device(other.record(), 1000..1100);
        assert_eq!(told(&mut fresh, 200, 21, 0.4).divergences, all(0.4, 200));
        // A sample that comes back is not forgotten.
        let mut back = device(fresh.record(), 60..160);
        assert_eq!(told(&mut back, 300, 40, 0.3).withheld.len(), 300);
    }

    #[test]
    fn what_is_no_record_is_never_an_empty_one() {
        let mut device = device(&ReplyRecord::default(), 0..10);
        told(&mut device, 2, 1, 0.25);
        let text = serde_json::to_string(device.record()).unwrap();
        assert_eq!(ReplyRecord::read(text.as_bytes()).as_ref(), Ok(device.record()));
        for bad in [
            "",
            "{}",
            &text[..text.len() - 1],
            &text.replace("replies/1", "replies/2"),
            &text.replace("0.25", "2.5"),
            &text.replace("\"told\":0.1", "\"told\":0.01"),
            &text.replacen("\"told\":0.1", "\"told\":-1", 1),
        ] {
            assert!(ReplyRecord::read(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn whatever_is_asked_no_sample_is_told_too_much_of(
            asked in prop::collection::vec((0..200usize, 1..80usize, 1..40usize, 0..20u8), 1..30)
        ) {
            let mut record = ReplyRecord::default();
            for (from, count, peers, means) in asked {
                let mut device = device(&record, from..from + count);
                told(&mut device, peers, means, 1.0);
                record = device.record().clone();
                prop_assert!(record.samples.values().all(|told| *told <= 1.0 + 1e-6));
            }
        }
    }
}
