//! What the user is told about a device.

use crate::common::{cars, example, run, settings};
use serde_json::{Value, json};

fn path(name: &str) -> String {
    example(name).to_str().unwrap().to_owned()
}

#[test]
fn every_device_gets_a_row_and_a_reason() {
    for name in ["five-cars", "ten-devices"] {
        let ran = run(&["explain", &path(&format!("{name}.json"))], "");
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        insta::assert_snapshot!(format!("explain-{name}"), ran.out);
    }
}

#[test]
fn one_device_is_explained_in_full() {
    for device in ["A", "C", "E"] {
        let ran = run(&["explain", &path("five-cars.json"), "--device", device], "");
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        insta::assert_snapshot!(format!("explain-car-{device}"), ran.out);
    }
}

#[test]
fn pins_required_links_and_dead_ends_are_named_as_reasons() {
    let mut problem = cars();
    problem["devices"][3]["role"] = json!("target");
    problem["required_links"] = json!([{"from": "B", "to": "E"}]);
    for sender in ["A", "B", "D"] {
        let sender = ["A", "B", "C", "D", "E"].iter().position(|n| *n == sender).unwrap();
        problem["link_energy"][sender][2] = json!(null);
    }
    let ran = run(&["explain", "-"], problem.to_string());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    insta::assert_snapshot!(ran.out);
}

#[test]
fn a_plan_explains_itself_or_with_its_problem_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.json");
    let file = file.to_str().unwrap();
    assert_eq!(run(&["plan", &path("five-cars.json"), "-o", file], "").code, 0);
    let from_problem = run(&["explain", &path("five-cars.json")], "").out;
    assert_eq!(run(&["explain", file], "").out, from_problem);

    let mut plan: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    plan.as_object_mut().unwrap().remove("problem");
    let ran = run(&["explain", "-"], plan.to_string());
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("--problem"), "{}", ran.err);
    let ran = run(&["explain", "-", "--problem", &path("five-cars.json")], plan.to_string());
    assert_eq!((ran.code, ran.out), (0, from_problem));

    let ran = run(&["explain", "-", "--problem", &path("ten-devices.json")], plan.to_string());
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    plan["terms"]["source"] = json!(7.0);
    let ran = run(&["explain", "-", "--problem", &path("five-cars.json")], plan.to_string());
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("is not a plan for this problem"), "{}", ran.err);
}

#[test]
fn json_is_one_document_with_exact_thresholds() {
    let ran = run(&["explain", &path("five-cars.json"), "--format", "json"], "");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(document["format"], "stlf-explanation/1");
    assert_eq!(document["devices"].as_array().unwrap().len(), 5);
    let flip = &document["devices"][0]["role_flip"];
    assert_eq!((&flip["quantity"], &flip["now"]), (&json!("source-error"), &json!(0.86)));
    let at = flip["at"].as_f64().unwrap();
    let role = |error: f64| {
        let mut problem = cars();
        problem["devices"][0]["source_error"] = json!(error);
        let plan = run(&["plan", "-", "--format", "json"], problem.to_string()).out;
        let plan: Value = serde_json::from_str(&plan).unwrap();
        plan["sources"].as_array().unwrap().contains(&json!("A"))
    };
    assert_eq!((role(at - 1e-6), role(at + 1e-6)), (true, false));
}

#[test]
fn an_unknown_device_is_told_whom_it_may_mean() {
    let ran = run(&["explain", &path("ten-devices.json"), "--device", "d11"], "");
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    settings().bind(|| insta::assert_snapshot!(ran.err));
}
