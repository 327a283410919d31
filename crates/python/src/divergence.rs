//! Divergences from arrays, and the steps that a device takes on its own.

use std::path::PathBuf;

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArrayDyn};
use pyo3::prelude::*;
use stlf_config::{self, Estimator, Noise};
use stlf_data::Shape;
use stlf_method::divergence::sketch::{self, Bandwidth};
use stlf_method::divergence::{Embedding, Estimate, Fleet, Settings, all_pairs, disclosure};
use stlf_method::seeds::Draw;

use crate::errors::{in_input, input};
use crate::ledger;
use crate::watch::{Event, watched};

/// The values d̂, low and high of the pairs i < j, row by row, and the bytes that each device sends.
pub(crate) type Measured<'py> =
    (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>, Vec<u64>);

pub(crate) fn measured<'py>(
    py: Python<'py>,
    estimates: &[Estimate],
    sent: Vec<u64>,
) -> Measured<'py> {
    let numbers = |of: fn(&Estimate) -> f64| PyArray1::from_iter(py, estimates.iter().map(of));
    (numbers(|e| e.value), numbers(|e| e.low), numbers(|e| e.high), sent)
}

/// Returns the shape of one input: the last axes of an array of samples.
fn shape(py: Python<'_>, axes: &[usize]) -> PyResult<Shape> {
    match *axes {
        [_, width] => Ok(Shape { channels: 1, height: 1, width }),
        [_, height, width] => Ok(Shape { channels: 1, height, width }),
        [_, channels, height, width] => Ok(Shape { channels, height, width }),
        _ => {
            let message = format!("inputs: an array of {} axes", axes.len());
            Err(input(py, message, "give samples × features, or pictures with or without channels"))
        }
    }
}

/// Borrows the numbers of each array without a copy, and checks that all arrays have samples of one shape.
fn in_place<'a>(
    py: Python<'_>,
    devices: &'a [PyReadonlyArrayDyn<'_, f32>],
) -> PyResult<(Vec<&'a [f32]>, Shape)> {
    let Some(first) = devices.first() else {
        return Err(input(py, "devices: there are none", "give at least one"));
    };
    let expected = shape(py, first.as_array().shape())?;
    let mut slices = Vec::with_capacity(devices.len());
    for (k, device) in devices.iter().enumerate() {
        let own = shape(py, device.as_array().shape())?;
        if own != expected {
            let message = format!("devices[{k}]: samples of {own}, but devices[0] has {expected}");
            return Err(input(py, message, "all devices need inputs of one shape"));
        }
        let slice = device.as_slice().map_err(|_| {
            let message = format!("devices[{k}]: the array is not contiguous");
            input(py, message, "numpy.ascontiguousarray makes one that is")
        })?;
        slices.push(slice);
    }
    Ok((slices, expected))
}

/// Measures all pairs of a fleet.
#[pyfunction]
#[pyo3(signature = (devices, *, method, seed, features=None, bandwidth=None, rounds=None, steps=None, repeats=None,
                    privacy=None, progress=None))]
#[allow(clippy::too_many_arguments, reason = "Python names them")]
pub(crate) fn measure<'py>(
    py: Python<'py>,
    devices: Vec<PyReadonlyArrayDyn<'py, f32>>,
    method: &str,
    seed: u64,
    features: Option<usize>,
    bandwidth: Option<f64>,
    rounds: Option<usize>,
    steps: Option<usize>,
    repeats: Option<usize>,
    privacy: Option<(f64, f64)>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Measured<'py>> {
    let estimator = Estimator::ALL.into_iter().find(|e| e.name() == method).ok_or_else(|| {
        let hint = "use \"means\", \"discrepancy\", \"discriminant\", \"sketch\", \"classifier\" or \"published\"";
        input(py, format!("method: there is no {method:?}"), hint)
    })?;
    let privacy = privacy.map(Noise::from);
    let divergence = stlf_config::Divergence {
        estimator: Some(estimator),
        features,
        bandwidth,
        rounds,
        steps,
        repeats,
        privacy,
        ..stlf_config::Divergence::default()
    };
    if let Some(message) = divergence.misplaced() {
        let hint = "leave it out, or use that method";
        return Err(input(py, message.replace("estimator = ", "method = "), hint));
    }
    let (inputs, shape) = in_place(py, &devices)?;
    let settings = divergence.settings(Embedding::Inputs, shape);
    let pairs = all_pairs(inputs.len());
    let estimates = watched(py, progress, |watch| {
        let seed = Draw::Divergence.seed(seed, 0);
        stlf_method::divergence::measure_pairs(&inputs, shape, &settings, &pairs, seed, &mut |p| {
            watch.see(Event { stage: "measure", seed: None, done: p.done, total: p.total })
        })
    })?;
    let wrong = |e| in_input(py, &e);
    // Only an exception ends the work early, and that is raised already.
    let estimates = estimates.map_err(wrong)?.unwrap_or_default();
    let sent = settings.bytes(inputs.len(), shape).map_err(wrong)?;
    Ok(measured(py, &estimates, vec![sent; inputs.len()]))
}

/// What a device publishes of its inputs.
#[pyclass(frozen, module = "stlf._internal")]
pub(crate) struct Sketch(sketch::Sketch);

