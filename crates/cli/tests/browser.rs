//! The report page in a real browser: it loads without complaint, and does what it says.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod common;

use std::path::Path;

use common::browser::Browser;
use common::served::Served;
use common::{example, run};

const SMALL: &str = "seeds=[1,2] data.samples=6000 partition.devices=6 partition.scale=0.05 training.model=mlp \
                     training.steps=200";

/// A page of a small run.
fn report(folder: &Path) -> String {
    let to = folder.join("run");
    assert_eq!(run(&["run", "-c", SMALL, "--to", to.to_str().unwrap()], "").code, 0);
    assert_eq!(run(&["report", to.to_str().unwrap()], "").code, 0);
    format!("file://{}", to.join("report.html").display())
}

/// That the page is there, complained about nothing and fits the window.
fn check(browser: &Browser) {
    browser.wait_for("the fleet", "return document.querySelectorAll('#graph svg').length > 0");
    assert_eq!(browser.complaints(), [] as [String; 0]);
    let fits = "return document.documentElement.scrollWidth <= window.innerWidth";
    assert_eq!(browser.script(fits), true, "the page is wider than the window");
}

#[test]
fn a_report_loads_explains_and_slides() {
    let folder = tempfile::tempdir().unwrap();
    let Some(browser) = Browser::open(1280) else { return };
    browser.visit(&report(folder.path()));
    check(&browser);
    browser.screenshot("report-1280");

    // A click on a device says why it is what it is.
    browser.click("#graph [role=button]");
    browser.wait_for(
        "an explanation",
        "return /is a (source|target)/.test(document.querySelector('#explanation').innerText)",
    );
    // So does the keyboard, for another one.
    let told = browser.script("return document.querySelector('#explanation').innerText");
    browser.script("document.querySelectorAll('#graph [role=button]')[1].focus()");
    browser.press("\u{e007}");
    browser.wait_for(
        "another explanation",
        &format!("return document.querySelector('#explanation').innerText !== {told}"),
    );

    // The slider changes the plan.
    let links = "return document.querySelector('#graph').innerHTML";
    let name = "return document.querySelector('#plan-name').textContent";
    let (before, called) = (browser.script(links), browser.script(name));
    browser.type_into("#plan-slider", "\u{e010}");
    let last =
        "const s = document.querySelector('#plan-slider'); return s.value === s.max && s.max > 0";
    browser.wait_for("the slider's end", last);
    assert_ne!(browser.script(name), called);
    assert_ne!(browser.script(links), before);
    assert_eq!(browser.complaints(), [] as [String; 0]);
}

#[test]
fn a_report_is_readable_on_a_phone() {
    let folder = tempfile::tempdir().unwrap();
    let Some(browser) = Browser::open(390) else { return };
    browser.visit(&report(folder.path()));
    check(&browser);
    browser.screenshot("report-390");
}

#[test]
fn an_edit_in_the_live_page_changes_roles() {
    let Some(browser) = Browser::open(1280) else { return };
    let served = Served::start(&example("ten-devices.json"));
    browser.visit(&format!("http://127.0.0.1:{}/", served.port));
    check(&browser);
    let sources = "return document.querySelector('#facts').innerText";
    let before = browser.script(sources);
    browser.choose("#edit-device", "d1");
    browser.choose("#edit-pin", "target");
    browser.wait_for(
        "new roles",
        &format!("return document.querySelector('#facts').innerText !== {before}"),
    );
    browser.screenshot("serve-1280");
    // Nonsense is refused in words, and what was there stays.
    browser.type_into("#phi-e", "\u{e009}a\u{e000}-4");
    browser.wait_for(
        "a complaint",
        "return document.querySelector('#problem-message').textContent.length > 0",
    );
    // So is percent where a share is meant.
    browser.type_into("#edit-error", "\u{e009}a\u{e000}7");
    browser.wait_for(
        "another complaint",
        "return document.querySelector('#problem-message').textContent.includes('Did you mean 0.07?')",
    );
    browser.click("#reset");
    browser.wait_for(
        "the first plan",
        &format!("return document.querySelector('#facts').innerText === {before}"),
    );
}

#[test]
fn a_thousand_devices_open_and_scroll() {
    let folder = tempfile::tempdir().unwrap();
    let Some(browser) = Browser::open(1280) else { return };
    let file = folder.path().join("fleet.json");
    std::fs::write(&file, thousand().to_string()).unwrap();
    assert_eq!(run(&["report", file.to_str().unwrap()], "").code, 0);
    browser.visit(&format!("file://{}", folder.path().join("fleet.html").display()));
    check(&browser);
    let marks = browser.script("return document.querySelectorAll('*').length").as_u64().unwrap();
    assert!(marks < 20_000, "{marks} elements");
}

/// A fleet of 1,000, a tenth of it with labels, links from the nearest twelve on a ring.
fn thousand() -> serde_json::Value {
    let devices: Vec<_> = (0..1000)
        .map(|i| match i % 10 {
            0 => serde_json::json!({"name": format!("n{i}"), "labeled": 500, "unlabeled": 50,
                "source_error": 0.05 + 0.002 * f64::from(i % 70)}),
            _ => serde_json::json!({"name": format!("n{i}"), "labeled": 0, "unlabeled": 300}),
        })
        .collect();
    let links: Vec<_> = (0..1000_i32)
        .flat_map(|to| {
            (1..=6).flat_map(move |step| {
                let near = (to / 10 + step - 3).rem_euclid(100) * 10;
                (near != to).then(|| {
                    let far = f64::from((to - near).abs().min(1000 - (to - near).abs()));
                    serde_json::json!({"from": format!("n{near}"), "to": format!("n{to}"),
                        "divergence": 0.1 + far / 100.0, "energy": 2.0 + far / 50.0})
                })
            })
        })
        .collect();
    serde_json::json!({"format": "stlf-problem/1", "preset": "balanced", "devices": devices, "links": links})
}
