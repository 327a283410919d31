//! One number, one meaning: what the page shows of a run and of a problem is what their files say.

use serde_json::Value;
use stlf_planning::number_format::{energy, percent, short};

use super::browser::{check, data, report, texts};
use crate::common::browser::Browser;
use crate::common::{example, run};

/// What the terminal writes, of which number, and how.
const CASES: &str = include_str!("../../../planning/src/number_cases.tsv");

/// That the tiles above the graph show the numbers of a plan as a file has it, as exactly as they show numbers.
fn tiles_agree(browser: &Browser, plan: &Value) {
    let tile = |name: &str| {
        let script = format!(
            "const t = Array.from(document.querySelectorAll('#facts dt')).find((d) => d.textContent.startsWith({name:?})); \
             return [t.nextElementSibling.firstChild.textContent, t.nextElementSibling.lastChild.textContent]"
        );
        let found = browser.script(&script);
        [0, 1].map(|k| found[k].as_str().unwrap().to_owned())
    };
    let count = |key: &str| plan[key].as_array().unwrap().len().to_string();
    assert_eq!(tile("Sources")[0], count("sources"));
    assert_eq!(tile("Targets")[0], count("targets"));
    let handovers = match count("handovers").as_str() {
        "0" => String::new(),
        number => format!(" and {number}"),
    };
    assert_eq!(tile("Links")[0], count("links") + &handovers);
    let joules = plan["energy"]["joules"].as_f64().unwrap();
    assert_eq!(as_in_terminal(&tile("Energy of")[0]), energy(joules));
    let [objective, proof] = tile("Objective");
    assert_eq!(as_in_terminal(&objective), short(plan["objective"].as_f64().unwrap()));
    let bound = plan["bound"].as_str().unwrap();
    let gap = percent(plan["gap"].as_f64().unwrap().max(1e-4));
    match plan["status"] == "optimal" {
        true => assert_eq!(proof, format!("proven optimal under the {bound} bound")),
        false => assert!(proof.ends_with(&format!("gap {gap} under the {bound} bound")), "{proof}"),
    }
}

/// What the page shows with the signs of the terminal: a hyphen for minus, and nothing between thousands.
fn as_in_terminal(shown: &str) -> String {
    shown.replace('−', "-").replace(',', "")
}

#[test]
fn numbers_on_the_page_are_written_as_in_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let Some(browser) = Browser::open(1280) else { return };
    let page = folder.path().join("five.html");
    let problem = example("five-cars.json");
    let made = run(&["report", problem.to_str().unwrap(), "-o", page.to_str().unwrap()], "");
    assert_eq!(made.code, 0, "{}", made.err);
    browser.visit(&format!("file://{}", page.display()));
    check(&browser);
    for case in CASES.lines().skip(1) {
        let [what, value, expected] = case.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{case}");
        };
        let write = match what {
            "energy" => "joules",
            "size" => "bytes",
            same => same,
        };
        let shown = browser.script(&format!("return window.stlfReport.words.{write}({value})"));
        assert_eq!(as_in_terminal(shown.as_str().unwrap()), expected, "{case}");
    }
}

