//! What the user sees of data sets: how they are dealt, and what happens without a network.

use crate::common::{run, settings, stlf};
use serde_json::Value;

#[test]
fn the_table_shows_devices_by_classes() {
    let ran = run(&["data", "inspect"], "");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    insta::assert_snapshot!("inspect-paper", ran.out);
    let domains = "strokes,strokes-coarse";
    let split = "arrangement=split classes-per-device=all scale=0.1";
    let ran = run(&["data", "inspect", "--domains", domains, "-c", split], "");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    insta::assert_snapshot!("inspect-split", ran.out);
}

#[test]
fn every_partitioner_can_be_inspected() {
    for kind in ["iid", "dirichlet", "shard", "pathological", "by-domain"] {
        let args = ["data", "inspect", "--samples", "500", "--partition", kind];
        let args =
            [&args[..], &["--labeled", "0.5", "--devices", "5", "--format", "json"]].concat();
        let ran = run(&args, "");
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{kind}");
        let deal: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(
            (&deal["format"], &deal["scheme"]["kind"]),
            (&"stlf-deal/1".into(), &kind.into())
        );
        let devices = deal["devices"].as_array().unwrap();
        assert_eq!(devices.len(), 5);
        for device in devices {
            let count = |key: &str| device[key].as_u64().unwrap();
            let sum = |key: &str| -> u64 {
                device[key].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum()
            };
            assert_eq!(sum("labeled_by_class"), count("labeled"));
            assert_eq!(sum("hidden_by_class"), count("unlabeled"));
            assert_eq!(sum("by_domain"), count("labeled") + count("unlabeled"));
            assert!(count("labeled").abs_diff(count("unlabeled")) <= 1, "half keep their labels");
        }
    }
}

#[test]
fn the_plot_is_written_whole() {
    let folder = tempfile::tempdir().unwrap();
    let plot = folder.path().join("devices.svg");
    let args = ["data", "inspect", "--samples", "300", "--partition", "shard", "--devices", "4"];
    let args = [&args[..], &["--labeled", "1,0.5,0,0", "--plot", plot.to_str().unwrap()]].concat();
    assert_eq!(run(&args, "").code, 0);
    insta::assert_snapshot!("inspect-svg", std::fs::read_to_string(&plot).unwrap());
}

#[test]
fn bad_settings_are_told_apart() {
    let cases: &[&[&str]] = &[
        &["-c", "alhpa=1"],
        &["-c", "alpha=0"],
        &["-c", "classes-per-device=11"],
        &["-c", "arrangement=split"],
        &["--partition", "iid", "--devices", "100"],
        &["--partition", "iid", "--labeled", "1,0"],
        &["--partition", "dirichlet", "-c", "min-partition-size=20"],
        &["--partition", "pathological", "-c", "classes-per-device=two"],
        &["--labeled", "0.5"],
    ];
    let mut text = String::new();
    for case in cases {
        let args = [&["data", "inspect", "--samples", "60"], *case].concat();
        let ran = run(&args, "");
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{case:?}");
        text += &format!("{}\n{}\n", case.join(" "), ran.err);
    }
    insta::assert_snapshot!("inspect-refused", text);
}

#[test]
fn every_verb_of_data_has_help_with_examples() {
    for verb in ["fetch", "inspect", "build-mnist-m"] {
        let ran = run(&["data", verb, "--help"], "");
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.out.contains("Examples:\n  stlf data "), "{verb}:\n{}", ran.out);
    }
    insta::assert_snapshot!("inspect-help", run(&["data", "inspect", "--help"], "").out);
}

