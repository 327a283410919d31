//! `stlf._internal`, the compiled part of the Python package: conversion, nothing else. What people call is in
//! `python/stlf/`.

use pyo3::prelude::*;

#[pymodule]
mod _internal {
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
