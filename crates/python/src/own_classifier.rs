//! The paper's Algorithm 1 with the caller's own classifier: two Python functions, driven by the same state machine as our networks.

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use stlf_learn::Params;
use stlf_method::divergence::all_pairs;
use stlf_method::divergence::classifier::{Classifier, Count, Party, Rounds, Side, pass_messages};

use crate::divergence::{Measured, measured};
use crate::errors::in_input;

/// One side of a pair, whose work is done by Python functions.
struct OwnClassifier<'py> {
    py: Python<'py>,
    start: Vec<f32>,
    train: Bound<'py, PyAny>,
    count: Bound<'py, PyAny>,
    device: usize,
    side: Side,
    /// The exception that Python raised, which our error type cannot hold.
    raised: &'py std::cell::RefCell<Option<PyErr>>,
}

impl OwnClassifier<'_> {
    fn raise(&self, error: PyErr) -> stlf_planning::Error {
        let message = error.to_string();
        self.raised.replace(Some(error));
        stlf_planning::Error::other("divergence.classifier", message)
    }
}

impl Classifier for OwnClassifier<'_> {
    fn begin(&mut self, _: usize) -> Result<Params, stlf_planning::Error> {
        Ok(self.start.clone().into())
    }

    fn train(&mut self, params: Params) -> Result<Params, stlf_planning::Error> {
        let numbers = PyArray1::from_slice(self.py, &params);
        let trained = (self.py.check_signals())
            .and_then(|()| self.train.call1((self.device, self.side as u8, numbers)))
            .and_then(|trained| {
                let trained: PyReadonlyArray1<'_, f32> = trained.extract()?;
                Ok(trained.as_array().to_vec())
            });
        trained.map(Params::from).map_err(|e| self.raise(e))
    }

    fn count_errors(&mut self, params: &Params) -> Result<Count, stlf_planning::Error> {
        let numbers = PyArray1::from_slice(self.py, params);
        let counted = (self.count.call1((self.device, self.side as u8, numbers)))
            .and_then(|counted| counted.extract::<(u64, u64)>());
        let (errors, samples) = counted.map_err(|e| self.raise(e))?;
        Ok(Count { errors, samples })
    }
}

/// All pairs of so many devices. `train(device, label, parameters)` gives parameters after some steps on the device's
/// data, all of which have that label; `count(device, label, parameters)` gives errors and samples.
#[pyfunction]
#[pyo3(signature = (devices, start, train, count, *, rounds, repeats, confidence, progress=None))]
#[allow(clippy::too_many_arguments, reason = "Python names them")]
pub(crate) fn measure_own<'py>(
    py: Python<'py>,
    devices: usize,
    start: PyReadonlyArray1<'py, f32>,
    train: Bound<'py, PyAny>,
    count: Bound<'py, PyAny>,
    rounds: usize,
    repeats: usize,
    confidence: f64,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Measured<'py>> {
    let start = start.as_array().to_vec();
    let raised = std::cell::RefCell::new(None);
    let pairs = all_pairs(devices);
    let mut estimates = Vec::with_capacity(pairs.len());
    let mut sent = vec![0; devices];
    for (done, &(i, j)) in pairs.iter().enumerate() {
        let party = |device: usize, side: Side| {
            let classifier = OwnClassifier {
                py,
                start: start.clone(),
                train: train.clone(),
                count: count.clone(),
                device,
                side,
                raised: &raised,
            };
            Party::with(classifier, Rounds { rounds, repeats }, side)
        };
        let pair = party(i, Side::First)
            .and_then(|first| pass_messages(first, party(j, Side::Second)?, confidence));
        let pair = pair.map_err(|e| raised.take().unwrap_or_else(|| in_input(py, &e)))?;
        estimates.push(pair.estimate);
        sent[i] += pair.sent[0];
        sent[j] += pair.sent[1];
        if let Some(progress) = progress {
            progress.call1(("measure", None::<u64>, done + 1, pairs.len()))?;
        }
    }
    Ok(measured(py, &estimates, sent))
}
