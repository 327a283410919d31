//! Bad input gets one clear error with a hint, the right exit code, and leaves no file behind.

use crate::common::{cars, run, stlf};
use serde_json::{Value, json};

/// Plans the text, asking for an output file, and returns what the user is told.
fn refused(text: impl Into<Vec<u8>>, code: i32) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.json");
    let ran = run(&["plan", "-", "-o", file.to_str().unwrap()], text);
    assert_eq!(ran.code, code, "{}", ran.err);
    assert_eq!(ran.out, "");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a file was left behind");
    assert!(ran.err.starts_with("error: "), "{}", ran.err);
    assert!(ran.err.contains("\nhint: "), "{}", ran.err);
    assert_eq!(ran.err.lines().count(), 2, "{}", ran.err);
    ran.err
}

/// Returns the problem of the cars with one change.
fn changed(change: impl FnOnce(&mut Value)) -> String {
    let mut value = cars();
    change(&mut value);
    value.to_string()
}

#[test]
fn every_kind_of_bad_input_is_told_apart() {
    let cases: Vec<(&str, String)> = vec![
        ("empty file", String::new()),
        ("not JSON", "labels: none".into()),
        ("cut off", include_str!("../../examples/five-cars.json")[..300].into()),
        ("wrong shape", changed(|v| v["divergence"] = json!([[0, 1], [1, 0]]))),
        ("ragged row", changed(|v| drop(v["link_energy"][2].as_array_mut().unwrap().pop()))),
        ("not a number", include_str!("../../examples/five-cars.json").replacen("3.6", "NaN", 1)),
        ("overflow", include_str!("../../examples/five-cars.json").replacen("3.6", "1e400", 1)),
        ("absurdly large", changed(|v| v["link_energy"][0][1] = json!(1e200))),
        ("negative energy", changed(|v| v["link_energy"][3][1] = json!(-2.5))),
        ("negative divergence", changed(|v| v["divergence"][0][4] = json!(-0.1))),
        ("negative error", changed(|v| v["devices"][1]["source_error"] = json!(-0.1))),
        ("negative count", changed(|v| v["devices"][1]["labeled"] = json!(-1))),
        ("no samples", changed(|v| v["devices"][4]["unlabeled"] = json!(0))),
        (
            "missing count",
            changed(|v| drop(v["devices"][4].as_object_mut().unwrap().remove("labeled"))),
        ),
        (
            "missing name",
            changed(|v| drop(v["devices"][4].as_object_mut().unwrap().remove("name"))),
        ),
        ("duplicate name", changed(|v| v["devices"][4]["name"] = json!("B"))),
        ("unknown name", changed(|v| v["forbidden_links"] = json!([{"from": "A", "to": "X1"}]))),
        ("unknown field", changed(|v| v["divergences"] = json!([]))),
        ("unknown nested field", changed(|v| v["devices"][0]["lables"] = json!(3))),
        ("delta of one", changed(|v| v["bound"] = json!({"delta": 1}))),
        ("unknown version", changed(|v| v["format"] = json!("stlf-problem/2"))),
        ("a plan", changed(|v| v["format"] = json!("stlf-plan/1"))),
        ("wrong type", changed(|v| v["weights"] = json!("heavy"))),
        ("no links", changed(|v| drop(v.as_object_mut().unwrap().remove("link_energy")))),
        ("links twice", changed(|v| v["links"] = json!([]))),
        ("costs and more", changed(|v| v["costs"] = json!({"source": [1], "link": [[0]]}))),
        ("pin without labels", changed(|v| v["devices"][4]["role"] = json!("source"))),
        (
            "contradictory pins",
            changed(|v| {
                v["devices"][1]["role"] = json!("target");
                v["required_links"] = json!([{"from": "B", "to": "E"}]);
            }),
        ),
        (
            "required and forbidden",
            changed(|v| {
                v["required_links"] = json!([{"from": "B", "to": "E"}]);
                v["forbidden_links"] = json!([{"from": "B", "to": "E"}]);
            }),
        ),
    ];
    let told: Vec<String> =
        cases.into_iter().map(|(name, text)| format!("# {name}\n{}", refused(text, 2))).collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn percent_where_a_share_is_meant_is_refused_unless_the_file_says_so() {
    let error = changed(|v| v["devices"][1]["source_error"] = json!(6));
    let told = refused(error, 2);
    assert!(told.contains("source_error (B): 6 is not between 0 and 1"), "{told}");
    assert!(told.contains("hint: did you mean 0.06? "), "{told}");
    let divergence = changed(|v| v["divergence"][0][4] = json!(9));
    let told = refused(divergence, 2);
    assert!(told.contains("divergence[0][4] (A → E): 9 is not between 0 and 2"), "{told}");
    assert!(told.contains("did you mean 0.09? "), "{told}");
    let absurd = refused(changed(|v| v["devices"][1]["source_error"] = json!(600)), 2);
    assert!(!absurd.contains("did you mean"), "{absurd}");
    // The ends are allowed, and so is all where the file says that its scale is its own.
    let ends = changed(|v| {
        v["devices"][1]["source_error"] = json!(1);
        v["divergence"][0][4] = json!(2);
    });
    assert_eq!(run(&["plan", "-"], ends).code, 0);
    let free = changed(|v| {
        v["devices"][1]["source_error"] = json!(80);
        v["scale"] = json!("free");
    });
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.json");
    assert_eq!(run(&["plan", "-", "-o", plan.to_str().unwrap()], free).code, 0);
    // Its plan says so too, and is read again.
    assert_eq!(run(&["explain", plan.to_str().unwrap()], "").code, 0);
}

#[test]
fn a_problem_without_a_plan_says_who_is_left_out() {
    let nobody = changed(|v| {
        for device in v["devices"].as_array_mut().unwrap() {
            device["labeled"] = json!(0);
            device["unlabeled"] = json!(100);
        }
    });
    let alone = changed(|v| {
        for sender in 0..5 {
            v["link_energy"][sender][4] = json!(null);
        }
    });
    let pinned = changed(|v| {
        for device in v["devices"].as_array_mut().unwrap() {
            device["role"] = json!("target");
        }
    });
    let told = [nobody, alone, pinned].map(|text| refused(text, 3)).join("\n");
    insta::assert_snapshot!(told);
}

#[test]
fn a_hundred_megabytes_of_garbage_do_no_harm() {
    let garbage: Vec<u8> =
        (0..1_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    refused(garbage.repeat(100), 2);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("garbage.json");
    let rows = "[0.5,1,2,3],".repeat(100_000_000 / 12);
    let text = format!("{{\"format\":\"stlf-problem/1\",\"divergence\":[{rows}[0]],\"what\":1}}");
    std::fs::write(&path, text).unwrap();
    let ran = run(&["plan", path.to_str().unwrap()], "");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("what: unknown field"), "{}", ran.err);
}

#[test]
fn wrong_paths_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("nothing.json");
    let ran = run(&["plan", missing.to_str().unwrap()], "");
    assert_eq!(ran.code, 2);
    assert!(ran.err.starts_with("error: there is no file "), "{}", ran.err);
    let ran = run(&["plan", folder.path().to_str().unwrap()], "");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("is a directory"), "{}", ran.err);
    let nowhere = folder.path().join("no/where.json");
    let ran = run(&["plan", "-", "-o", nowhere.to_str().unwrap()], cars().to_string());
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("there is no directory"), "{}", ran.err);
}

