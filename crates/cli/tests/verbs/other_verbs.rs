//! Tests of help, the demo, schemas and completions.

use crate::common::{run, settings};

#[test]
fn the_demo_tells_the_papers_story() {
    let ran = run(&["demo", "--planner"], "");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    settings().bind(|| insta::assert_snapshot!(ran.out));
}

#[test]
fn the_examples_can_be_copied_and_planned() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("new/examples");
    let ran = run(&["demo", "--write", target.to_str().unwrap()], "");
    assert_eq!(ran.code, 0, "{}", ran.err);
    for entry in std::fs::read_dir(&target).unwrap() {
        let ran = run(&["plan", entry.unwrap().path().to_str().unwrap()], "");
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        assert!(ran.out.contains("proven optimal"));
    }
}

#[test]
fn every_verb_has_help_with_examples() {
    for verb in [
        "run",
        "new",
        "measure",
        "plan",
        "transfer",
        "compare",
        "predict",
        "export",
        "report",
        "serve",
        "reproduce",
        "merge",
        "explain",
        "sweep",
        "diff",
        "data",
        "fleet",
        "node",
        "learner",
        "demo",
        "schema",
        "completions",
        "man",
    ] {
        let ran = run(&[verb, "--help"], "");
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.out.contains("Examples:\n  stlf "), "{verb} shows no examples:\n{}", ran.out);
    }
    let ran = run(&["plan", "--help"], "");
    insta::assert_snapshot!(ran.out);
}

#[test]
fn schemas_and_completions_are_printed() {
    for (format, version) in
        [("problem", 1), ("plan", 2), ("mixture", 1), ("models", 1), ("learner", 1)]
    {
        let ran = run(&["schema", format], "");
        let schema: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(schema["title"], format!("stlf-{format}/{version}"));
    }
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = run(&["completions", shell], "");
        assert_eq!(ran.code, 0);
        assert!(ran.out.contains("stlf"));
    }
    let folder = tempfile::tempdir().unwrap();
    let ran = run(&["man", folder.path().to_str().unwrap()], "");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let page = std::fs::read_to_string(folder.path().join("stlf-run.1")).unwrap();
    assert!(page.contains(".TH stlf\\-run 1") || page.contains(".TH stlf-run 1"), "{page}");
    let ran = run(&["man", "/dev/null/pages"], "");
    assert!(ran.code == 1 && ran.err.contains("cannot write manual pages"), "{}", ran.err);
}
