//! Reference cases with proven optima: the paper's own instances and the OR-Library.
//!
//! They are not part of the repository. `STLF_SHARED` names a folder that has them in `golden/`;
//! where it is not set the tests say so and check nothing.

use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

use serde_json::{Value, json};
use stlf_formats::ProblemFile;
use stlf_planning::Plan;
use stlf_planning::Problem;
use stlf_planning::Role;
use stlf_planning::plan::Status;
use stlf_planning::planner::{self, Method, Outcome, Settings};
use stlf_testing::reference_cases;

fn read(path: &Path) -> Value {
    let mut text = String::new();
    flate2::read::GzDecoder::new(File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn parse(value: &Value) -> Problem {
    let bytes = serde_json::to_vec(value).unwrap();
    ProblemFile::read(&bytes).unwrap().into_problem(None).unwrap()
}

/// The published divergences are in percent, and their files are older than the field that says so.
fn parse_published(case: &Value) -> Problem {
    let mut problem = case["problem"].clone();
    problem["scale"] = json!("free");
    parse(&problem)
}

fn plan(problem: &Problem, method: Method) -> Plan {
    let settings = Settings::default().by(method);
    match planner::plan(problem, &settings, &mut |_| ControlFlow::Continue(())) {
        Outcome::Planned(plan) => *plan,
        Outcome::Infeasible(reason) => panic!("{reason}"),
    }
}

fn assert_close(value: f64, expected: f64, what: &str) {
    assert!((value - expected).abs() <= 1e-6 * expected.abs(), "{what}: {value}, not {expected}");
}

fn published() -> Option<serde_json::Map<String, Value>> {
    let Value::Object(cases) = read(&reference_cases()?.join("published-instances.json.gz")) else {
        panic!("the published instances are an object")
    };
    assert!(cases.len() >= 200);
    Some(cases)
}

#[test]
fn exact_finds_the_enumerated_optimum_of_every_published_instance() {
    let Some(cases) = published() else { return };
    for (key, case) in &cases {
        let problem = parse_published(case);
        let plan = plan(&problem, Method::Exact);
        assert_close(plan.objective(), case["exact"]["objective"].as_f64().unwrap(), key);
        assert_eq!(plan.status, Status::Optimal, "{key}");
        assert_eq!(plan.lower_bound, plan.objective(), "{key}");
        let sources: Vec<&str> = plan.with_role(Role::Source).map(|i| problem.name(i)).collect();
        let expected: Vec<&str> = case["exact"]["sources"]
            .as_array()
            .unwrap()
            .iter()
            .map(|name| name.as_str().unwrap())
            .collect();
        assert_eq!(sources, expected, "{key}");
    }
}

#[test]
fn exact_agrees_with_the_roles_of_every_converged_published_run_and_costs_no_more() {
    let Some(cases) = published() else { return };
    let mut compared = 0;
    for (key, case) in &cases {
        let Some(run) = case.get("published") else { continue };
        let plan = plan(&parse_published(case), Method::Exact);
        let psi = run["psi"].as_array().unwrap();
        for (device, role) in plan.roles.iter().enumerate() {
            let target = psi[device].as_f64().unwrap() >= 0.5;
            assert_eq!(*role == Role::Target, target, "{key}: device {device}");
        }
        assert!(plan.objective() <= run["objective"].as_f64().unwrap(), "{key}");
        compared += 1;
    }
    assert!(compared >= 39);
}

#[test]
fn the_successive_method_ends_descends_and_polishes_to_within_a_percent() {
    let Some(cases) = published() else { return };
    let (mut worst_rounded, mut worst_polished) = (0.0f64, 0.0f64);
    for (key, case) in &cases {
        let plan = plan(&parse_published(case), Method::Successive);
        let trace = &plan.solver.trace;
        assert!(trace.len() >= 2, "{key}: it must iterate");
        for pair in trace.windows(2) {
            assert!(pair[1] <= pair[0] * (1.0 + 1e-9), "{key}: {} after {}", pair[1], pair[0]);
        }
        let report = plan.solver.successive.unwrap();
        let exact = case["exact"]["objective"].as_f64().unwrap();
        assert_close(report.exact_objective, exact, key);
        worst_rounded = worst_rounded.max(report.rounded_objective / exact - 1.0);
        worst_polished = worst_polished.max(plan.objective() / exact - 1.0);
    }
    println!(
        "above the optimum at worst: rounded {:.2} %, polished {:.4} %",
        100.0 * worst_rounded,
        100.0 * worst_polished
    );
    assert!(worst_polished <= 0.01);
}

#[test]
fn exact_finds_the_optimum_of_every_or_library_instance() {
    let Some(folder) = reference_cases() else { return };
    let mut solved = 0;
    for entry in std::fs::read_dir(folder.join("orlib")).unwrap() {
        let case = read(&entry.unwrap().path());
        let name = case["name"].as_str().unwrap();
        let plan = plan(&parse(&as_problem(&case)), Method::Exact);
        assert_close(plan.objective(), case["optimum"].as_f64().unwrap(), name);
        assert_eq!(plan.status, Status::Optimal, "{name}");
        solved += 1;
    }
    assert!(solved >= 15);
}

/// Devices are facilities, then customers; any facility serves a facility for nothing.
fn as_problem(case: &Value) -> Value {
    let opening = case["open_cost"].as_array().unwrap();
    let service = case["service_cost_by_customer"].as_array().unwrap();
    let (m, n) = (opening.len(), service.len());
    let source: Vec<Value> = opening.iter().cloned().chain(vec![Value::Null; n]).collect();
    let link: Vec<Vec<Value>> = (0..m + n)
        .map(|from| {
            if from >= m {
                return vec![Value::Null; m + n];
            }
            (0..m + n)
                .map(|to| if to < m { json!(0.0) } else { service[to - m][from].clone() })
                .collect()
        })
        .collect();
    json!({ "format": "stlf-problem/1", "costs": { "source": source, "link": link } })
}
