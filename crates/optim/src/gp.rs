//! Geometric programs: stated, transformed to a convex program, solved, and transformed back.
//!
//! ```text
//! minimise  g₀(x)   subject to   g_i(x) ≤ 1,   f_l(x) = 1,   lower ≤ x ≤ upper,   x > 0
//! ```
//!
//! with posynomials `g` and monomials `f` (paper: equation `eq:GPformat`). In the logarithms of the
//! variables this is convex (`GPtoConvex`), and every posynomial of two or more terms is a set of
//! exponential cones.
//!
//! ```
//! use stlf_optim::gp::{GeometricProgram, Settings, Status};
//! use stlf_optim::posynomial::{Monomial, Variable};
//!
//! // The least of x + 1/x is 2, at x = 1.
//! let x = Monomial::from(Variable(0));
//! let program = GeometricProgram::new(1, x.clone() + x.powf(-1.0))?;
//! let solution = program.solve(&Settings::default());
//! assert_eq!(solution.status, Status::Solved);
//! assert!((solution.objective - 2.0).abs() < 1e-6 && (solution.values[0] - 1.0).abs() < 1e-3);
//! # Ok::<(), stlf_optim::gp::GpError>(())
//! ```

use thiserror::Error;

pub use crate::conic::Status;
use crate::conic::{Affine, ConicProgram, ConicSolution};
use crate::posynomial::{Monomial, Posynomial, Variable};

/// A geometric program, or a part of one, that makes no sense as stated.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum GpError {
    /// A coefficient that is zero, negative, infinite or not a number.
    #[error("the coefficient of a monomial must be positive and finite, not {coefficient}")]
    CoefficientNotPositive {
        /// The coefficient that was given.
        coefficient: f64,
    },
    /// An exponent that is infinite or not a number.
    #[error("the exponent of variable {} must be finite, not {exponent}", .variable.0)]
    ExponentNotFinite {
        /// The variable of this exponent.
        variable: Variable,
        /// The exponent that was given.
        exponent: f64,
    },
    /// A sum without terms, which is zero and therefore no posynomial.
    #[error("a posynomial needs at least one term")]
    EmptySum,
    /// A variable beyond the number of variables the program was made with.
    #[error("variable {} is unknown: the program has {count} variables, counted from 0", .variable.0)]
    UnknownVariable {
        /// The variable that the program does not have.
        variable: Variable,
        /// The number of variables of the program.
        count: usize,
    },
    /// Bounds that are not `0 ≤ lower ≤ upper`, or leave nothing positive.
    #[error("the bounds of variable {} must satisfy 0 ≤ lower ≤ upper and 0 < upper, not {lower}..{upper}", .variable.0)]
    BadBounds {
        /// The variable that was given these bounds.
        variable: Variable,
        /// The lower bound that was given.
        lower: f64,
        /// The upper bound that was given.
        upper: f64,
    },
    /// A reference point of the wrong length, or with an entry that is not positive and finite.
    #[error("a reference point needs {count} positive, finite entries")]
    BadPoint {
        /// The number of variables of the program.
        count: usize,
    },
}

/// How exactly and how long to solve.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Relative gap and residuals of the convex program, 1e-8 by default.
    pub tolerance: f64,
    /// Limit on interior-point steps, 200 by default; tens are usual.
    pub max_iterations: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { tolerance: 1e-8, max_iterations: 200 }
    }
}

/// `minimise g₀ s.t. g_i ≤ 1, f_l = 1, lower ≤ x ≤ upper` over positive variables (`eq:GPformat`).
#[derive(Clone, Debug)]
pub struct GeometricProgram {
    objective: Posynomial,
    inequalities: Vec<Posynomial>,
    equalities: Vec<Monomial>,
    /// `(0, ∞)` where there is none.
    bounds: Vec<(f64, f64)>,
}

/// What came of a geometric program.
#[derive(Clone, Debug)]
pub struct Solution {
    /// How the solve ended; it decides what the rest is worth.
    pub status: Status,
    /// The variables; all `NaN` if infeasible or unbounded.
    pub values: Vec<f64>,
    /// The objective at the values; infinite if infeasible, zero if unbounded.
    pub objective: f64,
    /// The sensitivities of the optimum; all `NaN` if infeasible or unbounded.
    pub duals: Duals,
    /// The number of iterations that the interior-point solver made.
    pub iterations: u32,
}

/// Multipliers of the convex form, which are relative sensitivities of the optimum `p*`: by how many
/// percent `p*` changes if the right-hand side of a constraint changes by one percent.
#[derive(Clone, Debug, PartialEq)]
pub struct Duals {
    /// `-∂ ln p* / ∂ ln u` of `g_i ≤ u` at `u = 1`; never negative.
    pub inequalities: Vec<f64>,
    /// `-∂ ln p* / ∂ ln u` of `f_l = u` at `u = 1`; of either sign.
    pub equalities: Vec<f64>,
    /// `∂ ln p* / ∂ ln lower`, per variable; zero where there is no lower bound.
    pub lower: Vec<f64>,
    /// `-∂ ln p* / ∂ ln upper`, per variable; zero where there is no upper bound.
    pub upper: Vec<f64>,
}

