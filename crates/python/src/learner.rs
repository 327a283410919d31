//! A class of Python's as a learner in this process. What it is given and gives goes through `stlf.learner.bridge`, which knows arrays; what it
//! gives is checked as the files of a program are.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};
use stlf_bundle::folder::{find_any, is_of_learner};
use stlf_bundle::models::Models;
use stlf_data::Class;
use stlf_learn::evaluate::Predictions;
use stlf_learn::{Layout, Params};
use stlf_learner::checked_probabilities;
use stlf_method::learner::{Adaptation, Adapts, Learner, Lesson, Progress, UserLearner, Watch};
use stlf_planning::Error;

use crate::errors::{in_bundle, in_input};
use crate::watch::watched;

/// How often it is asked whether to go on while a learner says nothing.
const TICK: Duration = Duration::from_millis(50);

/// The first exception of a learner, which our error type cannot hold.
pub(crate) type Raised = Arc<Mutex<Option<PyErr>>>;

/// What the bridge tells of samples: features, how many each sample has, labels, true classes.
type Told<'py> = (
    PyReadonlyArray1<'py, f32>,
    usize,
    PyReadonlyArray1<'py, i64>,
    Option<PyReadonlyArray1<'py, i64>>,
);

/// A learner that is a class of Python's, run in this process.
#[derive(Debug)]
struct InProcess {
    bridge: Py<PyAny>,
    layout: Layout,
    classes: usize,
    /// Whether the learner trains students.
    adapts: bool,
    /// Where each sample stands in the learner's own order, those with a label first.
    places: Vec<usize>,
    raised: Raised,
}

/// Returns a bridge to a class of Python's as a learner with all that it says of itself and its samples.
pub(crate) fn user_learner(
    py: Python<'_>,
    bridge: &Bound<'_, PyAny>,
    raised: &Raised,
) -> PyResult<UserLearner> {
    let name: String = bridge.getattr("name")?.extract()?;
    let classes: Vec<String> = bridge.getattr("classes")?.extract()?;
    let shapes: Vec<(String, Vec<usize>)> = bridge.getattr("shapes")?.extract()?;
    let wrong = |message: String| in_input(py, &Error::other("learner", message));
    let layout = Layout::new(shapes.iter().map(|(name, shape)| (name.as_str(), &shape[..])));
    let layout = layout.map_err(|e| wrong(format!("first(): {e}")))?;
    let (features, width, labels, truth): Told<'_> = bridge.call_method0("samples")?.extract()?;
    let (features, labels) = (features.as_array(), labels.as_array());
    let class = |number: i64| {
        let class = usize::try_from(number).ok().filter(|class| *class < classes.len());
        class.map(|class| class as Class).ok_or_else(|| {
            let most = classes.len().saturating_sub(1);
            wrong(format!("data() gives the label {number}; expected 0 to {most}, or -1 for none"))
        })
    };
    let (labeled, others): (Vec<usize>, Vec<usize>) =
        (0..labels.len()).partition(|&at| labels[at] != -1);
    let own = labeled.iter().map(|&at| class(labels[at])).collect::<PyResult<Vec<Class>>>()?;
    let places = [labeled, others].concat();
    let rows = places.iter().flat_map(|at| at * width..(at + 1) * width);
    let told_truth = truth.map(|truth| -> PyResult<Vec<Class>> {
        let truth = truth.as_array();
        places.iter().map(|&at| class(truth[at])).collect()
    });
    let learner = InProcess {
        bridge: bridge.clone().unbind(),
        layout,
        classes: classes.len(),
        adapts: bridge.getattr("adapts")?.extract()?,
        places: places.clone(),
        raised: raised.clone(),
    };
    let user = UserLearner {
        name,
        classes,
        features: rows.map(|at| features[at]).collect(),
        labels: own,
        told_truth: told_truth.transpose()?,
        places,
        learner: Arc::new(learner),
    };
    user.check().map_err(|e| in_input(py, &e))?;
    Ok(user)
}

/// The same error with the exception of the learner as its cause, if it has raised one.
pub(crate) fn with_cause(py: Python<'_>, error: PyErr, raised: &Raised) -> PyErr {
    let cause = raised.lock().unwrap_or_else(PoisonError::into_inner).take();
    error.set_cause(py, cause);
    error
}

/// What a call that runs says.
enum Said {
    /// The call is this far.
    Progress(Progress),
    /// The call has ended.
    Ended,
}

