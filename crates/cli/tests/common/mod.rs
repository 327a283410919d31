//! Running the program as a user does.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

pub(crate) mod browser;
pub(crate) mod fleet;
pub(crate) mod hosts;
pub(crate) mod http;
pub(crate) mod machines;
pub(crate) mod served;

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;

/// The five cars as JSON, to change and plan.
pub(crate) fn cars() -> Value {
    serde_json::from_str(include_str!("../../examples/five-cars.json")).unwrap()
}

/// Ten devices that are all alike, five of them with labels: their best plan hands the model of one source on to the next, and every target
/// takes it from the last.
pub(crate) fn alike() -> Value {
    let device = |k: u32| match k {
        1..=5 => {
            serde_json::json!({"name": format!("d{k}"), "labeled": 500, "unlabeled": 0, "source_error": 0.1})
        }
        _ => serde_json::json!({"name": format!("d{k}"), "labeled": 0, "unlabeled": 500}),
    };
    let square = |value: f64| -> Vec<Vec<f64>> {
        (0..10).map(|i| (0..10).map(|j| if i == j { 0.0 } else { value }).collect()).collect()
    };
    serde_json::json!({"format": "stlf-problem/1", "preset": "balanced", "devices": (1..=10).map(device).collect::<Vec<_>>(),
        "divergence": square(0.0), "link_energy": square(1.0)})
}

/// Returns the path of an example of this crate.
pub(crate) fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name)
}

/// The program, without colours, with a deadline.
pub(crate) fn stlf() -> Command {
    let mut command = Command::cargo_bin("stlf").unwrap();
    command.env("NO_COLOR", "1").timeout(stlf_testing::DEADLINE);
    command
}

/// What one run of the program did.
pub(crate) struct Ran {
    /// The exit code of the program.
    pub(crate) code: i32,
    /// What the program wrote to standard output.
    pub(crate) out: String,
    /// Standard error, without the lines that say how far a long run is: those depend on how fast the machine is.
    pub(crate) err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        let err = String::from_utf8(output.stderr).unwrap();
        let says = err.split_inclusive('\n').filter(|line| !line.ends_with(" s so far\n"));
        Ran {
            code: output.status.code().expect("no signal"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: says.collect(),
        }
    }
}

/// Runs with these arguments and this on standard input.
pub(crate) fn run(args: &[&str], stdin: impl Into<Vec<u8>>) -> Ran {
    stlf().args(args).write_stdin(stdin).output().unwrap().into()
}

/// Takes times and search effort out of a text, which differ from machine to machine.
pub(crate) fn settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"\d+(\.\d+)? (µs|ms|s)\b", "[time]");
    settings.add_filter(r"[\d,]+ (node|iteration)s?", "[n] ${1}s");
    settings.add_filter(r#""(seconds|iterations)": [0-9.e-]+"#, "\"$1\": [n]");
    settings.add_filter(r"(/[^/\s]+)+/(?<file>[\w-]+\.json)", "[dir]/$file");
    settings
}
