//! The scripts of the page, by a linter and a type checker that npm installs under `target`; `.oxlintrc.json` and the `tsconfig.json`
//! beside the scripts say what they look for.

use std::path::Path;

use crate::steps::{Done, Failure, command, succeeds};

/// A program of one npm package, without dependencies of its own.
struct Tool {
    package: &'static str,
    /// Another version may find other things.
    version: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
}

/// Where the scripts stand. Each is a scope of its own; they share the object `page` alone, whose type is in `page.d.ts`.
const TOOLS: [Tool; 2] = [
    Tool {
        package: "oxlint",
        version: "1.93.0",
        program: "oxlint",
        arguments: &["crates/lab/src/page"],
    },
    Tool {
        package: "typescript",
        version: "5.9.3",
        program: "tsc",
        arguments: &["--project", "crates/lab/src/page"],
    },
];

/// Checks the scripts, with the tools of an earlier time where there are any.
pub(crate) fn check(target: &Path) -> Result<Done, Failure> {
    for tool in TOOLS {
        if let Done::Skipped(why) = run(&tool, target)? {
            return Ok(Done::Skipped(why));
        }
    }
    Ok(Done::Passed)
}

fn run(tool: &Tool, target: &Path) -> Result<Done, Failure> {
    let Tool { package, version, program, arguments } = *tool;
    let folder = target.join(format!("{package}-{version}"));
    let path = folder.join("node_modules").join(".bin").join(program);
    let path = path.to_string_lossy();
    if !succeeds(&path, &["--version"]) {
        if !succeeds("npm", &["--version"]) {
            return Ok(Done::Skipped("there is no npm".to_owned()));
        }
        let (folder, package) = (folder.to_string_lossy(), format!("{package}@{version}"));
        let install =
            ["install", "--loglevel=error", "--no-save", "--no-audit", "--no-fund", "--prefix"];
        if let Err(failure) = command("npm", &[&install[..], &[&*folder, &package]].concat(), &[]) {
            let why = format!("npm could not install {package}: {}", failure.message);
            return Ok(Done::Skipped(why));
        }
    }
    command(&path, arguments, &[])
}
