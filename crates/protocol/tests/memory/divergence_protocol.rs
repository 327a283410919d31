//! Devices measure their divergences as the simulator does, to the bit, in whatever order messages arrive; what comes twice, out of
//! turn, or in the wrong size has no effect.

use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

use stlf_data::Shape;
use stlf_method::divergence::privacy::Privacy;
use stlf_method::divergence::sketch::{Bandwidth, Settings as SketchSettings};
use stlf_method::divergence::{self, Settings, classifier, sketch};
use stlf_method::seeds::Draw;
use stlf_protocol::divergence_protocol::{Exchange, check, divergence as from_both};
use stlf_protocol::shared::Fingerprint;
use stlf_protocol::wire::{
    Count, Envelope, Measured, Message, Moments, PairReport, Report, Said, SignedReport, Turn,
};
use stlf_protocol::{Place, Refusal, Setup};

use crate::common::{ALL, DEVICES, SEED, SHAPE, data, devices_of, estimators, holdings, setup};
use crate::common::{computed, identity, without_noise};

/// Of every device.
static INPUTS: LazyLock<Vec<Arc<[f32]>>> =
    LazyLock::new(|| holdings(&data()).into_iter().map(|own| own.inputs).collect());

/// A message on its way: from, to, what.
type Parcel = (Place, Place, Message);

/// Exchanges, and what is on its way between them, in no order at all.
struct Mail {
    exchanges: Vec<Exchange>,
    waiting: Vec<Parcel>,
    delivered: Vec<Parcel>,
    random: u64,
}

impl Mail {
    fn new(settings: &Settings, seed: u64) -> Mail {
        let divergence = Draw::Divergence.seed(SEED, 0);
        let mut exchanges: Vec<Exchange> = (ALL.iter().zip(INPUTS.iter().cloned()))
            .map(|(&place, own)| {
                let key = [place.index() as u8; 32];
                Exchange::new(settings, SHAPE, divergence, key, place, &ALL, own)
            })
            .collect();
        let waiting = (ALL.into_iter().zip(&mut exchanges))
            .flat_map(|(from, exchange)| {
                let steps = exchange.start();
                let said = computed(exchange, steps).unwrap();
                said.into_iter().map(move |(to, message)| (from, to, message))
            })
            .collect();
        Mail { exchanges, waiting, delivered: Vec::new(), random: seed }
    }

    fn chosen(&mut self, among: usize) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) as usize % among
    }

    /// Delivers any message, as bytes; `false` if there is none.
    fn deliver(&mut self) -> bool {
        if self.waiting.is_empty() {
            return false;
        }
        let at = self.chosen(self.waiting.len());
        let (from, to, message) = self.waiting.swap_remove(at);
        let read = Envelope::read(&Envelope::new(1, message).to_bytes()).unwrap().message;
        let steps = self.exchanges[to.index()].receive(from, &read).unwrap();
        let replies = computed(&mut self.exchanges[to.index()], steps).unwrap();
        self.waiting.extend(replies.into_iter().map(|(peer, message)| (to, peer, message)));
        self.delivered.push((from, to, read));
        true
    }

    fn run(mut self) -> Vec<Exchange> {
        while self.deliver() {}
        self.exchanges
    }
}

/// d̂ as a planner has it, row by row.
fn matrix(settings: &Settings, exchanges: &[Exchange]) -> Vec<u64> {
    let said: Vec<_> = exchanges.iter().map(|exchange| exchange.pairs().unwrap()).collect();
    let of = |i: usize, j: usize| said[i].iter().find(|(peer, _)| peer.index() == j).unwrap().1;
    let pair = |i: usize, j: usize| match i == j {
        true => 0.0,
        false => from_both(settings, [of(i.min(j), i.max(j)), of(i.max(j), i.min(j))]).unwrap(),
    };
    (0..DEVICES).flat_map(|i| (0..DEVICES).map(move |j| pair(i, j).to_bits())).collect()
}

/// d̂ as the simulator has it.
fn simulated(settings: &Settings) -> Vec<u64> {
    let inputs: Vec<&[f32]> = INPUTS.iter().map(|own| &own[..]).collect();
    let seed = Draw::Divergence.seed(SEED, 0);
    let mut go_on = |_| ControlFlow::Continue(());
    let measured = divergence::measure(&inputs, SHAPE, settings, seed, &mut go_on);
    measured.unwrap().unwrap().matrix().into_iter().map(f64::to_bits).collect()
}

