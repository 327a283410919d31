//! The commands of the guide to fleets, from nothing to predictions, each machine a folder and each command a process.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use stlf_testing::{DEADLINE, wait_for};

use crate::learners::{nearest_mean, table};

const GUIDE: &str = include_str!("../../../../docs/fleet.md");

/// The rows of every device's table.
const ROWS: usize = 400;

/// The commands of the blocks below a heading, with the machine that each is typed on: `gate$ stlf node status`.
fn commands(heading: &str) -> Vec<(&'static str, &'static str)> {
    let section = GUIDE.split("\n## ").find(|section| section.starts_with(heading)).unwrap();
    let blocks = section.split("```").skip(1).step_by(2).flat_map(str::lines);
    let found: Vec<_> = blocks.filter_map(|line| line.split_once("$ ")).collect();
    assert!(found.len() >= 4, "{section}");
    found
}

/// Machines, as folders, and what runs on them.
struct Machines {
    folder: tempfile::TempDir,
    tickets: Vec<String>,
    running: Vec<(String, Child)>,
}

impl Machines {
    fn path(&self, of: &str) -> PathBuf {
        self.folder.path().join(of)
    }

    /// Makes a machine with a table of its own, of which every row has a label or none has.
    fn add(&self, machine: &str, is_labeled: bool) {
        std::fs::create_dir_all(self.path(machine)).unwrap();
        if machine != "owner" {
            let mut table = std::fs::File::create(self.path(machine).join("sensors.csv")).unwrap();
            writeln!(table, "wind,wave,rain,label").unwrap();
            for row in 0..ROWS {
                let label = if is_labeled { truth(row) } else { "" };
                // Storms are far from calm days on every machine.
                let base = if truth(row) == "storm" { 40.0 } else { 5.0 };
                let [wind, wave, rain] = [7, 11, 13].map(|k| base + (row * k % 17) as f64 / 4.0);
                writeln!(table, "{wind},{wave},{rain},{label}").unwrap();
            }
        }
    }

