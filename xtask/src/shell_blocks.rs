//! Documents show no command that nobody runs without saying so.
//!
//! A command stands in a `console` block of a document that [`crate::readme`] runs, or in a block with a mark before it: `<!-- not run: WHY -->`,
//! or `<!-- run by FILE -->`, where a test runs it.

use crate::readme::DOCUMENTS;
use crate::tree::{Finding, Tree};

/// The first words by which a line is known as a command for a shell.
const PROGRAMS: [&str; 26] = [
    "apt",
    "apt-get",
    "cargo",
    "cd",
    "curl",
    "docker",
    "export",
    "flwr",
    "git",
    "hq",
    "jq",
    "mkdir",
    "mlflow",
    "npm",
    "pip",
    "podman",
    "python",
    "python3",
    "ray",
    "rsvg-convert",
    "sbatch",
    "scp",
    "sha256sum",
    "ssh",
    "stlf",
    "systemctl",
];

/// All documents of the repository, besides the history of changes.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let documents = tree.files.iter().filter(|f| f.path.ends_with(".md"));
    documents
        .flat_map(|file| {
            let runs = DOCUMENTS.contains(&file.path.as_str());
            let exists = |path: &str| tree.files.iter().any(|f| f.path == path);
            let of_line = |(line, message)| Finding::new(&file.path, line, message);
            unmarked(file.text(), runs, exists).into_iter().map(of_line).collect::<Vec<_>>()
        })
        .collect()
}

/// The lines with the first command of each block that is neither run nor marked.
fn unmarked(text: &str, runs: bool, exists: impl Fn(&str) -> bool) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    // The language of the fence that is open, and the last line of prose or mark before the block.
    let mut fence: Option<&str> = None;
    let mut before = "";
    let mut told = false;
    for (at, line) in text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        if is_fence && fence.is_none() {
            fence = Some(line.trim_start().trim_start_matches('`').trim());
            told = false;
            continue;
        }
        if is_fence {
            (fence, before) = (None, "");
            continue;
        }
        let shown = match fence {
            Some("console") if runs => elsewhere(line),
            Some("console" | "sh" | "bash" | "shell" | "text" | "") => Some(line),
            Some(_) => None,
            None => line.strip_prefix("    "),
        };
        if fence.is_none() && shown.is_none() && !line.trim().is_empty() {
            (before, told) = (line.trim(), false);
        }
        if !told && shown.is_some_and(is_command) {
            told = true;
            if let Some(message) = wrong_mark(before, &exists) {
                found.push((at + 1, message));
            }
        }
    }
    found
}

/// The command after the prompt of a place with a name, as in `gate$ stlf node start`, which only a test can run.
fn elsewhere(line: &str) -> Option<&str> {
    let (place, command) = line.split_once("$ ")?;
    (!place.is_empty() && place.chars().all(char::is_alphanumeric)).then_some(command)
}

/// What is wrong with the line before a block of commands.
fn wrong_mark(before: &str, exists: impl Fn(&str) -> bool) -> Option<String> {
    let mark = |kind: &str| before.strip_prefix(kind)?.strip_suffix("-->").map(str::trim);
    match (mark("<!-- not run:"), mark("<!-- run by ")) {
        (Some(why), _) if !why.is_empty() => None,
        (_, Some(path)) if exists(path) => None,
        (_, Some(path)) => Some(format!("there is no file {path}, which should run this")),
        _ => Some(
            "shows a command that nothing runs: put it into a console block, or `<!-- not run: WHY -->` before it".to_owned(),
        ),
    }
}

fn is_command(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches("$ ");
    let mut words = line.split_whitespace();
    // Settings before a command: `NAME=value command`.
    let is_setting = |word: &&str| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
        })
    };
    let program = words.find(|word| !is_setting(word));
    // The name of a program alone, or before a colon or a sign, is no command.
    program.is_some_and(|program| PROGRAMS.contains(&program)) && words.next() != Some("=")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, runs: bool) -> Vec<usize> {
        unmarked(text, runs, |path| path == "a.rs").into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn commands_need_a_mark_unless_they_are_run() {
        let indented = "Do this:\n\n    stlf run\n    stlf plan\n\nand\n\n    stlf serve\n";
        assert_eq!(lines(indented, true), [3, 8]);
        let marked = indented.replace("and", "<!-- not run: it does not end -->");
        assert_eq!(lines(&marked, true), [3]);
        let fenced = "```console\n$ STLF_X=1 stlf run\n```\n\n```sh\ncargo test\n```\n";
        assert_eq!((lines(fenced, true), lines(fenced, false)), (vec![6], vec![2, 6]));
        let data = "```toml\nstlf = 1\n```\n\n    stlf.errors.InputError: no\n    stlf = 3\n";
        assert_eq!(lines(data, false), [] as [usize; 0]);
    }

    #[test]
    fn commands_of_other_places_need_a_test() {
        let shown = "```console\n$ stlf demo\ngate$ stlf node start\n```\n";
        assert_eq!(lines(shown, true), [3]);
        assert_eq!(lines(&format!("<!-- run by a.rs -->\n{shown}"), true), [] as [usize; 0]);
    }

    #[test]
    fn a_mark_gives_a_reason_or_a_file_that_exists() {
        let with = |mark: &str| lines(&format!("{mark}\n\n    pip install .\n"), false).len();
        assert_eq!(with("<!-- not run: downloads -->"), 0);
        assert_eq!(with("<!-- not run: -->"), 1);
        assert_eq!(with("<!-- run by a.rs -->"), 0);
        assert_eq!(with("<!-- run by b.rs -->"), 1);
    }
}
