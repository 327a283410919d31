//! Ten processes of which one is killed after the other, some of them started again before anybody has noticed: all end with one plan, nobody
//! is left out, and nobody trains twice. `STLF_SOAK_KILLS` sets the number of kills.

use std::time::Instant;

use stlf_testing::{DEADLINE, wait_for};

use crate::common::fleet::Fleet;

const DEVICES: usize = 10;

const SETTINGS: &str = "seeds=[3] data.samples=3000 partition.scale=0.08 partition.devices=10 training.model=mlp \
                        training.steps=200 divergence.features=32";

const OPTIONS: [&str; 4] = ["--settle", "0.5", "--patience", "15"];

/// How many kills there are unless the environment says otherwise.
const KILLS: usize = 24;

/// The number of the epoch that all have completed with all, if they have.
fn together(fleet: &Fleet) -> Option<u64> {
    let completed = |k: usize| {
        let status = fleet.status(k)?;
        let part = status["devices"].as_array()?.iter().filter(|d| d["takes_part"] == true).count();
        let epoch = status["epoch"].as_u64()?;
        (part == DEVICES && status["stage"] == "complete").then_some(epoch)
    };
    let epochs: Vec<u64> = (1..=DEVICES).map(completed).collect::<Option<_>>()?;
    epochs.iter().all(|epoch| *epoch == epochs[0]).then_some(epochs[0])
}

fn logs(fleet: &Fleet) -> String {
    (1..=DEVICES).map(|k| format!("d{k}:\n{}\n", fleet.log(k))).collect()
}

#[test]
fn ten_processes_that_are_killed_one_after_the_other_end_with_one_plan() {
    let kills = std::env::var("STLF_SOAK_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(KILLS);
    let mut fleet = Fleet::on("127.0.8.41", DEVICES, DEVICES, SETTINGS);
    (1..=DEVICES).for_each(|k| fleet.start(k, &OPTIONS));
    let mut epoch = wait_for(DEADLINE, || together(&fleet), || logs(&fleet));
    let mut draw = 1_u64;
    for kill in 0..kills {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let k = (draw >> 33) as usize % DEVICES + 1;
        let said = fleet.log(k).len();
        fleet.kill(k);
        if kill % 4 == 3 {
            // The others notice, and go on without it.
            let other = k % DEVICES + 1;
            let later = || fleet.status(other)?["epoch"].as_u64().filter(|now| *now > epoch);
            epoch = wait_for(DEADLINE, later, || logs(&fleet));
        }
        fleet.start(k, &OPTIONS);
        if kill % 2 == 0 {
            fleet.wait_for_words(k, said, "listening on");
        }
    }
    let last = Instant::now();
    let is_back = |k: usize| fleet.log(k).matches("listening on").count();
    let starts: usize = (1..=DEVICES).map(is_back).sum();
    wait_for(DEADLINE, || together(&fleet).filter(|now| *now > epoch), || logs(&fleet));
    let seconds = last.elapsed().as_secs_f64();
    println!("{kills} kills, {starts} starts: one plan {seconds:.1} s after the last");
    fleet.one_plan(&(1..=DEVICES).collect::<Vec<_>>());
    for k in 1..=DEVICES {
        let log = fleet.log(k);
        let trains =
            |line: &&str| line.contains(": training on ") && !line.ends_with(" on 0 labels");
        assert!(log.lines().filter(trains).count() <= 1, "d{k} trained twice\n{log}");
        assert!(!log.contains("is left out"), "d{k} leaves somebody out\n{log}");
    }
}
