//! Documentation that must stay true: the map from the paper to the code, and the code map.

use std::collections::{BTreeMap, BTreeSet};

use crate::layout::MAY_SEE;
use crate::rust_text::documented;
use crate::shell_blocks;
use crate::tree::{Finding, Tree};

const PAPER_MAP: &str = "docs/paper-map.md";
const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// All rules; `paper` is the paper's source, where it is at hand.
pub(crate) fn check(tree: &Tree, paper: Option<&str>) -> Vec<Finding> {
    let mut findings = paper_map(tree);
    findings.extend(paper.into_iter().flat_map(|paper| labels_exist(tree, paper)));
    findings.extend(code_map(tree));
    findings.extend(dependency_table(tree));
    findings.extend(claims(tree));
    findings.extend(shell_blocks::check(tree));
    findings
}

/// Whoever reads that ours is above every baseline reads in the same paragraph where that was seen, and where it is not so.
fn claims(tree: &Tree) -> Vec<Finding> {
    const CLAIM: &str = "above every baseline";
    const WHERE: [(&str, &str); 2] =
        [("nine settings", "where it holds"), ("natural fleets", "where it does not")];
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|f| f.path.ends_with(".md")) {
        let mut line = 1;
        for paragraph in file.text().split("\n\n") {
            let words = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
            let unsaid = WHERE.iter().filter(|(place, _)| !words.contains(place));
            for (place, what) in unsaid.filter(|_| words.contains(CLAIM)) {
                let message = format!("claims to be {CLAIM} and does not say {what} ({place})");
                findings.push(Finding::new(&file.path, line, message));
            }
            line += paragraph.matches('\n').count() + 2;
        }
    }
    findings
}

/// One row of the paper map.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    label: String,
    /// `Bound::source`, or `module` for a file's own documentation.
    item: String,
    file: String,
    line: usize,
}

/// Rows are `| label | … | item | file |`, the three of them in backticks.
fn rows(text: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for (k, line) in text.lines().enumerate() {
        let Some(cells) = line.trim().strip_prefix('|') else { continue };
        let cells: Vec<&str> = cells.trim_end_matches('|').split('|').map(str::trim).collect();
        let code = |cell: &str| backticked(cell).next().map(str::to_owned);
        if let [label, .., item, file] = cells[..]
            && let (Some(label), Some(item), Some(file)) = (code(label), code(item), code(file))
        {
            rows.push(Row { label, item, file, line: k + 1 });
        }
    }
    rows
}

/// Every label that the code cites is in the map, and every row of the map is true.
fn paper_map(tree: &Tree) -> Vec<Finding> {
    let Some(map) = tree.get(PAPER_MAP) else {
        return vec![Finding::new(PAPER_MAP, 0, "is missing")];
    };
    let mut findings = Vec::new();
    let rows = rows(map.text());
    let mapped: BTreeSet<&str> = rows.iter().map(|r| r.label.as_str()).collect();
    let mut docs_of = BTreeMap::new();
    for file in tree.files.iter().filter(|f| f.is_rust() && f.source_of().is_some()) {
        let items = documented(file.text());
        for item in &items {
            for label in backticked(&item.doc).filter(|t| is_label(t)) {
                if !mapped.contains(label) {
                    let message = format!("cites `{label}`, which {PAPER_MAP} does not list");
                    findings.push(Finding::new(&file.path, item.line, message));
                }
            }
        }
        docs_of.insert(file.path.as_str(), items);
    }
    for row in &rows {
        let mut finding = |message: String| {
            findings.push(Finding::new(PAPER_MAP, row.line, message));
        };
        let Some(items) = docs_of.get(row.file.as_str()) else {
            finding(format!("{} is no source file of a crate", row.file));
            continue;
        };
        let name = row.item.rsplit("::").next().unwrap_or_default();
        let name = if name == "module" { "" } else { name };
        let mut named = items.iter().filter(|i| i.name == name).peekable();
        if named.peek().is_none() {
            finding(format!("{} has no documented item `{}`", row.file, row.item));
        } else if !named.any(|i| backticked(&i.doc).any(|t| t == row.label)) {
            finding(format!(
                "the docs of `{}` in {} do not cite `{}`",
                row.item, row.file, row.label
            ));
        }
    }
    findings
}

/// Every label of the map is one of the paper's.
fn labels_exist(tree: &Tree, paper: &str) -> Vec<Finding> {
    let text = tree.get(PAPER_MAP).map_or("", |f| f.text());
    let missing =
        rows(text).into_iter().filter(|r| !paper.contains(&format!("\\label{{{}}}", r.label)));
    missing
        .map(|r| Finding::new(PAPER_MAP, r.line, format!("the paper has no label {}", r.label)))
        .collect()
}

