//! Devices as processes of their own end with the plan, the models that were handed on and the predictions of the simulator.

use std::path::Path;

use crate::common::fleet::Fleet;
use crate::common::run;
use serde_json::Value;

const DEVICES: usize = 10;

/// Noise is each device's own, and would make the simulator's plan another one.
const SETTINGS: &str = "seeds=[3] data.samples=6000 partition.scale=0.08 training.model=mlp training.steps=300 \
                        divergence.estimator=means divergence.features=32 \
                        divergence.privacy=none divergence.accept='others can rebuild my samples'";

/// Devices that are alike, whose sources hand their models on.
const ALIKE: &str = "partition.classes-per-device=all";

/// Devices that differ a bit, half of them with labels, whose sources pass a model round.
const UNLIKE: &str = "partition.kind=dirichlet partition.alpha=1 partition.labeled={devices=0.5}";

#[test]
fn ten_processes_end_as_the_simulator_does() {
    let settings = format!("{SETTINGS} planner.handovers=false");
    let (_, plan) = end_as_the_simulator_does("127.0.8.1", &settings);
    assert_eq!(plan["handovers"], Value::Array(Vec::new()));
}

#[test]
fn ten_processes_hand_models_on_as_the_simulator_does() {
    let settings = format!("{SETTINGS} {ALIKE}");
    let (fleet, plan) = end_as_the_simulator_does("127.0.8.15", &settings);
    let handovers = plan["handovers"].as_array().unwrap();
    // Some model goes over several sources.
    assert!(handovers.iter().any(|h| handovers.iter().any(|next| next["from"] == h["to"])));
    for handover in handovers {
        let [from, to] = ["from", "to"].map(|end| handover[end].as_u64().unwrap() as usize + 1);
        let log = fleet.log(to);
        for told in [
            format!("waiting for the model of d{from}, to train it on"),
            format!("training on the model of d{from}"),
            format!("trained on the model of d{from}"),
        ] {
            assert!(log.contains(&told), "d{to}: {log}");
        }
        let at = fleet.text(&format!("node-{to}"));
        let status = run(&["node", "status", "--at", &at], "");
        let role = format!("role source, trains on the model of d{from}");
        assert!(status.out.contains(&role), "{}", status.out);
    }
}

#[test]
fn ten_processes_pass_a_model_round_as_the_simulator_does() {
    let settings = format!("{SETTINGS} {UNLIKE}");
    let (mut fleet, plan) = end_as_the_simulator_does("127.0.8.17", &settings);
    let handovers = plan["handovers"].as_array().unwrap();
    assert!(handovers.len() > 2, "{plan}");
    for handover in handovers {
        // It leads back to where it began.
        assert!(handovers.iter().any(|next| next["from"] == handover["to"]), "{plan}");
        let [from, to] = ["from", "to"].map(|end| handover[end].as_u64().unwrap() as usize + 1);
        let log = fleet.log(to);
        let told = format!("trained on the model of d{from}, which comes for the second time");
        assert!(log.contains(&told), "d{to}: {log}");
    }
    let before = predictions(&fleet);
    // Started again, they hand on what they have, and nobody trains.
    let logs: Vec<usize> = (1..=DEVICES).map(|k| fleet.log(k).len()).collect();
    run_once(&mut fleet);
    assert_eq!(fleet.json("node-1/plan.json")["handovers"], plan["handovers"]);
    for k in 1..=DEVICES {
        let log = &fleet.log(k)[logs[k - 1]..];
        assert!(!log.contains("training on the model"), "d{k}: {log}");
    }
    assert!(predictions(&fleet) == before, "other predictions");
}

/// The files of predictions, where a device has one.
fn predictions(fleet: &Fleet) -> Vec<Option<Vec<u8>>> {
    let file = |k: usize| std::fs::read(fleet.path(&format!("node-{k}/predictions.csv"))).ok();
    (1..=DEVICES).map(file).collect()
}

/// Has all devices of a fleet take part in an epoch.
fn run_once(fleet: &mut Fleet) {
    (1..=DEVICES).for_each(|k| fleet.start(k, &["--once", "--wait", "60", "--deadline", "100"]));
    for k in 1..=DEVICES {
        assert!(fleet.has_left_well(k), "d{k}: {}", fleet.log(k));
    }
}

