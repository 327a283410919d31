//! The scripts of the page, by a linter that npm installs under `target`; `.oxlintrc.json` says what it looks for.

use std::path::Path;

use crate::steps::{Done, Failure, command, succeeds};

/// The linter: one program, without dependencies of its own.
const LINTER: &str = "oxlint";

/// Its version. Another one may find other things.
const VERSION: &str = "1.93.0";

/// Where the scripts stand. Each is a scope of its own; they share the object `page` alone.
const SCRIPTS: &str = "crates/lab/src/page";

/// Lints the scripts, with the linter of an earlier time where there is one.
pub(crate) fn check(target: &Path) -> Result<Done, Failure> {
    let folder = target.join(format!("{LINTER}-{VERSION}"));
    let linter = folder.join("node_modules").join(".bin").join(LINTER);
    let linter = linter.to_string_lossy();
    if !succeeds(&linter, &["--version"]) {
        if !succeeds("npm", &["--version"]) {
            return Ok(Done::Skipped("there is no npm".to_owned()));
        }
        let (folder, package) = (folder.to_string_lossy(), format!("{LINTER}@{VERSION}"));
        let install =
            ["install", "--loglevel=error", "--no-save", "--no-audit", "--no-fund", "--prefix"];
        if let Err(failure) = command("npm", &[&install[..], &[&*folder, &package]].concat(), &[]) {
            let why = format!("npm could not install {package}: {}", failure.message);
            return Ok(Done::Skipped(why));
        }
    }
    command(&linter, &[SCRIPTS], &[])
}
