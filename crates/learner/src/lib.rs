//! A program of the user's as the learner of a device: it owns the data and the model, and speaks `stlf-learner/1` with stlf.
//!
//! The two write lines of JSON to each other ([`message`]). Arrays are safetensors files in a folder that belongs to the two alone. Standard
//! error of the program is its log. [`Program`] starts the program, ends it with all processes that it started, and starts it again;
//! nothing that it says is believed before it is checked. [`conformance`] tries whether a program keeps to all this.

mod arrays;
mod command;
pub mod conformance;
mod crew;
mod dialogue;
pub mod error;
mod group;
pub mod message;
mod process;
mod program;
mod session;

pub use arrays::checked_probabilities;
pub use command::{Limits, Options, split};
pub use crew::Crew;
pub use error::Error;
pub use program::Program;
