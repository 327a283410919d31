//! A member that keeps to the protocol and keeps what it receives: what can it rebuild of another device's samples?
//!
//! Everything of a device's that another one receives while measuring goes into the attack, and so does the attacker's own data,
//! which look like the victim's. The attack is shown to work where the product warns of it.

use std::sync::Arc;

use stlf_data::Shape;
use stlf_data::domains::{Colour, Half, Style, strokes};
use stlf_method::divergence::sketch::{self, agreed_features};
use stlf_method::divergence::{Settings, disclosure, discriminant};
use stlf_protocol::Place;
use stlf_protocol::divergence_protocol::{Exchange, check};
use stlf_protocol::wire::{Message, Moments};

use crate::attack::{Waves, from_mean, from_moments, nearest};
use crate::common::computed;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const SEED: u64 = 11;
/// The victim's place in the roster.
const VICTIM: Place = Place::new(0);
const ATTACKER: Place = Place::new(1);
/// A sample counts as rebuilt if its numbers are right to a fiftieth of their range, in the mean square.
const REBUILT: f64 = 0.02;

const PICTURE: Shape = Shape::grey(7);
const ROW: Shape = Shape { channels: 1, height: 1, width: 12 };

/// Drawn digits, each pixel the mean of sixteen.
fn pictures(samples: usize, seed: u64) -> Vec<Vec<f64>> {
    let drawn = strokes(Style::Clean, Half::Train, samples, seed, Colour::Grey).unwrap();
    let small = |k: usize| {
        let large = drawn.inputs(&[k]);
        let pixel = |at: usize| {
            let (y, x) = (at / 7 * 4, at % 7 * 4);
            let sixteen = (0..16).map(|k| f64::from(large[(y + k / 4) * 28 + x + k % 4]));
            sixteen.sum::<f64>() / 16.0
        };
        (0..49).map(pixel).collect()
    };
    (0..samples).map(small).collect()
}

/// Rows of a table whose columns follow four hidden causes, as columns do; their range is about four.
fn rows(samples: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut uniform = || rng.random_range(-1.0..1.0);
    let row = |uniform: &mut dyn FnMut() -> f64| {
        let causes: Vec<f64> = (0..4).map(|_| uniform()).collect();
        (0..12).map(|k| causes[k % 4] + 0.5 * causes[(k / 4 + 1) % 4] + 0.5 * uniform()).collect()
    };
    (0..samples).map(|_| row(&mut uniform)).collect()
}

fn flat(samples: &[Vec<f64>]) -> Arc<[f32]> {
    samples.iter().flatten().map(|&x| x as f32).collect()
}

