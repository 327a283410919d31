//! Runs the commands that documents show and compares what they print with what is shown.
//!
//! A block of code that follows `<!-- file: NAME -->` is written to NAME in an empty folder. Every
//! `console` block is then run there, in order: a line `$ command` runs, the lines below it are what
//! it must print. A line `…` stands for any lines, and times may differ. A command with no lines
//! below it must only succeed. A command goes on in the next line after `\`.
//!
//! After `<!-- numbers differ between processors -->` printed numbers must be those shown up to a quarter, or up to 0.5: whoever trains ends with other
//! last digits on a processor with other instructions.
//!
//! Commands that take minutes, or start what does not end, stand in other blocks, which are not run and say so ([`crate::shell_blocks`]).

use std::path::Path;
use std::process::Command;

/// The documents, each run in a folder of its own.
pub(crate) const DOCUMENTS: [&str; 7] = [
    "README.md",
    "docs/guide.md",
    "docs/planning.md",
    "docs/findings.md",
    "docs/predict.md",
    "docs/fleet.md",
    "docs/learners.md",
];

/// What stands before a block whose numbers are compared loosely.
const LOOSE: &str = "<!-- numbers differ between processors -->";

/// The programs that commands of the documents may need besides ours.
const PROGRAMS: [&str; 2] = ["jq", "python3"];

/// What a document shows: files, and commands with their output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Block {
    File { name: String, text: String },
    Commands(Vec<Shown>),
}

/// One command, the line it ends on, and the lines it is shown to print.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) command: String,
    pub(crate) output: Vec<String>,
    pub(crate) line: usize,
    /// Whether printed numbers may differ a little from those shown.
    pub(crate) is_loose: bool,
}

/// The fenced blocks that are files or commands.
pub(crate) fn blocks(markdown: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut file_name: Option<String> = None;
    let mut is_loose = false;
    let mut lines = markdown.lines().enumerate();
    while let Some((_, line)) = lines.next() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("<!-- file:").and_then(|l| l.strip_suffix("-->")) {
            file_name = Some(name.trim().to_owned());
        } else if line == LOOSE {
            is_loose = true;
        } else if let Some(language) = line.strip_prefix("```") {
            let body: Vec<(usize, &str)> =
                lines.by_ref().take_while(|(_, l)| l.trim() != "```").collect();
            if let Some(name) = file_name.take() {
                let text = body.iter().map(|(_, l)| format!("{l}\n")).collect();
                blocks.push(Block::File { name, text });
            } else if language == "console" {
                blocks.push(Block::Commands(commands(&body, is_loose)));
            }
            is_loose = false;
        } else if !line.is_empty() {
            (file_name, is_loose) = (None, false);
        }
    }
    blocks
}

fn commands(body: &[(usize, &str)], is_loose: bool) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    for (k, line) in body {
        if let Some(last) = shown.last_mut()
            && last.command.ends_with('\\')
        {
            last.command += &format!("\n{line}");
            last.line = k + 1;
        } else if let Some(command) = line.strip_prefix("$ ") {
            let (command, output) = (command.to_owned(), Vec::new());
            shown.push(Shown { command, output, line: k + 1, is_loose });
        } else if let Some(last) = shown.last_mut() {
            last.output.push((*line).to_owned());
        }
    }
    for command in &mut shown {
        while command.output.last().is_some_and(|l| l.trim().is_empty()) {
            command.output.pop();
        }
    }
    shown
}

/// The command as it is run against the built binary; `None` where running it here makes no sense.
pub(crate) fn runnable(command: &str) -> Option<String> {
    if let Some(arguments) = command.strip_prefix("cargo run --release -- ") {
        return Some(format!("stlf {arguments}"));
    }
    (command != "cargo" && !command.starts_with("cargo ")).then(|| command.to_owned())
}

/// Whether the printed lines are those shown, where `same` says whether two lines are.
fn agrees(shown: &[String], printed: &[String], same: fn(&str, &str) -> bool) -> bool {
    match shown.split_first() {
        None => printed.iter().all(|l| l.trim().is_empty()),
        Some((first, rest)) if first.trim() == "…" => {
            rest.is_empty() || (0..=printed.len()).any(|k| agrees(rest, &printed[k..], same))
        }
        Some((first, rest)) => printed
            .split_first()
            .is_some_and(|(line, others)| same(first, line) && agrees(rest, others, same)),
    }
}

