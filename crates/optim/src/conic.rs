//! Conic programs over the zero, nonnegative and exponential cones; the only file that names Clarabel.
//!
//! ```text
//! minimise c·x   subject to   E x = e,   G x ≤ g,   (l₀(x), l₁(x), l₂(x)) ∈ K   for each triple
//! ```
//!
//! with `K` the closure of `{(p, q, r) : q > 0, q·exp(p/q) ≤ r}` and each `l` affine in `x`.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{
    DefaultSettings, DefaultSolver, ExponentialConeT, IPSolver, NonnegativeConeT, SolverStatus,
    SupportedConeT, ZeroConeT,
};

/// `constant + Σ coefficient · x_column`; each column at most once.
#[derive(Clone, Debug)]
pub(crate) struct Affine {
    pub(crate) constant: f64,
    pub(crate) coefficients: Vec<(usize, f64)>,
}

impl Affine {
    pub(crate) fn constant(constant: f64) -> Self {
        Self { constant, coefficients: Vec::new() }
    }
}

/// How a solve ended. None of these is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Optimal to the tolerance asked for.
    Solved,
    /// Optimal to a reduced tolerance (about 1e-4); better was not to be had.
    AlmostSolved,
    /// No point satisfies the constraints; certified.
    Infeasible,
    /// The objective has no least value; certified. (Of a geometric program: it comes as near to zero as
    /// one likes.)
    Unbounded,
    /// The limit on interior-point steps came first; the values are the last iterate.
    IterationLimit,
    /// The solver could make no progress; the values are the last iterate.
    Stalled,
}

/// A conic program to which variables and constraints are still being added.
#[derive(Clone, Debug)]
pub(crate) struct ConicProgram {
    cost: Vec<f64>,
    equal_to_zero: Vec<Affine>,
    at_least_zero: Vec<Affine>,
    exponential: Vec<[Affine; 3]>,
}

/// The solver's answer; duals are those of `expression ∈ cone`, in the order of the calls.
#[derive(Clone, Debug)]
pub(crate) struct ConicSolution {
    pub(crate) status: Status,
    pub(crate) iterations: u32,
    pub(crate) x: Vec<f64>,
    pub(crate) equal_to_zero: Vec<f64>,
    pub(crate) at_least_zero: Vec<f64>,
    pub(crate) exponential: Vec<[f64; 3]>,
}

impl ConicProgram {
    pub(crate) fn new() -> Self {
        Self {
            cost: Vec::new(),
            equal_to_zero: Vec::new(),
            at_least_zero: Vec::new(),
            exponential: Vec::new(),
        }
    }

    /// Adds a free variable with this cost and returns its column.
    pub(crate) fn variable(&mut self, cost: f64) -> usize {
        self.cost.push(cost);
        self.cost.len() - 1
    }

    /// Requires `expression = 0`; returns the place of its dual.
    pub(crate) fn equal_to_zero(&mut self, expression: Affine) -> usize {
        self.equal_to_zero.push(expression);
        self.equal_to_zero.len() - 1
    }

    /// Requires `expression ≥ 0`; returns the place of its dual.
    pub(crate) fn at_least_zero(&mut self, expression: Affine) -> usize {
        self.at_least_zero.push(expression);
        self.at_least_zero.len() - 1
    }

    /// Requires `(p, q, r) ∈ K`; returns the place of its dual.
    pub(crate) fn exponential(&mut self, triple: [Affine; 3]) -> usize {
        self.exponential.push(triple);
        self.exponential.len() - 1
    }

    /// Solves with this tolerance (relative gap and residuals) and limit on interior-point steps.
    pub(crate) fn solve(&self, tolerance: f64, max_iterations: u32) -> ConicSolution {
        let expressions: Vec<&Affine> = self
            .equal_to_zero
            .iter()
            .chain(&self.at_least_zero)
            .chain(self.exponential.iter().flatten())
            .collect();
        let (equalities, inequalities) = (self.equal_to_zero.len(), self.at_least_zero.len());
        let mut cones: Vec<SupportedConeT<f64>> = Vec::new();
        if equalities > 0 {
            cones.push(ZeroConeT(equalities));
        }
        if inequalities > 0 {
            cones.push(NonnegativeConeT(inequalities));
        }
        cones.extend(self.exponential.iter().map(|_| ExponentialConeT()));

        // Clarabel reads `A x + s = b` with `s` in the cone, so the expression `s` is `b - A x`.
        let b: Vec<f64> = expressions.iter().map(|e| e.constant).collect();
        let a = negated_columns(&expressions, self.cost.len());
        let quadratic = CscMatrix::zeros((self.cost.len(), self.cost.len()));
        let settings = settings(tolerance, max_iterations);
        let mut solver = DefaultSolver::new(&quadratic, &self.cost, &a, &b, &cones, settings)
            .expect("dimensions agree by construction and no setting is a free string");
        solver.solve();

        let answer = solver.solution;
        let (equal, rest) = answer.z.split_at(equalities);
        let (at_least, exponential) = rest.split_at(inequalities);
        ConicSolution {
            status: status(answer.status),
            iterations: answer.iterations,
            x: answer.x,
            equal_to_zero: equal.to_vec(),
            at_least_zero: at_least.to_vec(),
            exponential: exponential.as_chunks().0.to_vec(),
        }
    }
}

/// The matrix whose rows are the negated coefficients, by columns.
fn negated_columns(rows: &[&Affine], columns: usize) -> CscMatrix<f64> {
    let mut start = vec![0; columns + 1];
    for &(column, _) in rows.iter().flat_map(|row| &row.coefficients) {
        start[column + 1] += 1;
    }
    for column in 0..columns {
        start[column + 1] += start[column];
    }
    let mut next = start.clone();
    let (mut places, mut values) = (vec![0; start[columns]], vec![0.0; start[columns]]);
    for (place, row) in rows.iter().enumerate() {
        for &(column, value) in &row.coefficients {
            places[next[column]] = place;
            values[next[column]] = -value;
            next[column] += 1;
        }
    }
    CscMatrix::new(rows.len(), columns, start, places, values)
}

fn settings(tolerance: f64, max_iterations: u32) -> DefaultSettings<f64> {
    DefaultSettings {
        verbose: false,
        max_iter: max_iterations,
        tol_gap_abs: tolerance,
        tol_gap_rel: tolerance,
        tol_feas: tolerance,
        // No bound is ever written as an infinite right-hand side, so there is nothing to presolve.
        presolve_enable: false,
        // Half the time goes into refining the linear solves; a few digits beyond the tolerance will do.
        iterative_refinement_reltol: 1e-4 * tolerance,
        iterative_refinement_abstol: 1e-4 * tolerance,
        ..DefaultSettings::default()
    }
}

/// A certificate of infeasibility at reduced accuracy certifies nothing, hence `Stalled`.
fn status(status: SolverStatus) -> Status {
    match status {
        SolverStatus::Solved => Status::Solved,
        SolverStatus::AlmostSolved => Status::AlmostSolved,
        SolverStatus::PrimalInfeasible => Status::Infeasible,
        SolverStatus::DualInfeasible => Status::Unbounded,
        SolverStatus::MaxIterations => Status::IterationLimit,
        SolverStatus::Unsolved
        | SolverStatus::AlmostPrimalInfeasible
        | SolverStatus::AlmostDualInfeasible
        | SolverStatus::MaxTime
        | SolverStatus::NumericalError
        | SolverStatus::InsufficientProgress
        | SolverStatus::CallbackTerminated => Status::Stalled,
    }
}
