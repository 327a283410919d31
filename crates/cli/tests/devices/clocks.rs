//! Devices whose clocks are wrong take part like any other. `faketime` makes them wrong; skipped, with a printed reason, without it.

use std::process::Command;

use crate::common::fleet::{Fleet, SMALL};

const OPTIONS: [&str; 4] = ["--settle", "0.5", "--patience", "10"];

const DAY: f64 = 24.0 * 3600.0;

#[test]
fn clocks_that_are_years_off_or_run_fast_change_nothing() {
    // The program `faketime` stays between us and what it starts; its library is enough.
    let told = Command::new("faketime").args(["-f", "+0", "printenv", "LD_PRELOAD"]).output();
    let Ok(told) = told else {
        return stlf_testing::skip("there is no `faketime`");
    };
    let library = format!("LD_PRELOAD={}", String::from_utf8(told.stdout).unwrap().trim());
    let mut fleet = Fleet::on("127.0.8.7", 4, 4, SMALL);
    // Only the calendar is wrong; a timer runs as ever.
    let off = ["env", &library, "FAKETIME_DONT_FAKE_MONOTONIC=1"];
    fleet.start_in(1, &[&off[..], &["FAKETIME=-1000d"]].concat(), &OPTIONS);
    fleet.start(2, &OPTIONS);
    fleet.start_in(3, &[&off[..], &["FAKETIME=+1000d"]].concat(), &OPTIONS);
    // Timers too run half as fast again.
    fleet.start_in(4, &["env", &library, "FAKETIME=+0 x1.5"], &OPTIONS);
    let epoch = fleet.wait_for(&[1, 2, 3, 4], 4, 0);
    assert_eq!(epoch, 1, "nobody was taken for silent");
    let plan = fleet.one_plan(&[1, 2, 3, 4]);
    assert!(!plan["links"].as_array().unwrap().is_empty(), "{plan}");
    // The clocks were indeed wrong.
    let seconds = |k: usize| fleet.status(k).unwrap()["seconds"].as_f64().unwrap();
    assert!(seconds(2) - seconds(1) > 999.0 * DAY, "{} {}", seconds(1), seconds(2));
    assert!(seconds(3) - seconds(2) > 999.0 * DAY, "{} {}", seconds(3), seconds(2));
}
