//! What a device publishes for measuring, counted on disk: within a budget, never again for a few changes, and by a scale that it keeps.

use stlf_node::network;
use stlf_node::service::{Error, Options, Service, settings};

use crate::service::{Fleet, SETTINGS, take_part};

#[test]
fn publications_with_noise_are_counted_on_disk_and_within_a_budget() {
    let fleet = Fleet::new();
    let budget = |budget: f64, epsilon: f64| {
        let privacy =
            format!("divergence.privacy={{epsilon={epsilon},delta=1e-5,budget={budget}}}");
        let changes: Vec<&str> = SETTINGS.iter().copied().chain([privacy.as_str()]).collect();
        Options { config: settings(None, None, &changes).unwrap(), ..fleet.options("gate") }
    };
    let shown = || fleet.protection("gate");
    let ledger = fleet.path("gate").join("privacy.json");
    drop(Service::new(budget(1.5, 1.0), &mut |_| ()).unwrap());
    assert!(!ledger.exists(), "nothing is published by looking");
    for _ in 0..2 {
        let alone = take_part(budget(1.5, 1.0)).unwrap_err();
        assert!(matches!(alone, Error::Network(network::Error::Alone(_))), "{alone}");
        assert!(shown().contains("spent 1.00 of 1.5 at δ = 1e-5 in 1 publication"), "{}", shown());
    }
    let first = std::fs::read(&ledger).unwrap();
    // The same data with other noise tell something new.
    let refused = take_part(budget(1.2, 0.9)).unwrap_err();
    assert!(matches!(&refused, Error::Overspent(e) if e.after > 1.2), "{refused}");
    assert!(shown().contains("refuses: publishing this device's data"), "{}", shown());
    let alone = take_part(budget(2.0, 0.9)).unwrap_err();
    assert!(matches!(alone, Error::Network(_)) && shown().contains("in 2 publications"));

    // An old backup knows nothing of the second one, and a record that is gone of none.
    let newest = std::fs::read(&ledger).unwrap();
    std::fs::write(&ledger, first).unwrap();
    for _ in 0..2 {
        let older = take_part(budget(2.0, 0.9)).unwrap_err();
        assert!(matches!(older, Error::OlderRecord { .. }) && older.hint().is_some(), "{older}");
        if ledger.exists() {
            std::fs::remove_file(&ledger).unwrap();
        }
    }
    std::fs::write(&ledger, newest).unwrap();
    assert!(matches!(take_part(budget(2.0, 0.9)).unwrap_err(), Error::Network(_)));

    std::fs::write(&ledger, "{").unwrap();
    let corrupt = take_part(budget(2.0, 0.9)).unwrap_err();
    assert!(matches!(corrupt, Error::Ledger { .. }) && corrupt.hint().is_some(), "{corrupt}");
    // Without noise this record is not read; there is another one.
    assert!(matches!(take_part(fleet.options("gate")).unwrap_err(), Error::Network(_)));
    assert!(shown().starts_with("not invertible: 32 means of"), "{}", shown());
}

#[test]
fn by_default_a_device_that_has_spent_enough_publishes_its_last_means_again() {
    let fleet = Fleet::new();
    let start = |rows: std::ops::Range<u32>| fleet.start_alone(rows, &["data.standardise=none"]);
    assert!(matches!(start(0..2_000), Error::Network(_)));
    let shown = fleet.protection("gate");
    assert!(shown.contains("spent 1.00 of 10 at δ = 1e-5 in 1 publication"), "{shown}");
    let ledger = fleet.path("gate").join("privacy.json");
    let read = || -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(&ledger).unwrap()).unwrap()
    };
    // As if it had published two hundred times before.
    let mut kept = read();
    let publications = kept["publications"].as_array_mut().unwrap();
    let mut earlier = publications[0].clone();
    earlier.as_object_mut().unwrap().remove("means");
    for k in 0..200 {
        earlier["id"] = format!("{k:064x}").into();
        publications.insert(0, earlier.clone());
    }
    std::fs::write(&ledger, kept.to_string()).unwrap();
    assert!(matches!(start(1_000..3_000), Error::Network(_)));
    let shown = fleet.protection("gate");
    assert!(shown.contains("It publishes its last means again"), "{shown}");
    assert_eq!(read(), kept);
}

