//! The paper's solver: successive geometric programs (Algorithm `alg:optimization_iteration`).
//!
//! A numerical core that knows only numbers: which device may be a source at what cost `S_i`, and which
//! link costs what error `T_ij` and energy `K_ij`. It minimises the relaxation (𝒫′) of the paper
//! (`app_eq:prob_prime`), in the well-posed form:
//!
//! ```text
//! minimise   φ^S Σ χ^S_i + φ^T Σ χ^T_ij + φ^E Σ K_ij α_ij / (α_ij + ε_E) + N Σ_j χ^C_j
//! such that  (1 - ψ_i) S_i ≤ χ^S_i,      ψ_j α_ij T_ij ≤ χ^T_ij,
//!            χ^C_j - ε_C ≤ Σ_i α_ij - ψ_j ≤ χ^C_j + ε_C,
//!            α_ij + ψ_i ≤ 1,     floor ≤ ψ, α ≤ 1
//! ```
//!
//! The paper has `ψ_j (1 - ψ_i) α_ij T_ij ≤ χ^T_ij`, which is the same where roles are whole and much
//! weaker where they are not; [`TargetTerm`] chooses. Its `χ^C_{i,j}` is bounded by the same two expressions
//! for every `i`, so there is one per receiver, and it counts `N` times.
//!
//! Each iteration condenses the denominators at the last iterate
//! (`approximations`) and solves the geometric program that results. Its feasible set lies inside that
//! of (𝒫′) and holds the iterate, and its objective lies above that of (𝒫′) and meets it there: so the
//! objective of (𝒫′) never rises, whatever the start.
//!
//! The auxiliary `χ` are functions of `ψ` and `α` (the least that the constraints allow), so an iterate is
//! `ψ` and `α`.

mod approximations;
mod program;
mod rounding;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use stlf_optim::gp::{self, GpError};

use crate::problem::Weights;
use program::Relaxation;
pub use rounding::{Rounded, round};

/// What the scheme is run on. Devices are counted from 0.
pub struct Instance<'a> {
    /// `S_i`, or `None` where the device must be a target.
    pub source: &'a [Option<f64>],
    /// Whether the device must be a source.
    pub must_be_source: &'a [bool],
    /// By receiver, the links into it; only from devices that may be sources, never from itself.
    pub links: &'a [Vec<Link>],
    /// The weights `φ^S`, `φ^T` and `φ^E` of the objective's terms.
    pub weights: Weights,
    /// `ε_E` of the energy term, above 0.
    pub energy_epsilon: f64,
    /// With the noise term: `T̂` of (receiver `j`, sender `k`, sender `i`), how often the models of `k` and
    /// `i` differ on the data of `j`.
    pub disagreement: Option<&'a dyn Fn(usize, usize, usize) -> f64>,
}

impl Instance<'_> {
    fn check(&self) -> Result<(), GpError> {
        let Weights { source, target, energy } = self.weights;
        let links = self.links.iter().flatten().flat_map(|link| [link.error, link.energy]);
        let costs = self.source.iter().flatten().copied().chain(links);
        let mut numbers = costs.chain([source, target, energy, self.energy_epsilon]);
        match numbers.find(|number| !(*number >= 0.0 && number.is_finite())) {
            Some(coefficient) => Err(GpError::CoefficientNotPositive { coefficient }),
            None => Ok(()),
        }
    }
}

/// A link that may carry a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// The sender `i`, a device that may be a source.
    pub from: usize,
    /// `T_ij`, the bound on the receiver's error with this sender, without the noise term.
    pub error: f64,
    /// `K_ij`, the energy of the link.
    pub energy: f64,
}

/// How the error of a target is written while roles are fractions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TargetTerm {
    /// `ψ_j α_ij T_ij`. Since `α_ij ≤ 1 - ψ_i`, it is the paper's term wherever the roles are whole, but
    /// here half a source does not make half an error.
    #[default]
    Tight,
    /// `ψ_j (1 - ψ_i) α_ij T_ij`, the paper's. Many fractional sources that each send a little make this
    /// small: it has minima far below any plan, near which all devices round to targets. It needs a start
    /// near zero.
    Paper,
}

