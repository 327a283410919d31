//! How far a run is, told to whoever watches, and whether to go on.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::Error;

/// The stages of a run, in the order in which they begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Samples are read or drawn, and dealt to devices.
    Deal,
    /// Devices with labels train their own models.
    Train,
    /// The divergences of all pairs are measured.
    Measure,
    /// Roles and links are chosen.
    Plan,
    /// Sources' models are sent to their targets and combined there.
    Transfer,
    /// Sources hand their models on, where requested, and continue training them.
    Relay,
    /// FADA, where it is asked for, adapts networks to weigh sources.
    Adapt,
    /// The outcome is compared with other ways.
    Compare,
}

impl Stage {
    /// The stages that every run has.
    pub const ALL: [Stage; 6] =
        [Stage::Deal, Stage::Train, Stage::Measure, Stage::Plan, Stage::Transfer, Stage::Compare];
}

/// What an observer hears: how far a stage of a seed is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The seed; none while data is read, which all seeds share.
    pub seed: Option<u64>,
    /// The stage of the run.
    pub stage: Stage,
    /// Units of work that are done.
    pub done: usize,
    /// The total number of units of work.
    pub total: usize,
}

/// Hears of progress from any thread, and may stop the run.
pub type Observer<'a> = dyn Fn(Event) -> ControlFlow<()> + Sync + 'a;

/// One seed's line to the observer. Once it said stop, everything stops.
pub struct Watch<'a> {
    observer: &'a Observer<'a>,
    stopped: &'a AtomicBool,
    seed: Option<u64>,
}

impl<'a> Watch<'a> {
    /// Returns a watch for what all seeds share.
    pub fn new(observer: &'a Observer<'a>, stopped: &'a AtomicBool) -> Watch<'a> {
        Watch { observer, stopped, seed: None }
    }

    /// Returns a watch for one seed.
    pub fn of(&self, seed: u64) -> Watch<'a> {
        Watch { seed: Some(seed), ..*self }
    }

    /// Tells how far a stage is.
    pub fn see(&self, stage: Stage, done: usize, total: usize) -> Result<(), Error> {
        if (self.observer)(Event { seed: self.seed, stage, done, total }).is_break() {
            self.stopped.store(true, Ordering::Relaxed);
        }
        self.check()
    }

    /// As [`Watch::see`], for those that want to know only whether to go on.
    pub fn goes_on(&self, stage: Stage, done: usize, total: usize) -> ControlFlow<()> {
        flow(&self.see(stage, done, total))
    }

    /// As [`Watch::check`], for those that want to know only whether to go on.
    pub fn flow(&self) -> ControlFlow<()> {
        flow(&self.check())
    }

    /// Returns a function that does as [`Watch::flow`] until time is up, and then ends the work.
    pub fn within(&self, limit: Duration) -> impl Fn() -> ControlFlow<()> {
        let started = Instant::now();
        move || match started.elapsed() < limit {
            true => self.flow(),
            false => ControlFlow::Break(()),
        }
    }

    /// Returns an error once the observer has stopped the run.
    pub fn check(&self) -> Result<(), Error> {
        match self.stopped.load(Ordering::Relaxed) {
            true => Err(Error::Stopped),
            false => Ok(()),
        }
    }

    /// Counts the units of a stage, from any thread. The observer hears at once that it begins, but can stop it only with a unit.
    pub fn counter(&self, stage: Stage, total: usize) -> Counter<'_> {
        if total > 0 {
            let _ = (self.observer)(Event { seed: self.seed, stage, done: 0, total });
        }
        Counter { watch: self, stage, total, done: AtomicUsize::new(0) }
    }
}

fn flow(result: &Result<(), Error>) -> ControlFlow<()> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    }
}

/// Counts the units of a stage.
pub struct Counter<'a> {
    watch: &'a Watch<'a>,
    stage: Stage,
    total: usize,
    done: AtomicUsize,
}

impl Counter<'_> {
    /// As [`Counter::one`], for those that want to know only whether to go on.
    pub fn flow(&self) -> ControlFlow<()> {
        flow(&self.one())
    }

    /// Asks the observer whether to go on, though nothing more is done.
    pub fn asks(&self) -> ControlFlow<()> {
        let done = self.done.load(Ordering::Relaxed);
        self.watch.goes_on(self.stage, done, self.total)
    }

    /// Counts one more unit as done, and tells the observer.
    pub fn one(&self) -> Result<(), Error> {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        self.watch.see(self.stage, done, self.total)
    }
}
