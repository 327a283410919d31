//! A run that is stopped anywhere and started again ends like one that was not.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use stlf_lab::{Config, Error, Shard, merge, run, run_shard};

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

/// Every file with its bytes.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
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
    assert!(rows.iter().any(|row| row.method == "st-lf" && row.accuracy.is_some()));

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
    let config = small();
    let results: Vec<_> = [1, 3]
        .map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let folder = tempfile::tempdir().unwrap();
            pool.install(|| run(&config, folder.path(), &|_| ControlFlow::Continue(()))).unwrap();
            contents(folder.path())
        })
        .into();
    assert_eq!(results[0], results[1]);
}

#[test]
fn shards_in_folders_of_their_own_merge_to_the_same() {
    let config = small();
    let go_on = |_| ControlFlow::Continue(());
    let whole = tempfile::tempdir().unwrap();
    run(&config, whole.path(), &go_on).unwrap();
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    for (folder, shard) in folders.iter().zip(["1/2", "2/2"]) {
        let rows = run_shard(&config, folder.path(), shard.parse().unwrap(), &go_on).unwrap();
        assert!(!rows.is_empty() && !folder.path().join("manifest.json").exists());
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
