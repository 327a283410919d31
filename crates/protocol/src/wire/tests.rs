use super::*;
use proptest::prelude::*;
use stlf_method::expectation::Trial;
use stlf_planning::planner::handover::Forms;

/// Builds what a test needs from plain numbers.
pub(super) fn places(indices: impl IntoIterator<Item = usize>) -> Vec<Place> {
    indices.into_iter().map(Place::new).collect()
}

pub(super) fn link(from: usize, to: usize, weight: f64) -> Link {
    Link { from: Place::new(from), to: Place::new(to), weight }
}

pub(super) fn handover(from: usize, to: usize) -> Sending {
    Sending { from: Place::new(from), to: Place::new(to) }
}

pub(super) fn plan() -> Plan {
    Plan {
        epoch: 3,
        sources: places([0, 2, 4, 5]),
        targets: places([1]),
        links: vec![link(0, 1, 0.25), link(2, 1, 0.75)],
        handovers: vec![handover(5, 2), handover(2, 4)],
        witnesses: vec![handover(4, 1), handover(5, 1)],
        examinations: vec![handover(0, 2), handover(2, 5)],
        forbidden: vec![(Place::new(3), Place::new(1))],
        objective: 1.5,
        optimal: true,
    }
}

fn offer(way: Way) -> SignedOffer {
    let offer = Offer { way, hash: [3; 32], bytes: 90_000 };
    SignedOffer { offer, signature: vec![7; 64] }
}

fn signed(report: Report) -> SignedReport {
    SignedReport { report, signature: vec![7; 64] }
}

/// Whatever the length of the reason.
fn denial(reason: &str) -> Denial {
    Denial { reason: reason.to_owned(), reports: vec![signed(report())] }
}

fn report() -> Report {
    let counted = Measured::Errors(Count { errors: 3, samples: 10 });
    let counted = PairReport { peer: Place::new(1), measured: counted, joules: Some(2.5) };
    let measured = Measured::Divergence(1.5);
    let pairs = vec![counted, PairReport { peer: Place::new(2), measured, joules: None }];
    Report { labeled: 8, unlabeled: 4, source_error: Some(0.25), pairs }
}

/// Means of so many samples, all different.
fn means(samples: u64, features: usize) -> Means {
    let mean = (0..features).map(|k| 0.001 * k as f32).collect();
    Means::of(&Sketch { samples, mean, covariance: None }, &with_means(features))
}

fn with_means(features: usize) -> stlf_method::divergence::sketch::Settings {
    use stlf_method::divergence::sketch::Settings;
    Settings::means(stlf_data::Shape::grey(28)).with(|s| s.features = features)
}

fn samples() -> Vec<Message> {
    let half = Moments { samples: 9, mean: vec![0.5; 3], covariance: vec![0.1; 6] };
    let turn = |number, said| Message::Turn(Turn { number, said });
    vec![
        Message::Begin(places([0, 1, 5])),
        Message::Bandwidth(Some(2.5)),
        Message::Bandwidth(None),
        Message::Moments([Some(half.clone()), None]),
        Message::Sketch(half),
        Message::Means(means(9, 3), None),
        Message::Unchanged([7; 16], None),
        Message::AskForMeans,
        turn(7, Said::Params(vec![-0.5, 3.0])),
        turn(8, Said::Errors(Count { errors: 2, samples: 5 })),
        Message::Report(signed(report())),
        Message::Plan(SignedPlan {
            plan: plan(),
            reports: vec![signed(report())],
            signature: vec![7; 64],
        }),
        Message::NoPlan(denial("nobody has labels")),
        Message::Offer(offer(Way::First), Tried::default()),
        Message::Offer(offer(Way::Second), tried()),
        Message::Failed(Place::new(2)),
        Message::TrainedOn(40),
        Message::TrainedOn(200),
        Message::Done,
        Message::Complete,
        Message::Missing(places([1, 4])),
        Message::Hello(hello()),
        Message::Roster(b"{}".to_vec()),
        Message::Known,
        Message::Probe(vec![0; 9]),
        Message::Believed(Place::new(4), offer(Way::First)),
        Message::Arrived(100),
    ]
}

fn tried() -> Tried {
    let trial = |errors| Trial { labels: 60, errors, doubt: 0.25 };
    Tried::alone(Some(trial(3))).handed_on(5, Some(trial(60)), None)
}

