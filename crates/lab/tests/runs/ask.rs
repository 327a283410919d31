//! Few labels: what the simulator answers is what somebody answers who fills in the table.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use stlf_bundle::folder::{find, read};
use stlf_bundle::predictions::{Columns, csv};
use stlf_bundle::questions::Question;
use stlf_bundle::{Samples, questions as as_table};
use stlf_config::Config;
use stlf_lab::questions::questions;
use stlf_lab::run::default_folder;
use stlf_lab::{Outcome, run};

use crate::mixtures::table;
use crate::run::contents;

fn config(table: &Path, more: &[&str]) -> Config {
    let features = format!("data.features={}", table.display());
    let common = [
        features.as_str(),
        "data.standardise=fleet",
        "seeds=[3]",
        "partition.kind=by-domain",
        "partition.labeled=[1, 0.8, 0, 0]",
        "training.model=mlp",
        "training.steps=60",
        "divergence.features=16",
        "compare.methods=[\"st-lf\"]",
    ];
    Config::default().with(common.into_iter().chain(more.iter().copied())).unwrap()
}

fn ran(config: &Config, to: &Path) -> Outcome {
    run(config, to, &|_| ControlFlow::Continue(())).unwrap()
}

/// The true label of every row of the table.
fn truth(table: &str) -> Vec<&str> {
    table.lines().skip(1).filter_map(|row| row.split(',').nth(1)).collect()
}

#[test]
fn answers_in_a_table_come_to_what_the_simulator_answers() {
    let folder = tempfile::tempdir().unwrap();
    let [path, answers] = ["table.csv", "answers.csv"].map(|name| folder.path().join(name));
    let text = table();
    std::fs::write(&path, &text).unwrap();
    let at = |name: &str| folder.path().join(name);
    let before = ran(&config(&path, &[]), &at("before"));
    assert!(before.students.iter().all(|row| !row.tried && row.labels == 0));
    let asked = ran(&config(&path, &["transfer.ask=30"]), &at("asked"));
    assert!(asked.students.iter().all(|row| row.tried && row.labels == 30), "{:?}", asked.students);

    let mut table = questions(&at("before"), None, None, 30).unwrap();
    let of_targets: BTreeMap<&str, usize> = table.iter().fold(BTreeMap::new(), |mut all, row| {
        *all.entry(row.device.as_str()).or_default() += 1;
        all
    });
    assert_eq!(of_targets, asked.students.iter().map(|row| (row.target.as_str(), 30)).collect());
    let truth = truth(&text);
    table.iter_mut().for_each(|row: &mut Question| row.label = truth[row.sample].to_owned());
    std::fs::write(&answers, as_table::csv(&table).unwrap()).unwrap();
    let named = format!("data.answers={}", answers.display());
    let answered = ran(&config(&path, &[&named]), &at("answered"));
    assert_eq!(answered.rows, asked.rows);
    assert_eq!(answered.students, asked.students);
    for row in &asked.students {
        let target = format!("seed-3/targets/{}.csv", row.target);
        let [one, other] = ["asked", "answered"].map(|run| std::fs::read(at(run).join(&target)));
        let one = one.unwrap();
        assert_eq!(one, other.unwrap());
        // And its bundle says the same.
        let mixture = read(&find(&at("answered"), Some(&row.target), None).unwrap()).unwrap();
        assert_eq!(mixture.student.as_ref().map(|own| own.share), row.used.then_some(0.75));
        let samples = Samples::read(&mixture, &path).unwrap();
        let all =
            csv(&mixture.classes, &mixture.predict(&samples.inputs).unwrap(), Columns::default());
        let all = String::from_utf8(all.unwrap()).unwrap();
        let all: Vec<&str> = all.lines().collect();
        assert!(String::from_utf8(one).unwrap().lines().all(|line| all.contains(&line)));
    }
    // The plan is as before, and what was answered is not asked again.
    let plan = |run: &str| std::fs::read(at(run).join("seed-3/plan.json")).unwrap();
    assert_eq!(plan("before"), plan("answered"));
    let again = questions(&at("answered"), Some(&table[0].device), Some(3), 5).unwrap();
    assert!(again.iter().all(|new| table.iter().all(|old| old.sample != new.sample)));
    assert_eq!(again.len(), 5);
}

