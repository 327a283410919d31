//! Rules about what may stand where. Each is a function from the tree to its findings.

use std::collections::BTreeMap;

use crate::rust_text::{code_only, shipped_code};
use crate::tree::{File, Finding, LARGEST_FILE, Tree};

/// Which sibling crates a crate may depend on. Dependencies point one way. ARCHITECTURE.md has the same table.
pub(crate) const MAY_SEE: [(&str, &[&str]); 17] = [
    ("testing", &[]),
    ("optim", &[]),
    ("data", &["testing"]),
    ("figure", &[]),
    ("learn", &["data", "testing"]),
    ("planning", &["optim"]),
    ("formats", &["planning", "optim", "data", "testing"]),
    ("method", &["planning", "data", "learn", "testing"]),
    ("learner", &["method", "planning", "data", "learn", "testing"]),
    ("stlf", &["formats", "method", "planning", "optim", "data", "learn", "testing"]),
    ("bundle", &["formats", "method", "planning", "data", "learn"]),
    ("config", &["method", "planning", "data", "learn"]),
    ("protocol", &["config", "method", "planning", "data", "learn"]),
    (
        "lab",
        &[
            "bundle", "learner", "protocol", "config", "formats", "method", "planning", "data",
            "learn", "figure", "testing",
        ],
    ),
    (
        "node",
        &[
            "bundle", "protocol", "config", "formats", "method", "planning", "data", "learn",
            "testing",
        ],
    ),
    (
        "cli",
        &[
            "bundle", "lab", "node", "learner", "protocol", "config", "formats", "method",
            "planning", "data", "learn", "figure", "testing",
        ],
    ),
    (
        "python",
        &[
            "bundle", "lab", "learner", "node", "protocol", "config", "formats", "method",
            "planning", "optim", "data", "learn",
        ],
    ),
];

/// Crates that do no I/O, print nothing, and read no clock and no global random source.
const PURE: [&str; 8] =
    ["optim", "planning", "learn", "formats", "method", "stlf", "protocol", "figure"];

/// Crates that may print; `testing` tells which tests were skipped.
const MAY_PRINT: [&str; 2] = ["cli", "testing"];

const LONGEST_FILE: usize = 600;

/// Checks all rules, and returns what breaks them.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let rules: [fn(&Tree) -> Vec<Finding>; 10] = [
        dependency_direction,
        one_file_names_the_conic_solver,
        one_folder_is_unsafe,
        only_the_command_line_prints,
        pure_crates_stay_pure,
        nothing_left_undone,
        no_merge_left_undone,
        file_length,
        file_size,
        no_places_of_our_own,
    ];
    rules.iter().flat_map(|rule| rule(tree)).collect()
}

/// Crates depend on siblings as `MAY_SEE` says, and every crate stands there.
fn dependency_direction(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut manifests: BTreeMap<&str, (&File, toml::Table)> = BTreeMap::new();
    for file in &tree.files {
        let Some(folder) = file.path.strip_prefix("crates/") else { continue };
        let Some((folder, "Cargo.toml")) = folder.split_once('/') else { continue };
        match file.text().parse() {
            Ok(table) => drop(manifests.insert(folder, (file, table))),
            Err(e) => findings.push(Finding::new(&file.path, 0, e.to_string())),
        }
    }
    let package =
        |table: &toml::Table| Some(table.get("package")?.get("name")?.as_str()?.to_owned());
    let folder_of: BTreeMap<String, &str> = manifests
        .iter()
        .filter_map(|(folder, (_, table))| Some((package(table)?, *folder)))
        .collect();
    for (folder, (file, table)) in &manifests {
        let Some((_, may_see)) = MAY_SEE.iter().find(|(name, _)| name == folder) else {
            let message = format!("the crate {folder} is not in the table of {}", file!());
            findings.push(Finding::new(&file.path, 0, message));
            continue;
        };
        for dependency in dependencies(table) {
            if let Some(sibling) = folder_of.get(&dependency)
                && !may_see.contains(sibling)
            {
                let message = format!(
                    "{folder} may not depend on {sibling}; it may see {may_see:?} (ARCHITECTURE.md)"
                );
                findings.push(Finding::new(&file.path, 0, message));
            }
        }
    }
    findings
}

