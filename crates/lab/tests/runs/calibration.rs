//! Devices whose data can be told apart, although a model of one is right at all others.

use std::ops::ControlFlow;

use stlf_config::Config;
use stlf_lab::record::Row;
use stlf_lab::{Outcome, run};

/// What the class means at devices of different kinds.
#[derive(Clone, Copy, PartialEq)]
enum Meaning {
    /// The same.
    Same,
    /// At half of the kinds the opposite.
    Opposite,
}

/// So many devices of so many kinds: the class follows from which of two numbers is the larger, and a third number tells the kind.
fn table(devices: usize, kinds: usize, meaning: Meaning) -> String {
    let mut rows = "device,label,x,y,z\n".to_owned();
    for device in 0..devices {
        for k in 0..80 {
            let (x, y) = (((k * 37 + device * 5) % 101) as f64, ((k * 53) % 103) as f64);
            let is_opposite = meaning == Meaning::Opposite && device % kinds * 2 >= kinds;
            let label = if (x > y) != is_opposite { "calm" } else { "storm" };
            rows += &format!("d{device:02},{label},{x},{y},{}\n", device % kinds * 10 + k % 3);
        }
    }
    rows
}

/// A run of such a fleet, half of it with labels.
fn outcome(devices: usize, kinds: usize, more: &[&str]) -> Outcome {
    outcome_where(Meaning::Same, devices, kinds, more)
}

fn outcome_where(meaning: Meaning, devices: usize, kinds: usize, more: &[&str]) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    std::fs::write(&path, table(devices, kinds, meaning)).unwrap();
    let changes = [
        &format!("data.features={}", path.display()),
        "data.standardise=fleet",
        "seeds=[3]",
        "partition.kind=by-domain",
        "partition.labeled={devices=0.5}",
        "training.model=mlp",
        "training.steps=100",
        "divergence.features=8",
        "divergence.privacy=none",
        "compare.methods=[\"st-lf\"]",
    ];
    let config = Config::default().with(changes).unwrap().with(more.iter().copied()).unwrap();
    run(&config, &folder.path().join("run"), &|_| ControlFlow::Continue(())).unwrap()
}

/// The energy of everything that was sent, as a part of what all links cost.
fn part_of_all_links(outcome: &Outcome) -> f64 {
    let sum = |of: fn(&Row) -> f64| outcome.rows.iter().map(of).sum::<f64>();
    sum(|row| row.joules + row.measuring_joules) / sum(|row| row.all_joules)
}

#[test]
fn divergences_count_what_sources_found_and_settings_are_kept() {
    let measured = outcome(24, 24, &[]);
    let [calibrated] = measured.calibrated[..] else { panic!("{:?}", measured.calibrated) };
    assert!((0.05..0.5).contains(&calibrated.share), "{calibrated:?}");
    assert!(calibrated.is_apart && calibrated.energy < 0.05, "{calibrated:?}");
    // Who has set them keeps them.
    assert_eq!(outcome(24, 24, &["planner.calibration=1.0"]).calibrated, []);
    let weighed = outcome(24, 24, &["planner.phi-e=0.07"]);
    let [weighed] = weighed.calibrated[..] else { panic!("{:?}", weighed.calibrated) };
    assert_eq!((weighed.share, weighed.energy), (calibrated.share, 0.07));
    assert_eq!(outcome(24, 24, &["planner.bound=paper"]).calibrated, []);
    // Where all links are used, there is nothing to decide.
    assert_eq!(outcome(24, 24, &["planner.all-links=true"]).calibrated, []);
}

#[test]
fn a_ring_may_cost_more_than_a_third_of_all_links_only_where_nobody_is_near() {
    // Trials, which go along with models, are counted later.
    let most = 1.01;
    let apart = outcome(10, 10, &[]);
    let [calibrated] = apart.calibrated[..] else { panic!("{:?}", apart.calibrated) };
    let part = part_of_all_links(&apart);
    assert!(calibrated.is_apart && part > 1.0 / 3.0 && part <= most, "{calibrated:?} {part}");
    // Of two kinds, so few that a ring of them costs more than a third.
    assert_eq!(outcome(10, 2, &[]).calibrated, []);
    let kinds = outcome(24, 2, &[]);
    let [calibrated] = kinds.calibrated[..] else { panic!("{:?}", kinds.calibrated) };
    let part = part_of_all_links(&kinds);
    assert!(!calibrated.is_apart && part <= most / 3.0, "{calibrated:?} {part}");
}

#[test]
fn divergences_count_in_full_where_they_say_whose_classifiers_are_right() {
    let alike = outcome(24, 4, &[]);
    let [calibrated] = alike.calibrated[..] else { panic!("{:?}", alike.calibrated) };
    assert!(calibrated.near_gain.is_none() && calibrated.share < 0.5, "{calibrated:?}");
    let opposite = outcome_where(Meaning::Opposite, 24, 4, &[]);
    let [calibrated] = opposite.calibrated[..] else { panic!("{:?}", opposite.calibrated) };
    assert!(calibrated.near_gain.is_some_and(|gain| gain > 0.2), "{calibrated:?}");
    assert_eq!((calibrated.share, calibrated.is_apart), (1.0, false));
    // What the sum of the nearest takes is counted, too: three messages instead of two of two classes, four weights and a unit each.
    let bytes: u64 = opposite.rows.iter().map(|row| row.measuring_bytes).sum();
    let set = outcome_where(Meaning::Opposite, 24, 4, &["planner.calibration=1.0"]);
    let without: u64 = set.rows.iter().map(|row| row.measuring_bytes).sum();
    assert_eq!(bytes - without, 12 * 3 * 2 * (4 + 4));
}