#[pymethods]
impl Sketch {
    #[new]
    fn new(
        samples: u64,
        mean: PyReadonlyArray1<'_, f32>,
        covariance: Option<PyReadonlyArray1<'_, f32>>,
    ) -> PyResult<Sketch> {
        let numbers = |a: PyReadonlyArray1<'_, f32>| a.as_array().to_vec();
        let (mean, covariance) = (numbers(mean), covariance.map(numbers));
        Ok(Sketch(sketch::Sketch { samples, mean, covariance }))
    }

    /// Returns the number of inputs that the sketch is of.
    #[getter]
    fn samples(&self) -> u64 {
        self.0.samples
    }

    /// Returns the mean of their features.
    #[getter]
    fn mean<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_slice(py, &self.0.mean)
    }

    /// The lower triangle of their covariance, row by row.
    #[getter]
    fn covariance<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f32>>> {
        self.0.covariance.as_deref().map(|numbers| PyArray1::from_slice(py, numbers))
    }
}

/// The median distance of a device's inputs; none without two of them.
#[pyfunction]
pub(crate) fn own_bandwidth(
    py: Python<'_>,
    inputs: PyReadonlyArrayDyn<'_, f32>,
    seed: u64,
) -> PyResult<Option<f64>> {
    let devices = [inputs];
    let (inputs, shape) = in_place(py, &devices)?;
    let embedding = sketch::Settings::default().embedding;
    let seed = Draw::Divergence.seed(seed, 0);
    sketch::own_bandwidth(inputs[0], shape, embedding, seed, 0).map_err(|e| in_input(py, &e))
}

/// A device's sketch: means alone, or moments where its user accepts what they disclose.
#[pyfunction]
#[pyo3(signature = (inputs, *, seed, noise, bandwidth=None, features=None, privacy=None, moments=false, accept=None,
                    ledger=None, budget=None))]
#[allow(clippy::too_many_arguments, reason = "Python names them")]
pub(crate) fn own_sketch(
    py: Python<'_>,
    inputs: PyReadonlyArrayDyn<'_, f32>,
    seed: u64,
    noise: [u8; 32],
    bandwidth: Option<f64>,
    features: Option<usize>,
    privacy: Option<(f64, f64)>,
    moments: bool,
    accept: Option<&str>,
    ledger: Option<PathBuf>,
    budget: Option<f64>,
) -> PyResult<Sketch> {
    let devices = [inputs];
    let (inputs, shape) = in_place(py, &devices)?;
    let divergence = stlf_config::Divergence {
        estimator: Some(if moments { Estimator::Sketch } else { Estimator::Discrepancy }),
        features,
        bandwidth,
        privacy: privacy.map(Noise::from),
        ..stlf_config::Divergence::default()
    };
    let settings = divergence.sketch(Embedding::Inputs, shape);
    let width = settings.bandwidth.known().or(Bandwidth::usual(Embedding::Inputs, shape).known());
    let accepted = accept == Some(disclosure::ACCEPTED);
    let seed = Draw::Divergence.seed(seed, 0);
    let made = py.detach(|| {
        settings.check()?;
        disclosure::check_inputs(&Settings::Sketch(settings), shape, inputs[0], accepted)?;
        let (embedding, count) = (settings.embedding, settings.features);
        let features = sketch::agreed_features(&[width], shape, embedding, count, seed)?;
        Ok(sketch::Sketch::new(&features, inputs[0], &settings, |_| noise))
    });
    let made = made.map(Sketch).map_err(|e| in_input(py, &e))?;
    if let (Some(path), Some(privacy)) = (ledger, settings.privacy_of(made.0.samples)) {
        ledger::count(py, &path, &noise, privacy, budget)?;
    }
    Ok(made)
}

/// All pairs of the devices that published these.
#[pyfunction]
#[pyo3(signature = (sketches, *, privacy=None))]
pub(crate) fn divergence_of_sketches<'py>(
    py: Python<'py>,
    sketches: Vec<PyRef<'py, Sketch>>,
    privacy: Option<(f64, f64)>,
) -> PyResult<Measured<'py>> {
    let features = sketches.first().map_or(0, |sketch| sketch.0.mean.len());
    let means_alone = sketches.iter().all(|sketch| sketch.0.covariance.is_none());
    let divergence = stlf_config::Divergence {
        // Means alone tell a discrepancy and nothing more.
        estimator: Some(if means_alone { Estimator::Discrepancy } else { Estimator::Sketch }),
        features: Some(features),
        privacy: privacy.map(Noise::from),
        ..stlf_config::Divergence::default()
    };
    // The inputs' shape decides what is published, and that is known.
    let settings = divergence.sketch(Embedding::Inputs, Shape::grey(1));
    let plain: Vec<sketch::Sketch> = sketches.iter().map(|sketch| sketch.0.clone()).collect();
    let estimates = py.detach(|| {
        let fleet = Fleet::new(&plain, &settings)?;
        let pairs = all_pairs(plain.len());
        Ok(pairs.into_iter().map(|(i, j)| fleet.divergence(i, j)).collect::<Vec<_>>())
    });
    let estimates = estimates.map_err(|e| in_input(py, &e))?;
    // To the third party that compares them, as arrays.
    let numbers = |s: &sketch::Sketch| s.mean.len() + s.covariance.as_ref().map_or(0, Vec::len);
    let sent = plain.iter().map(|sketch| 8 + 4 * numbers(sketch) as u64);
    Ok(measured(py, &estimates, sent.collect()))
}
