//! Students of targets: kept, judged, used or not, and the same after a stop.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use stlf_config::Config;
use stlf_lab::record::{ComputingRow, GuardRow, Row, StudentRow};
use stlf_lab::{Error, Event, Outcome, run};

use crate::run::contents;

fn config(changes: &[&str]) -> Config {
    let small = [
        "seeds=[3]",
        "data.samples=3000",
        "partition.devices=4",
        "partition.scale=0.4",
        "partition.disjoint=false",
        "training.model=mlp",
        "training.steps=60",
        "planner.handovers=false",
        "compare.methods=[\"st-lf\", \"fedavg\"]",
        "compare.students=[\"st-lf\", \"fedavg\"]",
        "energy.gflop-per-joule=10.0",
        "transfer.adapt=guarded",
    ];
    Config::default().with(small.iter().chain(changes).copied()).unwrap()
}

fn go_on(_: Event) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn in_folder(config: &Config, look: impl FnOnce(&Path, Outcome)) {
    let folder = tempfile::tempdir().unwrap();
    let outcome = run(config, folder.path(), &go_on).unwrap();
    look(folder.path(), outcome);
}

fn read<R: serde::de::DeserializeOwned>(path: &Path) -> Vec<R> {
    csv::Reader::from_path(path).unwrap().deserialize().collect::<Result<_, _>>().unwrap()
}

/// What each target of a method ended with.
fn accuracies(rows: &[Row], method: &str) -> BTreeMap<String, Option<f64>> {
    let own = rows.iter().filter(|row| row.method == method);
    own.map(|row| (row.target.clone(), row.accuracy)).collect()
}

#[test]
fn targets_of_every_method_named_end_with_their_students_or_their_mixtures() {
    in_folder(&config(&[]), |guarded_folder, guarded| {
        in_folder(&config(&["transfer.adapt=always"]), |_, always| {
            in_folder(&config(&["transfer.adapt=off"]), |off_folder, off| {
                assert!(!off_folder.join("seed-3/students").exists() && off.students.is_empty());
                for method in ["st-lf", "fedavg"] {
                    let own = |outcome: &Outcome| -> Vec<StudentRow> {
                        let rows = outcome.students.iter().filter(|row| row.method == method);
                        rows.cloned().collect()
                    };
                    assert!(own(&guarded).iter().all(|row| row.tried && row.used == row.accepted));
                    for (guarded_row, always_row) in own(&guarded).iter().zip(own(&always)) {
                        let target = &guarded_row.target;
                        let of = |outcome: &Outcome| accuracies(&outcome.rows, method)[target];
                        assert!(always_row.used);
                        assert_eq!(of(&off), guarded_row.mixture_accuracy);
                        assert_eq!(of(&always), guarded_row.student_accuracy);
                        let used = if guarded_row.used { of(&always) } else { of(&off) };
                        assert_eq!(of(&guarded), used);
                    }
                    let guards: Vec<GuardRow> =
                        read(&guarded_folder.join(format!("seed-3/students/{method}-guards.csv")));
                    assert_eq!(guards.len(), 5 * own(&guarded).len());
                    for row in own(&guarded) {
                        let in_use = guards.iter().find(|g| g.target == row.target).unwrap();
                        assert_eq!(in_use.guard, "occlusion");
                        assert_eq!(Some(in_use.score), row.stability);
                        assert_eq!(in_use.accepted, row.accepted);
                        assert_eq!((in_use.threshold, row.threshold), (Some(0.02), Some(0.02)));
                    }
                }
            });
        });
        // Sources train, targets have students, and both are priced.
        let computing: Vec<ComputingRow> = read(&guarded_folder.join("seed-3/computing.csv"));
        assert_eq!(computing, guarded.computing);
        for row in &computing {
            let student = guarded.students.iter().find(|s| s.target == row.device);
            assert_eq!(row.student_gflop > 0.0, student.is_some(), "{row:?}");
            let all = row.training_gflop + row.handed_gflop + row.student_gflop;
            assert_eq!(row.joules, all / 10.0);
        }
        assert!(computing.iter().any(|row| row.training_gflop > 0.0));
    });
}

#[test]
fn less_is_asked_of_students_of_strangers_by_whatever_method() {
    let unseen = [
        "data.domains=[\"strokes\", \"strokes-textured\"]",
        "partition.arrangement=split",
        "partition.classes-per-device=all",
        "partition.unlabeled-domains=[\"strokes-textured\"]",
        "partition.scale=1.0",
    ];
    in_folder(&config(&unseen), |_, outcome| {
        for method in ["st-lf", "fedavg"] {
            let own: Vec<&StudentRow> =
                outcome.students.iter().filter(|row| row.method == method && row.tried).collect();
            assert!(!own.is_empty());
            for row in own {
                assert_eq!(row.threshold, Some(0.005), "{row:?}");
                assert!(row.outcome.contains("; asked +0.005"), "{row:?}");
            }
        }
    });
}

#[test]
fn a_target_with_few_samples_says_so_and_keeps_its_mixture() {
    in_folder(&config(&["partition.unlabeled-device-samples=100.0"]), |folder, outcome| {
        assert!(!outcome.students.is_empty());
        for row in &outcome.students {
            let expected = format!(
                "not tried: it has {} samples, fewer than 300, and fewer than 5 labels",
                row.samples
            );
            assert_eq!(
                (row.outcome.as_str(), row.tried, row.used),
                (expected.as_str(), false, false)
            );
        }
        let kept = contents(folder);
        assert!(
            !kept.keys().any(|name| name.contains("students") && name.ends_with("safetensors"))
        );
    });
}

#[test]
fn stopped_while_students_train_it_ends_the_same() {
    let config = config(&[]);
    let (whole, events) = (tempfile::tempdir().unwrap(), AtomicUsize::new(0));
    let outcome = run(&config, whole.path(), &|_| {
        events.fetch_add(1, Ordering::Relaxed);
        ControlFlow::Continue(())
    });
    let (outcome, expected) = (outcome.unwrap(), contents(whole.path()));
    let all = events.load(Ordering::Relaxed);
    // The last stages are those with students.
    for stop in [all - 1, all - 3] {
        let (folder, seen) = (tempfile::tempdir().unwrap(), AtomicUsize::new(0));
        let stopped =
            run(&config, folder.path(), &|_| match seen.fetch_add(1, Ordering::Relaxed) >= stop {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            });
        assert!(matches!(stopped, Err(Error::Stopped)), "{stop}");
        // One student is lost, as if it had not been written yet.
        let students = folder.path().join("seed-3/students/st-lf");
        let lost = students.join(format!("{}.safetensors", outcome.students[0].target));
        if lost.exists() {
            std::fs::remove_file(&lost).unwrap();
            let _ = std::fs::remove_file(folder.path().join("seed-3/results/st-lf.csv"));
        }
        assert_eq!(run(&config, folder.path(), &go_on).unwrap(), outcome);
        assert_eq!(contents(folder.path()), expected, "stopped after {stop} events");
    }
}
