//! `cargo xtask dist`: what a release carries. The program in an archive, with completions and manual pages; a wheel that brings the
//! program as well; a list of everything that is built in; checksums of all.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sbom;
use crate::steps::{Done, Failure, command, succeeds};

/// The profile of `Cargo.toml` that the program and the wheel are built with.
pub(crate) const PROFILE: &str = "shipped";

/// Completion scripts: the shell, and the file that it looks for.
const SHELLS: [(&str, &str); 3] = [("bash", "stlf.bash"), ("zsh", "_stlf"), ("fish", "stlf.fish")];

/// What goes into the archive as it is.
const TEXTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// What a release is made of.
pub(crate) struct Dist<'a> {
    /// The root of the repository.
    pub(crate) root: &'a Path,
    /// Where the files of the release go; what is there is replaced.
    pub(crate) to: &'a Path,
    /// The program, as it was built.
    pub(crate) program: &'a Path,
    /// The wheel of the Python package, without the program.
    pub(crate) wheel: &'a Path,
    /// A Python in whose environment pip may install.
    pub(crate) python: &'a str,
}

impl Dist<'_> {
    /// Makes all files of the release, with their checksums.
    pub(crate) fn make(&self) -> Result<Done, Failure> {
        let (version, triple) = (said(self.program, &["--version"])?, host()?);
        let version = version.split_whitespace().last().unwrap_or("0").to_owned();
        emptied(self.to)?;
        let name = format!("stlf-{version}-{triple}");
        let folder = self.to.join(&name);
        for sub in ["completions", "man"] {
            made(&folder.join(sub))?;
        }
        self.program_at(&folder.join("stlf"))?;
        for text in TEXTS {
            copied(&self.root.join(text), &folder.join(text))?;
        }
        for (shell, file) in SHELLS {
            let script = said(self.program, &["completions", shell])?;
            written(&folder.join("completions").join(file), &script)?;
        }
        let man = folder.join("man");
        command(&shown(self.program), &["man", &shown(&man)], &[])?;
        // The same files give the same archive.
        let archive = shown(&self.to.join(format!("{name}.tar.gz")));
        let same = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
        let pack =
            ["--create", "--gzip", "--file", &archive, "--directory", &shown(self.to), &name];
        command("tar", &[&same[..], &pack[..]].concat(), &[])?;
        removed(&folder)?;
        self.wheel_with_program()?;
        let listed = sbom::of(self.root, &version)?;
        written(&self.to.join(format!("stlf-{version}.cdx.json")), &listed)?;
        let sums = "cd \"$1\" && sha256sum -- stlf-* > SHA256SUMS";
        command("sh", &["-c", sums, "sh", &shown(self.to)], &[])
    }

    /// Puts the program at a place, without its symbols where there is a `strip`.
    fn program_at(&self, place: &Path) -> Result<(), Failure> {
        copied(self.program, place)?;
        succeeds("strip", &[&shown(place)]);
        Ok(())
    }

    /// The wheel again, in which pip finds the program.
    fn wheel_with_program(&self) -> Result<(), Failure> {
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "wheel"];
        command(self.python, &pip, &[])?;
        let unpacked = self.to.join("unpacked");
        let unpack = ["-m", "wheel", "unpack", "--dest", &shown(&unpacked), &shown(self.wheel)];
        command(self.python, &unpack, &[])?;
        let inside = only_entry(&unpacked)?;
        let name = inside.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let scripts = inside.join(format!("{name}.data")).join("scripts");
        made(&scripts)?;
        self.program_at(&scripts.join("stlf"))?;
        let pack = ["-m", "wheel", "pack", "--dest-dir", &shown(self.to), &shown(&inside)];
        command(self.python, &pack, &[])?;
        removed(&unpacked)
    }

    /// Uses the release as somebody does who has nothing else: a new environment, an unpacked archive, checksums.
    pub(crate) fn try_it(&self) -> Result<Done, Failure> {
        command(
            "sh",
            &["-c", "cd \"$1\" && sha256sum --check --quiet SHA256SUMS", "sh", &shown(self.to)],
            &[],
        )?;
        let clean = self.to.with_extension("tried");
        emptied(&clean)?;
        let unpack = "cd \"$1\" && tar xzf \"$2\"/stlf-*.tar.gz && cd stlf-* && ./stlf --version && \
                      ./stlf demo --planner > demo.txt && test -s man/stlf.1 && test -s man/stlf-run.1 && \
                      test -s completions/_stlf && test -s LICENSE-MIT";
        command("sh", &["-c", unpack, "sh", &shown(&clean), &shown(self.to)], &[])?;
        let environment = clean.join("python");
        command(self.python, &["-m", "venv", &shown(&environment)], &[])?;
        let bin = environment.join("bin");
        let install = "\"$1\"/pip install --quiet --disable-pip-version-check \"$2\"/stlf-*.whl";
        command("sh", &["-c", install, "sh", &shown(&bin), &shown(self.to)], &[])?;
        let used = "cd / && \"$1\"/stlf demo --planner > /dev/null && \
                    \"$1\"/python -c 'import stlf, subprocess, sys; sys.exit(stlf.__version__ not in \
                    subprocess.run([sys.argv[1], \"--version\"], capture_output=True, text=True).stdout)' \"$1\"/stlf";
        command("sh", &["-c", used, "sh", &shown(&bin)], &[])?;
        removed(&clean)?;
        Ok(Done::Passed)
    }
}

/// The machine that programs are built for.
fn host() -> Result<String, Failure> {
    let about = said(Path::new("rustc"), &["-vV"])?;
    let line = about.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.unwrap_or("unknown").to_owned())
}

/// Returns what a program prints to standard output.
pub(crate) fn said(program: &Path, arguments: &[&str]) -> Result<String, Failure> {
    let again = format!("{} {}", program.display(), arguments.join(" "));
    let failure = |message: String| Failure { message, again: again.clone() };
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|e| failure(format!("could not be started: {e}")))?;
    if !output.status.success() {
        return Err(failure(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    String::from_utf8(output.stdout).map_err(|e| failure(e.to_string()))
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn failed(path: &Path, e: &std::io::Error) -> Failure {
    Failure { message: format!("{}: {e}", path.display()), again: "cargo xtask dist".into() }
}

fn made(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|e| failed(folder, &e))
}

fn removed(folder: &Path) -> Result<(), Failure> {
    match std::fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(failed(folder, &e)),
        _ => Ok(()),
    }
}

fn emptied(folder: &Path) -> Result<(), Failure> {
    removed(folder)?;
    made(folder)
}

fn copied(from: &Path, to: &Path) -> Result<(), Failure> {
    std::fs::copy(from, to).map(drop).map_err(|e| failed(from, &e))
}

fn written(file: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(file, text).map_err(|e| failed(file, &e))
}

/// The one thing in a folder.
fn only_entry(folder: &Path) -> Result<PathBuf, Failure> {
    let mut entries = std::fs::read_dir(folder).map_err(|e| failed(folder, &e))?;
    let first = entries.next().transpose().map_err(|e| failed(folder, &e))?;
    let missing = || std::io::Error::from(std::io::ErrorKind::NotFound);
    first.map(|entry| entry.path()).ok_or_else(|| failed(folder, &missing()))
}
