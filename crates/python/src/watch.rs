//! Long work without the interpreter's lock: it runs in a thread of its own, while the caller's thread checks for Ctrl-C and passes on the
//! progress.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// The interval at which Ctrl-C is checked.
const TICK: Duration = Duration::from_millis(50);

/// How much of a stage is done, for the one who watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) stage: &'static str,
    pub(crate) seed: Option<u64>,
    pub(crate) done: usize,
    pub(crate) total: usize,
}

/// What the work reports to, and asks whether to continue, from any thread.
pub(crate) struct Watch<'a> {
    stopped: &'a AtomicBool,
    events: Option<Sender<Event>>,
    started: Instant,
}

impl Watch<'_> {
    /// Reports the progress of a stage, and returns whether to continue.
    pub(crate) fn see(&self, event: Event) -> ControlFlow<()> {
        if let Some(events) = &self.events {
            // Nobody listens only once all is over.
            let _ = events.send(event);
        }
        self.flow()
    }

    /// Returns whether to continue.
    pub(crate) fn flow(&self) -> ControlFlow<()> {
        match self.stopped.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// Returns whether a search is to continue, which it may until its time limit. A search that is over at once reports nothing.
    pub(crate) fn search(
        &self,
        progress: &stlf_planning::planner::Progress,
        limit: Duration,
    ) -> ControlFlow<()> {
        let elapsed = self.started.elapsed();
        if elapsed >= limit {
            return ControlFlow::Break(());
        }
        if elapsed < TICK {
            return self.flow();
        }
        let gap = (progress.objective - progress.lower_bound) / progress.objective.abs();
        let closed = if gap.is_finite() { 1.0 - gap.clamp(0.0, 1.0) } else { 0.0 };
        self.see(Event { stage: "search", seed: None, done: (100.0 * closed) as usize, total: 100 })
    }

    pub(crate) fn elapsed(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}

/// Does the work in a separate thread. Ctrl-C, or an exception of `progress`, stops the work and is raised here.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Watch<'_>) -> T + Send,
) -> PyResult<T> {
    let stopped = AtomicBool::new(false);
    let mut failure = None;
    let result = std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        // The thread holds this sender to its end, whether or not it speaks: so its end is heard.
        let (alive, ended) = channel::<()>();
        let events = progress.is_some().then_some(sender);
        let worker = scope.spawn({
            let stopped = &stopped;
            move || {
                let _alive = alive;
                work(&Watch { stopped, events, started: Instant::now() })
            }
        });
        let ended = Mutex::new(ended);
        while !py.detach(|| has_ended(&ended)) {
            if failure.is_some() {
                continue;
            }
            if let Err(error) = py.check_signals().and_then(|()| pass_on(&receiver, progress)) {
                stopped.store(true, Ordering::Relaxed);
                failure = Some(error);
            }
        }
        let result = py.detach(|| worker.join());
        if failure.is_none() {
            failure = pass_on(&receiver, progress).err();
        }
        result
    });
    match (failure, result) {
        (Some(error), _) => Err(error),
        (None, Ok(result)) => Ok(result),
        (None, Err(panic)) => std::panic::resume_unwind(panic),
    }
}

fn has_ended(ended: &Mutex<Receiver<()>>) -> bool {
    let heard = ended.lock().map(|ended| ended.recv_timeout(TICK));
    !matches!(heard, Ok(Err(RecvTimeoutError::Timeout)))
}

/// Passes on the reported progress, only the latest of each stage of each seed.
fn pass_on(events: &Receiver<Event>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let Some(progress) = progress else { return Ok(()) };
    let mut last: Vec<Event> = Vec::new();
    for event in events.try_iter() {
        let same = |e: &&mut Event| (e.stage, e.seed) == (event.stage, event.seed);
        match last.iter_mut().find(same) {
            Some(known) => known.done = known.done.max(event.done),
            None => last.push(event),
        }
    }
    for Event { stage, seed, done, total } in last {
        progress.call1((stage, seed, done, total))?;
    }
    Ok(())
}
