//! The accuracy that targets may expect: in the run's table, in bundles, and again after a stop.

use std::ops::ControlFlow;
use std::path::Path;

use stlf_bundle::folder::{find, read};
use stlf_config::Config;
use stlf_data::atomic_folder::Folder;
use stlf_lab::{Outcome, run};
use stlf_method::expectation::Warning;

use crate::handover::alike;

fn ran(config: &Config, to: &Path) -> Outcome {
    run(config, to, &|_| ControlFlow::Continue(())).unwrap()
}

#[test]
fn every_target_expects_an_accuracy_that_its_bundle_has_too() {
    let folder = tempfile::tempdir().unwrap();
    let config = alike();
    let outcome = ran(&config, folder.path());
    let targets = outcome.rows.iter().filter(|row| row.method == "st-lf");
    let targets: Vec<&str> = targets.map(|row| row.target.as_str()).collect();
    assert_eq!(outcome.expected.iter().map(|e| e.target.as_str()).collect::<Vec<_>>(), targets);
    for row in &outcome.expected {
        assert!([0.0, row.low, row.expected, row.high, 1.0].is_sorted(), "{row:?}");
        assert!(row.low > 0.0 && row.high - row.low > 0.0, "an interval: {row:?}");
        let true_one = outcome.rows.iter().find(|r| r.target == row.target).unwrap();
        assert_eq!(row.accuracy, true_one.accuracy);
        let bundle = read(&find(folder.path(), Some(&row.target), None).unwrap()).unwrap();
        assert_eq!(bundle.expected, row.said());
        assert!(bundle.expected.is_some(), "{row:?}");
    }

    // All devices are alike: whatever is told of an interval, sources are near.
    let told: Vec<Option<Warning>> = outcome.expected.iter().map(|row| row.warning).collect();
    assert!(!told.contains(&Some(Warning::NobodyNear)), "{told:?}");

    let seed = Folder::open(&folder.path().join("seed-3")).unwrap();
    let before = seed.read("expected.csv").unwrap();
    std::fs::remove_file(seed.file("expected.csv")).unwrap();
    std::fs::remove_file(seed.file("results").join("st-lf.csv")).unwrap();
    assert_eq!(ran(&config, folder.path()).expected, outcome.expected, "models are read back");
    assert_eq!(seed.read("expected.csv").unwrap(), before);
}