    /// Starts a command as it is written, with the next ticket in place of TICKET.
    fn start(&mut self, machine: &str, command: &str) {
        let ticket = match command.contains("TICKET") {
            true => self.tickets.remove(0),
            false => String::new(),
        };
        let mut words = command.split_whitespace();
        assert_eq!(words.next(), Some("stlf"), "{command}");
        let log = |name: &str| {
            let path = self.path(machine).join(name);
            std::fs::File::options().create(true).append(true).open(path).unwrap()
        };
        let child = Command::new(env!("CARGO_BIN_EXE_stlf"))
            .args(words.map(|word| if word == "TICKET" { ticket.as_str() } else { word }))
            .current_dir(self.path(machine))
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(log("out"))
            .stderr(log("err"))
            .spawn()
            .unwrap();
        self.running.push((machine.to_owned(), child));
    }

    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.path(file)).unwrap_or_default()
    }

    /// Everything that was said, for a test that fails.
    fn logs(&self) -> String {
        let log =
            |machine: &String| format!("{machine}:\n{}", self.text(&format!("{machine}/err")));
        let mut machines: Vec<&String> = self.running.iter().map(|(name, _)| name).collect();
        machines.dedup();
        machines.into_iter().map(log).collect()
    }

    /// Starts the owner's command, and waits for so many more tickets.
    fn invite(&mut self, command: &str, tickets: usize) {
        let before = self.text("owner/out").lines().count();
        self.start("owner", command);
        let printed = || {
            let out = self.text("owner/out");
            let lines: Vec<String> = out.lines().skip(before).map(str::to_owned).collect();
            (lines.len() == tickets && out.ends_with('\n')).then_some(lines)
        };
        self.tickets = wait_for(DEADLINE, printed, || self.logs());
    }

    /// Waits until the last command of a machine has ended, and returns whether all was well.
    fn ends_well(&mut self, machine: &str) -> bool {
        let at = self.running.iter().rposition(|(name, _)| name == machine).unwrap();
        let (_, mut child) = self.running.remove(at);
        let ended = wait_for(DEADLINE, || child.try_wait().unwrap(), || self.logs());
        ended.success()
    }

    fn kill(&mut self, machine: &str) {
        let at = self.running.iter().rposition(|(name, _)| name == machine).unwrap();
        let (_, mut child) = self.running.remove(at);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn status(&self, machine: &str) -> Value {
        serde_json::from_str(&self.text(&format!("{machine}/node/status.json"))).unwrap_or_default()
    }

    /// Waits until all of these devices have completed an epoch among themselves.
    fn all_complete(&self, machines: &[&str]) {
        let is_complete = |machine: &&str| {
            let status = self.status(machine);
            let all = status["devices"].as_array().map_or(0, |devices| {
                devices.iter().filter(|device| device["takes_part"] == true).count()
            });
            status["stage"] == "complete" && all == machines.len()
        };
        let complete = || machines.iter().all(is_complete).then_some(());
        wait_for(DEADLINE, complete, || self.logs());
    }

    /// Runs a command to its end and returns what it prints.
    fn says(&self, machine: &str, words: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stlf"));
        let ran = command.args(words).current_dir(self.path(machine)).env("NO_COLOR", "1").output();
        String::from_utf8(ran.unwrap().stdout).unwrap()
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for (_, child) in &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn truth(row: usize) -> &'static str {
    ["calm", "storm"][row % 2]
}

/// The fraction of a device's rows whose class it predicted right.
fn accuracy(predictions: &Path) -> f64 {
    let text = std::fs::read_to_string(predictions).unwrap();
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = |name: &str| head.iter().position(|column| *column == name).unwrap();
    let (row, class) = (column("sample"), column("class"));
    let is_right = |line: &&str| {
        let cells: Vec<&str> = line.split(',').collect();
        cells[class] == truth(cells[row].parse().unwrap())
    };
    lines.clone().filter(is_right).count() as f64 / lines.count() as f64
}

#[test]
fn the_guide_leads_from_nothing_to_predictions() {
    let folder = tempfile::tempdir().unwrap();
    let mut machines = Machines { folder, tickets: Vec::new(), running: Vec::new() };
    let guide = commands("Three devices in a minute");
    let (first, later) = guide.split_at(4);
    // One command of the owner, and one on each device.
    assert_eq!(
        first.iter().map(|(at, _)| *at).collect::<Vec<_>>(),
        ["owner", "gate", "yard", "dock"]
    );
    for (machine, _) in &guide {
        machines.add(machine, *machine == "gate");
    }
    machines.invite(first[0].1, 3);
    for (machine, command) in &first[1..] {
        machines.start(machine, command);
    }
    assert!(machines.ends_well("owner"), "{}", machines.logs());
    machines.all_complete(&["gate", "yard", "dock"]);
    for machine in ["yard", "dock"] {
        let right = accuracy(&machines.path(machine).join("node/predictions.csv"));
        assert!(right > 0.95, "{machine}: {right}");
    }

    // Another device comes, and all learn of it without a copy of the roster.
    let [(owner, invite), (roof, join), (gate, start)] = later else { panic!("{later:?}") };
    assert_eq!((*owner, *roof, *gate), ("owner", "roof", "gate"));
    machines.invite(invite, 1);
    machines.start(roof, join);
    assert!(machines.ends_well("owner"), "{}", machines.logs());
    machines.all_complete(&["gate", "yard", "dock", "roof"]);

    // Who waits says for whom, where and for how long. The last of the roster calls all others.
    machines.kill("gate");
    let missed = "gate has not answered at 127.0.0.1:";
    let status = |whose: &str| machines.says("roof", &[whose, "status"]);
    for whose in ["node", "fleet"] {
        let is_shown = || status(whose).contains(missed).then_some(());
        wait_for(DEADLINE, is_shown, || status(whose));
    }
    let is_told = || machines.text("roof/err").contains(missed).then_some(());
    wait_for(DEADLINE, is_told, || machines.logs());
    machines.start(gate, start);
    machines.all_complete(&["gate", "yard", "dock", "roof"]);
    assert!(machines.text("gate/err").contains("gate: has trained before"), "{}", machines.logs());
}

#[test]
fn a_device_that_joined_keeps_its_port_and_learns_from_labels_that_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut machines = Machines { folder, tickets: Vec::new(), running: Vec::new() };
    for machine in ["owner", "gate", "yard"] {
        machines.add(machine, machine == "gate");
    }
    machines.invite("stlf fleet invite harbour --devices 2 --listen 127.0.0.1:0", 2);
    for machine in ["gate", "yard"] {
        let join = format!("stlf node join TICKET --name {machine} --data sensors.csv");
        machines.start(machine, &format!("{join} --listen 127.0.0.1:0"));
    }
    assert!(machines.ends_well("owner"), "{}", machines.logs());
    machines.all_complete(&["gate", "yard"]);

    // Somebody labels what it asks for, and it is started again with the answers.
    let asked = machines.says("yard", &["ask", "node", "sensors.csv", "--labels", "30"]);
    let mut lines = asked.lines();
    let mut answers = format!("{}\n", lines.next().unwrap());
    for line in lines {
        let row: usize = line.split(',').nth(1).unwrap().parse().unwrap();
        answers += &format!("{line}{}\n", truth(row));
    }
    std::fs::write(machines.path("yard/asked.csv"), answers).unwrap();
    machines.kill("yard");
    machines.start("yard", "stlf node start -c data.answers=asked.csv");
    let student = || {
        let student = machines.status("yard")["student"].as_str()?.to_owned();
        student.contains(" labels, the mixture on ").then_some(student)
    };
    let student = wait_for(DEADLINE, student, || machines.logs());
    assert!(student.starts_with("used (right on "), "{student}");
}