impl InProcess {
    /// Calls a method of the bridge, with a function that hears how far it is, in a thread of its own: this one asks whether to go on.
    /// `None` if the learner gave up because it was told to.
    fn call(
        &self,
        verb: &str,
        watch: &mut Watch<'_>,
        call: impl for<'py> FnOnce(&Bound<'py, PyAny>, Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>
        + Send,
    ) -> Result<Option<Vec<f32>>, Error> {
        let (says, heard) = channel();
        let has_ended = Arc::new(AtomicBool::new(false));
        let made = std::thread::scope(|scope| {
            let to_end = has_ended.clone();
            let worker = scope.spawn(move || {
                let made = Python::attach(|py| {
                    let said = says.clone();
                    let progress =
                        move |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
                            let (done, total): (u64, u64) = arguments.extract()?;
                            // Nobody listens only once all is over.
                            let _ = said.send(Said::Progress(Progress { done, total }));
                            Ok::<bool, PyErr>(!to_end.load(Ordering::Relaxed))
                        };
                    let progress = PyCFunction::new_closure(py, None, None, progress)?;
                    let made = call(self.bridge.bind(py), progress.into_any())?;
                    if made.is_none() {
                        return Ok(None);
                    }
                    let numbers: PyReadonlyArray1<'_, f32> = made.extract()?;
                    Ok::<_, PyErr>(Some(numbers.as_array().to_vec()))
                });
                let _ = says.send(Said::Ended);
                made
            });
            let mut last = Progress::default();
            loop {
                match heard.recv_timeout(TICK) {
                    Ok(Said::Progress(progress)) => last = progress,
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(Said::Ended) | Err(RecvTimeoutError::Disconnected) => break,
                }
                // A learner may say more than anybody wants to hear.
                for said in heard.try_iter() {
                    match said {
                        Said::Progress(progress) => last = progress,
                        Said::Ended => return worker.join(),
                    }
                }
                if watch(last).is_break() {
                    has_ended.store(true, Ordering::Relaxed);
                }
            }
            worker.join()
        });
        let made = made.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        made.map_err(|raised| {
            let message = format!("the learner was to {verb}, and says: {raised}");
            self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(raised);
            Error::other("learner", message)
        })
    }

    fn rows(&self, rows: &[usize]) -> Vec<i64> {
        rows.iter().map(|&row| self.places[row] as i64).collect()
    }

    /// The probabilities that a model gives samples, altered by a seed if there is one.
    fn predicted(
        &self,
        model: &Params,
        rows: &[usize],
        altered: Option<u64>,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Predictions>, Error> {
        let (rows, model) = (self.rows(rows), model.to_vec());
        let (verb, method) = match altered {
            None => ("predict", "predict()"),
            Some(_) => ("predict altered samples", "predict_altered()"),
        };
        let predicted = self.call(verb, watch, move |bridge, progress| {
            let (rows, model) =
                (PyArray1::from_vec(bridge.py(), rows), PyArray1::from_vec(bridge.py(), model));
            bridge.call_method1("predict", (model, rows, altered, progress))
        })?;
        let Some(numbers) = predicted else { return Ok(None) };
        let predictions = checked_probabilities(numbers, self.classes);
        predictions
            .map(Some)
            .map_err(|message| Error::other("learner", format!("what {method} gives {message}")))
    }
}

/// The parameters of a model that a method gives, if all are finite.
fn finite(method: &str, numbers: Vec<f32>) -> Result<Params, Error> {
    match numbers.iter().position(|number| !number.is_finite()) {
        Some(at) => {
            let message = format!("{method} gives a model whose number {at} is {}", numbers[at]);
            Err(Error::other("learner", message))
        }
        None => Ok(Params::from(numbers)),
    }
}

impl Learner for InProcess {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn train(&self, lesson: Lesson<'_>, watch: &mut Watch<'_>) -> Result<Option<Params>, Error> {
        let (rows, seed) = (self.rows(lesson.rows), lesson.seed);
        let start = lesson.start.map(|start| start.to_vec());
        let trained = self.call("train", watch, move |bridge, progress| {
            let py = bridge.py();
            let start = start.map(|start| PyArray1::from_vec(py, start));
            bridge.call_method1("train", (PyArray1::from_vec(py, rows), start, seed, progress))
        })?;
        trained.map(|numbers| finite("train()", numbers)).transpose()
    }

    fn predict(
        &self,
        model: &Params,
        rows: &[usize],
        watch: &mut Watch<'_>,
    ) -> Result<Option<Predictions>, Error> {
        self.predicted(model, rows, None, watch)
    }

    fn adapts(&self) -> Option<&dyn Adapts> {
        self.adapts.then_some(self)
    }
}

impl Adapts for InProcess {
    fn adapt(
        &self,
        adaptation: Adaptation<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Params>, Error> {
        let (rows, seed) = (self.rows(adaptation.rows), adaptation.seed);
        let (teacher, start) = (adaptation.teacher.as_slice().to_vec(), adaptation.start.to_vec());
        let trained = self.call("train a student", watch, move |bridge, progress| {
            let py = bridge.py();
            let [teacher, start] = [teacher, start].map(|all| PyArray1::from_vec(py, all));
            let rows = PyArray1::from_vec(py, rows);
            bridge.call_method1("adapt", (rows, teacher, start, seed, progress))
        })?;
        trained.map(|numbers| finite("adapt()", numbers)).transpose()
    }

    fn predict_altered(
        &self,
        model: &Params,
        rows: &[usize],
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Predictions>, Error> {
        self.predicted(model, rows, Some(seed), watch)
    }
}

/// The bundle that is meant by a folder, and whether it is one of a learner of the user's.
#[pyfunction]
#[pyo3(signature = (path, *, device=None, seed=None))]
pub(crate) fn find_bundle(
    py: Python<'_>,
    path: PathBuf,
    device: Option<&str>,
    seed: Option<u64>,
) -> PyResult<(PathBuf, bool)> {
    let found = find_any(&path, device, seed).map_err(|e| in_bundle(py, &e))?;
    let is_of_learner = is_of_learner(&found);
    Ok((found, is_of_learner))
}

/// What the models in a bundle come to for all samples of a learner, in its own order.
#[pyfunction]
pub(crate) fn predict_with<'py>(
    py: Python<'py>,
    bridge: &Bound<'py, PyAny>,
    bundle: PathBuf,
) -> PyResult<Bound<'py, PyArray1<f32>>> {
    let raised = Raised::default();
    let user = user_learner(py, bridge, &raised)?;
    let models = Models::read(&bundle, &user).map_err(|e| in_bundle(py, &e))?;
    let predicted = watched(py, None, |watch| models.predict(&user, &mut |_| watch.flow()))?;
    let predicted = predicted.map_err(|e| with_cause(py, in_input(py, &e), &raised))?;
    let numbers = predicted.iter().flat_map(Predictions::probabilities).flatten().copied();
    Ok(PyArray1::from_iter(py, numbers))
}