#[test]
fn every_estimator_gives_the_simulators_numbers_in_any_order() {
    for settings in without_noise() {
        let expected = simulated(&settings);
        assert!(expected.iter().any(|&bits| bits != expected[1] && bits != 0), "{settings:?}");
        for order in [1, 2, 3] {
            let ended = Mail::new(&settings, order).run();
            assert_eq!(matrix(&settings, &ended), expected, "{settings:?}");
        }
    }
}

#[test]
fn what_comes_again_changes_nothing() {
    for settings in estimators() {
        let expected = matrix(&settings, &Mail::new(&settings, 3).run());
        let mut mail = Mail::new(&settings, 4);
        while mail.deliver() {
            let at = mail.chosen(mail.delivered.len());
            let (from, to, message) = &mail.delivered[at];
            let again = mail.exchanges[to.index()].receive(*from, message);
            assert!(again.is_err() || again == Ok(Vec::new()), "{again:?}");
        }
        assert_eq!(matrix(&settings, &mail.exchanges), expected, "{settings:?}");
    }
}

#[test]
fn what_is_of_another_estimator_or_from_nobody_is_refused() {
    let first: Vec<Message> = (estimators().iter())
        .map(|settings| Mail::new(settings, 1).waiting.swap_remove(0).2)
        .chain([Message::Moments([None, None]), sketched(32)])
        .chain([Message::Unchanged([0; 16], None), Message::AskForMeans])
        .collect();
    for settings in estimators() {
        let mut mail = Mail::new(&settings, 1);
        let takes = |message: &Message| match (&settings, message) {
            (Settings::Discriminant(_), Message::Bandwidth(_) | Message::Moments(_)) => true,
            (Settings::Sketch(s), Message::Bandwidth(_)) => s.bandwidth == Bandwidth::Median,
            (Settings::Sketch(s), Message::Sketch(m)) => {
                m.mean.len() == s.features && s.publishes_covariance()
            }
            (Settings::Sketch(s), Message::Means(m, _)) => {
                m.to_sketch(s).is_some() && !s.publishes_covariance()
            }
            (Settings::Sketch(s), Message::Unchanged(..) | Message::AskForMeans) => {
                !s.publishes_covariance()
            }
            (Settings::Classifier(s), Message::Turn(turn)) => {
                let Said::Params(params) = &turn.said else { return false };
                params.len() == s.architecture.spec(SHAPE).unwrap().parameters()
            }
            _ => false,
        };
        for message in first.iter().filter(|message| !takes(message)) {
            let refused = mail.exchanges[2].receive(ALL[3], message);
            assert!(matches!(refused, Err(Refusal::Unfit(_))), "{settings:?} {refused:?}");
        }
        let own = first.iter().find(|message| takes(message)).unwrap();
        for stranger in [Place::new(77), ALL[2]] {
            assert_eq!(mail.exchanges[2].receive(stranger, own), Err(Refusal::Stranger(stranger)));
        }
        let undisturbed = Mail::new(&settings, 2).run();
        assert_eq!(matrix(&settings, &mail.run()), matrix(&settings, &undisturbed));
    }
}

fn sketched(features: usize) -> Message {
    let covariance = vec![0.0; features * (features + 1) / 2];
    Message::Sketch(Moments { samples: 9, mean: vec![0.0; features], covariance })
}

/// Of the estimators above, with four rounds and two repeats.
fn in_turns() -> (Settings, usize) {
    let settings = estimators().swap_remove(3);
    let Settings::Classifier(classifier) = &settings else { panic!("{settings:?}") };
    let parameters = classifier.architecture.spec(SHAPE).unwrap().parameters();
    (settings, parameters)
}

#[test]
fn turns_out_of_round_or_of_another_kind_are_refused() {
    let (settings, parameters) = in_turns();
    let mut mail = Mail::new(&settings, 1);
    let errors = Said::Errors(Count { errors: 1, samples: 2 });
    let params = |numbers| Said::Params(vec![0.5; numbers]);
    for (number, said) in [
        (2, params(parameters)),
        (4, errors.clone()),
        (u64::MAX, errors.clone()),
        (0, errors.clone()),
        (1, errors),
        (0, params(parameters + 1)),
        (0, params(0)),
        (1, params(1)),
        (0, Said::Params(vec![f32::NAN; parameters])),
    ] {
        let refused = mail.exchanges[2].receive(ALL[3], &Message::Turn(Turn { number, said }));
        assert!(matches!(refused, Err(Refusal::Unfit(_))), "{number}: {refused:?}");
    }
    // The turn after the next is kept; another in its place is not.
    let mut other = Mail::new(&settings, 1);
    let early = |number: f32| {
        Message::Turn(Turn { number: 1, said: Said::Params(vec![number; parameters]) })
    };
    assert_eq!(other.exchanges[2].receive(ALL[3], &early(0.5)), Ok(Vec::new()));
    assert_eq!(other.exchanges[2].receive(ALL[3], &early(0.25)), Err(Refusal::Twice(ALL[3])));
    // What was refused had no effect.
    let mut ended = mail.run();
    assert_eq!(matrix(&settings, &ended), simulated(&settings));
    let late = Turn { number: 10, said: params(parameters) };
    let refused = ended[2].receive(ALL[3], &Message::Turn(late)).unwrap_err();
    assert_eq!(refused, Refusal::Unfit("a turn after the last"));
}