impl GeometricProgram {
    /// Minimises the objective over variables `0..variables`, so far without constraints.
    pub fn new(variables: usize, objective: impl Into<Posynomial>) -> Result<Self, GpError> {
        let program = Self {
            objective: objective.into(),
            inequalities: Vec::new(),
            equalities: Vec::new(),
            bounds: vec![(0.0, f64::INFINITY); variables],
        };
        program.objective.terms().iter().try_for_each(|term| program.knows(term))?;
        Ok(program)
    }

    /// Requires `posynomial ≤ 1`; returns the place of its dual.
    pub fn at_most_one(&mut self, posynomial: impl Into<Posynomial>) -> Result<usize, GpError> {
        let posynomial = posynomial.into();
        posynomial.terms().iter().try_for_each(|term| self.knows(term))?;
        self.inequalities.push(posynomial);
        Ok(self.inequalities.len() - 1)
    }

    /// Requires `monomial = 1`; returns the place of its dual.
    pub fn equal_to_one(&mut self, monomial: impl Into<Monomial>) -> Result<usize, GpError> {
        let monomial = monomial.into();
        self.knows(&monomial)?;
        self.equalities.push(monomial);
        Ok(self.equalities.len() - 1)
    }

    /// Requires `lower ≤ variable ≤ upper`, replacing earlier bounds; 0 and ∞ mean no bound.
    pub fn bound(&mut self, variable: Variable, lower: f64, upper: f64) -> Result<(), GpError> {
        let count = self.bounds.len();
        let place = self.bounds.get_mut(variable.0);
        let place = place.ok_or(GpError::UnknownVariable { variable, count })?;
        if !(lower >= 0.0 && lower <= upper && upper > 0.0 && lower < f64::INFINITY) {
            return Err(GpError::BadBounds { variable, lower, upper });
        }
        *place = (lower, upper);
        Ok(())
    }

    /// Returns the objective, which is minimised.
    pub fn objective(&self) -> &Posynomial {
        &self.objective
    }

    /// The posynomials that must be at most one.
    pub fn inequalities(&self) -> &[Posynomial] {
        &self.inequalities
    }

    /// Returns the monomials that must equal one.
    pub fn equalities(&self) -> &[Monomial] {
        &self.equalities
    }

    /// Solves the program, measuring every variable from one.
    pub fn solve(&self, settings: &Settings) -> Solution {
        self.solve_from(&vec![1.0; self.bounds.len()], settings)
    }

    /// Solves, measuring every variable and the objective from their values at `reference`. The nearer
    /// that point is to the solution, the better the convex program is scaled. It need not be feasible.
    pub fn solve_near(&self, reference: &[f64], settings: &Settings) -> Result<Solution, GpError> {
        let count = self.bounds.len();
        if reference.len() != count || !reference.iter().all(|x| *x > 0.0 && x.is_finite()) {
            return Err(GpError::BadPoint { count });
        }
        Ok(self.solve_from(reference, settings))
    }

    fn solve_from(&self, reference: &[f64], settings: &Settings) -> Solution {
        let transform = LogTransform::forward(self, reference);
        let answer = transform.convex.solve(settings.tolerance, settings.max_iterations);
        transform.inverse(self, &answer)
    }

    fn knows(&self, monomial: &Monomial) -> Result<(), GpError> {
        let count = self.bounds.len();
        match monomial.exponents().iter().find(|(v, _)| v.0 >= count) {
            Some(&(variable, _)) => Err(GpError::UnknownVariable { variable, count }),
            None => Ok(()),
        }
    }
}

/// The change of variables `z = ln x - ln reference` (`GPtoConvex`): the convex program, and what is
/// needed to read its answer back.
///
/// A monomial becomes affine, `m(z) = ln m(reference) + a·z`. So a bound, an equality and an inequality
/// of one term are each one linear row. An inequality of `k` terms is
///
/// ```text
/// exp(m_t(z)) ≤ u_t   for t < k,      exp(m_k(z)) ≤ 1 - Σ_{t<k} u_t
/// ```
///
/// that is `k` cones, `k - 1` new variables and no linear row. The objective is `ln g₀`, as the least `T`
/// with `g₀ / exp(T) ≤ 1`, unless it has one term and is affine itself.
struct LogTransform {
    convex: ConicProgram,
    log_reference: Vec<f64>,
    lower: Vec<Option<usize>>,
    upper: Vec<Option<usize>>,
    inequalities: Vec<Row>,
    equalities: Vec<usize>,
}

/// Where the dual of an inequality is found in the convex program.
enum Row {
    Linear(usize),
    /// The cone of what the other terms leave of 1.
    Cone(usize),
}

