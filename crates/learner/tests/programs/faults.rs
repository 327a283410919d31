//! Programs that do one thing wrong: each is told apart, none holds anything up, and none leaves a process behind.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use stlf_learn::Params;
use stlf_learner::conformance::{Outcome, check};
use stlf_learner::{Limits, Options, Program};
use stlf_method::learner::{Lesson, UserLearner};
use stlf_testing::{DEADLINE, wait_for};

use super::{Place, started};

/// Trains on all labels and predicts everything.
fn learn(user: &UserLearner) -> Result<Params, stlf_planning::Error> {
    let rows: Vec<usize> = (0..user.labels.len()).collect();
    let mut go_on = |_| ControlFlow::Continue(());
    let lesson = Lesson { rows: &rows, start: None, seed: 1 };
    let model = user.learner.train(lesson, &mut go_on)?.unwrap();
    let all: Vec<usize> = (0..user.places.len()).collect();
    let predictions = user.learner.predict(&model, &all, &mut go_on)?.unwrap();
    assert_eq!(predictions.len(), all.len());
    Ok(model)
}

/// What is said of a fault that shows when the program learns.
fn said(fault: &str) -> String {
    let place = Place::new();
    let user = started(place.bad(fault)).unwrap();
    learn(&user).unwrap_err().to_string()
}

#[test]
fn a_program_that_does_not_start_as_it_must_is_told_at_once() {
    let place = Place::new();
    let refused = |options: Options| started(options).unwrap_err().to_string();
    let options = place.bad("none");
    let missing = Options { command: vec!["/no/such/program".to_owned()], ..options.clone() };
    assert!(refused(missing).starts_with("cannot start /no/such/program: "));
    let limits = Limits { hello: Duration::from_millis(700), ..options.limits };
    let silent = Options { limits, ..place.bad("never-greets") };
    assert_eq!(
        refused(silent),
        "the learner was to greet, but it said nothing for 700ms; its log is empty"
    );
    assert_eq!(
        refused(place.bad("ends-at-once")),
        "the learner was to greet, but it ended (exit status: 3); its log is empty"
    );
    let other = refused(place.bad("other-protocol"));
    assert!(
        other.starts_with("the learner was to greet, but it wrote \"{\\\"id\\\":0,"),
        "{other}"
    );
    assert!(other.ends_with(": expected the protocol stlf-learner/1"), "{other}");
    let mut no_table = place.bad("none");
    no_table.command.truncate(3);
    no_table.command[2] = "no-table.csv".to_owned();
    let told = refused(no_table);
    assert!(told.contains("; its log ends with: Error: \"TABLE CLASS,CLASS,"), "{told}");
    assert_eq!(
        refused(place.bad("unknown-label")),
        "the learner said \"{\\\"id\\\":1,\\\"ok\\\":{\\\"samples\\\":20}}\", but 1-samples.safetensors \
         has the label 7 for sample 19; expected 0 to 1, or -1 for none"
    );
}

#[test]
fn every_fault_has_one_clear_message() {
    let three = "learner: started 3 times; the last time, the learner was to train, but it";
    assert_eq!(said("hangs"), format!("{three} said nothing for 700ms; its log is empty"));
    assert_eq!(said("exits-0"), format!("{three} ended (exit status: 0); its log is empty"));
    let wrote = "learner: the learner was to train, but it wrote";
    assert_eq!(
        said("garbage"),
        format!(
            "{wrote} \"Epoch 1/10 [=====>    ] loss: 0.3\": expected a message of stlf-learner/1: \
             expected value (line 1, column 1)"
        )
    );
    assert_eq!(
        said("another-number"),
        format!("{wrote} \"{{\\\"id\\\":99,\\\"ok\\\":{{}}}}\": expected an answer to request 2")
    );
    assert!(said("floods").starts_with(&format!("{wrote} \"{}…\": expected", "x".repeat(200))));
    let trained =
        "learner: the learner said \"{\\\"id\\\":2,\\\"ok\\\":{}}\", but 2-model.safetensors";
    let starts = |fault: &str, message: &str| {
        let (said, expected) = (said(fault), format!("{trained} {message}"));
        assert!(said.starts_with(&expected), "{fault}: {said}");
    };
    starts("no-file", "cannot be read: No such file");
    starts("nan-model", "is no such model: parameters: number 5 is NaN");
    starts("cut-model", "is no such model: parameters: not a safetensors file");
    starts("other-shapes", "is no such model: parameters: ");
    starts("huge-model", "has 1048576 bytes, where at most ");
    let predicted = "learner: the learner said \"{\\\"id\\\":3,\\\"ok\\\":{}}\", but 3-probabilities.safetensors";
    assert_eq!(said("nan"), format!("{predicted} has NaN in row 19, column 0"));
    assert_eq!(
        said("no-probabilities"),
        format!(
            "{predicted} has no probabilities in row 19: [2.5, -1.5], sum 1.0000; expected 0 to 1, sum 1"
        )
    );
}

