//! The live page in a real browser: an edit marks what it makes untrue, a run under way is followed, and a device of a large fleet is
//! explained when it is asked about.

use std::path::Path;

use serde_json::{Value, json};

use super::browser::{SMALL, check, texts};
use crate::common::browser::Browser;
use crate::common::http::ask;
use crate::common::run;
use crate::common::served::Served;

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        match path.is_dir() {
            true => copy(&path, &to.join(name)),
            false => drop(std::fs::copy(&path, to.join(name)).unwrap()),
        }
    }
}

/// Puts a copy there at once, as a run does: whoever reads meanwhile must not see half of a file.
fn appear(from: &Path, to: &Path) {
    let aside = to.parent().unwrap().with_extension("aside");
    match from.is_dir() {
        true => copy(from, &aside),
        false => drop(std::fs::copy(from, &aside).unwrap()),
    }
    std::fs::rename(aside, to).unwrap();
}

/// The run as it is once its first seed is done.
fn half_done(whole: &Path, half: &Path) {
    std::fs::create_dir_all(half).unwrap();
    std::fs::copy(whole.join("config.toml"), half.join("config.toml")).unwrap();
    copy(&whole.join("seed-1"), &half.join("seed-1"));
}

#[test]
fn a_run_under_way_is_followed_and_an_edit_marks_what_it_makes_untrue() {
    let folder = tempfile::tempdir().unwrap();
    let Some(browser) = Browser::open(1280) else { return };
    let [whole, half] = ["whole", "half"].map(|name| folder.path().join(name));
    assert_eq!(run(&["run", "-c", SMALL, "--to", whole.to_str().unwrap()], "").code, 0);
    half_done(&whole, &half);
    let served = Served::start(&half);
    browser.visit(&format!("http://127.0.0.1:{}/", served.port));
    check(&browser);
    let seeds = |count: usize| {
        format!("return document.querySelectorAll('#seed option').length === {count}")
    };
    assert_eq!(browser.script(&seeds(1)), true);
    browser.wait_for(
        "the progress of training",
        "return /1 of 2, \\d+ models/.test(document.querySelector('#progress-stages')?.innerText)",
    );
    // Another seed is there, and the page shows it although the run is not finished.
    appear(&whole.join("seed-2"), &half.join("seed-2"));
    browser.wait_for("the second seed", &seeds(2));
    assert_eq!(browser.script("return document.querySelector('#progress').hidden"), false);
    for file in ["results.csv", "results.jsonl", "manifest.json"] {
        appear(&whole.join(file), &half.join(file));
    }
    browser.wait_for("the end", "return document.querySelector('#progress').hidden");

    // An edit is planned at once; what the run measured stays, marked as older, and what would be untrue goes.
    let shown = "return document.querySelector('#facts')?.innerText";
    let before = browser.script(shown);
    browser.wait_for("the fields", "return !document.querySelector('#edit').hidden");
    browser.type_into("#phi-e", "\u{e009}a\u{e000}3");
    browser.wait_for("another plan", &format!("{shown} !== {before}"));
    for section in ["methods", "targets", "confusion"] {
        let marked = format!(
            "return document.querySelector('#{section} .older')?.innerText?.includes('without your edits')"
        );
        browser.wait_for(section, &marked);
    }
    for section in ["objective", "frontier"] {
        let marked = format!(
            "return document.querySelector('#{section} .none')?.innerText?.includes('not computed for an edited')"
        );
        browser.wait_for(section, &marked);
    }
    let notice = texts(&browser, "#notice").join("");
    assert!(notice.contains("With your edits: fleet and divergence"), "{notice}");
    // Taken back by hand, everything is there again.
    browser.type_into("#phi-e", "\u{e009}a\u{e000}\u{e003}");
    browser.wait_for("the first plan", &format!("{shown} === {before}"));
    browser.wait_for(
        "the frontier",
        "return document.querySelectorAll('#frontier .reach').length > 1 \
         && document.querySelectorAll('.older').length === 0 && document.querySelector('#notice').hidden",
    );
    assert_eq!(browser.complaints(), [] as [String; 0]);
}

/// A fleet that is too large to explain every device in full: a ring of devices, every second one with labels.
fn ring(count: i32) -> Value {
    let device = |i: i32| match i % 2 {
        0 => {
            json!({"name": format!("n{i}"), "labeled": 400 + i, "unlabeled": 50, "source_error": 0.1})
        }
        _ => json!({"name": format!("n{i}"), "labeled": 0, "unlabeled": 300}),
    };
    let link = |from: i32, to: i32| {
        let far = f64::from((to - from).abs().min(count - (to - from).abs()));
        json!({"from": format!("n{from}"), "to": format!("n{to}"), "divergence": far / 20.0, "energy": 1.0 + far / 7.0})
    };
    let links: Vec<Value> = (0..count)
        .flat_map(|to| {
            (1..=3).flat_map(move |step| [to - step, to + step].map(move |from| (from, to)))
        })
        .map(|(from, to)| (from.rem_euclid(count), to))
        .filter(|(from, _)| from % 2 == 0)
        .map(|(from, to)| link(from, to))
        .collect();
    let devices: Vec<Value> = (0..count).map(device).collect();
    json!({"format": "stlf-problem/1", "preset": "balanced", "devices": devices, "links": links})
}

#[test]
fn a_device_of_a_large_fleet_is_explained_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ring.json");
    std::fs::write(&file, ring(80).to_string()).unwrap();
    let served = Served::start(&file);
    let explained = |question: Value| ask(served.port, "POST /api/explain", &question.to_string());
    let told = explained(json!({"device": "n4"}));
    assert_eq!(told.status, 200, "{}", told.body);
    let text = told.json()["explanation"].as_str().unwrap().to_owned();
    assert!(text.starts_with("n4 is a source: as a target it would cost"), "{text}");
    let pinned = json!({"devices": [{"name": "n4", "pin": "target"}]});
    let told = explained(json!({"device": "n4", "edits": pinned})).json();
    assert!(told["explanation"].as_str().unwrap().starts_with("n4 is a target"), "{told}");
    let missing = explained(json!({"device": "n400"}));
    assert_eq!(missing.status, 422);
    assert!(missing.body.contains("there is no device"), "{}", missing.body);
    assert_eq!(explained(json!({"devise": "n4"})).status, 400);

    let Some(browser) = Browser::open(1280) else { return };
    browser.visit(&format!("http://127.0.0.1:{}/", served.port));
    check(&browser);
    browser.click("#graph [role=button]");
    browser.wait_for("the button", "return document.querySelector('#explain-further') !== null");
    // Not by the pointer: the page scrolls smoothly, and the button may still be on its way.
    browser.script("document.querySelector('#explain-further').click()");
    browser.wait_for(
        "what would change that",
        "return /as a target it would cost/.test(document.querySelector('#explanation')?.innerText)",
    );
    assert_eq!(browser.complaints(), [] as [String; 0]);
    // The page that is written as a file says how to ask.
    let page = folder.path().join("ring.html");
    let made = run(&["report", file.to_str().unwrap(), "-o", page.to_str().unwrap()], "");
    assert_eq!(made.code, 0, "{}", made.err);
    browser.visit(&format!("file://{}", page.display()));
    check(&browser);
    browser.click("#graph [role=button]");
    browser.wait_for(
        "the command",
        "return /stlf explain FILE --device n\\d+/.test(document.querySelector('#explanation')?.innerText)",
    );
}
