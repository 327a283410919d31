//! Programs as learners: one that keeps to everything, and one for each thing that can be wrong.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests and their helpers")]

mod faults;
mod learning;
mod lines;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use stlf_learner::{Error, Limits, Options, Program};
use stlf_method::learner::UserLearner;

const GOOD: &str = env!("CARGO_BIN_EXE_stlf-nearest-mean");
const BAD: &str = env!("CARGO_BIN_EXE_stlf-bad-learner");

/// A program that nobody stops while it starts.
fn started(options: Options) -> Result<UserLearner, Error> {
    Program::start(options, &mut |_| ControlFlow::Continue(()))
}

/// A folder with a table of two classes: twenty samples, of which every fourth has no label.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        let row = |k: usize| {
            let class = if k.is_multiple_of(4) { "" } else { ["calm", "storm"][k % 2] };
            format!("{},{},{class}\n", k % 2 * 4, k % 3)
        };
        let table = "x,y,class\n".to_owned() + &(0..20).map(row).collect::<String>();
        std::fs::write(place.path("table.csv"), table).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn options(&self, command: &str) -> Options {
        let table = self.path("table.csv").display().to_string();
        let command = format!("{command} '{table}' calm,storm");
        Options::new(&command, self.path("between"), 7).unwrap()
    }

    /// A learner that keeps to everything.
    fn good(&self) -> Options {
        self.options(GOOD)
    }

    /// A learner with a fault, with little patience.
    fn bad(&self, fault: &str) -> Options {
        let limits = Limits {
            silence: Duration::from_millis(700),
            grace: Duration::from_millis(700),
            pauses: [10, 20].map(Duration::from_millis).to_vec(),
            ..Limits::default()
        };
        Options { limits, ..self.options(&format!("{BAD} {fault}")) }
    }
}