#[test]
fn answers_stay_with_the_device_that_asked_where_samples_are_shared() {
    let folder = tempfile::tempdir().unwrap();
    let [path, answers] = ["table.csv", "answers.csv"].map(|name| folder.path().join(name));
    let text = table();
    std::fs::write(&path, &text).unwrap();
    // One source's labels are wrong, and so contradict what targets are told of the samples that it holds as well.
    let shared = |more: &[&str]| {
        let features = format!("data.features={}", path.display());
        let common = [
            features.as_str(),
            "seeds=[3]",
            "partition.kind=paper",
            "partition.arrangement=mixed",
            "partition.classes-per-device=all",
            "partition.scale=0.08",
            "partition.disjoint=false",
            "partition.mislabeled-devices=1",
            "training.model=mlp",
            "training.steps=60",
            "divergence.features=16",
            "compare.methods=[\"st-lf\"]",
        ];
        Config::default().with(common.into_iter().chain(more.iter().copied())).unwrap()
    };
    let at = |name: &str| folder.path().join(name);
    ran(&shared(&[]), &at("before"));
    let asked = ran(&shared(&["transfer.ask=10"]), &at("asked"));
    let mut table = questions(&at("before"), None, None, 10).unwrap();
    let truth = truth(&text);
    table.iter_mut().for_each(|row| row.label = truth[row.sample].to_owned());
    let places = |device: &str| -> Vec<usize> {
        table.iter().filter(|row| row.device == device).map(|row| row.sample).collect()
    };
    let devices: Vec<&str> = asked.students.iter().map(|row| row.target.as_str()).collect();
    let is_shared = |sample: &usize| devices.iter().filter(|d| places(d).contains(sample)).count();
    assert!(devices.iter().flat_map(|d| places(d)).any(|sample| is_shared(&sample) > 1));
    std::fs::write(&answers, as_table::csv(&table).unwrap()).unwrap();
    let answered = ran(&shared(&[&format!("data.answers={}", answers.display())]), &at("answered"));
    assert_eq!(answered.students, asked.students);
    assert_eq!(answered.rows, asked.rows);
}

#[test]
fn a_run_goes_on_with_answers_in_its_own_folder() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let text = table();
    std::fs::write(at("table.csv"), &text).unwrap();
    let truth = truth(&text);
    let rows: String = (0..20).map(|k| format!("{},{}\n", 4 * k + 2, truth[4 * k + 2])).collect();
    // Two more that count for nobody.
    let unheard = format!("d3,2,{0}\nd9,2,{0}\n", truth[2]);
    let rows = rows.lines().map(|row| format!(",{row}\n")).collect::<String>() + &unheard;
    std::fs::write(at("answers.csv"), format!("device,sample,label\n{rows}")).unwrap();
    let named = format!("data.answers={}", at("answers.csv").display());
    let [without, with] = [&[][..], &[named.as_str()]].map(|more| config(&at("table.csv"), more));
    let file = at("mine.toml");
    assert_eq!(default_folder(&file, &with).unwrap(), default_folder(&file, &without).unwrap());
    let first = ran(&without, &at("run"));
    let answered = ran(&with, &at("run"));
    assert_ne!(answered.students, first.students);
    assert_eq!(ran(&with, &at("fresh")), answered);
    assert_eq!(contents(&at("run")), contents(&at("fresh")));
    let told: Vec<String> = answered.unheard.iter().map(ToString::to_string).collect();
    let expected = ["line 22: d3 does not hold sample 2", "line 23: there is no device d9"];
    assert_eq!(told, expected);
    // Any other difference is another run.
    let other = with.with(["training.steps=61"]).unwrap();
    let refused = run(&other, &at("run"), &|_| ControlFlow::Continue(())).unwrap_err();
    assert!(refused.to_string().ends_with("holds a run of another configuration"), "{refused}");
}

#[test]
fn what_a_student_was_told_does_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    std::fs::write(&path, table()).unwrap();
    // Who asks for all labels is measured on those that were held out, and is judged by these.
    let after = ran(&config(&path, &["transfer.ask=100"]), &folder.path().join("run"));
    for (row, student) in after.rows.iter().zip(&after.students) {
        assert!(student.labels == 100 && student.used, "{student:?}");
        let right = student.labels_right.unwrap() as f64 / 33.0;
        assert!((row.accuracy.unwrap() - right).abs() < 1e-12, "{row:?} {student:?}");
        assert!(student.labels_right > student.mixture_labels_right);
    }
}

#[test]
fn other_answers_give_other_students_and_results_with_the_same_models() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let text = table();
    std::fs::write(at("table.csv"), &text).unwrap();
    let named = format!("data.answers={}", at("answers.csv").display());
    let config = config(&at("table.csv"), &[&named, "compare.methods=[\"st-lf\", \"fedavg\"]"]);
    let truth = truth(&text);
    // Rows of devices stand mixed: d2 tells the same both times.
    let tell = |of_d3: usize| {
        let of = |device: usize, count: usize| (0..count).map(move |k| 4 * k + device);
        let answer = |sample: usize| format!("{sample},{}\n", truth[sample]);
        let rows: String = of(2, 12).chain(of(3, of_d3)).map(answer).collect();
        std::fs::write(at("answers.csv"), format!("sample,label\n{rows}")).unwrap();
    };
    let when = |name: &str| {
        let file = at("run/seed-3").join(name);
        std::fs::metadata(&file).and_then(|data| data.modified()).unwrap()
    };
    tell(12);
    let first = ran(&config, &at("run"));
    let kept = ["models/d0.safetensors", "results/fedavg.csv", "students/st-lf/d2.safetensors"];
    let before = kept.map(when);
    assert_eq!(ran(&config, &at("run")), first);
    tell(30);
    let again = ran(&config, &at("run"));
    assert_eq!(again.students.iter().map(|row| row.labels).collect::<Vec<_>>(), [12, 30]);
    assert_ne!(again, first);
    assert_eq!(kept.map(when), before, "these do not know what d3 was told");
    assert_eq!(ran(&config, &at("fresh")), again);
    assert_eq!(contents(&at("run")), contents(&at("fresh")));
}
