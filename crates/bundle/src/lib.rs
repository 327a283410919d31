//! What a device ends with, as a folder that can be put to work.
//!
//! A [`Mixture`] is the models that a device received with their weights, or its own, and how a sample becomes an input. As a folder, a
//! *bundle*, it is `mixture.json` (`stlf-mixture/1`), a file of parameters for each model, and the plan. [`folder`] writes and reads
//! bundles, [`samples`] reads new samples as training read its own, [`predictions`] writes what comes of them, [`questions`] names those that
//! somebody should label, and [`onnx`] and [`mlflow`] hand the mixture to other programs. Where a learner of the user's
//! predicts, the folder is [`models`].

mod document;
pub mod error;
pub mod folder;
pub mod mixture;
pub mod mlflow;
pub mod models;
pub mod onnx;
pub mod predictions;
pub mod questions;
pub mod samples;

pub use error::Error;
pub use mixture::{Member, Mixture};
pub use samples::Samples;
