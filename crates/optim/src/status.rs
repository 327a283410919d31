//! How a search ended: a type, never a string and never silently "optimal".

use std::ops::ControlFlow;

/// How a search ended: with a proof, or early with a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Proven: the lower bound meets the objective (relative 1e-9).
    Optimal,
    /// A solution with an honest gap; the search ended early.
    Feasible(Stop),
}

/// What ended a search before its proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stop {
    /// The gap asked for was reached.
    GapReached,
    /// The limit on the number of nodes was reached.
    NodeLimit,
    /// The observer said stop (a time limit, Ctrl-C).
    Observer,
    /// Nobody: the search came to its end without a proof. The method makes none, or a part was
    /// left open that more branching cannot close.
    NoProof,
}

/// What a search knows while it runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Cost of the best solution so far; infinite before the first.
    pub objective: f64,
    /// A value that no solution's cost can be below.
    pub lower_bound: f64,
    /// The number of branch-and-bound nodes explored so far.
    pub nodes: u64,
}

/// Is called with the progress now and then, and says whether to continue.
pub type Observer<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + 'a;

/// The number of links that may be looked at between two questions whether to continue: some milliseconds.
pub(crate) const PULSE: usize = 1 << 20;

/// Who may end a search, for work inside of one of its steps. Once they said stop they are not
/// asked again, so that everything after it can be cut short alike.
pub(crate) struct Leash<'a> {
    ask: &'a mut dyn FnMut() -> bool,
    stopped: bool,
}

impl<'a> Leash<'a> {
    /// Returns a leash that asks `ask` whether to continue.
    pub(crate) fn new(ask: &'a mut dyn FnMut() -> bool) -> Self {
        Leash { ask, stopped: false }
    }

    /// Asks whether to continue, unless the answer has been no before.
    pub(crate) fn go_on(&mut self) -> bool {
        self.stopped = self.stopped || !(self.ask)();
        !self.stopped
    }

    /// Returns whether they said stop when last asked.
    pub(crate) fn stopped(&self) -> bool {
        self.stopped
    }
}

/// When to stop before a proof.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The relative gap at which to stop; 0 asks for a proof.
    pub gap: f64,
    /// The largest number of branch-and-bound nodes to explore.
    pub nodes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { gap: 0.0, nodes: u64::MAX }
    }
}

/// Two objectives closer than this (relative) count as equal: sums of N rounded terms differ so.
pub const TOLERANCE: f64 = 1e-9;

/// (objective − lower bound) / |objective|, at least 0.
pub fn relative_gap(objective: f64, lower_bound: f64) -> f64 {
    let difference = objective - lower_bound;
    if difference <= 0.0 { 0.0 } else { difference / objective.abs().max(f64::MIN_POSITIVE) }
}
