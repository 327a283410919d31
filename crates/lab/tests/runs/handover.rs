//! Models that sources hand on: what is sent is counted, and a run that is stopped between hand-overs ends the same.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

use stlf_config::Config;
use stlf_formats::PlanFile;
use stlf_lab::record::{RelayRow, Row};
use stlf_lab::{Error, Event, Stage, run};
use stlf_planning::Plan;

/// Eight devices that are alike, four with labels.
pub(crate) fn alike() -> Config {
    let changes = [
        "seeds=[3]",
        "data.samples=3000",
        "partition.devices=8",
        "partition.scale=0.05",
        "partition.classes-per-device=all",
        "training.model=mlp",
        "training.steps=60",
        "planner.phi-e=0.02",
        "compare.methods=[\"st-lf\",\"st-lf-links\"]",
    ];
    Config::default().with(changes).unwrap()
}

fn table(folder: &Path) -> Vec<RelayRow> {
    let mut reader = csv::Reader::from_path(folder.join("seed-3/relays.csv")).unwrap();
    reader.deserialize().collect::<Result<_, _>>().unwrap()
}

fn plan(folder: &Path) -> Plan {
    let bytes = std::fs::read(folder.join("seed-3/plan.json")).unwrap();
    PlanFile::read(&bytes).unwrap().restore_checked().unwrap().1
}

fn models(folder: &Path, name: &str) -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(folder.join("seed-3").join(name)).unwrap();
    files
        .map(|file| {
            let path = file.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read(path).unwrap())
        })
        .collect()
}

#[test]
fn every_hand_over_is_trained_and_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    let outcome = run(&alike(), folder.path(), &|_| ControlFlow::Continue(())).unwrap();
    let sent = table(folder.path());
    let hand_overs: Vec<&RelayRow> = sent.iter().filter(|row| row.weight.is_none()).collect();
    assert!(hand_overs.len() >= 2, "{sent:?}");

    let rows: Vec<&Row> = outcome.rows.iter().filter(|r| r.method == "st-lf").collect();
    assert_eq!((rows.len(), outcome.refused.len()), (4, 0));
    let links: usize = rows.iter().map(|row| row.links).sum();
    assert_eq!(links, sent.len());
    let joules: f64 = rows.iter().map(|row| row.joules).sum();
    let wanted: f64 = sent.iter().filter_map(|row| row.joules).sum();
    assert!((joules - wanted).abs() < 1e-9 && joules > 0.0);
    let plan = outcome.rows.iter().find(|row| row.method == "st-lf-links").unwrap();
    let bytes: u64 = rows.iter().map(|row| row.bytes).sum();
    assert_eq!(bytes, plan.bytes / plan.links as u64 * links as u64);

    // A model that was handed on is neither the giver's nor the taker's own.
    let (own, relayed) = (models(folder.path(), "models"), models(folder.path(), "relayed"));
    assert_eq!(relayed.len(), hand_overs.len());
    for hop in hand_overs {
        assert!(relayed[&hop.to] != own[&hop.to] && relayed[&hop.to] != own[&hop.from]);
    }
}

#[test]
fn with_all_links_targets_get_what_fedavg_sends_and_nothing_is_handed_on() {
    let folder = tempfile::tempdir().unwrap();
    let changes = ["planner.all-links=true", "compare.methods=[\"st-lf\",\"fedavg\"]"];
    let config = alike().with(changes).unwrap();
    let outcome = run(&config, folder.path(), &|_| ControlFlow::Continue(())).unwrap();
    let of = |method: &str| -> Vec<(String, Option<f64>, usize, f64)> {
        let rows = outcome.rows.iter().filter(|row| row.method == method);
        rows.map(|row| (row.target.clone(), row.accuracy, row.links, row.joules)).collect()
    };
    assert_eq!(of("st-lf"), of("fedavg"));
    assert!(of("st-lf").len() == 4 && of("st-lf").iter().all(|(_, _, links, _)| *links == 4));
    assert_eq!(plan(folder.path()).handovers, []);
    assert_eq!((outcome.links_shares, outcome.mixed_for_strangers), (vec![1.0], 0));
}