/// The package names of all dependencies of a manifest, of every kind and platform.
fn dependencies(manifest: &toml::Table) -> Vec<String> {
    const KINDS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];
    let platforms = manifest.get("target").and_then(toml::Value::as_table);
    let tables = std::iter::once(manifest)
        .chain(platforms.into_iter().flat_map(|t| t.values().filter_map(toml::Value::as_table)));
    tables
        .flat_map(|table| KINDS.iter().filter_map(|kind| table.get(*kind)?.as_table()))
        .flatten()
        .map(|(key, value)| {
            let renamed = value.get("package").and_then(toml::Value::as_str);
            renamed.unwrap_or(key).to_owned()
        })
        .collect()
}

/// Clarabel could be replaced by changing `optim::conic` alone.
fn one_file_names_the_conic_solver(tree: &Tree) -> Vec<Finding> {
    let rust = tree.files.iter().filter(|f| f.is_rust() && f.path != "crates/optim/src/conic.rs");
    rust.filter(|f| f.path.starts_with("crates/"))
        .flat_map(|file| occurrences(file, &code_only(file.text()), &["clarabel"]))
        .map(|(path, line, _)| {
            Finding::new(&path, line, "only crates/optim/src/conic.rs names clarabel")
        })
        .collect()
}

/// Unsafe code stands where it is tested against safe code, and nowhere else.
fn one_folder_is_unsafe(tree: &Tree) -> Vec<Finding> {
    let rust = tree
        .files
        .iter()
        .filter(|f| f.is_rust() && !f.path.starts_with("crates/learn/src/kernels/"));
    rust.flat_map(|file| {
        occurrences(file, &code_only(file.text()), &["unsafe {", "unsafe fn", "unsafe impl"])
    })
    .map(|(path, line, word)| Finding::new(&path, line, format!("{word} outside the kernels")))
    .collect()
}

/// Libraries report through their return values and observers.
fn only_the_command_line_prints(tree: &Tree) -> Vec<Finding> {
    let words = ["println!", "eprintln!", "print!", "eprint!", "dbg!"];
    sources(tree, |name| !MAY_PRINT.contains(&name))
        .flat_map(|file| occurrences(file, &shipped_code(file.text()), &words))
        .map(|(path, line, word)| {
            Finding::new(&path, line, format!("{word} outside the command line"))
        })
        .collect()
}

/// Bytes and readers come in as arguments, and so do seeds and limits.
fn pure_crates_stay_pure(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in sources(tree, |name| PURE.contains(&name)) {
        let code = shipped_code(file.text());
        let words = ["stdout(", "stderr(", "stdin(", "rand::rng(", "thread_rng("];
        for (path, line, word) in occurrences(file, &code, &words) {
            findings.push(Finding::new(&path, line, format!("{word}) in a crate without I/O")));
        }
        for (line, path) in std_paths(&code) {
            let module = leading_word(&path);
            let forbidden = match module.as_str() {
                "time" => names_more_than(&path, &["Duration"]),
                "net" => names_more_than(&path, &["SocketAddr", "IpAddr"]),
                other => ["fs", "env", "process"].contains(&other),
            };
            if forbidden {
                let message = format!("std::{module} in a crate without I/O");
                findings.push(Finding::new(&file.path, line, message));
            }
        }
    }
    findings
}

/// Whether a path leads to more of its module than these names: a length of time and an address are values, which anybody may be told, a clock and
/// a socket are not.
fn names_more_than(path: &str, values: &[&str]) -> bool {
    let is_value = |name: &str| values.contains(&leading_word(name).as_str());
    match path.trim().split_once("::") {
        None => true,
        Some((_, rest)) => match rest.strip_prefix('{') {
            None => !is_value(rest),
            Some(group) => !group_members(group).iter().all(|name| is_value(name)),
        },
    }
}

