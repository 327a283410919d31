//! `cargo xtask check`: everything that must hold before a change is handed in.

// A program for the terminal: printing is what it does.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod check;
mod dist;
mod docs;
mod layout;
mod python;
mod readme;
mod rust_text;
mod sbom;
mod scripts;
mod shell_blocks;
mod steps;
mod tree;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use python::Build;
use steps::{Done, Failure, Steps, command};
use tree::{Finding, Tree};

const USAGE: &str = "\
usage: cargo xtask check            everything that must hold: format, layout, docs, lints of the page's scripts and for every
                                    feature set that people install, every test, README, Python; cheapest first
       cargo xtask check --fast     two minutes after a small change: format, layout, docs, lints of the page's scripts
                                    and of the command line with its default features, unit tests and most in-memory tests
       cargo xtask layout           only the rules about files and documentation; takes seconds
       cargo xtask readme [--write] only the commands that README.md and the documents with shown commands have (CONTRIBUTING.md
                                    lists them); --write puts what they print into them
       cargo xtask python           only the Python package: wheel, lints, types, tests
       cargo xtask dist             what a release carries, in target/dist: program, wheel, list of what is built in, checksums
       cargo xtask bench [ARGS]     the benchmarks (arguments go to cargo bench)
       cargo xtask peers plan [--quick]   the same problems with CVXPY and HiGHS, side by side
       cargo xtask peers learn [--quick]  the same network with PyTorch
       cargo xtask peers predict [--quick]  exported mixtures in ONNX Runtime

Tests run under cargo-nextest if it is installed, else under cargo test, which takes longer. Tests that are skipped because
this machine lacks something are listed. STLF_MAY_SKIP=nothing makes each skip a failure; STLF_MAY_SKIP=data allows those for
lack of data sets and reference cases.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["check"] => check::whole(),
        ["check", "--fast"] => check::fast(),
        ["readme"] => shown_commands(&mut Steps::new(), &root(), false),
        ["readme", "--write"] => shown_commands(&mut Steps::new(), &root(), true),
        ["dist"] => release(),
        ["python"] => Steps::new().step("Python", || python_package(&root())),
        ["layout"] => layout_and_docs(&mut Steps::new()),
        ["bench", ref rest @ ..] => {
            command("cargo", &[&["bench", "--workspace", "--benches"], rest].concat(), &[])
                .map(drop)
        }
        ["peers", which @ ("plan" | "learn" | "predict"), ref rest @ ..] => {
            let script = root().join(format!("benches/peers/{which}.py"));
            let script = script.to_string_lossy();
            command("python3", &[&[script.as_ref()], rest].concat(), &[]).map(drop)
        }
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("\n{}\nto repeat: {}", failure.message, failure.again);
            ExitCode::FAILURE
        }
    }
}

/// The repository, one above this crate.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or_else(|| here.to_owned(), Path::to_owned)
}

/// The rules that only read text.
fn layout_and_docs(steps: &mut Steps) -> Result<(), Failure> {
    let root = root();
    let tree =
        Tree::read(&root).map_err(|message| Failure { message, again: "git ls-files".into() })?;
    steps.step("layout", || no_findings(layout::check(&tree)))?;
    steps.step("docs", || {
        let paper = shared().map(|s| s.join("paper/st-lf.tex"));
        let paper = paper.and_then(|p| std::fs::read_to_string(p).ok());
        no_findings(docs::check(&tree, paper.as_deref()))
    })
}

/// Makes the repository the place where commands run.
fn enter(root: &Path) -> Result<(), Failure> {
    let again = || format!("cd {}", root.display());
    std::env::set_current_dir(root).map_err(|e| Failure { message: e.to_string(), again: again() })
}

/// The folder with the reference cases.
fn shared() -> Option<PathBuf> {
    std::env::var_os("STLF_SHARED").map(PathBuf::from)
}

