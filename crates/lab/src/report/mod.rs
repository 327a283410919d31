//! A run, looked at: everything that the report page shows, from the files of a run folder alone.
//!
//! [`mod@document`] says what the page is given (`stlf-report/1`), [`build`] takes it out of run folders, problems and plans,
//! [`page`] puts it into one HTML file, and [`edits`] answers "what if" for the live page.

pub mod build;
pub mod document;
pub mod edits;
mod explained;
pub mod page;
mod planning;
pub mod progress;

pub use build::{document, of_plan, of_problem, of_run};
pub use document::Document;
pub use page::html;
