//! Why a device has its role, what came second, and what would change the answer.
//!
//! Every comparison is a plan of its own: the best one in which the device has the other role, or
//! may not use its main link. What would flip a choice is then a crossing of two optimal values,
//! found in `flip`. Where the plan hands models on, so do the plans that it is compared with; what would flip a choice is then told of
//! hand-overs alone, in `handover`.

mod account;
mod flip;
mod handover;
mod sentences;

pub use account::{Account, Part, Term, account};
pub use handover::TakenModel;
pub use sentences::{Sentences, doubt};

use stlf_optim::status::Stop;

use crate::bound::BoundKind;
use crate::device::Role;
use crate::plan::{Plan, PlanLink, Status};
use crate::planner::handover::Forms;
use crate::planner::{self, Infeasible, Limits, Observer, Outcome, Progress};
use crate::problem::{Model, Problem};

/// Why one device has its role and its links.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The index of the device that is explained.
    pub device: usize,
    /// The role that the device has in the plan.
    pub role: Role,
    /// Whether the user fixed that role, outright or by a required link.
    pub pinned: bool,
    /// The device's part of the objective, by term.
    pub account: Account,
    /// The links that leave it, if a source.
    pub sends: Vec<PlanLink>,
    /// The links that reach it, if a target.
    pub receives: Vec<PlanLink>,
    /// The best plan in which it has the other role.
    pub other_role: Alternative,
    /// What would give it the other role. Absent where no other role is possible or the role is
    /// fixed, and for a plan that is not optimal and would gain by the change.
    pub role_flip: Option<Flip>,
    /// The link that a target relies on most.
    pub main_link: Option<MainLink>,
    /// The model that a source continues training, if another source hands it one.
    pub takes: Option<TakenModel>,
    /// The sources that it hands its model on to.
    pub hands_to: Vec<usize>,
    /// Whether every plan behind these figures is proven optimal, the explained one included.
    pub proven: bool,
}

/// The heaviest link of a target.
#[derive(Debug, Clone, PartialEq)]
pub struct MainLink {
    /// The link with the largest weight.
    pub link: PlanLink,
    /// The best plan in which the target does not use the link, or why there is none.
    pub without: Alternative,
    /// What would make the target drop it: divergence and energy, or the cost where costs are raw.
    pub flips: Vec<Flip>,
}

/// A plan that differs in one point, or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub enum Alternative {
    /// There are such plans, and this is the best of them.
    Possible(Rival),
    /// There is no such plan, for this reason.
    Impossible(Impossible),
}

/// The best plan among those that differ in the point in question.
#[derive(Debug, Clone, PartialEq)]
pub struct Rival {
    /// How much more it costs. Negative only if the explained plan is not optimal or a pin costs.
    pub extra: f64,
    /// What the device itself costs there.
    pub own: f64,
    /// The role of the explained device in that plan.
    pub role: Role,
    /// The device's links there, if a target.
    pub receives: Vec<PlanLink>,
    /// The indices of the other devices whose role differs in that plan.
    pub also_change: Vec<usize>,
}

/// Why an alternative does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Impossible {
    /// The device has no labeled data and cannot train.
    NoLabels,
    /// The user requires this link, as (sender, receiver).
    Required(usize, usize),
    /// Some target would be left without a source.
    Infeasible(Infeasible),
}

/// The value of one measurement at which the optimal choice changes, all else unchanged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flip {
    /// The measurement, or the raw cost, that would have to change.
    pub quantity: Quantity,
    /// The value of the measurement as the problem gives it.
    pub now: f64,
    /// Where the choice changes; `None` if no finite value at least 0 changes it.
    pub at: Option<f64>,
}

/// A measurement that can flip a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// ε̂_i, the source error of the device.
    SourceError,
    /// f_i of the device, where costs are raw.
    SourceCost,
    /// d̂_ij of the main link, in its direction only.
    Divergence,
    /// K_ij of the main link, joules.
    Energy,
    /// c_ij of the main link, where costs are raw.
    LinkCost,
}

/// Explains one device of a plan for `problem`, which must be the problem that was planned.
///
/// Takes a handful of exact solves; `limits` hold for each of them. Once `observer` ended one, what
/// would flip a choice is no longer looked for.
pub fn explain(
    problem: &Problem,
    plan: &Plan,
    device: usize,
    limits: &Limits,
    observer: &mut Observer<'_>,
) -> Explanation {
    let proven = plan.status == Status::Optimal;
    let mut ask = Ask { problem, plan, limits, observer, proven, stopped: false };
    let role = plan.roles[device];
    let pinned = problem.pin(device).is_some();
    let (other_role, rival) = ask.other_role(device);
    let role_flip = match rival {
        Some(rival) if !pinned && ask.is_affine() && ask.is_worse(&rival) => {
            ask.role_flip(device, &rival)
        }
        _ => None,
    }
    .filter(|_| !ask.stopped);
    let main_link = plan
        .incoming(device)
        .iter()
        .copied()
        .reduce(|best, link| if link.weight > best.weight { link } else { best })
        .map(|link| ask.main_link(link));
    let takes = plan.handed_from(device).and_then(|_| {
        let alone = ask.solve_with(problem, None).ok()?;
        let (objective, nodes) = (plan.objective(), plan.solver.iterations);
        let progress = Progress { objective, lower_bound: 0.0, nodes };
        handover::taken_model(problem, plan, &alone, device, &mut || (ask.observer)(&progress))
    });
    let proven = ask.proven;
    Explanation {
        device,
        role,
        pinned,
        account: account(problem, plan, device),
        sends: plan.links.iter().filter(|l| l.from == device).copied().collect(),
        receives: plan.incoming(device).to_vec(),
        other_role,
        role_flip,
        main_link,
        takes,
        hands_to: plan.handovers.iter().filter(|h| h.from == device).map(|h| h.to).collect(),
        proven,
    }
}

