//! Natural fleets, in small and made here; and the methods that they are compared by.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::Path;

use stlf_config::{Config, fleet};
use stlf_data::idx::Idx;
use stlf_data::partition::Scheme;
use stlf_lab::paper::{Artifact, Options, reproduce};
use stlf_lab::record::Row;
use stlf_lab::{Event, run};

fn go_on(_: Event) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// A table of devices that each lie a little elsewhere, with three classes.
fn write_table(path: &Path, head: &str, devices: usize, row: impl Fn(usize, usize) -> String) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut text = format!("{head},x,y\n");
    for device in 0..devices {
        for k in 0..24 {
            let (class, shift) = (k % 3, device as f64 / 5.0);
            let (x, y) = (shift + class as f64, (k * 7 % 5) as f64 / 4.0 - class as f64);
            writeln!(text, "{},{x},{y}", row(device, class)).unwrap();
        }
    }
    std::fs::write(path, text).unwrap();
}

/// A data folder with a fleet of people and one of months.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let natural = folder.path().join("natural");
    write_table(&natural.join("har/features-63.csv.gz"), "device,label,split", 6, |d, class| {
        format!("s{d},{},train", ["sit", "stand", "walk"][class])
    });
    write_table(&natural.join("gas-drift/gas-drift.csv.gz"), "batch,label", 6, |d, class| {
        format!("b0{},{class}", d + 1)
    });
    folder
}

type Record = BTreeMap<String, String>;

fn records(path: &Path) -> Vec<Record> {
    csv::Reader::from_path(path).unwrap().deserialize().collect::<Result<_, _>>().unwrap()
}

#[test]
fn fleets_are_read_from_their_files_and_every_number_follows_from_rows() {
    let (data, to) = (folder(), tempfile::tempdir().unwrap());
    let settings = ["har", "gas-drift"].map(str::to_owned).to_vec();
    let options = Options {
        data: Some(data.path().to_owned()),
        seeds: 3,
        quick: true,
        paper_faithful: false,
        settings,
    };
    let made = reproduce(Artifact::Natural, &options, to.path(), &|_, _, _| (), &go_on).unwrap();
    assert!(made.files.iter().all(|file| file.is_file()), "{:?}", made.files);
    let rows = records(&to.path().join("natural-rows.csv"));
    let entries = records(&to.path().join("natural.csv"));
    assert_eq!(entries.len(), 2 * 6);
    let number = |record: &Record, key: &str| record[key].parse::<f64>().unwrap();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    for entry in &entries {
        let of = |method: &str| -> BTreeMap<&str, Vec<f64>> {
            let mut by_seed: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
            for row in rows.iter().filter(|r| r["fleet"] == entry["fleet"] && r["method"] == method)
            {
                by_seed.entry(&row["seed"]).or_default().push(number(row, "accuracy"));
            }
            by_seed
        };
        let own = of(&entry["method"]);
        let means: Vec<f64> = own.values().map(|v| mean(v)).collect();
        assert_eq!(means.len(), 3);
        assert!((number(entry, "accuracy") - 100.0 * mean(&means)).abs() < 1e-9, "{entry:?}");
        let worst: Vec<f64> = own.values().map(|v| v.iter().copied().fold(1.0, f64::min)).collect();
        assert!((number(entry, "worst-device") - 100.0 * mean(&worst)).abs() < 1e-9);
        let averaged: Vec<f64> = of("fedavg").values().map(|v| mean(v)).collect();
        match entry["method"].as_str() {
            "fedavg" => assert_eq!(entry["difference"], ""),
            _ => {
                let difference = 100.0 * (mean(&means) - mean(&averaged));
                assert!((number(entry, "difference") - difference).abs() < 1e-9, "{entry:?}");
            }
        }
        assert_eq!(entry["energy"].is_empty(), entry["method"] == "pooled");
    }
    // The first four months have labels, whatever the draw; of people, others in every draw.
    let targets = |fleet: &str, seed: &str| -> Vec<String> {
        let own = rows.iter().filter(|r| r["fleet"] == fleet && r["seed"] == seed);
        own.filter(|r| r["method"] == "oracle").map(|r| r["target"].clone()).collect()
    };
    assert!(["0", "1", "2"].iter().all(|seed| targets("gas-drift", seed) == ["b05", "b06"]));
    assert_eq!(targets("har", "0").len(), 3);
    let draws: std::collections::BTreeSet<Vec<String>> =
        ["0", "1", "2"].iter().map(|seed| targets("har", seed)).collect();
    assert!(draws.len() > 1);
}