#[test]
fn means_that_were_published_before_without_more_noise_are_spent_too() {
    let fleet = Fleet::new();
    let start = |changes: &[&str]| {
        fleet.start_alone(0..400, &[&["data.standardise=none"], changes].concat())
    };
    assert!(matches!(start(&[]), Error::Network(_)));
    // 16 means of 400 samples, μ = 2√(63·16/400), which nobody can take back.
    let privacy = "divergence.privacy={epsilon=1.0,delta=1e-5}";
    assert!(matches!(start(&[privacy]), Error::Network(_)));
    let shown = fleet.protection("gate");
    assert!(shown.contains("in 1 publication and 1 with base noise"), "{shown}");
    let spent: f64 =
        shown.split("spent ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(spent > 15.0, "{shown}");
    let refused = start(&["divergence.privacy={epsilon=0.9,delta=1e-5,budget=3.0}"]);
    assert!(matches!(&refused, Error::Overspent(e) if e.after > 15.0), "{refused}");
}

#[test]
fn whoever_accepts_that_samples_can_be_rebuilt_is_not_told_otherwise() {
    let fleet = Fleet::new();
    let accept = ["data.standardise=none", "divergence.accept=others can rebuild my samples"];
    // By their number these would be enough. They are all the same.
    let same = "1,2,3,calm\n".repeat(99) + "1,2,3,storm\n";
    let refused = fleet.start_alone_with(&same, &accept[..1]);
    assert!(refused.to_string().contains("many of which are the same"), "{refused}");
    assert!(matches!(fleet.start_alone_with(&same, &accept), Error::Network(_)));
    assert_eq!(fleet.protection("gate"), "others can rebuild samples (accepted)");
    // Those of others are enough; but then nothing limits what is told of divergences.
    let other = Fleet::new();
    assert!(matches!(other.start_alone(0..150, &accept), Error::Network(_)));
    let shown = other.protection("gate");
    assert!(shown.starts_with("not invertible: 16 means of 150 samples"), "{shown}");
    assert!(shown.ends_with("; tells divergences without limit (accepted)"), "{shown}");
}

#[test]
fn few_changes_of_the_data_are_not_published_across_restarts() {
    for scale in ["none", "own"] {
        few_changes_are_not_published(&format!("data.standardise={scale}"));
    }
}

fn few_changes_are_not_published(scale: &str) {
    let fleet = Fleet::new();
    let start = |rows, changes: &[&str]| fleet.start_alone(rows, &[&[scale], changes].concat());
    let shown = || fleet.protection("gate");
    let record = fleet.path("gate").join("published.json");
    // What the device measures by is that of the rows that it has published.
    let measured = || std::fs::read(fleet.path("gate").join("published-data.json")).unwrap();
    assert!(matches!(start(0..150, &[]), Error::Network(_)));
    assert_eq!(shown(), "not invertible: 16 means of 150 samples, at most 3 bits each");
    let first = std::fs::read(&record).unwrap();
    let first_measured = measured();
    // One row more, then another one instead of the first.
    for (rows, behind) in [(0..151, 1), (1..151, 2)] {
        assert!(matches!(start(rows, &[]), Error::Network(_)));
        let noun = if behind == 1 { "sample" } else { "samples" };
        let told = format!(
            "150 samples, at most 3 bits each; {behind} {noun} changed since, too few to publish"
        );
        assert!(shown().ends_with(&told), "{}", shown());
        assert_eq!(std::fs::read(&record).unwrap(), first);
        assert_eq!(measured(), first_measured);
    }
    assert!(matches!(start(0..400, &[]), Error::Network(_)));
    assert_eq!(shown(), "not invertible: 16 means of 400 samples, at most 3 bits each");
    assert_ne!(std::fs::read(&record).unwrap(), first);
    assert_ne!(measured(), first_measured);

    // The same samples by many more features, which the rule would allow alone.
    let refused = start(0..400, &["divergence.features=110"]);
    assert!(matches!(refused, Error::Exhausted(_)) && refused.hint().is_some(), "{refused}");
    // Whoever accepts that others can rebuild samples publishes every change.
    let accept = "divergence.accept=others can rebuild my samples";
    assert!(matches!(start(0..401, &[accept]), Error::Network(_)));
    assert_eq!(shown(), "others can rebuild samples (accepted)");

    std::fs::write(&record, "{").unwrap();
    assert!(matches!(start(0..150, &[]), Error::Ledger { .. }));
}

#[test]
fn a_device_keeps_its_scale_and_knows_its_samples_by_another_one() {
    let fleet = Fleet::new();
    let start = |rows| fleet.start_alone(rows, &[]);
    let read = |name: &str| std::fs::read(fleet.path("gate").join(name)).unwrap();
    let files = || (read("scale.json"), read("published.json"));
    assert!(matches!(start(0..150), Error::Network(_)));
    let first = files();
    assert!(matches!(start(0..153), Error::Network(_)));
    assert_eq!(files(), first);
    // Up to the last row with the same scale, and on by one with another: to others it is that one row all the same.
    assert!(matches!(start(0..299), Error::Network(_)));
    let (scale, published) = files();
    assert!(scale == first.0 && published != first.1);
    assert!(matches!(start(0..300), Error::Network(_)));
    assert!(files().0 != scale && files().1 == published);
    let told =
        "16 means of 299 samples, at most 3 bits each; 1 sample changed since, too few to publish";
    assert!(fleet.protection("gate").ends_with(told), "{}", fleet.protection("gate"));

    let path = fleet.path("gate").join("scale.json");
    std::fs::write(&path, "{").unwrap();
    let broken = start(0..300);
    assert!(broken.to_string().starts_with(&path.display().to_string()), "{broken}");
    assert!(broken.hint().unwrap().contains("if you delete it"));
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(start(0..299), Error::Network(_)));
    assert_eq!(files().1, published);
}
