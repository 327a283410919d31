//! Devices on hosts of their own: network namespaces that this test makes, with two switches and a cable between them. Skipped, with a
//! printed reason, where they cannot be made.
#![cfg(all(feature = "node", target_os = "linux"))]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod common;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::run;
use serde_json::Value;

/// No wait is longer than this.
const DEADLINE: Duration = Duration::from_secs(90);

const DEVICES: usize = 4;

const SETTINGS: &str = "seeds=[3] data.samples=3000 partition.scale=0.08 partition.devices=6 training.model=mlp \
                        training.steps=200 divergence.features=64";

/// Hosts 1 and 2 at one switch, 3 and 4 at another.
struct Hosts {
    name: String,
}

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split_whitespace()).output();
    let output = output.map_err(|e| format!("ip: {e}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

impl Hosts {
    fn make(test: &str) -> Result<Hosts, String> {
        let hosts = Hosts { name: format!("stlf{}{test}", std::process::id()) };
        let hub = hosts.hub();
        ip(&format!("netns add {hub}"))?;
        for switch in ["near", "far"] {
            ip(&format!("-n {hub} link add {switch} type bridge"))?;
            ip(&format!("-n {hub} link set {switch} up"))?;
        }
        ip(&format!("-n {hub} link add cable type veth peer name elbac"))?;
        ip(&format!("-n {hub} link set cable master near"))?;
        ip(&format!("-n {hub} link set elbac master far"))?;
        ip(&format!("-n {hub} link set cable up"))?;
        ip(&format!("-n {hub} link set elbac up"))?;
        for k in 1..=DEVICES {
            let host = hosts.host(k);
            ip(&format!("netns add {host}"))?;
            ip(&format!("-n {hub} link add port{k} type veth peer name eth0 netns {host}"))?;
            let switch = if k <= DEVICES / 2 { "near" } else { "far" };
            ip(&format!("-n {hub} link set port{k} master {switch}"))?;
            ip(&format!("-n {hub} link set port{k} up"))?;
            ip(&format!("-n {host} addr add 10.77.0.{k}/24 dev eth0"))?;
            ip(&format!("-n {host} link set eth0 up"))?;
            ip(&format!("-n {host} link set lo up"))?;
        }
        Ok(hosts)
    }

    fn hub(&self) -> String {
        format!("{}-hub", self.name)
    }

    fn host(&self, k: usize) -> String {
        format!("{}-{k}", self.name)
    }

    fn cut(&self, cut: bool) {
        let state = if cut { "down" } else { "up" };
        ip(&format!("-n {} link set cable {state}", self.hub())).unwrap();
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for k in 1..=DEVICES {
            let _ = ip(&format!("netns del {}", self.host(k)));
        }
        let _ = ip(&format!("netns del {}", self.hub()));
    }
}

struct Fleet {
    folder: tempfile::TempDir,
    running: Vec<Child>,
    // Dropped after the processes in them.
    hosts: Hosts,
}

impl Fleet {
    fn new(test: &str) -> Option<Fleet> {
        let hosts = match Hosts::make(test) {
            Ok(hosts) => hosts,
            Err(reason) => {
                eprintln!("skipped: no network namespaces: {}", reason.trim());
                return None;
            }
        };
        let folder = tempfile::tempdir().unwrap();
        let fleet = Fleet { folder, running: Vec::new(), hosts };
        let roster = fleet.text("fleet");
        assert_eq!(run(&["fleet", "init", &roster], "").code, 0);
        for k in 1..=DEVICES {
            let key = run(&["node", "init", &fleet.text(&format!("d{k}.key"))], "");
            let name = format!("d{k}");
            assert_eq!(
                run(&["fleet", "add", &name, key.out.trim(), "--fleet", &roster], "").code,
                0
            );
        }
        Some(fleet)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn start(&mut self, k: usize) {
        let peers = (1..=DEVICES).map(|other| format!("d{other}=10.77.0.{other}:7000"));
        let log = std::fs::File::create(self.path(&format!("{k}.log"))).unwrap();
        let child = Command::new("ip")
            .args(["netns", "exec", &self.hosts.host(k), env!("CARGO_BIN_EXE_stlf")])
            .args(["node", "start", "-c", SETTINGS, "--settle", "0.5", "--patience", "10"])
            .args(["--roster", &self.text("fleet/roster.json")])
            .args(["--key", &self.text(&format!("d{k}.key"))])
            .args(["--listen", &format!("10.77.0.{k}:7000")])
            .args(["--peers", &peers.collect::<Vec<_>>().join(",")])
            .args(["--to", &self.text(&format!("node-{k}"))])
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.running.push(child.unwrap());
    }

    /// Waits until a device's status is such.
    fn wait_for(&self, k: usize, is: impl Fn(&Value) -> bool) -> Value {
        let started = Instant::now();
        loop {
            let file = std::fs::read(self.path(&format!("node-{k}/status.json")));
            let status: Option<Value> = file.ok().and_then(|f| serde_json::from_slice(&f).ok());
            if let Some(status) = status.filter(|status| is(status)) {
                return status;
            }
            let log =
                || std::fs::read_to_string(self.path(&format!("{k}.log"))).unwrap_or_default();
            assert!(started.elapsed() < DEADLINE, "d{k} never came to it\n{}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for child in &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Whether an epoch of so many devices is over for all.
fn complete(of: usize) -> impl Fn(&Value) -> bool {
    move |status| {
        let part = status["devices"].as_array().unwrap().iter();
        part.filter(|d| d["takes_part"] == true).count() == of && status["stage"] == "complete"
    }
}

#[test]
fn both_sides_of_a_partition_go_on_and_find_together_again() {
    let Some(mut fleet) = Fleet::new("p") else { return };
    (1..=DEVICES).for_each(|k| fleet.start(k));
    let before = fleet.wait_for(1, complete(DEVICES))["epoch"].as_u64().unwrap();
    fleet.hosts.cut(true);
    let cut = Instant::now();
    // d1, d2 and d3 have labels, so that both sides can plan.
    let near = fleet.wait_for(1, complete(DEVICES / 2))["epoch"].as_u64().unwrap();
    let far = fleet.wait_for(4, complete(DEVICES / 2))["epoch"].as_u64().unwrap();
    assert!(near > before && far > before);
    std::thread::sleep(Duration::from_secs(10).saturating_sub(cut.elapsed()));
    fleet.hosts.cut(false);
    for k in 1..=DEVICES {
        let status = fleet.wait_for(k, complete(DEVICES));
        assert!(status["epoch"].as_u64().unwrap() > near.max(far), "{status}");
    }
    let plans = (1..=DEVICES).map(|k| std::fs::read(fleet.path(&format!("node-{k}/plan.json"))));
    let mut plans: Vec<Vec<u8>> = plans.map(Result::unwrap).collect();
    plans.dedup();
    assert_eq!(plans.len(), 1, "all follow one plan");
}

#[test]
fn a_slow_link_takes_longer_and_nothing_else() {
    let Some(mut fleet) = Fleet::new("s") else { return };
    let host = fleet.hosts.host(DEVICES);
    let slow = Command::new("tc")
        .args(["-n", &host, "qdisc", "add", "dev", "eth0", "root", "netem"])
        .args(["delay", "100ms", "rate", "4mbit"])
        .output();
    if !slow.as_ref().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: links cannot be made slow: {slow:?}");
        return;
    }
    (1..=DEVICES).for_each(|k| fleet.start(k));
    for k in 1..=DEVICES {
        let status = fleet.wait_for(k, complete(DEVICES));
        assert_eq!(status["epoch"], 1, "{status}");
    }
}
