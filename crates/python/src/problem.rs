//! The planning problem, checked, as Python holds it.

use std::sync::Arc;

use numpy::{PyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use serde::Serialize;
use stlf_formats::{
    Matrix, Overrides, PlanOrProblem, PresetEntry, ProblemFile, WeightsEntry, write_json,
};
use stlf_learn::evaluate::source_error_of_rate;
use stlf_method::energy::{Radio, Ranges};
use stlf_planning::bound::BoundKind;
use stlf_planning::problem::Model;

use crate::errors::{in_document, input};

/// A problem that passed every check.
#[pyclass(frozen, module = "stlf._internal")]
pub(crate) struct Problem {
    pub(crate) problem: Arc<stlf_planning::Problem>,
}

#[pymethods]
impl Problem {
    /// From `stlf-problem/1`, or from a plan that repeats its problem. Matrices that are given stand for those of the document, settings override its own.
    #[new]
    #[pyo3(signature = (document, *, file=None, divergence=None, link_energy=None, preset=None, phi_s=None,
                        phi_t=None, phi_e=None, bound=None, needs_paper=None))]
    #[allow(clippy::too_many_arguments, reason = "Python names them")]
    fn new(
        py: Python<'_>,
        document: &[u8],
        file: Option<&str>,
        divergence: Option<PyReadonlyArray2<'_, f64>>,
        link_energy: Option<PyReadonlyArray2<'_, f64>>,
        preset: Option<&str>,
        phi_s: Option<f64>,
        phi_t: Option<f64>,
        phi_e: Option<f64>,
        bound: Option<&str>,
        needs_paper: Option<&str>,
    ) -> PyResult<Problem> {
        let wrong = |e| in_document(py, file, &e);
        let parsed = PlanOrProblem::read(document).and_then(PlanOrProblem::into_problem);
        let mut parsed = parsed.map_err(wrong)?;
        if let Some(matrix) = divergence {
            parsed.divergence = Some(rows(&matrix));
        }
        if let Some(matrix) = link_energy {
            parsed.link_energy = Some(rows(&matrix));
        }
        parsed.set(&Overrides {
            preset: preset.map(|name| self::preset(py, name)).transpose()?,
            weights: WeightsEntry { source: phi_s, target: phi_t, energy: phi_e },
            bound: bound.map(|name| bound_kind(py, name)).transpose()?,
        });
        if let (Some(what), None) = (needs_paper, &parsed.costs) {
            if parsed.bound_kind() == Some(BoundKind::Pooled) {
                let message = format!("{what} works only under the paper's bound");
                return Err(input(py, message, "add bound=\"paper\""));
            }
            parsed.bound.get_or_insert_default().kind = Some(BoundKind::Paper);
        }
        let problem = parsed.into_problem(None).map_err(wrong)?;
        Ok(Problem { problem: Arc::new(problem) })
    }

    /// The devices' names, in their order.
    #[getter]
    fn names(&self) -> Vec<&str> {
        (0..self.problem.len()).map(|device| self.problem.name(device)).collect()
    }

    /// Samples with a label, samples without and ε̂ of each device; none with raw costs.
    #[getter]
    fn devices(&self) -> Option<Vec<(u64, u64, Option<f64>)>> {
        match self.problem.model() {
            Model::Measured(m) => {
                Some(m.devices.iter().map(|d| (d.labeled, d.unlabeled, d.source_error)).collect())
            }
            Model::Costs(_) => None,
        }
    }

    /// φ^S, φ^T, φ^E; none with raw costs.
    #[getter]
    fn weights(&self) -> Option<(f64, f64, f64)> {
        match self.problem.model() {
            Model::Measured(m) => Some((m.weights.source, m.weights.target, m.weights.energy)),
            Model::Costs(_) => None,
        }
    }

    /// Returns the problem as a document `stlf-problem/1`.
    fn document(&self, py: Python<'_>) -> PyResult<String> {
        let problem = &self.problem;
        py.detach(|| text(&ProblemFile::from_problem(problem)))
    }
}

/// Returns a document as JSON that is easy to read.
pub(crate) fn text(document: &impl Serialize) -> PyResult<String> {
    let mut bytes = Vec::new();
    write_json(&mut bytes, document)?;
    Ok(String::from_utf8(bytes)?)
}

fn rows(matrix: &PyReadonlyArray2<'_, f64>) -> Matrix {
    let view = matrix.as_array();
    Matrix::from_rows(view.rows().into_iter().map(|row| row.to_vec()))
}

fn preset(py: Python<'_>, name: &str) -> PyResult<PresetEntry> {
    match name {
        "balanced" => Ok(PresetEntry::Balanced),
        "paper" => Ok(PresetEntry::Paper),
        _ => {
            Err(input(py, format!("preset: there is no {name:?}"), "use \"balanced\" or \"paper\""))
        }
    }
}

fn bound_kind(py: Python<'_>, name: &str) -> PyResult<BoundKind> {
    match name {
        "pooled" => Ok(BoundKind::Pooled),
        "paper" => Ok(BoundKind::Paper),
        _ => Err(input(py, format!("bound: there is no {name:?}"), "use \"pooled\" or \"paper\"")),
    }
}

/// K of every link between so many devices, sender by sender, NaN on the diagonal.
#[pyfunction]
pub(crate) fn draw_energy<'py>(
    py: Python<'py>,
    devices: usize,
    model: &str,
    bits: f64,
    seed: u64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let drawn = match model {
        "ranges" => Ranges { bits, ..Ranges::default() }.draw(devices, seed),
        "radio" => Radio { bits, ..Radio::default() }.draw(devices, seed),
        _ => {
            let message = format!("model: there is no {model:?}");
            return Err(input(py, message, "use \"ranges\" or \"radio\""));
        }
    };
    Ok(PyArray1::from_vec(py, drawn))
}

/// ε̂ of a device from the fraction of its labels on which its model erred.
#[pyfunction]
pub(crate) fn source_error(rate: f64, labeled: usize, unlabeled: usize, unlabeled_as: f64) -> f64 {
    source_error_of_rate(rate, labeled, unlabeled, unlabeled_as)
}
