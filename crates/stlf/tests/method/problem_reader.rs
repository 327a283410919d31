//! The problem reader never panics, names what is wrong, and loses nothing on the way.

use proptest::prelude::*;
use serde_json::{Value, json};
use stlf_formats::{LinkTable, PlanFile, ProblemFile};

const CARS: &str = include_str!("../../../cli/examples/five-cars.json");
const TEN: &str = include_str!("../../../cli/examples/ten-devices.json");

/// Reads all the way to a problem, whole and as a stream, which must agree.
fn read(bytes: &[u8]) {
    let streamed = ProblemFile::read_from(|| Ok(bytes)).ok();
    let whole = ProblemFile::read(bytes).ok();
    assert_eq!(whole, streamed);
    if let Some(file) = whole {
        let _ = file.into_problem(None);
    }
}

fn error(value: &Value) -> (String, String) {
    let result = ProblemFile::read(value.to_string().as_bytes()).and_then(|f| f.into_problem(None));
    let error = result.expect_err("a bad problem was accepted");
    (error.to_string(), error.hint().unwrap_or_default().to_owned())
}

fn any_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        Just("format".to_owned()),
        Just("devices".to_owned()),
        Just("divergence".to_owned()),
        Just("link_energy".to_owned()),
        Just("links".to_owned()),
        Just("costs".to_owned()),
        Just("source".to_owned()),
        Just("link".to_owned()),
        Just("name".to_owned()),
        Just("labeled".to_owned()),
        Just("bound".to_owned()),
        any::<String>(),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(json!("stlf-problem/1")),
    ];
    leaf.prop_recursive(5, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// Replaces the value that a walk through the document by these steps ends at.
fn replace(value: &mut Value, steps: &[usize], with: Value) {
    let Some((step, rest)) = steps.split_first() else {
        *value = with;
        return;
    };
    match value {
        Value::Array(items) if !items.is_empty() => {
            let k = step % items.len();
            replace(&mut items[k], rest, with);
        }
        Value::Object(map) if !map.is_empty() => {
            let k = step % map.len();
            if let Some((_, item)) = map.iter_mut().nth(k) {
                replace(item, rest, with);
            }
        }
        other => *other = with,
    }
}

/// A small problem with every kind of field.
fn any_problem() -> impl Strategy<Value = Value> {
    let n = 4usize;
    let number = 0.0..10.0f64;
    let energy = prop::option::weighted(0.8, number.clone());
    (
        prop::collection::vec((0u64..500, 1u64..500, 0.0..1.0f64), n),
        prop::collection::vec(0.0..2.0f64, n * n),
        prop::collection::vec(energy, n * n),
        (number.clone(), number.clone(), number),
        (1e-6..0.5f64, prop_oneof![Just(json!("massart")), Just(json!("none")), Just(json!(0.25))]),
        (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()),
    )
        .prop_map(move |(devices, d, k, phi, (delta, complexity), flags)| {
            let (paper, mean, as_list, noise) = flags;
            let devices: Vec<Value> = devices
                .iter()
                .enumerate()
                .map(|(i, (labeled, unlabeled, error))| {
                    json!({"name": format!("n{i}"), "labeled": labeled, "unlabeled": unlabeled,
                           "source_error": error})
                })
                .collect();
            let mut problem = json!({
                "format": "stlf-problem/1",
                "devices": devices,
                "weights": {"source": phi.0, "target": phi.1, "energy": phi.2},
                "bound": {"kind": if paper { "paper" } else { "pooled" }, "delta": delta,
                          "complexity": complexity},
                "energy_unit": if mean { "mean-link" } else { "joules" },
                "forbidden_links": [{"from": "n0", "to": "n1"}],
            });
            if as_list {
                let links: Vec<Value> = (0..n * n)
                    .filter(|c| c / n != c % n)
                    .filter_map(|c| {
                        let (from, to) = (format!("n{}", c / n), format!("n{}", c % n));
                        k[c].map(
                            |e| json!({"from": from, "to": to, "divergence": d[c], "energy": e}),
                        )
                    })
                    .collect();
                problem["links"] = links.into();
            } else {
                problem["divergence"] =
                    d.chunks(n).collect::<Vec<_>>().into_iter().map(|r| json!(r)).collect();
                problem["link_energy"] = k.chunks(n).map(|r| json!(r)).collect();
            }
            if noise {
                problem["disagreement"] = json!(vec![vec![vec![0.5; n]; n]; n]);
            }
            problem
        })
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read(&bytes);
        let _ = PlanFile::read(&bytes);
        let _ = LinkTable::read_csv(bytes.as_slice(), 1e9);
    }

    #[test]
    fn arbitrary_json_does_no_harm(value in any_json()) {
        let text = value.to_string();
        read(text.as_bytes());
        if let Ok(plan) = PlanFile::read(text.as_bytes()) {
            let _ = plan.restore();
        }
    }

    #[test]
    fn a_problem_with_one_value_replaced_does_no_harm(
        steps in prop::collection::vec(any::<usize>(), 0..5),
        with in any_json(),
        cars in any::<bool>(),
    ) {
        let mut value: Value = serde_json::from_str(if cars { CARS } else { TEN }).unwrap();
        replace(&mut value, &steps, with);
        read(value.to_string().as_bytes());
    }

    #[test]
    fn a_problem_with_bytes_changed_does_no_harm(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        length in any::<prop::sample::Index>(),
    ) {
        let mut bytes = CARS.as_bytes().to_vec();
        for (at, byte) in &changes {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        read(&bytes);
        bytes.truncate(length.index(bytes.len()));
        read(&bytes);
    }

    #[test]
    fn a_problem_comes_back_from_its_file(value in any_problem()) {
        let problem = ProblemFile::read(value.to_string().as_bytes()).unwrap().into_problem(None);
        // Too few links can leave nothing to divide by, but never a refusal of what was generated.
        let problem = problem.unwrap();
        let file = ProblemFile::from_problem(&problem);
        let text = serde_json::to_string(&file).unwrap();
        let again = ProblemFile::read(text.as_bytes()).unwrap();
        prop_assert_eq!(&again, &file);
        prop_assert_eq!(again.into_problem(None).unwrap(), problem);
    }
}

#[test]
fn who_is_in_dispute_comes_back_from_its_file() {
    let problem = ProblemFile::read(CARS.as_bytes()).unwrap().into_problem(None).unwrap();
    assert_eq!(problem.in_dispute(), [] as [usize; 0]);
    let labeled: Vec<usize> = (0..problem.len()).filter(|&i| problem.eligible(i)).collect();
    let disputed = problem.clone().with_disputes([(labeled[0], labeled[1])]);
    assert_eq!(disputed.in_dispute(), labeled[..2]);
    let again = ProblemFile::from_problem(&disputed).into_problem(None).unwrap();
    assert_eq!(again.in_dispute(), disputed.in_dispute());
    assert_ne!(again, problem);
}

#[test]
fn that_a_fleet_wants_all_links_comes_back_from_its_file() {
    let problem = ProblemFile::read(CARS.as_bytes()).unwrap().into_problem(None).unwrap();
    assert_eq!(problem.all_alike(), [] as [usize; 0]);
    let all = problem.clone().with_all_links();
    assert!(!all.all_alike().is_empty() && all != problem);
    assert_eq!(ProblemFile::from_problem(&all).into_problem(None).unwrap(), all);
}

#[test]
fn raw_costs_come_back_from_their_file() {
    let value = json!({"format": "stlf-problem/1",
        "costs": {"source": [1.0, null, 2.5], "link": [[0, 1, 2], [null, 0, null], [3, 0.5, 0]]},
        "forbidden_links": [{"from": "d1", "to": "d3"}],
        "required_links": [{"from": "d3", "to": "d2"}]});
    let problem =
        ProblemFile::read(value.to_string().as_bytes()).unwrap().into_problem(None).unwrap();
    assert_eq!(problem.name(2), "d3");
    let file = ProblemFile::from_problem(&problem);
    let again = file.clone().into_problem(None).unwrap();
    assert_eq!(ProblemFile::from_problem(&again), file);
}

#[test]
fn a_preset_fills_what_is_not_given() {
    use stlf_planning::bound::Complexity;
    use stlf_planning::problem::{EnergyUnit, Model};
    let with = |change: fn(&mut Value)| {
        let mut value: Value = serde_json::from_str(CARS).unwrap();
        change(&mut value);
        let file = ProblemFile::read(value.to_string().as_bytes()).unwrap();
        match file.into_problem(None).unwrap().model() {
            Model::Measured(m) => (m.weights, m.bound, m.energy_unit),
            Model::Costs(_) => unreachable!("the cars are measured"),
        }
    };
    let (weights, bound, unit) = with(|v| v["preset"] = json!("paper"));
    assert_eq!(
        (weights.target, bound.complexity, unit),
        (5.0, Complexity::Massart, EnergyUnit::Joules)
    );
    let (weights, _, unit) = with(|v| {
        v["weights"] = json!({"target": 3});
        v["energy_unit"] = json!("joules");
    });
    assert_eq!((weights.target, weights.energy, unit), (3.0, 0.05, EnergyUnit::Joules));
    let (weights, bound, unit) = with(|v| {
        v.as_object_mut().unwrap().remove("preset");
    });
    assert_eq!(
        (weights.energy, bound.complexity, unit),
        (0.05, Complexity::None, EnergyUnit::Joules)
    );
}

/// A change to the cars, what the error then says, and what the hint says.
type Case = (fn(&mut Value), &'static str, &'static str);

#[test]
fn errors_name_the_field_and_the_device() {
    let cases: [Case; 23] = [
        (
            |v| v["link_energy"][3][1] = json!(-1),
            "link_energy[3][1] (D → B): -1 is negative",
            "at least 0",
        ),
        (
            |v| v["divergence"][0][4] = json!(-0.5),
            "divergence[0][4] (A → E): -0.5 is negative",
            "at least 0",
        ),
        (|v| v["divergence"][0][4] = json!(null), "divergence[0][4] (A → E): is missing", "null"),
        (
            |v| v["link_energy"][2] = json!([1, 2, 3]),
            "link_energy[2]: row 3 has 3 entries, expected 5",
            "sender",
        ),
        (|v| v["divergence"] = json!([[0.0]]), "divergence: has 1 row, expected 5", "one of each"),
        (
            |v| v["link_energy"][1][0] = json!("x"),
            "link_energy[1][0] (B → A): expected a number or null, found \"x\"",
            "schema",
        ),
        (
            |v| v["devices"][1]["labelled"] = json!(3),
            "devices[1].labelled: unknown field",
            "`labeled`",
        ),
        (|v| v["wieghts"] = json!({}), "wieghts: unknown field", "`weights`"),
        (
            |v| v["bound"] = json!({"delta": 1.0}),
            "bound.delta: 1 is not between 0 and 1",
            "1 − delta",
        ),
        (
            |v| v["bound"] = json!({"delta": 0}),
            "bound.delta: 0 is not between 0 and 1",
            "1 − delta",
        ),
        (
            |v| v["bound"] = json!({"kind": "poled"}),
            "bound.kind: \"poled\" is not known",
            "`pooled`",
        ),
        (
            |v| v["bound"] = json!({"complexity": "massard"}),
            "bound.complexity: is neither",
            "schema",
        ),
        (
            |v| v["devices"][2]["name"] = json!("A"),
            "devices[2].name: \"A\" is also the name of devices[0]",
            "differ",
        ),
        (
            |v| v["devices"][2]["labeled"] = json!(-4),
            "devices[2].labeled (C): expected a whole number of at least 0, found -4",
            "schema",
        ),
        (
            |v| v["devices"][2]["labeled"] = json!(u64::MAX),
            "devices[2].labeled (C): labeled + unlabeled is too large",
            "count",
        ),
        (
            |v| v["devices"][0]["source_error"] = json!(null),
            "devices[0].source_error (A): is missing",
            "own labels",
        ),
        (|v| v["bound"] = json!({"delta": 1e-308}), "bound.delta: 1e-308 is too small", "1e-300"),
        (
            |v| v["format"] = json!("stlf-problem/2"),
            "format: \"stlf-problem/2\" is not \"stlf-problem/1\"",
            "version",
        ),
        (
            |v| v["format"] = json!("stlf-plan/1"),
            "format: \"stlf-plan/1\" is not",
            "reads a problem, not a plan",
        ),
        (
            |v| v["required_links"] = json!([{"from": "B", "to": "F"}]),
            "required_links[0].to: there is no device \"F\"",
            "did you mean",
        ),
        (
            |v| v["forbidden_links"] = json!([{"from": "B", "to": "B"}]),
            "forbidden_links[0]: B cannot send to itself",
            "differ",
        ),
        (|v| v["links"] = json!([]), "divergence: the links are given twice", "table"),
        (
            |v| v["costs"] = json!({"source": [], "link": []}),
            "divergence: cannot be combined with costs",
            "keep one",
        ),
    ];
    for (change, message, hint) in cases {
        let mut value: Value = serde_json::from_str(CARS).unwrap();
        change(&mut value);
        let (said, hinted) = error(&value);
        assert!(said.contains(message), "expected {message:?}, got {said:?}");
        assert!(hinted.contains(hint), "expected {hint:?}, got {hinted:?} for {said:?}");
    }
}

#[test]
fn text_that_is_no_problem_is_told_from_one_that_is_wrong() {
    let error = |text: &str| ProblemFile::read(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(error(""), "line 1, column 1: the file is empty");
    assert_eq!(error(" \n"), "line 2, column 1: the file is empty");
    assert_eq!(error("garbage"), "line 1, column 1: not JSON: expected value");
    assert_eq!(error("[]"), "line 1, column 2: a problem is a JSON object");
    assert_eq!(error("{}"), "format: is missing");
    assert_eq!(
        error("{\"format\": \"stlf-problem/1\"} x"),
        "line 1, column 30: not JSON: trailing characters"
    );
    assert!(error(&CARS[..CARS.len() / 2]).ends_with("the text ends too early"));
    let version = error(r#"{"new": 1, "format": "stlf-problem/2"}"#);
    assert_eq!(version, "format: \"stlf-problem/2\" is not \"stlf-problem/1\"");
}

#[test]
fn what_json_cannot_say_is_explained() {
    let with = |number: &str| {
        let text = CARS.replacen("3.6", number, 1);
        let error = ProblemFile::read(text.as_bytes()).unwrap_err();
        (error.to_string(), error.hint().unwrap_or_default().to_owned())
    };
    let (message, hint) = with("NaN");
    assert!(message.starts_with("link_energy[0][2] (A → C): expected value"), "{message}");
    assert!(hint.contains("no NaN"), "{hint}");
    let (message, _) = with("1e999");
    assert!(message.starts_with("link_energy[0][2] (A → C): number out of range"), "{message}");
}

#[test]
fn neither_depth_nor_length_overwhelms_the_reader() {
    read("[".repeat(1_000_000).as_bytes());
    read("{\"a\":".repeat(1_000_000).as_bytes());
    read(format!("{{\"format\": {}", "[".repeat(100_000)).as_bytes());
    let long = "x".repeat(1_000_000);
    let unknown = format!("{{\"{long}\": 1}}");
    let error = ProblemFile::read(unknown.as_bytes()).unwrap_err();
    assert!(error.to_string().len() < 2000);
    assert!(error.hint().unwrap_or_default().len() < 2000);
    let row = format!("[{}1]", "1,".repeat(200_000));
    let wide = json!({"format": "stlf-problem/1", "devices": [], "divergence": []}).to_string();
    read(wide.replace("\"divergence\":[]", &format!("\"divergence\":[{row}]")).as_bytes());
}

#[test]
fn a_key_that_stands_twice_is_named() {
    let text = br#"{"format": "stlf-problem/1", "devices": [], "devices": []}"#;
    let error = ProblemFile::read(text).unwrap_err();
    assert!(error.to_string().starts_with("devices: is given twice (line 1"), "{error}");
}

#[test]
fn a_link_that_is_required_twice_is_required_once() {
    let mut problem: Value = serde_json::from_str(CARS).unwrap();
    let link = json!({"from": "B", "to": "E"});
    problem["bound"] = json!({"kind": "paper"});
    problem["required_links"] = json!([link, link]);
    let file = ProblemFile::read(problem.to_string().as_bytes()).unwrap();
    let problem = file.into_problem(None).unwrap();
    assert_eq!(problem.required().len(), 1);
    assert!(matches!(
        stlf_planning::planner::optimum(&problem),
        stlf_planning::planner::Outcome::Planned(_)
    ));
}
