//! Devices whose tables, or pictures, change while they run.

use std::fmt::Write;

use serde_json::Value;
use stlf_testing::{DEADLINE, wait_for};

use crate::common::fleet::Fleet;
use crate::common::run;

const SETTINGS: &str =
    "seeds=[3] training.model=mlp training.steps=300 data.classes=[\"calm\",\"storm\"]";

/// Rows of a table: calm days and storms, this far from where they usually are.
fn table(rows: std::ops::Range<usize>, is_labeled: bool, away: f64) -> String {
    let mut text = "wind,wave,rain,label\n".to_owned();
    for row in rows {
        let is_storm = row % 2 == 1;
        let label = match (is_labeled, is_storm) {
            (false, _) => "",
            (true, true) => "storm",
            (true, false) => "calm",
        };
        let noise = |k: usize| ((row * k + row / 7) % 101) as f64 / 25.0;
        let base = if is_storm { 6.0 } else { 2.0 };
        let [wind, wave, rain] = [17, 29, 37].map(noise);
        writeln!(text, "{},{},{},{label}", base + wind + away, base + wave, rain - away).unwrap();
    }
    text
}

/// Puts a whole table in the place of another, as programs do that write tables well.
fn replace(fleet: &Fleet, k: usize, text: &str) {
    let (new, old) = (fleet.path("new.csv"), fleet.path(&format!("d{k}.csv")));
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, old).unwrap();
}

/// Waits until a device says this of its table.
fn wait_for_change(fleet: &Fleet, k: usize, kind: Option<&str>) -> Value {
    let told = || {
        let data = fleet.status(k)?["data"].clone();
        (data.get("kind").and_then(Value::as_str) == kind).then_some(data)
    };
    wait_for(DEADLINE, told, || format!("d{k}: {:#?}\n{}", fleet.status(k), fleet.log(k)))
}

fn times(log: &str, words: &str) -> usize {
    log.matches(words).count()
}

#[test]
fn a_table_that_drifts_has_the_fleet_plan_anew_and_others_do_not() {
    let mut fleet = Fleet::on("127.0.8.31", 3, 3, SETTINGS);
    let tables =
        [table(0..300, true, 0.0), table(300..600, true, 0.0), table(600..900, false, 0.0)];
    for (k, text) in (1..).zip(&tables) {
        replace(&fleet, k, text);
        let own = fleet.text(&format!("d{k}.csv"));
        fleet.start(k, &["--data", &own, "--settle", "0.5"]);
    }
    let first = fleet.wait_for(&[1, 2, 3], 3, 0);
    let plan = fleet.one_plan(&[1, 2, 3]);

    // Rows that are like the others.
    replace(&fleet, 2, &table(300..640, true, 0.0));
    let slight = wait_for_change(&fleet, 2, Some("slight"));
    assert_eq!(slight["rows"], 340, "{slight}");
    let status = run(&["node", "status", "--at", &fleet.text("node-2")], "");
    let said = "its table has changed too little to matter (340 rows, d̂ 0.00); it goes on with";
    assert!(status.out.contains(said), "{}", status.out);

    // A table that somebody has not written to its end.
    replace(&fleet, 2, &format!("{}8.1,9.", table(300..640, true, 0.0)));
    let torn = wait_for_change(&fleet, 2, Some("unusable"));
    assert!(torn["reason"].as_str().unwrap().contains("d2.csv"), "{torn}");
    let status = run(&["node", "status", "--at", &fleet.text("node-2")], "");
    assert!(status.out.contains("its table cannot be used; it goes on"), "{}", status.out);

    // Other columns, which the fleet has not agreed on.
    replace(&fleet, 2, &table(300..640, true, 0.0).replace("wind", "gusts"));
    let differs = |data: &Value| data["reason"].as_str().unwrap().contains("data.columns differs");
    let told = || Some(wait_for_change(&fleet, 2, Some("unusable"))).filter(differs);
    wait_for(DEADLINE, told, || fleet.log(2));

    // What it was, of which nothing is to be said.
    replace(&fleet, 2, &tables[1]);
    wait_for_change(&fleet, 2, None);
    assert_eq!(fleet.status(2).unwrap()["epoch"], first);
    assert_eq!(fleet.one_plan(&[1, 2, 3]), plan);
    assert_eq!(times(&fleet.log(2), "training on 300 labels"), 1);

    // Sensors that have drifted, and the target's with them.
    replace(&fleet, 2, &table(300..600, true, 9.0));
    let matters = wait_for_change(&fleet, 2, Some("matters"));
    assert!(matters["divergence"].as_f64().unwrap() > 1.0, "{matters}");
    let second = fleet.wait_for(&[1, 2, 3], 3, first);
    replace(&fleet, 3, &table(600..900, false, 9.0));
    wait_for_change(&fleet, 3, Some("matters"));
    let third = fleet.wait_for(&[1, 2, 3], 3, second);
    assert_eq!((second, third), (first + 1, first + 2));
    let drifted = fleet.one_plan(&[1, 2, 3]);
    let links = drifted["links"].as_array().unwrap();
    // The target takes the model of the one that has drifted as it has.
    assert!(links.iter().all(|link| link["from"] == 1 && link["to"] == 2), "{drifted}");
    // The third has no labels.
    for (k, trained) in [(1, 1), (2, 2), (3, 0)] {
        let log = fleet.log(k);
        assert_eq!(times(&log, ": training on "), trained, "d{k}: {log}");
    }
    // Only the devices with other data have published twice.
    for (k, published) in [(1, 1), (2, 2), (3, 2)] {
        let record = fleet.json(&format!("node-{k}/published.json"));
        assert_eq!(record["publications"].as_array().unwrap().len(), published, "d{k}");
    }
    let predicted = std::fs::read_to_string(fleet.path("node-3/predictions.csv")).unwrap();
    let right = predicted.lines().skip(1).enumerate();
    let right = right.filter(|(row, line)| line.contains(["calm", "storm"][row % 2])).count();
    assert!(right > 280, "{right} of 300");

    // Started again, it goes on with what it made of the table that it has now.
    fleet.kill(2);
    let own = fleet.text("d2.csv");
    let before = fleet.log(2).len();
    fleet.start(2, &["--data", &own, "--settle", "0.5"]);
    fleet.wait_for(&[1, 2, 3], 3, third);
    assert!(fleet.log(2)[before..].contains("was trained before"), "{}", fleet.log(2));
}

