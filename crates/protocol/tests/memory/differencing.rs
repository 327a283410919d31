//! A member that keeps what a device publishes in many epochs: what do the differences tell?

use std::collections::BTreeSet;
use std::sync::Arc;

use stlf_config::Config;
use stlf_data::features::Scale;
use stlf_method::divergence::disclosure::Limit;
use stlf_method::divergence::sketch::Sketch;
use stlf_protocol::divergence_protocol::Exchange;
use stlf_protocol::publication_record::Record;
use stlf_protocol::published_data::PublishedData;
use stlf_protocol::shared::SharedSettings;
use stlf_protocol::wire::{Means, Measured, Message};
use stlf_protocol::{Place, Refusal};

use crate::attack::{Waves, from_sum, likeliest};
use crate::common::computed;
use crate::samples::{Kind, PICTURES, ROWS, SEED, flat, mean_of, wide};

const VICTIM: Place = Place::new(0);
const ATTACKER: Place = Place::new(1);

/// The victim's part with these samples.
fn exchange(kind: &Kind, samples: &[Vec<f64>]) -> Exchange {
    let (key, members) = ([7; 32], [VICTIM, ATTACKER]);
    Exchange::new(&kind.settings(), kind.shape, SEED, key, VICTIM, &members, flat(samples))
}

/// What the attacker hears of it.
fn heard(kind: &Kind, mut exchange: Exchange) -> Sketch {
    let steps = exchange.start();
    let said = computed(&mut exchange, steps).unwrap();
    let [(ATTACKER, Message::Means(published, _))] = &said[..] else { panic!("{said:?}") };
    published.to_sketch(&kind.means()).unwrap()
}

fn limit(kind: &Kind) -> Limit {
    Limit::of(&kind.settings(), kind.shape)
}

/// A device that starts anew in every epoch and keeps its record.
#[derive(Default)]
struct Victim {
    record: Record,
    heard: Vec<Sketch>,
}

impl Victim {
    /// Has it take part with these samples; in how many they differ from those that it publishes means of.
    fn takes_part(&mut self, kind: &Kind, samples: &[Vec<f64>]) -> usize {
        let exchange = exchange(kind, samples);
        let means = exchange.means(&exchange.sample_names(None, &[9; 32])).unwrap();
        let admitted = self.record.with(means, limit(kind)).unwrap();
        self.record = admitted.record;
        self.heard.push(heard(kind, exchange.publishing(Some(Arc::new(admitted.sketch)))));
        admitted.behind
    }

    /// What differs among all that was heard, in its order.
    fn different(&self) -> Vec<&Sketch> {
        let bytes = |s: &Sketch| s.mean.iter().map(|m| m.to_bits()).collect::<Vec<u32>>();
        let mut known = BTreeSet::new();
        self.heard.iter().filter(|s| known.insert(bytes(s))).collect()
    }
}

/// Σ φ of the samples of the second less that of the first, which follows from their means and numbers.
fn difference(first: &Sketch, second: &Sketch) -> Vec<f64> {
    let sum = |s: &Sketch| -> Vec<f64> {
        wide(&s.mean).into_iter().map(|m| s.samples as f64 * m).collect()
    };
    sum(second).into_iter().zip(sum(first)).map(|(b, a)| b - a).collect()
}

/// The victim's reply to means of the attacker's choice.
fn reply(kind: &Kind, mut exchange: Exchange, means: &Sketch) -> f64 {
    let steps = exchange.start();
    computed(&mut exchange, steps).unwrap();
    let chosen = Message::Means(Means::of(means, &kind.means()), None);
    let steps = exchange.receive(ATTACKER, &chosen).unwrap();
    computed(&mut exchange, steps).unwrap();
    match exchange.pairs().as_deref() {
        Some(&[(ATTACKER, Measured::Divergence(divergence))]) => divergence,
        pairs => panic!("{pairs:?}"),
    }
}

