//! The commands of the guide to fleets, from nothing to predictions, each machine a folder and each command a process.

use std::path::Path;

use stlf_testing::{DEADLINE, wait_for};

use crate::common::machines::{Machines, truth};
use crate::learners::{nearest_mean, table};

const GUIDE: &str = include_str!("../../../../docs/fleet.md");

/// The commands of the blocks below a heading, with the machine that each is typed on: `gate$ stlf node status`.
fn commands(heading: &str) -> Vec<(&'static str, &'static str)> {
    let section = GUIDE.split("\n## ").find(|section| section.starts_with(heading)).unwrap();
    let blocks = section.split("```").skip(1).step_by(2).flat_map(str::lines);
    let found: Vec<_> = blocks.filter_map(|line| line.split_once("$ ")).collect();
    assert!(found.len() >= 4, "{section}");
    found
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
    let mut machines = Machines::default();
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
    assert!(machines.text("gate/err").contains("gate: was trained before"), "{}", machines.logs());
}

#[test]
fn a_device_that_joined_keeps_its_port_and_learns_from_labels_that_it_is_told() {
    let mut machines = Machines::default();
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
    let mut machines = Machines::default();
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
    let plan: serde_json::Value =
        serde_json::from_str(&machines.text("yard/node/mixture/plan.json")).unwrap();
    let terms: f64 =
        ["source", "target", "energy"].iter().map(|t| plan["terms"][t].as_f64().unwrap()).sum();
    assert!((terms - plan["objective"].as_f64().unwrap()).abs() < 1e-6, "{plan}");
    assert_eq!(plan["problem"], serde_json::Value::Null, "what others reported is in no bundle");
    for path in ["yard/node", "yard/node/plan.json", "gate/node/full-plan.json"] {
        let path = machines.path(path);
        let explain = std::process::Command::new(env!("CARGO_BIN_EXE_stlf"))
            .args(["explain", path.to_str().unwrap(), "--device", "yard"])
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&explain.stdout).into_owned();
        assert!(explain.status.success(), "{}", String::from_utf8_lossy(&explain.stderr));
        assert!(told.contains("yard") && told.contains("gate"), "{told}");
    }

    machines.kill("yard");
    machines.start("yard", "stlf node start");
    assert!(!machines.ends_well("yard"));
    let told = "this device joined its fleet with the learner nearest-mean/1";
    assert!(machines.text("yard/err").contains(told), "{}", machines.logs());
    machines.start("yard", "stlf node start --learner ./learner");
    machines.all_complete(&["gate", "yard"]);
}
