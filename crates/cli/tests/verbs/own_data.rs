//! One's own tables and pictures: from a file to a run without a line of configuration written by hand.

use std::path::Path;

use crate::common::{Ran, run, stlf};

/// Four devices with three features; those on the roof measure something else. `label` says what a row has as its label.
fn table(folder: &Path, columns: &str, label: impl Fn(usize, usize) -> String) {
    let names = ["gate", "dock", "roof", "yard"];
    let row = |k: usize| {
        let (device, class) = (k % 4, (k / 4) % 2);
        let far = if device < 2 { 0.0 } else { 5.0 };
        let noise = (k * 37 % 101) as f64 / 50.0;
        format!(
            "{},12:{:02},{},{},{},{}\n",
            names[device],
            k % 60,
            far + noise,
            class as f64 * 2.0 + noise / 2.0,
            (k * 53 % 97) as f64,
            label(device, class)
        )
    };
    let rows: String = (0..320).map(row).collect();
    std::fs::write(folder.join("my.csv"), format!("{columns}\n{rows}")).unwrap();
}

fn within(folder: &Path, args: &[&str]) -> Ran {
    stlf().args(args).current_dir(folder).output().unwrap().into()
}

#[test]
fn a_table_becomes_a_configuration_that_runs_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    table(at, "device,time,x,y,z,label", |device, class| match device {
        0 | 2 => ["calm", "storm"][class].to_owned(),
        _ => String::new(),
    });
    let written = within(at, &["new", "mine", "--features", "my.csv"]);
    assert_eq!((written.code, written.err.as_str()), (0, ""));
    assert_eq!(
        written.out,
        "Column device names 4 devices, 2 with labels.\n\
         Not used, because they are not numbers in every row: time.\n\
         wrote mine.toml; run: stlf run mine.toml\n"
    );
    let quick = ["run", "mine.toml", "-c", "training.steps=50 seeds=[1]", "--to", "run"];
    let ran = within(at, &quick);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(at.join("run/seed-1/mixtures/dock").is_dir());
    let again = within(at, &["new", "mine", "--features", "my.csv"]);
    assert!(again.code == 2 && again.err.contains("already exists"), "{}", again.err);
    let early = within(at, &["run", "my.csv"]);
    assert!(
        early.code == 2 && early.err.contains("stlf new NAME --features my.csv"),
        "{}",
        early.err
    );

    // Results of a table are not shown as those of another one, also if it is called the same.
    let results = || std::fs::read(at.join("run/results.csv")).unwrap();
    let first = results();
    table(at, "device,time,x,y,z,label", |device, class| match device {
        0 | 2 => ["storm", "calm"][class].to_owned(),
        _ => String::new(),
    });
    let changed = within(at, &quick);
    assert_eq!(changed.code, 2, "{}", changed.out);
    assert!(changed.err.contains("my.csv: has changed since run was made"), "{}", changed.err);
    assert!(changed.err.contains("--to"), "{}", changed.err);
    assert_eq!(results(), first);
}

#[test]
fn a_table_that_is_not_found_is_told_with_where_it_was_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("inside");
    std::fs::create_dir(&inside).unwrap();
    table(&inside, "device,time,x,y,z,label", |_, class| ["calm", "storm"][class].to_owned());
    let written = within(&inside, &["new", "mine", "--features", "my.csv"]);
    assert_eq!(written.code, 0, "{}", written.err);
    let ran = within(folder.path(), &["run", "inside/mine.toml"]);
    assert_eq!(ran.code, 2, "{}", ran.out);
    let tried = folder.path().join("my.csv");
    let expected = format!("data.features: {} does not exist", tried.display());
    assert!(ran.err.contains(&expected), "{}", ran.err);
    assert!(ran.err.contains("-c data.features=inside/my.csv"), "{}", ran.err);
    assert!(!folder.path().join("runs").exists());
    std::fs::remove_file(inside.join("my.csv")).unwrap();
    let ran = within(folder.path(), &["run", "inside/mine.toml"]);
    assert!(ran.err.contains("paths count from") && !ran.err.contains("-c "), "{}", ran.err);
}

