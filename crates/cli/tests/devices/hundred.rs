//! Fifty and a hundred devices, each a process of its own, complete an epoch; what each needs is printed.

use std::time::{Duration, Instant};

use crate::common::fleet::Fleet;

/// A hundred take about a minute and a half on two idle cores.
const LONGEST: Duration = Duration::from_secs(1_200);

/// Has so many devices complete an epoch with these settings. Returns the bytes that each has sent.
fn sent_in_an_epoch(host: &str, devices: usize, settings: &str) -> Vec<u64> {
    let settings = format!("seeds=[3] partition.devices={devices} {settings}");
    let mut fleet = Fleet::on(host, devices, devices, &settings);
    let started = Instant::now();
    let options = ["--once", "--wait", "900", "--deadline", "900", "--patience", "300"];
    (1..=devices).for_each(|k| fleet.start(k, &options));
    for k in 1..=devices {
        let left_well = fleet.has_left_well_within(LONGEST, k);
        assert!(left_well, "d{k}: {}", fleet.log(k));
    }
    let took = started.elapsed();
    let all: Vec<usize> = (1..=devices).collect();
    let plan = fleet.one_plan(&all);
    let count = |of: &str| plan[of].as_array().map_or(0, Vec::len);
    assert_eq!(count("sources") + count("targets"), devices);
    assert!(count("targets") > 0 && count("links") >= count("targets"));

    let statuses: Vec<_> = all.iter().filter_map(|&k| fleet.status(k)).collect();
    let sent: Vec<u64> =
        statuses.iter().filter_map(|status| status["traffic"]["sent"].as_u64()).collect();
    let memory = statuses.iter().filter_map(|status| status["most_memory"].as_u64()).max();
    assert_eq!(sent.len(), devices);
    println!(
        "{devices} processes: an epoch in {:.0} s; a device sent {:.1} MB in the mean and {:.1} MB at most, and had {:.0} MB of memory at most; {} links",
        took.as_secs_f64(),
        sent.iter().sum::<u64>() as f64 / devices as f64 / 1e6,
        sent.iter().max().copied().unwrap_or_default() as f64 / 1e6,
        memory.unwrap_or_default() as f64 / 1e6,
        count("links"),
    );
    sent
}

#[test]
fn a_hundred_devices_complete_an_epoch() {
    let settings = "data.samples=6000 partition.scale=0.03 training.model=mlp training.steps=100 \
                    divergence.features=16";
    let sent = sent_in_an_epoch("127.0.8.4", 100, settings);
    // Every pair of devices shares one connection and two sketches; a model goes to some.
    assert!(sent.iter().all(|&sent| sent < 20_000_000), "{sent:?}");
}

/// With all defaults but for the length of the training, so that models and means have their usual size.
#[test]
fn fifty_devices_with_defaults_send_two_megabytes_each_in_the_mean() {
    let settings = "data.samples=12000 partition.scale=0.1 training.steps=50 transfer.adapt=off";
    let sent = sent_in_an_epoch("127.0.8.43", 50, settings);
    let mean = sent.iter().sum::<u64>() / sent.len() as u64;
    assert!(mean <= 2_000_000, "{mean} bytes in the mean: {sent:?}");
}
