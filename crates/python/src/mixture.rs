//! What a device ended with, put to work.

use std::path::PathBuf;

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use stlf_bundle::folder::{copy, find, read};
use stlf_bundle::{Error, Samples, onnx};
use stlf_data::Scaling;
use stlf_learn::spec::Layer;
use stlf_planning::Role;

use crate::errors::{in_bundle, input};

/// A bundle that was read and checked.
#[pyclass(frozen, module = "stlf._internal")]
pub(crate) struct Mixture {
    mixture: stlf_bundle::Mixture,
    path: PathBuf,
}

/// A tensor of parameters: its name, its shape and its numbers.
type Tensor<'py> = (String, Vec<usize>, Bound<'py, PyArray1<f32>>);

/// A model that is run on every input: its share of the result, whether it is corrected by the shares of classes, its parameters.
type Part<'py> = (f64, bool, Vec<Tensor<'py>>);

#[pymethods]
impl Mixture {
    /// From a bundle, the folder of a real device, or a run folder.
    #[staticmethod]
    #[pyo3(signature = (path, *, device=None, seed=None))]
    fn load(
        py: Python<'_>,
        path: PathBuf,
        device: Option<&str>,
        seed: Option<u64>,
    ) -> PyResult<Mixture> {
        let found = py.detach(|| {
            let path = find(&path, device, seed)?;
            Ok::<_, Error>(Mixture { mixture: read(&path)?, path })
        });
        found.map_err(|e| in_bundle(py, &e))
    }

    /// Returns the names of the classes.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.mixture.classes.clone()
    }

    /// The device, whether it is a target, the epoch and the seed.
    #[getter]
    fn origin(&self) -> (String, bool, Option<u64>, Option<u64>) {
        let mixture = &self.mixture;
        (mixture.device.clone(), mixture.role == Role::Target, mixture.epoch, mixture.seed)
    }

    /// The senders of the models, and their weights.
    #[getter]
    fn members(&self) -> Vec<(String, f64)> {
        self.mixture.members.iter().map(|member| (member.name.clone(), member.weight)).collect()
    }

    /// The accuracy that the target may expect without labels, and the ends of its interval; none for a source.
    #[getter]
    fn expected(&self) -> Option<(f64, f64, f64)> {
        self.mixture.expected.map(|e| (e.accuracy, e.low, e.high))
    }

    /// The names of a table's features, or of the channels of a series; none for pictures.
    #[getter]
    fn columns(&self) -> Option<Vec<String>> {
        match &self.mixture.scaling {
            Scaling::Features { columns, .. } => Some(columns.clone()),
            Scaling::Pixels => None,
        }
    }

    /// The readings of a window and from one to the next, where samples are windows of a series.
    #[getter]
    fn windows(&self) -> Option<(usize, usize)> {
        match &self.mixture.scaling {
            Scaling::Features { series: Some(series), .. } => {
                Some((series.windows.length, series.windows.stride))
            }
            _ => None,
        }
    }

    /// Channels, rows and columns of a sample.
    #[getter]
    fn sample_shape(&self) -> (usize, usize, usize) {
        let shape = self.mixture.sample_shape();
        (shape.channels, shape.height, shape.width)
    }

    /// For each list of units: centres, what distances from them are multiplied by, and limits.
    #[getter]
    fn units<'py>(&self, py: Python<'py>) -> Vec<[Bound<'py, PyArray1<f64>>; 3]> {
        let Scaling::Features { units, .. } = &self.mixture.scaling else { return Vec::new() };
        let list = |list: &Vec<stlf_data::scaling::Unit>| {
            let column = |number: fn(&stlf_data::scaling::Unit) -> f64| {
                PyArray1::from_iter(py, list.iter().map(number))
            };
            [
                column(|unit| unit.centre),
                column(|unit| if unit.is_constant() { 0.0 } else { 1.0 / unit.deviation }),
                column(|unit| unit.limit),
            ]
        };
        units.iter().map(list).collect()
    }

    /// The shares of classes that predictions are corrected by.
    #[getter]
    fn class_shares(&self) -> Option<Vec<f64>> {
        self.mixture.class_shares.clone()
    }

    /// The layers by their names in PyTorch, each with its numbers.
    #[getter]
    fn layers(&self) -> Vec<(&'static str, Vec<f64>)> {
        let layer = |layer: Layer| match layer {
            Layer::Conv2d { channels, kernel } => ("Conv2d", vec![channels as f64, kernel as f64]),
            Layer::MaxPool2d => ("MaxPool2d", Vec::new()),
            Layer::Conv1d { channels, kernel } => ("Conv1d", vec![channels as f64, kernel as f64]),
            Layer::MaxPool1d => ("MaxPool1d", Vec::new()),
            Layer::Relu => ("ReLU", Vec::new()),
            Layer::Dropout { p } => ("Dropout", vec![f64::from(p)]),
            Layer::Dropout2d { p } => ("Dropout2d", vec![f64::from(p)]),
            Layer::Linear { outputs } => ("Linear", vec![outputs as f64]),
        };
        self.mixture.spec.layers().map(|(kind, _)| layer(kind)).collect()
    }

    /// The models that are run on every input.
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Vec<Part<'py>>> {
        let tensors = self.mixture.spec.tensors();
        let part = |part: &stlf_bundle::mixture::Part| -> Part<'py> {
            let tensor = |tensor: &stlf_learn::layout::Tensor| {
                let numbers = part.params[tensor.range.clone()].iter().copied();
                (tensor.name.clone(), tensor.shape.clone(), PyArray1::from_iter(py, numbers))
            };
            (part.share, part.corrected, tensors.iter().map(tensor).collect())
        };
        let parts = self.mixture.parts().map_err(|e| in_bundle(py, &e))?;
        Ok(parts.iter().map(part).collect())
    }

    /// The probabilities of samples that lie one after the other.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        values: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let values = values.as_slice().map_err(|e| input(py, format!("X: {e}"), "give numbers"))?;
        self.predicted(py, || Samples::scaled(&self.mixture, values))
    }

    /// The probabilities of samples in a table or a folder of pictures.
    fn probabilities_of<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        self.predicted(py, || Samples::read(&self.mixture, &path))
    }

    /// Copies the bundle to another folder.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| copy(&self.path, &path)).map_err(|e| in_bundle(py, &e))
    }

    /// The mixture as an ONNX file.
    fn onnx<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let file = py.detach(|| onnx::write(&self.mixture)).map_err(|e| in_bundle(py, &e))?;
        Ok(PyBytes::new(py, &file))
    }
}

impl Mixture {
    fn predicted<'py>(
        &self,
        py: Python<'py>,
        samples: impl FnOnce() -> Result<Samples, Error> + Send,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let predicted = py.detach(|| self.mixture.predict(&samples()?.inputs));
        let predicted = predicted.map_err(|e| in_bundle(py, &e))?;
        Ok(PyArray1::from_slice(py, predicted.as_slice()))
    }
}