/// Asks what-if questions about one plan, and remembers whether each answer was proven.
struct Ask<'a, 'o> {
    problem: &'a Problem,
    plan: &'a Plan,
    limits: &'a Limits,
    observer: &'a mut Observer<'o>,
    proven: bool,
    /// Whether the observer ended one of the searches.
    stopped: bool,
}

impl Ask<'_, '_> {
    /// A plan that hands models on where the explained one does.
    fn solve(&mut self, problem: &Problem) -> Result<Plan, Infeasible> {
        self.solve_with(problem, (!self.plan.handovers.is_empty()).then_some(Forms::ALL))
    }

    fn solve_with(
        &mut self,
        problem: &Problem,
        handovers: Option<Forms>,
    ) -> Result<Plan, Infeasible> {
        let limits = *self.limits;
        let settings = planner::Settings { limits, handovers, ..planner::Settings::default() };
        match planner::plan(problem, &settings, self.observer) {
            Outcome::Planned(plan) => {
                self.proven &= plan.status == Status::Optimal;
                self.stopped |= plan.status == Status::Feasible(Stop::Observer);
                Ok(*plan)
            }
            Outcome::Infeasible(reason) => Err(reason),
        }
    }

    /// Whether costs are affine in what is measured of a device or a link: a model that is handed on mixes all that it has been at.
    fn is_affine(&self) -> bool {
        self.plan.handovers.is_empty()
    }

    /// Whether the explained plan is at least as good, so that a flip has a meaning.
    fn is_worse(&self, rival: &Plan) -> bool {
        rival.objective() >= self.plan.objective() * (1.0 - stlf_optim::status::TOLERANCE)
    }

    fn other_role(&mut self, device: usize) -> (Alternative, Option<Plan>) {
        let problem = self.problem;
        if let Some(&(from, to)) =
            problem.required().iter().find(|&&(from, to)| from == device || to == device)
        {
            return (Alternative::Impossible(Impossible::Required(from, to)), None);
        }
        let other = problem.clone().with_pin(device, self.plan.roles[device].opposite());
        if self.plan.roles[device] == Role::Target && !other.eligible(device) {
            return (Alternative::Impossible(Impossible::NoLabels), None);
        }
        self.alternative(&other, device)
    }

    fn alternative(&mut self, other: &Problem, device: usize) -> (Alternative, Option<Plan>) {
        match self.solve(other) {
            Ok(rival) => (Alternative::Possible(self.rival(other, &rival, device)), Some(rival)),
            Err(reason) => (Alternative::Impossible(Impossible::Infeasible(reason)), None),
        }
    }

    fn rival(&self, problem: &Problem, rival: &Plan, device: usize) -> Rival {
        Rival {
            extra: rival.objective() - self.plan.objective(),
            own: account(problem, rival, device).total(),
            role: rival.roles[device],
            receives: rival.incoming(device).to_vec(),
            also_change: (0..rival.roles.len())
                .filter(|&i| i != device && rival.roles[i] != self.plan.roles[i])
                .collect(),
        }
    }

    fn main_link(&mut self, link: PlanLink) -> MainLink {
        if self.problem.required().contains(&(link.from, link.to)) {
            let without = Alternative::Impossible(Impossible::Required(link.from, link.to));
            return MainLink { link, without, flips: Vec::new() };
        }
        let other = self.problem.clone().without_link(link.from, link.to);
        let (without, rival) = self.alternative(&other, link.to);
        let flips = match rival {
            Some(rival) if self.is_affine() && self.is_worse(&rival) => {
                self.link_flips(link, &rival)
            }
            _ => Vec::new(),
        };
        let flips = if self.stopped { Vec::new() } else { flips };
        MainLink { link, without, flips }
    }

    fn link_flips(&mut self, link: PlanLink, rival: &Plan) -> Vec<Flip> {
        let problem = self.problem;
        let extra = rival.objective() - self.plan.objective();
        match problem.model() {
            Model::Costs(_) => {
                let cost = problem.link_cost(link.from, link.to);
                let now = cost.map_or(f64::NAN, |c| c.total());
                vec![Flip { quantity: Quantity::LinkCost, now, at: Some(now + extra) }]
            }
            Model::Measured(m) => {
                let Some(measured) = m.links.get(link.from, link.to) else {
                    return Vec::new();
                };
                let divergence = match problem.bound_kind() {
                    BoundKind::Paper => {
                        let slope = m.weights.target * m.bound.transfer(1.0);
                        flip::affine(measured.divergence, extra, slope)
                    }
                    BoundKind::Pooled => self.pooled_divergence(m, link, rival.objective()),
                };
                let energy = self.energy(m, measured, link.to, rival);
                vec![
                    Flip {
                        quantity: Quantity::Divergence,
                        now: measured.divergence,
                        at: divergence,
                    },
                    Flip { quantity: Quantity::Energy, now: measured.energy, at: energy },
                ]
            }
        }
    }
}
