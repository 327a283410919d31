//! A fleet of devices, each a process of its own.

use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use stlf_testing::{DEADLINE, wait_for};

use super::run;

/// What a small fleet runs: seconds, and every device has something to do.
pub(crate) const SMALL: &str = "seeds=[3] data.samples=3000 partition.scale=0.08 partition.devices=6 training.model=mlp \
                                training.steps=200 divergence.features=32";

/// Devices `d1`, `d2` and so on, what they run, and where.
///
/// One fleet at a time within a program: what a busy machine makes slow would be taken for lost.
pub(crate) struct Fleet {
    folder: tempfile::TempDir,
    settings: String,
    addresses: Vec<SocketAddr>,
    running: Vec<Option<Child>>,
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl Fleet {
    /// Keys for devices at these addresses, all of which are admitted.
    pub(crate) fn at(addresses: Vec<SocketAddr>, settings: &str) -> Fleet {
        let devices = addresses.len();
        let fleet = Fleet::empty(addresses, settings);
        (1..=devices).for_each(|k| fleet.admit(k));
        fleet
    }

    /// So many devices on one host, of which the first are admitted. Every test has a host of its own.
    pub(crate) fn on(host: &str, devices: usize, admitted: usize, settings: &str) -> Fleet {
        let sockets: Vec<UdpSocket> =
            (0..devices).map(|_| UdpSocket::bind((host, 0)).unwrap()).collect();
        let addresses = sockets.iter().map(|s| s.local_addr().unwrap()).collect();
        let fleet = Fleet::empty(addresses, settings);
        (1..=admitted).for_each(|k| fleet.admit(k));
        fleet
    }

    fn empty(addresses: Vec<SocketAddr>, settings: &str) -> Fleet {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let (folder, settings) = (tempfile::tempdir().unwrap(), settings.to_owned());
        let running = addresses.iter().map(|_| None).collect();
        let fleet = Fleet { folder, settings, addresses, running, _alone: alone };
        assert_eq!(run(&["fleet", "init", &fleet.text("fleet")], "").code, 0);
        fleet
    }

    /// Returns the path of a file in the fleet's folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the same path as text.
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Makes a device's key and adds it to the roster, where all look for it.
    pub(crate) fn admit(&self, k: usize) {
        let key = run(&["node", "init", &self.text(&format!("d{k}.key"))], "");
        let name = format!("d{k}");
        let added =
            run(&["fleet", "add", &name, key.out.trim(), "--fleet", &self.text("fleet")], "");
        assert_eq!(added.code, 0, "{}", added.err);
    }

    /// Starts a device, with more options.
    pub(crate) fn start(&mut self, k: usize, more: &[&str]) {
        self.start_in(k, &[], more);
    }

    /// Starts a device by another program, such as one that puts it on a host of its own.
    pub(crate) fn start_in(&mut self, k: usize, by: &[&str], more: &[&str]) {
        let known = (1..k).map(|other| format!("d{other}={}", self.addresses[other - 1]));
        let known = known.collect::<Vec<_>>().join(",");
        let log = self.path(&format!("{k}.log"));
        let log = std::fs::File::options().create(true).append(true).open(log).unwrap();
        let mut words = by.iter().copied().chain([env!("CARGO_BIN_EXE_stlf")]);
        let mut command = Command::new(words.next().unwrap());
        command
            .args(words)
            .args(["node", "start", "-c", &self.settings])
            .args(["--fleet", &self.text("fleet/roster.json")])
            .args(["--key", &self.text(&format!("d{k}.key"))])
            .args(["--listen", &self.addresses[k - 1].to_string()])
            .args(["--to", &self.text(&format!("node-{k}"))])
            .args(more)
            .stdout(Stdio::null())
            .stderr(log);
        if k > 1 {
            command.args(["--peers", &known]);
        }
        self.running[k - 1] = Some(command.spawn().unwrap());
    }

    /// Kills a device, and waits until it is gone.
    pub(crate) fn kill(&mut self, k: usize) {
        let mut child = self.running[k - 1].take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Waits until a device has left by itself, and whether all was well.
    pub(crate) fn has_left_well(&mut self, k: usize) -> bool {
        self.has_left_well_within(DEADLINE, k)
    }

    /// The same for a fleet that needs longer.
    pub(crate) fn has_left_well_within(&mut self, time: Duration, k: usize) -> bool {
        let log = self.path(&format!("{k}.log"));
        let child = self.running[k - 1].as_mut().unwrap();
        let stays = || format!("d{k} stays\n{}", std::fs::read_to_string(log).unwrap_or_default());
        let left = wait_for(time, || child.try_wait().unwrap(), stays);
        self.running[k - 1] = None;
        left.success()
    }

    /// Waits until a device tells of something, after so many bytes that it has told before.
    pub(crate) fn wait_for_words(&self, k: usize, after: usize, words: &str) {
        let said = || self.log(k).get(after..)?.contains(words).then_some(());
        wait_for(DEADLINE, said, || format!("d{k} did not say {words:?}\n{}", self.log(k)));
    }

    /// What a device wrote on standard error.
    pub(crate) fn log(&self, k: usize) -> String {
        std::fs::read_to_string(self.path(&format!("{k}.log"))).unwrap_or_default()
    }

    /// What a device says of itself, if it does yet.
    pub(crate) fn status(&self, k: usize) -> Option<Value> {
        let file = std::fs::read(self.path(&format!("node-{k}/status.json")));
        serde_json::from_slice(&file.ok()?).ok()
    }

    /// Waits until these devices have completed an epoch of so many devices, after this one.
    pub(crate) fn wait_for(&self, devices: &[usize], of: usize, after: u64) -> u64 {
        let done = |k: &usize| {
            let status = self.status(*k)?;
            let part = status["devices"].as_array()?;
            let part = part.iter().filter(|d| d["takes_part"] == true).count();
            let epoch = status["epoch"].as_u64().filter(|&epoch| epoch > after)?;
            (part == of && status["stage"] == "complete").then_some(epoch)
        };
        let told = |k: &usize| format!("d{k}: {:#?}\n{}", self.status(*k), self.log(*k));
        let epochs = wait_for(
            DEADLINE,
            || devices.iter().map(done).collect::<Option<Vec<u64>>>(),
            || {
                let told: Vec<String> = devices.iter().map(told).collect();
                format!("no epoch of {of} devices was completed\n{}", told.join("\n"))
            },
        );
        epochs[0]
    }

    /// Returns the content of a file of JSON in the fleet's folder.
    pub(crate) fn json(&self, file: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.path(file)).unwrap()).unwrap()
    }

    /// The plan that all of these devices follow.
    pub(crate) fn one_plan(&self, devices: &[usize]) -> Value {
        let plan = self.json(&format!("node-{}/plan.json", devices[0]));
        for k in devices {
            assert_eq!(self.json(&format!("node-{k}/plan.json")), plan, "d{k}");
        }
        plan
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