#[test]
fn numbers_on_the_page_are_those_of_the_run_and_say_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let Some(browser) = Browser::open(1280) else { return };
    browser.visit(&report(folder.path()));
    check(&browser);
    browser.wait_for(
        "the methods",
        "return document.querySelectorAll('#methods tbody tr').length > 0",
    );
    let run = &data(&browser)["runs"][0];
    let seed = &run["seeds"][0];
    let plan = &seed["plans"][seed["chosen"].as_u64().unwrap() as usize];
    let file = std::fs::read(folder.path().join("run/seed-1/plan.json")).unwrap();
    tiles_agree(&browser, &serde_json::from_slice(&file).unwrap());
    // Tiles are of one seed, and a proof is of one bound.
    let tiles = texts(&browser, "#facts > div").join("\n");
    assert!(tiles.contains("under the pooled bound"), "{tiles}");
    assert!(tiles.contains("mean over targets, seed 1"), "{tiles}");
    assert!(tiles.contains("before measuring ("), "{tiles}");
    let accuracy = percent(plan["accuracy"].as_f64().unwrap());
    assert!(tiles.contains(&accuracy), "{accuracy} is not in {tiles}");
    // ± is half the 95 % interval: with two seeds 12.706 standard errors.
    let rows = texts(&browser, "#methods tbody tr");
    let lines = run["summary"].as_array().unwrap();
    for line in lines.iter().filter(|line| line["accuracy"].is_object()) {
        let [mean, half] =
            ["mean", "half"].map(|key| 100.0 * line["accuracy"][key].as_f64().unwrap());
        let wanted =
            if half > 0.0 { format!("{mean:.1} ± {half:.1}") } else { format!("{mean:.1}") };
        assert!(rows.iter().any(|row| row.contains(&wanted)), "{wanted} is in none of {rows:?}");
    }
    let results = std::fs::read_to_string(folder.path().join("run/results.csv")).unwrap();
    let of_seed = |seed: &str| {
        let own = results.lines().filter(|l| l.starts_with(&format!("{seed},fedavg,")));
        let own: Vec<f64> = own.map(|l| l.split(',').nth(3).unwrap().parse().unwrap()).collect();
        own.iter().sum::<f64>() / own.len() as f64
    };
    let half = 12.706 * (of_seed("1") - of_seed("2")).abs() / 2.0;
    let fedavg = lines.iter().find(|line| line["method"] == "fedavg").unwrap();
    assert!((fedavg["accuracy"]["half"].as_f64().unwrap() - half).abs() < 1e-9);
    // Only valid plans are drawn as plans, and none lies below the best one.
    let keys = texts(&browser, "#objective .key").join("\n");
    assert!(keys.contains("relaxed (not a valid plan)"), "{keys}");
    assert!(texts(&browser, "#objective .lead")[0].contains("under the pooled bound"));
    let traces = seed["traces"].as_array().unwrap();
    let valid = traces.iter().filter(|trace| trace["valid"] == true);
    let ends: Vec<f64> = valid.map(|trace| trace["values"][0].as_f64().unwrap()).collect();
    // Up to rounding, where both are the same plan.
    assert!(ends.len() == 2 && ends[0] >= ends[1] * (1.0 - 1e-12), "{ends:?}");
    let drawn = "return document.querySelectorAll('#objective .series[data-valid=true]').length";
    assert_eq!(browser.script(drawn), 2);
}

#[test]
fn the_frontier_of_a_problem_is_the_error_bound_that_the_plan_weighs() {
    let folder = tempfile::tempdir().unwrap();
    let Some(browser) = Browser::open(1280) else { return };
    let page = folder.path().join("ten.html");
    let problem = example("ten-devices.json");
    let made = run(&["report", problem.to_str().unwrap(), "-o", page.to_str().unwrap()], "");
    assert_eq!(made.code, 0, "{}", made.err);
    browser.visit(&format!("file://{}", page.display()));
    check(&browser);
    browser.wait_for(
        "the frontier",
        "return document.querySelectorAll('#frontier .reach').length > 1",
    );
    let planned = run(&["plan", problem.to_str().unwrap(), "--format", "json"], "");
    tiles_agree(&browser, &serde_json::from_str(&planned.out).unwrap());
    assert!(
        texts(&browser, "#frontier svg text").iter().any(|t| t == "error bound, sources + targets")
    );
    let seed = &data(&browser)["runs"][0]["seeds"][0];
    let chosen = &seed["plans"][seed["chosen"].as_u64().unwrap() as usize];
    let bound = ["source", "target"].map(|term| chosen["terms"][term].as_f64().unwrap());
    let shown = browser.script(
        "const t = Array.from(document.querySelectorAll('#frontier dt')).find((d) => /error bound/.test(d.textContent)); \
         return Number(t.nextElementSibling.textContent)",
    );
    let shown = shown.as_f64().unwrap();
    assert!((shown - bound[0] - bound[1]).abs() < 1e-3 * shown, "{shown} is not {bound:?}");
    // More energy never buys a worse bound: no point of the frontier is beaten by another.
    let points = browser.script(
        "return Array.from(document.querySelectorAll('#frontier .reach')).map((c) => [Number(c.getAttribute('cx')), \
         Number(c.getAttribute('cy'))]).sort((a, b) => a[0] - b[0])",
    );
    let heights: Vec<f64> =
        points.as_array().unwrap().iter().map(|point| point[1].as_f64().unwrap()).collect();
    assert!(heights.windows(2).all(|pair| pair[0] <= pair[1] + 0.5), "{heights:?}");
    // What only a run has is left out.
    let hidden =
        |id: &str| browser.script(&format!("return document.getElementById({id:?}).hidden"));
    for (id, is_hidden) in [("frontier", false), ("objective", false), ("methods", true)] {
        assert_eq!(hidden(id), is_hidden, "{id}");
    }
    assert!(["targets", "confusion", "settings"].iter().all(|id| hidden(id) == true));
    assert_eq!(texts(&browser, "nav li:not([hidden])").len(), 4);
    browser.screenshot("problem-1280");
}