/// When to stop, and which number stands for zero.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// Limit on iterations; 100 by default.
    pub max_iterations: usize,
    /// Ends when no `ψ` and no `α` moves by more than this; 3e-4 by default.
    /// The geometric programs leave `α` undecided by about the root of their own tolerance.
    pub tolerance: f64,
    /// What stands for zero, as a geometric program knows only positive numbers; 1e-6 by default.
    pub floor: f64,
    /// `ε_C`, by how much a column may miss its role; 1e-2 by default, as in the paper.
    pub column_epsilon: f64,
    /// `ψ` of the devices that may be either, at the start; ½ by default.
    pub start: f64,
    /// How the error of a target is written.
    pub target_term: TargetTerm,
    /// How often a step may be doubled while the objective falls; 10 by default, 0 is the paper's plain
    /// iteration, which creeps.
    pub doublings: u32,
    /// Accuracy of each geometric program; 1e-6 by default.
    pub inner: gp::Settings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_iterations: 100,
            tolerance: 3e-4,
            floor: 1e-6,
            column_epsilon: 1e-2,
            start: 0.5,
            target_term: TargetTerm::Tight,
            doublings: 10,
            inner: gp::Settings { tolerance: 1e-6, ..gp::Settings::default() },
        }
    }
}

/// What an observer is told after each iteration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Iteration {
    /// The number of the iteration, counted from 1.
    pub index: usize,
    /// The objective of (𝒫′) at the iterate.
    pub objective: f64,
    /// The largest change of a `ψ` or an `α`.
    pub largest_move: f64,
}

/// Why the iterations of the method ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// `ψ` and `α` moved less than the tolerance, or the solver saw nothing better.
    Converged,
    /// The limit on iterations came first.
    IterationLimit,
    /// The observer asked to stop after an iteration.
    Observer,
    /// No inner solve, however scaled, led to a better iterate.
    Stalled(gp::Status),
    /// This device must be a target and has no link; nothing was iterated.
    Unreachable(usize),
}

/// Where the iterations ended: relaxed roles and weights, with their objective.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// `ψ` of each device, 0 to 1.
    pub psi: Vec<f64>,
    /// `α` by receiver, in the order of its links.
    pub alpha: Vec<Vec<f64>>,
    /// The objective of (𝒫′) at these `ψ` and `α`.
    pub objective: f64,
    /// The terms of (𝒫) at the same relaxed point, without the auxiliary `χ^C`.
    pub relaxed: f64,
    /// The objective of (𝒫′) at the start and after each iteration; it never rises.
    pub trace: Vec<f64>,
    /// Why the method ended here.
    pub stop: Stop,
    /// The number of iterations that were made, at most the limit of the settings.
    pub iterations: usize,
}

/// `ψ` and `α`, the latter by receiver.
#[derive(Debug, Clone)]
struct Iterate {
    psi: Vec<f64>,
    alpha: Vec<Vec<f64>>,
}

impl Iterate {
    /// By device, the largest change of its `ψ` or of an `α` it receives.
    fn moves(&self, other: &Iterate) -> impl Iterator<Item = f64> {
        self.psi.iter().zip(&other.psi).zip(self.alpha.iter().zip(&other.alpha)).map(
            |((psi, other_psi), (alpha, other_alpha))| {
                let alphas = alpha.iter().zip(other_alpha).map(|(a, b)| (a - b).abs());
                alphas.fold((psi - other_psi).abs(), f64::max)
            },
        )
    }
}

