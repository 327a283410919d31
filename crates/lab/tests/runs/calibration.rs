//! Devices whose data can be told apart, although a model of one is right at all others.

use std::ops::ControlFlow;

use stlf_config::Config;
use stlf_lab::record::Row;
use stlf_lab::{Outcome, run};

/// So many devices: the class follows from which of two numbers is the larger, and a third number is the device's own.
fn table(devices: usize) -> String {
    let mut rows = "device,label,x,y,z\n".to_owned();
    for device in 0..devices {
        for k in 0..80 {
            let (x, y) = (((k * 37 + device * 5) % 101) as f64, ((k * 53) % 103) as f64);
            let label = if x > y { "calm" } else { "storm" };
            rows += &format!("d{device:02},{label},{x},{y},{}\n", device * 10 + k % 3);
        }
    }
    rows
}

#[test]
fn divergences_count_what_sources_found_and_a_third_of_all_links_is_enough() {
    let folder = tempfile::tempdir().unwrap();
    let outcome = |name: &str, devices: usize, more: &[&str]| -> Outcome {
        let path = folder.path().join(format!("{devices}.csv"));
        std::fs::write(&path, table(devices)).unwrap();
        let changes = [
            &format!("data.features={}", path.display()),
            "data.standardise=fleet",
            "seeds=[3]",
            "partition.kind=by-domain",
            "partition.labeled={devices=0.5}",
            "training.model=mlp",
            "training.steps=100",
            "divergence.features=8",
            "divergence.privacy=none",
            "compare.methods=[\"st-lf\"]",
        ];
        let config = Config::default().with(changes).unwrap().with(more.iter().copied()).unwrap();
        run(&config, &folder.path().join(name), &|_| ControlFlow::Continue(())).unwrap()
    };
    let measured = outcome("measured", 24, &[]);
    let [calibrated] = measured.calibrated[..] else { panic!("{:?}", measured.calibrated) };
    assert!((0.05..0.5).contains(&calibrated.share), "{calibrated:?}");
    assert!(calibrated.energy <= 0.05, "{calibrated:?}");
    let sum = |of: fn(&Row) -> f64| measured.rows.iter().map(of).sum::<f64>();
    let (total, all) = (sum(|row| row.joules + row.measuring_joules), sum(|row| row.all_joules));
    // Trials, which go along with models, are counted later.
    assert!(calibrated.energy == 0.05 || total <= 1.01 * all / 3.0, "{total} of {all}");

    // A ring of few sources costs more than a third of their links.
    assert_eq!(outcome("few", 10, &[]).calibrated, []);
    // Who has set them keeps them.
    assert_eq!(outcome("in-full", 24, &["planner.calibration=1.0"]).calibrated, []);
    let weighed = outcome("weighed", 24, &["planner.phi-e=0.07"]);
    let [weighed] = weighed.calibrated[..] else { panic!("{:?}", weighed.calibrated) };
    assert_eq!((weighed.share, weighed.energy), (calibrated.share, 0.07));
    assert_eq!(outcome("as-published", 24, &["planner.bound=paper"]).calibrated, []);
}
