//! Students are counted as they should be, and learners' by their own alterations.

use std::ops::ControlFlow;

use stlf_config::fleet::DeviceData;
use stlf_method::adapt::LEAST_SAMPLES;

use super::super::settings::Options;
use super::*;

/// A student whose scores exceed the mixture's by this margin, that tells so much about samples where the mixture tells 1, and adds so much.
pub(super) fn judged(margin: f64, information: f64, gain: f64) -> Judged {
    let row = |of: Guard| {
        let (score, of_mixture) = match of {
            Guard::Information => (information, 1.0),
            _ => (0.5 + margin, 0.5),
        };
        let (target, guard) = ("d1".to_owned(), of.name().to_owned());
        let threshold = of.threshold(Standard::Usual);
        let has_collapsed = of.takes_for_collapsed(information, 1.0);
        let accepted = score - of_mixture >= threshold && !has_collapsed;
        let (gain, threshold) = (Some(gain), Some(threshold));
        GuardRow { target, guard, score, of_mixture, threshold, accepted, gain }
    };
    let group = Group { students: "networks".to_owned(), domain: "known" };
    let fleet = ("M".to_owned(), 0);
    Judged { group, fleet, rows: Guard::ALL.map(row).to_vec(), gain }
}

#[test]
fn students_are_counted_at_every_threshold() {
    let all = [
        judged(0.035, 1.0, 0.01),
        judged(0.015, 1.0, -0.02),
        // It says the same of everything.
        judged(0.2, 0.5, -0.4),
        judged(-0.01, 1.0, 0.03),
    ];
    let entries = entries(&all);
    let at = |guard: Guard, threshold: Option<f64>| {
        let is_it = |e: &&Entry| (e.guard, e.threshold) == (guard.name(), threshold);
        let entry = entries.iter().find(is_it).unwrap();
        assert_eq!((entry.trained, entry.harmful), (4, 2));
        assert_eq!(entry.in_use, threshold.is_none());
        (entry.accepted, entry.wrongly_accepted, entry.worst_loss)
    };
    assert_eq!(at(Guard::Occlusion, Some(0.0)), (2, 1, 0.02));
    assert_eq!(at(Guard::Occlusion, Some(0.02)), (1, 0, 0.0));
    assert_eq!(at(Guard::Occlusion, None), (1, 0, 0.0));
    assert_eq!(at(Guard::Occlusion, Some(0.05)), (0, 0, 0.0));
    assert_eq!(at(Guard::Confidence, None), (3, 2, 0.4));
    let text = note(&entries);
    assert!(text.contains("0 of 2 harmful students are accepted, of 4 in all"), "{text}");
}

#[test]
fn students_of_a_learner_are_judged_by_its_own_alterations() {
    let to = tempfile::tempdir().unwrap();
    let folder = Folder::open(to.path()).unwrap();
    let options = Options {
        data: None,
        seeds: 1,
        quick: true,
        paper_faithful: false,
        settings: vec!["strangers-MM".to_owned()],
    };
    let lab = Lab {
        options: &options,
        folder: &folder,
        heard: &|_, _, _| {},
        observer: &|_| ControlFlow::Continue(()),
    };
    let cases = cases(&spec::of(Artifact::Guards), &lab).unwrap();
    let [case] = &cases[..] else { panic!("{} cases", cases.len()) };
    let mut students = Students::default();
    let data = load(&case.config).unwrap();
    case.of_learners(&data, Alteration::Shift, &lab, &mut students).unwrap();
    let Students { of_targets, pretended } = &students;
    assert!(of_targets.len() >= 5, "{}", of_targets.len());
    // Sources with labels enough pretend to be targets, once for each method.
    let fleet = Fleet::deal(&data, &case.config.scheme(&data), None, 0).unwrap();
    let pretends = |device: &&DeviceData| device.labels.len() >= LEAST_SAMPLES;
    let sources = fleet.devices.iter().filter(pretends).count();
    assert!(sources > 0);
    assert_eq!(pretended.len(), METHODS.len() * sources);
    for one in of_targets.iter().chain(pretended) {
        for (guard, row) in Guard::ALL.into_iter().zip(&one.rows) {
            assert_eq!(guard.name(), row.guard);
            // No source is near these targets, and yet learners of the user's are asked for as much as elsewhere.
            assert_eq!(row.threshold, Some(guard.threshold(Standard::Usual)));
            assert_eq!(one.is_accepted(guard, row.threshold.unwrap()), row.accepted, "{row:?}");
        }
        // A learner alters samples in one way, for whatever guard.
        assert_eq!(one.rows[0].score.to_bits(), one.rows[1].score.to_bits());
    }
}