/// Samples of a device with so many, of which one is replaced in every epoch.
fn in_epoch(all: &[Vec<f64>], epoch: usize, count: usize) -> &[Vec<f64>] {
    &all[epoch..epoch + count]
}

#[test]
fn replies_are_about_published_data_until_others_are_published() {
    const COUNT: usize = 300;
    let (kind, key) = (ROWS, [9; 32]);
    let all = (kind.draw)(COUNT + 1, 1);
    let before = exchange(&kind, in_epoch(&all, 0, COUNT));
    let limit = limit(&kind);
    let names = before.sample_names(None, &key);
    let first = Record::default().with(before.means(&names).unwrap(), limit).unwrap();
    let data = before.data_behind(&first.sketch, &names).unwrap();
    let text = serde_json::to_string(&data).unwrap();
    let data = Arc::new(PublishedData::read(text.as_bytes()).unwrap());
    // One row is replaced, which is too little to publish.
    let after = || exchange(&kind, in_epoch(&all, 1, COUNT));
    let names = after().sample_names(None, &key);
    let again = first.record.with(after().means(&names).unwrap(), limit).unwrap();
    assert_eq!((again.behind, &again.sketch), (2, &first.sketch));
    let kept = Some(Arc::new(again.sketch));
    // The attacker moves the victim's own means a little, in one direction after the other.
    let chosen = |feature: usize, by: f32| {
        let mut means = first.sketch.clone();
        means.mean[feature] += by;
        means
    };
    let (mut all_of_them, mut differ, mut most) = (0, 0, 0.0f64);
    for feature in 0..first.sketch.mean.len() {
        for by in [-0.16, -0.08, -0.04, -0.02, 0.02, 0.04, 0.08, 0.16] {
            let means = chosen(feature, by);
            let truth = reply(&kind, exchange(&kind, in_epoch(&all, 0, COUNT)), &means);
            let now = reply(&kind, after().publishing(kept.clone()), &means);
            all_of_them += 1;
            differ += usize::from(now != truth);
            most = most.max((now - truth).abs());
            let told = after().publishing(kept.clone()).measuring_by(Some(Arc::clone(&data)));
            assert_eq!(reply(&kind, told, &means), truth);
        }
    }
    println!(
        "by its data as they are now, {differ} of {all_of_them} replies would differ, by up to {most:.2}, because of one row; none does"
    );
    assert!(differ > 0, "the attack does not work where it must");
}

#[test]
fn without_a_record_and_noise_a_difference_gives_the_new_sample_away() {
    for kind in [PICTURES, ROWS].map(Kind::without_noise) {
        let all = (kind.draw)(301, 1);
        let waves = Waves::of(&kind.features(), kind.shape);
        let of = |samples: &[Vec<f64>]| heard(&kind, exchange(&kind, samples));
        let added = difference(&of(&all[..300]), &of(&all));
        // A picture has more pixels than there are waves; the rest follows from what such pictures look like.
        let own = (kind.draw)(600, 3);
        let (_, known) = kind.found("an average sample", &all[300..], &[mean_of(&own)]);
        let rebuilt = [likeliest(&waves, &added, &own)];
        let (count, off) = kind.found("the one that was added", &all[300..], &rebuilt);
        assert!(off < 0.5 * known, "the attack does not work where it must");
        assert!(count == 1 || kind.shape.len() > waves.count());
    }
    // Where one is replaced, both are unknown: 24 numbers in 48 equations.
    let all = (ROWS.draw)(301, 1);
    let waves = Waves::of(&ROWS.features(), ROWS.shape);
    let bare = ROWS.without_noise();
    let of = |from: usize| heard(&bare, exchange(&bare, in_epoch(&all, from, 300)));
    let replaced = difference(&of(0), &of(1));
    let own = (ROWS.draw)(60, 3);
    let rebuilt: Vec<Vec<f64>> = (own.chunks_exact(2))
        .flat_map(|pair| from_sum(&waves, &replaced, &[1.0, -1.0], pair))
        .collect();
    let both = [all[300].clone(), all[0].clone()];
    let (_, known) = ROWS.found("average samples", &both, &[mean_of(&own)]);
    let (_, off) = ROWS.found("the new and the old one", &both, &rebuilt);
    assert!(off < 0.3 * known, "the attack does not work where it must");
}

