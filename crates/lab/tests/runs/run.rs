//! A run that is stopped anywhere and started again ends like one that was not.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use stlf_config::Config;
use stlf_lab::{Error, Event, Shard, Stage, compare, merge, reach, run, run_shard};
use stlf_method::method::Method;

/// Small enough to run dozens of times.
fn small() -> Config {
    let changes = [
        "seeds=[3,4]",
        "data.samples=3000",
        "partition.devices=4",
        "partition.scale=0.03",
        "training.model=mlp",
        "training.steps=30",
        "training.warm-up-rounds=1",
        "training.warm-up-steps=10",
    ];
    Config::default().with(changes).unwrap()
}

/// Returns every file of a folder, and of those inside, with its bytes.
pub(crate) fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(path) = waiting.pop() {
        for entry in std::fs::read_dir(&path).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
                found.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

#[test]
fn stopped_anywhere_it_ends_the_same() {
    let config = small();
    let events = AtomicUsize::new(0);
    let whole = tempfile::tempdir().unwrap();
    let rows = run(&config, whole.path(), &|_| {
        events.fetch_add(1, Ordering::Relaxed);
        ControlFlow::Continue(())
    })
    .unwrap();
    let expected = contents(whole.path());
    for file in ["config.toml", "manifest.json", "results.csv", "results.jsonl", "events.jsonl"] {
        assert!(expected.contains_key(file), "{file}");
    }
    for file in ["training.csv", "divergence.csv", "problem.json", "plan.json", "links.csv"] {
        assert!(expected.contains_key(&format!("seed-3/{file}")), "{file}");
    }
    assert!(rows.rows.iter().any(|row| row.method == "st-lf" && row.accuracy.is_some()));
    assert_eq!(rows.measuring.len(), 2 * 4);
    // Every method uses what came of the warm-up, and its total has what that sent, once: a model to the device that averages, and one back.
    let trains = |seed: u64| {
        let table = &expected[&format!("seed-{seed}/training.csv")];
        let rows = csv::Reader::from_reader(&table[..]).into_records();
        rows.filter(|row| row.as_ref().unwrap()[1].parse::<usize>().unwrap() > 0).count() as u64
    };
    let model = rows.rows.iter().find(|row| row.links > 0).map(|row| row.bytes / row.links as u64);
    let mut sent: BTreeMap<(u64, &str), u64> = BTreeMap::new();
    for row in &rows.rows {
        *sent.entry((row.seed, &row.method)).or_default() += row.warm_up_bytes;
    }
    for ((seed, method), bytes) in sent {
        assert_eq!(bytes, 2 * (trains(seed) - 1) * model.unwrap(), "{method}");
    }
    // What the targets made of their samples is there for every one of them.
    let targets = rows.rows.iter().filter(|row| row.seed == 3 && row.method == "st-lf");
    for row in targets {
        let predicted = &expected[&format!("seed-3/targets/{}.csv", row.target)];
        let lines = predicted.iter().filter(|&&byte| byte == b'\n').count();
        assert_eq!(lines, row.samples + 1);
    }

    let all = events.load(Ordering::Relaxed);
    for stop in (0..all).step_by(3) {
        let folder = tempfile::tempdir().unwrap();
        let seen = AtomicUsize::new(0);
        let stopped =
            run(&config, folder.path(), &|_| match seen.fetch_add(1, Ordering::Relaxed) >= stop {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            });
        assert!(matches!(stopped, Err(Error::Stopped)), "{stop}");
        assert!(!folder.path().join("manifest.json").exists());
        let again = run(&config, folder.path(), &|_| ControlFlow::Continue(())).unwrap();
        assert_eq!(again, rows);
        assert_eq!(contents(folder.path()), expected, "stopped after {stop} events");
    }
}

#[test]
fn threads_change_nothing() {
    let results = |config: &Config, threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        pool.install(|| run(config, folder.path(), &|_| ControlFlow::Continue(()))).unwrap();
        contents(folder.path())
    };
    let (plain, varied) = (small(), small().with(["training.augment=both"]).unwrap());
    let [plain, varied] = [plain, varied].map(|config| {
        let alone = results(&config, 1);
        assert_eq!(alone, results(&config, 3));
        alone
    });
    // The warm-up sees random views too.
    for model in ["warm-up", "d1"] {
        let model = format!("seed-3/models/{model}.safetensors");
        assert!(plain[&model] != varied[&model], "{model}");
    }
}

