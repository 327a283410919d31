//! What the user sees of a plan.

use crate::common::{cars, example, run, settings};
use serde_json::{Value, json};
use stlf::format::{PlanFile, plan_schema};

fn path(name: &str) -> String {
    example(name).to_str().unwrap().to_owned()
}

#[test]
fn the_text_reads_well() {
    for name in ["five-cars", "ten-devices"] {
        let ran = run(&["plan", &path(&format!("{name}.json"))], "");
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        settings().bind(|| insta::assert_snapshot!(name, ran.out));
    }
}

#[test]
fn json_mode_prints_one_valid_document_and_nothing_else() {
    let validator = jsonschema::validator_for(&plan_schema()).unwrap();
    for options in [vec![], vec!["--bound", "paper"], vec!["--solver", "successive"]] {
        let file = path("ten-devices.json");
        let args: Vec<&str> =
            ["plan", &file, "--format", "json"].into_iter().chain(options).collect();
        let ran = run(&args, "");
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        let document: Value = serde_json::from_str(&ran.out).unwrap();
        assert!(validator.is_valid(&document));
        let plan = PlanFile::read(ran.out.as_bytes()).unwrap();
        plan.restore().unwrap();
    }
}

#[test]
fn an_infeasible_problem_is_a_document_too() {
    let mut problem = cars();
    for sender in 0..5 {
        problem["link_energy"][sender][4] = json!(null);
    }
    let ran = run(&["plan", "-", "--format", "json"], problem.to_string());
    assert_eq!(ran.code, 3);
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(document["status"], "infeasible");
    assert!(document["reason"].as_str().unwrap().contains('E'));
    assert!(ran.err.starts_with("error: no plan exists"));
}

#[test]
fn the_output_file_holds_the_document() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.json");
    let to_file = ["plan", &path("five-cars.json"), "-o", file.to_str().unwrap()];
    let ran = run(&to_file, "");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.starts_with("5 devices: 3 sources, 2 targets; proven optimal"), "{}", ran.out);
    let plan = PlanFile::read(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(plan.sources, ["B", "C", "D"]);
    let json: Vec<&str> = to_file.into_iter().chain(["--format", "json"]).collect();
    let ran = run(&json, "");
    assert_eq!(ran.out.as_bytes(), std::fs::read(&file).unwrap());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn the_document_repeats_the_problem_as_it_was_planned() {
    let args =
        ["plan", "-", "--format", "json", "--phi-e", "0.5", "--phi-s", "2", "--bound", "paper"];
    let ran = run(&args, cars().to_string());
    let plan = PlanFile::read(ran.out.as_bytes()).unwrap();
    let weights = plan.problem.as_ref().unwrap().weights.unwrap();
    assert_eq!((weights.source, weights.target, weights.energy), (Some(2.0), Some(1.0), Some(0.5)));
    assert_eq!(plan.bound, stlf::bound::BoundKind::Paper);
    let (problem, again) = plan.restore().unwrap();
    let terms = stlf::plan::evaluate(&problem, again.bound, &again.roles, &again.links);
    assert!((terms.total() - plan.objective.unwrap()).abs() < 1e-9);
}

#[test]
fn a_preset_on_the_command_line_replaces_the_files_settings() {
    let mut problem = cars();
    problem["weights"] = json!({"source": 9, "target": 9, "energy": 9});
    let ran = run(&["plan", "-", "--preset", "paper", "--format", "json"], problem.to_string());
    let settings = PlanFile::read(ran.out.as_bytes()).unwrap().settings.unwrap();
    assert_eq!(settings.weights.target, Some(5.0));
    assert_eq!(serde_json::to_value(settings.complexity).unwrap(), json!("massart"));
}

#[test]
fn a_table_of_links_gives_the_same_plan_as_matrices() {
    let matrices = cars();
    let mut problem = matrices.clone();
    for field in ["divergence", "link_energy"] {
        problem.as_object_mut().unwrap().remove(field);
    }
    let mut table = String::from("divergence,energy,from,to\n");
    for (i, from) in "ABCDE".chars().enumerate() {
        for (j, to) in "ABCDE".chars().enumerate().filter(|(j, _)| *j != i) {
            let (d, k) = (&matrices["divergence"][i][j], &matrices["link_energy"][i][j]);
            table.push_str(&format!("{d},{k},{from},{to}\n"));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let links = folder.path().join("links.csv");
    std::fs::write(&links, table).unwrap();
    let json = ["plan", "-", "--format", "json"];
    let with_table: Vec<&str> =
        json.into_iter().chain(["--links", links.to_str().unwrap()]).collect();
    let read = |out: &str| PlanFile::read(out.as_bytes()).unwrap();
    let a = read(&run(&json, matrices.to_string()).out);
    let b = read(&run(&with_table, problem.to_string()).out);
    assert_eq!((a.objective, a.sources, a.links), (b.objective, b.sources, b.links));
}

#[test]
fn the_successive_solver_takes_the_papers_bound_unless_told_otherwise() {
    let ran = run(&["plan", &path("ten-devices.json"), "--solver", "successive"], "");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    for word in ["relaxed", "rounded", "plan  ", "exact", "paper, delta"] {
        assert!(ran.out.contains(word), "{word} is not in\n{}", ran.out);
    }
}

#[test]
fn an_unpolished_successive_plan_costs_what_its_rounding_costs() {
    let plan = |more: &[&str]| {
        let file = path("ten-devices.json");
        let all = ["plan", &file, "--solver", "successive", "--format", "json"];
        let all: Vec<&str> = all.into_iter().chain(more.iter().copied()).collect();
        let value: serde_json::Value = serde_json::from_str(&run(&all, "").out).unwrap();
        (
            value["objective"].as_f64().unwrap(),
            value["solver"]["rounded_objective"].as_f64().unwrap(),
        )
    };
    let (objective, rounded) = plan(&["--no-polish"]);
    assert!((objective - rounded).abs() < 1e-9 * rounded);
    let (polished, rounded) = plan(&[]);
    assert!(polished <= rounded * (1.0 + 1e-9));
}

#[test]
fn a_large_fleet_is_abbreviated_and_says_so() {
    let n = 120;
    let cell =
        |i: usize, j: usize| if i == j { 0.0 } else { ((i * 37 + j * 91) % 83) as f64 + 1.0 };
    let source: Vec<f64> = (0..n).map(|i| 50.0 + (i % 7) as f64).collect();
    let link: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| cell(i, j)).collect()).collect();
    let problem = json!({"format": "stlf-problem/1", "costs": {"source": source, "link": link}});
    let ran = run(&["plan", "-"], problem.to_string());
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("… 40 of 120 devices shown"), "{}", ran.out);
    assert!(ran.out.lines().count() < 60);
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    use std::process::{Command, Stdio};
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("stlf"))
        .args(["schema", "plan"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.stderr.is_empty());
    assert_eq!(output.status.code(), Some(0));
}

#[cfg(unix)]
#[test]
fn an_output_that_is_no_file_is_written_to_and_stays_what_it_is() {
    use std::os::unix::fs::FileTypeExt;
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let (sender, read) = std::sync::mpsc::channel();
    let reader = pipe.clone();
    std::thread::spawn(move || sender.send(std::fs::read(reader).unwrap()).unwrap());
    let cars = example("five-cars.json");
    let ran = run(&["plan", cars.to_str().unwrap(), "-o", pipe.to_str().unwrap()], "");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(std::fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    let plan = read.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
    let plan: serde_json::Value = serde_json::from_slice(&plan).unwrap();
    assert_eq!(plan["format"], "stlf-plan/1");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
