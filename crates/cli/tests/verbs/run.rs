//! The whole method from the command line, in small.

use std::collections::BTreeMap;
use std::path::Path;

use stlf_testing::{DEADLINE, wait_for};

use crate::common::run;

const SMALL: &str = "seeds=[1,2] data.samples=3000 partition.devices=4 partition.scale=0.03 training.model=mlp \
                     training.steps=20";

#[test]
fn a_run_ends_in_a_table_and_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("run");
    let arguments = ["run", "-c", SMALL, "--to", to.to_str().unwrap()];
    let ran = run(&arguments, "");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.contains("target accuracy") && ran.out.contains("ST-LF"), "{}", ran.out);
    let told = |line: &str| assert!(ran.out.lines().any(|told| told == line), "{}", ran.out);
    told("Means over 2 seeds; ± is the 95 % interval of the mean (Student's t).");
    told(
        "Energy and sent: totals; links, and for ST-LF also the measuring by which it chooses them.",
    );
    std::fs::remove_file(to.join("seed-2").join("results").join("sm.csv")).unwrap();
    let again = run(&arguments, "");
    assert_eq!((again.code, again.out), (0, ran.out));
    let plan = to.join("seed-1").join("plan.json");
    let explained = run(&["explain", plan.to_str().unwrap()], "");
    assert_eq!(explained.code, 0, "{}", explained.err);
}

#[test]
fn stages_stand_alone_and_the_run_goes_on_from_them() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("run");
    let to = to.to_str().unwrap();
    let measured = run(&["measure", "-c", SMALL, "--to", to], "");
    assert_eq!((measured.code, measured.err.as_str()), (0, ""));
    assert!(measured.out.contains("without signal"), "{}", measured.out);
    assert!(measured.out.contains("Measuring divergences (means) sent"), "{}", measured.out);
    let too_early = run(&["explain", to], "");
    assert_eq!(too_early.code, 2);
    assert!(too_early.err.contains("stlf plan FOLDER"), "{}", too_early.err);
    let planned = run(&["plan", to], "");
    assert_eq!((planned.code, planned.err.as_str()), (0, ""));
    assert!(planned.out.contains("proven optimal"), "{}", planned.out);
    let explained = run(&["explain", to], "");
    assert_eq!((explained.code, explained.err.as_str()), (0, ""));
    let of_seed = run(&["plan", &format!("{to}/seed-2"), "--phi-e", "1"], "");
    assert_eq!((of_seed.code, of_seed.err.as_str()), (0, ""));
    let sent = run(&["transfer", to], "");
    assert_eq!((sent.code, sent.err.as_str()), (0, ""));
    assert!(sent.out.contains("seed-*/targets"), "{}", sent.out);
    assert!(sent.out.contains("Expected accuracy of ST-LF"), "{}", sent.out);
    // What targets may expect is told once they have their models, with what it rests on.
    assert!(!explained.out.contains("may expect"), "{}", explained.out);
    let expected = table(&Path::new(to).join("seed-1").join("expected.csv"));
    let of_run = run(&["explain", to], "").out;
    assert_eq!(of_run.matches("It may expect an accuracy of ").count(), expected.len());
    for row in &expected {
        let device = row["target"].as_str();
        let alone = run(&["explain", to, "--device", device], "").out;
        for told in [
            "It may expect an accuracy of",
            "Its doubt about",
            " at its senders, the odds",
            "Its student: not tried: it has ",
        ] {
            assert!(alone.contains(told), "{told}: {alone}");
        }
        // Models that were trained for 20 steps help little.
        let is_told = ["too wide to say much", "no source helps"].iter().any(|t| alone.contains(t));
        assert_eq!(is_told, !row["warning"].is_empty(), "{row:?} {alone}");
        assert!(row["warning"].is_empty() || sent.out.contains("stlf ask RUN"), "{}", sent.out);
        let json = run(&["explain", to, "--device", device, "--format", "json"], "").out;
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["devices"][0]["expected"]["low"].to_string(), row["low"]);
    }
    let compared = run(&["compare", to, "--methods", "oracle,sm"], "");
    assert_eq!((compared.code, compared.err.as_str()), (0, ""));
    assert!(compared.out.contains("Oracle") && !compared.out.contains("ST-LF"), "{}", compared.out);
    assert_eq!(run(&["compare", to, "--methods", "fedvag"], "").code, 2);
    assert_eq!(run(&["run", to], "").code, 0);
    assert_eq!(run(&["run", to, "-c", "training.steps=21"], "").code, 2, "another configuration");
}