#[test]
fn a_device_that_falls_silent_leaves_the_measuring_open() {
    for settings in estimators() {
        let mut mail = Mail::new(&settings, 5);
        // Where one message is all that a device says, who has it needs no more.
        let says_one = matches!(&settings, Settings::Sketch(s) if s.bandwidth != Bandwidth::Median);
        let (mut heard, before) = (0, if says_one { 0 } else { 3 });
        loop {
            if heard >= before {
                mail.waiting.retain(|(from, ..)| *from != ALL[5]);
            }
            if !mail.deliver() {
                break;
            }
            heard += mail.delivered.last().map_or(0, |(from, ..)| usize::from(*from == ALL[5]));
        }
        mail.exchanges.truncate(5);
        assert!(
            heard >= before && mail.exchanges.iter().all(|e| e.pairs().is_none()),
            "{settings:?}"
        );
    }
}

#[test]
fn sketches_that_no_inputs_have_come_to_possible_numbers() {
    let settings = estimators().swap_remove(1);
    let Settings::Sketch(sketch::Settings { features, .. }) = settings else { panic!() };
    let numbers = features * (features + 1) / 2;
    let hostile =
        [vec![-2.0; numbers], vec![2.0; numbers], vec![0.0; numbers], vec![1e-40; numbers]];
    for (covariance, samples) in hostile.into_iter().zip([1 << 48, 1, 1 << 48, 2]) {
        let lie = Message::Sketch(Moments { samples, mean: vec![-2.0; features], covariance });
        let mut mail = Mail::new(&settings, 6);
        for to in 0..DEVICES - 1 {
            let steps = mail.exchanges[to].receive(ALL[5], &lie).unwrap();
            assert_eq!(computed(&mut mail.exchanges[to], steps), Ok(Vec::new()));
        }
        while !mail.waiting.is_empty() {
            mail.waiting
                .retain(|(from, _, m)| *from != ALL[5] || matches!(m, Message::Bandwidth(_)));
            mail.deliver();
        }
        for exchange in &mail.exchanges[..5] {
            for (_, measured) in exchange.pairs().unwrap() {
                let Measured::Divergence(value) = measured else { panic!("{measured:?}") };
                assert!((0.0..=2.0).contains(&value), "{value}");
            }
        }
    }
}

#[test]
fn of_two_values_for_a_pair_the_larger_counts() {
    let [counted, sketched] = [0, 1].map(|k| estimators().swap_remove(k));
    let value = |a, b| from_both(&sketched, [Measured::Divergence(a), Measured::Divergence(b)]);
    assert_eq!((value(0.1, 1.5), value(1.5, 0.1)), (Some(1.5), Some(1.5)));
    let count = Measured::Errors(Count { errors: 1, samples: 4 });
    assert_eq!(from_both(&counted, [count, count]), Some(1.0));
    assert_eq!(from_both(&sketched, [count, Measured::Divergence(1.0)]), None);
    assert_eq!(from_both(&counted, [count, Measured::Divergence(1.0)]), None);
}

#[test]
fn the_planner_takes_only_what_its_estimator_can_say() {
    let report = |measured| {
        let pair = |peer| PairReport { peer, measured, joules: None };
        let pairs = [0, 1, 2, 4, 5].map(|peer| pair(ALL[peer])).to_vec();
        let report = Report { labeled: 0, unlabeled: 10, source_error: None, pairs };
        let report =
            SignedReport::sign(report, 1.into(), Fingerprint::default(), &identity(ALL[3]));
        Envelope::new(1, Message::Report(report))
    };
    let errors = |samples| report(Measured::Errors(Count { errors: 0, samples }));
    let value = report(Measured::Divergence(0.5));
    let mut cases = estimators().into_iter();
    for (wrong, right) in [
        (vec![errors(11), value.clone()], errors(10)),
        (vec![errors(10)], value.clone()),
        (vec![errors(10)], value.clone()),
        (vec![errors(21), value], errors(20)),
    ] {
        let divergence = cases.next().unwrap();
        let mut planner = devices_of(&Setup { divergence, ..setup() }).swap_remove(0);
        planner.begin(1, &ALL, &std::collections::BTreeSet::new());
        for envelope in wrong {
            let refused = planner.receive(ALL[3], &envelope).unwrap_err();
            assert_eq!(refused, Refusal::Unfit("a report that is not of this estimator"));
        }
        assert_eq!(planner.receive(ALL[3], &right), Ok(Vec::new()));
    }
}