#[test]
fn link_tables_are_checked_by_row_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let links = folder.path().join("links.csv");
    let mut problem = cars();
    for field in ["divergence", "link_energy"] {
        problem.as_object_mut().unwrap().remove(field);
    }
    let told = |table: &str| {
        std::fs::write(&links, table).unwrap();
        let ran = run(&["plan", "-", "--links", links.to_str().unwrap()], problem.to_string());
        assert_eq!(ran.code, 2, "{}", ran.err);
        ran.err
    };
    let head = "from,to,divergence,energy\nB,E,0.4,3\n";
    assert!(told(&format!("{head}B,E,0.4,3\n")).contains("row 3: B → E is already in row 2"));
    assert!(
        told(&format!("{head}B,F,0.4,3\n")).contains("row 3, column to: there is no device \"F\"")
    );
    assert!(told(&format!("{head}B,A,0.4\n")).contains("row 3: has 3 columns, expected 4"));
    assert!(told(&format!("{head}B,A,0.4,-3\n")).contains("row 3, column energy: -3 is negative"));
    let percent = told(&format!("{head}B,A,40,3\n"));
    assert!(
        percent.contains("row 3, column divergence (B → A): 40 is not between 0 and 2"),
        "{percent}"
    );
    assert!(percent.contains("did you mean 0.4?"), "{percent}");
    assert!(told("from,to,divergence,enrgy\n").contains("did you mean `energy`?"));
    assert!(told("").contains("the file is empty"));
    assert!(told("PAR1").contains("Parquet"));
    std::fs::write(&links, head).unwrap();
    let ran = run(&["plan", "-", "--links", links.to_str().unwrap()], cars().to_string());
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("divergence: the links are given twice"), "{}", ran.err);
}

#[test]
fn options_that_contradict_the_problem_are_refused() {
    let costs = json!({"format": "stlf-problem/1",
        "costs": {"source": [1, 2], "link": [[0, 3], [4, 0]]}})
    .to_string();
    for option in [["--bound", "pooled"], ["--phi-e", "2"], ["--preset", "paper"]] {
        let ran = run(&["plan", "-", option[0], option[1]], costs.clone());
        assert_eq!(ran.code, 2);
        assert!(ran.err.contains("raw costs"), "{}", ran.err);
    }
    let pooled = changed(|v| v["bound"] = json!({"kind": "pooled"}));
    let ran = run(&["plan", "-", "--solver", "successive"], pooled);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("hint: add --bound paper"), "{}", ran.err);
    for wrong in [["--time-limit", "0"], ["--gap", "-1"], ["--phi-s", "nan"], ["--solver", "best"]]
    {
        stlf().args(["plan", "-"]).args(wrong).assert().code(2);
    }
}

#[test]
fn pictures_larger_than_memory_are_refused_before_any_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let ran = run(&["data", "inspect", "--images", path, "--image-size", "100000"], "");
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("--image-size") && ran.err.contains("4096"), "{}", ran.err);
}