#[test]
fn two_labels_in_all_let_nobody_expect_anything() {
    let folder = tempfile::tempdir().unwrap();
    let row = |k: usize| {
        let label = if k < 8 && k.is_multiple_of(4) { ["calm", "storm"][k / 4 % 2] } else { "" };
        format!("d{},{label},{}.{:02},{}\n", k % 4, k / 4 % 2 * 3, k * 31 % 97, k * 37 % 101)
    };
    let of = |rows: usize| {
        let rows: String = (0..rows).map(row).collect();
        let table = format!("device,label,x,y\n{rows}");
        std::fs::write(folder.path().join("my.csv"), table).unwrap();
        let _ = std::fs::remove_file(folder.path().join("mine.toml"));
        let written = within(folder.path(), &["new", "mine", "--features", "my.csv"]);
        assert_eq!(written.code, 0, "{}", written.err);
        let to = format!("run-{}", rows.len());
        let settings = "training.steps=50 seeds=[1]";
        let ran = within(folder.path(), &["run", "mine.toml", "-c", settings, "--to", &to]);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        let explained = within(folder.path(), &["explain", &to, "--device", "d1"]);
        (ran.out, explained.out)
    };
    let (ran, explained) = of(320);
    let told = "At 3 of 3 targets (d1, d2, d3) models were tried on too few labels to say what accuracy to expect";
    assert!(ran.contains(told) && !ran.contains("Expected accuracy"), "{ran}");
    assert!(explained.contains("What it may expect is not known: "), "{explained}");
    assert!(ran.contains("Of one seed") && !ran.contains('±'), "{ran}");
    assert!(!ran.contains("would refuse to take part"), "{ran}");
    // Real devices with so few rows measure nothing.
    let (few, _) = of(80);
    let refused =
        "4 devices (d0, d1, d2, d3) would refuse to take part in a real fleet. Device d0: ";
    assert!(few.contains(refused) && few.contains("a device needs at least"), "{few}");
}

#[test]
fn no_file_is_written_outside_of_a_run_by_the_name_of_a_device() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let precious = at.join("precious");
    std::fs::create_dir(&precious).unwrap();
    std::fs::write(precious.join("diary.txt"), "dear diary").unwrap();
    let rows = |name: &str| -> String {
        let row = |k: usize| {
            let (device, label) = (["gate", name][k % 2], ["calm", "storm"][(k / 2) % 2]);
            format!("{device},{label},{},{}\n", k % 7, k % 11)
        };
        (0..200).map(row).collect()
    };
    for name in ["../../../precious", precious.to_str().unwrap(), "a/b", "..", ".", "a\\b"] {
        std::fs::write(at.join("t.csv"), format!("device,label,x,y\n{}", rows(name))).unwrap();
        let made = within(at, &["new", "t", "--features", "t.csv"]);
        let settings = "data.features=t.csv seeds=[0] training.steps=5 training.model=mlp";
        let ran = within(at, &["run", "-c", settings, "--to", "run"]);
        for refused in [made, ran] {
            assert_eq!(refused.code, 2, "{name}: {}", refused.out);
            let told = &refused.err;
            assert!(told.contains("t.csv: no file can be called by the name"), "{name}: {told}");
        }
    }
    let kept: Vec<_> =
        std::fs::read_dir(&precious).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(kept, ["diary.txt"]);
}

#[test]
fn minus_one_is_no_class_and_the_user_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    table(at, "device,time,x,y,z,label", |_, class| ["-1", "1"][class].to_owned());
    let two = within(at, &["new", "mine", "--features", "my.csv"]);
    assert!(
        two.code == 2 && two.err.contains("an empty cell, null, NA or -1 is none"),
        "{}",
        two.err
    );
    table(at, "device,time,x,y,z,label", |device, class| {
        ["-1", "1", "2"][(device + class) % 3].to_owned()
    });
    let three = within(at, &["new", "mine", "--features", "my.csv"]);
    assert_eq!((three.code, three.err.as_str()), (0, ""));
    assert!(
        three.out.contains("of 320 rows have no label, that is an empty cell"),
        "{}",
        three.out
    );
}

