//! Devices on hosts of their own that get other addresses: one while it runs, and all at once while they are off.

use stlf_testing::{DEADLINE, wait_for};

use crate::common::hosts::Hosts;
use crate::common::machines::Machines;

const DEVICES: [&str; 3] = ["gate", "yard", "dock"];

/// Three devices that have joined, each on its host, and the number of the epoch that they have completed.
fn joined(hosts: &Hosts) -> (Machines, u64) {
    let mut machines = Machines::default();
    let on = |k: usize| ["ip", "netns", "exec", &hosts.host(k)].map(str::to_owned);
    for (machine, k) in [("owner", 1)].into_iter().chain(DEVICES.into_iter().zip(1..)) {
        machines.add(machine, machine == "gate");
        machines.start_by(machine, &on(k).each_ref().map(String::as_str));
    }
    machines.invite("stlf fleet invite harbour --devices 3 --listen 10.77.0.1:0", 3);
    for machine in DEVICES {
        let join = format!("stlf node join TICKET --name {machine} --data sensors.csv");
        machines.start(machine, &format!("{join} -c node.search=none --settle 0.5"));
    }
    assert!(machines.ends_well("owner"), "{}", machines.logs());
    let epoch = machines.all_complete(&DEVICES);
    (machines, epoch)
}

#[test]
fn a_device_whose_address_changes_while_it_runs_calls_the_others() {
    let Some(hosts) = Hosts::make("w", DEVICES.len()) else { return };
    let (machines, _) = joined(&hosts);
    // The others call it where it was, and nobody searches.
    hosts.readdress(1, 1, 101);
    let has = |file: &str, words: &str, times: usize| {
        let found = || (machines.text(file).matches(words).count() >= times).then_some(());
        wait_for(DEADLINE, found, || machines.logs());
    };
    has("gate/err", "listening on 10.77.0.101:", 1);
    for other in ["yard", "dock"] {
        has(&format!("{other}/err"), "gate is here", 2);
        has(&format!("{other}/node/addresses.json"), "10.77.0.101:", 1);
    }
}

#[test]
fn devices_that_all_come_back_elsewhere_find_each_other_on_the_local_network() {
    let Some(hosts) = Hosts::make("y", DEVICES.len()) else { return };
    let (mut machines, epoch) = joined(&hosts);
    for (machine, k) in DEVICES.into_iter().zip(1..) {
        machines.kill(machine);
        hosts.readdress(k, k, 100 + k);
    }
    for machine in DEVICES {
        machines.start(machine, "stlf node start -c node.search=lan --settle 0.5");
    }
    machines.all_complete_after(epoch, &DEVICES);
}
