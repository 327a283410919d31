//! The report page as a file.

use crate::common::{alike, example, run};
use serde_json::Value;

const SMALL: &str = "seeds=[1,2] data.samples=3000 partition.devices=4 partition.scale=0.03 training.model=mlp \
                     training.steps=20";

/// Returns the data inside a page.
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

/// The plan that a page begins with.
fn chosen(page: &std::path::Path) -> Value {
    let shown = data(&std::fs::read_to_string(page).unwrap());
    let seed = &shown["runs"][0]["seeds"][0];
    seed["plans"][seed["chosen"].as_u64().unwrap() as usize].clone()
}

#[test]
fn a_page_shows_the_hand_overs_of_a_plan_and_of_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let (problem, plan, page) = (file("alike.json"), file("plan.json"), file("page.html"));
    let [problem, plan] = [&problem, &plan].map(|path| path.to_str().unwrap());
    std::fs::write(problem, alike().to_string()).unwrap();
    assert_eq!(run(&["plan", problem, "--handovers", "-o", plan], "").code, 0);
    let planned: Value = serde_json::from_slice(&std::fs::read(plan).unwrap()).unwrap();
    let write = |arguments: &[&str]| {
        let to = ["-o", page.to_str().unwrap()];
        run(&[&["report"], arguments, &to].concat(), "")
    };
    for arguments in [&[plan][..], &[problem, "--handovers"]] {
        let ran = write(arguments);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        let shown = chosen(&page);
        assert_eq!(shown["objective"], planned["objective"]);
        assert_eq!(shown["joules"], 9.0);
        let handovers = shown["handovers"].as_array().unwrap();
        assert_eq!((handovers.len(), shown["links"].as_array().unwrap().len()), (4, 5));
        for (shown, planned) in handovers.iter().zip(planned["handovers"].as_array().unwrap()) {
            let name = |end: &str| format!("d{}", shown[end].as_u64().unwrap() + 1);
            assert_eq!(name("from"), planned["from"]);
            assert_eq!(name("to"), planned["to"]);
            assert_eq!(shown["joules"], planned["energy"]);
        }
        // Who takes a model is told whose, and who gives one, to whom.
        let told = |end: &str| {
            let device = handovers[0][end].as_u64().unwrap() as usize;
            shown["explanations"][device].as_str().unwrap().to_owned()
        };
        assert!(told("to").contains("It continues training d"), "{}", told("to"));
        assert!(told("from").contains("It hands its model on to d"), "{}", told("from"));
    }
    // Only where they are asked for, and never silently not.
    assert_eq!(write(&[problem]).code, 0);
    assert_eq!(chosen(&page)["handovers"].as_array().unwrap().len(), 0);
    let made = write(&[plan, "--handovers"]);
    assert_eq!(made.code, 2);
    assert!(made.err.contains("is already made"), "{}", made.err);
    let mut paper = alike();
    paper["bound"] = serde_json::json!({"kind": "paper"});
    std::fs::write(problem, paper.to_string()).unwrap();
    let refused = write(&[problem, "--handovers"]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("--handovers: the paper's bound"), "{}", refused.err);
}

#[test]
fn a_page_shows_the_hand_overs_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("run");
    let settings = "seeds=[1] data.samples=3000 partition.kind=iid partition.devices=6 \
                    partition.labeled=[0.9,0.9,0.9,0,0,0] training.model=mlp training.steps=20 \
                    planner.handovers=true";
    assert_eq!(run(&["run", "-c", settings, "--to", to.to_str().unwrap()], "").code, 0);
    assert_eq!(run(&["report", to.to_str().unwrap()], "").code, 0);
    let planned: Value =
        serde_json::from_slice(&std::fs::read(to.join("seed-1/plan.json")).unwrap()).unwrap();
    let page = to.join("report.html");
    let count = |plan: &Value| plan["handovers"].as_array().unwrap().len();
    assert!(count(&planned) > 0);
    assert_eq!(count(&chosen(&page)), count(&planned));
    let seed = &data(&std::fs::read_to_string(&page).unwrap())["runs"][0]["seeds"][0];
    assert_eq!(seed["hands_on"], true);
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