#[test]
fn devices_whose_own_models_are_no_better_than_guessing_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let run_with = |name: &str, changes: &str| {
        let to = folder.path().join(name);
        let settings = format!("{SMALL} seeds=[1] training.held-out=0.5 {changes}");
        let ran = run(&["run", "-c", &settings, "--to", to.to_str().unwrap()], "");
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        (to, ran.out)
    };
    let (_, learned) = run_with("learned", "training.steps=400");
    assert!(!learned.contains("no better than guessing:"), "{learned}");
    // A step so small that models stay what they were drawn as.
    let (to, useless) = run_with("useless", "training.learning-rate=1e-9");
    let labeled: Vec<_> = table(&to.join("seed-1").join("training.csv"))
        .into_iter()
        .filter(|row| !row["source-error"].is_empty())
        .collect();
    let count = labeled.len();
    let told = format!("of {count} devices with labels (");
    assert!(useless.contains(&told), "{told}: {useless}");
    assert!(useless.contains("its own model is no better than guessing: look at"), "{useless}");
    let is_told = |row: &BTreeMap<String, String>| {
        let explained = run(&["explain", to.to_str().unwrap(), "--device", &row["device"]], "");
        explained.out.contains("Trouble: its own model is no better than guessing (")
    };
    assert!(labeled.iter().any(is_told));
    let page = folder.path().join("page.html");
    let made = run(&["report", to.to_str().unwrap(), "-o", page.to_str().unwrap()], "");
    assert_eq!(made.code, 0, "{}", made.err);
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.contains("\"guessing\":\"its own model is no better than guessing ("));
}

#[cfg(unix)]
#[test]
fn killed_at_any_moment_it_ends_with_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let settings = format!("{SMALL} divergence.estimator=classifier divergence.rounds=2");
    let start = |to: &std::path::Path| {
        std::process::Command::new(env!("CARGO_BIN_EXE_stlf"))
            .args(["run", "-c", &settings, "--to"])
            .arg(to)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let whole = folder.path().join("whole");
    assert!(start(&whole).wait().unwrap().success());
    let killed = folder.path().join("killed");
    // As soon as each of these is there, so that it is killed in every stage; what is done stays.
    let stages = ["models", "training.csv", "divergence.csv", "plan.json", "targets", "results"];
    let stages =
        [1, 2].into_iter().flat_map(|seed| stages.map(|name| format!("seed-{seed}/{name}")));
    for made in stages.chain(["results.csv".to_owned()]) {
        let mut child = start(&killed);
        let has_ended_or_made = || {
            let made = killed.join(&made).exists().then_some(());
            made.or_else(|| child.try_wait().unwrap().map(drop))
        };
        wait_for(DEADLINE, has_ended_or_made, || made.clone());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    // A kill between making a file and naming it is rare; what it leaves is put there.
    for abandoned in [".stlf-aaaaaa", "seed-1/models/.stlf-bbbbbb", "seed-2/.stlf-cccccc"] {
        std::fs::write(killed.join(abandoned), b"half a file").unwrap();
    }
    assert!(start(&killed).wait().unwrap().success());
    let difference =
        std::process::Command::new("diff").arg("-r").args([&whole, &killed]).output().unwrap();
    assert!(difference.status.success(), "{}", String::from_utf8_lossy(&difference.stdout));
}

#[test]
fn a_table_that_names_its_devices_is_dealt_by_them_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("pumps.csv");
    let mut rows = "device,label,x,y\n".to_owned();
    for k in 0..160 {
        let device = ["north", "south", "east", "west"][k % 4];
        let label = if k % 4 < 2 { ["ok", "worn"][k / 4 % 2] } else { "" };
        rows += &format!("{device},{label},{},{}\n", k / 4 % 2 * 3 + k % 4, k % 7);
    }
    std::fs::write(&table, rows).unwrap();
    let to = folder.path().join("run");
    let settings = format!(
        "seeds=[1,2] data.features={} training.model=mlp training.steps=20 divergence.features=16",
        table.display()
    );
    let arguments = ["run", "-c", &settings, "--to", to.to_str().unwrap()];
    let ran = run(&arguments, "");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(
        ran.out.contains("The column device says which device holds which sample"),
        "{}",
        ran.out
    );
    let plan = std::fs::read_to_string(to.join("seed-1/plan.json")).unwrap();
    for name in ["north", "south", "east", "west"] {
        assert!(plan.contains(&format!("\"{name}\"")), "{name}");
    }
    // Who wants another deal says so.
    let anew =
        format!("{settings} partition.kind=iid partition.devices=3 partition.labeled=[1,1,0]");
    let other = folder.path().join("other");
    let ran = run(&["run", "-c", &anew, "--to", other.to_str().unwrap()], "");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(!ran.out.contains("column device"), "{}", ran.out);
}

/// The rows of a table by their columns.
fn table(path: &Path) -> Vec<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned));
    let head: Vec<String> = lines.next().unwrap().collect();
    lines.map(|cells| head.iter().cloned().zip(cells).collect()).collect()
}

fn sum(rows: &[BTreeMap<String, String>], method: &str, column: &str) -> f64 {
    let own = rows.iter().filter(|row| row["method"] == method);
    own.map(|row| row[column].parse::<f64>().unwrap()).sum()
}

