//! The report page as a file.

use crate::common::{example, run};
use serde_json::Value;

const SMALL: &str = "seeds=[1,2] data.samples=3000 partition.devices=4 partition.scale=0.03 training.model=mlp \
                     training.steps=20";

/// The data inside a page.
fn data(page: &str) -> Value {
    let start = page.find("id=\"data\">").unwrap() + "id=\"data\">".len();
    let end = page[start..].find("</script>").unwrap();
    serde_json::from_str(&page[start..start + end]).unwrap()
}

#[test]
fn a_page_shows_what_the_run_folder_holds() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("run");
    let to = to.to_str().unwrap();
    assert_eq!(run(&["run", "-c", SMALL, "--to", to], "").code, 0);
    let ran = run(&["report", to], "");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let page = std::fs::read_to_string(format!("{to}/report.html")).unwrap();
    // Nothing is loaded from anywhere.
    for outside in ["src=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    let shown = data(&page);
    assert_eq!(shown["format"], "stlf-report/1");
    let run_shown = &shown["runs"][0];
    assert_eq!(run_shown["finished"], true);
    // Every accuracy is the mean of the rows of results.csv.
    let mut rows = csv_rows(&format!("{to}/results.csv"));
    rows.retain(|row| row["method"] == "fedavg");
    let mean_of_seed = |seed: &str| {
        let own: Vec<f64> = rows
            .iter()
            .filter(|row| row["seed"] == seed)
            .map(|row| row["accuracy"].parse().unwrap())
            .collect();
        own.iter().sum::<f64>() / own.len() as f64
    };
    let expected = (mean_of_seed("1") + mean_of_seed("2")) / 2.0;
    let lines = run_shown["summary"].as_array().unwrap();
    let fedavg = lines.iter().find(|line| line["method"] == "fedavg").unwrap();
    assert!((fedavg["accuracy"]["mean"].as_f64().unwrap() - expected).abs() < 1e-12);
    // And the plan in use is the one in the folder.
    let plan: Value =
        serde_json::from_slice(&std::fs::read(format!("{to}/seed-1/plan.json")).unwrap()).unwrap();
    let seed = &run_shown["seeds"][0];
    let chosen = &seed["plans"][seed["chosen"].as_u64().unwrap() as usize];
    assert_eq!(chosen["objective"], plan["objective"]);
    assert!(chosen["accuracy"].is_number());
    // The page does not belong to the run: a run that goes on is still the same.
    assert_eq!(run(&["run", to], "").code, 0);
}

fn csv_rows(path: &str) -> Vec<std::collections::BTreeMap<String, String>> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let row = |line: &str| {
        head.iter().map(|h| (*h).to_owned()).zip(line.split(',').map(str::to_owned)).collect()
    };
    lines.map(row).collect()
}

#[test]
fn names_cannot_leave_the_data() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fleet.json");
    let text = std::fs::read_to_string(example("five-cars.json")).unwrap();
    let evil = "</script><img src=x onerror=alert(1)>{{script}}";
    std::fs::write(&file, text.replace("\"A\"", &format!("{evil:?}"))).unwrap();
    let ran = run(&["report", file.to_str().unwrap()], "");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let page = std::fs::read_to_string(folder.path().join("fleet.html")).unwrap();
    assert!(!page.contains("<img"));
    assert_eq!(page.matches("</script>").count(), 2);
    let shown = data(&page);
    assert_eq!(shown["runs"][0]["seeds"][0]["devices"][0]["name"], evil);
}

#[test]
fn two_runs_share_a_page_and_nonsense_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (example("five-cars.json"), example("ten-devices.json"));
    let page = folder.path().join("both.html");
    let arguments =
        ["report", a.to_str().unwrap(), b.to_str().unwrap(), "-o", page.to_str().unwrap()];
    assert_eq!(run(&arguments, "").code, 0);
    assert_eq!(data(&std::fs::read_to_string(&page).unwrap())["runs"].as_array().unwrap().len(), 2);
    assert_eq!(run(&["report", "nothing"], "").code, 2);
    assert_eq!(run(&["report"], "").code, 2);
}

#[test]
fn figures_are_made_again_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("out");
    let ran = run(&["reproduce", "fig3", "fig4", "--quick", "--to", to.to_str().unwrap()], "");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.contains("device 3 errs on everything"), "{}", ran.out);
    let summary = std::fs::read_to_string(to.join("README.md")).unwrap();
    assert!(summary.contains("## fig3") && summary.contains("## fig4"));
    assert!(std::fs::read_to_string(to.join("fig4.svg")).unwrap().starts_with("<svg"));
    assert!(!to.join("fig4.png").exists());
    let wrong = run(&["reproduce", "fig9"], "");
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("there is no \"fig9\""), "{}", wrong.err);
}
