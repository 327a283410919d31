//! What a device has answered to models that others chose, and whether it may answer more.
//!
//! Whoever has a model tried learns whether the device's samples contradict it, and of a model that is handed on how it did ([`stlf_method::answers`]). So all
//! answers that were ever told about a sample cost few bits together, and those to one peer fewer. The same question gets the same answer, which tells
//! nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use stlf_method::answers::{Kind, TRIALS, VERDICTS};
use stlf_method::expectation::Trial;
use stlf_planning::plan::Way;

use crate::identity::hex;
use crate::roster::Place;
use crate::told::{self, Told};

const FORMAT: &str = "stlf-verdicts/1";

/// More of a bit than this is no rounding.
const ROUNDING: f64 = 1e-9;

/// So many answers to a peer are kept, with which the same questions are answered alike.
const MOST_KEPT: usize = 64;

/// What was asked: a hash of everything that the answer depends on besides the samples.
pub(crate) type Question = [u8; 32];

/// An answer that was given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Given<A> {
    question: String,
    answer: A,
    /// What it cost, with those before it that are not kept.
    bits: f64,
    /// The bits of all answers before it.
    before: f64,
}

/// Answers of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answers<A> {
    /// The bits of all.
    told: f64,
    /// The same for every sample that the device ever had, counted while it had it. Samples are known by names that only the device itself can compute.
    samples: Told,
    /// The last answers to each place.
    given: BTreeMap<Place, Vec<Given<A>>>,
}

impl<A> Default for Answers<A> {
    fn default() -> Answers<A> {
        Answers { told: 0.0, samples: Told::new(), given: BTreeMap::new() }
    }
}

/// Why a device does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spent {
    /// Answers to this peer have told enough.
    ToOnePeer,
    /// Answers to all have.
    InAll,
}

impl<A> Answers<A> {
    fn are_possible(&self) -> bool {
        let within = |bits: f64| (0.0..=self.told + ROUNDING).contains(&bits);
        let is_one = |given: &Given<A>| within(given.before) && within(given.bits);
        self.samples.values().all(|&bits| within(bits)) && self.given.values().flatten().all(is_one)
    }

    /// The answers to a peer, the last one first, that were given while at least half of these samples were there: about nearly the same data.
    fn late(&self, to: Place, samples: &BTreeSet<String>) -> impl Iterator<Item = &Given<A>> {
        let since = self.told - told::about_half(&self.samples, samples) - ROUNDING;
        let given = self.given.get(&to).into_iter().flatten().rev();
        given.filter(move |given| given.before >= since)
    }

    /// Returns whether whatever comes of it may be answered.
    fn may(&self, to: Place, samples: &BTreeSet<String>, kind: Kind) -> Result<(), Spent> {
        let to_peer: f64 = self.late(to, samples).map(|given| given.bits).sum();
        if to_peer + kind.other() > kind.most_to_one_peer + ROUNDING {
            return Err(Spent::ToOnePeer);
        }
        match told::most(&self.samples, samples) + kind.other() > kind.most + ROUNDING {
            true => Err(Spent::InAll),
            false => Ok(()),
        }
    }

    fn give(
        &mut self,
        to: Place,
        question: Question,
        answer: A,
        bits: f64,
        samples: &BTreeSet<String>,
    ) {
        let before = self.told;
        self.told += bits;
        told::add(&mut self.samples, samples, bits);
        let given = self.given.entry(to).or_default();
        given.push(Given { question: hex(&question), answer, bits, before });
        if given.len() > MOST_KEPT {
            // It goes on to count.
            let oldest = given.remove(0);
            given[0].bits += oldest.bits;
        }
    }
}

/// Everything that a device has answered to models of others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerdictRecord {
    format: String,
    /// Whether the device's samples contradict a model.
    verdicts: Answers<bool>,
    /// How models did that were handed to it.
    trials: Answers<ToldTrial>,
}

impl Default for VerdictRecord {
    fn default() -> VerdictRecord {
        let (verdicts, trials) = (Answers::default(), Answers::default());
        VerdictRecord { format: FORMAT.to_owned(), verdicts, trials }
    }
}

impl VerdictRecord {
    /// Reads a record.
    ///
    /// # Errors
    /// Says why these bytes are none.
    pub fn read(bytes: &[u8]) -> Result<VerdictRecord, String> {
        let record: VerdictRecord = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        if record.format != FORMAT {
            return Err(format!("this is {:?}, not {FORMAT:?}", record.format));
        }
        let trials = record.trials.given.values().flatten();
        let are_trials = trials.map(|given| given.answer.trial).all(|trial| trial.is_possible());
        match record.verdicts.are_possible() && record.trials.are_possible() && are_trials {
            true => Ok(record),
            false => Err("it tells more about a sample or in an answer than in all".to_owned()),
        }
    }

    /// Returns the bits of all answers. They only grow.
    pub fn told(&self) -> f64 {
        self.verdicts.told + self.trials.told
    }
}

