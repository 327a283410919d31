//! Steps of a check: announced, timed, stopped at the first that fails.

use std::process::Command;
use std::time::{Duration, Instant};

use stlf_testing::{Lack, MAY_SKIP, may_skip};

/// How a step ended when it did not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Done {
    Passed,
    /// Passed, but for some parts that were not checked.
    Partly(String),
    /// Nothing was checked, for this reason.
    Skipped(String),
}

/// What a failed step says, and the command that repeats it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) again: String,
}

/// What has been done so far.
#[derive(Debug)]
pub(crate) struct Steps {
    started: Instant,
    may_skip: bool,
    done: Vec<(String, Duration, Done)>,
}

impl Steps {
    pub(crate) fn new() -> Steps {
        Steps::with(std::env::var(MAY_SKIP).ok().as_deref())
    }

    /// The same where `MAY_SKIP` has this value.
    fn with(setting: Option<&str>) -> Steps {
        let may_skip = may_skip(Lack::Machine, setting);
        Steps { started: Instant::now(), may_skip, done: Vec::new() }
    }

    /// Announces and runs one step.
    pub(crate) fn step(
        &mut self,
        name: &str,
        run: impl FnOnce() -> Result<Done, Failure>,
    ) -> Result<(), Failure> {
        println!("── {name}");
        let start = Instant::now();
        let done = run()?;
        if let Done::Skipped(why) = &done
            && !self.may_skip
        {
            let message = format!("{name} would be skipped, but {MAY_SKIP} forbids it: {why}");
            return Err(Failure {
                message,
                again: format!("env --unset={MAY_SKIP} cargo xtask check"),
            });
        }
        let time = start.elapsed();
        println!("   {}, {}", end(&done), seconds(time));
        self.done.push((name.to_owned(), time, done));
        Ok(())
    }

    /// One line per step, and the whole time.
    pub(crate) fn summary(&self) -> String {
        let width = self.done.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for (name, time, done) in &self.done {
            text += &format!("{name:width$}  {:>8}  {}\n", seconds(*time), end(done));
        }
        text + &format!("{:width$}  {:>8}\n", "all", seconds(self.started.elapsed()))
    }
}

fn end(done: &Done) -> String {
    match done {
        Done::Passed => "ok".to_owned(),
        Done::Partly(but) => format!("ok, but {but}"),
        Done::Skipped(why) => format!("skipped: {why}"),
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Runs a command with the user's terminal. Its failure names the command to repeat.
pub(crate) fn command(
    program: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Result<Done, Failure> {
    let mut again: Vec<String> =
        environment.iter().map(|(k, v)| format!("{k}={}", quoted(v))).collect();
    again.push(program.to_owned());
    again.extend(arguments.iter().map(|a| quoted(a)));
    let again = again.join(" ");
    println!("   {again}");
    let status = started(program).args(arguments).envs(environment.iter().copied()).status();
    match status {
        Ok(status) if status.success() => Ok(Done::Passed),
        Ok(status) => Err(Failure { message: format!("ended with {status}"), again }),
        Err(e) => Err(Failure { message: format!("could not be started: {e}"), again }),
    }
}

/// Whether a command succeeds; what it says is not shown.
pub(crate) fn succeeds(program: &str, arguments: &[&str]) -> bool {
    started(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

/// A program without what cargo told this one about itself: build scripts that look at it would run again, and all that depends on
/// them would be built again, whenever cargo is started by hand and by us in turn.
fn started(program: &str) -> Command {
    let mut command = Command::new(if program == "cargo" { cargo() } else { program.into() });
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_about_this_package) {
            command.env_remove(name);
        }
    }
    command
}

fn is_about_this_package(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| variable.starts_with(prefix))
}

/// The cargo that runs this program, so that toolchain overrides hold.
pub(crate) fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=./:,+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_stops_and_says_how_to_repeat_it() {
        let failure = command("sh", &["-c", "exit 3"], &[("A", "x y")]).unwrap_err();
        assert_eq!(failure.again, "A='x y' sh -c 'exit 3'");
        assert!(failure.message.contains('3'));
        assert!(command("no-such-program", &[], &[]).is_err());
        assert_eq!(command("sh", &["-c", "test \"$A\" = 1"], &[("A", "1")]), Ok(Done::Passed));
    }

    #[test]
    fn a_command_is_not_told_which_package_started_it() {
        assert!(
            is_about_this_package("CARGO_PKG_NAME") && is_about_this_package("CARGO_MANIFEST_DIR")
        );
        assert!(
            !is_about_this_package("CARGO_TARGET_DIR")
                && !is_about_this_package("CARGO_INCREMENTAL")
        );
        let asked = "test -z \"$CARGO_MANIFEST_DIR$CARGO_PKG_NAME\"";
        assert_eq!(command("sh", &["-c", asked], &[]), Ok(Done::Passed));
    }

    #[test]
    fn a_skipped_step_fails_where_skips_are_forbidden() {
        let mut steps = Steps::with(Some("nothing"));
        let failure = steps.step("fuzz", || Ok(Done::Skipped("no fuzz".into()))).unwrap_err();
        assert!(failure.message.contains("no fuzz") && failure.message.contains(MAY_SKIP));
        assert_eq!(steps.step("half", || Ok(Done::Passed)), Ok(()));
    }

    #[test]
    fn the_summary_lists_every_step() {
        let mut steps = Steps::with(None);
        steps.step("one", || Ok(Done::Passed)).unwrap();
        steps.step("second", || Ok(Done::Skipped("no fuzz".into()))).unwrap();
        steps.step("half", || Ok(Done::Partly("skipped twice".into()))).unwrap();
        let failure = Failure { message: "no".into(), again: "x".into() };
        assert_eq!(steps.step("third", || Err(failure.clone())), Err(failure));
        let summary = steps.summary();
        let lines: Vec<&str> = summary.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[2].ends_with("ok, but skipped twice"));
        assert!(lines[0].starts_with("one     ") && lines[1].ends_with("skipped: no fuzz"));
    }
}
