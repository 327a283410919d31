//! What the user sees of a plan.

use stlf_formats::{PlanFile, plan_schema};

use crate::common::{alike, cars, example, run, settings};
use serde_json::{Value, json};

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
fn sources_hand_models_on_where_that_is_asked_for() {
    let problem = alike().to_string();
    let ran = run(&["plan", "-", "--handovers"], problem.clone());
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("over 5 links and 4 hand-overs"), "{}", ran.out);
    assert!(ran.out.contains(" (hand-over)") && ran.out.contains("(no proof)"), "{}", ran.out);
    let ran = run(&["plan", "-", "--handovers", "--format", "json"], problem.clone());
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    let validator = jsonschema::validator_for(&plan_schema()).unwrap();
    assert!(validator.is_valid(&document));
    assert_eq!(document["handovers"].as_array().unwrap().len(), 4);
    assert!(document["lower_bound"].as_f64().unwrap() < document["objective"].as_f64().unwrap());

    // Every device is accounted for, and every source but the first says whose model it takes.
    let explained = run(&["explain", "-"], ran.out.clone());
    assert_eq!(explained.code, 0, "{}", explained.err);
    for handover in document["handovers"].as_array().unwrap() {
        let [from, to] = ["from", "to"].map(|end| handover[end].as_str().unwrap());
        let of = run(&["explain", "-", "--device", to], ran.out.clone());
        assert!(of.out.contains(&format!("It continues training {from}'s model")), "{}", of.out);
        assert!(of.out.contains("That plan is cheaper if "), "{}", of.out);
    }
    let swept = run(&["sweep", "-", "--handovers", "--format", "text"], problem.clone());
    assert!(
        swept.out.contains("4 hand-overs") && swept.out.contains("not all proven"),
        "{}",
        swept.out
    );

    let refused = run(&["plan", "-", "--handovers", "--bound", "paper"], problem);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("the paper's bound does not reward them"), "{}", refused.err);
}

#[test]
fn plans_of_the_first_version_are_read_and_absurd_hand_overs_are_not() {
    let ran = run(&["plan", "-", "--handovers", "--format", "json"], alike().to_string());
    let good: Value = serde_json::from_str(&ran.out).unwrap();
    let read = |change: &dyn Fn(&mut Value)| {
        let mut document = good.clone();
        change(&mut document);
        PlanFile::read(document.to_string().as_bytes()).and_then(|file| file.restore_checked())
    };
    assert_eq!(read(&|_| ()).unwrap().1.handovers.len(), 4);
    let told = |change: &dyn Fn(&mut Value)| read(change).unwrap_err().to_string();
    let last = &good["links"][0]["from"];
    let within = |h: &&Value| h["from"] != *last && h["to"] != *last;
    let there = good["handovers"].as_array().unwrap().iter().find(within).unwrap().clone();
    let back = json!({"from": there["to"], "to": there["from"], "energy": 1.0});
    let circle = told(&|plan| plan["handovers"] = json!([there, back]));
    assert!(circle.contains("one source of a ring, its last, sends to targets"), "{circle}");
    let twice = told(&|plan| plan["handovers"].as_array_mut().unwrap().push(there.clone()));
    assert!(twice.contains("a source takes two models"), "{twice}");
    let target = told(&|plan| plan["handovers"][0]["to"] = json!("d6"));
    assert!(target.contains("handovers[0].to: is not a source"), "{target}");
    let fewer = told(&|plan| plan["handovers"] = json!([]));
    assert!(fewer.contains("not a plan for this problem"), "{fewer}");

    let ran = run(&["plan", "-", "--format", "json"], alike().to_string());
    let mut first: Value = serde_json::from_str(&ran.out).unwrap();
    first["format"] = json!("stlf-plan/1");
    first.as_object_mut().unwrap().remove("handovers");
    let (_, plan) =
        PlanFile::read(first.to_string().as_bytes()).unwrap().restore_checked().unwrap();
    assert!(plan.handovers.is_empty());
}

#[test]
fn a_required_link_that_carries_nothing_is_named() {
    let far = |i: usize, j: usize| if i == j { 0.0 } else { [0.1, 1.9, 1.9, 1.9][i] };
    let row = |i: usize| (0..4).map(|j| far(i, j)).collect::<Vec<_>>();
    let device = |i: usize| match i < 2 {
        true => {
            json!({"name": format!("d{i}"), "labeled": 100, "unlabeled": 100, "source_error": 0.1})
        }
        false => json!({"name": format!("d{i}"), "labeled": 0, "unlabeled": 100}),
    };
    let problem = json!({
        "format": "stlf-problem/1",
        "preset": "balanced",
        "devices": (0..4).map(device).collect::<Vec<_>>(),
        "divergence": (0..4).map(row).collect::<Vec<_>>(),
        "link_energy": vec![vec![1.0; 4]; 4],
        "required_links": [{"from": "d1", "to": "d2"}],
    });
    let ran = run(&["plan", "-"], problem.to_string());
    let note = "the link d1 → d2 carries almost nothing, but is required and paid for";
    assert!(ran.out.contains(note) && !ran.out.contains("the link d0"), "{}{}", ran.out, ran.err);
    let ran = run(&["explain", "-", "--device", "d2"], problem.to_string());
    assert!(
        ran.out.contains("No value of the link's energy would make it drop d0."),
        "{}",
        ran.out
    );
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
    assert_eq!(plan.bound, stlf_planning::bound::BoundKind::Paper);
    let (problem, again) = plan.restore().unwrap();
    let terms = stlf_planning::plan::evaluate(
        &problem,
        again.bound,
        &again.roles,
        &again.links,
        &again.handovers,
    );
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
fn a_plan_warns_of_targets_that_no_source_is_close_to() {
    let problem = |divergence: f64| {
        json!({"format": "stlf-problem/1", "preset": "balanced",
            "devices": [{"name": "gate", "labeled": 300, "unlabeled": 0, "source_error": 0.2}, {"name": "roof", "labeled": 0, "unlabeled": 200}],
            "divergence": [[0, divergence], [divergence, 0]], "link_energy": [[null, 1], [1, null]]})
    };
    let warned = |divergence: f64| {
        let ran = run(&["plan", "-"], problem(divergence).to_string());
        ran.out
            .lines()
            .filter(|line| line.starts_with("note"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(warned(1.2), [] as [String; 0]);
    let far = warned(1.75);
    assert!(far.len() == 1 && far[0].contains("closer to roof than 1.75 of at most 2"), "{far:?}");
    let stranger = warned(1.95);
    assert!(stranger.len() == 1 && stranger[0].contains("no source is near roof"), "{stranger:?}");
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
    let plan = read.recv_timeout(stlf_testing::DEADLINE).unwrap();
    let plan: serde_json::Value = serde_json::from_slice(&plan).unwrap();
    assert_eq!(plan["format"], "stlf-plan/2");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