/// What a device does about a model that it is to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum May {
    /// It tries the model and says whether it refuses it.
    Try,
    /// It says this again.
    Repeat { refused: bool },
    /// It refuses the model untried: enough was told to who sent it, most of it by models that it refused.
    Refuse,
    /// It says nothing: enough was told to all.
    Abstain,
}

/// What a trial is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Tried {
    /// A model as it was handed over.
    AsHanded,
    /// What the device has made of it.
    AsSent,
}

/// A trial that was told.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToldTrial {
    of: (Way, Tried),
    trial: Trial,
}

/// A record, and the samples that the device has now.
#[derive(Debug, Clone, PartialEq)]
pub struct Judging {
    record: VerdictRecord,
    samples: BTreeSet<String>,
    /// Whether there are answers that nobody was asked to keep yet.
    has_new: bool,
}

impl Judging {
    /// With samples of these names.
    pub(crate) fn new(record: VerdictRecord, samples: BTreeSet<String>) -> Judging {
        Judging { record, samples, has_new: false }
    }

    /// The same samples, after everything that this record has.
    pub(crate) fn after(self, record: VerdictRecord) -> Judging {
        Judging { record, ..self }
    }

    /// Returns whether it has answered anything since this was asked.
    pub(crate) fn take_new(&mut self) -> bool {
        std::mem::take(&mut self.has_new)
    }

    /// Returns what the device has answered.
    pub fn record(&self) -> &VerdictRecord {
        &self.record
    }

    /// Returns what it does about a model of the device at a place.
    pub(crate) fn may(&self, from: Place, question: &Question) -> May {
        let (verdicts, question) = (&self.record.verdicts, hex(question));
        let mut late = verdicts.late(from, &self.samples);
        if let Some(same) = late.find(|given| given.question == question) {
            return May::Repeat { refused: same.answer };
        }
        match verdicts.may(from, &self.samples, VERDICTS) {
            Ok(()) => May::Try,
            Err(Spent::ToOnePeer) => May::Refuse,
            Err(Spent::InAll) => May::Abstain,
        }
    }

    /// It has tried a model, as it [may](Judging::may), and says this.
    pub(crate) fn judged(&mut self, from: Place, question: Question, refused: bool) {
        let bits = if refused { VERDICTS.other() } else { VERDICTS.expected() };
        self.record.verdicts.give(from, question, refused, bits, &self.samples);
        self.has_new = true;
    }

