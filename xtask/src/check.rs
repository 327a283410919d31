//! The check in its tiers: all of it, and what is fast enough for every few minutes.

use std::path::Path;

use crate::steps::{Done, Failure, Steps, command, succeeds};
use crate::{
    enter, layout_and_docs, packed_for_tests, python, python_package, root, scripts, shared,
    shown_commands, target_folder,
};

/// What people install, besides everything at once: packages with their features. To build the whole workspace would not tell, since
/// there a package has the features that any other asks for.
const INSTALLED: [(&str, &[&str]); 4] = [
    ("the command line", &["--package", "stlf-cli"]),
    ("the smallest command line", &["--package", "stlf-cli", "--no-default-features"]),
    ("the command line without devices", &WITHOUT_DEVICES),
    ("the Python package", &["--package", "stlf-python"]),
];

const WITHOUT_DEVICES: [&str; 5] =
    ["--package", "stlf-cli", "--no-default-features", "--features", "fetch,images,parquet"];

/// All targets with all features. The Python package has one target and no features, and comes last: its macros need more of the crate that
/// parses Rust, so that nearly everything would be checked a second time for what comes after it.
const ALL_BUT_PYTHON: [&str; 5] =
    ["--workspace", "--exclude", "stlf-python", "--all-targets", "--all-features"];

/// Everything that must hold before a change is handed in.
pub(crate) fn whole() -> Result<(), Failure> {
    let root = root();
    enter(&root)?;
    let mut steps = Steps::new();
    before_building(&mut steps)?;
    let downloads = {
        let root = root.clone();
        // The step "Python" does the same again, at once if this has succeeded, and says what is wrong if not.
        std::thread::spawn(move || drop(python::environment(&root, &target_folder())))
    };
    steps.step("lints", || lint(&ALL_BUT_PYTHON))?;
    for (what, package) in INSTALLED {
        steps.step(&format!("lints of {what}"), || lint(package))?;
    }
    steps.step("rustdoc", || {
        // Libraries only: the binary has the library's name and would overwrite its pages.
        let doc = ["doc", "--workspace", "--lib", "--no-deps", "--all-features"];
        command("cargo", &doc, &[("RUSTDOCFLAGS", "-D warnings")])
    })?;
    steps.step("tests", || tests(&ALL))?;
    shown_commands(&mut steps, &root, false)?;
    steps.step("Python", || {
        // Whatever came of it: what is missing is fetched now.
        let _ = downloads.join();
        python_package(&root)
    })?;
    steps.step("what a release carries", || packed_for_tests(&root))?;
    println!("\n{}", steps.summary());
    Ok(())
}

/// What finds most mistakes within two minutes, where the last change was a small one.
pub(crate) fn fast() -> Result<(), Failure> {
    enter(&root())?;
    let mut steps = Steps::new();
    before_building(&mut steps)?;
    let (what, package) = INSTALLED[0];
    steps.step(&format!("lints of {what}"), || lint(package))?;
    steps.step("tests", || tests(&FAST))?;
    println!("\n{}", steps.summary());
    println!("cargo xtask check, without --fast, checks everything");
    Ok(())
}

/// Checks what can be seen in the text alone, before anything is built.
fn before_building(steps: &mut Steps) -> Result<(), Failure> {
    steps.step("format", || command("cargo", &["fmt", "--all", "--check"], &[]))?;
    layout_and_docs(steps)?;
    steps.step("the page's scripts", || scripts::check(&target_folder()))
}

fn lint(what: &[&str]) -> Result<Done, Failure> {
    // Nothing is linked, so the fuzz target's run-time library need not be compiled.
    let unlinked = [("CUSTOM_LIBFUZZER_PATH", "/not/linked/libfuzzer.a")];
    command("cargo", &[&["clippy"], what, &["--", "-D", "warnings"]].concat(), &unlinked)
}

/// Which tests: all programs of the workspace, or units and devices in memory. The features are the same, so that both are built once.
/// Examples and benchmarks have no tests, fuzz targets are programs of another kind; the lints compile them all. `--tests` alone leaves out
/// what says `test = false` in its manifest; `--lib` and `--bins` would build a test program of it.
pub(crate) const ALL: [&str; 5] =
    ["--workspace", "--exclude", "stlf-fuzz", "--all-features", "--tests"];
const FAST: [&str; 11] = [
    "--workspace",
    "--exclude",
    "stlf-fuzz",
    "--all-features",
    "--lib",
    "--bin",
    "stlf",
    "--bin",
    "xtask",
    "--test",
    "memory",
];

/// What takes minutes among these: all orders of what three or four devices can do, and thousands of random ones. Only nextest can leave it out.
const NOT_FAST: [&str; 2] =
    ["-E", "not test(/^exploration::(three|four)_/) & not test(random_schedules)"];

/// Runs tests and tells which of them were skipped.
fn tests(which: &[&str]) -> Result<Done, Failure> {
    if shared().is_none() {
        println!("   reference cases: STLF_SHARED names no folder");
    }
    let skipped = target_folder().join("skipped-tests");
    forget(&skipped)?;
    let variables = [(stlf_testing::SKIPPED, &*skipped.to_string_lossy())];
    if succeeds("cargo", &["nextest", "--version"]) {
        let threads = threads().to_string();
        let run = ["nextest", "run", "--profile", "check", "--test-threads", &threads];
        let left_out = if which == FAST { &NOT_FAST[..] } else { &[] };
        command("cargo", &[&run, which, left_out].concat(), &variables)?;
    } else {
        println!("   one program after another, which takes longer: there is no cargo-nextest");
        command("cargo", &[&["test"], which].concat(), &variables)?;
    }
    if which == ALL {
        let documentation = ["test", "--doc", "--workspace", "--all-features"];
        command("cargo", &documentation, &variables)?;
    }
    Ok(told(&skipped))
}

/// Two for each core: `.config/nextest.toml` gives a test both of a core's, unless it waits most of the time.
fn threads() -> usize {
    2 * std::thread::available_parallelism().map_or(1, usize::from)
}

fn forget(file: &Path) -> Result<(), Failure> {
    match std::fs::remove_file(file) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            let again = format!("rm {}", file.display());
            Err(Failure { message: format!("{}: {e}", file.display()), again })
        }
        _ => Ok(()),
    }
}

/// The lines of a file in which tests say that they were skipped.
fn told(file: &Path) -> Done {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    if text.is_empty() {
        return Done::Passed;
    }
    print!("{text}");
    Done::Partly(format!("skipped {} times", text.lines().count()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_skipped_is_counted() {
        let file = std::env::temp_dir().join(format!("stlf-skipped-{}", std::process::id()));
        forget(&file).unwrap();
        assert_eq!(told(&file), Done::Passed);
        std::fs::write(&file, "skipped at a.rs:1: no ship\nskipped at b.rs:2: no sea\n").unwrap();
        assert_eq!(told(&file), Done::Partly("skipped 2 times".into()));
        forget(&file).unwrap();
        assert_eq!(told(&file), Done::Passed);
    }
}
