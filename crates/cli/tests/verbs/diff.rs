//! What the user sees of two plans side by side.

use crate::common::{cars, example, run};
use serde_json::{Value, json};

fn plan(problem: &Value, options: &[&str]) -> Value {
    let args = [&["plan", "-", "--format", "json"], options].concat();
    let ran = run(&args, problem.to_string());
    assert_eq!(ran.code, 0, "{}", ran.err);
    serde_json::from_str(&ran.out).unwrap()
}

/// Compares two plans by way of files.
fn compared(a: &Value, b: &Value, options: &[&str]) -> crate::common::Ran {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.json");
    std::fs::write(&file, a.to_string()).unwrap();
    let args = [&["diff", file.to_str().unwrap(), "-"], options].concat();
    run(&args, b.to_string())
}

#[test]
fn a_plan_is_the_same_as_itself() {
    let a = plan(&cars(), &[]);
    let ran = compared(&a, &a, &[]);
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.as_str()),
        (0, "The plans are the same.\n", "")
    );
}

#[test]
fn roles_links_weights_and_costs_are_compared() {
    let (a, b) = (plan(&cars(), &[]), plan(&cars(), &["--phi-e", "0.5"]));
    let ran = compared(&a, &b, &[]);
    assert_eq!((ran.code, ran.err.as_str()), (1, ""));
    insta::assert_snapshot!("diff-text", ran.out);
    let ran = compared(&a, &b, &["--format", "json"]);
    assert_eq!((ran.code, ran.err.as_str()), (1, ""));
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&document["format"], &document["same"]), (&json!("stlf-diff/1"), &json!(false)));
    assert_eq!(document["objective"]["before"], a["objective"]);
}

#[test]
fn a_device_that_came_or_went_is_named() {
    let mut more = cars();
    more["devices"][4]["name"] = json!("F");
    let ran = compared(&plan(&cars(), &[]), &plan(&more, &[]), &[]);
    assert_eq!(ran.code, 1);
    insta::assert_snapshot!("diff-devices", ran.out);
}

#[test]
fn another_cost_alone_is_no_difference() {
    let mut dearer = cars();
    dearer["devices"][2]["source_error"] = json!(0.131);
    let ran = compared(&plan(&cars(), &[]), &plan(&dearer, &[]), &["--threshold", "0.1"]);
    assert_eq!(ran.code, 0, "{}", ran.out);
    assert!(ran.out.contains("The same roles and links, at a different cost."));
}

#[test]
fn what_is_no_plan_is_bad_input() {
    let file = example("five-cars.json");
    let ran = run(&["diff", file.to_str().unwrap(), "-"], plan(&cars(), &[]).to_string());
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert_eq!(run(&["diff", "-", "-"], "").code, 2);
    assert_eq!(run(&["diff", "missing.json", "-"], "").code, 2);
}