/// Runs the scheme from a start that favours no device. The observer is called after every iteration and may stop it.
///
/// # Errors
/// If a number of the instance is negative, infinite or not a number, or a setting that must be positive
/// is not.
pub fn solve(
    instance: &Instance<'_>,
    settings: &Settings,
    observer: &mut dyn FnMut(&Iteration) -> ControlFlow<()>,
) -> Result<Outcome, GpError> {
    instance.check()?;
    let relaxation = match Relaxation::new(instance, settings) {
        Ok(relaxation) => relaxation,
        Err(device) => return Ok(unreachable(instance, device)),
    };
    let mut iterate = relaxation.start();
    let mut trace = vec![relaxation.objective(&iterate)];
    let stop = loop {
        let (index, objective) = (trace.len(), trace[trace.len() - 1]);
        if index > settings.max_iterations {
            break Stop::IterationLimit;
        }
        let (next, next_objective) = match step(&relaxation, &iterate, objective, settings)? {
            Step::Better(next, objective) => (next, objective),
            Step::None(stop) => break stop,
        };
        let largest_move = next.moves(&iterate).fold(0.0, f64::max);
        iterate = next;
        trace.push(next_objective);
        if observer(&Iteration { index, objective: next_objective, largest_move }).is_break() {
            break Stop::Observer;
        }
        if largest_move < settings.tolerance {
            break Stop::Converged;
        }
    };
    Ok(Outcome {
        objective: trace[trace.len() - 1],
        relaxed: relaxation.terms(&iterate),
        iterations: trace.len() - 1,
        psi: iterate.psi,
        alpha: iterate.alpha,
        trace,
        stop,
    })
}

enum Step {
    /// An iterate whose objective, the second, is not above the last one's.
    Better(Iterate, f64),
    None(Stop),
}

/// One iteration. Should the solver fail, or end at something worse, the same program is tried in other
/// units before giving up.
fn step(
    relaxation: &Relaxation<'_>,
    iterate: &Iterate,
    objective: f64,
    settings: &Settings,
) -> Result<Step, GpError> {
    let point = relaxation.point(iterate);
    let Some(program) = relaxation.condensed(&point)? else {
        return Ok(Step::None(Stop::Converged));
    };
    let mut solution = program.solve_near(&point, &settings.inner)?;
    for last in [false, true] {
        if solution.values.iter().all(|value| value.is_finite()) {
            let towards = relaxation.iterate(&solution.values);
            if let Some(better) = search(relaxation, iterate, &towards, objective, settings) {
                return Ok(better);
            }
        }
        if !last {
            solution = program.solve(&settings.inner);
        }
    }
    let promised = 1.0 - solution.objective / program.objective().eval(&point);
    Ok(Step::None(match solution.status {
        gp::Status::Solved | gp::Status::AlmostSolved if promised < NEGLIGIBLE => Stop::Converged,
        status => Stop::Stalled(status),
    }))
}

/// The best of a few points from `iterate` towards and beyond the solution of the geometric program,
/// where the objective is not above the last one's. All of the way is a plain iteration; a part of it is
/// for a solution that is only almost one; beyond it, because the condensed energy term is nearly flat and
/// plain iterations creep.
fn search(
    relaxation: &Relaxation<'_>,
    iterate: &Iterate,
    towards: &Iterate,
    objective: f64,
    settings: &Settings,
) -> Option<Step> {
    let at = |part: f64| {
        let candidate = relaxation.between(iterate, towards, part);
        let value = relaxation.objective(&candidate);
        let feasible = relaxation.shortfall(&candidate) < NEGLIGIBLE;
        (feasible && value <= objective).then_some((candidate, value))
    };
    let Some(mut best) = at(1.0) else {
        return [0.5, 0.1].into_iter().find_map(at).map(|(next, value)| Step::Better(next, value));
    };
    for doubling in 1..=settings.doublings {
        match at(f64::from(doubling).exp2()) {
            Some(farther) if farther.1 < best.1 => best = farther,
            _ => break,
        }
    }
    Some(Step::Better(best.0, best.1))
}

/// What the inner solver cannot tell from zero.
const NEGLIGIBLE: f64 = 1e-5;

fn unreachable(instance: &Instance<'_>, device: usize) -> Outcome {
    let psi = instance.source.iter().map(|s| if s.is_some() { 0.0 } else { 1.0 });
    Outcome {
        psi: psi.collect(),
        alpha: instance.links.iter().map(|links| vec![0.0; links.len()]).collect(),
        objective: f64::INFINITY,
        relaxed: f64::INFINITY,
        trace: Vec::new(),
        stop: Stop::Unreachable(device),
        iterations: 0,
    }
}
