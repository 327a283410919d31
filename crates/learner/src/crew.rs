//! Many programs of which only some run at a time: a simulator has a learner for every device, and a machine has room for few.

use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use stlf_learn::evaluate::Predictions;
use stlf_learn::{Layout, Params};
use stlf_method::learner::{Adaptation, Adapts, Learner, Lesson, Progress, UserLearner, Watch};

use crate::{Error, Options, Program};

/// How often it is asked whether to go on while all that may run are busy.
const TICK: Duration = Duration::from_millis(50);

/// Programs of which at most so many run at a time. One that rests is started again when it is needed.
#[derive(Debug, Clone)]
pub struct Crew {
    most: usize,
    state: Arc<(Mutex<State>, Condvar)>,
}

/// The programs that run now.
#[derive(Debug, Default)]
struct State {
    next: u64,
    /// How many are being started for the first time.
    starting: usize,
    /// Those that run, the one that was used last at the end.
    running: Vec<Running>,
}

#[derive(Debug)]
struct Running {
    number: u64,
    program: Arc<Program>,
    /// How many requests it has that are not answered yet.
    requests: usize,
}

/// One of the programs of a crew, which runs when it is needed.
#[derive(Debug)]
struct Member {
    number: u64,
    program: Arc<Program>,
    crew: Crew,
}

impl Crew {
    /// Returns a crew without programs, of which at most this many run at a time, and at least one.
    pub fn new(most: usize) -> Crew {
        Crew { most: most.max(1), state: Arc::default() }
    }

    /// Starts a program as [`Program::start`] does. It may rest afterwards.
    ///
    /// # Errors
    /// It cannot be started, does not say what it must, or `watch` ends it.
    pub fn start(&self, options: Options, watch: &mut Watch<'_>) -> Result<UserLearner, Error> {
        let mut state = self.lock();
        while !state.has_room(self.most) {
            state = self.waited(state);
            if watch(Progress::default()).is_break() {
                return Err(Error::Stopped { verb: "greet" });
            }
        }
        state.starting += 1;
        drop(state);
        let started = Program::start_as(options, watch, |program| {
            let (mut state, program) = (self.lock(), Arc::new(program));
            let number = state.next;
            state.next += 1;
            state.running.push(Running { number, program: program.clone(), requests: 0 });
            Arc::new(Member { number, program, crew: self.clone() })
        });
        self.lock().starting -= 1;
        self.state.1.notify_all();
        started
    }

    /// Waits a moment for one that is busy.
    fn waited<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.state.1.wait_timeout(state, TICK).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Returns the number of programs that run now.
    pub fn running(&self) -> usize {
        self.lock().running.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Lets the program rest that was not used for longest, if as many run as may; `false` if all of them are busy.
    fn has_room(&mut self, most: usize) -> bool {
        if self.running.len() + self.starting < most {
            return true;
        }
        let idle = self.running.iter().position(|other| other.requests == 0);
        idle.inspect(|&idle| self.running.remove(idle).program.rest()).is_some()
    }
}

impl Member {
    /// Does something with the program once it may run; `None` if `watch` ended it.
    fn while_running<T>(
        &self,
        watch: &mut Watch<'_>,
        ask: impl FnOnce(&Program, &mut Watch<'_>) -> Result<Option<T>, stlf_planning::Error>,
    ) -> Result<Option<T>, stlf_planning::Error> {
        if self.begin(watch).is_break() {
            return Ok(None);
        }
        let answer = ask(&self.program, watch);
        let mut state = self.crew.lock();
        let own = state.running.iter_mut().find(|other| other.number == self.number);
        if let Some(own) = own {
            own.requests -= 1;
        }
        drop(state);
        self.crew.state.1.notify_all();
        answer
    }

    /// Waits until the program may run.
    fn begin(&self, watch: &mut Watch<'_>) -> ControlFlow<()> {
        let mut state = self.crew.lock();
        loop {
            if let Some(at) = state.running.iter().position(|other| other.number == self.number) {
                let mut own = state.running.remove(at);
                own.requests += 1;
                state.running.push(own);
                return ControlFlow::Continue(());
            }
            if state.has_room(self.crew.most) {
                let (number, program) = (self.number, self.program.clone());
                state.running.push(Running { number, program, requests: 0 });
                continue;
            }
            state = self.crew.waited(state);
            watch(Progress::default())?;
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.crew.lock().running.retain(|other| other.number != self.number);
    }
}

impl Learner for Member {
    fn layout(&self) -> &Layout {
        self.program.layout()
    }

    fn train(
        &self,
        lesson: Lesson<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Params>, stlf_planning::Error> {
        self.while_running(watch, |program, watch| program.train(lesson, watch))
    }

    fn predict(
        &self,
        model: &Params,
        rows: &[usize],
        watch: &mut Watch<'_>,
    ) -> Result<Option<Predictions>, stlf_planning::Error> {
        self.while_running(watch, |program, watch| program.predict(model, rows, watch))
    }

    fn adapts(&self) -> Option<&dyn Adapts> {
        self.program.adapts().map(|_| self as &dyn Adapts)
    }
}

impl Adapts for Member {
    fn adapt(
        &self,
        adaptation: Adaptation<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Params>, stlf_planning::Error> {
        self.while_running(watch, |program, watch| program.adapt(adaptation, watch))
    }

    fn predict_altered(
        &self,
        model: &Params,
        rows: &[usize],
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Predictions>, stlf_planning::Error> {
        self.while_running(watch, |program, watch| {
            program.predict_altered(model, rows, seed, watch)
        })
    }
}
