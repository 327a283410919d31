//! The whole method from the command line, in small.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::run;

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
    assert!(ran.out.contains("Means over 2 seeds"), "{}", ran.out);
    std::fs::remove_file(to.join("seed-2").join("results").join("sm.csv")).unwrap();
    let again = run(&arguments, "");
    assert_eq!((again.code, again.out), (0, ran.out));
    let plan = to.join("seed-1").join("plan.json");
    let explained = run(&["explain", plan.to_str().unwrap()], "");
    assert_eq!(explained.code, 0, "{}", explained.err);
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
