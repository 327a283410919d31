//! A plan: roles, weighted links, what they cost, and how sure we are that nothing is cheaper.

use crate::bound::{BoundKind, Share};
use crate::device::Role;
use crate::problem::{Measured, Model, Problem};

pub use stlf_optim::status::Status;

/// A weighted link, α_ij.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlanLink {
    /// Sender, a source.
    pub from: usize,
    /// Receiver, a target.
    pub to: usize,
    /// α_ij, in (0, 1].
    pub weight: f64,
}

/// The three terms of the objective, each with its φ.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Terms {
    /// φ^S Σ S_i over sources.
    pub source: f64,
    /// φ^T Σ T_j over targets.
    pub target: f64,
    /// φ^E Σ K_ij α_ij / (α_ij + ε_E), or a whole link each under the pooled bound.
    pub energy: f64,
}

impl Terms {
    /// The objective.
    pub fn total(&self) -> f64 {
        self.source + self.target + self.energy
    }
}

/// Which method made a plan, and how it went.
#[derive(Debug, Clone, PartialEq)]
pub struct Solver {
    /// `exact` or `successive`.
    pub name: &'static str,
    /// Branch-and-bound nodes, or successive iterations.
    pub iterations: u64,
    /// Objective after each iteration, where the method records it.
    pub trace: Vec<f64>,
    /// What only the successive method has to say.
    pub successive: Option<SuccessiveReport>,
}

/// How far the paper's method came on its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SuccessiveReport {
    /// Objective of the relaxed problem where the iteration stopped.
    pub relaxed_objective: f64,
    /// Objective after rounding ψ and α, before polishing.
    pub rounded_objective: f64,
    /// What the exact planner found: the optimum, where that is proven.
    pub exact_objective: f64,
    /// Whether [`SuccessiveReport::exact_objective`] is proven.
    pub exact_is_proven: bool,
    /// Why the iteration ended.
    pub stop: super::planner::successive::Stop,
}

/// Roles and links with their cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// One per device.
    pub roles: Vec<Role>,
    /// Sorted by receiver, then sender.
    pub links: Vec<PlanLink>,
    /// What the plan costs, by term.
    pub terms: Terms,
    /// No plan costs less than this.
    pub lower_bound: f64,
    /// Optimal, or why not.
    pub status: Status,
    /// The bound that the target term used.
    pub bound: BoundKind,
    /// The method.
    pub solver: Solver,
}

impl Plan {
    /// What the plan costs.
    pub fn objective(&self) -> f64 {
        self.terms.total()
    }

    /// (objective − lower bound) / objective.
    pub fn gap(&self) -> f64 {
        stlf_optim::status::relative_gap(self.objective(), self.lower_bound)
    }

    /// The devices with a role.
    pub fn with_role(&self, role: Role) -> impl Iterator<Item = usize> + '_ {
        (0..self.roles.len()).filter(move |&i| self.roles[i] == role)
    }

    /// The links into a device.
    pub fn incoming(&self, to: usize) -> &[PlanLink] {
        incoming(&self.links, to)
    }

    /// Joules of all links; `None` with raw costs, which have no energies.
    pub fn joules(&self, problem: &Problem) -> Option<f64> {
        let joules: Option<f64> =
            self.links.iter().map(|l| problem.link_energy(l.from, l.to)).sum();
        // An empty sum of floats is −0.
        joules.map(|j| j + 0.0)
    }

    /// Joules if every source sent to every target it can reach.
    pub fn all_to_all_joules(&self, problem: &Problem) -> Option<f64> {
        let Model::Measured(m) = problem.model() else { return None };
        let sum = self
            .with_role(Role::Target)
            .flat_map(|to| m.links.incoming(to))
            .filter(|link| self.roles[link.from] == Role::Source)
            .map(|link| link.energy)
            .sum();
        Some(sum)
    }
}

/// The links into a device, of links that are sorted by receiver.
pub fn incoming(links: &[PlanLink], to: usize) -> &[PlanLink] {
    let start = links.partition_point(|l| l.to < to);
    let end = links.partition_point(|l| l.to <= to);
    &links[start..end]
}

/// The objective of `eq:obj_fxn_1` at given roles and weights, under the given bound.
pub fn evaluate(problem: &Problem, bound: BoundKind, roles: &[Role], links: &[PlanLink]) -> Terms {
    let source = (0..roles.len())
        .filter(|&i| roles[i] == Role::Source)
        .map(|i| problem.source_cost(i).unwrap_or(f64::INFINITY))
        .sum();
    let (mut target, mut energy) = (0.0, 0.0);
    for column in links.chunk_by(|a, b| a.to == b.to) {
        let (t, e) = column_cost(problem, bound, column);
        target += t;
        energy += e;
    }
    Terms { source, target, energy }
}

/// What one target costs: its weighted bound, and the energy of its links.
pub fn column_cost(problem: &Problem, bound: BoundKind, column: &[PlanLink]) -> (f64, f64) {
    let m = match problem.model() {
        Model::Measured(m) => m,
        Model::Costs(_) => {
            let cost = |l: &PlanLink| {
                let known = problem.link_cost(l.from, l.to);
                l.weight * known.map_or(f64::INFINITY, |c| c.total())
            };
            return (column.iter().map(cost).sum(), 0.0);
        }
    };
    let mut energy = 0.0;
    let mut shares = Vec::with_capacity(column.len());
    for l in column {
        let Some(link) = m.links.get(l.from, l.to) else { return (f64::INFINITY, 0.0) };
        energy += match bound {
            BoundKind::Paper => m.energy_cost_at(link.energy, l.weight),
            BoundKind::Pooled => m.energy_cost(link.energy),
        };
        shares.push(m.share(l, link.divergence));
    }
    let samples = column.first().map_or(1.0, |l| m.devices[l.to].samples() as f64);
    let target = match bound {
        BoundKind::Pooled => m.bound.pooled_target(&shares, samples),
        BoundKind::Paper => shares
            .iter()
            .map(|s| s.weight * m.bound.target(s.source_error, s.divergence, s.samples, samples))
            .sum(),
    };
    (m.weights.target * target, energy)
}

impl Measured {
    fn share(&self, link: &PlanLink, divergence: f64) -> Share {
        let sender = &self.devices[link.from];
        Share {
            weight: link.weight,
            source_error: sender.source_error.unwrap_or(f64::INFINITY),
            divergence,
            samples: sender.samples() as f64,
        }
    }
}
