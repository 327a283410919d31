use super::*;
use crate::Dataset;
use crate::partition::testing::{class_counts, samples_of};
use crate::partition::{Partition, Scheme, Share, deal};

fn network(data: &Dataset, paper: &Paper, seed: u64) -> Result<Partition, String> {
    deal(data, &Scheme::Paper(paper.clone()), seed).map_err(|e| e.to_string())
}

fn classes(data: &Dataset, share: &Share) -> Vec<usize> {
    let counts = class_counts(data, share.samples());
    (0..counts.len()).filter(|&class| counts[class] > 0).collect()
}

fn has(data: &Dataset, share: &Share, domain: usize) -> bool {
    share.samples().any(|s| data.domain(s) == domain)
}

#[test]
fn the_defaults_are_the_papers_network() {
    let data = samples_of(&[("mnist", &[6000; 10])]);
    let mut sizes = [Vec::new(), Vec::new(), Vec::new()];
    for seed in 0..40 {
        let devices = network(&data, &Paper::default(), seed).unwrap().devices;
        assert_eq!(devices.len(), 10);
        let (labeled, unlabeled) = devices.split_at(5);
        for device in labeled {
            assert_eq!(classes(&data, device).len(), 4);
            let labels = class_counts(&data, device.labeled.iter().copied());
            assert_eq!(labels.iter().filter(|&&count| count > 0).count(), 4);
            sizes[0].push(device.labeled.len() as f64);
            sizes[1].push(device.unlabeled.len() as f64);
        }
        for device in unlabeled {
            assert!(device.labeled.is_empty());
            let own = classes(&data, device);
            assert!(labeled.iter().any(|other| classes(&data, other) == own), "copied");
            sizes[2].push(device.unlabeled.len() as f64);
        }
    }
    for (sizes, mean) in sizes.iter().zip([1600.0, 200.0, 1000.0]) {
        let n = sizes.len() as f64;
        let found = sizes.iter().sum::<f64>() / n;
        let deviation = (sizes.iter().map(|x| (x - found).powi(2)).sum::<f64>() / n).sqrt();
        assert!((found / mean - 1.0).abs() < 0.05, "{found} for {mean}");
        assert!((deviation / mean * 6.0 - 1.0).abs() < 0.2, "{deviation} for {}", mean / 6.0);
    }
}

#[test]
fn mixed_devices_have_both_domains_and_split_ones_have_one() {
    let data = samples_of(&[("m", &[800; 10]), ("u", &[400; 10])]);
    let all = ClassesPerDevice::All(All::All);
    let paper = |arrangement, devices| Paper {
        arrangement,
        devices,
        scale: 0.1,
        classes_per_device: all,
        ..Paper::default()
    };
    for seed in 0..20 {
        let mixed = network(&data, &paper(Arrangement::Mixed, 10), seed).unwrap();
        assert!(mixed.devices.iter().all(|d| has(&data, d, 0) && has(&data, d, 1)));
        // With as many devices as domains the coin alone would often forget one.
        for devices in [2, 10] {
            let split = network(&data, &paper(Arrangement::Split, devices), seed).unwrap().devices;
            assert!(split.iter().all(|d| has(&data, d, 0) != has(&data, d, 1)));
            assert!((0..2).all(|domain| split.iter().any(|d| has(&data, d, domain))));
            assert!(split.iter().all(|d| classes(&data, d).len() == 10));
        }
    }
}

#[test]
fn domains_of_unlabeled_devices_are_at_no_labeled_one() {
    let data = samples_of(&[("m", &[800; 10]), ("mm", &[800; 10]), ("u", &[400; 10])]);
    let paper = |arrangement, unseen: &[&str]| Paper {
        arrangement,
        unlabeled_domains: unseen.iter().map(|&d| d.to_owned()).collect(),
        devices: 7,
        scale: 0.1,
        ..Paper::default()
    };
    for seed in 0..20 {
        for arrangement in [Arrangement::Mixed, Arrangement::Split] {
            for unseen in [&["mm"][..], &["u", "mm"], &["m"]] {
                let dealt = network(&data, &paper(arrangement, unseen), seed).unwrap();
                let (labeled, unlabeled) = dealt.devices.split_at(4);
                for (domain, name) in ["m", "mm", "u"].iter().enumerate() {
                    let count =
                        |side: &[Share]| side.iter().filter(|d| has(&data, d, domain)).count();
                    let counts = (count(labeled), count(unlabeled));
                    let (own, others) = match unseen.contains(name) {
                        true => (counts.1, counts.0),
                        false => (counts.0, counts.1),
                    };
                    assert!(own > 0 && others == 0, "{name}: {counts:?}");
                }
                let per_device = |d: &Share| (0..3).filter(|&k| has(&data, d, k)).count();
                let most = if arrangement == Arrangement::Split { 1 } else { 2 };
                assert_eq!(dealt.devices.iter().map(per_device).max(), Some(most));
            }
        }
    }
}

