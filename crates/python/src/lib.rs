//! `stlf._internal`, the compiled part of the Python package, which only converts. The functions that people call are in `python/stlf/`.

mod digits;
mod divergence;
mod errors;
mod learner;
mod ledger;
mod mixture;
mod node;
mod numbers;
mod own_classifier;
mod plan;
mod privacy;
mod problem;
mod run;
mod watch;

use pyo3::prelude::*;

#[pymodule]
mod _internal {
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use crate::digits::draw_strokes;
    #[pymodule_export]
    use crate::divergence::{Sketch, divergence_of_sketches, measure, own_bandwidth, own_sketch};
    #[pymodule_export]
    use crate::learner::{find_bundle, predict_with};
    #[pymodule_export]
    use crate::ledger::privacy_recorded;
    #[pymodule_export]
    use crate::mixture::Mixture;
    #[pymodule_export]
    use crate::node::Node;
    #[pymodule_export]
    use crate::numbers::{energy, percent, short};
    #[pymodule_export]
    use crate::own_classifier::measure_own;
    #[pymodule_export]
    use crate::plan::{Plan, diff, plan};
    #[pymodule_export]
    use crate::privacy::{noise_multiplier, privacy_spent};
    #[pymodule_export]
    use crate::problem::{Problem, draw_energy, source_error};
    #[pymodule_export]
    use crate::run::{configure, default_folder, run, summarise, warnings};
}
