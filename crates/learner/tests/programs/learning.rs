//! What a program that keeps to everything learns, and that the trial of programs says so.

use std::ops::ControlFlow;

use stlf_learn::Params;
use stlf_learn::evaluate::Predictions;
use stlf_learner::Crew;
use stlf_learner::conformance::{Outcome, check};
use stlf_method::learner::{Adaptation, Lesson, UserLearner};

use super::{GOOD, Place, started};

fn train(user: &UserLearner, rows: &[usize], start: Option<&Params>) -> Params {
    let lesson = Lesson { rows, start, seed: 1 };
    user.learner.train(lesson, &mut |_| ControlFlow::Continue(())).unwrap().unwrap()
}

#[test]
fn samples_with_a_label_come_first_and_rows_are_those_that_were_asked_for() {
    let place = Place::new();
    let user = started(place.good()).unwrap();
    assert_eq!(
        (user.name.as_str(), &user.classes[..]),
        ("nearest-mean/1", &["calm", "storm"].map(str::to_owned)[..])
    );
    let labeled: Vec<usize> = (0..20).filter(|k| !usize::is_multiple_of(*k, 4)).collect();
    assert_eq!(user.places[..15], labeled);
    assert_eq!(user.places[15..], [0, 4, 8, 12, 16]);
    let classes: Vec<u16> = labeled.iter().map(|k| (k % 2) as u16).collect();
    assert_eq!((&user.labels, user.width()), (&classes, 2));
    let features = user.places.iter().flat_map(|k| [(k % 2 * 4) as f32, (k % 3) as f32]);
    assert_eq!(user.features, features.collect::<Vec<f32>>());

    // The first and the third with a label are samples 1 and 3, both of class 1.
    let model = train(&user, &[0, 2], None);
    let layout = user.learner.layout();
    assert_eq!(layout.to_string(), "counts [2], means [2, 2]");
    assert_eq!(model, Params::from(vec![0.0, 2.0, 0.0, 0.0, 4.0, 0.5]));
    // The second is sample 2, of class 0; the others are kept.
    let on = train(&user, &[1], Some(&model));
    assert_eq!(on, Params::from(vec![1.0, 2.0, 0.0, 2.0, 4.0, 0.5]));

    let mut go_on = |_| ControlFlow::Continue(());
    let all: Vec<usize> = (0..20).collect();
    let predictions = user.learner.predict(&on, &all, &mut go_on).unwrap().unwrap();
    let expected: Vec<u16> = user.places.iter().map(|k| (k % 2) as u16).collect();
    assert_eq!(predictions.classes().collect::<Vec<_>>(), expected);
    let two = user.learner.predict(&on, &[17, 3], &mut go_on).unwrap().unwrap();
    assert_eq!((two.of(0), two.of(1)), (predictions.of(17), predictions.of(3)));
    drop(user);
    assert_eq!(std::fs::read_dir(place.path("between")).unwrap().count(), 0, "no file is left");
}

#[test]
fn a_training_tells_how_far_it_is_and_can_be_ended() {
    let place = Place::new();
    let user = started(place.good()).unwrap();
    let mut last = 0;
    let lesson = Lesson { rows: &[0, 1, 2], start: None, seed: 1 };
    let mut watch = |progress: stlf_method::learner::Progress| {
        last = progress.percent().max(last);
        ControlFlow::Continue(())
    };
    assert!(user.learner.train(lesson, &mut watch).unwrap().is_some());
    assert_eq!(last, 100);
    let ended = user.learner.train(lesson, &mut |_| ControlFlow::Break(())).unwrap();
    assert_eq!(ended, None);
    assert!(train(&user, &[0, 1, 2], None).iter().all(|p| p.is_finite()));
}

#[test]
fn a_crew_of_many_runs_few_at_a_time_and_learns_the_same() {
    const DEVICES: usize = 5;
    let (places, crew) = ([(); DEVICES].map(|()| Place::new()), Crew::new(2));
    let alone = train(&started(places[0].good()).unwrap(), &[0, 1, 2], None);
    let users: Vec<UserLearner> = places
        .iter()
        .map(|place| crew.start(place.good(), &mut |_| ControlFlow::Continue(())).unwrap())
        .collect();
    assert_eq!(crew.running(), 2);
    std::thread::scope(|scope| {
        for user in &users {
            let (crew, alone) = (&crew, &alone);
            scope.spawn(move || {
                for _ in 0..3 {
                    assert_eq!(train(user, &[0, 1, 2], None), *alone);
                    assert!(crew.running() <= 2);
                }
            });
        }
    });
    drop(users);
    assert_eq!(crew.running(), 0);
}