/// What code names of `std`, with lines, from the module on: `std::fs::read` and `std::{fs, io}` alike.
fn std_paths(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (start, _) in code.match_indices("std::") {
        if code[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let line = line_of(code, start);
        let rest = &code[start + "std::".len()..];
        match rest.strip_prefix('{') {
            None => {
                let end = rest.find(';').unwrap_or(rest.len());
                found.push((line, rest[..end].to_owned()));
            }
            Some(group) => {
                found.extend(group_members(group).into_iter().map(|member| (line, member)));
            }
        }
    }
    found
}

/// The members of `a::b, c::{d, e}, f}`.
fn group_members(group: &str) -> Vec<String> {
    let mut members = vec![String::new()];
    let mut depth = 0;
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            _ => {}
        }
        match c {
            ',' if depth == 0 => members.push(String::new()),
            _ => members.last_mut().expect("starts with one member").push(c),
        }
    }
    members.iter().map(|m| m.trim().to_owned()).filter(|m| !m.is_empty()).collect()
}

fn leading_word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

fn nothing_left_undone(tree: &Tree) -> Vec<Finding> {
    let rust = tree.files.iter().filter(|f| f.is_rust());
    rust.flat_map(|file| {
        occurrences(file, &code_only(file.text()), &["todo!", "unimplemented!", "#[ignore]"])
    })
    .map(|(path, line, word)| Finding::new(&path, line, format!("{word} is left")))
    .collect()
}

/// No file has the lines that git writes where a merge was not resolved.
fn no_merge_left_undone(tree: &Tree) -> Vec<Finding> {
    // Repeated here so that this file passes its own check.
    let marks = ["<", ">"].map(|sign| sign.repeat(7) + " ");
    let marked = |line: &str| marks.iter().any(|mark| line.starts_with(mark.as_str()));
    let lines = tree.files.iter().flat_map(|file| {
        file.text().lines().enumerate().map(move |(number, line)| (file, number + 1, line))
    });
    lines
        .filter(|(_, _, line)| marked(line))
        .map(|(file, number, _)| Finding::new(&file.path, number, "a merge is not resolved"))
        .collect()
}

fn file_length(tree: &Tree) -> Vec<Finding> {
    let written = tree.files.iter().filter(|f| f.is_rust() || f.path.ends_with(".py"));
    written
        .filter_map(|file| {
            let lines = file.text().lines().count();
            let message = format!("{lines} lines; split it, {LONGEST_FILE} is the limit");
            (lines > LONGEST_FILE).then(|| Finding::new(&file.path, 0, message))
        })
        .collect()
}

fn file_size(tree: &Tree) -> Vec<Finding> {
    let large = tree.files.iter().filter(|f| f.bytes > LARGEST_FILE);
    large.map(|f| Finding::new(&f.path, 0, format!("{} bytes; keep it out", f.bytes))).collect()
}

/// Nothing names a package registry's host or a folder of one particular machine.
fn no_places_of_our_own(tree: &Tree) -> Vec<Finding> {
    // Put together here so that this file passes its own check.
    let hosts = [
        ("crates", ".io"),
        ("py", "pi.org"),
        ("python", "hosted.org"),
        ("npm", "js.org"),
        ("deb.debian", ".org"),
        ("npm", "js.com"),
    ];
    let folders = ["work", "root", "home", "Users"];
    let words: Vec<String> = hosts
        .iter()
        .map(|(a, b)| format!("{a}{b}"))
        .chain(folders.iter().map(|f| format!("/{f}/")))
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    // Lock files are cargo's to write.
    let ours = tree.files.iter().filter(|f| !f.path.ends_with("Cargo.lock"));
    ours.flat_map(|file| occurrences(file, file.text(), &words))
        .map(|(path, line, word)| Finding::new(&path, line, format!("names {word}")))
        .collect()
}

fn sources(tree: &Tree, of: impl Fn(&str) -> bool) -> impl Iterator<Item = &File> {
    tree.files.iter().filter(move |f| f.is_rust() && f.source_of().is_some_and(&of))
}

