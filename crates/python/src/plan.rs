//! Plans: making, reading, explaining, comparing and sweeping them.

use std::sync::Arc;
use std::time::Duration;

use numpy::PyArray1;
use pyo3::prelude::*;
use stlf_formats::{DiffFile, ExplanationFile, PlanFile, Run, StoppedBy};
use stlf_planning::diff::{Decisions, diff as changes};
use stlf_planning::explain::{Sentences, explain};
use stlf_planning::plan::Status;
use stlf_planning::planner::handover::refusal;
use stlf_planning::planner::{self, Limits, Method, Outcome, Settings};
use stlf_planning::sweep::sweep;

use crate::errors::{in_document, infeasible, input};
use crate::problem::{Problem, text};
use crate::watch::watched;

/// A plan and the problem that it is for.
#[pyclass(frozen, module = "stlf._internal")]
pub(crate) struct Plan {
    problem: Arc<stlf_planning::Problem>,
    plan: stlf_planning::Plan,
    run: Run,
    /// The document, if the plan was read from one: it says more about the search than a plan does.
    file: Option<PlanFile>,
}

/// The indices of senders and receivers, and the weights of links.
type Links<'py> =
    (Bound<'py, PyArray1<usize>>, Bound<'py, PyArray1<usize>>, Bound<'py, PyArray1<f64>>);

/// A segment of a sweep: the range of φ^E, joules, error bound, slope of the objective in φ^E, which devices are targets, links,
/// hand-overs.
type Segment = (f64, f64, f64, f64, f64, Vec<bool>, Vec<(usize, usize, f64)>, Vec<(usize, usize)>);

/// An explanation: `stlf-explanation/1`, the first sentence, costs with their names, further sentences.
type Explained = (String, String, Vec<(f64, String)>, Vec<String>);

#[pymethods]
impl Plan {
    /// From `stlf-plan/2`; a problem stands for the one that the document may repeat.
    #[staticmethod]
    #[pyo3(signature = (document, *, file=None, problem=None))]
    fn read(
        py: Python<'_>,
        document: &[u8],
        file: Option<&str>,
        problem: Option<&Problem>,
    ) -> PyResult<Plan> {
        let wrong = |e| in_document(py, file, &e);
        let mut parsed = PlanFile::read(document).map_err(wrong)?;
        if let Some(problem) = problem {
            parsed.problem = Some(stlf_formats::ProblemFile::from_problem(&problem.problem));
        }
        let (problem, plan) = parsed.restore_checked().map_err(wrong)?;
        let interrupted = parsed.solver.stopped_by == Some(StoppedBy::Interrupt);
        let run = Run { seconds: parsed.solver.seconds, interrupted };
        Ok(Plan { problem: Arc::new(problem), plan, run, file: Some(parsed) })
    }

    /// Returns the problem that the plan solves.
    #[getter]
    fn problem(&self) -> Problem {
        Problem { problem: Arc::clone(&self.problem) }
    }

    /// Whether each device is a target.
    #[getter]
    fn is_target(&self) -> Vec<bool> {
        self.plan.roles.iter().map(|&role| role == stlf_planning::Role::Target).collect()
    }

    /// Returns senders, receivers and weights of the links, sorted by receiver.
    #[getter]
    fn links<'py>(&self, py: Python<'py>) -> Links<'py> {
        let links = &self.plan.links;
        (
            PyArray1::from_iter(py, links.iter().map(|link| link.from)),
            PyArray1::from_iter(py, links.iter().map(|link| link.to)),
            PyArray1::from_iter(py, links.iter().map(|link| link.weight)),
        )
    }

    /// Joules of each link, in their order; none with raw costs.
    #[getter]
    fn link_joules(&self) -> Option<Vec<f64>> {
        let joules =
            |link: &stlf_planning::plan::PlanLink| self.problem.link_energy(link.from, link.to);
        self.plan.links.iter().map(joules).collect()
    }

    /// Who hands its model on to whom.
    #[getter]
    fn handovers(&self) -> Vec<(usize, usize)> {
        self.plan.handovers.iter().map(|h| (h.from, h.to)).collect()
    }

    /// Joules of each hand-over, in their order.
    #[getter]
    fn handover_joules(&self) -> Option<Vec<f64>> {
        let handovers = self.plan.handovers.iter();
        handovers.map(|&h| self.plan.handover_joules(&self.problem, h)).collect()
    }

    /// `optimal` where that is proven, else `feasible`.
    #[getter]
    fn status(&self) -> &'static str {
        match self.plan.status {
            Status::Optimal => "optimal",
            Status::Feasible(_) => "feasible",
        }
    }

    /// What ended the search before a proof.
    #[getter]
    fn stopped_by(&self) -> Option<&'static str> {
        self.run.stopped_by(&self.plan).map(|stop| match stop {
            StoppedBy::Gap => "gap",
            StoppedBy::TimeLimit => "time-limit",
            StoppedBy::NodeLimit => "node-limit",
            StoppedBy::Interrupt => "interrupt",
            StoppedBy::NoProof => "no-proof",
        })
    }

    #[getter]
    fn objective(&self) -> f64 {
        self.plan.objective()
    }

    #[getter]
    fn lower_bound(&self) -> f64 {
        self.plan.lower_bound
    }

    #[getter]
    fn gap(&self) -> f64 {
        self.plan.gap()
    }

    /// The sources', the targets' and the energy's part of the objective.
    #[getter]
    fn terms(&self) -> (f64, f64, f64) {
        let terms = self.plan.terms;
        (terms.source, terms.target, terms.energy)
    }

    /// Joules of the plan, and if every source sent to every target in reach; none with raw costs.
    #[getter]
    fn joules(&self) -> Option<(f64, f64)> {
        let problem = &self.problem;
        Some((self.plan.joules(problem)?, self.plan.all_to_all_joules(problem)?))
    }

    /// Returns the bound under which the plan was made, `pooled` or `paper`.
    #[getter]
    fn bound(&self) -> String {
        self.plan.bound.to_string()
    }

    /// The method, its nodes or iterations, its seconds, and the objective after each iteration.
    #[getter]
    fn solver(&self) -> (&'static str, u64, f64, Vec<f64>) {
        let solver = &self.plan.solver;
        (solver.name, solver.iterations, self.run.seconds, solver.trace.clone())
    }

    /// What the optimum is where the method was the paper's, and whether that is proven.
    #[getter]
    fn exact(&self) -> Option<(f64, bool)> {
        let report = self.plan.solver.successive.as_ref();
        report.map(|report| (report.exact_objective, report.exact_is_proven))
    }

    /// Returns the plan as a document `stlf-plan/2`.
    fn document(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| match &self.file {
            Some(file) => text(file),
            None => text(&PlanFile::new(&self.problem, &self.plan, self.run)),
        })
    }

    /// Why a device is what it is.
    #[pyo3(signature = (device, time_limit, progress=None))]
    fn explain(
        &self,
        py: Python<'_>,
        device: usize,
        time_limit: f64,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Explained> {
        let (problem, plan, limit) = (&*self.problem, &self.plan, limit(py, time_limit)?);
        let explanation = watched(py, progress, |watch| {
            let see = &mut |progress: &planner::Progress| watch.search(progress, limit);
            explain(problem, plan, device, &Limits::default(), see)
        })?;
        let words = Sentences { problem, plan };
        let mut parts = explanation.account.parts.clone();
        parts.sort_by(|a, b| b.cost.total_cmp(&a.cost));
        let costs = parts.iter().map(|part| (part.cost, words.term(part.term))).collect();
        let document = text(&ExplanationFile::new(&words, std::slice::from_ref(&explanation)))?;
        Ok((document, words.role(&explanation), costs, words.further(&explanation)))
    }

    /// The plans that are optimal over a range of φ^E, how many solves that took, whether all is proven, and the
    /// largest gap.
    #[pyo3(signature = (low, high, gap, time_limit, progress=None))]
    fn sweep(
        &self,
        py: Python<'_>,
        low: f64,
        high: f64,
        gap: f64,
        time_limit: f64,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(Vec<Segment>, usize, bool, f64)> {
        if self.plan.joules(&self.problem).is_none() {
            let hint = "give errors, divergences and energies instead of costs";
            return Err(input(py, "raw costs have no energy weight to sweep", hint));
        }
        let limit = limit(py, time_limit)?;
        let hand_on = !self.plan.handovers.is_empty();
        let settings = Settings::default().within(gap).handing_on(hand_on);
        let problem = &*self.problem;
        let swept = watched(py, progress, |watch| {
            sweep(problem, low..=high, &settings, &mut |progress| watch.search(progress, limit))
        })?;
        let swept = swept.map_err(|reason| infeasible(py, &reason))?;
        let segments = swept.segments.into_iter().map(|s| {
            let targets = s.roles.iter().map(|&role| role == stlf_planning::Role::Target).collect();
            let links = s.links.iter().map(|link| (link.from, link.to, link.weight)).collect();
            let handovers = s.handovers.iter().map(|h| (h.from, h.to)).collect();
            (s.from, s.to, s.joules, s.error_bound, s.energy, targets, links, handovers)
        });
        Ok((segments.collect(), swept.solves, swept.proven, swept.largest_gap))
    }
}

impl Plan {
    fn decisions(&self) -> Decisions {
        let names = (0..self.problem.len()).map(|device| self.problem.name(device).to_owned());
        Decisions {
            names: names.collect(),
            roles: self.plan.roles.clone(),
            handovers: self.plan.handovers.clone(),
            links: self.plan.links.clone(),
            terms: self.plan.terms,
        }
    }
}

/// Returns the best plan for a problem that is found within the limits.
#[pyfunction]
#[pyo3(signature = (problem, *, solver, polish, handovers, gap, time_limit, progress=None))]
#[allow(clippy::too_many_arguments, reason = "Python names them")]
pub(crate) fn plan(
    py: Python<'_>,
    problem: &Problem,
    solver: &str,
    polish: bool,
    handovers: bool,
    gap: f64,
    time_limit: f64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Plan> {
    if let Some(reason) = refusal(&problem.problem).filter(|_| handovers) {
        return Err(input(py, format!("handovers: {reason}"), "leave handovers out"));
    }
    let settings = Settings::default().by(method(py, solver)?).within(gap);
    let settings = settings.polished(polish).handing_on(handovers);
    let limit = limit(py, time_limit)?;
    let checked = &*problem.problem;
    let (outcome, seconds) = watched(py, progress, |watch| {
        let see = &mut |progress: &planner::Progress| watch.search(progress, limit);
        let outcome = planner::plan(checked, &settings, see);
        (outcome, watch.elapsed())
    })?;
    let run = Run { seconds, interrupted: false };
    match outcome {
        Outcome::Planned(plan) => {
            Ok(Plan { problem: Arc::clone(&problem.problem), plan: *plan, run, file: None })
        }
        Outcome::Infeasible(reason) => Err(infeasible(py, &reason)),
    }
}

/// What changed from a plan to another, as `stlf-diff/1`.
#[pyfunction]
pub(crate) fn diff(before: &Plan, after: &Plan, threshold: f64) -> PyResult<String> {
    text(&DiffFile::new(&changes(&before.decisions(), &after.decisions(), threshold)))
}

fn method(py: Python<'_>, name: &str) -> PyResult<Method> {
    match name {
        "exact" => Ok(Method::Exact),
        "successive" => Ok(Method::Successive),
        _ => {
            let message = format!("solver: there is no {name:?}");
            Err(input(py, message, "use \"exact\" or \"successive\""))
        }
    }
}

fn limit(py: Python<'_>, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        input(py, format!("time_limit: {seconds} is no time"), "give seconds, at least 0")
    })
}
