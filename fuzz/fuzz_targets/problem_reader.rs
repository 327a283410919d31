//! Whatever the bytes, reading a problem ends in a problem or an error that says something.
//!
//! `cargo fuzz run problem_reader crates/cli/examples` from the repository's root starts from the
//! examples.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stlf_formats::{LinkTable, PlanFile, ProblemFile};

fuzz_target!(|bytes: &[u8]| {
    match ProblemFile::read(bytes).and_then(|file| file.into_problem(None)) {
        Ok(problem) => {
            let file = ProblemFile::from_problem(&problem);
            let again = file.clone().into_problem(None).expect("what was accepted once is good");
            assert_eq!(ProblemFile::from_problem(&again), file);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Ok(plan) = PlanFile::read(bytes) {
        let _ = plan.restore();
    }
    let _ = LinkTable::read_csv(bytes, 1e9);
});
