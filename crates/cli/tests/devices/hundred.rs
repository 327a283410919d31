//! A hundred devices, each a process of its own, complete an epoch; what each needs is printed.

use std::time::{Duration, Instant};

use crate::common::fleet::Fleet;

const DEVICES: usize = 100;

/// It takes about a minute and a half on two idle cores.
const LONGEST: Duration = Duration::from_secs(1_200);

const SETTINGS: &str = "seeds=[3] data.samples=6000 partition.scale=0.03 partition.devices=100 training.model=mlp \
                        training.steps=100 divergence.features=16";

#[test]
fn a_hundred_devices_complete_an_epoch() {
    let mut fleet = Fleet::on("127.0.8.4", DEVICES, DEVICES, SETTINGS);
    let started = Instant::now();
    let options = ["--once", "--wait", "900", "--deadline", "900", "--patience", "300"];
    (1..=DEVICES).for_each(|k| fleet.start(k, &options));
    for k in 1..=DEVICES {
        let left_well = fleet.has_left_well_within(LONGEST, k);
        assert!(left_well, "d{k}: {}", fleet.log(k));
    }
    let took = started.elapsed();
    let devices: Vec<usize> = (1..=DEVICES).collect();
    let plan = fleet.one_plan(&devices);
    let count = |of: &str| plan[of].as_array().map_or(0, Vec::len);
    assert_eq!(count("sources") + count("targets"), DEVICES);
    assert!(count("targets") > 0 && count("links") >= count("targets"));

    let statuses: Vec<_> = devices.iter().filter_map(|&k| fleet.status(k)).collect();
    let most = |of: fn(&serde_json::Value) -> Option<u64>| statuses.iter().filter_map(of).max();
    let sent = most(|status| status["traffic"]["sent"].as_u64()).unwrap_or_default();
    let memory = most(|status| status["most_memory"].as_u64()).unwrap_or_default();
    println!(
        "{DEVICES} processes: an epoch in {:.0} s; a device sent {:.1} MB and had {:.0} MB of memory at most",
        took.as_secs_f64(),
        sent as f64 / 1e6,
        memory as f64 / 1e6
    );
    // Every pair of devices shares one connection and two sketches; a model goes to some.
    assert!(sent < 20_000_000, "{sent} bytes");
}
