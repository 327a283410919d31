//! A plan: roles, hand-overs, weighted links, what they cost, and how sure we are that nothing is cheaper.

mod cost;
mod legs;

use std::collections::BTreeSet;

use crate::bound::BoundKind;
use crate::device::Role;
use crate::error::BrokenRing;
use crate::problem::{Model, Problem, is_far};

pub(crate) use cost::handed_on_cost;
pub use cost::{column_cost, evaluate};
pub use legs::{Leg, RingPlace, Way, been_at, legs, way_to_targets};
pub use stlf_optim::status::Status;

/// A link that a plan uses, with α_ij, the weight of the sender's model in the receiver's mixture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlanLink {
    /// The index of the sender, a source.
    pub from: usize,
    /// The index of the receiver, a target.
    pub to: usize,
    /// α_ij, in (0, 1]; the weights into a target add up to 1.
    pub weight: f64,
}

/// A source hands its model on to another source, which continues training it on its own labels.
///
/// Hand-overs that lead back to where they began are a *ring*. Its *last* source is the one that sends to targets, and the first is the
/// one after it. A model goes round twice: it is trained on at every source, and on the second way the mean of what came and what the
/// source made of it is handed on, so that the model which the last source sends has forgotten none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handover {
    /// The index of the source whose model it is.
    pub from: usize,
    /// The source that continues training it.
    pub to: usize,
}

/// The three terms of the objective, each with its φ.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Terms {
    /// φ^S Σ S_i, the weighted sum of the bounds of all sources.
    pub source: f64,
    /// φ^T Σ T_j, the weighted sum of the bounds of all targets.
    pub target: f64,
    /// φ^E Σ K_ij α_ij / (α_ij + ε_E), or a whole link each under the pooled bound; and φ^E K of every hand-over.
    pub energy: f64,
}

impl Terms {
    /// Returns the objective, the sum of the terms.
    pub fn total(&self) -> f64 {
        self.source + self.target + self.energy
    }
}

/// Which method made a plan, and how it went.
#[derive(Debug, Clone, PartialEq)]
pub struct Solver {
    /// The solver's name, `exact` or `successive`.
    pub name: &'static str,
    /// The number of nodes of branch and bound, or of iterations of the successive method.
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
    /// Whether [`SuccessiveReport::exact_objective`] is proven to be the optimum.
    pub exact_is_proven: bool,
    /// Why the iterations of the paper's method ended.
    pub stop: super::planner::successive::Stop,
}

/// Roles and links with their cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The role of each device, in the order of the problem.
    pub roles: Vec<Role>,
    /// The links in use with their weights, sorted by receiver, then sender.
    pub links: Vec<PlanLink>,
    /// The hand-overs, sorted by receiver, who takes one model at most.
    pub handovers: Vec<Handover>,
    /// What the plan costs, by term.
    pub terms: Terms,
    /// No plan costs less than this.
    pub lower_bound: f64,
    /// Whether the plan is proven optimal, or why the search ended without that proof.
    pub status: Status,
    /// The bound that the target term used.
    pub bound: BoundKind,
    /// The solver that found the plan.
    pub solver: Solver,
}

impl Plan {
    /// Returns the objective of the plan, the sum of its terms.
    pub fn objective(&self) -> f64 {
        self.terms.total()
    }

    /// Returns (objective − lower bound) / objective, the most that a better plan could save.
    pub fn gap(&self) -> f64 {
        stlf_optim::status::relative_gap(self.objective(), self.lower_bound)
    }