/// The code map names only what exists, and names every file and folder of a crate's `src`.
fn code_map(tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.get(ARCHITECTURE) else {
        return vec![Finding::new(ARCHITECTURE, 0, "is missing")];
    };
    let (mut findings, mut named) = (Vec::new(), BTreeSet::new());
    let (mut inside, mut base) = (false, String::new());
    for (k, line) in file.text().lines().enumerate() {
        if let Some(title) = line.strip_prefix("## ") {
            inside = title.trim().eq_ignore_ascii_case("code map");
            base.clear();
        }
        if !inside {
            continue;
        }
        if line.starts_with("### ") {
            base = backticked(line)
                .next()
                .map_or(String::new(), |p| format!("{}/", p.trim_end_matches('/')));
        }
        for token in backticked(line).filter(|t| is_path(t)) {
            let within = format!("{base}{token}");
            match [within.as_str(), token].into_iter().find(|p| tree.has(p)) {
                Some(path) => drop(named.insert(path.trim_end_matches('/').to_owned())),
                None => {
                    let message = format!("names `{token}`, which does not exist");
                    findings.push(Finding::new(ARCHITECTURE, k + 1, message));
                }
            }
        }
    }
    for room in rooms(tree) {
        if !named.contains(&room) {
            findings.push(Finding::new(
                ARCHITECTURE,
                0,
                format!("the code map does not name {room}"),
            ));
        }
    }
    findings
}

/// The table of ARCHITECTURE.md that says which crate may see which is that of `layout`.
fn dependency_table(tree: &Tree) -> Vec<Finding> {
    let text = tree.get(ARCHITECTURE).map_or("", |f| f.text());
    let lines = text.lines().enumerate().skip_while(|(_, line)| *line != "| crate | may see |");
    let mut told: BTreeMap<&str, (usize, BTreeSet<&str>)> = BTreeMap::new();
    for (k, line) in lines.skip(2).take_while(|(_, line)| line.starts_with('|')) {
        let (crates, seen) = line[1..].split_once('|').unwrap_or_default();
        told.extend(backticked(crates).map(|name| (name, (k + 1, backticked(seen).collect()))));
    }
    let mut findings = Vec::new();
    for (name, may_see) in MAY_SEE {
        match told.remove(name) {
            None => {
                let message = format!("does not say which crates {name} may see");
                findings.push(Finding::new(ARCHITECTURE, 0, message));
            }
            Some((_, seen)) if seen.iter().eq(&BTreeSet::from_iter(may_see.iter().copied())) => {}
            Some((line, _)) => {
                let message = format!("{name} may see {may_see:?} (xtask/src/layout.rs)");
                findings.push(Finding::new(ARCHITECTURE, line, message));
            }
        }
    }
    findings.extend(told.into_iter().map(|(name, (line, _))| {
        Finding::new(ARCHITECTURE, line, format!("there is no crate {name} (xtask/src/layout.rs)"))
    }));
    findings
}

/// What stands directly in a crate's `src`, `lib.rs` apart.
fn rooms(tree: &Tree) -> BTreeSet<String> {
    let sources = tree.files.iter().filter(|f| f.is_rust() && f.source_of().is_some());
    sources
        .map(|f| f.path.split('/').take(4).collect::<Vec<_>>().join("/"))
        .filter(|room| !room.ends_with("/lib.rs"))
        .collect()
}

