//! Data sets as files, small ones that a test writes and the real ones.
#![allow(clippy::unwrap_used, reason = "tests and their helpers")]

mod domains;
mod real_files;
