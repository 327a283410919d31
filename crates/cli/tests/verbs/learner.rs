//! `stlf learner`, and what `stlf node start` says of a learner that is none.

use crate::common::run;

#[cfg(unix)]
#[test]
fn a_program_that_is_no_learner_is_told_by_step_and_reason() {
    let ran = run(&["learner", "check", "true"], "");
    assert_eq!(ran.code, 2);
    assert_eq!(
        ran.out,
        "FAILED  starts and greets: the learner was to greet, but it ended (exit status: 0); its log is empty\n"
    );
    assert!(ran.err.starts_with("error: 1 of 1 steps failed\nhint: "), "{}", ran.err);
    let ran = run(&["learner", "check", "sh -c 'echo no pumps >&2; echo hello; cat'"], "");
    let expected = "FAILED  starts and greets: the learner was to greet, but it wrote \"hello\": \
                    expected a message of stlf-learner/1: ";
    assert!(ran.out.starts_with(expected), "{}", ran.out);
}

#[test]
fn a_command_line_without_a_program_is_refused() {
    for (command, told) in [
        ("", "error: \"\" names no program: it is empty\n"),
        ("python 'x", "error: \"python 'x\" names no program: a quotation mark has no partner\n"),
    ] {
        for verb in [&["learner", "check"][..], &["node", "start", "--learner"]] {
            let ran = run(&[verb, &[command]].concat(), "");
            assert_eq!((ran.code, ran.out.as_str()), (2, ""));
            assert!(ran.err.starts_with(told), "{}", ran.err);
            assert!(ran.err.contains("hint: write it as for a shell"), "{}", ran.err);
        }
    }
    let ran = run(&["node", "start", "--learner", "x", "--data", "y.csv"], "");
    assert!(ran.code == 2 && ran.err.contains("cannot be used with"), "{}", ran.err);
}
