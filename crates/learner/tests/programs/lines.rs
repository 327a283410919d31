//! The schema of the lines is in the repository, and takes what both sides write.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;
use stlf_learner::message::{Answer, Ask, PROTOCOL, Reply, Request, Welcome, schema};

fn requests() -> Vec<Request> {
    let file = |name: &str| name.to_owned();
    let asks = [
        Ask::Hello { protocol: file(PROTOCOL), folder: file("/tmp/x"), seed: 7 },
        Ask::Describe { to: file("1-samples.safetensors") },
        Ask::Train { rows: file("r"), start: None, to: file("m"), seed: u64::MAX },
        Ask::Train { rows: file("r"), start: Some(file("s")), to: file("m"), seed: 0 },
        Ask::Predict { model: file("m"), rows: file("r"), altered: None, to: file("p") },
        Ask::Predict { model: file("m"), rows: file("r"), altered: Some(3), to: file("p") },
        Ask::Adapt {
            rows: file("r"),
            teacher: file("t"),
            start: file("s"),
            to: file("m"),
            seed: 1,
        },
        Ask::Cancel { request: 3 },
        Ask::Stop {},
    ];
    asks.into_iter().enumerate().map(|(id, ask)| Request { id: id as u64, ask }).collect()
}

fn replies() -> Vec<Reply> {
    let welcome = Welcome {
        protocol: PROTOCOL.to_owned(),
        name: "pump-net/3".to_owned(),
        classes: vec!["ok".to_owned(), "worn".to_owned()],
        model: BTreeMap::from([("bias".to_owned(), vec![2])]),
        adapts: false,
    };
    let adapts = Welcome { adapts: true, ..welcome.clone() };
    let answers = [
        Answer::Ok(serde_json::to_value(welcome).unwrap()),
        Answer::Ok(serde_json::to_value(adapts).unwrap()),
        Answer::Ok(json!({ "samples": 3 })),
        Answer::Ok(json!({})),
        Answer::Progress { done: 1, total: 0 },
        Answer::Cancelled {},
        Answer::Error { message: "no such file".to_owned() },
    ];
    answers.into_iter().map(|answer| Reply { id: 1, answer }).collect()
}

#[test]
fn the_schema_takes_every_line_and_no_other() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let requests = requests().into_iter().map(|line| serde_json::to_value(line).unwrap());
    let replies = replies().into_iter().map(|line| serde_json::to_value(line).unwrap());
    for line in requests.chain(replies) {
        assert!(validator.is_valid(&line), "{line}");
    }
    for line in [
        json!({}),
        json!({ "id": 1 }),
        json!({ "ok": {} }),
        json!({ "id": -1, "ok": {} }),
        json!([]),
    ] {
        assert!(!validator.is_valid(&line), "{line}");
    }
}

#[test]
fn the_schema_in_the_repository_is_this_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("stlf-learner-1.schema.json");
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let now = format!("{:#}\n", schema());
    assert!(kept == now, "{}: write `stlf schema learner` there", path.display());
}