    /// Returns the indices of the devices that have this role, ascending.
    pub fn with_role(&self, role: Role) -> impl Iterator<Item = usize> + '_ {
        (0..self.roles.len()).filter(move |&i| self.roles[i] == role)
    }

    /// Returns the links into a device, sorted by sender.
    pub fn incoming(&self, to: usize) -> &[PlanLink] {
        incoming(&self.links, to)
    }

    /// The targets to which no source is near: all that reach them are [`FAR`](crate::problem::FAR) away. None with raw costs, or with
    /// divergences of another scale, which go beyond 2.
    pub fn strangers(&self, problem: &Problem) -> Vec<usize> {
        let Model::Measured(m) = problem.model() else { return Vec::new() };
        let is_far = |target: &usize| {
            let mut sources =
                m.links.incoming(*target).filter(|link| self.roles[link.from] == Role::Source);
            sources.all(|link| is_far(link.divergence))
        };
        self.with_role(Role::Target).filter(is_far).collect()
    }

    /// Whether a device sends its model to a target.
    pub fn sends(&self, source: usize) -> bool {
        self.links.iter().any(|link| link.from == source)
    }

    /// Returns the source whose model this source continues training, if any.
    pub fn handed_from(&self, to: usize) -> Option<usize> {
        handed_from(&self.handovers, to)
    }

    /// The sources that a source's model has been at, the source itself last.
    pub fn route(&self, source: usize) -> Vec<usize> {
        route(&self.handovers, source)
    }

    /// How often a model is sent over a hand-over.
    pub fn times(&self, handover: Handover) -> usize {
        times(&self.handovers, &self.links, handover)
    }

    /// Models that are sent, over links and hand-overs.
    pub fn models_sent(&self) -> usize {
        self.links.len() + self.handovers.iter().map(|&h| self.times(h)).sum::<usize>()
    }

    /// Joules of a hand-over, of all models that are sent over it; `None` with raw costs, which have no energies.
    pub fn handover_joules(&self, problem: &Problem, handover: Handover) -> Option<f64> {
        let joules = problem.link_energy(handover.from, handover.to)?;
        Some(self.times(handover) as f64 * joules)
    }

    /// Joules of the links into targets as a part of those of all links, hand-overs not counted; `None` with raw costs, or where all links
    /// cost nothing.
    pub fn links_share(&self, problem: &Problem) -> Option<f64> {
        let links = self.links.iter().map(|l| problem.link_energy(l.from, l.to));
        let (joules, all) = (links.sum::<Option<f64>>()?, self.all_to_all_joules(problem)?);
        (all > 0.0).then(|| joules / all)
    }

    /// Joules of all links and hand-overs; `None` with raw costs, which have no energies.
    pub fn joules(&self, problem: &Problem) -> Option<f64> {
        let links = self.links.iter().map(|l| problem.link_energy(l.from, l.to));
        let handovers = self.handovers.iter().map(|&h| self.handover_joules(problem, h));
        let joules: Option<f64> = links.chain(handovers).sum();
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

/// Whose model a source trains on, of hand-overs that are sorted by receiver.
pub fn handed_from(handovers: &[Handover], to: usize) -> Option<usize> {
    handovers.binary_search_by_key(&to, |h| h.to).ok().map(|at| handovers[at].from)
}

/// The sources that a source's model has been at, each once, the source itself last.
pub fn route(handovers: &[Handover], source: usize) -> Vec<usize> {
    let mut route = vec![source];
    while let Some(from) = handed_from(handovers, route[route.len() - 1])
        && !route.contains(&from)
    {
        route.push(from);
    }
    route.reverse();
    route
}

/// Whether a source is on a ring: its model comes back to it.
pub fn is_on_ring(handovers: &[Handover], source: usize) -> bool {
    handed_from(handovers, route(handovers, source)[0]) == Some(source)
}

/// How often a model is sent over a hand-over: once, and twice within a ring; from its last source to its first again once.
pub fn times(handovers: &[Handover], links: &[PlanLink], handover: Handover) -> usize {
    let closes = || links.iter().any(|link| link.from == handover.from);
    match is_on_ring(handovers, handover.from) && is_on_ring(handovers, handover.to) {
        true if !closes() => 2,
        _ => 1,
    }
}

/// What no plan can do with hand-overs that are sorted by receiver, one for each.
///
/// # Errors
/// Says which rule they break.
pub fn check_handovers(handovers: &[Handover], links: &[PlanLink]) -> Result<(), BrokenRing> {
    let senders: BTreeSet<usize> = links.iter().map(|link| link.from).collect();
    for &Handover { from, to } in handovers {
        let route = route(handovers, to);
        let (is_ring, comes_back) = (is_on_ring(handovers, to), handed_from(handovers, route[0]));
        if !is_ring && (comes_back.is_some() || is_on_ring(handovers, from)) {
            return Err(BrokenRing::Leaves { to });
        }
        let sending = route.iter().copied().filter(|source| senders.contains(source));
        if is_ring && sending.clone().count() != 1 {
            return Err(BrokenRing::Senders { senders: sending.collect() });
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::Device;
    use crate::planner::{Outcome, optimum};
    use crate::problem::{Links, Parts, Preset};

    #[test]
    fn targets_without_a_near_source_are_named() {
        let device = |i: usize| Device {
            name: format!("d{i}"),
            labeled: if i < 2 { 100 } else { 0 },
            unlabeled: 10,
            source_error: (i < 2).then_some(0.1),
        };
        // Target 2 is far from both sources, target 3 from one of them; a hundred times as much is of another scale.
        let strangers = |times: f64| {
            let mut divergence = vec![0.0; 16];
            for (from, to, d) in [(0, 2, 1.95), (1, 2, 2.0), (0, 3, 1.95), (1, 3, 0.5)] {
                divergence[4 * from + to] = times * d;
            }
            let links = Links::from_rows(4, divergence, vec![1.0; 16]);
            let (preset, devices) = (Preset::Balanced, (0..4).map(device).collect());
            let weights = preset.weights();
            let parts = Parts::measured(devices, links, preset, weights, BoundKind::Pooled);
            let problem = Problem::new(parts).unwrap();
            let Outcome::Planned(plan) = optimum(&problem) else { panic!("there is a plan") };
            plan.strangers(&problem)
        };
        assert_eq!(strangers(1.0), [2]);
        assert_eq!(strangers(0.5), [] as [usize; 0]);
        assert_eq!(strangers(100.0), [] as [usize; 0]);
    }
}