fn hello() -> Hello {
    let settings = SharedSettings::new([("seed".to_owned(), "3".to_owned())]);
    Hello { roster: 7, start: 99, running: 4.into(), settings }
}

#[test]
fn messages_are_read_as_they_were_sent() {
    for message in samples() {
        let sent = Envelope::new(4, message);
        assert_eq!(Envelope::read(&sent.to_bytes()), Ok(sent));
    }
}

#[test]
fn a_place_is_a_plain_number_on_the_wire_and_in_files() {
    let bytes = Envelope::new(1, Message::Begin(places([0, 300]))).to_bytes();
    assert_eq!(bytes, [VERSION as u8, 1, 0, 0, 2, 0, 0xac, 2]);
    let json = serde_json::to_string(&handover(5, 2)).unwrap();
    assert_eq!(json, r#"{"from":5,"to":2}"#);
}

#[test]
fn what_cannot_be_is_refused() {
    let absurd = |message: Message| {
        let bytes = Envelope::new(1, message).to_bytes();
        matches!(Envelope::read(&bytes), Err(Malformed::Absurd(_)))
    };
    for trial in [
        Trial { labels: 0, errors: 0, doubt: 0.5 },
        Trial { labels: 9, errors: 10, doubt: 0.5 },
        Trial { labels: 9, errors: 1, doubt: 1.1 },
        Trial { labels: 9, errors: 1, doubt: -0.1 },
        Trial { labels: 9, errors: 1, doubt: f32::NAN },
    ] {
        let alone = Tried::alone(Some(trial));
        assert!(absurd(Message::Offer(offer(Way::First), alone)), "{trial:?}");
        let on_route = Tried::default().handed_on(2, Some(trial), None);
        assert!(absurd(Message::Offer(offer(Way::First), on_route)), "{trial:?}");
    }
    assert!(absurd(Message::Begin(places([1, 1]))));
    assert!(absurd(Message::Bandwidth(Some(f64::NAN))));
    assert!(absurd(Message::Bandwidth(Some(-1.0))));
    let half = |mean: Vec<f32>, covariance| Moments { samples: 9, mean, covariance };
    for moments in [
        half(vec![f32::INFINITY], vec![0.0]),
        half(vec![0.0; 2], vec![0.0; 2]),
        half(vec![1e9], vec![0.0]),
        Moments { samples: 0, ..half(vec![0.0], vec![0.0]) },
    ] {
        assert!(absurd(Message::Sketch(moments.clone())));
        assert!(absurd(Message::Moments([Some(moments), None])));
    }
    assert!(absurd(Message::Means(means(0, 2), None)));
    assert!(absurd(Message::Means(means(MOST_SAMPLES + 1, 2), None)));
    let said = |said| absurd(Message::Turn(Turn { number: 0, said }));
    assert!(said(Said::Params(vec![0.0, f32::NAN])));
    assert!(said(Said::Params(vec![0.0, -2e6])));
    assert!(said(Said::Errors(Count { errors: 3, samples: 2 })));
    assert!(said(Said::Errors(Count { errors: 3, samples: u64::MAX })));
    let lying = |change: fn(&mut Report)| {
        let mut report = report();
        change(&mut report);
        absurd(Message::Report(signed(report)))
    };
    assert!(lying(|r| r.source_error = Some(-0.1)));
    assert!(lying(|r| r.source_error = Some(f64::NAN)));
    assert!(lying(|r| r.source_error = None));
    assert!(lying(|r| r.labeled = u64::MAX));
    assert!(lying(|r| r.labeled = 1_000_000_000_000));
    assert!(lying(|r| (r.labeled, r.unlabeled, r.source_error) = (0, 0, None)));
    assert!(lying(|r| r.pairs[0].measured = Measured::Errors(Count { errors: 11, samples: 10 })));
    assert!(lying(
        |r| r.pairs[0].measured = Measured::Errors(Count { errors: 1, samples: 1 << 60 })
    ));
    assert!(lying(|r| r.pairs[1].measured = Measured::Divergence(2.1)));
    assert!(lying(|r| r.pairs[1].measured = Measured::Divergence(f64::NAN)));
    assert!(lying(|r| r.pairs[0].joules = Some(f64::INFINITY)));
    assert!(lying(|r| r.pairs.push(r.pairs[0])));
    let wrong = |change: fn(&mut Plan)| {
        let mut plan = plan();
        change(&mut plan);
        absurd(Message::Plan(SignedPlan { plan, reports: Vec::new(), signature: Vec::new() }))
    };
    assert!(wrong(|p| p.links[0].weight = 0.9));
    assert!(wrong(|p| p.links[0].from = Place::new(1)));
    assert!(wrong(|p| p.targets.push(Place::new(2))));
    assert!(wrong(|p| p.links.clear()));
    assert!(wrong(|p| p.objective = f64::NAN));
    // In another order, twice at half the weight, of no weight.
    assert!(wrong(|p| p.links.reverse()));
    assert!(wrong(|p| {
        p.links[1].weight /= 2.0;
        p.links.push(p.links[1]);
    }));
    assert!(wrong(|p| (p.links[0].weight, p.links[1].weight) = (0.0, 1.0)));
    // A witness to a source, from a stranger, that sends anyway, twice.
    assert!(wrong(|p| p.witnesses[0].to = Place::new(2)));
    assert!(wrong(|p| p.witnesses[0].from = Place::new(3)));
    assert!(wrong(|p| p.witnesses[0].from = Place::new(2)));
    assert!(wrong(|p| p.witnesses[1] = p.witnesses[0]));
    // Of a source that sends to nobody, by a stranger, by itself, twice.
    assert!(wrong(|p| p.examinations[0].from = Place::new(4)));
    assert!(wrong(|p| p.examinations[1].to = Place::new(9)));
    assert!(wrong(|p| p.examinations[0].from = Place::new(2)));
    assert!(wrong(|p| p.examinations[1] = p.examinations[0]));
    assert!(wrong(|p| p.forbidden.push(p.forbidden[0])));
    // To a target, from one, from a stranger, to oneself, two to one source, in another order, round a ring of which nobody or two send.
    assert!(wrong(|p| p.handovers[1].to = Place::new(1)));
    assert!(wrong(|p| p.handovers[0].from = Place::new(1)));
    assert!(wrong(|p| p.handovers[0].from = Place::new(9)));
    assert!(wrong(|p| p.handovers[0].from = Place::new(2)));
    assert!(wrong(|p| p.handovers[1].to = Place::new(2)));
    assert!(wrong(|p| p.handovers.reverse()));
    assert!(!wrong(|p| p.handovers.push(handover(4, 5))));
    assert!(wrong(|p| {
        p.handovers.push(handover(4, 5));
        p.links = vec![link(0, 1, 1.0)];
    }));
    assert!(wrong(|p| {
        p.handovers.push(handover(4, 5));
        p.links.insert(1, link(4, 1, 0.0));
    }));
    assert!(absurd(Message::TrainedOn(201)));
    assert!(absurd(Message::Arrived(101)));
}

#[test]
fn other_versions_and_long_or_trailing_bytes_are_refused() {
    let mut sent = Envelope::new(1, Message::Bandwidth(None));
    let mut bytes = sent.to_bytes();
    bytes.push(0);
    assert_eq!(Envelope::read(&bytes), Err(Malformed::Unreadable));
    sent.version = 1;
    assert_eq!(Envelope::read(&sent.to_bytes()), Err(Malformed::Version(1)));
    let long = long(2, MOST_BYTES + 1);
    let too_long = Malformed::TooLong { bytes: MOST_BYTES + 1, most: MOST_BYTES };
    assert_eq!(Envelope::read(&long), Err(too_long));
    assert_eq!(Envelope::read(&[]), Err(Malformed::Unreadable));
}

/// The head of a message of this kind, by its number, and zeros.
fn long(kind: u8, bytes: usize) -> Vec<u8> {
    let mut long = vec![0; bytes];
    long[..4].copy_from_slice(&[VERSION as u8, 1, 0, kind]);
    long
}

#[test]
fn kinds_are_named_in_the_order_of_messages() {
    for message in samples() {
        let bytes = Envelope::new(4, message.clone()).to_bytes();
        let head = postcard::take_from_bytes::<(u16, EpochId, limits::Kind)>(&bytes);
        let kind = format!("{:?}", head.unwrap().0.2);
        let said = format!("{message:?}");
        assert!(said == kind || said.starts_with(&format!("{kind}(")), "{kind} is not {said}");
    }
}

/// Millions of pairs or places in a few bytes each would be a hundred times as much in memory.
#[test]
fn what_is_too_long_for_its_kind_is_refused_before_it_is_decoded() {
    let pair = PairReport {
        peer: Place::new(1),
        measured: Measured::Errors(Count { errors: 0, samples: 0 }),
        joules: None,
    };
    let report = Report { pairs: vec![pair; 1_000_000], ..report() };
    let places = places(0..9_000_000);
    let plan = Plan { links: vec![plan().links[0]; 1_000_000], ..plan() };
    for message in [
        Message::Report(signed(report)),
        Message::Missing(places.clone()),
        Message::Begin(places),
        Message::NoPlan(denial(&"x".repeat(1_000_000))),
        Message::Hello(Hello { settings: many_settings(), ..hello() }),
    ] {
        let bytes = Envelope::new(1, message).to_bytes();
        let refused = Envelope::read(&bytes);
        assert!(matches!(refused, Err(Malformed::TooLong { .. })), "{refused:?}");
    }
    // What follows the head is no list of pairs: it was not looked at.
    let garbage = [&[VERSION as u8, 1, 0, 8][..], &[255; 1 << 20]].concat();
    assert!(matches!(Envelope::read(&garbage), Err(Malformed::TooLong { .. })));
    // A small fleet has use for far less.
    let settings = stlf_method::divergence::Settings::Sketch(Default::default());
    let small = Limits::new(3, &settings, stlf_data::Shape::grey(28));
    let bytes = Envelope::new(
        1,
        Message::Plan(SignedPlan { plan, reports: Vec::new(), signature: Vec::new() }),
    );
    assert!(matches!(small.read(&bytes.to_bytes()), Err(Malformed::TooLong { most: 1295, .. })));
    for kind in 0..24 {
        let refused = small.read(&long(kind, LONGEST_ROSTER + 257));
        assert!(matches!(refused, Err(Malformed::TooLong { .. })), "{kind}: {refused:?}");
    }
    assert!(small.longest() < LONGEST_ROSTER + 257);
}

/// What is looked up among what is there twice takes minutes for this many devices. So nothing is looked up before the order is known.
#[test]
fn a_plan_with_the_same_again_and_again_is_refused_for_its_order() {
    let devices = 200;
    let settings = stlf_method::divergence::Settings::Sketch(Default::default());
    let limits = Limits::new(devices, &settings, stlf_data::Shape::grey(28));
    let refused = |links: usize, witnesses: usize, examinations: usize| {
        let again = |of: Sending, times| vec![of; times];
        let mut plan = Plan {
            sources: places([0, 2]),
            handovers: Vec::new(),
            witnesses: again(handover(2, 1), witnesses),
            examinations: again(handover(0, 2), examinations),
            forbidden: Vec::new(),
            ..plan()
        };
        plan.links = vec![link(0, 1, 1.0)];
        plan.links.extend(vec![link(0, 1, 0.0); links]);
        let signed = SignedPlan { plan, reports: Vec::new(), signature: Vec::new() };
        limits.read(&Envelope::new(1, Message::Plan(signed)).to_bytes()).map(drop)
    };
    assert_eq!(refused(0, 1, 1), Ok(()));
    let links = Err(Malformed::Absurd("links are not ascending, or one is there twice"));
    assert_eq!(refused(50_000, 200_000, 0), links);
    assert_eq!(refused(50_000, 0, 200_000), links);
    let witnesses = Err(Malformed::Absurd("witnesses are not ascending"));
    assert_eq!(refused(0, 400_000, 0), witnesses);
    let examinations = Err(Malformed::Absurd("examinations are not ascending"));
    assert_eq!(refused(0, 0, 400_000), examinations);
}

#[test]
fn bytes_say_of_which_epoch_they_are_the_plan_whatever_is_wrong_with_the_rest() {
    let signed = SignedPlan { plan: plan(), reports: Vec::new(), signature: Vec::new() };
    for message in [Message::Plan(signed), Message::NoPlan(denial("nobody has labels"))] {
        let mut sent = Envelope::new(7, message);
        let bytes = sent.to_bytes();
        let cut = &bytes[..bytes.len() - 1];
        assert!(Envelope::read(cut).is_err());
        assert_eq!(
            (Limits::plan_of(&bytes), Limits::plan_of(cut)),
            (Some(7.into()), Some(7.into()))
        );
        // Of another version nobody knows what it says.
        sent.version += 1;
        assert_eq!(Limits::plan_of(&sent.to_bytes()), None);
    }
    assert_eq!(Limits::plan_of(&Envelope::new(7, Message::Done).to_bytes()), None);
    assert_eq!(Limits::plan_of(&[]), None);
}

#[test]
fn of_strangers_only_a_roster_is_read() {
    let limits = Limits::default();
    let read = |message: Message| limits.read_roster(&Envelope::new(1, message).to_bytes());
    assert_eq!(read(Message::Roster(b"{}".to_vec())), Ok(b"{}".to_vec()));
    let others = samples().into_iter().filter(|m| !matches!(m, Message::Roster(_)));
    let refused: Vec<_> = others.map(|message| read(message).unwrap_err()).collect();
    assert!(refused.iter().all(|why| *why == refused[0]));
    // Whatever is wrong with the rest was not looked at.
    let mut wrong = plan();
    wrong.links.reverse();
    let signed = SignedPlan { plan: wrong, reports: Vec::new(), signature: Vec::new() };
    assert_eq!(read(Message::Plan(signed)), Err(refused[0].clone()));
}

fn many_settings() -> SharedSettings {
    SharedSettings::new((0..1_000).map(|k| (format!("{k}"), "x".repeat(190))))
}

#[test]
fn what_a_fleet_needs_is_within_its_limits() {
    use stlf_method::divergence::{Settings, classifier, discriminant, sketch};
    let (shape, devices) = (stlf_data::Shape::grey(28), 200);
    let half = |features: usize| Moments {
        samples: MOST_SAMPLES,
        mean: vec![0.5; features],
        covariance: vec![0.5; features * (features + 1) / 2],
    };
    let classifier = classifier::Settings::default();
    let params = classifier.architecture.spec(shape).unwrap().parameters();
    let turn = Turn { number: u64::MAX, said: Said::Params(vec![0.5; params]) };
    let measured = Measured::Errors(Count { errors: MOST_SAMPLES, samples: MOST_SAMPLES });
    let pair = |peer| PairReport { peer, measured, joules: Some(1.0) };
    let pairs = places(0..devices).into_iter().map(pair);
    let report = Report {
        labeled: MOST_SAMPLES / 2,
        unlabeled: MOST_SAMPLES / 2,
        pairs: pairs.collect(),
        ..report()
    };
    let reports = vec![signed(report.clone()); devices];
    let few = Report { pairs: report.pairs[..MOST_REPORTS - 1].to_vec(), ..report.clone() };
    let denied = vec![signed(few); MOST_REPORTS];
    let (sources, targets) = (places(0..100), places(100..200));
    let links = targets
        .iter()
        .flat_map(|&to| sources.iter().map(move |&from| Link { from, to, weight: 0.01 }));
    // Chains of nine sources, so that models make eight hand-overs.
    let handed = (0..100).filter(|k: &usize| !k.is_multiple_of(9));
    let handovers = handed.map(|k| handover(k - 1, k)).collect();
    let examinations = (0..100).map(|k: usize| handover((k + 1) % 100, k)).collect();
    let plan = Plan {
        links: links.collect(),
        handovers,
        sources,
        targets,
        witnesses: Vec::new(),
        examinations,
        ..plan()
    };
    let counted = Settings::Discriminant(discriminant::Settings::default());
    let sketched = Settings::Sketch(sketch::Settings::default());
    let features =
        [discriminant::Settings::default().features, sketch::Settings::default().features];
    for (settings, message) in [
        (&counted, Message::Moments([Some(half(features[0])), Some(half(features[0]))])),
        (&sketched, Message::Sketch(half(features[1]))),
        (&Settings::Sketch(with_means(4_096)), Message::Means(means(MOST_SAMPLES, 4_096), None)),
        (&sketched, Message::Unchanged([255; 16], None)),
        (&Settings::Classifier(classifier), Message::Turn(turn)),
        (&sketched, Message::Report(signed(report))),
        (&sketched, Message::Plan(SignedPlan { plan, reports, signature: vec![7; 64] })),
        (&sketched, Message::Begin(places(0..devices))),
        (
            &sketched,
            Message::NoPlan(Denial { reports: denied, ..denial(&"x".repeat(LONGEST_REASON)) }),
        ),
    ] {
        let limits = Limits::new(devices, settings, shape);
        let sent = Envelope::new(u64::MAX, message);
        let bytes = sent.to_bytes();
        assert!(bytes.len() <= limits.longest());
        assert_eq!(limits.read(&bytes), Ok(sent));
    }
}

fn number_of_samples() -> impl Strategy<Value = u64> {
    prop_oneof![0..50_u64, any::<u64>()]
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(envelope) = Envelope::read(&bytes) {
            prop_assert_eq!(Envelope::read(&envelope.to_bytes()), Ok(envelope));
        }
    }

    #[test]
    fn no_flipped_byte_makes_it_panic(
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        to in any::<u8>(),
    ) {
        let mut bytes = Envelope::new(4, which.get(&samples()).clone()).to_bytes();
        let at = at.index(bytes.len());
        bytes[at] = to;
        if let Ok(envelope) = Envelope::read(&bytes) {
            prop_assert_eq!(Envelope::read(&envelope.to_bytes()), Ok(envelope));
        }
    }

    #[test]
    fn any_turn_is_read_as_it_was_sent_or_refused(
        number in any::<u64>(),
        params in prop::collection::vec(prop_oneof![9 => -9.0..9.0_f32, 1 => any::<f32>()], 0..9),
        (errors, samples) in (number_of_samples(), number_of_samples()),
    ) {
        let possible = params.iter().all(|p| p.is_finite() && p.abs() <= LARGEST_WEIGHT);
        let sent = Envelope::new(1, Message::Turn(Turn { number, said: Said::Params(params) }));
        prop_assert_eq!(Envelope::read(&sent.to_bytes()).is_ok(), possible);
        let possible = errors <= samples && samples <= MOST_SAMPLES;
        let said = Said::Errors(Count { errors, samples });
        let sent = Envelope::new(1, Message::Turn(Turn { number, said }));
        prop_assert_eq!(Envelope::read(&sent.to_bytes()).is_ok(), possible);
    }

    #[test]
    fn any_hand_overs_are_read_as_they_were_sent_or_refused(
        handed in prop::collection::btree_map(0..14_usize, 0..14_usize, 0..13),
    ) {
        let (sources, targets) = (places(0..12), places([12]));
        let links = vec![link(0, 12, 1.0)];
        let handovers = handed.iter().map(|(&to, &from)| handover(from, to)).collect();
        let (witnesses, examinations) = (Vec::new(), Vec::new());
        let plan =
            Plan { sources, targets, links, handovers, witnesses, examinations, ..plan() };
        // Followed one by one from the receiver, every model began somewhere, not too far away, or comes round over the one that sends.
        let hops = |mut at: usize| {
            (0..20).find(|_| match handed.get(&at) {
                Some(&from) => { at = from; false }
                None => true,
            })
        };
        let comes_round = |to: usize| {
            let before = |at: &usize| handed.get(at).copied().filter(|&from| from != to);
            let ring: Vec<usize> = std::iter::successors(Some(to), before).take(20).collect();
            let comes_back = handed.get(&ring[ring.len() - 1]) == Some(&to);
            comes_back && ring.len() > 1 && ring.contains(&0)
        };
        let between = handed.iter().all(|(&to, &from)| to < 12 && from < 12);
        let possible = between && (0..12).all(|at| {
            hops(at).is_some_and(|hops| hops <= Forms::ALL.longest) || comes_round(at)
        });
        let sent = Envelope::new(1, Message::Plan(SignedPlan { plan, reports: Vec::new(), signature: vec![7; 64] }));
        let read = Envelope::read(&sent.to_bytes());
        prop_assert_eq!(read.is_ok(), possible);
        prop_assert!(read.is_err() || read == Ok(sent));
    }

    #[test]
    fn any_means_are_read_as_they_were_sent_and_known_by_their_digest(
        samples in number_of_samples(),
        steps in prop::collection::vec(-i16::MAX..=i16::MAX, 2..9),
    ) {
        let settings = with_means(steps.len());
        let of = |samples| Means::of(&Sketch::from_steps(samples, &steps, &settings), &settings);
        let means = of(samples.max(1));
        prop_assert_eq!(means.to_sketch(&settings).unwrap().to_steps(&settings), &steps[..]);
        prop_assert_eq!(means.to_sketch(&with_means(steps.len() + 1)), None);
        prop_assert_ne!(means.digest(), of(samples.max(1) - 1).digest());
        let sent = Envelope::new(1, Message::Means(of(samples), None));
        let read = Envelope::read(&sent.to_bytes());
        prop_assert_eq!(read.is_ok(), (1..=MOST_SAMPLES).contains(&samples));
        prop_assert!(read.is_err() || read == Ok(sent));
    }
}
