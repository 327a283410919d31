//! The experiment on liars, in small.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use stlf_lab::Event;
use stlf_lab::paper::{Artifact, Options, reproduce};

fn go_on(_: Event) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn options(fleet: &str) -> Options {
    Options {
        data: None,
        seeds: 1,
        quick: true,
        paper_faithful: false,
        settings: vec![fleet.to_owned()],
    }
}

#[test]
fn a_magnet_ruins_targets_that_believe_it_and_not_those_that_check_it() {
    let to = tempfile::tempdir().unwrap();
    let heard = |_: &str, _: usize, _: usize| {};
    let made = reproduce(Artifact::Liars, &options("alike"), to.path(), &heard, &go_on).unwrap();
    assert!(made.table.contains("| all classes everywhere | magnet | 1 |"), "{}", made.table);
    let rows: Vec<BTreeMap<String, String>> = csv::Reader::from_path(to.path().join("liars.csv"))
        .unwrap()
        .deserialize()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(rows.len(), (1 + 2 * 8) * 5);
    let number = |lie: &str, liars: &str, defence: &str, key: &str| {
        let is = |row: &&BTreeMap<String, String>| {
            [("lie", lie), ("liars", liars), ("defence", defence)]
                .iter()
                .all(|(k, v)| row[*k] == *v)
        };
        rows.iter().find(is).unwrap()[key].parse::<f64>().unwrap()
    };
    for defence in ["unchecked", "checked", "3 models", "7 models", "3 models, 10 labels"] {
        assert!(number("nobody lies", "0", defence, "loss").abs() < 0.002, "{defence}");
    }
    let energy = |defence: &str| number("nobody lies", "0", defence, "energy");
    assert_eq!(energy("unchecked"), 1.0);
    assert!(1.0 < energy("checked") && energy("checked") < energy("7 models"));
    assert!(number("inverted magnet", "1", "unchecked", "loss") > 0.5);
    for defence in ["checked", "3 models"] {
        // Who does not boast is found out by an examiner.
        for lie in ["inverted labels", "near everybody"] {
            assert!(number(lie, "1", defence, "loss") < 0.05, "{lie} {defence}");
        }
        for lie in ["magnet", "inverted magnet"] {
            assert!(number(lie, "1", defence, "loss") < 0.05, "{lie} {defence}");
            assert_eq!(number(lie, "1", defence, "refused"), 1.0, "{lie} {defence}");
        }
    }
    assert!(number("inverted magnet", "3", "7 models", "loss") < 0.1);
    assert!(to.path().join("liars.svg").is_file());
    let unknown = reproduce(Artifact::Liars, &options("Z"), to.path(), &heard, &go_on);
    assert_eq!(unknown.unwrap_err().to_string(), "settings: none of Z is a fleet with liars");
}

#[test]
fn a_magnet_that_hands_models_on_is_refused_by_the_next_source() {
    let to = tempfile::tempdir().unwrap();
    let heard = |_: &str, _: usize, _: usize| {};
    reproduce(Artifact::Liars, &options("rings"), to.path(), &heard, &go_on).unwrap();
    let rows: Vec<BTreeMap<String, String>> = csv::Reader::from_path(to.path().join("liars.csv"))
        .unwrap()
        .deserialize()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(rows.len(), (1 + 8) * 5);
    let loss = |lie: &str, defence: &str| -> f64 {
        let row = rows.iter().find(|row| row["lie"] == lie && row["defence"] == defence).unwrap();
        row["loss"].parse().unwrap()
    };
    assert_eq!(loss("nobody lies", "checked"), 0.0);
    let (before, after) = (loss("magnet", "unchecked"), loss("magnet", "checked"));
    assert!(before > 0.4 && after < before / 2.0, "{before} {after}");
}
