//! The experiment on drift, in small and made here.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::Path;

use stlf_lab::Event;
use stlf_lab::paper::{Artifact, Options, reproduce};

fn go_on(_: Event) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Three batches of three classes. From the second to the third batch every class moves to where another one was.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let gas = folder.path().join("natural/gas-drift");
    std::fs::create_dir_all(&gas).unwrap();
    let mut text = "batch,label,x,y,z\n".to_owned();
    for (batch, shift, rows) in [(1, 0, 1_200), (2, 0, 1_200), (3, 1, 3_600)] {
        for k in 0..rows {
            let class = k % 3;
            let seen = (class + shift) % 3;
            let noise = |m: usize| ((k * m) % 101) as f64 / 101.0 - 0.5;
            let (x, y) = (f64::from(seen == 0), f64::from(seen == 1));
            let z = 3.0 * shift as f64 + noise(37);
            writeln!(text, "b0{batch},{class},{},{},{z}", x + noise(17), y + noise(29)).unwrap();
        }
    }
    std::fs::write(gas.join("gas-drift.csv.gz"), text).unwrap();
    folder
}

fn options(data: Option<&Path>, fleets: &[&str]) -> Options {
    Options {
        data: data.map(Path::to_owned),
        seeds: 2,
        quick: true,
        paper_faithful: false,
        settings: fleets.iter().map(|&fleet| fleet.to_owned()).collect(),
    }
}

type Record = BTreeMap<String, String>;

fn records(path: &Path) -> Vec<Record> {
    csv::Reader::from_path(path).unwrap().deserialize().collect::<Result<_, _>>().unwrap()
}

fn number(record: &Record, key: &str) -> f64 {
    record[key].parse().unwrap()
}

#[test]
fn a_fleet_that_looks_plans_when_its_data_change_and_at_no_other_time() {
    let (data, to) = (folder(), tempfile::tempdir().unwrap());
    let options = options(Some(data.path()), &[]);
    let heard = |_: &str, _: usize, _: usize| {};
    let make = || reproduce(Artifact::Drift, &options, to.path(), &heard, &go_on).unwrap();
    let made = make();
    assert!(made.files.iter().all(|file| file.is_file()), "{:?}", made.files);
    println!("{}\n{}", made.table, made.note);
    let entries = records(&to.path().join("drift.csv"));
    let of = |fleet: &str, policy: &str| {
        let is = |e: &&Record| e["fleet"] == fleet && e["policy"] == policy;
        entries.iter().find(is).unwrap()
    };
    let [once, always, matters] =
        ["once", "at every step", "when it matters"].map(|policy| of("labels-go-on", policy));
    assert_eq!(number(once, "plans"), 1.0);
    assert_eq!(number(always, "plans"), number(always, "steps"));
    // Two batches are alike, so that there is one change for each of six devices; windows that have parts of both may be two more.
    assert!((12.0..=24.0).contains(&number(matters, "renewed")), "{matters:?}");
    assert!(number(matters, "plans") < 0.7 * number(always, "plans"), "{matters:?}");
    assert!(number(matters, "energy") < 0.5, "{matters:?}");
    assert_eq!(number(matters, "false-alarms"), 0.0);
    // Who planned once takes every class of the last batch for another.
    assert!(number(once, "last-third") < 0.3, "{once:?}");
    assert!(number(matters, "last-third") > 0.85, "{matters:?}");
    assert!(number(matters, "behind").abs() < 0.05, "{matters:?}");
    // Where nobody labels what is new, no plan helps.
    assert!(number(of("labels-end", "at every step"), "last-third") < 0.3);
    // Whatever is in the table follows from the rows of the steps.
    let steps = records(&to.path().join("drift-steps.csv"));
    for entry in &entries {
        let own: Vec<&Record> = steps
            .iter()
            .filter(|row| row["fleet"] == entry["fleet"] && row["policy"] == entry["policy"])
            .collect();
        assert_eq!(own.len() as f64, 2.0 * number(entry, "steps"));
        for key in ["bytes", "joules", "renewed"] {
            let sum: f64 = own.iter().map(|row| number(row, key)).sum();
            assert!((sum / 2.0 - number(entry, key)).abs() < 1e-6 * sum, "{key}");
        }
    }
    // What is finished is not run again, and comes to the same.
    assert_eq!(make(), made);
}

#[test]
fn without_its_file_or_with_another_name_it_says_so() {
    let to = tempfile::tempdir().unwrap();
    let make = |options: &Options| {
        reproduce(Artifact::Drift, options, to.path(), &|_, _, _| (), &go_on).unwrap_err()
    };
    assert_eq!(make(&options(None, &[])).to_string(), "data: drift is read from a file");
    let empty = tempfile::tempdir().unwrap();
    assert!(make(&options(Some(empty.path()), &[])).to_string().contains("there is no file"));
    let unknown = make(&options(None, &["Z"]));
    assert_eq!(unknown.to_string(), "settings: none of Z is a fleet that drifts");
}
