//! What the user sees of a sweep over energy weights.

use crate::common::{cars, example, run, settings};
use serde_json::{Value, json};

fn path(name: &str) -> String {
    example(name).to_str().unwrap().to_owned()
}

#[test]
fn the_table_says_what_each_breakpoint_changes() {
    for name in ["five-cars", "ten-devices"] {
        let ran = run(&["sweep", &path(&format!("{name}.json")), "--format", "text"], "");
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        settings().bind(|| insta::assert_snapshot!(format!("sweep-{name}"), ran.out));
    }
}

#[test]
fn a_pipe_gets_csv_and_the_user_a_summary() {
    let ran = run(&["sweep", &path("five-cars.json"), "--energy-weight", "0.01..10"], "");
    assert_eq!(ran.code, 0);
    assert!(ran.err.contains("every breakpoint proven"), "{}", ran.err);
    let rows: Vec<Vec<&str>> = ran.out.lines().map(|l| l.split(',').collect()).collect();
    assert_eq!(rows[0][0], "energy_weight_from");
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    assert_eq!((rows[1][0], rows[rows.len() - 1][1]), ("0.01", "10"));
    for pair in rows[1..].windows(2) {
        assert_eq!(pair[0][1], pair[1][0], "segments meet");
    }
}

#[test]
fn a_breakpoint_is_where_the_plan_changes() {
    let ran = run(&["sweep", &path("five-cars.json"), "--bound", "paper"], "");
    let joules = |weight: f64| {
        let weight = weight.to_string();
        let file = path("five-cars.json");
        let args = ["plan", &file, "--bound", "paper", "--phi-e", &weight, "--format", "json"];
        let plan: Value = serde_json::from_str(&run(&args, "").out).unwrap();
        plan["energy"]["joules"].as_f64().unwrap()
    };
    let rows: Vec<Vec<f64>> = ran
        .out
        .lines()
        .skip(1)
        .map(|l| l.split(',').take(3).map(|v| v.parse().unwrap()).collect())
        .collect();
    assert!(rows.len() > 1);
    for pair in rows.windows(2) {
        let at = pair[0][1];
        assert!((joules(at * (1.0 - 1e-6)) - pair[0][2]).abs() < 1e-9);
        assert!((joules(at * (1.0 + 1e-6)) - pair[1][2]).abs() < 1e-9);
    }
}

#[test]
fn files_are_written_whole_beside_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (csv, svg) = (file("sweep.csv"), file("sweep.svg"));
    let ran = run(&["sweep", &path("five-cars.json"), "--csv", &csv, "--svg", &svg], "");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.contains("what changes"));
    assert!(std::fs::read_to_string(&csv).unwrap().starts_with("energy_weight_from,"));
    insta::assert_snapshot!("sweep-svg", std::fs::read_to_string(&svg).unwrap());
}

#[test]
fn nonsense_is_refused_with_a_hint() {
    let file = path("five-cars.json");
    for range in ["1", "1..", "0..1", "2..1", "1..1", "a..b", "1..inf", "-1..1"] {
        let ran = run(&["sweep", &file, &format!("--energy-weight={range}")], "");
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{range}");
    }
    let costs = json!({"format": "stlf-problem/1", "costs": {"source": [1], "link": [[null]]}});
    let ran = run(&["sweep", "-"], costs.to_string());
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("hint:"), "{}", ran.err);
    let mut unreachable = cars();
    for sender in 0..5 {
        unreachable["link_energy"][sender][4] = json!(null);
    }
    assert_eq!(run(&["sweep", "-"], unreachable.to_string()).code, 3);
}
