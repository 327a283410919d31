//! Devices as processes that run on: they come late, are killed, come back, and tell how they stand.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use stlf_testing::{DEADLINE, wait_for};

use crate::common::fleet::{Fleet, SMALL};
use crate::common::run;
use serde_json::Value;

/// Options for events as JSON, and little patience.
const OPTIONS: [&str; 6] = ["--settle", "0.5", "--patience", "10", "--log", "json"];

fn modified(path: &Path) -> std::time::SystemTime {
    std::fs::metadata(path).unwrap().modified().unwrap()
}

#[test]
fn killed_at_any_moment_it_goes_on_where_it_was() {
    let mut fleet = Fleet::on("127.0.8.2", 4, 4, SMALL);
    (1..=4).for_each(|k| fleet.start(k, &OPTIONS));
    let all = [1, 2, 3, 4];
    let mut epoch = fleet.wait_for(&all, 4, 0);
    let trained = modified(&fleet.path("node-2/training.json"));
    // At once, and when it tells that it listens, that it has met another device, that an epoch begins with it.
    for (k, moment) in [(4, ""), (2, "\"listens\""), (1, "\"came\""), (4, "\"began\"")] {
        fleet.kill(k);
        // Without it the others go on, and with it again everyone; it may be killed again on the way.
        let told_before = fleet.log(k).len();
        fleet.start(k, &OPTIONS);
        fleet.wait_for_words(k, told_before, moment);
        fleet.kill(k);
        let others: Vec<usize> = all.into_iter().filter(|&other| other != k).collect();
        epoch = fleet.wait_for(&others, 3, epoch);
        fleet.start(k, &OPTIONS);
        epoch = fleet.wait_for(&all, 4, epoch);
    }
    // Nobody trained again, and all follow one plan.
    assert_eq!(modified(&fleet.path("node-2/training.json")), trained);
    let plan = fleet.one_plan(&all);
    assert_eq!(plan["epoch"], epoch);
    let mut targets = 0;
    for k in all {
        let is_target = plan["targets"].as_array().unwrap().contains(&Value::from(k - 1));
        let predictions = fleet.path(&format!("node-{k}/predictions.csv"));
        assert!(!is_target || predictions.is_file(), "d{k}");
        targets += usize::from(is_target);
    }
    assert!(targets > 0);
}

#[test]
fn started_again_at_once_it_is_in_the_next_epoch() {
    let mut fleet = Fleet::on("127.0.8.13", 4, 4, SMALL);
    (1..=4).for_each(|k| fleet.start(k, &OPTIONS));
    let all = [1, 2, 3, 4];
    let mut epoch = fleet.wait_for(&all, 4, 0);
    for k in [3, 1, 2] {
        fleet.kill(k);
        fleet.start(k, &OPTIONS);
        epoch = fleet.wait_for(&all, 4, epoch);
    }
    fleet.one_plan(&all);
}

#[test]
fn other_settings_are_told_on_both_sides_and_in_the_status() {
    let mut fleet = Fleet::on("127.0.8.14", 3, 3, SMALL);
    let options = &OPTIONS[..4];
    fleet.start(1, options);
    fleet.start(2, options);
    fleet.start(3, &[options, &["-c", "training.steps=100"]].concat());
    fleet.wait_for(&[1, 2], 2, 0);
    // An epoch may be complete before everyone has met d3.
    let there = r#"d3 takes no part: training.steps differs: "200" here, "100" there"#;
    let here = r#"d1 takes no part: training.steps differs: "100" here, "200" there"#;
    for (k, told) in [(1, there), (2, there), (3, here)] {
        let is_told = || fleet.log(k).contains(told).then_some(());
        wait_for(DEADLINE, is_told, || fleet.log(k));
    }
    let status = || run(&["node", "status", "--at", &fleet.text("node-2")], "").out;
    let is_told =
        || Some(status()).filter(|s| s.contains("2 of 3 devices here") && s.contains(there));
    wait_for(DEADLINE, is_told, status);
}

#[test]
fn who_is_admitted_later_joins_and_everyone_tells_how_it_stands() {
    let mut fleet = Fleet::on("127.0.8.3", 4, 3, SMALL);
    let metrics = TcpListener::bind("127.0.8.3:0").unwrap().local_addr().unwrap();
    let address = metrics.to_string();
    fleet.start(1, &[&OPTIONS[..], &["--metrics", &address]].concat());
    fleet.start(2, &OPTIONS);
    fleet.start(3, &OPTIONS);
    let epoch = fleet.wait_for(&[1, 2, 3], 3, 0);
    let before = fleet.json("node-1/plan.json");
    // The roster changes where all look for it.
    fleet.admit(4);
    fleet.start(4, &OPTIONS);
    fleet.wait_for(&[1, 2, 3, 4], 4, epoch);
    // What was planned stays, and the newcomer's links are added.
    let after = fleet.json("node-1/plan.json");
    let ends = |plan: &Value| -> Vec<(u64, u64)> {
        let links = plan["links"].as_array().unwrap().iter();
        links.map(|l| (l["from"].as_u64().unwrap(), l["to"].as_u64().unwrap())).collect()
    };
    assert!(ends(&before).iter().all(|link| ends(&after).contains(link)), "{before}\n{after}");

    let table = run(&["fleet", "status", "--at", &fleet.text("node-1")], "");
    assert_eq!(table.code, 0, "{}", table.err);
    assert!(table.out.contains("4 of 4 devices here, d1 plans"), "{}", table.out);
    assert!(table.out.lines().any(|line| line.starts_with("d4 ")), "{}", table.out);
    let own = run(&["node", "status", "--at", &fleet.text("node-4"), "--format", "json"], "");
    let own: Value = serde_json::from_str(&own.out).unwrap();
    assert_eq!((&own["format"], &own["device"]), (&"stlf-status/1".into(), &"d4".into()));
    assert_eq!(own["protection"]["level"], "not-invertible", "{own}");
    assert!(table.out.contains("privacy: not invertible: "), "{}", table.out);

    let mut stream = TcpStream::connect(metrics).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.contains("\nstlf_devices_here 4\n"), "{answer}");

    // Logs are JSON, a line each.
    let log = std::fs::read_to_string(fleet.path("node-4/events.jsonl")).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let events: Vec<Value> = lines.map(|line| line["event"].clone()).collect();
    for other in ["d1", "d2", "d3"] {
        assert!(events.iter().any(|event| event["came"] == other), "{log}");
    }

    // A device that is gone is said to be.
    fleet.kill(4);
    let status = || run(&["node", "status", "--at", &fleet.text("node-4")], "").out;
    let gone = || status().contains("not running").then_some(());
    wait_for(DEADLINE, gone, status);
}

#[test]
fn status_of_nothing_says_where_to_look() {
    let ran = run(&["node", "status", "--at", "nowhere"], "");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("--at"), "{}", ran.err);
}
