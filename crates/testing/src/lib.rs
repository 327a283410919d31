//! How tests skip and how they wait. Only tests depend on this crate.

use std::fmt::Display;
use std::io::Write;
use std::panic::Location;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Where it is set, skips are failures: `nothing` may be skipped, or only what needs `data`.
pub const MAY_SKIP: &str = "STLF_MAY_SKIP";

/// Names a file to which every skip adds a line, because what a passing test prints is not shown.
pub const SKIPPED: &str = "STLF_SKIPPED";

/// What a test lacks that is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// A program, or a right that the user does not have.
    Machine,
    /// Reference cases or data sets, which are no part of the repository.
    Data,
}

/// Whether a test that lacks this may be skipped, where [`MAY_SKIP`] has this value.
pub fn may_skip(lack: Lack, setting: Option<&str>) -> bool {
    match setting {
        None => true,
        Some(allowed) => lack == Lack::Data && allowed == "data",
    }
}

/// Says that this test is skipped because the machine lacks something.
///
/// # Panics
///
/// Where that may not be.
#[track_caller]
pub fn skip(why: impl Display) {
    skip_without(Lack::Machine, &why);
}

/// The folder that `STLF_DATA` names, with MNIST, USPS and MNIST-M; without it the test is skipped.
#[track_caller]
pub fn data() -> Option<PathBuf> {
    folder("STLF_DATA")
}

/// The folder `golden` of the one that `STLF_SHARED` names, with the reference cases; without it the test is skipped.
#[track_caller]
pub fn reference_cases() -> Option<PathBuf> {
    Some(folder("STLF_SHARED")?.join("golden"))
}

#[track_caller]
fn folder(variable: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    if named.is_none() {
        skip_without(Lack::Data, &format!("{variable} names no folder"));
    }
    named
}

#[track_caller]
#[allow(clippy::print_stderr, reason = "who runs one test sees it")]
fn skip_without(lack: Lack, why: &dyn Display) {
    let place = Location::caller();
    let line = format!("skipped at {}:{}: {why}", place.file(), place.line());
    let setting = std::env::var(MAY_SKIP).ok();
    assert!(may_skip(lack, setting.as_deref()), "{line}, but {MAY_SKIP} forbids it");
    eprintln!("{line}");
    if let Some(file) = std::env::var_os(SKIPPED) {
        let told = std::fs::File::options().append(true).create(true).open(file);
        told.and_then(|mut file| writeln!(file, "{line}")).expect("skips can be told");
    }
}

/// How long a wait may be where nothing else is said. A machine that others use may be a hundred times slower for minutes.
pub const DEADLINE: Duration = Duration::from_secs(600);

/// Asks again and again until there is an answer.
///
/// # Panics
///
/// With what `in_vain` says, where there is none within the time.
#[track_caller]
pub fn wait_for<T>(
    within: Duration,
    mut ask: impl FnMut() -> Option<T>,
    in_vain: impl FnOnce() -> String,
) -> T {
    let started = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(started.elapsed() < within, "waited {within:?} in vain: {}", in_vain());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_are_allowed_unless_somebody_forbids_them() {
        for lack in [Lack::Machine, Lack::Data] {
            assert!(may_skip(lack, None));
            assert!(!may_skip(lack, Some("nothing")));
        }
        assert!(may_skip(Lack::Data, Some("data")));
        assert!(!may_skip(Lack::Machine, Some("data")));
    }

    #[test]
    fn a_wait_ends_with_an_answer_or_at_its_deadline() {
        let mut asked = 0;
        let third = || {
            asked += 1;
            (asked == 3).then_some(asked)
        };
        assert_eq!(wait_for(DEADLINE, third, String::new), 3);
        let vain = || wait_for(Duration::ZERO, || None::<()>, || "no ship".into());
        let told = std::panic::catch_unwind(vain).unwrap_err();
        let told = told.downcast_ref::<String>().unwrap();
        assert!(told.ends_with("in vain: no ship"), "{told}");
    }
}
