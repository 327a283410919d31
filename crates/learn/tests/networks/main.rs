//! Networks at work: their gradients, their training, and digits.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests and their helpers")]

mod definition;
mod digits;
mod gradients;
mod training;