    /// Returns what it says of how a model, of which `handed` is a hash, did that was handed to it: this, or if that is nearly as with the last one, the same as then.
    /// Of the same model it always says the same. Nothing if enough was told.
    pub(crate) fn tells(
        &mut self,
        from: Place,
        of: (Way, Tried),
        handed: Question,
        trial: Trial,
    ) -> Option<Trial> {
        let Judging { record: VerdictRecord { trials, .. }, samples, has_new } = self;
        let question = hex(&handed);
        let earlier: Vec<&Given<ToldTrial>> =
            trials.late(from, samples).filter(|given| given.answer.of == of).collect();
        let again = |given: &&Given<ToldTrial>| given.answer.trial.of_as_many(trial.labels);
        if let Some(same) = earlier.iter().find(|given| given.question == question) {
            return Some(again(same));
        }
        let last = earlier.first().map(again);
        trials.may(from, samples, TRIALS).ok()?;
        let as_before = last.filter(|last| last.is_near(&trial));
        let bits = if as_before.is_some() { TRIALS.expected() } else { TRIALS.other() };
        let told = as_before.unwrap_or(trial);
        trials.give(from, handed, ToldTrial { of, trial: told }, bits, samples);
        *has_new = true;
        Some(told)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PEERS: [Place; 4] = [Place::new(1), Place::new(2), Place::new(3), Place::new(4)];

    const HANDED: (Way, Tried) = (Way::First, Tried::AsHanded);

    fn device(record: &VerdictRecord, samples: std::ops::Range<usize>) -> Judging {
        Judging::new(record.clone(), samples.map(|k| format!("{k:05}")).collect())
    }

    fn question(number: u32) -> Question {
        let mut question = [0; 32];
        question[..4].copy_from_slice(&number.to_le_bytes());
        question
    }

    /// Returns how many of these models a device tries that refuses all; and then what it does.
    fn refuses(device: &mut Judging, from: Place, models: std::ops::Range<u32>) -> (usize, May) {
        let mut tried = 0;
        for model in models {
            match device.may(from, &question(model)) {
                May::Try => device.judged(from, question(model), true),
                other => return (tried, other),
            }
            tried += 1;
        }
        (tried, May::Try)
    }

    #[test]
    fn two_models_of_a_peer_are_refused_and_four_of_all_peers() {
        let mut device = device(&VerdictRecord::default(), 0..100);
        assert_eq!(refuses(&mut device, PEERS[0], 0..9), (2, May::Refuse));
        assert_eq!(refuses(&mut device, PEERS[1], 0..9), (2, May::Refuse));
        assert_eq!(refuses(&mut device, PEERS[2], 0..9), (0, May::Abstain));
        // What was said is said again, and costs nothing.
        let record = device.record().clone();
        assert_eq!(device.may(PEERS[0], &question(1)), May::Repeat { refused: true });
        assert_eq!(*device.record(), record);
    }

    #[test]
    fn hundreds_of_honest_models_are_tried() {
        let mut device = device(&VerdictRecord::default(), 0..10);
        for model in 0..2_000 {
            for from in &PEERS[..2] {
                assert_eq!(device.may(*from, &question(model)), May::Try, "{model}");
                device.judged(*from, question(model), false);
            }
        }
        assert!(device.record().verdicts.given.values().all(|given| given.len() == MOST_KEPT));
        // What is not kept has cost as much: a model is refused, and no other one is tried then.
        assert_eq!(refuses(&mut device, PEERS[0], 5_000..5_009), (1, May::Refuse));
    }

    #[test]
    fn a_sample_that_is_replaced_gives_nothing_back_and_most_that_are_do() {
        let mut first = device(&VerdictRecord::default(), 0..100);
        assert_eq!(refuses(&mut first, PEERS[0], 0..9).0, 2);
        for (samples, tried) in [(1..101, 0), (49..149, 0), (60..160, 2)] {
            let mut later = device(first.record(), samples);
            assert_eq!(refuses(&mut later, PEERS[0], 9..19).0, tried);
        }
        // All together are about the samples that stay, too.
        assert_eq!(refuses(&mut first, PEERS[1], 0..9).0, 2);
        let mut later = device(first.record(), 60..160);
        assert_eq!(refuses(&mut later, PEERS[2], 9..19), (0, May::Abstain));
        let mut fresh = device(first.record(), 1_000..1_100);
        assert_eq!(refuses(&mut fresh, PEERS[0], 9..19).0, 2);
        let mut back = device(fresh.record(), 0..100);
        assert_eq!(refuses(&mut back, PEERS[3], 9..19), (0, May::Abstain));
    }

    #[test]
    fn trials_that_are_nearly_alike_are_told_alike_and_four_that_are_not() {
        let mut device = device(&VerdictRecord::default(), 0..100);
        let trial = |errors| Trial { labels: 300, errors, doubt: 0.1 };
        let mut told =
            |peer: usize, model, trial| device.tells(PEERS[peer], HANDED, question(model), trial);
        assert_eq!(told(0, 0, trial(40)), Some(trial(40)));
        for model in 1..200 {
            assert_eq!(told(0, model, trial(44)), Some(trial(40)));
        }
        assert_eq!(told(0, 200, trial(90)), Some(trial(90)));
        assert_eq!(told(0, 203, trial(200)), Some(trial(200)));
        assert_eq!(told(0, 204, trial(3)), Some(trial(3)));
        assert_eq!(told(0, 201, trial(3)), None, "neither is that it is as before");
        assert_eq!(told(0, 200, trial(9)), Some(trial(90)), "of the same model the same");
        assert_eq!(told(1, 201, trial(90)), Some(trial(90)));
        // As many labels as there are, which everyone knows.
        let more = Trial { labels: 600, errors: 178, doubt: 0.1 };
        assert_eq!(told(1, 202, more), Some(Trial { labels: 600, errors: 180, doubt: 0.1 }));
    }

    #[test]
    fn what_is_no_record_is_never_an_empty_one() {
        let mut device = device(&VerdictRecord::default(), 0..10);
        device.judged(PEERS[0], question(1), true);
        device.tells(PEERS[0], HANDED, question(2), Trial { labels: 9, errors: 4, doubt: 0.5 });
        let text = serde_json::to_string(device.record()).unwrap();
        assert_eq!(VerdictRecord::read(text.as_bytes()).as_ref(), Ok(device.record()));
        for bad in [
            "",
            "{}",
            &text[..text.len() - 1],
            &text.replace("verdicts/1", "verdicts/2"),
            &text.replace("\"told\":8.0", "\"told\":7.0"),
            &text.replace("\"told\":22.0", "\"told\":-22.0"),
            &text.replace("\"errors\":4", "\"errors\":10"),
        ] {
            assert!(VerdictRecord::read(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn whatever_is_asked_no_sample_is_told_too_much_of(
            asked in prop::collection::vec((0..200usize, 1..80usize, 1..9usize, any::<bool>()), 1..40)
        ) {
            let mut record = VerdictRecord::default();
            for (number, (from, count, peer, refused)) in asked.into_iter().enumerate() {
                let mut device = device(&record, from..from + count);
                let (peer, asked) = (Place::new(peer), question(number as u32));
                if device.may(peer, &asked) == May::Try {
                    device.judged(peer, asked, refused);
                }
                device.tells(peer, HANDED, asked, Trial { labels: 9, errors: number as u32 % 9, doubt: 0.1 });
                record = device.record().clone();
                prop_assert!(record.verdicts.samples.values().all(|told| *told <= VERDICTS.most + 1e-6));
                prop_assert!(record.trials.samples.values().all(|told| *told <= TRIALS.most + 1e-6));
            }
        }
    }
}
