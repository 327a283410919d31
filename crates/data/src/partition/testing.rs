//! Small data sets for tests, and the conformance test that every partitioner passes.

use super::*;
use crate::dataset::Values;
use crate::{Class, Shape};

/// Samples of one pixel: for each domain, so many of each class.
pub(crate) fn samples_of(domains: &[(&str, &[usize])]) -> Dataset {
    let classes = domains.iter().map(|(_, counts)| counts.len()).max().unwrap_or(0);
    let names: Vec<String> = (0..classes).map(|class| class.to_string()).collect();
    let domain = |name: &str, counts: &[usize]| {
        // Classes take turns, so that an order by class is not there by accident.
        let most = counts.iter().max().copied().unwrap_or(0);
        let labels: Vec<Option<Class>> = (0..most)
            .flat_map(|turn| (0..counts.len()).filter(move |&c| turn < counts[c]))
            .map(|class| Some(class as Class))
            .collect();
        let pixels = Values::Pixels(vec![0; labels.len()]);
        Dataset::new(name, Shape::grey(1), pixels, labels, names.clone()).unwrap()
    };
    let sets = domains.iter().map(|(name, counts)| domain(name, counts));
    sets.reduce(|all, more| all.join(more).unwrap()).unwrap()
}

/// How many samples of each class there are; those without a class are not counted.
pub(crate) fn class_counts(data: &Dataset, samples: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut counts = vec![0; data.classes().len()];
    samples.filter_map(|s| data.label(s)).for_each(|class| counts[usize::from(class)] += 1);
    counts
}

/// The data set and every fifth sample of it once more, without its label.
fn with_unlabeled(data: Dataset) -> Dataset {
    let some: Vec<usize> = (0..data.len()).step_by(5).collect();
    let pixels = Values::Pixels(vec![0; some.len()]);
    let domain = data.domains()[0].clone();
    let classes = data.classes().to_vec();
    let more = Dataset::new(domain, data.shape(), pixels, vec![None; some.len()], classes).unwrap();
    data.join(more).unwrap()
}

fn all_schemes() -> Vec<Scheme> {
    let half = Labeled::Each([[0.5; 5], [0.0; 5]].concat());
    let small = Paper { scale: 0.02, ..Paper::default() };
    vec![
        Scheme::Paper(Paper { arrangement: Arrangement::Mixed, ..small.clone() }),
        Scheme::Paper(Paper { arrangement: Arrangement::Split, ..small.clone() }),
        Scheme::Paper(Paper { arrangement: Arrangement::Mixed, disjoint: false, ..small }),
        Scheme::Iid(Iid { labeled: half.clone(), ..Iid::default() }),
        Scheme::Dirichlet(Dirichlet { labeled: half.clone(), ..Dirichlet::default() }),
        Scheme::Dirichlet(Dirichlet { self_balancing: true, ..Dirichlet::default() }),
        Scheme::Shard(Shard { labeled: half.clone(), ..Shard::default() }),
        Scheme::Pathological(Pathological { labeled: half, ..Pathological::default() }),
        Scheme::ByDomain(ByDomain { devices_per_domain: 3, labeled: Labeled::Alike(0.3) }),
    ]
}

#[test]
fn every_partitioner_keeps_its_promises() {
    let data = with_unlabeled(samples_of(&[("m", &[120; 10]), ("u", &[60; 10])]));
    for scheme in all_schemes() {
        for seed in 0..5 {
            let partition =
                deal(&data, &scheme, seed).unwrap_or_else(|e| panic!("{scheme:?}: {e}"));
            assert_eq!(partition, deal(&data, &scheme, seed).unwrap(), "deterministic");
            assert_ne!(partition, deal(&data, &scheme, seed + 100).unwrap(), "the seed matters");
            let mut times_dealt = vec![0; data.len()];
            for device in &partition.devices {
                assert!(!device.is_empty());
                assert!(device.labeled.is_sorted() && device.unlabeled.is_sorted());
                assert!(device.labeled.iter().all(|&s| data.label(s).is_some()));
                let mut own: Vec<usize> = device.samples().collect();
                own.iter().for_each(|&sample| times_dealt[sample] += 1);
                own.sort_unstable();
                own.dedup();
                assert_eq!(own.len(), device.len(), "no device has a sample twice");
            }
            if scheme.is_disjoint() {
                assert!(times_dealt.iter().all(|&times| times <= 1), "{scheme:?}");
            }
            if scheme.is_complete() {
                assert!(times_dealt.iter().all(|&times| times >= 1), "{scheme:?}");
            }
        }
    }
}

#[test]
fn every_scheme_survives_its_file_and_refuses_unknown_keys() {
    for scheme in all_schemes() {
        let json = serde_json::to_value(&scheme).unwrap();
        assert_eq!(json["kind"], scheme.kind());
        assert_eq!(serde_json::from_value::<Scheme>(json.clone()).unwrap(), scheme);
        let mut unknown = json;
        unknown["alhpa"] = 1.into();
        let message = serde_json::from_value::<Scheme>(unknown).unwrap_err().to_string();
        assert!(message.contains("unknown field `alhpa`"), "{message}");
    }
    for kind in Scheme::KINDS {
        let defaults = serde_json::json!({ "kind": kind });
        assert_eq!(serde_json::from_value::<Scheme>(defaults).unwrap().kind(), kind);
    }
}

#[test]
fn labels_do_not_change_who_holds_what() {
    let data = samples_of(&[("x", &[50; 4])]);
    let holds = |labeled: f64| {
        let scheme = Iid { labeled: Labeled::Alike(labeled), ..Iid::default() };
        let partition = deal(&data, &Scheme::Iid(scheme), 7).unwrap();
        let mut all: Vec<Vec<usize>> =
            partition.devices.iter().map(|d| d.samples().collect()).collect();
        all.iter_mut().for_each(|samples| samples.sort_unstable());
        all
    };
    assert_eq!(holds(0.1), holds(0.9));
}

#[test]
fn more_devices_than_samples_are_refused() {
    let data = samples_of(&[("x", &[3, 4])]);
    for scheme in [
        Scheme::Iid(Iid::default()),
        Scheme::Dirichlet(Dirichlet::default()),
        Scheme::Shard(Shard::default()),
        Scheme::Pathological(Pathological::default()),
        Scheme::default(),
    ] {
        let error = deal(&data, &scheme, 1).unwrap_err();
        assert_eq!(error.to_string(), "devices: 10 requested, but the data has 7 samples");
    }
}
