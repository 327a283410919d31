//! The live page's server: what it answers, and whom it refuses.

use crate::common::http::{ask, send};
use crate::common::served::Served;
use crate::common::{alike, example, run};
use serde_json::json;

#[test]
fn an_edit_is_planned_at_once() {
    let served = Served::start(&example("ten-devices.json"));
    let page = ask(served.port, "GET /", "");
    assert_eq!(page.status, 200);
    assert!(page.body.starts_with("<!doctype html>") && page.body.contains("stlf-report/1"));
    let state = ask(served.port, "GET /api/state", "").json();
    assert_eq!(state["runs"][0]["seeds"][0]["devices"].as_array().unwrap().len(), 10);
    let role = |edits: serde_json::Value| {
        let reply = ask(served.port, "POST /api/plan", &edits.to_string());
        assert_eq!(reply.status, 200, "{}", reply.body);
        let seed = &reply.json()["seed"];
        assert_eq!(seed["plans"][0]["status"], "optimal");
        seed["plans"][0]["roles"][0].as_str().unwrap().to_owned()
    };
    assert_eq!(role(json!({})), "source");
    assert_eq!(role(json!({"devices": [{"name": "d1", "pin": "target"}]})), "target");
    assert_eq!(role(json!({"devices": [{"name": "d1", "labeled": 0}]})), "target");
    let dear = json!({"weights": {"energy": 0.5}, "bound": "paper",
        "links": [{"from": "d1", "to": "d6", "divergence": 2.0, "energy": 9.0}]});
    assert_eq!(role(dear), "source");
    assert_eq!(ask(served.port, "GET /api/progress", "").json()["finished"], true);
}

#[test]
fn sources_hand_models_on_where_the_edits_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let [problem, plan] = ["alike.json", "plan.json"].map(|name| folder.path().join(name));
    std::fs::write(&problem, alike().to_string()).unwrap();
    let ask_for = |port: u16, edits: serde_json::Value| {
        let reply = ask(port, "POST /api/plan", &edits.to_string());
        assert_eq!(reply.status, 200, "{}", reply.body);
        let seed = reply.json()["seed"].clone();
        (seed["plans"][0]["handovers"].as_array().unwrap().len(), seed)
    };
    let served = Served::start(&problem);
    assert_eq!(ask_for(served.port, json!({})).0, 0);
    let (count, seed) = ask_for(served.port, json!({"handovers": true}));
    assert_eq!((count, &seed["hands_on"], &seed["no_handovers"]), (4, &json!(true), &json!(null)));
    // Under the paper's bound there are none, and the page is told why.
    let (_, seed) = ask_for(served.port, json!({"bound": "paper"}));
    assert!(seed["no_handovers"].as_str().unwrap().starts_with("the paper's bound"));
    let both = json!({"bound": "paper", "handovers": true}).to_string();
    let refused = ask(served.port, "POST /api/plan", &both);
    assert_eq!(refused.status, 422);
    let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("handovers: the paper's bound"), "{message}");
    // Nor are there with raw costs.
    let raw = folder.path().join("raw.json");
    let costs = json!({"source": [1, null], "link": [[null, 1], [null, null]]});
    std::fs::write(&raw, json!({"format": "stlf-problem/1", "costs": costs}).to_string()).unwrap();
    let (_, seed) = ask_for(Served::start(&raw).port, json!({}));
    assert!(seed["no_handovers"].as_str().unwrap().starts_with("raw costs"));
    // What the server was started with is what edits begin with, be it asked for or in the plan.
    let asked = Served::start_with(&problem, &["--handovers"]);
    let [problem, file] = [&problem, &plan].map(|path| path.to_str().unwrap());
    assert_eq!(run(&["plan", problem, "--handovers", "-o", file], "").code, 0);
    let made = Served::start(&plan);
    for port in [asked.port, made.port] {
        let state = ask(port, "GET /api/state", "").json();
        assert_eq!(state["runs"][0]["seeds"][0]["hands_on"], true);
        assert_eq!(ask_for(port, json!({})).0, 4);
        assert_eq!(ask_for(port, json!({"handovers": false})).0, 0);
    }
}