#[test]
fn totals_count_models_as_they_are_and_measuring_where_it_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let ran_with = |name: &str, more: &str| {
        let to = folder.path().join(name);
        let settings = format!("{SMALL} {more}");
        let ran = run(&["run", "-c", &settings, "--to", to.to_str().unwrap()], "");
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        (to, ran.out)
    };
    let (real, shown) = ran_with("real", "");
    let rows = table(&real.join("results.csv"));
    let measured: f64 = ["seed-1", "seed-2"]
        .iter()
        .flat_map(|seed| table(&real.join(seed).join("measuring.csv")))
        .map(|row| row["bytes"].parse::<f64>().unwrap())
        .sum();
    assert!(measured > 0.0);
    // Twelve bytes for every trial that goes along with a model: its sender's and, after hand-overs, one of every other source.
    let trials = sum(&rows, "st-lf", "measuring-bytes") - measured;
    let models = sum(&rows, "st-lf", "links");
    assert!(trials % 12.0 == 0.0 && (12.0 * models..=48.0 * models).contains(&trials), "{trials}");
    let alone = 12.0 * sum(&rows, "st-lf-links", "links");
    let sent = [("st-lf", measured + trials), ("st-lf-links", measured + alone), ("fedavg", 0.0)];
    for (method, sent) in sent {
        assert_eq!(sum(&rows, method, "measuring-bytes"), sent, "{method}");
        assert_eq!(sum(&rows, method, "measuring-joules") > 0.0, sent > 0.0, "{method}");
    }
    // The table's share is that of the totals, also above all links.
    let share = |seed: &str| {
        let own: Vec<_> = rows.iter().filter(|row| row["seed"] == seed).cloned().collect();
        let total = sum(&own, "st-lf", "joules") + sum(&own, "st-lf", "measuring-joules");
        total / sum(&own, "st-lf", "all-joules")
    };
    let share = format!("{:.0} %", 50.0 * (share("1") + share("2")));
    let line = shown.lines().find(|line| line.starts_with("ST-LF ")).unwrap();
    assert!(line.contains(&share), "{share} is not in {line}");
    // A model is taken for what it has,
    let bits = 8.0 * sum(&rows, "fedavg", "bytes") / sum(&rows, "fedavg", "links");
    let (same, _) = ran_with("same", &format!("energy.model-bits={bits}"));
    let bytes = |folder: &Path| std::fs::read(folder.join("results.csv")).unwrap();
    assert!(bytes(&real) == bytes(&same));
    // and its size changes no role, no link and no weight.
    let (paper, shown) = ran_with("paper", "energy.model-bits=1e9");
    assert!(shown.contains("assume models of 1.00e9 bits"), "{shown}");
    for seed in ["seed-1", "seed-2"] {
        let [here, there] = [&real, &paper].map(|to| table(&to.join(seed).join("links.csv")));
        assert_eq!(here.len(), there.len());
        for (a, b) in here.iter().zip(&there) {
            assert_eq!((&a["from"], &a["to"]), (&b["from"], &b["to"]));
            let [a, b] = [a, b].map(|row| row["weight"].parse::<f64>().unwrap());
            assert!((a - b).abs() < 1e-9, "{a} and {b}");
        }
    }
}

#[test]
fn a_fleet_without_targets_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("run");
    let alone = SMALL.replace("partition.devices=4", "partition.devices=1");
    let ran = run(&["run", "-c", &alone, "--to", to.to_str().unwrap()], "");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.starts_with("No method has a target"), "{}", ran.out);
}

#[test]
fn a_new_configuration_runs_and_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("mine");
    let name = name.to_str().unwrap();
    let written = run(&["new", name], "");
    assert_eq!((written.code, written.err.as_str()), (0, ""));
    assert_eq!(run(&["new", name], "").code, 2);
    let (file, to) = (format!("{name}.toml"), format!("{name}-run"));
    let ran = run(&["run", &file, "-c", SMALL, "--to", &to], "");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
}

#[test]
fn training_that_diverges_is_told_and_leaves_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("run");
    let settings = format!("{SMALL} training.learning-rate=1e30");
    let ran = run(&["run", "-c", &settings, "--to", to.to_str().unwrap()], "");
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("training.learning-rate: training diverged"), "{}", ran.err);
    assert!(ran.err.contains("hint: choose a smaller one"), "{}", ran.err);
    assert!(!to.exists());
}

#[test]
fn a_wrong_key_is_named_with_what_was_meant() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.toml");
    std::fs::write(&file, "[training]\nstepss = 3\n").unwrap();
    let ran = run(&["run", file.to_str().unwrap()], "");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("line 2: unknown field `stepss`"), "{}", ran.err);
    assert!(ran.err.contains("did you mean steps?"), "{}", ran.err);
    let ran = run(&["run", "-c", "data.domains=[\"minst\"]", "--to", file.to_str().unwrap()], "");
    assert_ne!(ran.code, 0);
    let missing = run(&["run", "no-such.toml"], "");
    assert_eq!(missing.code, 2);
}