#[test]
fn fleets_without_files_are_named() {
    let (data, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let refused = |data: Option<&Path>, settings: &[&str]| {
        let options = Options {
            data: data.map(Path::to_owned),
            seeds: 1,
            quick: true,
            paper_faithful: false,
            settings: settings.iter().map(|&name| name.to_owned()).collect(),
        };
        let made = reproduce(Artifact::Natural, &options, to.path(), &|_, _, _| (), &go_on);
        let error = made.unwrap_err();
        assert!(error.hint().is_some(), "{error}");
        error.to_string()
    };
    assert_eq!(refused(None, &[]), "data: natural fleets are read from files");
    assert_eq!(refused(None, &["M"]), "settings: none of M is a natural fleet");
    assert!(refused(Some(data.path()), &[]).contains("features-63.csv.gz"));
    let missing = refused(Some(data.path()), &["writers"]);
    assert!(missing.contains("train-images-idx3-ubyte"), "{missing}");
}

#[test]
fn a_device_is_a_writer_of_digits() {
    let folder = tempfile::tempdir().unwrap();
    let images = 60;
    let pixels = Idx::new(vec![images, 28, 28], vec![7; 60 * 784]).unwrap();
    pixels.write_file(&folder.path().join("train-images-idx3-ubyte.gz")).unwrap();
    let labels = Idx::new(vec![images], (0..60).map(|i| i % 10).collect()).unwrap();
    labels.write_file(&folder.path().join("train-labels-idx1-ubyte.gz")).unwrap();
    let mut bytes = vec![0, 0, 0x0c, 2, 0, 0, 0, images as u8, 0, 0, 0, 8];
    for image in 0..60u8 {
        let numbers = [image % 10, 0, image / 12, 0, 0, 0, 0, 0];
        bytes.extend(numbers.iter().flat_map(|&n| [0, 0, 0, n]));
    }
    std::fs::write(folder.path().join("qmnist-train-labels-idx2-int"), bytes).unwrap();
    let at = format!("data.folder={}", folder.path().display());
    let changes = [at.as_str(), "data.domains=[\"mnist\"]", "data.writers=5"];
    let config = Config::default().with(changes).unwrap();
    let data = fleet::load(&config).unwrap();
    let scheme = config.scheme(&data);
    assert!(matches!(scheme, Scheme::ByDomain(_)), "{scheme:?}");
    let dealt = fleet::Fleet::deal(&data, &scheme, None, 1).unwrap();
    let sizes: Vec<(&str, usize)> =
        dealt.devices.iter().map(|d| (d.name.as_str(), d.samples())).collect();
    assert_eq!(sizes, [("w0", 12), ("w1", 12), ("w2", 12), ("w3", 12), ("w4", 12)]);
    let usps = config.with(["data.domains=[\"strokes\"]"]).unwrap();
    let error = fleet::load(&usps).unwrap_err().to_string();
    assert!(error.contains("writers: known for the training half of mnist"), "{error}");
}

/// Six devices of drawn digits with these labels, which some methods serve.
fn compared(labeled: &str, methods: &str, more: &[&str]) -> BTreeMap<String, Vec<Row>> {
    let folder = tempfile::tempdir().unwrap();
    let (labeled, methods) =
        (format!("partition.labeled={labeled}"), format!("compare.methods={methods}"));
    let changes = [
        "seeds=[4]",
        "data.samples=1200",
        "partition.kind=iid",
        "partition.devices=6",
        labeled.as_str(),
        "training.model=mlp",
        "training.steps=300",
        "planner.phi-e=0.02",
        methods.as_str(),
    ];
    let config = Config::default().with(changes.iter().chain(more).copied()).unwrap();
    let mut by_method: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for row in run(&config, folder.path(), &go_on).unwrap().rows {
        by_method.entry(row.method.clone()).or_default().push(row);
    }
    by_method
}

fn accuracies(rows: &[Row]) -> Vec<(&str, f64)> {
    rows.iter().map(|row| (row.target.as_str(), row.accuracy.unwrap())).collect()
}

fn total<N: std::iter::Sum>(rows: &[Row], value: impl Fn(&Row) -> N) -> N {
    rows.iter().map(value).sum()
}

#[test]
fn one_round_is_the_average_of_the_parameters_and_every_round_is_paid_for() {
    let rounds = |rounds: &str| {
        let methods = "[\"fedavg\",\"fedavg-rounds\"]";
        let more = [rounds, "planner.combine=parameters"];
        compared("[1,1,1,0,0,0]", methods, &more)
    };
    let (one, five) = (rounds("compare.rounds=1"), rounds("compare.rounds=5"));
    assert_eq!(accuracies(&one["fedavg-rounds"]), accuracies(&one["fedavg"]));
    assert_ne!(accuracies(&five["fedavg-rounds"]), accuracies(&one["fedavg"]));
    // Three sources: two send their models to the third and get the average back; each target gets one.
    let links = |rows: &[Row]| total(rows, |row| row.links);
    assert_eq!(links(&one["fedavg-rounds"]), 3 + 4);
    assert_eq!(links(&five["fedavg-rounds"]), 3 + 5 * 4);
    let joules = |rows: &[Row]| total(rows, |row| row.joules);
    let per_round = (joules(&five["fedavg-rounds"]) - joules(&one["fedavg-rounds"])) / 4.0;
    let to_targets = joules(&one["fedavg-rounds"]) - per_round;
    assert!(per_round > 0.0 && to_targets > 0.0);
    let bytes = |rows: &[Row]| total(rows, |row| row.bytes);
    assert_eq!(bytes(&one["fedavg-rounds"]) * 9, bytes(&one["fedavg"]) * 7);
}

#[test]
fn every_round_of_kd3a_is_paid_for_both_ways_and_its_target_learns() {
    let methods = "[\"fedavg\",\"kd3a\"]";
    let rounds = |rounds: &str| compared("[1,1,1,0,0,0]", methods, &[rounds]);
    let (two, four) = (rounds("compare.kd3a-rounds=2"), rounds("compare.kd3a-rounds=4"));
    for (rows, rounds) in [(&two["kd3a"], 2), (&four["kd3a"], 4)] {
        // Three sources send to each target and get the average back.
        assert!(rows.iter().all(|row| row.links == rounds * 2 * 3));
        assert!(rows.iter().all(|row| row.accuracy.unwrap() > 0.3), "{rows:?}");
    }
    let bytes = |rows: &[Row]| total(rows, |row| row.bytes);
    assert_eq!(bytes(&two["kd3a"]), 4 * bytes(&two["fedavg"]));
    let joules = |rows: &[Row]| total(rows, |row| row.joules);
    assert!((joules(&four["kd3a"]) / joules(&two["kd3a"]) - 2.0).abs() < 1e-9);
    assert_ne!(accuracies(&two["kd3a"]), accuracies(&four["kd3a"]));
    let none = Config::default().with(["compare.kd3a-rounds=0"]).unwrap_err();
    assert!(none.to_string().contains("compare.kd3a-rounds: must be at least 1"), "{none}");
}

#[test]
fn pooled_labels_of_one_source_give_its_own_model() {
    let methods = "[\"st-lf\",\"pooled\"]";
    let one = compared("[0,1,0,0,0,0]", methods, &[]);
    assert_eq!(accuracies(&one["pooled"]), accuracies(&one["st-lf"]));
    let three = compared("[1,1,1,0,0,0]", methods, &[]);
    let mean = |rows: &[Row]| total(rows, |row| row.accuracy.unwrap()) / rows.len() as f64;
    assert!(mean(&three["pooled"]) > mean(&three["st-lf"]));
    let sent = |row: &Row| row.links as f64 + row.joules + row.bytes as f64;
    assert_eq!(total(&three["pooled"], sent), 0.0);
}

#[test]
fn no_single_link_beats_the_best_by_hindsight() {
    let made = compared("[1,1,1,0,0,0]", "[\"sm\",\"oracle\"]", &[]);
    for (best, any) in accuracies(&made["oracle"]).iter().zip(accuracies(&made["sm"])) {
        assert!(best.0 == any.0 && best.1 >= any.1, "{best:?} {any:?}");
    }
}