#[test]
fn a_program_that_fails_once_is_started_again_and_nothing_is_lost() {
    let good = Place::new();
    let expected = learn(&started(good.good()).unwrap()).unwrap();
    let on = |user: &UserLearner, handed: &Params| {
        let lesson = Lesson { rows: &[0, 1, 2], start: Some(handed), seed: 1 };
        user.learner.train(lesson, &mut |_| ControlFlow::Continue(())).unwrap().unwrap()
    };
    let expected_on = on(&started(good.good()).unwrap(), &expected);
    for fault in [
        "hangs-once",
        "exits-0-once",
        "exits-in-predict-once",
        "exits-in-train-on-once",
        "exits-in-greeting-once",
    ] {
        let place = Place::new();
        let user = started(place.bad(fault)).unwrap();
        assert_eq!(learn(&user).unwrap(), expected, "{fault}");
        assert_eq!(on(&user, &expected), expected_on, "{fault}");
        assert!(place.path("done").exists(), "{fault} did not fail");
    }
    let place = Place::new();
    let told = started(place.bad("exits-in-describe")).unwrap_err().to_string();
    let expected =
        "the learner was to describe its samples, but it ended (exit status: 4); its log is empty";
    assert_eq!(told, expected);
}

#[test]
fn a_program_that_fills_the_disk_is_ended_and_its_files_are_removed() {
    const MOST: u64 = 8 << 20;
    let place = Place::new();
    let mut options = place.bad("fills-disk");
    options.limits.disk = MOST;
    // It writes all the time, and so it is not silent for what it does.
    options.limits.silence = DEADLINE;
    let user = started(options).unwrap();
    let told = learn(&user).unwrap_err();
    let message = told.to_string();
    let folder = std::path::absolute(place.path("between")).unwrap();
    let begin =
        format!("learner: the learner was to train, but it filled {} with ", folder.display());
    let bytes = message.strip_prefix(&begin).and_then(|rest| rest.split(' ').next());
    assert!(bytes.is_some_and(|bytes| bytes.parse::<u64>().unwrap() > MOST), "{message}");
    assert!(message.ends_with(&format!("bytes; at most {MOST} were expected")), "{message}");
    assert!(told.hint().unwrap().contains("--learner-disk"), "{told:?}");
    assert!(!folder.exists());
    // The next request finds it started again.
    let model = Params::from(vec![1.0; 6]);
    let predicted = user.learner.predict(&model, &[0], &mut |_| ControlFlow::Continue(()));
    assert_eq!(predicted.unwrap().unwrap().len(), 1);
}

#[test]
fn a_program_that_starts_ends_at_once_if_it_is_stopped() {
    for (fault, verb) in [("never-greets", "greet"), ("never-describes", "describe its samples")] {
        let place = Place::new();
        // Nothing else would end it before the deadline.
        let limits = Limits { grace: 2 * DEADLINE, ..Limits::default() };
        let options = Options { limits, ..place.bad(fault) };
        let (began, mut asked) = (Instant::now(), 0);
        let mut stop_later = |_| {
            asked += 1;
            if asked > 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let error = Program::start(options, &mut stop_later).unwrap_err();
        assert_eq!(error.to_string(), format!("stopped while the learner was to {verb}"));
        assert!(began.elapsed() < DEADLINE, "{fault}");
    }
}

#[test]
fn a_program_that_does_not_give_up_is_ended_and_started_again() {
    let place = Place::new();
    let user = started(place.bad("ignores-cancel")).unwrap();
    let began = Instant::now();
    let lesson = Lesson { rows: &[0], start: None, seed: 1 };
    assert_eq!(user.learner.train(lesson, &mut |_| ControlFlow::Break(())).unwrap(), None);
    assert!(began.elapsed() < DEADLINE);
    let model = Params::from(vec![1.0; 6]);
    let predicted = user.learner.predict(&model, &[0], &mut |_| ControlFlow::Continue(()));
    assert_eq!(predicted.unwrap().unwrap().len(), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_program_leaves_behind_is_ended_with_it() {
    let place = Place::new();
    let user = started(place.bad("forks")).unwrap();
    let said = learn(&user).unwrap_err().to_string();
    assert!(said.ends_with("it ended (exit status: 0); its log is empty"), "{said}");
    let child = std::fs::read_to_string(place.path("done")).unwrap();
    let is_gone = || {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
        (!stat.contains("sleep") || state == Some('Z')).then_some(())
    };
    wait_for(DEADLINE, is_gone, || format!("process {child} still runs"));
    // One that does not end when it is told to.
    let place = Place::new();
    let began = Instant::now();
    drop(started(place.bad("stays")).unwrap());
    assert!(began.elapsed() < DEADLINE);
}

#[test]
fn the_trial_of_programs_names_the_step_that_fails() {
    for (fault, step) in [
        ("nan", "predicts"),
        ("garbage", "trains"),
        ("unknown-label", "describes its samples"),
        ("ends-at-once", "starts and greets"),
        ("stays", "ends when it is told to"),
    ] {
        let place = Place::new();
        let steps = check(&place.bad(fault));
        let failed = steps.iter().find(|step| matches!(step.outcome, Outcome::Failed(_)));
        assert_eq!(failed.unwrap().what, step, "{fault}");
    }
}
