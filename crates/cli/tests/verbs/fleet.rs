//! Fleets and keys from the command line.

use crate::common::run;

#[test]
fn a_fleet_is_made_grows_shrinks_and_cannot_be_forged() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let fleet = path("harbour");
    let made = run(&["fleet", "init", &fleet], "");
    assert_eq!((made.code, made.err.as_str()), (0, ""));
    assert!(made.out.starts_with("harbour, version 1: 0 devices; signed by"), "{}", made.out);
    let again = run(&["fleet", "init", &fleet], "");
    assert_eq!(again.code, 2);
    assert!(again.err.contains("never overwritten"), "{}", again.err);

    let key = run(&["node", "init", &path("gate.key")], "");
    assert_eq!((key.code, key.out.trim().len()), (0, 64));
    let shown = run(&["node", "id", &path("gate.key")], "");
    assert_eq!(shown.out, key.out);
    let added = run(&["fleet", "add", "gate", key.out.trim(), "--fleet", &fleet], "");
    assert_eq!((added.code, added.err.as_str()), (0, ""));
    assert!(added.out.contains("version 2: 1 device;"), "{}", added.out);
    let twice = run(&["fleet", "add", "gate", key.out.trim(), "--fleet", &fleet], "");
    assert_eq!(twice.code, 2);
    assert!(twice.err.contains("two devices are called \"gate\""), "{}", twice.err);
    let removed = run(&["fleet", "remove", "gate", "--fleet", &fleet], "");
    assert!(
        removed.out.contains("0 devices") && removed.out.contains("has left"),
        "{}",
        removed.out
    );
    let next = format!("Devices do not know it yet: copy {fleet}/roster.json over");
    assert!(removed.out.contains(&next), "{}", removed.out);

    // Nobody but the owner changes a roster.
    let roster = format!("{fleet}/roster.json");
    let text = std::fs::read_to_string(&roster).unwrap();
    std::fs::write(&roster, text.replace("\"present\": false", "\"present\": true")).unwrap();
    let forged = run(&["fleet", "show", "--fleet", &fleet], "");
    assert_eq!(forged.code, 2);
    assert!(forged.err.contains("has not signed this roster"), "{}", forged.err);
    assert_eq!(run(&["fleet", "show", "--fleet", &path("nowhere")], "").code, 2);
    assert_eq!(run(&["fleet", "add", "x", "abc", "--fleet", &fleet], "").code, 2);
}

#[test]
fn tickets_that_nobody_used_in_time_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let fleet = folder.path().join("harbour").to_str().unwrap().to_owned();
    let invite = ["fleet", "invite", &fleet, "--devices", "2", "--expires", "1s"];
    let invited = run(&[&invite[..], &["--listen", "127.0.0.1:0"]].concat(), "");
    assert_eq!((invited.code, invited.out.lines().count()), (0, 2), "{}", invited.err);
    assert!(invited.err.contains("for 2 devices, at most 1 second\n"), "{}", invited.err);
    let told = "2 tickets expired that nobody had used: stlf fleet invite ";
    assert!(invited.err.contains(told), "{}", invited.err);
}
