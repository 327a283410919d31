//! What goes over the cable, captured packet by packet, holds no sample. Hosts and cable are network namespaces that this test makes;
//! skipped, with a printed reason, where they or `tcpdump` are missing. What is inside the packets is searched in the tests of
//! `stlf-node`, where nothing is encrypted.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use stlf_testing::{DEADLINE, wait_for};

use crate::common::fleet::Fleet;
use crate::common::hosts::Hosts;

const DEVICES: usize = 3;

const FEATURES: usize = 8;

/// A column of a device's table that no chance produces.
fn planted(device: usize, row: usize, column: usize) -> f32 {
    31_415.926 + 1_000.0 * device as f32 + 10.0 * row as f32 + column as f32
}

/// A device's table: 60 rows of two classes, of which the last device does not know any.
fn table(device: usize) -> String {
    let names: Vec<String> = (0..FEATURES).map(|column| format!("f{column}")).collect();
    let mut text = format!("label,{}\n", names.join(","));
    for row in 0..60 {
        let label = if device == DEVICES { String::new() } else { (row % 2).to_string() };
        let values: Vec<String> =
            (0..FEATURES).map(|column| planted(device, row, column).to_string()).collect();
        writeln!(text, "{label},{}", values.join(",")).unwrap();
    }
    text
}

/// Every way in which three numbers next to each other may be written.
fn needles(device: usize) -> Vec<Vec<u8>> {
    let values: Vec<f32> = (0..3).map(|column| planted(device, 7, column)).collect();
    let bytes = |write: fn(f32) -> Vec<u8>| values.iter().copied().flat_map(write).collect();
    let text: Vec<String> = values.iter().map(f32::to_string).collect();
    vec![
        bytes(|x| x.to_le_bytes().to_vec()),
        bytes(|x| x.to_be_bytes().to_vec()),
        bytes(|x| f64::from(x).to_le_bytes().to_vec()),
        bytes(|x| f64::from(x).to_be_bytes().to_vec()),
        text.join(",").into_bytes(),
    ]
}

fn found(capture: &[u8], needle: &[u8]) -> usize {
    capture.windows(needle.len()).filter(|window| *window == needle).count()
}

struct Tap(Child);

impl Drop for Tap {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Writes down every packet that passes a host's port, from now on.
fn tap(hosts: &Hosts, k: usize, file: &Path) -> Option<Tap> {
    let started = Command::new("ip")
        .args(["netns", "exec", &hosts.hub(), "tcpdump", "-i", &format!("port{k}")])
        .args(["-s", "0", "--immediate-mode", "-U", "-Z", "root", "-w"])
        .arg(file)
        .stderr(Stdio::null())
        .spawn();
    let mut tap = Tap(started.unwrap());
    // The file has a head once packets are taken.
    let begun = wait_for(
        DEADLINE,
        || match std::fs::metadata(file).map_or(0, |m| m.len()) {
            0 => tap.0.try_wait().unwrap().map(|_| false),
            _ => Some(true),
        },
        || "tcpdump does not begin".into(),
    );
    if !begun {
        stlf_testing::skip("there is no `tcpdump`, or it may not listen");
    }
    begun.then_some(tap)
}

#[test]
fn captured_packets_hold_no_sample() {
    let Some(hosts) = Hosts::make("c", DEVICES) else { return };
    let settings = "seeds=[3] data.classes=[\"0\",\"1\"] training.model=mlp training.steps=100";
    let mut fleet = Fleet::at(hosts.addresses(), settings);
    let files: Vec<_> = (1..=DEVICES).map(|k| fleet.path(&format!("{k}.pcap"))).collect();
    let taps: Vec<Option<Tap>> = (1..=DEVICES).map(|k| tap(&hosts, k, &files[k - 1])).collect();
    if taps.iter().any(Option::is_none) {
        return;
    }
    // Numbers in the clear show that what is sent is captured, and what is captured found.
    let marker = String::from_utf8(needles(9).pop().unwrap()).unwrap();
    let sent = Command::new("ip")
        .args(["netns", "exec", &hosts.host(1), "bash", "-c"])
        .arg(format!("echo '{marker}' > /dev/udp/10.77.0.2/9"))
        .output();
    assert!(sent.unwrap().status.success());
    for k in 1..=DEVICES {
        let data = fleet.text(&format!("{k}.csv"));
        std::fs::write(&data, table(k)).unwrap();
        let host = hosts.host(k);
        fleet.start_in(k, &["ip", "netns", "exec", &host], &["--once", "--data", &data]);
    }
    for k in 1..=DEVICES {
        assert!(fleet.has_left_well(k), "d{k}: {}", fleet.log(k));
    }
    let plan = fleet.one_plan(&[1, 2, 3]);
    assert!(!plan["links"].as_array().unwrap().is_empty(), "a model was sent: {plan}");
    // What is sent is in the file a moment later.
    for k in 1..=DEVICES {
        let traffic = fleet.status(k).unwrap()["traffic"]["sent"].as_u64().unwrap();
        let captured = || std::fs::metadata(&files[k - 1]).unwrap().len();
        let all = || (captured() > traffic).then_some(());
        wait_for(DEADLINE, all, || format!("{} bytes of {traffic}", captured()));
    }
    drop(taps);
    for k in 1..=DEVICES {
        let capture = std::fs::read(&files[k - 1]).unwrap();
        assert!(k > 2 || found(&capture, marker.as_bytes()) > 0, "no marker at port {k}");
        for (device, needle) in
            (1..=DEVICES).flat_map(|d| needles(d).into_iter().map(move |n| (d, n)))
        {
            assert_eq!(found(&capture, &needle), 0, "a sample of d{device} at port {k}");
        }
    }
}