#[test]
fn a_hundred_epochs_with_the_same_samples_tell_nothing_new() {
    let all = (ROWS.draw)(200, 1);
    let mut victim = Victim::default();
    for epoch in 0..100 {
        let mut samples = all.clone();
        // In another order, which changes the last bits of a sum.
        samples.rotate_left(epoch);
        assert_eq!(victim.takes_part(&ROWS, &samples), 0);
    }
    assert_eq!(victim.different().len(), 1);
}

/// A hundred epochs, with one sample replaced in each, and the differences of what was published.
fn a_hundred_changes(kind: &Kind, count: usize) {
    let all = (kind.draw)(count + 100, 1);
    let mut victim = Victim::default();
    let (mut published, mut behind) = (Vec::new(), Vec::new());
    for epoch in 0..100 {
        behind.push(victim.takes_part(kind, in_epoch(&all, epoch, count)));
        if victim.record.publications() > published.len() {
            published.push(epoch);
        }
    }
    let different = victim.different();
    let limit = limit(kind);
    let (told, most) = (victim.record.most_told(), limit.most);
    let furthest = behind.iter().max().unwrap();
    println!(
        "{count} {}: published anew in epochs {published:?}, at most {furthest} samples behind; {told:.2} of {most} numbers told about one",
        kind.name
    );
    assert_eq!(different.len(), published.len());
    assert!(published.len() > 1, "there is nothing to attack");
    assert!(told <= most && *furthest <= 200);
    let waves = Waves::of(&kind.features(), kind.shape);
    for (pair, epochs) in different.windows(2).zip(published.windows(2)) {
        // The attacker is told how many are new; the first are gone.
        let new = epochs[1] - epochs[0];
        let weights: Vec<f64> = (0..2 * new).map(|k| if k < new { 1.0 } else { -1.0 }).collect();
        let changed: Vec<Vec<f64>> =
            [&all[count + epochs[0]..count + epochs[1]], &all[epochs[0]..epochs[1]]].concat();
        let sum = difference(pair[0], pair[1]);
        let own = (kind.draw)(2 * new, 3);
        let alone = [likeliest(&waves, &sum, &own)];
        assert_eq!(kind.found("as if it were one", &changed, &alone).0, 0);
        let (known, before) = kind.found("known beforehand", &changed, &own);
        let rebuilt = from_sum(&waves, &sum, &weights, &own);
        let (found, after) = kind.found("from the difference", &changed, &rebuilt);
        assert!(found <= known, "{found}, and {known} before");
        assert!(after > 0.9 * before, "it came nearer by {}", after / before);
    }
}

#[test]
fn a_hundred_epochs_with_changing_rows_give_none_away() {
    a_hundred_changes(&ROWS, 300);
}

#[test]
fn a_hundred_epochs_with_changing_pictures_give_none_away() {
    a_hundred_changes(&PICTURES, 200);
}