#[test]
fn tables_and_pictures_of_ones_own_are_dealt() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("sensors.csv");
    let mut rows = "activity,device,x,y\n".to_owned();
    for k in 0..60 {
        let activity = ["walk", "run", ""][k % 3];
        rows += &format!("{activity},{},{k},{}\n", ["phone", "watch"][k % 2], k * k);
    }
    std::fs::write(&table, rows).unwrap();
    let args = ["data", "inspect", "--features", table.to_str().unwrap(), "--label", "activity"];
    let ran = run(&[&args[..], &["--partition", "by-domain", "--labeled", "0.5"]].concat(), "");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    insta::assert_snapshot!("inspect-features", ran.out);
    // The column says who holds what, unless the user does.
    let own = run(&args, "").out;
    assert!(own.contains("by-domain partition, seed 1: 2 devices"), "{own}");
    assert!(own.contains("The column device says which device holds which sample"), "{own}");
    let ran = run(&[&args[..], &["--partition", "iid"]].concat(), "");
    assert!(ran.out.contains("iid partition, seed 1: 10 devices"), "{}", ran.out);
    assert!(!ran.out.contains("The column"), "{}", ran.out);
    // Without such a column rows are dealt at random, in a run too, and that is said.
    let alone = folder.path().join("alone.csv");
    let rows: String = (0..60).map(|k| format!("{},{k},{}\n", k % 2, k % 7)).collect();
    std::fs::write(&alone, format!("label,x,y\n{rows}")).unwrap();
    let told = "No column says which device holds which sample, so they are dealt at random to 3 devices, about half of which hide their labels";
    let ran = run(&["data", "inspect", "--features", alone.to_str().unwrap()], "");
    assert!(ran.out.contains("iid partition, seed 1: 3 devices, 2 with labels"), "{}", ran.out);
    assert!(ran.out.contains(&format!("{told}; --partition deals")), "{}", ran.out);
    let settings = format!(
        "seeds=[1] data.features={} training.model=mlp training.steps=20 divergence.features=16",
        alone.display()
    );
    let to = folder.path().join("run");
    let ran = run(&["run", "-c", &settings, "--to", to.to_str().unwrap()], "");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.contains(&format!("{told}; another partition.kind deals")), "{}", ran.out);

    let pictures = folder.path().join("pictures");
    // A black PNG of one pixel.
    let png: [u8; 67] = [
        137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 1, 0, 0, 0, 1, 8, 0,
        0, 0, 0, 58, 126, 155, 85, 0, 0, 0, 10, 73, 68, 65, 84, 120, 156, 99, 96, 0, 0, 0, 2, 0, 1,
        72, 175, 164, 113, 0, 0, 0, 0, 73, 69, 78, 68, 174, 66, 96, 130,
    ];
    for place in ["day/cat", "day/dog", "night/dog"] {
        std::fs::create_dir_all(pictures.join(place)).unwrap();
        std::fs::write(pictures.join(place).join("1.png"), png).unwrap();
    }
    let args = ["data", "inspect", "--images", pictures.to_str().unwrap()];
    let ran = run(&[&args[..], &["--partition", "by-domain"]].concat(), "");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.contains("day and night: 3 samples of 1×1×1, 2 classes"), "{}", ran.out);
    let rooms = folder.path().join("rooms");
    let ran = run(&["new", rooms.to_str().unwrap(), "--images", pictures.to_str().unwrap()], "");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(
        ran.out.starts_with("Each folder is a device: 2 devices, 2 with labels; half"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("Pictures are resized to 28 × 28"), "{}", ran.out);
    let written = std::fs::read_to_string(rooms.with_extension("toml")).unwrap();
    assert!(written.contains("\nimage-size = 28 "), "{written}");
    let none = folder.path().join("none").join("rooms");
    let ran = run(&["new", none.to_str().unwrap()], "");
    assert_eq!(ran.code, 2);
    assert!(ran.err.starts_with("error: there is no folder "), "{}", ran.err);
    let both = ["--features", "x.csv", "--domains", "usps"];
    assert_eq!(run(&[&args[..], &both].concat(), "").code, 2);
}

#[test]
fn the_commands_in_the_docs_run() {
    let page = include_str!("../../../../docs/partitions.md");
    let commands: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("    stlf ")).collect();
    for kind in ["paper", "iid", "dirichlet", "shard", "pathological", "by-domain"] {
        assert!(page.contains(&format!("\n## `{kind}`\n")), "{kind} is described");
    }
    assert_eq!(commands.len(), 9);
    for command in commands {
        // Quotes hold one argument together.
        let parts = command.split('"').enumerate();
        let args: Vec<&str> = parts
            .flat_map(|(k, part)| match k % 2 {
                0 => part.split_whitespace().collect::<Vec<_>>(),
                _ => vec![part],
            })
            .collect();
        // With fewer digits than in the page, to save time.
        let fewer: &[&str] = match command.contains("--partition") {
            true => &["--samples", "2000"],
            false => &["--samples", "4000", "-c", "scale=0.1"],
        };
        let ran = run(&[&args[..], fewer].concat(), "");
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{command}");
    }
}

#[test]
fn missing_files_say_how_to_get_them() {
    let folder = tempfile::tempdir().unwrap();
    let args =
        ["data", "inspect", "--domains", "mnist", "--folder", folder.path().to_str().unwrap()];
    let ran = run(&args, "");
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("stlf data fetch mnist"), "{}", ran.err);
}

#[test]
fn files_that_are_there_are_not_fetched_again() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"];
    for name in names {
        std::fs::write(folder.path().join(format!("{name}-ubyte.gz")), "mine").unwrap();
    }
    let to = folder.path().to_str().unwrap();
    let ran = run(&["data", "fetch", "mnist", "--to", to, "--mirror", "http://127.0.0.1:1"], "");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert_eq!(ran.out, format!("mnist was already there, in {to}\n"));
}

#[test]
fn without_a_network_every_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mirror = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let mut settings = settings();
    settings.add_filter(r"\(os error \d+\)", "(os error)");
    settings.add_filter(r"127\.0\.0\.1:\d+", "[mirror]");
    settings.add_filter(&regex_of(folder.path().to_str().unwrap()), "[dir]");
    settings.bind(|| {
        for set in ["mnist", "mnist-m"] {
            let mut command = stlf();
            for proxy in ["http_proxy", "https_proxy", "all_proxy"] {
                command.env_remove(proxy).env_remove(proxy.to_uppercase());
            }
            command
                .args(["data", "fetch", set, "--mirror", &mirror])
                .arg("--to")
                .arg(folder.path());
            let ran = crate::common::Ran::from(command.output().unwrap());
            assert_eq!((ran.code, ran.out.as_str()), (1, ""));
            insta::assert_snapshot!(format!("offline-{set}"), ran.err);
        }
    });
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// A pattern for exactly this text.
fn regex_of(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_alphanumeric() { c.to_string() } else { format!("\\{c}") })
        .collect()
}
