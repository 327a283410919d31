//! The Python package: its own virtual environment, the wheel, lints, types and tests.

use std::path::{Path, PathBuf};

use crate::dist;
use crate::steps::{Done, Failure, cargo, command, succeeds};

/// What the package asks of Python.
const VERSION: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";

/// `PyTorch` is too large to be fetched for tests alone; an environment shares the one that Python has.
const HAS_TORCH: &str = "import torch";

/// Whether that one knows `NumPy` 2.
const KNOWS_NUMPY_2: &str =
    "import sys, torch; sys.exit(tuple(map(int, torch.__version__.split('.')[:2])) < (2, 3))";

/// A virtual environment with everything that the package is built and tested with.
pub(crate) struct Environment {
    folder: PathBuf,
}

/// What the wheel is built for, which decides how.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// As part of the workspace, as the tests were built.
    WithTests,
    /// For people who install it, with the profile of releases.
    Release,
}

impl Environment {
    /// Returns the path of a program of the environment.
    pub(crate) fn program(&self, name: &str) -> String {
        self.folder.join("bin").join(name).to_string_lossy().into_owned()
    }

    /// Builds the wheel into a folder of its own under `target`.
    pub(crate) fn wheel(&self, target: &Path, build: Build) -> Result<PathBuf, Failure> {
        let (own, wheels) = (self.program("python"), target.join("wheels"));
        let profile = if build == Build::Release { dist::PROFILE } else { "dev" };
        let wheels = wheels.join(profile);
        let (folder, out) = (target.to_string_lossy(), wheels.to_string_lossy());
        let arguments =
            ["build", "--quiet", "--profile", profile, "--interpreter", &own, "--out", &out];
        let stand_in = stand_in_cargo(&self.folder)?;
        let stand_in = stand_in.to_string_lossy();
        let variables = [("CARGO_TARGET_DIR", &*folder), ("CARGO", &*stand_in)];
        // Elsewhere than on Linux maturin gives the linker arguments that must not be lost.
        let is_with_tests = build == Build::WithTests && cfg!(target_os = "linux");
        let variables = if is_with_tests { &variables[..] } else { &variables[..1] };
        command(&self.program("maturin"), &arguments, variables)?;
        newest_wheel(&wheels)
    }
}

/// Makes the environment under `target`, or says what is missing.
pub(crate) fn environment(
    root: &Path,
    target: &Path,
) -> Result<Result<Environment, Done>, Failure> {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    if !succeeds(&python, &["-c", VERSION]) {
        let why = format!("there is no {python} of at least 3.10 with venv and pip");
        return Ok(Err(Done::Skipped(why)));
    }
    let made = Environment { folder: target.join("python") };
    let program = |name: &str| made.program(name);
    let has_torch = succeeds(&python, &["-c", HAS_TORCH]);
    let (has_pip, is_shared) = (["-m", "pip", "--version"], ["-c", HAS_TORCH]);
    let own = program("python");
    if !succeeds(&own, &has_pip) || has_torch && !succeeds(&own, &is_shared) {
        let folder = made.folder.to_string_lossy();
        let make = ["-m", "venv", "--clear", &folder];
        let shared = if has_torch { &["--system-site-packages"][..] } else { &[] };
        command(&python, &[&make[..], shared].concat(), &[])?;
    }
    let mut packages = requirements(root)?;
    if has_torch && !succeeds(&python, &["-c", KNOWS_NUMPY_2]) {
        packages.push("numpy<2".to_owned());
    }
    let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    let install = [&["install", "--quiet", "--disable-pip-version-check"], &packages[..]].concat();
    if let Err(failure) = command(&program("pip"), &install, &[]) {
        let why = format!("pip could not install what the tests need: {}", failure.message);
        return Ok(Err(Done::Skipped(why)));
    }
    Ok(Ok(made))
}

/// Builds the wheel into an environment under `target` and runs everything there.
pub(crate) fn check(root: &Path, target: &Path, cli: &Path) -> Result<Done, Failure> {
    let environment = match environment(root, target)? {
        Ok(environment) => environment,
        Err(done) => return Ok(done),
    };
    let program = |name: &str| environment.program(name);
    let (own, pip) = (program("python"), program("pip"));
    let wheel = environment.wheel(target, Build::WithTests)?;
    let replace = ["install", "--quiet", "--disable-pip-version-check", "--no-deps"];
    let wheel = wheel.to_string_lossy();
    command(&pip, &[&replace[..], &["--force-reinstall", &wheel]].concat(), &[])?;
    let written = ["python", "notebooks", "examples"];
    command(&program("ruff"), &[&["check"], &written[..]].concat(), &[])?;
    command(&program("ruff"), &[&["format", "--check"], &written[..]].concat(), &[])?;
    command(&program("mypy"), &[], &[])?;
    let variables = [("STLF_BIN", &*cli.to_string_lossy()), ("MPLBACKEND", "Agg")];
    // Modules for Ray or Flower cannot be imported where these are not installed.
    let examples = ["--doctest-modules", "--doctest-ignore-import-errors", "--pyargs", "stlf"];
    command(&own, &[&["-m", "pytest", "--quiet"], &examples[..]].concat(), &variables)?;
    // Three files at a time: much of what a test does is to wait for programs that it started.
    command(&own, &["-m", "pytest", "--quiet", "python/tests", "-n", "3"], &variables)
}