/// Puts pictures of one kind into a device's folder: upright or flat bars before this shade.
fn paint(fleet: &Fleet, k: usize, class: &str, numbers: std::ops::Range<u32>, shade: u8) {
    let folder = fleet.path(&format!("d{k}/site/{class}"));
    std::fs::create_dir_all(&folder).unwrap();
    for number in numbers {
        let is_upright = match class {
            "unlabeled" => number.is_multiple_of(2),
            class => class == "upright",
        };
        let picture = image::GrayImage::from_fn(8, 8, |x, y| {
            let across = if is_upright { x } else { y };
            let noise = ((number * 31 + x * 17 + y * 29 + number / 7) % 40) as u8;
            image::Luma([if across / 2 == number % 4 { 200 } else { shade } + noise])
        });
        // Whoever writes a picture under a hidden name first lets nobody see a half of it.
        let (half, whole) = (folder.join(".half.png"), folder.join(format!("{number}.png")));
        picture.save(&half).unwrap();
        std::fs::rename(half, whole).unwrap();
    }
}

#[test]
fn a_folder_of_pictures_that_drifts_has_the_fleet_plan_anew_and_others_do_not() {
    let mut fleet =
        Fleet::on("127.0.8.32", 3, 3, "seeds=[3] training.model=mlp training.steps=300");
    for k in 1..=3 {
        // The last has a label of each class, and no more.
        let labeled = if k < 3 { 0..150 } else { 0..1 };
        for class in ["flat", "upright"] {
            paint(&fleet, k, class, labeled.clone(), 10);
        }
        if k == 3 {
            paint(&fleet, 3, "unlabeled", 1..300, 10);
        }
        let own = fleet.text(&format!("d{k}"));
        fleet.start(k, &["--data", &own, "--settle", "0.5"]);
    }
    let first = fleet.wait_for(&[1, 2, 3], 3, 0);

    // Some pictures more, which are like the others.
    paint(&fleet, 2, "flat", 150..160, 10);
    paint(&fleet, 2, "upright", 150..160, 10);
    let slight = wait_for_change(&fleet, 2, Some("slight"));
    assert_eq!((&slight["of"], &slight["rows"]), (&"pictures".into(), &320.into()), "{slight}");
    let status = run(&["node", "status", "--at", &fleet.text("node-2")], "");
    let said = "its folder of pictures has changed too little to matter (320 pictures, d̂ 0.00)";
    assert!(status.out.contains(said), "{}", status.out);

    // A class that the fleet does not know.
    paint(&fleet, 2, "slanted", 0..5, 10);
    let unusable = wait_for_change(&fleet, 2, Some("unusable"));
    assert!(unusable["reason"].as_str().unwrap().contains("data.classes differs"), "{unusable}");
    std::fs::remove_dir_all(fleet.path("d2/site/slanted")).unwrap();
    wait_for_change(&fleet, 2, Some("slight"));
    assert_eq!(fleet.status(2).unwrap()["epoch"], first);

    // It has become light.
    paint(&fleet, 2, "flat", 0..160, 120);
    paint(&fleet, 2, "upright", 0..160, 120);
    let matters = wait_for_change(&fleet, 2, Some("matters"));
    assert!(matters["divergence"].as_f64().unwrap() > 1.0, "{matters}");
    fleet.wait_for(&[1, 2, 3], 3, first);
    assert_eq!(times(&fleet.log(2), "training on 320 labels"), 1, "{}", fleet.log(2));
    assert_eq!(times(&fleet.log(1), ": training on "), 1, "{}", fleet.log(1));
}
