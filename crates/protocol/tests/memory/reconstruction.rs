//! A member that keeps to the protocol and keeps what it receives: what can it rebuild of another device's samples?
//!
//! Everything of a device's that another one receives while measuring goes into the attack, and so does the attacker's own data,
//! which look like the victim's. The attack is shown to work where the product warns of it.

use stlf_data::Shape;
use stlf_method::divergence::sketch::agreed_features;
use stlf_method::divergence::{Settings, disclosure, discriminant};
use stlf_protocol::Place;
use stlf_protocol::divergence_protocol::{Exchange, check};
use stlf_protocol::wire::{Message, Moments};

use crate::attack::{Waves, from_mean, from_moments, nearest, of_one};
use crate::common::computed;
use crate::samples::{Kind, PICTURES, ROWS, SEED, WINDOWS, flat, mean_of, wide};

/// The victim's place in the roster.
const VICTIM: Place = Place::new(0);
const ATTACKER: Place = Place::new(1);

/// All that the attacker receives from the victim while they measure.
pub(crate) fn received(
    settings: &Settings,
    shape: Shape,
    samples: [&[Vec<f64>]; 2],
) -> Vec<Message> {
    let mut exchanges = [VICTIM, ATTACKER].map(|place| {
        let (key, own) = ([place.index() as u8; 32], flat(samples[place.index()]));
        Exchange::new(settings, shape, SEED, key, place, &[VICTIM, ATTACKER], own)
    });
    let mut waiting: Vec<(Place, Message)> = Vec::new();
    for (from, exchange) in [VICTIM, ATTACKER].into_iter().zip(&mut exchanges) {
        let steps = exchange.start();
        let said = computed(exchange, steps).unwrap();
        waiting.extend(said.into_iter().map(|(_, message)| (from, message)));
    }
    let mut heard = Vec::new();
    while let Some((from, message)) = waiting.pop() {
        let to = if from == VICTIM { ATTACKER } else { VICTIM };
        let exchange = &mut exchanges[to.index()];
        let steps = exchange.receive(from, &message).unwrap();
        let replies = computed(exchange, steps).unwrap();
        waiting.extend(replies.into_iter().map(|(_, reply)| (to, reply)));
        if from == VICTIM {
            heard.push(message);
        }
    }
    heard
}

fn square(moments: &Moments) -> Vec<Vec<f64>> {
    let (side, triangle) = (moments.mean.len(), &moments.covariance);
    let at = |i: usize, j: usize| f64::from(triangle[i.max(j) * (i.max(j) + 1) / 2 + i.min(j)]);
    (0..side).map(|i| (0..side).map(|j| at(i, j)).collect()).collect()
}

#[test]
fn moments_give_samples_away_and_so_need_consent() {
    let settings = discriminant::Settings::default().with(|s| s.features = 128);
    let all = Settings::Discriminant(settings);
    let refused = check(&all, PICTURES.shape, 6, false).unwrap_err();
    assert!(refused.hint().unwrap().contains(disclosure::ACCEPTED), "{refused}");

    let (victim, own) = ((PICTURES.draw)(6, 1), (PICTURES.draw)(10, 2));
    let heard = received(&all, PICTURES.shape, [&victim, &own]);
    let width = |m: &Message| if let Message::Bandwidth(w) = m { Some(*w) } else { None };
    let theirs = heard.iter().find_map(width).unwrap();
    let attackers = stlf_method::divergence::bandwidth::own_bandwidth(
        &flat(&own),
        PICTURES.shape,
        settings.embedding,
        SEED,
        ATTACKER.index(),
    );
    let widths = [theirs, attackers.unwrap()];
    let features =
        agreed_features(&widths, PICTURES.shape, settings.embedding, settings.features, SEED)
            .unwrap();
    let waves = Waves::of(&features, PICTURES.shape);
    let halves = |m: &Message| if let Message::Moments(h) = m { Some(h.clone()) } else { None };
    let mut rebuilt = Vec::new();
    for half in heard.iter().find_map(halves).unwrap().iter().flatten() {
        rebuilt.extend(from_moments(&waves, &wide(&half.mean), &square(half), &own));
    }
    let (count, _) = PICTURES.found("from moments", &victim, &rebuilt);
    assert!(count >= 4, "the attack that the product warns of no longer works");
}

/// The features that an attacker computes with, and the mean that the default publishes of these samples.
fn heard_means(kind: &Kind, victim: &[Vec<f64>], own: &[Vec<f64>]) -> (Waves, Vec<f64>) {
    let heard = received(&kind.settings(), kind.shape, [victim, own]);
    let [Message::Means(published, _)] = &heard[..] else { panic!("more than a mean: {heard:?}") };
    let published = published.to_sketch(&kind.means()).unwrap();
    (kind.waves(), wide(&published.mean))
}