/// What maturin takes for cargo. Where it would build our package alone, and with it nearly everything that it depends on with other
/// features and so anew, this builds it as one of the workspace, as the tests were built.
fn stand_in_cargo(environment: &Path) -> Result<PathBuf, Failure> {
    let file = environment.join("bin").join("stand-in-cargo");
    let (cargo, whole) =
        (cargo(), "build --workspace --exclude stlf-fuzz --all-features --lib --bins --tests");
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = rustc ]; then\n  set -- {whole} --message-format json-render-diagnostics\nfi\n\
         unset CARGO\nexec '{}' \"$@\"\n",
        cargo.to_string_lossy()
    );
    let failure = |e: std::io::Error| Failure {
        message: format!("{}: {e}", file.display()),
        again: "cargo xtask python".into(),
    };
    std::fs::write(&file, script).map_err(failure)?;
    command("chmod", &["+x", &file.to_string_lossy()], &[])?;
    Ok(file)
}

/// What to install: the builder, what the package needs, and its extra `test`.
fn requirements(root: &Path) -> Result<Vec<String>, Failure> {
    let failure = |message: String| Failure { message, again: "cat pyproject.toml".into() };
    let file = root.join("pyproject.toml");
    let text = std::fs::read_to_string(&file).map_err(|e| failure(e.to_string()))?;
    let listed = listed(&text).map_err(|e| failure(format!("pyproject.toml: {e}")))?;
    Ok(listed)
}

fn listed(text: &str) -> Result<Vec<String>, String> {
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| e.to_string())?;
    let mut all = Vec::new();
    for place in [
        &["build-system", "requires"][..],
        &["project", "dependencies"],
        &["project", "optional-dependencies", "test"],
    ] {
        let missing = || format!("{} is no list of packages", place.join("."));
        let mut value: Option<&toml::Value> = None;
        for key in place {
            value = match value {
                None => table.get(*key),
                Some(inside) => inside.get(key),
            };
        }
        let packages = value.and_then(toml::Value::as_array).ok_or_else(missing)?;
        for package in packages {
            all.push(package.as_str().ok_or_else(missing)?.to_owned());
        }
    }
    Ok(all)
}

/// The newest wheel of the folder.
fn newest_wheel(folder: &Path) -> Result<PathBuf, Failure> {
    let failure = |message: String| Failure { message, again: "cargo xtask check".into() };
    let entries = std::fs::read_dir(folder).map_err(|e| failure(e.to_string()))?;
    let wheels = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "whl"));
    let newest = wheels.max_by_key(|path| path.metadata().and_then(|m| m.modified()).ok());
    newest.ok_or_else(|| failure(format!("no wheel in {}", folder.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_install_stands_in_pyproject() {
        let text = "[build-system]\nrequires = [\"maturin\"]\n[project]\ndependencies = [\"numpy\"]\n\
                    [project.optional-dependencies]\ntest = [\"pytest>=8\", \"mypy\"]\n";
        assert_eq!(listed(text).unwrap(), ["maturin", "numpy", "pytest>=8", "mypy"]);
        let error = listed(&text.replace("numpy", "numpy\", 3, \"")).unwrap_err();
        assert_eq!(error, "project.dependencies is no list of packages");
        assert!(listed("[project]").unwrap_err().starts_with("build-system.requires"));
    }

    #[test]
    fn the_newest_wheel_is_taken() {
        let folder = std::env::temp_dir().join(format!("stlf-wheels-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        assert!(newest_wheel(&folder).unwrap_err().message.starts_with("no wheel in"));
        for (name, second) in [("b.whl", 1), ("a.whl", 2), ("c.txt", 3)] {
            let file = std::fs::File::create(folder.join(name)).unwrap();
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(second);
            file.set_modified(time).unwrap();
        }
        assert_eq!(newest_wheel(&folder).unwrap(), folder.join("a.whl"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