#[test]
fn shards_in_folders_of_their_own_merge_to_the_same() {
    let config = small();
    let go_on = |_| ControlFlow::Continue(());
    let whole = tempfile::tempdir().unwrap();
    run(&config, whole.path(), &go_on).unwrap();
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    for (folder, shard) in folders.iter().zip(["1/2", "2/2"]) {
        run_shard(&config, folder.path(), shard.parse().unwrap(), &go_on).unwrap();
        assert!(!folder.path().join("manifest.json").exists());
    }
    let joined = tempfile::tempdir().unwrap();
    let parts = folders.each_ref().map(|f| f.path());
    assert_eq!(merge(&parts, joined.path()).unwrap(), config);
    run(&config, joined.path(), &go_on).unwrap();
    assert_eq!(contents(joined.path()), contents(whole.path()));

    let other = small().with(["training.steps=31"]).unwrap();
    let stranger = tempfile::tempdir().unwrap();
    assert!(run(&other, stranger.path(), &|_| ControlFlow::Break(())).is_err());
    let error = merge(&[parts[0], stranger.path()], joined.path()).unwrap_err();
    assert!(error.to_string().contains("another configuration"), "{error}");
    for wrong in ["0/2", "3/2", "1", "a/b"] {
        assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
    }
}

#[test]
fn more_shards_than_seeds_divide_devices_and_pairs() {
    let classifier = ["divergence.estimator=classifier", "divergence.rounds=2"];
    let nearest = ["divergence.estimator=sketch", "divergence.nearest=1"];
    let means = ["divergence.features=32", "training.warm-up-rounds=0"];
    for changes in [classifier, nearest, means] {
        let config = small().with(changes).unwrap();
        let go_on = |_| ControlFlow::Continue(());
        let whole = tempfile::tempdir().unwrap();
        run(&config, whole.path(), &go_on).unwrap();
        let folders: Vec<_> = (1..=5).map(|_| tempfile::tempdir().unwrap()).collect();
        for (folder, number) in folders.iter().zip(1..) {
            // Twice, as an impatient scheduler does.
            for _ in 0..2 {
                run_shard(&config, folder.path(), Shard { number, of: 5 }, &go_on).unwrap();
            }
        }
        let joined = tempfile::tempdir().unwrap();
        let parts: Vec<&Path> = folders.iter().map(|f| f.path()).collect();
        merge(&parts, joined.path()).unwrap();
        let measured = AtomicUsize::new(0);
        let count = |event: Event| {
            if matches!(event.stage, Stage::Measure) {
                measured.fetch_add(1, Ordering::Relaxed);
            }
            ControlFlow::Continue(())
        };
        run(&config, joined.path(), &count).unwrap();
        assert_eq!(measured.load(Ordering::Relaxed), 0, "all pairs were there");
        assert_eq!(contents(joined.path()), contents(whole.path()));
    }
}

#[test]
fn stages_alone_leave_what_the_whole_run_goes_on_from() {
    let config = small();
    let go_on = |_| ControlFlow::Continue(());
    let whole = tempfile::tempdir().unwrap();
    let expected = run(&config, whole.path(), &go_on).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let has = |file: &str| folder.path().join("seed-3").join(file).exists();
    let measured = reach(&config, folder.path(), Stage::Measure, &go_on).unwrap();
    assert_eq!(measured.measuring, expected.measuring);
    assert!(has("divergence.csv") && !has("training.csv") && measured.rows.is_empty());
    reach(&config, folder.path(), Stage::Plan, &go_on).unwrap();
    assert!(has("plan.json") && !has("results"));
    let transferred = reach(&config, folder.path(), Stage::Transfer, &go_on).unwrap();
    assert!(has("results/st-lf.csv") && !has("results/sm.csv"));
    assert!(transferred.rows.iter().all(|row| expected.rows.contains(row)));
    let two = compare(&config, folder.path(), &[Method::Sm, Method::Oracle], &go_on).unwrap();
    assert!(two.rows.iter().all(|row| expected.rows.contains(row)));
    assert!(!has("results/fedavg.csv"));
    run(&config, folder.path(), &go_on).unwrap();
    assert_eq!(contents(folder.path()), contents(whole.path()));
}