/// How near what was rebuilt is to some samples: the mean distance of a sample to the nearest of it; and, of everything rebuilt, the least distance to the
/// nearest sample, as a multiple of how far the mean of the samples is from that sample. Whoever knows nothing but that mean has 1.
fn nearness(samples: &[Vec<f64>], rebuilt: &[Vec<f64>]) -> [f64; 2] {
    let distances = samples.iter().map(|sample| nearest(sample, rebuilt));
    let mean = [mean_of(samples)];
    let ratio = |input: &Vec<f64>| {
        let here = std::slice::from_ref(input);
        let distances = samples.iter().map(|sample| (nearest(sample, here), sample));
        let (distance, sample) = distances.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
        distance / nearest(sample, &mean)
    };
    let best = rebuilt.iter().map(ratio).fold(f64::INFINITY, f64::min);
    [distances.sum::<f64>() / samples.len() as f64, best]
}

/// Means of so many samples are refused, or useless. An attacker who has samples of the same kind comes no nearer to the device's than it was before; and
/// what one rebuilds who begins with nothing but numbers in the right range is as near to the samples of devices that had no part in it. (Nearer than the mean of the
/// samples can be chance: rows have few numbers, and many are compared.)
fn refused_or_useless(kind: &Kind, samples: usize) {
    let what = format!("{samples} {}", kind.name);
    let victim = (kind.draw)(samples, 1);
    if let Err(refused) = check(&kind.settings(), kind.shape, samples, false) {
        println!("{what}: refused: {refused}");
        assert!(refused.to_string().contains("others could reconstruct"), "{refused}");
        return;
    }
    let own = (kind.draw)(samples, 2);
    let (waves, mean) = heard_means(kind, &victim, &own);
    let (known, before) = kind.found("known beforehand", &victim, &own);
    let (count, after) = kind.found("from their means", &victim, &from_mean(&waves, &mean, &own));
    assert!(count <= known, "{what}: {count}, and {known} before");
    assert!(after > 0.9 * before, "{what}: it came nearer by {}", after / before);

    let numbers: Vec<f64> = own.iter().flatten().copied().collect();
    let shuffled = |k: usize| numbers[k * 7_919 % numbers.len()];
    let width = kind.shape.len();
    let anything: Vec<Vec<f64>> =
        (0..samples).map(|i| (0..width).map(|k| shuffled(i * width + k)).collect()).collect();
    let rebuilt = from_mean(&waves, &mean, &anything);
    let bystanders = [3, 4, 5].map(|seed| nearness(&(kind.draw)(samples, seed), &rebuilt));
    let [distance, best] = nearness(&victim, &rebuilt);
    let others = bystanders.iter().map(|near| near[0]).sum::<f64>() / 3.0;
    let others_best = bystanders.iter().map(|near| near[1]).fold(f64::INFINITY, f64::min);
    println!(
        "{what}, nothing known: the best is {best:.2} times as far from a sample as the mean of all is, from samples of others {others_best:.2}; on \
         average {distance:.3} from its samples, {others:.3} from others'"
    );
    assert!(distance > 0.95 * others && best > 0.7 * others_best, "{what}");
}

#[test]
fn nothing_is_rebuilt_of_pictures() {
    for samples in [1, 5, 10, 40, 64, 100, 200, 500] {
        refused_or_useless(&PICTURES, samples);
    }
}

#[test]
fn nothing_is_rebuilt_of_rows() {
    for samples in [1, 5, 10, 40, 48, 100, 200, 500] {
        refused_or_useless(&ROWS, samples);
    }
}

#[test]
fn nothing_is_rebuilt_of_windows() {
    for samples in [1, 5, 10, 40, 64, 100, 200] {
        refused_or_useless(&WINDOWS, samples);
    }
}

/// A window and its mirror image have nearly the same features, so that not even a single one can be told from them.
#[test]
fn a_single_window_is_not_rebuilt_even_where_it_is_published() {
    let victim = (WINDOWS.draw)(1, 1);
    let (waves, mean) = heard_means(&WINDOWS, &victim, &(WINDOWS.draw)(1, 2));
    let rebuilt = of_one(&waves, &mean, &(WINDOWS.draw)(8, 3));
    let (count, _) = WINDOWS.found("from its means", &victim, &rebuilt);
    assert_eq!(count, 0);
}

#[test]
fn the_rule_begins_where_these_tests_do() {
    for (kind, least) in [(PICTURES, 64), (ROWS, 48), (WINDOWS, 64)] {
        let is_fine = |n: &usize| check(&kind.settings(), kind.shape, *n, false).is_ok();
        assert_eq!((1..).find(is_fine), Some(least));
    }
}

#[test]
fn a_single_sample_would_be_rebuilt_and_is_not_published() {
    let victim = (ROWS.draw)(1, 1);
    let (waves, mean) = heard_means(&ROWS.without_noise(), &victim, &(ROWS.draw)(1, 2));
    let rebuilt = of_one(&waves, &mean, &(ROWS.draw)(8, 3));
    let (count, _) = ROWS.found("from its means", &victim, &rebuilt);
    assert_eq!(count, 1, "the attack does not work where it must");
}
