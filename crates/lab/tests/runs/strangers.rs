//! The experiment on strangers, in small.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use stlf_lab::Event;
use stlf_lab::paper::{Artifact, Options, reproduce};

fn go_on(_: Event) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn options(case: &str) -> Options {
    Options {
        data: None,
        seeds: 2,
        quick: true,
        paper_faithful: false,
        settings: vec![case.to_owned()],
    }
}

#[test]
fn a_case_has_both_trainings_and_says_what_became_of_students() {
    let to = tempfile::tempdir().unwrap();
    let heard = |_: &str, _: usize, _: usize| {};
    let made =
        reproduce(Artifact::Strangers, &options("MM-100"), to.path(), &heard, &go_on).unwrap();
    assert!(made.table.contains("| MNIST-M, 100 samples | ST-LF |"), "{}", made.table);
    let rows: Vec<BTreeMap<String, String>> =
        csv::Reader::from_path(to.path().join("strangers.csv"))
            .unwrap()
            .deserialize()
            .collect::<Result<_, _>>()
            .unwrap();
    let methods: Vec<&str> = rows.iter().map(|row| row["method"].as_str()).collect();
    assert_eq!(methods, ["st-lf", "fedavg"], "others train networks of their own");
    for row in &rows {
        let number = |key: &str| row[key].parse::<f64>().unwrap();
        assert_eq!(row["draws"], "2");
        assert!((0.0..=1.0).contains(&number("plain")));
        // With so few samples nobody trains a student, so that the mixture is all that there is.
        assert!((number("views") - number("guarded")).abs() < 1e-12, "{row:?}");
        assert_eq!(row["views"], row["all-students"]);
        assert_eq!((row["accepted"].as_str(), row["wrongly-accepted"].as_str()), ("", ""));
        assert!(number("bytes") > 0.0 && number("energy") > 0.0);
    }
    assert!(to.path().join("strangers.svg").is_file());
    // What is there is not run again.
    let again = reproduce(Artifact::Strangers, &options("MM-100"), to.path(), &heard, &go_on);
    assert_eq!(again.unwrap().table, made.table);
    let unknown = reproduce(Artifact::Strangers, &options("Z"), to.path(), &heard, &go_on);
    let unknown = unknown.unwrap_err();
    assert_eq!(unknown.to_string(), "settings: none of Z is a case of strangers");
    assert!(unknown.hint().is_some_and(|hint| hint.contains("MM-four")));
}

#[test]
fn a_source_with_wrong_labels_and_one_that_ended_early_are_in_the_plan_with_errors_of_their_own() {
    let heard = |_: &str, _: usize, _: usize| {};
    let errors = |case: &str| -> Vec<f64> {
        let to = tempfile::tempdir().unwrap();
        let once = Options { seeds: 1, ..options(case) };
        reproduce(Artifact::Strangers, &once, to.path(), &heard, &go_on).unwrap();
        let run = to.path().join(format!("runs/strangers-{case}-views-drawn-quick-1"));
        let table = csv::Reader::from_path(run.join("seed-0/training.csv"));
        let rows = table.unwrap().into_deserialize().map(Result::unwrap);
        let error = |row: BTreeMap<String, String>| row["source-error"].parse().ok();
        rows.filter_map(error).collect()
    };
    let (mislabeled, half) = (errors("MM-mislabeled"), errors("MM-half"));
    assert_eq!(mislabeled.len(), 5);
    assert_eq!(mislabeled[1..], half[1..], "the others train as ever");
    assert_ne!(mislabeled[0], half[0]);
    // It errs on its own labels hardly more than others on theirs, so nothing that it says of itself betrays it.
    let most = mislabeled[1..].iter().copied().fold(0.0, f64::max);
    assert!(mislabeled[0] < 0.2 + most, "{mislabeled:?}");
}
