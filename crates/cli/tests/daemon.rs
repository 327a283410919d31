//! Devices as processes that run on: they come late, are killed, come back, and tell how they stand.
#![cfg(feature = "node")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::run;
use serde_json::Value;

/// No wait is longer than this.
const DEADLINE: Duration = Duration::from_secs(90);

const SETTINGS: &str = "seeds=[3] data.samples=3000 partition.scale=0.08 partition.devices=6 training.model=mlp \
                        training.steps=200 divergence.features=64";

struct Fleet {
    folder: tempfile::TempDir,
    addresses: Vec<SocketAddr>,
    running: Vec<Option<Child>>,
}

impl Fleet {
    /// Keys for so many devices, the first of which are admitted. Every test has a host of its own.
    fn new(host: &str, devices: usize, admitted: usize) -> Fleet {
        let folder = tempfile::tempdir().unwrap();
        let sockets: Vec<UdpSocket> =
            (0..devices).map(|_| UdpSocket::bind((host, 0)).unwrap()).collect();
        let addresses = sockets.iter().map(|s| s.local_addr().unwrap()).collect();
        let fleet = Fleet { folder, addresses, running: (0..devices).map(|_| None).collect() };
        assert_eq!(run(&["fleet", "init", &fleet.text("fleet")], "").code, 0);
        (1..=admitted).for_each(|k| fleet.admit(k));
        fleet
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn admit(&self, k: usize) {
        let key = run(&["node", "init", &self.text(&format!("d{k}.key"))], "");
        let name = format!("d{k}");
        let added =
            run(&["fleet", "add", &name, key.out.trim(), "--fleet", &self.text("fleet")], "");
        assert_eq!(added.code, 0, "{}", added.err);
    }

    fn start(&mut self, k: usize, more: &[&str]) {
        let known = (1..k).map(|other| format!("d{other}={}", self.addresses[other - 1]));
        let known = known.collect::<Vec<_>>().join(",");
        let log = std::fs::File::options();
        let log =
            log.clone().create(true).append(true).open(self.path(&format!("{k}.log"))).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_stlf"));
        command
            .args(["node", "start", "-c", SETTINGS, "--settle", "0.5", "--patience", "10"])
            .args(["--fleet", &self.text("fleet/roster.json")])
            .args(["--key", &self.text(&format!("d{k}.key"))])
            .args(["--listen", &self.addresses[k - 1].to_string()])
            .args(["--to", &self.text(&format!("node-{k}")), "--log", "json"])
            .args(more)
            .stdout(Stdio::null())
            .stderr(log);
        if k > 1 {
            command.args(["--peers", &known]);
        }
        self.running[k - 1] = Some(command.spawn().unwrap());
    }

    fn kill(&mut self, k: usize) {
        let mut child = self.running[k - 1].take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn status(&self, k: usize) -> Option<Value> {
        serde_json::from_slice(&std::fs::read(self.path(&format!("node-{k}/status.json"))).ok()?)
            .ok()
    }

    /// Waits until these devices have completed an epoch of so many devices, after this one.
    fn wait_for(&self, devices: &[usize], of: usize, after: u64) -> u64 {
        let started = Instant::now();
        loop {
            let done = devices.iter().map(|&k| {
                let status = self.status(k)?;
                let part = status["devices"].as_array()?;
                let part = part.iter().filter(|d| d["takes_part"] == true).count();
                let epoch = status["epoch"].as_u64().filter(|&epoch| epoch > after)?;
                (part == of && status["stage"] == "complete").then_some(epoch)
            });
            if let Some(epochs) = done.collect::<Option<Vec<u64>>>() {
                return epochs[0];
            }
            if started.elapsed() > DEADLINE {
                let told = devices.iter().map(|k| {
                    let log = std::fs::read_to_string(self.path(&format!("{k}.log")));
                    format!("d{k}: {:#?}\n{}", self.status(*k), log.unwrap_or_default())
                });
                let told = told.collect::<Vec<_>>().join("\n");
                panic!("no epoch of {of} devices was completed\n{told}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn json(&self, file: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.path(file)).unwrap()).unwrap()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for child in self.running.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn modified(path: &Path) -> std::time::SystemTime {
    std::fs::metadata(path).unwrap().modified().unwrap()
}

#[test]
fn killed_at_any_moment_it_goes_on_where_it_was() {
    let mut fleet = Fleet::new("127.0.8.2", 4, 4);
    (1..=4).for_each(|k| fleet.start(k, &[]));
    let all = [1, 2, 3, 4];
    let mut epoch = fleet.wait_for(&all, 4, 0);
    let trained = modified(&fleet.path("node-2/training.json"));
    for (k, moment) in [(4, 0), (2, 30), (1, 200), (4, 700)] {
        fleet.kill(k);
        // Without it the others go on, and with it again everyone; it may be killed again on the way.
        fleet.start(k, &[]);
        std::thread::sleep(Duration::from_millis(moment));
        fleet.kill(k);
        let others: Vec<usize> = all.into_iter().filter(|&other| other != k).collect();
        epoch = fleet.wait_for(&others, 3, epoch);
        fleet.start(k, &[]);
        epoch = fleet.wait_for(&all, 4, epoch);
    }
    // Nobody trained again, and all follow one plan.
    assert_eq!(modified(&fleet.path("node-2/training.json")), trained);
    let plan = fleet.json("node-1/plan.json");
    assert_eq!(plan["epoch"], epoch);
    let mut targets = 0;
    for k in all {
        assert_eq!(fleet.json(&format!("node-{k}/plan.json")), plan, "d{k}");
        let is_target = plan["targets"].as_array().unwrap().contains(&Value::from(k - 1));
        let predictions = fleet.path(&format!("node-{k}/predictions.csv"));
        assert!(!is_target || predictions.is_file(), "d{k}");
        targets += usize::from(is_target);
    }
    assert!(targets > 0);
}

#[test]
fn who_is_admitted_later_joins_and_everyone_tells_how_it_stands() {
    let mut fleet = Fleet::new("127.0.8.3", 4, 3);
    let metrics = UdpSocket::bind("127.0.8.3:0").unwrap().local_addr().unwrap();
    fleet.start(1, &["--metrics", &metrics.to_string()]);
    fleet.start(2, &[]);
    fleet.start(3, &[]);
    let epoch = fleet.wait_for(&[1, 2, 3], 3, 0);
    let before = fleet.json("node-1/plan.json");
    // The roster changes where all look for it.
    fleet.admit(4);
    fleet.start(4, &[]);
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

    let mut stream = TcpStream::connect(metrics).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.contains("\nstlf_devices_here 4\n"), "{answer}");

    // Logs are JSON, a line each.
    let log = std::fs::read_to_string(fleet.path("node-4/events.jsonl")).unwrap();
    assert!(log.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{log}");

    // A device that is gone is said to be.
    fleet.kill(4);
    std::thread::sleep(Duration::from_secs(6));
    let gone = run(&["node", "status", "--at", &fleet.text("node-4")], "");
    assert!(gone.out.contains("not running"), "{}", gone.out);
}

#[test]
fn status_of_nothing_says_where_to_look() {
    let ran = run(&["node", "status", "--at", "nowhere"], "");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("--at"), "{}", ran.err);
}