/// Runs a fleet of processes and the simulator, compares them, and returns the fleet with the plan of its first device.
fn end_as_the_simulator_does(host: &str, settings: &str) -> (Fleet, Value) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let simulated = run(&["run", "-c", settings, "--to", &path("simulated")], "");
    assert_eq!((simulated.code, simulated.err.as_str()), (0, ""));

    let mut fleet = Fleet::on(host, DEVICES, DEVICES, settings);
    run_once(&mut fleet);

    let json =
        |file: &str| -> Value { serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap() };
    let expected = json(&path("simulated/seed-3/plan.json"));
    // Names as the simulator has them; a hand-over has no weight.
    let ends =
        |of: &Value, name: &dyn Fn(&Value) -> String| -> Vec<(String, String, Option<f64>)> {
            let end = |l: &Value| (name(&l["from"]), name(&l["to"]), l["weight"].as_f64());
            of.as_array().unwrap().iter().map(end).collect()
        };
    let named = |end: &Value| end.as_str().unwrap().to_owned();
    let placed = |end: &Value| format!("d{}", end.as_u64().unwrap() + 1);
    for k in 1..=DEVICES {
        let plan = fleet.json(&format!("node-{k}/plan.json"));
        assert_eq!(plan["objective"], expected["objective"], "d{k}");
        for part in ["links", "handovers"] {
            assert_eq!(ends(&plan[part], &placed), ends(&expected[part], &named), "d{k}: {part}");
        }
    }
    // The same samples are given the same classes with the same probabilities.
    let mut targets = 0;
    for k in 1..=DEVICES {
        let simulated = path(&format!("simulated/seed-3/targets/d{k}.csv"));
        let Ok(expected) = std::fs::read(&simulated) else { continue };
        let got = std::fs::read(fleet.path(&format!("node-{k}/predictions.csv"))).unwrap();
        assert_eq!(got, expected, "d{k}");
        // And they may expect the same of it, to the last digit.
        let may_expect =
            &json(&path(&format!("simulated/seed-3/mixtures/d{k}/mixture.json")))["expected"];
        let mixture = fleet.json(&format!("node-{k}/mixture/mixture.json"));
        assert_eq!(&mixture["expected"], may_expect, "d{k}");
        assert!(may_expect["low"].as_f64() < may_expect["high"].as_f64(), "d{k}: {may_expect}");
        let at = fleet.text(&format!("node-{k}"));
        let status = run(&["node", "status", "--at", &at], "").out;
        assert!(status.contains("\nexpect ") && status.contains(" %, 90 % interval "), "{status}");
        let shown = run(&["fleet", "status", "--at", &at, "--format", "json"], "").out;
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(&shown["expected"], may_expect, "d{k}");
        targets += 1;
    }
    assert!(targets > 0);
    let plan = fleet.json("node-1/plan.json");
    let (made, handed) = (relayed(&fleet, folder.path()), plan["handovers"].as_array().unwrap());
    assert!(made >= handed.len() && (made == 0) == handed.is_empty(), "{made}: {plan}");
    (fleet, plan)
}

/// Compares what sources made of the models that they were handed, on the first and on the second way, and returns how many there are.
fn relayed(fleet: &Fleet, folder: &Path) -> usize {
    let mut made = 0;
    for (k, way) in (1..=DEVICES).flat_map(|k| [(k, ""), (k, "-again")]) {
        let simulated = format!("simulated/seed-3/relayed/d{k}{way}.safetensors");
        let expected = std::fs::read(folder.join(simulated)).ok();
        let got = std::fs::read(fleet.path(&format!("node-{k}/relayed{way}.safetensors"))).ok();
        assert!(got == expected, "d{k}: another relayed{way}.safetensors");
        made += usize::from(got.is_some());
    }
    made
}

#[test]
fn who_is_not_in_the_roster_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let fleet = path("one");
    assert_eq!(run(&["fleet", "init", &fleet], "").code, 0);
    run(&["node", "init", &path("a.key")], "");
    let roster = format!("{fleet}/roster.json");
    let ran = run(&["node", "start", "--roster", &roster, "--key", &path("a.key")], "");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("is not in the roster of one"), "{}", ran.err);
}

/// A fleet of one device: its roster and its key.
pub(crate) fn alone(folder: &Path) -> (String, String) {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (fleet, key_file) = (path("one"), path("a.key"));
    assert_eq!(run(&["fleet", "init", &fleet], "").code, 0);
    let key = run(&["node", "init", &key_file], "");
    assert_eq!(run(&["fleet", "add", "a", key.out.trim(), "--fleet", &fleet], "").code, 0);
    (format!("{fleet}/roster.json"), key_file)
}

#[test]
fn an_address_that_is_taken_is_named_before_the_training() {
    let folder = tempfile::tempdir().unwrap();
    let (roster, key) = alone(folder.path());
    let taken = std::net::UdpSocket::bind("127.0.8.8:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let to = folder.path().join("node");
    let start = ["node", "start", "--roster", &roster, "--key", &key, "--listen", &address, "--to"];
    let ran = run(&[&start[..], &[to.to_str().unwrap()]].concat(), "");
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains(&format!("cannot listen on {address}")), "{}", ran.err);
    assert!(!ran.err.contains("training"), "{}", ran.err);
}

#[test]
fn what_others_could_rebuild_is_not_published() {
    let folder = tempfile::tempdir().unwrap();
    let (roster, key) = alone(folder.path());
    let to = folder.path().join("node");
    for (settings, message, hint) in [
        (
            "partition.devices=10 partition.scale=0.02",
            "divergence.features: others could reconstruct",
            "or fewer on all devices",
        ),
        (
            "partition.scale=0.08 divergence.estimator=discriminant",
            "divergence.estimator: it publishes covariances, from which every other member can reconstruct samples",
            "accept = \"others can rebuild my samples\"",
        ),
    ] {
        let common = format!("data.samples=6000 training.model=mlp training.steps=1 {settings}");
        let ran = run(
            &[
                &["node", "start", "--roster", &roster, "--key", &key, "-c", &common][..],
                &["--once", "--wait", "1", "--to", to.to_str().unwrap()],
            ]
            .concat(),
            "",
        );
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains(message) && ran.err.contains(hint), "{}", ran.err);
        assert!(!ran.err.contains("training"), "{}", ran.err);
    }
}

#[test]
fn what_real_devices_do_not_do_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (roster, key) = alone(folder.path());
    for (named, setting) in [
        ("training.warm-up-rounds", "training.warm-up-rounds=2"),
        ("planner.solver", "planner.solver=successive"),
        ("planner.polish", "planner.polish=false"),
        ("divergence.nearest", "divergence.estimator=means divergence.nearest=3"),
    ] {
        let ran = run(&["node", "start", "--roster", &roster, "--key", &key, "-c", setting], "");
        assert_eq!(ran.code, 2, "{setting}");
        assert!(ran.err.contains(&format!("leave out {named}")), "{}", ran.err);
    }
}