/// Each machine has a learner instead of a table; started again after a reboot, it must have it again.
#[cfg(unix)]
#[test]
fn devices_with_learners_of_their_own_join_by_tickets() {
    use std::os::unix::fs::PermissionsExt;
    let Some(program) = nearest_mean() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut machines = Machines { folder, tickets: Vec::new(), running: Vec::new() };
    machines.add("owner", false);
    for (machine, device) in [("gate", 1), ("yard", 4)] {
        machines.add(machine, false);
        let script = machines.path(machine).join("learner");
        let own = machines.path(machine).join("own.csv");
        std::fs::write(&own, table(device)).unwrap();
        let text =
            format!("#!/bin/sh\nexec '{}' '{}' calm,storm\n", program.display(), own.display());
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    }
    machines.invite(
        "stlf fleet invite harbour --devices 2 --listen 127.0.0.1:0 -c divergence.features=16",
        2,
    );
    for machine in ["gate", "yard"] {
        let join = format!("stlf node join TICKET --name {machine} --learner ./learner");
        machines.start(machine, &format!("{join} --listen 127.0.0.1:0"));
    }
    assert!(machines.ends_well("owner"), "{}", machines.logs());
    machines.all_complete(&["gate", "yard"]);
    assert!(machines.text("yard/node/predictions.csv").contains(",storm,"), "{}", machines.logs());
    // The plan in its bundle has the terms of what it costs.
    let plan: Value = serde_json::from_str(&machines.text("yard/node/mixture/plan.json")).unwrap();
    let terms: f64 =
        ["source", "target", "energy"].iter().map(|t| plan["terms"][t].as_f64().unwrap()).sum();
    assert!((terms - plan["objective"].as_f64().unwrap()).abs() < 1e-6, "{plan}");

    machines.kill("yard");
    machines.start("yard", "stlf node start");
    assert!(!machines.ends_well("yard"));
    let told = "this device joined its fleet with the learner nearest-mean/1";
    assert!(machines.text("yard/err").contains(told), "{}", machines.logs());
    machines.start("yard", "stlf node start --learner ./learner");
    machines.all_complete(&["gate", "yard"]);
}
