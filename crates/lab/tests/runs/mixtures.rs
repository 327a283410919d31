//! Bundles of a run: every device has one, and a target's gives the bytes of its predictions.

use std::ops::ControlFlow;
use std::path::Path;

use stlf_bundle::folder::{find, read};
use stlf_bundle::predictions::{Columns, csv};
use stlf_bundle::{Mixture, Samples};
use stlf_config::Config;
use stlf_config::fleet::{Fleet, load};
use stlf_data::atomic_folder::Folder;
use stlf_lab::run;
use stlf_method::predictions::PredictionRow;
use stlf_planning::Role;

fn ran(changes: &[&str], to: &Path) -> Config {
    let config = Config::default().with(changes.iter().copied()).unwrap();
    run(&config, to, &|_| ControlFlow::Continue(())).unwrap();
    config
}

/// Four devices, each with units of its own; the class follows from which of two numbers is the larger. Rows of devices stand mixed.
pub(crate) fn table() -> String {
    let mut rows = "device,label,x,y\n".to_owned();
    for k in 0..400 {
        let (x, y) = (((k * 37) % 101) as f64, ((k * 53) % 103) as f64);
        let label = if x > y { "calm" } else { "storm" };
        let unit = [1.0, 10.0, 1.5, 7.0][k % 4];
        rows += &format!("d{},{label},{},{}\n", k % 4, x * unit + 3.0, y * unit);
    }
    rows
}

/// The lines of a table of predictions that are about these samples.
fn lines_of(table: &str, is_own: impl Fn(usize) -> bool) -> String {
    let own = |(at, line): (usize, &str)| (at == 0 || is_own(at - 1)).then(|| format!("{line}\n"));
    table.lines().enumerate().filter_map(own).collect()
}

#[test]
fn every_scale_and_way_to_combine_gives_the_bytes_of_the_targets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    std::fs::write(&path, table()).unwrap();
    let features = format!("data.features={}", path.display());
    for (scale, combine) in [
        ("fleet", "predictions"),
        ("own", "corrected"),
        ("both", "predictions"),
        ("none", "parameters"),
    ] {
        let to = folder.path().join(scale);
        let changes = [
            &features,
            &format!("data.standardise={scale}"),
            &format!("planner.combine={combine}"),
            "seeds=[3]",
            "partition.kind=by-domain",
            "partition.labeled=[1, 0.8, 0, 0]",
            "training.model=mlp",
            "training.steps=200",
            "divergence.features=16",
            "compare.methods=[\"st-lf\"]",
        ];
        ran(&changes, &to);
        let mut targets = 0;
        for (at, name) in ["d0", "d1", "d2", "d3"].into_iter().enumerate() {
            let mixture = read(&find(&to, Some(name), None).unwrap()).unwrap();
            let samples = Samples::read(&mixture, &path).unwrap();
            let predictions = mixture.predict(&samples.inputs).unwrap();
            let got = csv(&mixture.classes, &predictions, Columns::default()).unwrap();
            let Ok(expected) =
                std::fs::read_to_string(to.join(format!("seed-3/targets/{name}.csv")))
            else {
                assert_eq!((mixture.role, mixture.members.len()), (Role::Source, 1));
                continue;
            };
            let own = lines_of(&String::from_utf8(got).unwrap(), |sample| sample % 4 == at);
            assert_eq!(own, expected, "{scale} {combine} {name}");
            assert_eq!((mixture.role, mixture.seed, mixture.epoch), (Role::Target, Some(3), None));
            targets += 1;
        }
        assert!(targets >= 2);
        let plan = std::fs::read(to.join("seed-3/mixtures/d2/plan.json")).unwrap();
        assert_eq!(plan, std::fs::read(to.join("seed-3/plan.json")).unwrap());
    }
}

#[test]
fn students_and_models_that_were_handed_on_are_in_the_bundles() {
    let common = [
        "seeds=[3]",
        "data.samples=3000",
        "partition.scale=0.4",
        "partition.disjoint=false",
        "training.model=mlp",
        "training.steps=60",
        "compare.methods=[\"st-lf\"]",
    ];
    let students = ["partition.devices=4", "transfer.adapt=always", "planner.handovers=false"];
    let alike = ["partition.devices=10", "partition.classes-per-device=all", "transfer.adapt=off"];
    for (more, has_student) in [(&students[..], true), (&alike[..], false)] {
        let inside = tempfile::tempdir().unwrap();
        let config = ran(&[&common, more].concat(), inside.path());
        assert_eq!(inside.path().join("seed-3/relayed").exists(), !has_student);
        let data = load(&config).unwrap();
        let fleet = Fleet::deal(&data, &config.scheme(&data), None, 3).unwrap();
        let targets = Folder::open(&inside.path().join("seed-3/targets")).unwrap();
        let mut seen = 0;
        for device in &fleet.devices {
            let file = format!("{}.csv", device.name);
            let Some(expected) = targets.read_csv::<PredictionRow>(&file).unwrap() else {
                continue;
            };
            let mixture: Mixture =
                read(&find(inside.path(), Some(&device.name), None).unwrap()).unwrap();
            assert_eq!(mixture.student.is_some(), has_student);
            let predictions = mixture.predict(&device.inputs).unwrap();
            let got = PredictionRow::all(&predictions, &device.places, data.classes());
            assert_eq!(got, expected, "{}", device.name);
            seen += 1;
        }
        assert!(seen > 0);
    }
}
