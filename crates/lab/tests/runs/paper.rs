//! The paper's figures and tables: every number of a table comes from rows that are there.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use stlf_lab::paper::{Artifact, Options, reproduce};
use stlf_lab::{Event, Stage};

fn quick(seeds: usize, paper_faithful: bool) -> Options {
    // One setting of each kind: one domain, two of them mixed, two of them apart.
    let settings = ["M", "M+U", "MM//U"].map(str::to_owned).to_vec();
    Options { data: None, seeds, quick: true, paper_faithful, settings }
}

fn go_on(_: Event) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

type Record = BTreeMap<String, String>;

fn records(path: &Path) -> Vec<Record> {
    csv::Reader::from_path(path).unwrap().deserialize().collect::<Result<_, _>>().unwrap()
}

fn number(record: &Record, column: &str) -> Option<f64> {
    record[column].parse().ok()
}

#[test]
fn settings_that_there_are_not_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { settings: vec!["N".to_owned()], ..quick(1, false) };
    let made = reproduce(Artifact::Table1, &options, folder.path(), &|_, _, _| (), &go_on);
    let error = made.unwrap_err();
    assert_eq!(error.to_string(), "settings: none of N is shown here");
    assert!(error.hint().is_some_and(|hint| hint.starts_with("there are: M, U, MM")), "{error}");
}

#[test]
fn figures_without_data_show_the_papers_shapes() {
    let folder = tempfile::tempdir().unwrap();
    for artifact in [Artifact::Fig3, Artifact::Fig4] {
        let options = quick(1, false);
        let made = reproduce(artifact, &options, folder.path(), &|_, _, _| (), &go_on).unwrap();
        for file in &made.files {
            assert!(std::fs::metadata(file).unwrap().len() > 0, "{}", file.display());
        }
    }
    // A device whose model errs on everything becomes a target, and the objective falls.
    let roles = records(&folder.path().join("fig3-roles.csv"));
    let third: Vec<&str> =
        roles.iter().filter(|r| r["device"] == "d3").map(|r| r["exact"].as_str()).collect();
    assert_eq!(third, ["source", "target"]);
    let trace = records(&folder.path().join("fig3.csv"));
    for pair in trace.windows(2).filter(|pair| pair[0]["case"] == pair[1]["case"]) {
        let [a, b] = [&pair[0], &pair[1]].map(|r| number(r, "objective").unwrap());
        assert!(b <= a * (1.0 + 1e-6), "{a} then {b}");
    }
    // Alike divergences are shared alike; one device near to all serves all.
    let links = records(&folder.path().join("fig4.csv"));
    let of = |regime: &str| links.iter().filter(|r| r["regime"] == regime).collect::<Vec<_>>();
    assert!(of("uniform").iter().all(|r| (number(r, "weight").unwrap() - 0.2).abs() < 0.01));
    assert!(of("extreme").iter().all(|r| r["from"] == "d1"));
}

#[test]
fn the_table_follows_from_its_rows_and_is_not_run_twice() {
    let folder = tempfile::tempdir().unwrap();
    let make = |observer: &(dyn Fn(Event) -> ControlFlow<()> + Sync)| {
        let options = quick(1, false);
        let heard = |_: &str, _: usize, _: usize| ();
        reproduce(Artifact::Table1, &options, folder.path(), &heard, observer).unwrap()
    };
    let made = make(&go_on);
    let rows = records(&folder.path().join("table1-rows.csv"));
    let table = records(&folder.path().join("table1.csv"));
    assert_eq!(table.len(), 3 * 12);
    for entry in &table {
        let own: Vec<&Record> = rows
            .iter()
            .filter(|r| r["setting"] == entry["setting"] && r["method"] == entry["method"])
            .collect();
        let mut by_seed: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for row in own.iter().filter(|r| !r["accuracy"].is_empty()) {
            by_seed.entry(&row["seed"]).or_default().push(number(row, "accuracy").unwrap());
        }
        let means: Vec<f64> =
            by_seed.values().map(|v| v.iter().sum::<f64>() / v.len() as f64).collect();
        match number(entry, "accuracy") {
            None => assert!(means.is_empty(), "{entry:?}"),
            Some(accuracy) => {
                let mean = 100.0 * means.iter().sum::<f64>() / means.len() as f64;
                assert!((accuracy - mean).abs() < 1e-9, "{entry:?}: {mean}");
            }
        }
        if let (Some(ours), Some(published)) =
            (number(entry, "accuracy"), number(entry, "published-accuracy"))
        {
            let difference = number(entry, "accuracy-difference").unwrap();
            assert!((difference - (ours - published)).abs() < 1e-9);
        }
    }
    // The Markdown table shows the numbers of the CSV.
    let first = &table[0];
    let shown = format!("{:.1}", number(first, "accuracy").unwrap());
    assert!(made.table.lines().nth(2).unwrap().contains(&shown), "{}", made.table);

    let trained = AtomicUsize::new(0);
    let before = std::fs::read(folder.path().join("table1.csv")).unwrap();
    make(&|event| {
        if matches!(event.stage, Stage::Adapt | Stage::Relay) {
            trained.fetch_add(1, Ordering::Relaxed);
        }
        ControlFlow::Continue(())
    });
    assert_eq!(trained.load(Ordering::Relaxed), 0, "what is there is not run again");
    assert_eq!(std::fs::read(folder.path().join("table1.csv")).unwrap(), before);
}