#[test]
fn nobody_else_chooses_the_features() {
    // Whoever has other settings takes no part: the greeting names the first that differs.
    let shared = |change: &[&str], seed: u64| {
        let config = Config::default().with(change.iter().copied()).unwrap();
        SharedSettings::new(config.shared(ROWS.shape, Scale::None, None, &[], seed).unwrap())
    };
    let own = shared(&[], SEED);
    for (change, seed, named) in [
        (&[][..], SEED + 1, "seeds"),
        (&["divergence.bandwidth=0.001"][..], SEED, "divergence.bandwidth"),
        (&["divergence.features=4096"][..], SEED, "divergence.features"),
        (&["divergence.estimator=discriminant"][..], SEED, "divergence.estimator"),
        (&["divergence.privacy=none"][..], SEED, "divergence.privacy"),
    ] {
        let difference = own.difference(&shared(change, seed)).unwrap();
        assert_eq!(difference.setting, named);
    }
    // Whoever lies in the greeting changes nothing: what a device publishes follows from its own settings, and a width that another sends is refused.
    let samples = (ROWS.draw)(100, 1);
    let mut lied_to = exchange(&ROWS, &samples);
    let steps = lied_to.start();
    let refused = lied_to.receive(ATTACKER, &Message::Bandwidth(Some(1e-3))).unwrap_err();
    assert!(matches!(refused, Refusal::Unfit(_)), "{refused}");
    let said = computed(&mut lied_to, steps).unwrap();
    let published = heard(&ROWS, exchange(&ROWS, &samples));
    let honest = Message::Means(stlf_protocol::wire::Means::of(&published, &ROWS.means()), None);
    assert_eq!(said, [(ATTACKER, honest)]);
}

#[test]
fn means_by_other_features_count_together() {
    // The owner changes the seed for the whole fleet, epoch by epoch.
    let by_seed = |samples: &[Vec<f64>], seed| {
        let members = [VICTIM, ATTACKER];
        let inputs = flat(samples);
        let settings = ROWS.settings();
        let exchange =
            Exchange::new(&settings, ROWS.shape, seed, [7; 32], VICTIM, &members, inputs);
        exchange.means(&exchange.sample_names(None, &[9; 32])).unwrap()
    };
    for (samples, expected) in [(48, 1), (90, 1), (200, 3), (500, 9)] {
        let samples = (ROWS.draw)(samples, 1);
        let mut record = Record::default();
        let admitted = (0..20).take_while(|&seed| {
            match record.with(by_seed(&samples, seed), limit(&ROWS)) {
                Ok(admitted) => record = admitted.record,
                Err(refused) => {
                    println!("{} rows, seed {seed}: {refused}", samples.len());
                    return false;
                }
            }
            true
        });
        let admitted = admitted.count();
        assert_eq!(admitted, expected, "{} rows", samples.len());
        // Those seeds that were admitted stay so.
        let first = record.with(by_seed(&samples, 0), limit(&ROWS)).unwrap();
        assert_eq!((first.behind, first.record), (0, record.clone()));
    }
}

/// A machine that stands still: its row is there again and again. How far the row is off that follows from what was heard before and after: with a record and noise,
/// or without both.
fn standing_still(seed: u64, often: usize, has_record: bool) -> (usize, f64) {
    let all = (ROWS.draw)(301, seed);
    let (before, row) = (&all[..300], &all[300]);
    let after = [before, &vec![row.clone(); often]].concat();
    let heard = match has_record {
        true => {
            let mut victim = Victim::default();
            for samples in [before, &after] {
                victim.takes_part(&ROWS, samples);
            }
            victim.heard
        }
        false => {
            let bare = ROWS.without_noise();
            [before, &after].map(|samples| heard(&bare, exchange(&bare, samples))).to_vec()
        }
    };
    let features: Vec<f64> =
        difference(&heard[0], &heard[1]).iter().map(|x| x / often as f64).collect();
    let waves = Waves::of(&ROWS.features(), ROWS.shape);
    let rebuilt = [likeliest(&waves, &features, &(ROWS.draw)(600, 3))];
    ROWS.found("the row that is there again", &all[300..], &rebuilt)
}

#[test]
fn a_row_that_is_there_again_and_again_does_not_follow_from_a_difference() {
    for often in [80, 150, 600, 1_500] {
        for seed in [1, 2] {
            let (_, off) = standing_still(seed, often, false);
            assert!(off < 0.06, "the attack does not work where it must");
            let (found, off) = standing_still(seed, often, true);
            assert!(found == 0 && off > 0.1, "{often} times: {off}");
        }
    }
}
