use super::*;
use proptest::prelude::*;

fn plan() -> Plan {
    Plan {
        epoch: 3,
        sources: vec![0, 2],
        targets: vec![1],
        links: vec![Link { from: 0, to: 1, weight: 0.25 }, Link { from: 2, to: 1, weight: 0.75 }],
        objective: 1.5,
        optimal: true,
    }
}

fn report() -> Report {
    let counted = Measured::Errors(Count { errors: 3, samples: 10 });
    let counted = PairReport { peer: 1, measured: counted, joules: Some(2.5) };
    let measured = Measured::Divergence(1.5);
    let pairs = vec![counted, PairReport { peer: 2, measured, joules: None }];
    Report { labeled: 8, unlabeled: 4, source_error: Some(0.25), pairs }
}

fn samples() -> Vec<Message> {
    let half = Moments { samples: 9, mean: vec![0.5; 3], covariance: Some(vec![0.1; 6]) };
    let noisy = Moments { samples: 9, mean: vec![0.5, -70.0], covariance: None };
    let turn = |number, said| Message::Turn(Turn { number, said });
    vec![
        Message::Begin(vec![0, 1, 5]),
        Message::Bandwidth(Some(2.5)),
        Message::Bandwidth(None),
        Message::Moments([Some(half.clone()), None]),
        Message::Sketch(half),
        Message::Sketch(noisy),
        turn(7, Said::Params(vec![-0.5, 3.0])),
        turn(8, Said::Errors(Count { errors: 2, samples: 5 })),
        Message::Report(report()),
        Message::Plan(SignedPlan { plan: plan(), signature: vec![7; 64] }),
        Message::NoPlan("nobody has labels".to_owned()),
        Message::Offer(Offer { hash: [3; 32], bytes: 90_000 }),
        Message::Failed(2),
        Message::Done,
        Message::Complete,
        Message::Missing(vec![1, 4]),
        Message::Hello(7),
        Message::Roster(b"{}".to_vec()),
    ]
}

#[test]
fn messages_are_read_as_they_were_sent() {
    for message in samples() {
        let sent = Envelope::new(4, message);
        assert_eq!(Envelope::read(&sent.to_bytes()), Ok(sent));
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let absurd = |message: Message| {
        let bytes = Envelope::new(1, message).to_bytes();
        matches!(Envelope::read(&bytes), Err(Malformed::Absurd(_)))
    };
    assert!(absurd(Message::Begin(vec![1, 1])));
    assert!(absurd(Message::Bandwidth(Some(f64::NAN))));
    assert!(absurd(Message::Bandwidth(Some(-1.0))));
    let half = |mean: Vec<f32>, covariance| {
        let covariance = Some(covariance);
        Moments { samples: 9, mean, covariance }
    };
    for moments in [
        half(vec![f32::INFINITY], vec![0.0]),
        half(vec![0.0; 2], vec![0.0; 2]),
        half(vec![1e9], vec![0.0]),
        Moments { samples: 0, ..half(vec![0.0], vec![0.0]) },
    ] {
        assert!(absurd(Message::Sketch(moments.clone())));
        assert!(absurd(Message::Moments([Some(moments), None])));
    }
    let mean = |number| Moments { samples: 9, mean: vec![number], covariance: None };
    assert!(absurd(Message::Moments([Some(mean(0.5)), None])));
    assert!(absurd(Message::Sketch(mean(f32::NAN))));
    assert!(absurd(Message::Sketch(mean(1e16))));
    assert!(absurd(Message::Sketch(Moments { samples: u64::MAX, ..mean(0.5) })));
    let said = |said| absurd(Message::Turn(Turn { number: 0, said }));
    assert!(said(Said::Params(vec![0.0, f32::NAN])));
    assert!(said(Said::Params(vec![0.0, -2e6])));
    assert!(said(Said::Errors(Count { errors: 3, samples: 2 })));
    assert!(said(Said::Errors(Count { errors: 3, samples: u64::MAX })));
    let lying = |change: fn(&mut Report)| {
        let mut report = report();
        change(&mut report);
        absurd(Message::Report(report))
    };
    assert!(lying(|r| r.source_error = Some(-0.1)));
    assert!(lying(|r| r.source_error = Some(f64::NAN)));
    assert!(lying(|r| r.source_error = None));
    assert!(lying(|r| r.labeled = u64::MAX));
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
        absurd(Message::Plan(SignedPlan { plan, signature: Vec::new() }))
    };
    assert!(wrong(|p| p.links[0].weight = 0.9));
    assert!(wrong(|p| p.links[0].from = 1));
    assert!(wrong(|p| p.targets.push(2)));
    assert!(wrong(|p| p.links.clear()));
    assert!(wrong(|p| p.objective = f64::NAN));
}

#[test]
fn other_versions_and_long_or_trailing_bytes_are_refused() {
    let mut sent = Envelope::new(1, Message::Bandwidth(None));
    let mut bytes = sent.to_bytes();
    bytes.push(0);
    assert_eq!(Envelope::read(&bytes), Err(Malformed::Unreadable));
    sent.version = 1;
    assert_eq!(Envelope::read(&sent.to_bytes()), Err(Malformed::Version(1)));
    let long = vec![2; MOST_BYTES + 1];
    assert_eq!(Envelope::read(&long), Err(Malformed::TooLong(MOST_BYTES + 1)));
    assert_eq!(Envelope::read(&[]), Err(Malformed::Unreadable));
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
    fn any_sketch_is_read_as_it_was_sent_or_refused(
        samples in number_of_samples(),
        mean in prop::collection::vec(-1.2e15_f32..1.2e15, 0..3),
    ) {
        let possible =
            (1..=MOST_SAMPLES).contains(&samples) && mean.iter().all(|m| m.abs() <= 1e15);
        let sent = Envelope::new(1, Message::Sketch(Moments { samples, mean, covariance: None }));
        let read = Envelope::read(&sent.to_bytes());
        prop_assert_eq!(read.is_ok(), possible);
        prop_assert!(read.is_err() || read == Ok(sent));
    }
}
