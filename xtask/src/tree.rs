//! The project's own files, as git sees them: tracked, or new and not ignored.

use std::fmt;
use std::path::Path;
use std::process::Command;

/// Text is read of files up to this size; larger ones are a finding of their own.
pub(crate) const LARGEST_FILE: u64 = 1_000_000;

/// One file; `path` is relative to the root, with `/` between its parts.
#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    /// Absent where the file is not UTF-8 or too large.
    pub(crate) text: Option<String>,
}

impl File {
    pub(crate) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The folder name of a crate's source file: `optim` for `crates/optim/src/gp.rs`.
    pub(crate) fn source_of(&self) -> Option<&str> {
        let (crate_name, rest) = self.path.strip_prefix("crates/")?.split_once('/')?;
        let test = rest.ends_with("/tests.rs") || rest.contains("/tests/");
        (rest.starts_with("src/") && !test).then_some(crate_name)
    }
}

/// All files of the repository that git does not ignore.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
}

impl Tree {
    /// Reads the files of the repository at `root`.
    pub(crate) fn read(root: &Path) -> Result<Tree, String> {
        let listed = Command::new("git")
            .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
            .current_dir(root)
            .output()
            .map_err(|e| format!("git could not be started: {e}"))?;
        if !listed.status.success() {
            return Err(format!(
                "git ls-files failed: {}",
                String::from_utf8_lossy(&listed.stderr)
            ));
        }
        let names = String::from_utf8_lossy(&listed.stdout).into_owned();
        let mut files = Vec::new();
        for path in names.split('\0').filter(|p| !p.is_empty()) {
            let full = root.join(path);
            // A tracked file that was deleted but not yet committed is simply not there.
            let Ok(meta) = full.metadata() else { continue };
            let small = meta.is_file() && meta.len() <= LARGEST_FILE;
            files.push(File {
                path: path.to_owned(),
                bytes: meta.len(),
                text: if small { std::fs::read_to_string(&full).ok() } else { None },
            });
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files.dedup_by(|a, b| a.path == b.path);
        Ok(Tree { files })
    }

    pub(crate) fn get(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|f| f.path == path)
    }

    /// Whether a file, or a folder with a file in it, has this path.
    pub(crate) fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        self.files.iter().any(|f| {
            f.path.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) path: String,
    /// Counted from 1; 0 where it is about the whole file.
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl Finding {
    pub(crate) fn new(path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// A tree made of (path, text) pairs.
#[cfg(test)]
pub(crate) fn tree(files: &[(&str, &str)]) -> Tree {
    let files = files.iter().map(|(path, text)| File {
        path: (*path).to_owned(),
        bytes: text.len() as u64,
        text: Some((*text).to_owned()),
    });
    Tree { files: files.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_there_when_a_file_in_it_is() {
        let tree = tree(&[("crates/optim/src/gp.rs", "")]);
        assert!(tree.has("crates/optim/src") && tree.has("crates/optim/"));
        assert!(tree.has("crates/optim/src/gp.rs"));
        assert!(!tree.has("crates/opt") && !tree.has("crates/optim/src/gp"));
    }

    #[test]
    fn a_source_file_knows_its_crate() {
        let of = |path| tree(&[(path, "")]).files[0].source_of().map(str::to_owned);
        assert_eq!(of("crates/optim/src/a/b.rs").as_deref(), Some("optim"));
        assert_eq!(of("crates/optim/tests/c.rs"), None);
        assert_eq!(of("crates/optim/src/a/tests.rs"), None);
    }
}