impl LogTransform {
    fn forward(program: &GeometricProgram, reference: &[f64]) -> Self {
        let mut transform = Self {
            convex: ConicProgram::new(),
            log_reference: reference.iter().map(|x| x.ln()).collect(),
            lower: Vec::new(),
            upper: Vec::new(),
            inequalities: Vec::new(),
            equalities: Vec::new(),
        };
        let mut costs = vec![0.0; reference.len()];
        if let [only] = program.objective.terms() {
            for &(v, a) in only.exponents() {
                costs[v.0] = a;
            }
        }
        for cost in costs {
            transform.convex.variable(cost);
        }
        if program.objective.terms().len() > 1 {
            let epigraph = transform.convex.variable(1.0);
            let scale = program.objective.log_eval(reference);
            let terms = program.objective.terms().iter().map(|term| {
                let mut affine = transform.affine(term);
                affine.constant -= scale;
                affine.coefficients.push((epigraph, -1.0));
                affine
            });
            let terms = terms.collect();
            transform.at_most_one(terms);
        }
        for inequality in &program.inequalities {
            let terms = inequality.terms().iter().map(|t| transform.affine(t)).collect();
            let row = transform.at_most_one(terms);
            transform.inequalities.push(row);
        }
        for equality in &program.equalities {
            let row = transform.affine(equality);
            let place = transform.convex.equal_to_zero(row);
            transform.equalities.push(place);
        }
        for (column, &(lower, upper)) in program.bounds.iter().enumerate() {
            let log = transform.log_reference[column];
            let mut row = |present: bool, constant: f64, sign: f64| {
                present.then(|| {
                    transform
                        .convex
                        .at_least_zero(Affine { constant, coefficients: vec![(column, sign)] })
                })
            };
            transform.lower.push(row(lower > 0.0, log - lower.ln(), 1.0));
            transform.upper.push(row(upper < f64::INFINITY, upper.ln() - log, -1.0));
        }
        transform
    }

    /// The logarithm of a monomial, as a function of the shifted logarithms of the variables.
    fn affine(&self, monomial: &Monomial) -> Affine {
        let powers = monomial.exponents().iter();
        let shift: f64 = powers.clone().map(|&(v, a)| a * self.log_reference[v.0]).sum();
        Affine {
            constant: monomial.log_coefficient() + shift,
            coefficients: powers.map(|&(v, a)| (v.0, a)).collect(),
        }
    }

    /// Adds the constraint `Σ exp(term) ≤ 1`, and returns where its multiplier is.
    fn at_most_one(&mut self, mut terms: Vec<Affine>) -> Row {
        let largest = (0..terms.len())
            .max_by(|&i, &j| terms[i].constant.total_cmp(&terms[j].constant))
            .expect("a posynomial has at least one term");
        let last = terms.swap_remove(largest);
        if terms.is_empty() {
            let negated = last.coefficients.into_iter().map(|(column, a)| (column, -a));
            return Row::Linear(self.convex.at_least_zero(Affine {
                constant: -last.constant,
                coefficients: negated.collect(),
            }));
        }
        let mut left = Affine::constant(1.0);
        for term in terms {
            let value = self.convex.variable(0.0);
            left.coefficients.push((value, -1.0));
            let value = Affine { constant: 0.0, coefficients: vec![(value, 1.0)] };
            self.convex.exponential([term, Affine::constant(1.0), value]);
        }
        Row::Cone(self.convex.exponential([last, Affine::constant(1.0), left]))
    }

    fn inverse(&self, program: &GeometricProgram, answer: &ConicSolution) -> Solution {
        let known = !matches!(answer.status, Status::Infeasible | Status::Unbounded);
        let or_nan = |value: f64| if known { value } else { f64::NAN };
        let logs = self.log_reference.iter().zip(&answer.x);
        let values: Vec<f64> = logs.map(|(log, z)| or_nan((log + z).exp())).collect();
        let bound = |place: &Option<usize>| or_nan(place.map_or(0.0, |p| answer.at_least_zero[p]));
        let duals = Duals {
            inequalities: self
                .inequalities
                .iter()
                .map(|row| match *row {
                    Row::Linear(place) => or_nan(answer.at_least_zero[place]),
                    Row::Cone(place) => or_nan(answer.exponential[place][2]),
                })
                .collect(),
            equalities: self.equalities.iter().map(|&p| or_nan(-answer.equal_to_zero[p])).collect(),
            lower: self.lower.iter().map(bound).collect(),
            upper: self.upper.iter().map(bound).collect(),
        };
        Solution {
            status: answer.status,
            objective: match answer.status {
                Status::Infeasible => f64::INFINITY,
                Status::Unbounded => 0.0,
                _ => program.objective.eval(&values),
            },
            values,
            duals,
            iterations: answer.iterations,
        }
    }
}
