//! A file that may be a plan or a problem: a plan repeats its problem, so it can be given wherever a problem is read.

use std::io;

use serde::Deserialize;
use stlf_planning::Error as ValueError;

use crate::error::Error;

use crate::{PlanFile, ProblemFile};

/// A plan, or a problem yet to be planned.
#[derive(Debug, Clone, PartialEq)]
pub enum PlanOrProblem {
    /// A plan, in the format `stlf-plan/2` or `stlf-plan/1`.
    Plan(Box<PlanFile>),
    /// A problem, `stlf-problem/1`, or an unknown format, about which the reader of problems gives the best message.
    Problem(Box<ProblemFile>),
}

/// What is read first of a file.
#[derive(Deserialize)]
struct Head {
    format: String,
}

fn is_plan(head: serde_json::Result<Head>) -> bool {
    head.is_ok_and(|head| head.format.starts_with("stlf-plan/"))
}

impl PlanOrProblem {
    /// Reads a plan or a problem, according to the format that the file names.
    ///
    /// # Errors
    /// Says what is wrong, where, and what to do about it.
    pub fn read(bytes: &[u8]) -> Result<PlanOrProblem, Error> {
        match is_plan(serde_json::from_slice(bytes)) {
            true => Ok(PlanOrProblem::Plan(Box::new(PlanFile::read(bytes)?))),
            false => Ok(PlanOrProblem::Problem(Box::new(ProblemFile::read(bytes)?))),
        }
    }

    /// Reads a file whose problem may be too large to hold as text; `open` starts from the beginning.
    ///
    /// # Errors
    /// As [`PlanOrProblem::read`].
    pub fn read_from<R: io::Read>(
        mut open: impl FnMut() -> io::Result<R>,
    ) -> Result<PlanOrProblem, Error> {
        let failed = |e: io::Error| ValueError::other("file", format!("cannot be read: {e}"));
        let head = io::BufReader::new(open().map_err(failed)?);
        if is_plan(serde_json::from_reader(head)) {
            let mut bytes = Vec::new();
            io::Read::read_to_end(&mut open().map_err(failed)?, &mut bytes).map_err(failed)?;
            return PlanOrProblem::read(&bytes);
        }
        Ok(PlanOrProblem::Problem(Box::new(ProblemFile::read_from(open)?)))
    }

    /// Returns the problem, or the one that a plan repeats.
    ///
    /// # Errors
    /// A plan of a large fleet does not repeat its problem.
    pub fn into_problem(self) -> Result<ProblemFile, Error> {
        match self {
            PlanOrProblem::Problem(file) => Ok(*file),
            PlanOrProblem::Plan(file) => Ok(file.problem.ok_or_else(|| {
                ValueError::missing("problem", "this plan does not contain its problem")
                    .with_hint("name the file of the problem that was planned")
            })?),
        }
    }
}