fn no_findings(findings: Vec<Finding>) -> Result<Done, Failure> {
    if findings.is_empty() {
        return Ok(Done::Passed);
    }
    let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
    Err(Failure { message: lines.join("\n"), again: "cargo xtask layout".into() })
}

/// Returns the folder in which cargo builds.
fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The command line as the tests build it: any other choice of targets would choose other features of what we depend on, and
/// build all of it anew.
fn build_cli() -> Result<PathBuf, Failure> {
    command("cargo", &[&["test", "--no-run"], &check::ALL[..]].concat(), &[])?;
    Ok(target_folder().join("debug").join("stlf"))
}

/// Builds the wheel and tests it, also against the command line.
fn python_package(root: &Path) -> Result<Done, Failure> {
    enter(root)?;
    python::check(root, &target_folder(), &build_cli()?)
}

/// Makes what a release carries, and uses it as people do.
fn release() -> Result<(), Failure> {
    let (root, target) = (root(), target_folder());
    enter(&root)?;
    let mut steps = Steps::new();
    let build = ["build", "--profile", dist::PROFILE, "--locked", "--package", "stlf-cli"];
    steps.step("the program", || command("cargo", &build, &[]))?;
    let program = target.join(dist::PROFILE).join("stlf");
    steps.step("the release", || packed(&root, &program, Build::Release, &target.join("dist")))?;
    println!("\neverything is in {}", target.join("dist").display());
    Ok(())
}

/// Packs a program and a wheel, and uses both.
fn packed(root: &Path, program: &Path, build: Build, to: &Path) -> Result<Done, Failure> {
    let target = target_folder();
    let environment = match python::environment(root, &target)? {
        Ok(environment) => environment,
        Err(done) => return Ok(done),
    };
    let wheel = environment.wheel(&target, build)?;
    let python = environment.program("python");
    let dist = dist::Dist { root, to, program, wheel: &wheel, python: &python };
    dist.make()?;
    dist.try_it()
}

/// The same with what the tests were built with.
fn packed_for_tests(root: &Path) -> Result<Done, Failure> {
    packed(root, &build_cli()?, Build::WithTests, &target_folder().join("dist-of-tests"))
}

/// Runs what the documents show; with `write`, puts what is printed into them.
fn shown_commands(steps: &mut Steps, root: &Path, write: bool) -> Result<(), Failure> {
    let binary = build_cli()?;
    for name in readme::DOCUMENTS {
        steps.step(&format!("commands of {name}"), || commands_of(name, root, &binary, write))?;
    }
    Ok(())
}

fn commands_of(name: &str, root: &Path, binary: &Path, write: bool) -> Result<Done, Failure> {
    let failure = |message: String| Failure { message, again: "cargo xtask readme".into() };
    let io = |path: &Path, e: std::io::Error| failure(format!("{}: {e}", path.display()));
    let file = root.join(name);
    let markdown = std::fs::read_to_string(&file).map_err(|e| io(&file, e))?;
    if let Some(program) = readme::missing(&markdown) {
        return Ok(Done::Skipped(format!("there is no {program}")));
    }
    let folder = std::env::temp_dir().join(format!("stlf-readme-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| io(&folder, e))?;
    let result = readme::run(name, &markdown, binary, &folder);
    std::fs::remove_dir_all(&folder).map_err(|e| io(&folder, e))?;
    let ran = result.map_err(failure)?;
    match ran.difference {
        _ if ran.commands == 0 => Err(failure(format!("{name} shows no command that can be run"))),
        Some(_) if write => {
            std::fs::write(&file, ran.updated).map_err(|e| io(&file, e))?;
            println!("   {name} is rewritten");
            Ok(Done::Passed)
        }
        Some(difference) => {
            let hint = format!("cargo xtask readme --write puts what is printed into {name}");
            Err(failure(format!("{difference}\n{hint}")))
        }
        None => {
            println!("   {} commands", ran.commands);
            Ok(Done::Passed)
        }
    }
}