/// Whether two lines are the same, times apart.
fn same(shown: &str, printed: &str) -> bool {
    without_times(shown) == without_times(printed)
}

/// Whether two lines have the same words, times apart, and numbers that differ by less than a quarter of the larger one or than 0.5.
fn nearly_same(shown: &str, printed: &str) -> bool {
    let number = |word: &str| word.trim_matches(['?', ',', ';', '(', ')']).parse::<f64>().ok();
    let near = |a: f64, b: f64| (a - b).abs() < (a.abs().max(b.abs()) / 4.0).max(0.5);
    let (shown, printed) = (without_times(shown), without_times(printed));
    let (shown, printed) = (shown.split_whitespace(), printed.split_whitespace());
    shown.clone().count() == printed.clone().count()
        && shown
            .zip(printed)
            .all(|(a, b)| a == b || number(a).zip(number(b)).is_some_and(|(a, b)| near(a, b)))
}

/// The line with every "number unit" of time replaced, and without trailing space.
fn without_times(line: &str) -> String {
    const UNITS: [&str; 5] = ["ns", "µs", "us", "ms", "s"];
    let is_number = |w: &str| !w.is_empty() && w.chars().all(|c| c.is_ascii_digit() || c == '.');
    let mut words: Vec<&str> = line.trim_end().split(' ').collect();
    for k in 0..words.len() {
        let word = words[k].trim_end_matches([',', '.', ')', ';']);
        let joined = UNITS.iter().any(|u| word.strip_suffix(u).is_some_and(is_number));
        if joined {
            words[k] = "TIME";
        } else if UNITS.contains(&word) && k > 0 && is_number(words[k - 1]) {
            words[k - 1] = "TIME";
            words[k] = "";
        }
    }
    words.join(" ")
}

/// A program that the commands need besides ours, and that is not here.
pub(crate) fn missing(markdown: &str) -> Option<&'static str> {
    let blocks = blocks(markdown);
    let is_used = |program: &&str| {
        blocks.iter().any(|block| match block {
            Block::Commands(shown) => {
                shown.iter().any(|shown| shown.command.split(' ').next() == Some(*program))
            }
            Block::File { .. } => false,
        })
    };
    let is_missing = |program: &&str| Command::new(program).arg("--version").output().is_err();
    PROGRAMS.into_iter().filter(is_used).find(is_missing)
}

/// What running a document came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) commands: usize,
    /// The document with what the commands printed just now.
    pub(crate) updated: String,
    /// The first command that printed something else than is shown.
    pub(crate) difference: Option<String>,
}

/// Runs all of a document with `binary`'s folder first on the path.
pub(crate) fn run(name: &str, markdown: &str, binary: &Path, folder: &Path) -> Result<Ran, String> {
    let (mut commands, mut difference) = (0, None);
    let mut lines: Vec<String> = markdown.lines().map(str::to_owned).collect();
    // How far the lines below have moved by what was put in place of older output.
    let mut moved = 0;
    for block in blocks(markdown) {
        let shown = match block {
            Block::File { name, text } => {
                let path = folder.join(&name);
                std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
                continue;
            }
            Block::Commands(shown) => shown,
        };
        for Shown { command, output, line, is_loose } in shown {
            let Some(runnable) = runnable(&command) else { continue };
            let at = format!("{name}:{line}: $ {command}");
            let printed = run_one(&runnable, binary, folder).map_err(|e| format!("{at}\n{e}"))?;
            commands += 1;
            let same = if is_loose { nearly_same } else { same };
            if output.is_empty() || agrees(&output, &printed, same) {
                continue;
            }
            let text =
                format!("{at}\nshown:\n{}\n\nprinted:\n{}", output.join("\n"), printed.join("\n"));
            difference.get_or_insert(text);
            let start = line.saturating_add_signed(moved);
            moved += printed.len() as isize - output.len() as isize;
            lines.splice(start..start + output.len(), printed);
        }
    }
    Ok(Ran { commands, updated: lines.join("\n") + "\n", difference })
}

