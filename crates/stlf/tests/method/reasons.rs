//! What is wrong with an input can be acted on without reading a sentence.

use serde_json::{Value, json};
use stlf::{
    BoundKind, BrokenRing, Counted, Device, Error, Field, Handover, Links, Named, Parts, PlanLink,
    Preset, Problem, ProblemFile, ProblemSource, Range, Reason, Role, ValueError, Weights,
};
use stlf_planning::plan::check_handovers;

const CARS: &str = include_str!("../../../cli/examples/five-cars.json");

/// What is wrong with the example where it is changed so.
fn refused(change: fn(&mut Value)) -> Error {
    let mut document: Value = serde_json::from_str(CARS).unwrap();
    change(&mut document);
    let read = ProblemFile::read(document.to_string().as_bytes());
    read.and_then(|file| file.into_problem(None)).expect_err("a bad problem was accepted")
}

fn value(change: fn(&mut Value)) -> ValueError {
    match refused(change) {
        Error::Value(error) => error,
        other => panic!("{other} is about the text"),
    }
}

#[test]
fn a_number_out_of_its_range_comes_with_both_and_with_its_devices() {
    let error = value(|v| v["divergence"][0][4] = json!(-0.5));
    assert_eq!(error.field, Field::of_link("divergence[0][4]", "A", "E"));
    let range = Range::NOT_NEGATIVE;
    assert_eq!(*error.reason, Reason::OutOfRange { value: -0.5, range });
    let error = value(|v| v["bound"] = json!({"delta": 1.0}));
    let Reason::OutOfRange { value, range } = *error.reason else { panic!("{error}") };
    assert!(value == 1.0 && !range.contains(value) && range.contains(0.001));
}

#[test]
fn lengths_and_names_come_as_data() {
    let error = value(|v| v["link_energy"][2] = json!([1, 2, 3]));
    let (found, expected, of) = (3, 5, Counted::EntriesOfRow(2));
    assert_eq!(*error.reason, Reason::Length { found, expected, of });
    let error = value(|v| v["forbidden_links"] = json!([{"from": "A", "to": "F"}]));
    let Reason::Unknown { what: Named::Device, given, meant } = *error.reason else {
        panic!("{error}")
    };
    assert_eq!((given.as_str(), error.field.path.as_str()), ("F", "forbidden_links[0].to"));
    assert!(meant.is_some());
    let error = value(|v| v["devices"][1]["name"] = json!("A"));
    assert_eq!(*error.reason, Reason::SameName { name: "A".to_owned(), first: 0 });
}

#[test]
fn what_is_wrong_with_the_text_is_told_apart_from_what_is_wrong_with_a_value() {
    let unknown = refused(|v| v["wieghts"] = json!({}));
    assert!(matches!(&unknown, Error::Form { field, .. } if field.path == "wieghts"), "{unknown}");
    let other = refused(|v| v["format"] = json!("stlf-problem/9"));
    assert!(matches!(&other, Error::Format { found, .. } if found == "stlf-problem/9"), "{other}");
    let cut = ProblemFile::read(&CARS.as_bytes()[..100]).unwrap_err();
    assert!(matches!(cut, Error::Syntax { line, .. } if line > 1), "{cut}");
}

#[test]
fn roles_and_links_that_cannot_be_name_the_devices() {
    let named = |name: &str, labeled| Device {
        name: name.to_owned(),
        labeled,
        unlabeled: 9,
        source_error: (labeled > 0).then_some(0.1),
    };
    let problem = |change: fn(&mut Parts)| {
        let links = Links::from_rows(2, vec![0.0, 0.3, 0.3, 0.0], vec![0.0, 1.0, 1.0, 0.0]);
        let devices = vec![named("car", 9), named("van", 0)];
        let weights = Weights { source: 1.0, target: 1.0, energy: 0.0 };
        let preset = Preset::Balanced;
        let mut parts = Parts::measured(devices, links, preset, weights, BoundKind::Pooled);
        change(&mut parts);
        *Problem::new(parts).unwrap_err().reason
    };
    let van = || "van".to_owned();
    let source = problem(|parts| parts.pins[1] = Some(Role::Source));
    assert_eq!(source, Reason::NoLabels { device: van() });
    let twice = problem(|parts| {
        parts.pins[1] = Some(Role::Source);
        parts.required = vec![(0, 1)];
    });
    let (needed, fixed) = (Role::Target, Role::Source);
    assert_eq!(twice, Reason::TwoRoles { device: van(), needed, fixed });
    let forbidden = problem(|parts| {
        parts.required = vec![(0, 1)];
        parts.forbidden = vec![(0, 1)];
    });
    assert_eq!(forbidden, Reason::NoLink { from: "car".to_owned(), to: van() });
    let empty = problem(|parts| parts.devices[1].unlabeled = 0);
    assert!(matches!(empty, Reason::TooFewSamples { present: 0, needed: 1, .. }));
    let large = problem(|parts| {
        let ProblemSource::Measured { bound, .. } = &mut parts.source else { return };
        bound.calibration = 2.0;
    });
    assert_eq!(large, Reason::OutOfRange { value: 2.0, range: Range::SHARE_ABOVE_ZERO });
}

#[test]
fn a_circle_of_hand_overs_says_who_sends() {
    let around = [Handover { from: 1, to: 0 }, Handover { from: 0, to: 1 }];
    let links = [0, 1].map(|from| PlanLink { from, to: 2, weight: 0.5 });
    let mut senders = match check_handovers(&around, &links) {
        Err(BrokenRing::Senders { senders }) => senders,
        other => panic!("{other:?}"),
    };
    senders.sort_unstable();
    assert_eq!(senders, [0, 1]);
    assert_eq!(check_handovers(&around, &links[..1]), Ok(()));
}