#[test]
fn fada_tells_how_far_it_is_and_can_be_stopped() {
    let changes =
        ["compare.methods=[\"fada\"]", "compare.fada.steps=3", "seeds=[3]", "partition.devices=6"];
    let config = small().with(changes).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let stop = |event: Event| match event.stage {
        Stage::Adapt => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    assert!(matches!(run(&config, folder.path(), &stop), Err(Error::Stopped)));
    let last = AtomicUsize::new(0);
    let outcome = run(&config, folder.path(), &|event: Event| {
        if event.stage == Stage::Adapt && event.done == event.total {
            last.fetch_add(1, Ordering::Relaxed);
        }
        ControlFlow::Continue(())
    });
    assert_eq!(last.load(Ordering::Relaxed), 1);
    assert!(outcome.unwrap().rows.iter().all(|row| row.accuracy.is_some()));
}

#[test]
fn averaged_parameters_are_kept_as_a_model() {
    let config = small().with(["planner.combine=parameters", "seeds=[3]"]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let outcome = run(&config, folder.path(), &|_| ControlFlow::Continue(())).unwrap();
    let ours = outcome.rows.iter().find(|row| row.method == "st-lf").unwrap();
    let model = folder.path().join(format!("seed-3/targets/{}.safetensors", ours.target));
    assert!(model.exists());
}

/// Shares of classes taken out at sources and put in at targets: other predictions of the same models, links and joules.
#[test]
fn shares_of_classes_change_predictions_and_nothing_else() {
    let outcome = |change: &str| {
        let config = small().with([change, "seeds=[3]"]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let rows = run(&config, folder.path(), &|_| ControlFlow::Continue(())).unwrap().rows;
        let model = std::fs::read(folder.path().join("seed-3/models/d1.safetensors")).unwrap();
        (rows, model)
    };
    let (plain, kept) = outcome("training.balanced=false");
    for change in ["training.balanced=true", "planner.combine=corrected"] {
        let (changed, same) = outcome(change);
        assert!(kept == same, "a source keeps its own model as it was trained");
        assert_eq!(plain.len(), changed.len());
        for (p, c) in plain.iter().zip(&changed).filter(|(p, _)| p.method != "oracle") {
            assert_eq!((&p.method, &p.target, p.links), (&c.method, &c.target, c.links));
            assert!(p.joules.total_cmp(&c.joules).is_eq());
        }
        assert!(plain.iter().zip(&changed).any(|(p, c)| p.accuracy != c.accuracy), "{change}");
    }
    let both = ["training.balanced=false", "planner.combine=corrected"];
    let refused = small().with(both).unwrap_err();
    assert!(refused.to_string().contains("planner.combine: corrected requires"), "{refused}");
    assert!(refused.hint().is_some());
}

#[test]
fn a_folder_is_free_again_if_its_run_failed_before_anything_was_kept() {
    let folder = tempfile::tempdir().unwrap();
    let go_on = |_| ControlFlow::Continue(());
    let wrong = small().with(["data.features=no-such-table.csv", "training.model=mlp"]).unwrap();
    assert!(run(&wrong, folder.path(), &go_on).is_err());
    run(&small(), folder.path(), &go_on).unwrap();
    // What is kept stays with its configuration.
    assert!(run(&wrong, folder.path(), &go_on).unwrap_err().to_string().contains("another"));
}

#[test]
fn another_configuration_needs_another_folder() {
    let folder = tempfile::tempdir().unwrap();
    let stop = |_| ControlFlow::Break(());
    assert!(matches!(run(&small(), folder.path(), &stop), Err(Error::Stopped)));
    let other = small().with(["training.steps=31"]).unwrap();
    let error = run(&other, folder.path(), &stop).unwrap_err();
    assert!(error.to_string().ends_with("this folder holds a run of another configuration"));
    assert!(error.hint().is_some());
}

#[test]
fn a_broken_file_is_named_with_the_remedy() {
    let config = small();
    let folder = tempfile::tempdir().unwrap();
    run(&config, folder.path(), &|_| ControlFlow::Continue(())).unwrap();
    let broken = folder.path().join("seed-3").join("divergence.csv");
    std::fs::write(&broken, "from,to,divergence,low,high,signal\nd1,d9,1,1,1,true\n").unwrap();
    let error = run(&config, folder.path(), &|_| ControlFlow::Continue(())).unwrap_err();
    assert!(error.to_string().ends_with("there is no device d9"), "{error}");
    std::fs::remove_file(&broken).unwrap();
    run(&config, folder.path(), &|_| ControlFlow::Continue(())).unwrap();
}
