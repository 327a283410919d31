//! The published schemas accept what the program reads and writes, and refuse what it refuses.

use serde_json::{Value, json};
use stlf_formats::{
    MixtureFile, PlanFile, ProblemFile, Run, mixture_schema, plan_schema, problem_schema,
};
use stlf_planning::planner::{Method, Outcome, optimum};

const EXAMPLES: [&str; 2] = [
    include_str!("../../../cli/examples/five-cars.json"),
    include_str!("../../../cli/examples/ten-devices.json"),
];

fn assert_valid(schema: &Value, document: &Value) {
    let validator = jsonschema::validator_for(schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(document).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn examples_and_what_comes_back_from_a_problem_are_valid() {
    for text in EXAMPLES {
        assert_valid(&problem_schema(), &serde_json::from_str(text).unwrap());
        let problem = ProblemFile::read(text.as_bytes()).unwrap().into_problem(None).unwrap();
        let file = serde_json::to_value(ProblemFile::from_problem(&problem)).unwrap();
        assert_valid(&problem_schema(), &file);
    }
}

#[test]
fn link_lists_and_raw_costs_are_valid() {
    let listed = json!({"format": "stlf-problem/1",
        "devices": [{"name": "a", "labeled": 1, "unlabeled": 0, "source_error": 0.5, "role": "source"},
                    {"name": "b", "labeled": 0, "unlabeled": 9}],
        "links": [{"from": "a", "to": "b", "divergence": 0.5, "energy": 2}],
        "bound": {"complexity": "massart"}, "required_links": [{"from": "a", "to": "b"}]});
    let costs = json!({"format": "stlf-problem/1",
        "costs": {"source": [1, null], "link": [[0, 3], [null, 0]]}});
    for document in [listed, costs] {
        assert_valid(&problem_schema(), &document);
        assert!(ProblemFile::read(document.to_string().as_bytes()).is_ok());
    }
}

#[test]
fn what_the_reader_refuses_the_schema_refuses() {
    let validator = jsonschema::validator_for(&problem_schema()).unwrap();
    let changes: [fn(&mut Value); 5] = [
        |v| v["format"] = json!("stlf-problem/2"),
        |v| v["wieghts"] = json!({}),
        |v| v["devices"][0]["labeled"] = json!(-1),
        |v| v["link_energy"][0][1] = json!("x"),
        |v| v["bound"] = json!({"kind": "other"}),
    ];
    for change in changes {
        let mut document: Value = serde_json::from_str(EXAMPLES[0]).unwrap();
        change(&mut document);
        assert!(ProblemFile::read(document.to_string().as_bytes()).is_err());
        assert!(!validator.is_valid(&document), "{document}");
    }
}

#[test]
fn mixtures_are_valid_and_come_back_and_others_are_refused() {
    let document = json!({"format": "stlf-mixture/1", "device": "gate", "role": "target", "epoch": 3,
        "classes": ["calm", "storm"],
        "input": {"shape": [1, 1, 2], "scaling": "units", "columns": ["x", "y"],
                  "units": [[{"centre": 0.1, "deviation": 2.0}, {"centre": 1.0, "deviation": 0.0, "limit": 10.0}]]},
        "network": [{"linear": {"outputs": 4}}, "relu", {"dropout": {"p": 0.5}}, {"linear": {"outputs": 2}}],
        "combine": "predictions",
        "members": [{"name": "pier", "weight": 1.0, "file": "pier.safetensors", "sha256": "00"}],
        "plan": {"file": "plan.json", "sha256": "00"}});
    assert_valid(&mixture_schema(), &document);
    let read = MixtureFile::read(document.to_string().as_bytes()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), document);
    let mut of_series = document.clone();
    of_series["input"]["shape"] = json!([2, 1, 64]);
    of_series["input"]["series"] = json!({"window": 64, "stride": 32, "time": "t"});
    of_series["network"] = json!([{"conv1d": {"channels": 4, "kernel": 7}}, "max-pool1d", "relu", {"linear": {"outputs": 2}}]);
    assert_valid(&mixture_schema(), &of_series);
    let read = MixtureFile::read(of_series.to_string().as_bytes()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), of_series);
    let validator = jsonschema::validator_for(&mixture_schema()).unwrap();
    let changes: [fn(&mut Value); 4] = [
        |v| v["format"] = json!("stlf-mixture/2"),
        |v| v["combine"] = json!("votes"),
        |v| v["members"][0]["colour"] = json!("red"),
        |v| v["network"][1] = json!("tanh"),
    ];
    for change in changes {
        let mut document = document.clone();
        change(&mut document);
        assert!(MixtureFile::read(document.to_string().as_bytes()).is_err());
        assert!(!validator.is_valid(&document), "{document}");
    }
}

