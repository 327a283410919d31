//! The scripts of the page, by a linter and a type checker that npm installs under `target`; `.oxlintrc.json` and the `tsconfig.json`
//! beside the scripts say what they look for. With them comes axe-core, by which a test of the command line checks that everybody can use the page.

use std::path::Path;

use crate::steps::{Done, Failure, command, succeeds};

/// An npm package without dependencies of its own.
struct Package {
    name: &'static str,
    /// Another version may find other things.
    version: &'static str,
    /// The file that shows that it is there.
    file: &'static str,
    /// With which arguments it is run here, if it is.
    arguments: Option<&'static [&'static str]>,
}

/// Each script is a scope of its own; they share the object `page` alone, whose type is in `page.d.ts`.
const PACKAGES: [Package; 3] = [
    Package {
        name: "oxlint",
        version: "1.93.0",
        file: ".bin/oxlint",
        arguments: Some(&["crates/lab/src/page"]),
    },
    Package {
        name: "typescript",
        version: "5.9.3",
        file: ".bin/tsc",
        arguments: Some(&["--project", "crates/lab/src/page"]),
    },
    // `crates/cli/tests/common/browser.rs` names this file, too.
    Package { name: "axe-core", version: "4.11.0", file: "axe-core/axe.min.js", arguments: None },
];

/// Checks the scripts, with the packages of an earlier time where there are any.
pub(crate) fn check(target: &Path) -> Result<Done, Failure> {
    for package in PACKAGES {
        if let Done::Skipped(why) = run(&package, target)? {
            return Ok(Done::Skipped(why));
        }
    }
    Ok(Done::Passed)
}

fn run(package: &Package, target: &Path) -> Result<Done, Failure> {
    let Package { name, version, file, arguments } = *package;
    let folder = target.join(format!("{name}-{version}"));
    let path = folder.join("node_modules").join(file);
    if !path.is_file() {
        if !succeeds("npm", &["--version"]) {
            return Ok(Done::Skipped("there is no npm".to_owned()));
        }
        let (folder, package) = (folder.to_string_lossy(), format!("{name}@{version}"));
        let install =
            ["install", "--loglevel=error", "--no-save", "--no-audit", "--no-fund", "--prefix"];
        if let Err(failure) = command("npm", &[&install[..], &[&*folder, &package]].concat(), &[]) {
            let why = format!("npm could not install {package}: {}", failure.message);
            return Ok(Done::Skipped(why));
        }
    }
    match arguments {
        Some(arguments) => command(&path.to_string_lossy(), arguments, &[]),
        None => Ok(Done::Passed),
    }
}