#[test]
fn wrong_requests_get_a_json_error() {
    let served = Served::start(&example("ten-devices.json"));
    let port = served.port;
    let told = |request: &str, body: &str| {
        let reply = ask(port, request, body);
        (reply.status, reply.json()["error"]["message"].as_str().unwrap().to_owned())
    };
    assert_eq!(told("GET /nowhere", "").0, 404);
    assert_eq!(told("POST /api/state", "{}").0, 405);
    assert_eq!(told("POST /api/plan", "{").0, 400);
    assert!(told("POST /api/plan", r#"{"devises": []}"#).1.contains("unknown field `devises`"));
    let (status, message) = told("POST /api/plan", r#"{"devices": [{"name": "d77"}]}"#);
    assert_eq!(status, 422);
    assert!(message.contains("there is no device \"d77\""), "{message}");
    let negative = r#"{"links": [{"from": "d1", "to": "d6", "energy": -1}]}"#;
    assert!(
        told("POST /api/plan", negative).1.contains("links.energy (d1 → d6): -1 is not at least 0")
    );
    let percent = r#"{"links": [{"from": "d1", "to": "d6", "divergence": 9}]}"#;
    assert!(
        told("POST /api/plan", percent)
            .1
            .contains("links.divergence (d1 → d6): 9 is not between 0 and 2")
    );
    let percent = r#"{"devices": [{"name": "d1", "source_error": 7}]}"#;
    assert!(told("POST /api/plan", percent).1.contains("(d1): 7 is not between 0 and 1"));
    let all_targets: Vec<_> =
        (1..=10).map(|k| json!({"name": format!("d{k}"), "pin": "target"})).collect();
    let (status, message) = told("POST /api/plan", &json!({"devices": all_targets}).to_string());
    assert_eq!(status, 422);
    assert!(message.starts_with("no plan exists"), "{message}");
    let large = format!("{{\"bound\": \"{}\"}}", "x".repeat(2 << 20));
    assert_eq!(ask(port, "POST /api/plan", &large).status, 413);

    let own = format!("Host: 127.0.0.1:{port}");
    assert_eq!(send(port, "GET /", &["Host: evil.example"], "").status, 403);
    let foreign = [own.as_str(), "Origin: http://evil.example", "Content-Type: application/json"];
    assert_eq!(send(port, "POST /api/plan", &foreign, "{}").status, 403);
    let form = [own.as_str(), "Content-Type: text/plain"];
    assert_eq!(send(port, "POST /api/plan", &form, "{}").status, 415);
    // And it still answers.
    assert_eq!(ask(port, "GET /", "").status, 200);
}

#[test]
fn what_is_not_there_is_told_before_anything_is_served() {
    let ran = run(&["serve", "no-such-run"], "");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("no-such-run"), "{}", ran.err);
}

#[test]
fn an_unfinished_run_shows_how_far_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("run");
    let small = "seeds=[1,2] data.samples=3000 partition.devices=4 partition.scale=0.03 \
                 training.model=mlp training.steps=20";
    assert_eq!(run(&["measure", "-c", small, "--to", to.to_str().unwrap()], "").code, 0);
    let served = Served::start(&to);
    let progress = ask(served.port, "GET /api/progress", "").json();
    assert_eq!(progress["finished"], false);
    let stage = |name: &str| {
        let stages = progress["stages"].as_array().unwrap();
        let found = stages.iter().find(|stage| stage["stage"] == name).unwrap();
        (found["done"].as_u64().unwrap(), found["total"].as_u64().unwrap())
    };
    assert_eq!((stage("measure"), stage("train")), ((2, 2), (0, 2)));
    assert_eq!(run(&["run", to.to_str().unwrap()], "").code, 0);
    assert_eq!(ask(served.port, "GET /api/progress", "").json()["finished"], true);
    let edits = json!({"seed": 2, "weights": {"energy": 1.0}}).to_string();
    assert_eq!(ask(served.port, "POST /api/plan", &edits).json()["seed"]["seed"], 2);
    let missing = ask(served.port, "POST /api/plan", r#"{"seed": 9}"#);
    assert_eq!(missing.status, 422, "{}", missing.body);
}

#[test]
fn a_device_of_a_fleet_is_shown_and_nothing_of_it_is_markup() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let peer = |name: &str, here: bool, role: &str, from: serde_json::Value| json!({"name": name, "here": here, "takes_part": here, "role": role, "done": here, "from": from});
    let mut away = peer("dock", false, "target", json!([["gate", 1.0]]));
    away["absence"] = json!({"seconds": 12, "calls": false, "address": "10.0.0.7:7000"});
    away["used_twice"] = json!(7);
    let mut odd = peer("<script>alert(1)</script>", true, "target", json!([["gate", 0.25]]));
    odd["done"] = json!(null);
    let status = json!({"seconds": 0.0, "most_memory": 1000, "format": "stlf-status/1",
        "fleet": "harbour", "roster": 3, "device": "gate", "epoch": 7, "stage": "planning",
        "planner": "gate", "no_plan": null, "devices": [peer("gate", true, "source", json!([])), away, odd],
        "traffic": {"sent": 1200, "received": 34, "refused": 1, "turned_away": 2}});
    std::fs::write(path("status.json"), status.to_string()).unwrap();
    let refused = json!({"seconds": 1.0, "device": "gate", "epoch": 7,
        "event": {"refused": {"from": "dock", "reason": "another epoch & more"}}});
    std::fs::write(path("events.jsonl"), format!("half a li\n{refused}\n")).unwrap();
    let served = Served::start(folder.path());
    let page = ask(served.port, "GET /", "");
    assert_eq!(page.status, 200);
    for part in [
        "<title>gate of harbour</title>",
        "epoch 7, planning",
        "not running",
        "dock has not answered at 10.0.0.7:7000 for 12 s",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "25 % gate",
        "dock: two devices run with its key, noticed 7 s ago; stop one of them",
        "<td>dock</td><td>by two devices</td>",
        "dock: another epoch &amp; more",
        "2 strangers",
    ] {
        assert!(page.body.contains(part), "{part}\n{}", page.body);
    }
    assert!(!page.body.contains("<script"), "{}", page.body);
    let at = folder.path().to_str().unwrap();
    let table = run(&["fleet", "status", "--at", at], "").out;
    let line = table.lines().find(|line| line.starts_with("dock ") && !line.contains(" has not "));
    assert!(line.is_some_and(|line| line.contains("by two devices")), "{table}");
    for told in [
        "dock: two devices run with its key, noticed 7 s ago; stop one of them, or give it a key of its own",
        "until the epoch is over only its planner, gate, knows which others are done",
    ] {
        assert!(table.contains(told), "{table}");
    }
    let device = run(&["node", "status", "--at", at], "").out;
    assert!(device.contains("dock: two devices run with its key"), "{device}");
    assert_eq!(ask(served.port, "GET /api/state", "").json()["fleet"], "harbour");
    assert_eq!(ask(served.port, "POST /api/plan", "{}").status, 404);
    assert_eq!(ask(served.port, "POST /", "").status, 405);
}