/// Returns the texts between single backticks.
fn backticked(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

fn is_path(token: &str) -> bool {
    let plain = token.chars().all(|c| c.is_alphanumeric() || "./_-".contains(c));
    plain
        && (token.contains('/')
            || [".rs", ".md", ".toml", ".py"].iter().any(|e| token.ends_with(e)))
}

/// A label of the paper: a prefix with a colon, or one of the few without.
fn is_label(token: &str) -> bool {
    const PREFIXES: [&str; 14] = [
        "eq", "app_eq", "alg", "fig", "tab", "thm", "lemma", "Lemma", "def", "defn", "coro", "sec",
        "ssec", "app_ssec",
    ];
    const PLAIN: [&str; 4] = ["GPtoConvex", "lemma1", "cor1_init_state", "div2rad"];
    let word = |s: &str| !s.is_empty() && s.chars().all(|c| c.is_alphanumeric() || c == '_');
    PLAIN.contains(&token)
        || token
            .split_once(':')
            .is_some_and(|(prefix, rest)| PREFIXES.contains(&prefix) && word(rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    const MAP: &str = "| label | meaning | item | file |\n|---|---|---|---|\n\
        | `eq:a` | the bound | `Bound::source` | `crates/planning/src/bound.rs` |\n\
        | `alg:b` | whole file | `module` | `crates/planning/src/bound.rs` |\n";
    const CODE: &str =
        "//! Does `alg:b`.\n\nimpl Bound {\n    /// S_i, `eq:a`.\n    pub fn source(&self) {}\n}\n";

    fn check_map(map: &str, code: &str) -> Vec<String> {
        let tree = tree(&[(PAPER_MAP, map), ("crates/planning/src/bound.rs", code)]);
        paper_map(&tree).into_iter().map(|f| f.message).collect()
    }

    #[test]
    fn a_true_map_has_no_findings() {
        assert_eq!(check_map(MAP, CODE), Vec::<String>::new());
    }

    #[test]
    fn a_label_missing_from_the_map_is_found() {
        let code = CODE.replace("S_i,", "S_i, `eq:new`,");
        assert!(check_map(MAP, &code)[0].contains("`eq:new`"));
    }

    #[test]
    fn a_row_whose_function_is_gone_or_silent_is_found() {
        let renamed = CODE.replace("fn source", "fn origin");
        assert!(check_map(MAP, &renamed)[0].contains("no documented item `Bound::source`"));
        let silent = CODE.replace(", `eq:a`", "");
        assert!(check_map(MAP, &silent)[0].contains("do not cite `eq:a`"));
        let moved = MAP.replace("bound.rs", "gone.rs");
        assert!(check_map(&moved, CODE)[0].contains("no source file"));
    }

    #[test]
    fn labels_are_compared_with_the_paper() {
        let tree = tree(&[(PAPER_MAP, MAP)]);
        assert_eq!(labels_exist(&tree, "\\label{eq:a} \\label{alg:b}"), []);
        assert_eq!(labels_exist(&tree, "\\label{eq:a}").len(), 1);
    }

    #[test]
    fn labels_are_told_from_other_code() {
        assert!(is_label("eq:def_E_i") && is_label("Lemma:AG_mean") && is_label("GPtoConvex"));
        assert!(!is_label("std::fs") && !is_label("eq:") && !is_label("crate") && !is_label("a:b"));
    }

    #[test]
    fn the_code_map_names_what_exists_and_all_of_it() {
        let files = |text| {
            tree(&[
                (ARCHITECTURE, text),
                ("crates/optim/src/lib.rs", ""),
                ("crates/optim/src/gp.rs", ""),
                ("crates/optim/src/facility/mod.rs", ""),
            ])
        };
        let whole = "# A\n`elsewhere/x`\n## Code map\n### `crates/optim`\n- `src/gp.rs` and `src/facility/`\n## Other\n`gone/x`\n";
        assert_eq!(code_map(&files(whole)), []);
        let partial = whole.replace(" and `src/facility/`", "");
        assert!(code_map(&files(&partial))[0].message.contains("crates/optim/src/facility"));
        let stale = whole.replace("src/gp.rs`", "src/gp.rs`, `src/old.rs`");
        assert!(code_map(&files(&stale))[0].message.contains("src/old.rs"));
    }

    #[test]
    fn a_claim_says_where_it_holds_and_where_not() {
        let findings = |text: &str| claims(&tree(&[("docs/a.md", text)])).len();
        let old = "# A\n\nIn all nine settings of the paper it is above every\nbaseline, with less energy.\n";
        assert_eq!(findings(old), 1);
        assert_eq!(claims(&tree(&[("docs/a.md", old)]))[0].line, 3);
        assert_eq!(findings("It is above every baseline."), 2);
        assert_eq!(findings(&old.replace("energy.", "energy; on natural fleets it is behind.")), 0);
        assert_eq!(findings("It is above two baselines."), 0);
    }

    #[test]
    fn the_table_of_dependencies_is_that_of_the_layout() {
        let rows: String = MAY_SEE
            .iter()
            .map(|(name, seen)| {
                format!("| `{name}` | `{}` |\n", seen.join("`, `")).replace("``", "")
            })
            .collect();
        let findings = |rows: &str| -> Vec<String> {
            let text = format!("| crate | may see |\n|---|---|\n{rows}\n| `x` | `y` |\n");
            let tree = tree(&[(ARCHITECTURE, &text)]);
            dependency_table(&tree).into_iter().map(|f| f.message).collect()
        };
        assert_eq!(findings(&rows), Vec::<String>::new());
        assert!(findings(&rows.replace("`node`, ", ""))[0].starts_with("cli may see"));
        let without = rows.replace("| `planning` | `optim` |\n", "");
        assert!(findings(&without)[0].contains("planning may see"));
        assert!(findings(&format!("{rows}| `new` | |\n"))[0].contains("no crate new"));
        assert_eq!(findings("").len(), MAY_SEE.len());
    }
}
