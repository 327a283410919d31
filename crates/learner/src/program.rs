//! A program of the user's as a learner: started when it is needed, ended when it fails, and started again.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use stlf_data::Class;
use stlf_learn::evaluate::Predictions;
use stlf_learn::{Layout, Params};
use stlf_method::learner::{Adaptation, Adapts, Learner, Lesson, Progress, UserLearner, Watch};

use crate::Error;
use crate::command::Options;
use crate::message::Welcome;
use crate::session::Session;

/// How often it is asked whether to go on in a pause.
const TICK: Duration = Duration::from_millis(50);

/// A program that is used as a learner, started again where it fails.
#[derive(Debug)]
pub struct Program {
    options: Options,
    welcome: Welcome,
    layout: Layout,
    /// Where each sample stands in the program's own order, those with a label first.
    places: Vec<usize>,
    /// `None` while it does not run.
    session: Mutex<Option<Session>>,
}

impl Program {
    /// Starts a program, and returns it as a learner with all that it says of itself and its samples.
    ///
    /// # Errors
    /// It cannot be started, does not say what it must, or `watch` ends it.
    pub fn start(options: Options, watch: &mut Watch<'_>) -> Result<UserLearner, Error> {
        Program::start_as(options, watch, |program| Arc::new(program))
    }

    /// Starts a program where something else, which uses it, takes its place as the learner.
    pub(crate) fn start_as(
        options: Options,
        watch: &mut Watch<'_>,
        learner: impl FnOnce(Program) -> Arc<dyn Learner>,
    ) -> Result<UserLearner, Error> {
        if let Some(log) = &options.log {
            // The log is of this start and of those that follow it when the program fails.
            let _ = std::fs::remove_file(log);
        }
        let mut session = Session::start(&options, watch)?;
        let samples = session.describe(watch)?;
        let (welcome, layout) = (session.welcome.clone(), session.layout.clone());
        let (labeled, others): (Vec<usize>, Vec<usize>) =
            (0..samples.labels.len()).partition(|&at| samples.labels[at].is_some());
        let labels: Vec<Class> = labeled.iter().filter_map(|&at| samples.labels[at]).collect();
        let places = [labeled, others].concat();
        let told_truth =
            samples.truth.map(|truth| places.iter().map(|&at| truth[at]).collect::<Vec<Class>>());
        let width = samples.width;
        let features = places.iter().flat_map(|at| &samples.features[at * width..(at + 1) * width]);
        let features = features.copied().collect();
        let (name, classes) = (welcome.name.clone(), welcome.classes.clone());
        let session = Mutex::new(Some(session));
        let program = Program { options, welcome, layout, places: places.clone(), session };
        let learner = learner(program);
        let user = UserLearner { name, classes, features, labels, told_truth, places, learner };
        user.check()?;
        Ok(user)
    }

    /// Ends the program until it is needed again.
    pub(crate) fn rest(&self) {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(session) = session {
            session.stop();
        }
    }

    /// Does something with the running program. One that ended or says nothing is started again, with growing pauses.
    fn with_session<T>(
        &self,
        watch: &mut Watch<'_>,
        mut ask: impl FnMut(&mut Session, &mut Watch<'_>) -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        let mut running = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let mut pauses = self.options.limits.pauses.iter();
        let mut times = 1;
        loop {
            let session = self.running(&mut running, watch);
            let done = session.and_then(|session| ask(session, watch));
            let error = match done {
                Ok(done) => return Ok(done),
                Err(Error::Stopped { .. }) => return Ok(None),
                Err(error) => error,
            };
            if error.is_lost() {
                *running = None;
            }
            match pauses.next().filter(|_| error.may_pass()) {
                Some(&pause) => {
                    if waits(pause, watch).is_break() {
                        return Ok(None);
                    }
                }
                None if times == 1 => return Err(error),
                None => return Err(Error::GaveUp { times, last: Box::new(error) }),
            }
            times += 1;
        }
    }

    /// The running program; if it does not run, it is started, and must say what it said before.
    fn running<'s>(
        &self,
        session: &'s mut Option<Session>,
        watch: &mut Watch<'_>,
    ) -> Result<&'s mut Session, Error> {
        let new = match session.take() {
            Some(session) => session,
            None => Session::start(&self.options, watch)?,
        };
        if new.welcome != self.welcome {
            let shown = |w: &Welcome| format!("{} with {} classes", w.name, w.classes.len());
            let (before, now) = (shown(&self.welcome), shown(&new.welcome));
            return Err(Error::Another { before, now });
        }
        Ok(session.insert(new))
    }

    fn places_of<'r>(&'r self, rows: &'r [usize]) -> impl ExactSizeIterator<Item = usize> + 'r {
        rows.iter().map(|&row| self.places[row])
    }
}

impl Learner for Program {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn train(
        &self,
        lesson: Lesson<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Params>, stlf_planning::Error> {
        let Lesson { rows, start, seed } = lesson;
        let train = |session: &mut Session, watch: &mut Watch<'_>| {
            session.train(self.places_of(rows), start, seed, watch)
        };
        Ok(self.with_session(watch, train)?)
    }

    fn predict(
        &self,
        model: &Params,
        rows: &[usize],
        watch: &mut Watch<'_>,
    ) -> Result<Option<Predictions>, stlf_planning::Error> {
        let predict = |session: &mut Session, watch: &mut Watch<'_>| {
            session.predict(model, self.places_of(rows), None, watch)
        };
        Ok(self.with_session(watch, predict)?)
    }

    fn adapts(&self) -> Option<&dyn Adapts> {
        self.welcome.adapts.then_some(self)
    }
}

impl Adapts for Program {
    fn adapt(
        &self,
        adaptation: Adaptation<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Params>, stlf_planning::Error> {
        let Adaptation { rows, teacher, start, seed } = adaptation;
        let adapt = |session: &mut Session, watch: &mut Watch<'_>| {
            session.adapt(self.places_of(rows), teacher, start, seed, watch)
        };
        Ok(self.with_session(watch, adapt)?)
    }

    fn predict_altered(
        &self,
        model: &Params,
        rows: &[usize],
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Predictions>, stlf_planning::Error> {
        let predict = |session: &mut Session, watch: &mut Watch<'_>| {
            session.predict(model, self.places_of(rows), Some(seed), watch)
        };
        Ok(self.with_session(watch, predict)?)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let session = self.session.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = session.take() {
            session.stop();
        }
    }
}

/// Waits this long, unless `watch` ends it before.
fn waits(pause: Duration, watch: &mut Watch<'_>) -> ControlFlow<()> {
    let until = Instant::now() + pause;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return ControlFlow::Continue(());
        }
        std::thread::sleep(left.min(TICK));
        watch(Progress::default())?;
    }
}