#[test]
fn plans_are_valid_and_come_back() {
    let run = Run { seconds: 0.5, interrupted: false };
    for text in EXAMPLES {
        let problem = ProblemFile::read(text.as_bytes()).unwrap().into_problem(None).unwrap();
        let Outcome::Planned(plan) = optimum(&problem) else { panic!("the examples have plans") };
        let file = PlanFile::new(&problem, &plan, run);
        let document = serde_json::to_value(&file).unwrap();
        assert_valid(&plan_schema(), &document);
        let read = PlanFile::read(document.to_string().as_bytes()).unwrap();
        assert_eq!(read, file);
        let (problem_again, plan_again) = read.restore().unwrap();
        assert_eq!(problem_again, problem);
        assert_eq!(plan_again, *plan);
    }
}

#[test]
fn a_plan_that_does_not_exist_is_valid_too() {
    let costs = json!({"format": "stlf-problem/1", "costs": {"source": [null], "link": [[0]]}});
    let problem =
        ProblemFile::read(costs.to_string().as_bytes()).unwrap().into_problem(None).unwrap();
    let Outcome::Infeasible(reason) = optimum(&problem) else { panic!("nobody can train") };
    let run = Run { seconds: 0.0, interrupted: false };
    let file = PlanFile::infeasible(&problem, &reason, Method::Exact, run);
    assert_valid(&plan_schema(), &serde_json::to_value(&file).unwrap());
    assert!(file.restore().unwrap_err().to_string().starts_with("status: infeasible"));
}

#[test]
fn a_plan_that_contradicts_itself_is_refused() {
    let problem = ProblemFile::read(EXAMPLES[0].as_bytes()).unwrap().into_problem(None).unwrap();
    let Outcome::Planned(plan) = optimum(&problem) else { panic!("the examples have plans") };
    let run = Run { seconds: 0.5, interrupted: false };
    let file = PlanFile::new(&problem, &plan, run);
    let said = |change: fn(&mut PlanFile)| {
        let mut changed = file.clone();
        change(&mut changed);
        changed.restore().unwrap_err().to_string()
    };
    assert!(said(|f| f.links[0].weight = 0.1).contains("add up to"));
    assert!(
        said(|f| f.links[0].from = "Z".into()).contains("links[0].from: there is no device \"Z\"")
    );
    assert!(said(|f| f.targets[0] = f.sources[0].clone()).contains("already has a role"));
    assert!(said(|f| f.problem = None).contains("problem: is not in this plan"));
    assert!(said(|f| f.terms = None).contains("terms: is missing"));
    let checked = |change: fn(&mut PlanFile)| {
        let mut changed = file.clone();
        change(&mut changed);
        changed.restore_checked().unwrap_err().to_string()
    };
    let other = "objective: this is not a plan for this problem";
    assert!(checked(|f| f.objective = Some(1.0)).starts_with(other));
    assert!(checked(|f| f.lower_bound = Some(1e9)).contains("is above the proven objective"));
    assert!(checked(|f| f.lower_bound = Some(0.0)).contains("is below the proven objective"));
    // Without labels it costs no finite amount as a source.
    let unlabeled = checked(|f| {
        f.targets.retain(|name| name != "E");
        f.links.retain(|link| link.to != "E");
        f.sources.push("E".into());
    });
    assert!(unlabeled.starts_with(other), "{unlabeled}");
}
