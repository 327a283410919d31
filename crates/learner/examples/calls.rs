//! What a call to a learner costs: `calls "PROGRAM …"` starts it, trains a model, and prints the median time of predictions.
//!
//! A prediction of one sample is hardly any work, so that its time is what lines, files, checks and the change of processes cost.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for one table of the documentation"
)]

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use stlf_learner::{Options, Program};
use stlf_method::learner::Lesson;

const CALLS: usize = 200;

fn main() {
    let command = std::env::args().nth(1).expect("the command line of a learner");
    let folder = std::env::temp_dir().join(format!("stlf-calls-{}", std::process::id()));
    let options = Options::new(&command, folder.clone(), 1).unwrap();
    let mut go_on = |_| ControlFlow::Continue(());
    let user = Program::start(options, &mut go_on).unwrap();
    let labeled: Vec<usize> = (0..user.labels.len()).collect();
    let lesson = Lesson { rows: &labeled, start: None, seed: 1 };
    let model = user.learner.train(lesson, &mut go_on).unwrap().unwrap();
    let all: Vec<usize> = (0..user.places.len()).collect();
    for rows in [&all[..1], &all] {
        let mut call = |_| {
            let began = Instant::now();
            user.learner.predict(&model, rows, &mut go_on).unwrap().unwrap();
            began.elapsed()
        };
        let mut times: Vec<Duration> = (0..CALLS).map(&mut call).collect();
        times.sort_unstable();
        let [median, most] = [times[CALLS / 2], times[CALLS * 95 / 100]];
        println!("{} rows: median {median:.2?}, 95 % within {most:.2?}", rows.len());
    }
    drop(user);
    std::fs::remove_dir_all(folder).unwrap();
}
