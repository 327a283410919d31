//! Devices on hosts of their own: network namespaces that this test makes, with two switches and a cable between them. Skipped, with a
//! printed reason, where they cannot be made.

use std::process::Command;

use crate::common::fleet::{Fleet, SMALL};
use crate::common::hosts::Hosts;

const DEVICES: usize = 4;

const OPTIONS: [&str; 2] = ["--settle", "0.5"];

const PATIENT: [&str; 2] = ["--patience", "30"];

/// Devices, each on its host; dropped before the hosts.
fn start(hosts: &Hosts, settings: &str, more: &[&str]) -> Fleet {
    let mut fleet = Fleet::at(hosts.addresses(), settings);
    for k in 1..=DEVICES {
        let options = [&OPTIONS[..], more].concat();
        fleet.start_in(k, &["ip", "netns", "exec", &hosts.host(k)], &options);
    }
    fleet
}

/// Lets what a host sends pass at this rate, or prints why not.
fn slow_down(hosts: &Hosts, k: usize, rate: &str) -> bool {
    let slow = Command::new("tc")
        .args(["-n", &hosts.host(k), "qdisc", "add", "dev", "eth0", "root", "tbf"])
        .args(["rate", rate, "burst", "4kb", "latency", "2s"])
        .output();
    let is_slow = slow.as_ref().is_ok_and(|output| output.status.success());
    if !is_slow {
        stlf_testing::skip(format!("links cannot be made slow: {slow:?}"));
    }
    is_slow
}

#[test]
fn both_sides_of_a_partition_go_on_and_find_together_again() {
    let Some(hosts) = Hosts::make("p", DEVICES) else { return };
    let fleet = start(&hosts, SMALL, &PATIENT);
    let before = fleet.wait_for(&[1, 2, 3, 4], DEVICES, 0);
    hosts.cut(true);
    // d1, d2 and d3 have labels, so that both sides can plan. Each side does without the other once it has long been silent.
    let near = fleet.wait_for(&[1, 2], DEVICES / 2, before);
    let far = fleet.wait_for(&[3, 4], DEVICES / 2, before);
    hosts.cut(false);
    fleet.wait_for(&[1, 2, 3, 4], DEVICES, near.max(far));
    fleet.one_plan(&[1, 2, 3, 4]);
}

#[test]
fn a_slow_link_takes_longer_and_nothing_else() {
    let Some(hosts) = Hosts::make("s", DEVICES) else { return };
    // Of d4 all others need 33 kB to measure.
    if !slow_down(&hosts, 4, "400kbit") {
        return;
    }
    let fleet = start(&hosts, SMALL, &PATIENT);
    assert_eq!(fleet.wait_for(&[1, 2, 3, 4], DEVICES, 0), 1);
    let plan = fleet.one_plan(&[1, 2, 3, 4]);
    assert!(!plan["links"].as_array().unwrap().is_empty(), "{plan}");
}

#[test]
fn a_model_that_takes_longer_than_patience_is_waited_for() {
    let Some(hosts) = Hosts::make("l", DEVICES) else { return };
    if !slow_down(&hosts, 2, "60kbit") {
        return;
    }
    // Patience of some seconds, since a busy machine may give a process none of its time for as long.
    let settings = format!("{SMALL} planner.preset=paper planner.phi-e=3");
    let fleet = start(&hosts, &settings, &["--patience", "10"]);
    assert_eq!(fleet.wait_for(&[1, 2, 3, 4], DEVICES, 0), 1, "{}", fleet.log(1));
    let plan = fleet.one_plan(&[1, 2, 3, 4]);
    let links = plan["links"].as_array().unwrap();
    assert!(links.iter().any(|link| link["from"] == 1), "{plan}");
    // The planner would give a link up after a quarter more than the patience.
    let bytes = std::fs::metadata(fleet.path("node-2/model.safetensors")).unwrap().len();
    assert!(8.0 * bytes as f64 / 60e3 > 1.25 * 10.0, "{bytes} bytes");
}

#[test]
fn links_are_measured_and_nothing_is_sent_over_a_slow_one() {
    let Some(hosts) = Hosts::make("m", DEVICES) else { return };
    let senders = |fleet: &Fleet| -> Vec<u64> {
        fleet.wait_for(&[1, 2, 3, 4], DEVICES, 0);
        let plan = fleet.one_plan(&[1, 2, 3, 4]);
        let links = plan["links"].as_array().unwrap();
        links.iter().map(|link| link["from"].as_u64().unwrap()).collect()
    };
    if !slow_down(&hosts, 2, "400kbit") {
        return;
    }
    // Joules as they are: in mean links, a link that must wait for slow confirmations would make others look cheap.
    let settings = format!("{SMALL} planner.preset=paper planner.phi-e=3");
    let unmeasured = senders(&start(&hosts, &settings, &PATIENT));
    assert!(unmeasured.contains(&1), "{unmeasured:?}");
    let measured = senders(&start(&hosts, &settings, &[&PATIENT[..], &["--watts", "2"]].concat()));
    assert!(!measured.is_empty() && !measured.contains(&1), "{measured:?}");
}