#[test]
fn a_table_as_a_spreadsheet_writes_it_is_the_same_as_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    table(at, "device,time,x,y,z,label", |_, class| ["calm", "storm"][class].to_owned());
    let plain = std::fs::read_to_string(at.join("my.csv")).unwrap();
    let ran = |name: &str, text: &str| {
        std::fs::write(at.join("my.csv"), text).unwrap();
        let written = within(at, &["new", name, "--features", "my.csv"]);
        assert!(written.out.contains("Column device names 4 devices"), "{}", written.out);
        let quick = "training.steps=50 seeds=[1] compare.methods=[\"st-lf\"]";
        let ran = within(at, &["run", &format!("{name}.toml"), "-c", quick, "--to", name]);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        std::fs::read(at.join(name).join("results.csv")).unwrap()
    };
    let expected = ran("plain", &plain);
    // With the mark by which spreadsheets know UTF-8, which is no part of the first column's name.
    assert_eq!(ran("marked", &format!("\u{feff}{}", plain.replace('\n', "\r\n"))), expected);
    let european = plain.replace(',', ";").replace('.', ",");
    assert_eq!(ran("european", &european), expected);
    // With a number for each row, as R and pandas write it.
    let numbered = plain.lines().enumerate().map(|(k, line)| match k {
        0 => format!(",{line}\n"),
        _ => format!("{k},{line}\n"),
    });
    assert_eq!(ran("numbered", &numbered.collect::<String>()), expected);
}

#[test]
fn without_a_column_of_devices_rows_are_dealt_and_half_of_the_labels_hidden() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    table(at, "site,time,x,y,z,weather", |_, class| class.to_string());
    let missing = within(at, &["new", "mine", "--features", "my.csv"]);
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("column \"label\" is missing"), "{}", missing.err);
    assert!(missing.err.contains("site, time, x, y, z, weather"), "{}", missing.err);
    let label = ["--features", "my.csv", "--label", "weather"];
    let dealt = within(at, &[&["new", "dealt"], &label[..]].concat());
    assert!(dealt.out.contains("dealt at random to 10 devices"), "{}{}", dealt.out, dealt.err);
    let by_site = within(at, &[&["new", "site", "--device", "site"], &label[..]].concat());
    assert!(by_site.out.contains("4 devices, 4 with labels; half of them hide"), "{}", by_site.out);
    for name in ["dealt", "site"] {
        let config = format!("{name}.toml");
        let ran = within(at, &["run", &config, "-c", "training.steps=50 seeds=[1]", "--to", name]);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        // Accuracy is known, because labels that were hidden exist.
        assert!(!ran.out.contains("not known"), "{}", ran.out);
    }
}

#[test]
fn a_plan_is_taken_wherever_a_problem_is() {
    let folder = tempfile::tempdir().unwrap();
    let [plan, again] = ["plan.json", "again.json"].map(|name| folder.path().join(name));
    let [plan, again] = [&plan, &again].map(|path| path.to_str().unwrap());
    let problem = crate::common::example("five-cars.json");
    let problem = problem.to_str().unwrap();
    assert_eq!(run(&["plan", problem, "-o", plan], "").code, 0);
    assert_eq!(run(&["plan", plan, "-o", again], "").code, 0);
    assert_eq!(run(&["diff", plan, again], "").code, 0);
    for verb in ["sweep", "explain"] {
        let [of_problem, of_plan] = [problem, plan].map(|file| run(&[verb, file], ""));
        assert_eq!(of_plan.code, 0, "{}", of_plan.err);
        assert_eq!(of_plan.out, of_problem.out);
    }
    let piped = run(&["plan", "-", "--format", "json"], std::fs::read(plan).unwrap());
    assert_eq!((piped.code, piped.err.as_str()), (0, ""));
    // A plan without its problem says what is missing.
    let mut bare: serde_json::Value =
        serde_json::from_slice(&std::fs::read(plan).unwrap()).unwrap();
    bare.as_object_mut().unwrap().remove("problem");
    let refused = run(&["plan", "-"], bare.to_string());
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("this plan does not contain its problem"), "{}", refused.err);
}