#[test]
fn what_only_evaluation_may_know_is_no_label() {
    let place = Place::new();
    let hidden = "x,y,class\n0,0,calm?\n4,1,storm\n4,2,storm?\n";
    std::fs::write(place.path("table.csv"), hidden).unwrap();
    let user = started(place.good()).unwrap();
    assert_eq!((&user.places[..], &user.labels[..]), (&[1, 0, 2][..], &[1][..]));
    assert_eq!(user.truth(), Some(&[1, 0, 1][..]));
    std::fs::write(place.path("table.csv"), hidden.replace("calm?", "")).unwrap();
    assert_eq!(started(place.good()).unwrap().truth(), None);
}

/// Far less than this limit on a machine that has nothing else to do; the time is printed.
#[test]
fn a_call_costs_little_beyond_the_program_s_own_work() {
    const CALLS: u32 = 200;
    let place = Place::new();
    let user = started(place.good()).unwrap();
    let model = train(&user, &[0, 1, 2], None);
    let began = std::time::Instant::now();
    for _ in 0..CALLS {
        let mut go_on = |_| ControlFlow::Continue(());
        assert!(user.learner.predict(&model, &[0, 1], &mut go_on).unwrap().is_some());
    }
    let each = began.elapsed() / CALLS;
    println!("{each:?} a call");
    assert!(each < std::time::Duration::from_millis(100), "{each:?}");
}

#[test]
fn the_trial_of_programs_finds_nothing_wrong() {
    let place = Place::new();
    let steps = check(&place.good());
    let failed: Vec<_> =
        steps.iter().filter(|step| !matches!(step.outcome, Outcome::Passed(_))).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(steps.len(), 11);
}

#[test]
fn a_program_that_says_that_it_can_trains_students() {
    let place = Place::new();
    let mut options = place.good();
    options.command.push("adapts".to_owned());
    let user = started(options.clone()).unwrap();
    assert!(started(place.good()).unwrap().learner.adapts().is_none());
    let adapts = user.learner.adapts().unwrap();
    // The teacher takes the classes for each other, and is so believed: the means are those of the samples of the other class.
    let rows: Vec<usize> = (0..20).collect();
    let other =
        |row: &usize| if user.places[*row].is_multiple_of(2) { [0.0, 1.0] } else { [1.0, 0.0] };
    let teacher = Predictions::new(rows.iter().flat_map(other).collect(), 2);
    let start = Params::from(vec![1.0, 1.0, 9.0, 9.0, 9.0, 9.0]);
    let task = Adaptation { rows: &rows, teacher: &teacher, start: &start, seed: 1 };
    let mut go_on = |_| ControlFlow::Continue(());
    let student = adapts.adapt(task, &mut go_on).unwrap().unwrap();
    let [low, high] = [0, 1].map(|odd| {
        let own = (0..20).filter(|k| k % 2 == odd);
        own.map(|k| (k % 3) as f32).sum::<f32>() / 10.0
    });
    assert_eq!(student, Params::from(vec![10.0, 10.0, 4.0, high, 0.0, low]));
    assert_eq!(adapts.adapt(task, &mut |_| ControlFlow::Break(())).unwrap(), None);
    // A seed alters samples in one way; some rows are altered as they are among all.
    let mut altered = |rows: &[usize], seed: u64| {
        adapts.predict_altered(&student, rows, seed, &mut go_on).unwrap().unwrap()
    };
    let (first, second) = (altered(&rows, 1), altered(&rows, 2));
    assert!(first == altered(&rows, 1) && first != second);
    assert_eq!(altered(&[17, 3], 1), first.of_all(&[17, 3]));
    let crew = Crew::new(1).start(options.clone(), &mut go_on).unwrap();
    let same = crew.learner.adapts().unwrap().adapt(task, &mut go_on).unwrap().unwrap();
    assert_eq!(same, student);
    let steps = check(&options);
    assert!(steps.iter().all(|step| matches!(step.outcome, Outcome::Passed(_))), "{steps:#?}");
    assert_eq!(steps.len(), 13);
}

#[cfg(unix)]
#[test]
fn a_program_sees_little_of_the_environment() {
    let place = Place::new();
    let seen = place.path("seen");
    let script = format!(
        "env > '{}'; exec '{GOOD}' '{}' a,b",
        seen.display(),
        place.path("table.csv").display()
    );
    let mut options = place.good();
    options.command = vec!["sh".to_owned(), "-c".to_owned(), script];
    options.environment = vec!["CARGO_PKG_NAME".to_owned(), "NOT_THERE".to_owned()];
    drop(started(options).unwrap());
    let text = std::fs::read_to_string(seen).unwrap();
    let names: Vec<&str> = text.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    // The shell adds some of its own.
    let usual = [
        "PATH",
        "HOME",
        "USER",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "TZ",
        "TMPDIR",
        "VIRTUAL_ENV",
        "PWD",
        "SHLVL",
        "_",
        "OLDPWD",
    ];
    let others: Vec<&&str> = names.iter().filter(|name| !usual.contains(name)).collect();
    assert_eq!(others, [&"CARGO_PKG_NAME"], "{text}");
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(place.path("between")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}