/// The lines that a command prints.
fn run_one(command: &str, binary: &Path, folder: &Path) -> Result<Vec<String>, String> {
    let mut path = binary.parent().map(|p| p.as_os_str().to_owned()).unwrap_or_default();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .env("PATH", path)
        .env("NO_COLOR", "1")
        .output()
        .map_err(|e| e.to_string())?;
    let out = String::from_utf8_lossy(&output.stdout);
    // `stlf diff` tells by its exit code whether the plans differ.
    let differs = command.starts_with("stlf diff ") && output.status.code() == Some(1);
    if !output.status.success() && !differs {
        let err = String::from_utf8_lossy(&output.stderr);
        return Err(format!("ended with {}\n{out}{err}", output.status));
    }
    Ok(out.trim_end().lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str = "# x\n\n<!-- file: a.json -->\n```json\n{}\n```\n\n\
        ```console\n$ stlf plan a.json\nsource  car\n\nin 3 ms\n$ cargo xtask check\n```\n\
        ```rust\nfn f() {}\n```\n";

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn files_and_commands_are_found() {
        let blocks = blocks(README);
        assert_eq!(blocks[0], Block::File { name: "a.json".into(), text: "{}\n".into() });
        let Block::Commands(shown) = &blocks[1] else { panic!("{blocks:?}") };
        assert_eq!(blocks.len(), 2);
        assert_eq!(shown[0].command, "stlf plan a.json");
        assert_eq!(shown[0].output, ["source  car", "", "in 3 ms"]);
        assert_eq!(shown[0].line, 9);
        assert_eq!(shown[1].output, Vec::<String>::new());
    }

    #[test]
    fn cargo_runs_the_built_binary_and_does_not_check_itself() {
        assert_eq!(runnable("cargo run --release -- demo").as_deref(), Some("stlf demo"));
        assert_eq!(runnable("cargo xtask check"), None);
        assert_eq!(runnable("stlf plan x | head").as_deref(), Some("stlf plan x | head"));
    }

    #[test]
    fn output_agrees_up_to_times_and_ellipses() {
        let agrees = |shown: &[String], printed: &[String]| agrees(shown, printed, same);
        let printed = lines("a\nb 1\nc\nsolved in 0.31 ms, gap 0");
        assert!(agrees(&lines("a\nb 1\nc\nsolved in 12 µs, gap 0"), &printed));
        assert!(agrees(&lines("a\n…\nsolved in 2s gap 0"), &lines("a\nx\nsolved in 3s gap 0")));
        assert!(agrees(&lines("…\nc\n…"), &printed));
        assert!(!agrees(&lines("a\nb 2\n…"), &printed));
        assert!(!agrees(&lines("a\nb 1"), &printed));
    }

    #[test]
    fn numbers_may_differ_a_little_where_a_mark_says_so() {
        assert!(nearly_same("ST-LF   95.6 ± 0.7 %  290.1 µJ", "ST-LF  95.5 ± 0.8 %  291.7 µJ"));
        assert!(!nearly_same("ST-LF 95.6 %", "ST-LF 65.6 %"));
        assert!(!nearly_same("SM 95.6 %", "ST-LF 95.6 %") && !nearly_same("a 1", "a 1 2"));
        let text = format!("{LOOSE}\n```console\n$ a\n1\n```\n```console\n$ b\n```\n");
        let loose: Vec<bool> = blocks(&text)
            .iter()
            .map(|block| matches!(block, Block::Commands(shown) if shown[0].is_loose))
            .collect();
        assert_eq!(loose, [true, false]);
    }

    #[test]
    fn commands_run_in_their_folder_and_are_compared() {
        let folder = std::env::temp_dir().join(format!("xtask-readme-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let binary = folder.join("stlf");
        let good =
            "<!-- file: f -->\n```text\nhello\n```\n```console\n$ cat f\nhello\n$ cargo x\n```\n";
        let ran = run("a.md", good, &binary, &folder).unwrap();
        assert_eq!((ran.commands, ran.difference), (1, None));
        assert_eq!(ran.updated, good);
        let failing = good.replace("cat f\nhello", "cat g");
        assert!(run("a.md", &failing, &binary, &folder).is_err_and(|e| e.contains("a.md:6")));
        let stale = good.replace("cat f\nhello", "cat f\nold\nlines\n$ cat f\nstale");
        let ran = run("a.md", &stale, &binary, &folder).unwrap();
        assert!(ran.difference.is_some_and(|d| d.starts_with("a.md:6: $ cat f")));
        assert_eq!(ran.updated, stale.replace("old\nlines", "hello").replace("stale", "hello"));
        let long = "```console\n$ printf '%s\\n' a \\\n    b\na\nold\n```\n";
        let ran = run("a.md", long, &binary, &folder).unwrap();
        assert!(ran.difference.is_some_and(|d| d.starts_with("a.md:3: $ printf")));
        assert_eq!(ran.updated, long.replace("old", "b"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