#[test]
fn what_a_source_with_wrong_labels_hands_on_is_refused_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let config = alike().with(["partition.mislabeled-devices=1", "training.steps=300"]).unwrap();
    let outcome = run(&config, folder.path(), &|_| ControlFlow::Continue(())).unwrap();
    let is_wrong = |name: &str| name == "d1";
    let hand_overs = table(folder.path());
    let with_wrong = hand_overs.iter().filter(|row| row.weight.is_none());
    let mut disputed: Vec<(String, String)> = with_wrong
        .filter(|row| is_wrong(&row.from) || is_wrong(&row.to))
        .map(|row| (row.from.clone(), row.to.clone()))
        .collect();
    disputed.sort();
    assert!(!disputed.is_empty(), "{hand_overs:?}");
    // Between one with wrong labels and another either refuses what the other hands on, and nobody else refuses anything.
    let mut refused: Vec<(String, String)> =
        outcome.refused.iter().map(|row| (row.from.clone(), row.to.clone())).collect();
    refused.sort();
    refused.dedup();
    assert_eq!(refused, disputed);
    let row = &outcome.refused[0];
    assert!(2 * row.errors > row.labels && row.told().contains(&row.from), "{row:?}");
    assert!(folder.path().join("seed-3/refused.csv").exists());
}

#[test]
fn examiners_are_counted_refuse_wrong_models_and_change_nothing_else() {
    let go_on = |_| ControlFlow::Continue(());
    for changes in [&["planner.handovers=false"][..], &[]] {
        let (plain, tried) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let config = alike().with(changes.iter().copied()).unwrap();
        let config = config.with(["training.steps=300", "compare.methods=[\"st-lf\"]"]).unwrap();
        let expected = run(&config, plain.path(), &go_on).unwrap();
        let with = |more: &[&'static str]| {
            config.with(["planner.examiners=true"]).unwrap().with(more.iter().copied()).unwrap()
        };
        let outcome = run(&with(&[]), tried.path(), &go_on).unwrap();
        assert!(outcome.refused.is_empty());
        let accuracies = |rows: &[Row]| rows.iter().map(|row| row.accuracy).collect::<Vec<_>>();
        assert_eq!(accuracies(&outcome.rows), accuracies(&expected.rows));
        // One model more for each source that sends to targets, none of which has labels here.
        let senders: BTreeSet<usize> = plan(plain.path()).links.iter().map(|l| l.from).collect();
        let links = |rows: &[Row]| rows.iter().map(|row| row.links).sum::<usize>();
        let joules = |rows: &[Row]| rows.iter().map(|row| row.joules).sum::<f64>();
        assert_eq!(links(&outcome.rows), links(&expected.rows) + senders.len());
        assert!(joules(&outcome.rows) > joules(&expected.rows));

        // A source whose labels are wrong, and whose model goes straight to targets.
        let wrong = tempfile::tempdir().unwrap();
        let lying = with(&["partition.mislabeled-devices=3"]);
        let outcome = run(&lying, wrong.path(), &go_on).unwrap();
        let by_examiners = outcome.refused.iter().filter(|row| row.way.is_none());
        for row in by_examiners.clone() {
            assert!(2 * row.errors > row.labels, "{row:?}");
            assert!(row.told().starts_with("as an examiner it refused"), "{row:?}");
        }
        assert!(by_examiners.count() > 0, "{:?}", outcome.refused);
    }
}

#[test]
fn links_only_is_the_plan_of_a_run_without_hand_overs() {
    let (apart, planned) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let go_on = |_| ControlFlow::Continue(());
    let without = alike().with(["planner.handovers=false"]).unwrap();
    let expected = run(&without, apart.path(), &go_on).unwrap();
    let outcome = run(&alike(), planned.path(), &go_on).unwrap();
    let rows = |rows: &[Row], method: &str| -> Vec<Row> {
        let of_method = rows.iter().filter(|row| row.method == method).cloned();
        of_method.map(|row| Row { method: String::new(), ..row }).collect()
    };
    let links_only = rows(&expected.rows, "st-lf");
    assert_eq!(rows(&expected.rows, "st-lf-links"), links_only);
    assert_eq!(rows(&outcome.rows, "st-lf-links"), links_only);
    assert_ne!(rows(&outcome.rows, "st-lf"), links_only);
    assert!(!apart.path().join("seed-3/relayed").exists());
    let hand_overs = table(planned.path()).iter().filter(|row| row.weight.is_none()).count();
    assert_eq!(plan(planned.path()).handovers.len(), hand_overs);
}