#[test]
fn unlabeled_devices_have_some_of_the_classes_of_a_labeled_one() {
    let data = samples_of(&[("m", &[800; 10])]);
    let paper = Paper {
        classes_per_device: ClassesPerDevice::Count(6),
        unlabeled_classes: Some(4),
        scale: 0.1,
        ..Paper::default()
    };
    for seed in 0..20 {
        let dealt = network(&data, &paper, seed).unwrap();
        let (labeled, unlabeled) = dealt.devices.split_at(5);
        let known: Vec<_> = labeled.iter().map(|d| classes(&data, d)).collect();
        assert!(known.iter().all(|set| set.len() == 6));
        for device in unlabeled {
            let own = classes(&data, device);
            assert_eq!(own.len(), 4);
            let of_one = known.iter().any(|set| own.iter().all(|class| set.contains(class)));
            assert!(of_one, "{own:?} of {known:?}");
        }
    }
}

#[test]
fn a_class_that_runs_out_is_made_up_for_by_the_others() {
    let data = samples_of(&[("x", &[5, 500, 500, 500])]);
    let paper = Paper { devices: 2, scale: 0.1, deviation: 0.0, ..Paper::default() };
    let partition = network(&data, &paper, 1).unwrap();
    assert_eq!(partition.devices[0].labeled.len(), 160);
    assert_eq!(partition.devices[0].unlabeled.len(), 20);
    assert_eq!(partition.devices[1].unlabeled.len(), 100);
}

#[test]
fn devices_that_share_samples_need_fewer() {
    let data = samples_of(&[("usps", &[1000, 1000, 700, 700, 700, 600, 700, 600, 600, 600])]);
    let apart = Paper::default();
    let message = network(&data, &apart, 1).unwrap_err();
    assert!(message.starts_with("scale: device d"), "{message}");
    assert!(message.contains("samples of usps, and its classes have "), "{message}");
    for seed in 0..20 {
        network(&data, &Paper { disjoint: false, ..Paper::default() }, seed).unwrap();
    }
}

#[test]
fn settings_out_of_range_are_named() {
    let one = samples_of(&[("m", &[50; 10])]);
    let two = samples_of(&[("m", &[50; 10]), ("u", &[50; 10])]);
    type Change = fn(&mut Paper);
    let wrong = |data: &Dataset, change: Change| {
        let mut paper = Paper { scale: 0.01, ..Paper::default() };
        change(&mut paper);
        network(data, &paper, 1).err()
    };
    let cases: [(&Dataset, Change, &str); 15] = [
        (
            &one,
            |p| p.mislabeled_devices = 6,
            "mislabeled-devices: 6 requested, and 5 devices have labels",
        ),
        (
            &one,
            |p| p.unlabeled_classes = Some(5),
            "unlabeled-classes: 5 requested, and a device with labels has 4",
        ),
        (&one, |p| p.alpha = -1.0, "alpha: -1 is not above 0"),
        (&one, |p| p.scale = 0.0, "scale: 0 is not above 0"),
        (&one, |p| p.deviation = f64::NAN, "deviation: NaN is not 0 or more"),
        (&one, |p| p.labeled_devices = Some(0), "labeled-devices: 0 of 10 devices"),
        (&one, |p| p.labeled_devices = Some(11), "labeled-devices: 11 of 10 devices"),
        (
            &one,
            |p| p.classes_per_device = ClassesPerDevice::Count(11),
            "classes-per-device: 11 requested, but the data has 10 classes",
        ),
        (
            &one,
            |p| p.arrangement = Arrangement::Mixed,
            "arrangement: 1 domain cannot be mixed or split",
        ),
        (&two, |_| (), "arrangement: single is for one domain, and the data has 2"),
        (
            &two,
            |p| {
                p.arrangement = Arrangement::Split;
                p.devices = 1;
            },
            "devices: 1 devices for 2 domains",
        ),
        (
            &two,
            |p| {
                p.arrangement = Arrangement::Split;
                p.unlabeled_domains = vec!["x".to_owned()];
            },
            "unlabeled-domains: the data has no domain \"x\"",
        ),
        (
            &two,
            |p| {
                p.arrangement = Arrangement::Split;
                p.unlabeled_domains = vec!["m".to_owned(), "u".to_owned()];
            },
            "unlabeled-domains: no domain is left for the devices with labels",
        ),
        (
            &two,
            |p| {
                p.arrangement = Arrangement::Mixed;
                p.unlabeled_domains = vec!["u".to_owned()];
                p.labeled_devices = Some(10);
            },
            "unlabeled-domains: 0 unlabeled devices for u",
        ),
        (
            &one,
            |p| p.unlabeled_domains = vec!["m".to_owned()],
            "unlabeled-domains: no domain is left for the devices with labels",
        ),
    ];
    for (data, change, message) in cases {
        assert_eq!(wrong(data, change).as_deref(), Some(message));
    }
}