/// All that the attacker receives from the victim while they measure.
fn received(settings: &Settings, shape: Shape, samples: [&[Vec<f64>]; 2]) -> Vec<Message> {
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

/// How many of the victim's samples are among what was rebuilt, and the mean distance to it; prints both.
fn found(what: &str, victim: &[Vec<f64>], rebuilt: &[Vec<f64>], range: f64) -> (usize, f64) {
    let distances: Vec<f64> = victim.iter().map(|s| nearest(s, rebuilt) / range).collect();
    let count = distances.iter().filter(|d| **d < REBUILT).count();
    let mean = distances.iter().sum::<f64>() / distances.len() as f64;
    println!("{what}: {count} of {} rebuilt, mean distance {mean:.3} of the range", victim.len());
    (count, mean)
}

fn wide(numbers: &[f32]) -> Vec<f64> {
    numbers.iter().map(|&x| f64::from(x)).collect()
}

fn square(moments: &Moments) -> Vec<Vec<f64>> {
    let (side, triangle) = (moments.mean.len(), &moments.covariance);
    let at = |i: usize, j: usize| f64::from(triangle[i.max(j) * (i.max(j) + 1) / 2 + i.min(j)]);
    (0..side).map(|i| (0..side).map(|j| at(i, j)).collect()).collect()
}

#[test]
fn moments_give_samples_away_and_so_need_consent() {
    let settings = discriminant::Settings { features: 128, ..discriminant::Settings::default() };
    let all = Settings::Discriminant(settings);
    let refused = check(&all, PICTURE, 6, false).unwrap_err();
    assert!(refused.hint().unwrap().contains(disclosure::ACCEPTED), "{refused}");

    let (victim, own) = (pictures(6, 1), pictures(10, 2));
    let heard = received(&all, PICTURE, [&victim, &own]);
    let width = |m: &Message| if let Message::Bandwidth(w) = m { Some(*w) } else { None };
    let theirs = heard.iter().find_map(width).unwrap();
    let attackers = stlf_method::divergence::bandwidth::own_bandwidth(
        &flat(&own),
        PICTURE,
        settings.embedding,
        SEED,
        ATTACKER.index(),
    );
    let widths = [theirs, attackers.unwrap()];
    let features =
        agreed_features(&widths, PICTURE, settings.embedding, settings.features, SEED).unwrap();
    let waves = Waves::of(&features, PICTURE);
    let halves = |m: &Message| if let Message::Moments(h) = m { Some(h.clone()) } else { None };
    let mut rebuilt = Vec::new();
    for half in heard.iter().find_map(halves).unwrap().iter().flatten() {
        rebuilt.extend(from_moments(&waves, &wide(&half.mean), &square(half), &own));
    }
    let (count, _) = found("6 pictures from moments", &victim, &rebuilt, 1.0);
    assert!(count >= 4, "the attack that the product warns of no longer works");
}

/// The features that an attacker computes with, and the mean that the default publishes of these samples.
fn heard_means(shape: Shape, victim: &[Vec<f64>], own: &[Vec<f64>]) -> (Waves, Vec<f64>) {
    let means = sketch::Settings::means(shape);
    let heard = received(&Settings::Sketch(means), shape, [victim, own]);
    let [Message::Means(published)] = &heard[..] else { panic!("more than a mean: {heard:?}") };
    let published = published.to_sketch(&means).unwrap();
    let width = means.bandwidth.known();
    let features = agreed_features(&[width], shape, means.embedding, means.features, SEED).unwrap();
    (Waves::of(&features, shape), wide(&published.mean))
}

/// Attacks these samples from every start: how many more were rebuilt than were near the start, and by which factor the result
/// came nearer to them.
fn attack_means(
    what: &str,
    shape: Shape,
    victim: &[Vec<f64>],
    starts: &[Vec<Vec<f64>>],
    range: f64,
) -> (i64, f64) {
    let (waves, mean) = heard_means(shape, victim, &starts[0]);
    let (mut most, mut nearest) = (i64::MIN, f64::INFINITY);
    for start in starts {
        let (known, before) = found("known beforehand", victim, start, range);
        let rebuilt = from_mean(&waves, &mean, start);
        let (count, after) = found(what, victim, &rebuilt, range);
        most = most.max(count as i64 - known as i64);
        nearest = nearest.min(after / before);
    }
    (most, nearest)
}

#[test]
fn nothing_is_rebuilt_from_what_devices_publish_by_default() {
    for (what, shape, range, draw) in [
        ("pictures", PICTURE, 1.0, pictures as fn(usize, u64) -> Vec<Vec<f64>>),
        ("rows", ROW, 4.0, rows),
    ] {
        let default = Settings::Sketch(sketch::Settings::means(shape));
        let least = (1..).find(|&n| check(&default, shape, n, false).is_ok()).unwrap();
        for samples in [least, 200, 500] {
            let victim = draw(samples, 1);
            // The attacker begins with data of its own.
            let starts = [draw(samples, 2), draw(samples, 3)];
            let what = format!("{samples} {what} from their means");
            let (rebuilt, nearer) = attack_means(&what, shape, &victim, &starts, range);
            assert!(rebuilt <= 0, "{what}: {rebuilt} more than the attacker had before");
            assert!(nearer > 0.9, "{what}: it came nearer by {nearer}");
        }
    }
}

#[test]
fn a_single_sample_would_be_rebuilt_and_is_not_published() {
    let victim = rows(1, 1);
    let (waves, mean) = heard_means(ROW, &victim, &rows(1, 2));
    let side = mean.len();
    let equally = (0..side).map(|i| (0..side).map(|j| f64::from(i == j)).collect::<Vec<_>>());
    let rebuilt = from_moments(&waves, &mean, &equally.collect::<Vec<_>>(), &rows(8, 3));
    let (count, _) = found("1 row from its means", &victim, &rebuilt, 4.0);
    assert_eq!(count, 1, "the attack does not work where it must");
    let default = Settings::Sketch(sketch::Settings::means(ROW));
    let refused = check(&default, ROW, 1, false).unwrap_err();
    assert!(refused.to_string().contains("others could reconstruct 1 sample"), "{refused}");
}