#[test]
fn stopped_between_hand_overs_it_ends_the_same() {
    let (whole, part) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let go_on = |_| ControlFlow::Continue(());
    let expected = run(&alike(), whole.path(), &go_on).unwrap();
    let stop = |event: Event| match event.stage {
        Stage::Relay => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    assert!(matches!(run(&alike(), part.path(), &stop), Err(Error::Stopped)));
    let kept = models(part.path(), "relayed");
    assert!(!kept.is_empty());
    assert_eq!(run(&alike(), part.path(), &go_on).unwrap(), expected);
    assert!(models(part.path(), "relayed") == models(whole.path(), "relayed"));
    let manifest = |folder: &Path| std::fs::read(folder.join("manifest.json")).unwrap();
    assert_eq!(manifest(part.path()), manifest(whole.path()));
}

#[test]
fn models_of_other_hand_overs_are_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let go_on = |_| ControlFlow::Continue(());
    let expected = run(&alike(), folder.path(), &go_on).unwrap();
    let kept = models(folder.path(), "relayed");
    // As if another rule had chosen, and trained, other hand-overs before the run was stopped.
    let seed = folder.path().join("seed-3");
    std::fs::write(seed.join("relays.csv"), "from,to,weight,joules\nd1,d2,,1.0\n").unwrap();
    let (name, _) = kept.first_key_value().unwrap();
    let other = std::fs::read(seed.join("models").join(format!("{name}.safetensors"))).unwrap();
    std::fs::write(seed.join("relayed").join(format!("{name}.safetensors")), other).unwrap();
    std::fs::remove_file(seed.join("results/st-lf.csv")).unwrap();
    std::fs::remove_file(folder.path().join("manifest.json")).unwrap();
    assert_eq!(run(&alike(), folder.path(), &go_on).unwrap(), expected);
    assert!(models(folder.path(), "relayed") == kept);
}

#[test]
fn they_go_with_every_way_to_combine() {
    for change in
        ["planner.combine=parameters", "planner.combine=corrected", "training.balanced=false"]
    {
        let folder = tempfile::tempdir().unwrap();
        let config = alike().with([change]).unwrap();
        let outcome = run(&config, folder.path(), &|_| ControlFlow::Continue(())).unwrap();
        let rows = outcome.rows.iter().filter(|row| row.method == "st-lf");
        assert_eq!(
            rows.filter(|row| row.accuracy.is_some_and(|a| a > 0.15)).count(),
            4,
            "{change}"
        );
        assert!(table(folder.path()).iter().any(|row| row.weight.is_none()), "{change}");
    }
}

/// Mean accuracy, and energy as a share of all links, of a method.
fn outcome_of(rows: &[Row], method: &str) -> (f64, f64) {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.method == method).collect();
    let sum = |of: &dyn Fn(&Row) -> f64| rows.iter().map(|row| of(row)).sum::<f64>();
    let accuracy = sum(&|row| row.accuracy.unwrap()) / rows.len() as f64;
    (accuracy, sum(&|row| row.joules) / sum(&|row| row.all_joules))
}

#[test]
fn devices_that_are_alike_gain_over_all_links_with_less_than_half_the_energy() {
    let changes = [
        "seeds=[0,1]",
        "partition.scale=0.05",
        "partition.classes-per-device=all",
        "training.steps=500",
        // So few samples need more base noise than would leave all of them alike.
        "divergence.privacy=none",
        "compare.methods=[\"st-lf\",\"st-lf-links\",\"fedavg\"]",
    ];
    let config = Config::default().with(changes).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let rows = run(&config, folder.path(), &|_| ControlFlow::Continue(())).unwrap().rows;
    let [relay, plan, fedavg] =
        ["st-lf", "st-lf-links", "fedavg"].map(|method| outcome_of(&rows, method));
    // 91 % at 48 % of the energy, on a ring; the same sources in a chain had 87 % at 34 %.
    assert!(relay.0 > fedavg.0 + 0.1 && relay.0 > plan.0 + 0.1, "{plan:?} {relay:?} {fedavg:?}");
    assert!(relay.1 < 0.5 && fedavg.1 > 0.99, "{relay:?} {fedavg:?}");
}
