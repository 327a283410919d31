//! Machines, each a folder, on which commands of the guide to fleets run, each a process.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use stlf_testing::{DEADLINE, wait_for};

/// The rows of every device's table.
const ROWS: usize = 400;

/// Machines, as folders, and what runs on them.
pub(crate) struct Machines {
    folder: tempfile::TempDir,
    /// By which program each starts its commands, such as one that puts it on a host of its own.
    by: BTreeMap<String, Vec<String>>,
    tickets: Vec<String>,
    running: Vec<(String, Child)>,
}

impl Default for Machines {
    fn default() -> Machines {
        let folder = tempfile::tempdir().unwrap();
        Machines { folder, by: BTreeMap::new(), tickets: Vec::new(), running: Vec::new() }
    }
}

impl Machines {
    /// Has a machine start its commands by another program.
    pub(crate) fn start_by(&mut self, machine: &str, words: &[&str]) {
        self.by.insert(machine.to_owned(), words.iter().map(|&word| word.to_owned()).collect());
    }

    pub(crate) fn path(&self, of: &str) -> PathBuf {
        self.folder.path().join(of)
    }

    /// Makes a machine with a table of its own, of which every row has a label or none has.
    pub(crate) fn add(&self, machine: &str, is_labeled: bool) {
        std::fs::create_dir_all(self.path(machine)).unwrap();
        if machine != "owner" {
            let mut table = std::fs::File::create(self.path(machine).join("sensors.csv")).unwrap();
            writeln!(table, "wind,wave,rain,label").unwrap();
            for row in 0..ROWS {
                let label = if is_labeled { truth(row) } else { "" };
                // Storms are far from calm days on every machine.
                let base = if truth(row) == "storm" { 40.0 } else { 5.0 };
                // No row is there again, which would count for nothing in what a device may publish.
                let noise = |k: usize| ((row * k + row / 17) % 101) as f64 / 25.0;
                let [wind, wave, rain] = [7, 11, 13].map(|k| base + noise(k));
                writeln!(table, "{wind},{wave},{rain},{label}").unwrap();
            }
        }
    }

    /// Starts a command as it is written, with the next ticket in place of TICKET.
    pub(crate) fn start(&mut self, machine: &str, command: &str) {
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
        let by = self.by.get(machine).cloned().unwrap_or_default();
        let mut program = by.iter().map(String::as_str).chain([env!("CARGO_BIN_EXE_stlf")]);
        let child = Command::new(program.next().unwrap())
            .args(program)
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

    pub(crate) fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.path(file)).unwrap_or_default()
    }

    /// Everything that was said, for a test that fails.
    pub(crate) fn logs(&self) -> String {
        let log =
            |machine: &String| format!("{machine}:\n{}", self.text(&format!("{machine}/err")));
        let mut machines: Vec<&String> = self.running.iter().map(|(name, _)| name).collect();
        machines.dedup();
        machines.into_iter().map(log).collect()
    }

    /// Starts the owner's command, and waits for so many more tickets.
    pub(crate) fn invite(&mut self, command: &str, tickets: usize) {
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
    pub(crate) fn ends_well(&mut self, machine: &str) -> bool {
        let at = self.running.iter().rposition(|(name, _)| name == machine).unwrap();
        let (_, mut child) = self.running.remove(at);
        let ended = wait_for(DEADLINE, || child.try_wait().unwrap(), || self.logs());
        ended.success()
    }

    pub(crate) fn kill(&mut self, machine: &str) {
        let at = self.running.iter().rposition(|(name, _)| name == machine).unwrap();
        let (_, mut child) = self.running.remove(at);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub(crate) fn status(&self, machine: &str) -> Value {
        serde_json::from_str(&self.text(&format!("{machine}/node/status.json"))).unwrap_or_default()
    }

    /// Waits until all of these devices have completed an epoch among themselves.
    pub(crate) fn all_complete(&self, machines: &[&str]) -> u64 {
        self.all_complete_after(0, machines)
    }

    /// The same for an epoch after this one. Returns its number.
    pub(crate) fn all_complete_after(&self, epoch: u64, machines: &[&str]) -> u64 {
        let completed = |machine: &&str| {
            let status = self.status(machine);
            let devices = status["devices"].as_array()?;
            let all = devices.iter().filter(|device| device["takes_part"] == true).count();
            let number = status["epoch"].as_u64().filter(|&number| number > epoch)?;
            (status["stage"] == "complete" && all == machines.len()).then_some(number)
        };
        let complete = || machines.iter().map(completed).collect::<Option<Vec<u64>>>();
        wait_for(DEADLINE, complete, || self.logs())[0]
    }

    /// Runs a command to its end and returns what it prints.
    pub(crate) fn says(&self, machine: &str, words: &[&str]) -> String {
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

/// The class of a row of every table.
pub(crate) fn truth(row: usize) -> &'static str {
    ["calm", "storm"][row % 2]
}
