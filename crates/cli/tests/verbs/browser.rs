//! The report page in a real browser: it loads without complaint, and does what it says.

use std::path::Path;

use crate::common::browser::Browser;
use crate::common::served::Served;
use crate::common::{alike, example, run};
use serde_json::Value;

pub(super) const SMALL: &str = "seeds=[1,2] data.samples=6000 partition.devices=6 partition.scale=0.05 training.model=mlp \
                     training.steps=200";

/// A page of a small run.
pub(super) fn report(folder: &Path) -> String {
    let to = folder.join("run");
    assert_eq!(run(&["run", "-c", SMALL, "--to", to.to_str().unwrap()], "").code, 0);
    assert_eq!(run(&["report", to.to_str().unwrap()], "").code, 0);
    format!("file://{}", to.join("report.html").display())
}

/// That the page is there, complained about nothing and fits the window.
pub(super) fn check(browser: &Browser) {
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
    // The page draws the plan once it comes to it.
    browser.wait_for("another plan", &format!("{name} !== {called}"));
    browser.wait_for("its links", &format!("{links} !== {before}"));
    assert_eq!(browser.complaints(), [] as [String; 0]);
}

/// The data inside the page, and what a script makes of the page itself.
pub(super) fn data(browser: &Browser) -> Value {
    browser.script("return JSON.parse(document.querySelector('#data').textContent)")
}

pub(super) fn texts(browser: &Browser, selector: &str) -> Vec<String> {
    let script = format!(
        "return Array.from(document.querySelectorAll({selector:?})).map((e) => e.textContent)"
    );
    let found = browser.script(&script);
    found.as_array().unwrap().iter().map(|t| t.as_str().unwrap().to_owned()).collect()
}

#[test]
fn nobody_is_kept_from_using_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let page = report(folder.path());
    for width in [1400, 390] {
        let Some(browser) = Browser::open(width) else { return };
        browser.visit(&page);
        check(&browser);
        for theme in ["light", "dark"] {
            let switch = format!("document.documentElement.setAttribute('data-theme', {theme:?})");
            browser.script(&switch);
            let Some(barriers) = browser.barriers() else { return };
            assert_eq!(barriers, [] as [String; 0], "{width} pixels wide, {theme}");
        }
    }
}

#[test]
fn a_report_is_readable_on_a_phone() {
    let folder = tempfile::tempdir().unwrap();
    let Some(browser) = Browser::open(390) else { return };
    browser.visit(&report(folder.path()));
    check(&browser);
    browser.screenshot("report-390");
    // Nor are the names and numbers beside the devices cut.
    let whole = "const g = document.getElementById('graph'); return g.scrollWidth <= g.clientWidth";
    let narrow = [375, 320].map(|width| Browser::open(width).unwrap());
    for browser in narrow {
        browser.visit(&report(folder.path()));
        browser.wait_for("graph", "return document.querySelector('#graph svg') !== null");
        assert_eq!(browser.script(whole), true);
    }
    // The first accuracies are in view without scrolling, in both tables.
    for table in ["targets", "methods"] {
        let cell = format!("document.querySelector('#{table} tbody tr td')");
        browser.wait_for(table, &format!("return {cell} !== null"));
        let place =
            format!("const c = {cell}; c.scrollIntoView(); return c.getBoundingClientRect().right");
        let right = browser.script(&place).as_f64().unwrap();
        assert!(right <= 390.0, "{table}: the first number ends at {right}");
        let text = browser.script(&format!("return {cell}.textContent"));
        let number = text.as_str().unwrap().split(' ').next().unwrap();
        assert!(number.parse::<f64>().is_ok(), "{table}: {text}");
    }
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
fn hand_overs_are_drawn_told_and_switched() {
    let folder = tempfile::tempdir().unwrap();
    let Some(browser) = Browser::open(1280) else { return };
    let file = folder.path().join("alike.json");
    std::fs::write(&file, alike().to_string()).unwrap();
    let served = Served::start(&file);
    browser.visit(&format!("http://127.0.0.1:{}/", served.port));
    check(&browser);
    let count = |number: usize| {
        format!("return document.querySelectorAll('#graph .handover').length === {number}")
    };
    assert_eq!(browser.script(&count(0)), true);
    browser.click("#edit-handovers");
    browser.wait_for("four arrows", &count(4));
    // They are told apart from links by their dashes, and named in legend, tiles and words.
    let dashes = "return getComputedStyle(document.querySelector('#graph .handover .way')).strokeDasharray !== 'none' \
                  && getComputedStyle(document.querySelector('#graph .link')).strokeDasharray === 'none'";
    assert_eq!(browser.script(dashes), true);
    assert!(texts(&browser, "#fleet-legend .key").iter().any(|key| key.contains("hand-over")));
    let tiles = texts(&browser, "#facts > div").join("\n");
    assert!(tiles.contains("Links and hand-overs5 and 4"), "{tiles}");
    let graph = "return document.querySelector('#graph svg').getAttribute('aria-label')";
    let label = browser.script(graph);
    assert!(label.as_str().unwrap().contains("5 links and 4 hand-overs · 9 J in both"), "{label}");
    assert!(texts(&browser, "#graph .handover title").iter().all(|t| t.ends_with(", 1 J")));
    // A source in the middle of the route: for the ear, and in its panel.
    let middle = "return Array.from(document.querySelectorAll('#graph .node')).findIndex((n) => \
                  /continues training the model of d\\d, hands on to d\\d/.test(n.getAttribute('aria-label')))";
    let middle = browser.script(middle);
    assert!(middle.as_i64().unwrap() > 0, "{middle}");
    browser.script(&format!("document.querySelectorAll('#graph .node')[{middle}].focus()"));
    browser.press("\u{e007}");
    for told in [
        "Continues training the model of d",
        "Route: d",
        "Hands on to 1 source",
        "It continues training d",
        "Without that hand-over the best plan found would cost",
        "It hands its model on to d",
    ] {
        browser.wait_for(
            told,
            &format!("return document.querySelector('#explanation').innerText.includes({told:?})"),
        );
    }
    browser.screenshot("handovers-1280");
    // A target is told where its model has been.
    browser.click("#graph .node.target");
    browser.wait_for(
        "the whole route",
        "return /Route of its model: (d\\d → ){4}d\\d/.test(document.querySelector('#explanation').innerText)",
    );
    // The paper's bound knows none, and says so; back under the pooled one they are there again.
    browser.choose("#edit-bound", "paper");
    browser.wait_for(
        "the reason",
        "return document.querySelector('#edit-handovers').disabled \
         && document.querySelector('#edit-handovers-reason').textContent.includes('the paper\\'s bound')",
    );
    assert_eq!(browser.script(&count(0)), true);
    browser.choose("#edit-bound", "pooled");
    browser.wait_for("the arrows again", &count(4));
    assert_eq!(browser.complaints(), [] as [String; 0]);
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
    // From the first byte to the whole page, in milliseconds.
    let drawn = "const t = performance.getEntriesByType('navigation')[0]; return t.loadEventEnd - t.startTime";
    let drawn = browser.script(drawn).as_f64().unwrap();
    assert!(drawn < 5000.0, "opened in {drawn} ms");
    // Every device says why it has its role, and how to learn more.
    browser.click("#graph [role=button]");
    let seed = &data(&browser)["runs"][0]["seeds"][0];
    let told = seed["plans"][seed["chosen"].as_u64().unwrap() as usize]["explanations"].clone();
    assert_eq!(told.as_array().unwrap().len(), 1000);
    assert!(told[1].as_str().unwrap().contains("n1 is a target"), "{}", told[1]);
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
