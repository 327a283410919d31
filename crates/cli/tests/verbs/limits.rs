//! Time limits and signals, on fleets whose devices are all alike: there a search goes on for hours.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::http::ask;
use crate::common::served::Served;
use crate::common::stlf;
use serde_json::{Value, json};

/// Far more than a limit of one second may take on a busy machine, far less than without one.
const GENEROUS: Duration = Duration::from_secs(300);

/// Devices of which half have labels, all as far from each other.
fn alike(devices: usize) -> Value {
    let square = |own: Value, other: Value| -> Vec<Vec<Value>> {
        let cell = |i, j| if i == j { own.clone() } else { other.clone() };
        (0..devices).map(|i| (0..devices).map(|j| cell(i, j)).collect()).collect()
    };
    let device = |i: usize| match i < devices / 2 {
        true => {
            json!({"name": format!("d{i}"), "labeled": 100, "unlabeled": 100, "source_error": 0.3})
        }
        false => json!({"name": format!("d{i}"), "labeled": 0, "unlabeled": 100}),
    };
    json!({
        "format": "stlf-problem/1",
        "preset": "balanced",
        "devices": (0..devices).map(device).collect::<Vec<_>>(),
        "divergence": square(json!(0.0), json!(0.2)),
        "link_energy": square(Value::Null, json!(1.0)),
    })
}

fn written(folder: &Path) -> String {
    let file = folder.join("alike.json");
    std::fs::write(&file, alike(64).to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn every_verb_that_plans_keeps_its_time_limit() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path());
    let page = folder.path().join("page.html");
    let page = page.to_str().unwrap();
    let json = ["plan", &file, "--format", "json"];
    let verbs: [&[&str]; 5] = [
        &json,
        &["explain", &file, "--device", "d60"],
        &["explain", &file, "--format", "json"],
        &["sweep", &file],
        &["report", &file, "-o", page],
    ];
    for verb in verbs {
        let started = Instant::now();
        let output = stlf().args(verb).args(["--time-limit", "1"]).output().unwrap();
        assert!(output.status.success(), "{verb:?}: {output:?}");
        assert!(started.elapsed() < GENEROUS, "{verb:?} took {:?}", started.elapsed());
        if verb == json {
            let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(plan["status"], "feasible");
            assert_eq!(plan["solver"]["stopped_by"], "time-limit");
            let bound = |key: &str| plan[key].as_f64().unwrap();
            assert!(0.0 < bound("lower_bound") && bound("lower_bound") <= bound("objective"));
        }
    }
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("\"status\":\"feasible\"") && !page.contains("\"status\":\"optimal\""));
}

#[test]
fn a_page_is_served_within_the_limit_and_tells_its_gap() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path());
    let started = Instant::now();
    let served = Served::start_with(Path::new(&file), &["--time-limit", "1"]);
    let state = ask(served.port, "GET /api/state", "").json();
    let plan = &state["runs"][0]["seeds"][0]["plans"][0];
    assert_eq!(plan["status"], "feasible");
    assert!(plan["gap"].as_f64().unwrap() > 0.0);
    let edited = ask(served.port, "POST /api/plan", r#"{"weights": {"energy": 0.06}}"#);
    assert_eq!(edited.status, 200);
    assert!(started.elapsed() < GENEROUS, "took {:?}", started.elapsed());
}

#[test]
fn the_page_of_a_large_fleet_takes_seconds_unless_told() {
    let folder = tempfile::tempdir().unwrap();
    let [file, page] = ["large.json", "large.html"].map(|name| folder.path().join(name));
    std::fs::write(&file, alike(210).to_string()).unwrap();
    let started = Instant::now();
    let output = stlf().args(["report", file.to_str().unwrap()]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    // Four seconds, and far less than the minute of a smaller fleet even on a busy machine.
    assert!(started.elapsed() < Duration::from_secs(55), "took {:?}", started.elapsed());
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("\"status\":\"feasible\""));
}

/// Whether a process catches a signal, as the kernel says.
#[cfg(target_os = "linux")]
fn catches(process: u32, signal: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() >> (signal - 1) & 1 == 1
}

#[test]
#[cfg(target_os = "linux")]
fn a_signal_ends_a_search_with_what_is_known() {
    use std::process::{Command, Stdio};

    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path());
    for (name, signal) in [("TERM", 15), ("INT", 2)] {
        let child = Command::new(assert_cmd::cargo::cargo_bin("stlf"))
            .args(["plan", &file, "--format", "json", "--time-limit", "3600"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let started = Instant::now();
        while !catches(child.id(), signal) {
            assert!(started.elapsed() < GENEROUS, "it never listened");
            std::thread::yield_now();
        }
        let (started, id) = (Instant::now(), child.id().to_string());
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert!(started.elapsed() < GENEROUS, "{name} took {:?}", started.elapsed());
        let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(plan["status"], "feasible");
        assert_eq!(plan["solver"]["stopped_by"], "interrupt");
    }
}