#[test]
fn what_cannot_be_measured_is_known_beforehand() {
    for settings in estimators() {
        check(&settings, SHAPE, 100, true).unwrap();
    }
    let classifier = classifier::Settings::default();
    let none = Settings::Classifier(classifier.with(|s| s.rounds = 0));
    assert!(check(&none, SHAPE, 100, true).is_err());
    // A network of 64 hidden nodes over so many numbers takes 77 MB.
    let large = Settings::Classifier(classifier);
    let large = check(&large, Shape::grey(550), 100, true).unwrap_err();
    assert!(large.to_string().contains("too many for a message"), "{large}");
}

/// What the device at place 0 publishes, with its key.
fn published(settings: SketchSettings, key: u8) -> Vec<f32> {
    let own = INPUTS[0].clone();
    let mut exchange =
        Exchange::new(&Settings::Sketch(settings), SHAPE, 9, [key; 32], ALL[0], &ALL[..2], own);
    let steps = exchange.start();
    match computed(&mut exchange, steps).unwrap().swap_remove(0).1 {
        Message::Means(means, _) => means.to_sketch(&settings).unwrap().mean,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_publication_is_known_again_whoever_takes_part_and_by_its_own_key_alone() {
    let publication = |epsilon: f64, key: u8, members: usize, first: f32| {
        let privacy = Some(Privacy::new(epsilon, 1e-5));
        let settings = Settings::Sketch(SketchSettings::means(SHAPE).with(|s| {
            s.privacy = privacy;
            s.privacy_required = true;
        }));
        let inputs: Arc<[f32]> =
            std::iter::once(first).chain(vec![0.5; 4 * SHAPE.len() - 1]).collect();
        Exchange::new(&settings, SHAPE, 9, [key; 32], ALL[0], &ALL[..members], inputs).publication()
    };
    let usual = publication(1.0, 1, 2, 0.5);
    assert!(usual.is_some());
    assert_eq!(usual, publication(1.0, 1, 1, 0.5));
    for other in
        [publication(0.9, 1, 2, 0.5), publication(1.0, 2, 2, 0.5), publication(1.0, 1, 2, 0.6)]
    {
        assert!(other.is_some() && other != usual);
    }
    let exact = Settings::Sketch(SketchSettings::means(SHAPE));
    let inputs = vec![0.5; SHAPE.len()].into();
    let exchange = Exchange::new(&exact, SHAPE, 9, [1; 32], ALL[0], &ALL[..1], inputs);
    assert_eq!(exchange.publication(), None);
}

#[test]
fn noise_cannot_be_taken_away_by_another_bandwidth_or_another_epoch() {
    let noise = |privacy: Privacy, width: f64, key: u8| -> Vec<f64> {
        let exact = SketchSettings::means(SHAPE).with(|s| s.bandwidth = Bandwidth::Fixed(width));
        let noisy = exact.with(|s| {
            s.privacy = Some(privacy);
            s.privacy_required = true;
        });
        let pairs = published(noisy, key).into_iter().zip(published(exact, key));
        pairs.map(|(a, b)| f64::from(a) - f64::from(b)).collect()
    };
    let correlation = |a: &[f64], b: &[f64]| {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    };
    let privacy = Privacy::new(0.1, 1e-5);
    let usual = noise(privacy, 10.0, 1);
    // In features of no width every input has the same, so that what is published shows its noise.
    let shown = noise(privacy, 1e300, 1);
    let random = 4.0 / (usual.len() as f64).sqrt();
    assert!(correlation(&usual, &shown).abs() < random);
    assert!(correlation(&usual, &noise(privacy, 10.0, 2)).abs() < random);
    // The same draws, stronger, would show what they are added to.
    let weaker = Privacy::new(0.2, 1e-5);
    assert!(correlation(&usual, &noise(weaker, 10.0, 1)).abs() < random);
    // The same sketch again is the same message: nothing to average.
    assert_eq!(usual, noise(privacy, 10.0, 1));
    assert!(correlation(&usual, &usual) > 0.99);
}
