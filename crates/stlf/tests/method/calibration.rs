//! A problem that counts a share of its divergences is the problem with divergences that much smaller.

use std::ops::ControlFlow;

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stlf_planning::bound::BoundKind;
use stlf_planning::explain::account;
use stlf_planning::plan::Plan;
use stlf_planning::planner::handover::{Forms, with_handovers};
use stlf_planning::planner::{Limits, Outcome, optimum};
use stlf_planning::problem::{Links, Parts, Preset};
use stlf_planning::{Device, Problem};

const DEVICES: usize = 8;

/// Four devices with labels and four without; divergences times `times`, of which the share `calibration` counts.
fn problem(seed: u64, kind: BoundKind, times: f64, calibration: f64) -> Problem {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let device = |i: usize, rng: &mut ChaCha8Rng| Device {
        name: format!("d{i}"),
        labeled: if i < DEVICES / 2 { rng.random_range(50..400) } else { 0 },
        unlabeled: rng.random_range(50..200),
        source_error: (i < DEVICES / 2).then(|| rng.random_range(0.0..0.2)),
    };
    let devices = (0..DEVICES).map(|i| device(i, &mut rng)).collect();
    let pairs = DEVICES * DEVICES;
    let divergence = (0..pairs).map(|_| times * rng.random_range(0.1..1.0)).collect();
    let energies = (0..pairs).map(|_| rng.random_range(1.0..2.0)).collect();
    let links = Links::from_rows(DEVICES, divergence, energies);
    let preset = Preset::Balanced;
    let parts = Parts::measured(devices, links, preset, preset.weights(), kind);
    Problem::new(parts.calibrated(calibration)).unwrap()
}

fn plan(problem: &Problem) -> Plan {
    let Outcome::Planned(plan) = optimum(problem) else { panic!("no plan") };
    let go_on = &mut |_: &_| ControlFlow::Continue(());
    with_handovers(problem, *plan, Forms::ALL, &Limits::default(), go_on)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn a_share_of_divergences_is_smaller_divergences(
        seed in any::<u64>(), share in 0.05..1.0f64, paper in any::<bool>(),
    ) {
        let kind = if paper { BoundKind::Paper } else { BoundKind::Pooled };
        let (counted, smaller) = (problem(seed, kind, 1.0, share), problem(seed, kind, share, 1.0));
        let (ours, theirs) = (plan(&counted), plan(&smaller));
        prop_assert!((ours.objective() - theirs.objective()).abs() < 1e-9);
        prop_assert_eq!(&ours.roles, &theirs.roles);
        prop_assert_eq!(&ours.handovers, &theirs.handovers);
        let parts: f64 = (0..DEVICES).map(|i| account(&counted, &ours, i).total()).sum();
        prop_assert!((ours.objective() - parts).abs() < 1e-9);
    }
}

#[test]
fn a_share_is_above_0_and_at_most_1() {
    for share in [0.0, -0.1, 1.01, f64::NAN] {
        let parts = Parts::measured(
            vec![Device { name: "a".into(), labeled: 1, unlabeled: 0, source_error: Some(0.1) }],
            Links::from_rows(1, vec![0.0], vec![f64::INFINITY]),
            Preset::Balanced,
            Preset::Balanced.weights(),
            BoundKind::Pooled,
        );
        let error = Problem::new(parts.calibrated(share)).unwrap_err();
        assert!(error.to_string().contains("bound.calibration"), "{error}");
    }
}