/// Where any of the words stands, not as the tail of a longer word.
fn occurrences(file: &File, text: &str, words: &[&str]) -> Vec<(String, usize, String)> {
    let mut found = Vec::new();
    for word in words {
        for (start, _) in text.match_indices(word) {
            let before = text[..start].chars().next_back();
            let inside_word = |c: char| c.is_alphanumeric() || c == '_';
            if word.starts_with(inside_word) && before.is_some_and(inside_word) {
                continue;
            }
            found.push((file.path.clone(), line_of(text, start), (*word).to_owned()));
        }
    }
    found
}

fn line_of(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    fn manifest(name: &str, dependencies: &str) -> String {
        format!("[package]\nname = \"{name}\"\n{dependencies}")
    }

    #[test]
    fn dependencies_may_point_down_only() {
        let optim = manifest("stlf-optim", "");
        let up = manifest("stlf-optim", "[dev-dependencies]\nstlf.workspace = true\n");
        let stlf = manifest("stlf", "[dependencies]\nstlf-optim.workspace = true\nserde = \"1\"\n");
        let good = tree(&[("crates/optim/Cargo.toml", &optim), ("crates/stlf/Cargo.toml", &stlf)]);
        assert_eq!(dependency_direction(&good), []);
        let bad = tree(&[("crates/optim/Cargo.toml", &up), ("crates/stlf/Cargo.toml", &stlf)]);
        let findings = dependency_direction(&bad);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].message.contains("optim may not depend on stlf"));
    }

    #[test]
    fn renamed_and_platform_dependencies_count_too() {
        let renamed =
            manifest("stlf-cli", "[dependencies]\no = { package = \"stlf-optim\", path = \"\" }\n");
        let platform =
            manifest("stlf-cli", "[target.'cfg(unix)'.dependencies]\nstlf-optim = \"0\"\n");
        let optim = manifest("stlf-optim", "");
        for cli in [renamed, platform] {
            let tree =
                tree(&[("crates/optim/Cargo.toml", &optim), ("crates/cli/Cargo.toml", &cli)]);
            assert_eq!(dependency_direction(&tree).len(), 1, "{cli}");
        }
    }

    #[test]
    fn an_unknown_crate_is_a_finding() {
        let tree = tree(&[("crates/helpers/Cargo.toml", &manifest("helpers", ""))]);
        assert!(dependency_direction(&tree)[0].message.contains("helpers"));
    }

    #[test]
    fn the_table_itself_has_no_cycle_and_no_stranger() {
        for (k, (name, may_see)) in MAY_SEE.iter().enumerate() {
            for seen in *may_see {
                let place = MAY_SEE.iter().position(|(other, _)| other == seen);
                assert!(
                    place.is_some_and(|p| p < k),
                    "{name} sees {seen}, which does not stand before it"
                );
            }
        }
    }

    #[test]
    fn the_solver_is_named_in_one_file() {
        let code = "// Clarabel and clarabel in words\nuse clarabel::solver;\n";
        let inside = tree(&[("crates/optim/src/conic.rs", code)]);
        assert_eq!(one_file_names_the_conic_solver(&inside), []);
        let outside = tree(&[("crates/optim/src/gp.rs", code)]);
        assert_eq!(one_file_names_the_conic_solver(&outside)[0].line, 2);
    }

    #[test]
    fn unsafe_code_is_for_the_kernels() {
        let code = "// unsafe { words }\nfn f() { unsafe { g() } }\n";
        assert_eq!(one_folder_is_unsafe(&tree(&[("crates/learn/src/kernels/rows.rs", code)])), []);
        assert_eq!(one_folder_is_unsafe(&tree(&[("crates/learn/src/train.rs", code)]))[0].line, 2);
    }

    #[test]
    fn printing_is_for_the_command_line() {
        let code =
            "fn f() { eprintln!(\"x\"); }\n#[cfg(test)]\nmod tests { fn g() { println!(); } }\n";
        let library = tree(&[("crates/stlf/src/a.rs", code), ("crates/stlf/tests/b.rs", code)]);
        let findings = only_the_command_line_prints(&library);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].message.starts_with("eprintln!"));
        assert_eq!(only_the_command_line_prints(&tree(&[("crates/cli/src/a.rs", code)])), []);
    }

    #[test]
    fn pure_crates_name_no_files_clocks_or_environment() {
        let bad = [
            "use std::fs;",
            "use std::{collections::{BTreeMap, VecDeque}, time::Instant};",
            "use std::time;",
            "use std::time::{Duration, SystemTime};",
            "use std::{fmt, time::{Duration, Instant}};",
            "let now = std::time::Instant::now();",
            "let x = std::env::var(\"X\");",
            "use std::net::{SocketAddr, UdpSocket};",
            "use std::io; fn f() { io::stdout(); }",
        ];
        for code in bad {
            assert_eq!(
                pure_crates_stay_pure(&tree(&[("crates/stlf/src/a.rs", code)])).len(),
                1,
                "{code}"
            );
        }
        let good = "use std::{io::Read, fmt};\n// std::fs\nuse crate::std_time;\n#[cfg(test)]\nmod tests { use std::fs; }";
        // A length of time is no clock, and an address no socket.
        let values = [
            "use std::net::SocketAddr;",
            "use std::time::Duration;",
            "use std::{time::{Duration}, fmt};",
            "fn f(x: std::time::Duration) -> bool { x > std::time::Duration::ZERO }",
        ];
        for code in [good].into_iter().chain(values) {
            assert_eq!(pure_crates_stay_pure(&tree(&[("crates/stlf/src/a.rs", code)])), []);
            assert_eq!(pure_crates_stay_pure(&tree(&[("crates/protocol/src/a.rs", code)])), []);
        }
        let clock = tree(&[("crates/protocol/src/a.rs", bad[1])]);
        assert_eq!(pure_crates_stay_pure(&clock).len(), 1);
        assert_eq!(pure_crates_stay_pure(&tree(&[("crates/cli/src/a.rs", bad[0])])), []);
    }

    #[test]
    fn long_and_large_files_are_findings() {
        let long = "x\n".repeat(LONGEST_FILE + 1);
        let mut tree = tree(&[("a.rs", &long), ("b.md", &long)]);
        assert_eq!(file_length(&tree).len(), 1);
        tree.files[1].bytes = LARGEST_FILE + 1;
        assert_eq!(file_size(&tree)[0].path, "b.md");
    }

    #[test]
    fn places_of_our_own_are_found_in_any_text() {
        let text = format!("see py{}\nand /ho{}me\n", "pi.org", "me/");
        let tree = tree(&[("README.md", &text), ("Cargo.lock", &text)]);
        let lines: Vec<_> = no_places_of_our_own(&tree).iter().map(|f| f.line).collect();
        assert_eq!(lines, [1, 2]);
    }

    #[test]
    fn a_merge_that_was_not_resolved_is_found_in_any_text() {
        let [ours, theirs] = ["<", ">"].map(|sign| sign.repeat(7));
        let text = format!("- a\n{ours} HEAD\n- b\n=======\n- c\n{theirs} other\n");
        let tree = tree(&[("NEWS.md", &text), ("b.md", "a heading\n=======\n\n    >>> f()\n")]);
        let found = no_merge_left_undone(&tree);
        let lines: Vec<_> = found.iter().map(|f| (f.path.as_str(), f.line)).collect();
        assert_eq!(lines, [("NEWS.md", 2), ("NEWS.md", 6)]);
    }

    #[test]
    fn work_left_undone_is_found_in_code_only() {
        let tree = tree(&[("a.rs", "// todo!\nfn f() { todo!() }\nfn g() { not_todo!() }")]);
        let lines: Vec<_> = nothing_left_undone(&tree).iter().map(|f| f.line).collect();
        assert_eq!(lines, [2]);
    }
}
