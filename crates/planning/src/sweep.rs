//! Every energy weight φ^E at which the optimal plan changes.
//!
//! Fixed roles and links cost A + φ^E·B: A is their error bound, B their energy. The optimum is the
//! lower envelope of these lines, concave and piecewise linear in φ^E, with finitely many pieces.
//! Where the lines of two neighbouring optima meet, either the optimum lies on them and the
//! intersection is a breakpoint, or a plan better than both is found there and splits the interval
//! (Eisner & Severance, "Mathematical techniques for efficient record segmentation", 1976). Two
//! plans a segment are enough.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use stlf_optim::status::{Stop, TOLERANCE};

use crate::device::Role;
use crate::plan::{Handover, PlanLink, Status, evaluate};
use crate::planner::{self, Infeasible, Observer, Outcome, Settings};
use crate::problem::Problem;

/// The optimal plans over a range of φ^E.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    /// Ascending in φ^E, each beginning where the one before ends.
    pub segments: Vec<Segment>,
    /// How many times the fleet was planned.
    pub solves: usize,
    /// Whether every one of these plans was proven optimal and no interval was left unsearched.
    pub proven: bool,
    /// The largest relative gap of any of them.
    pub largest_gap: f64,
}

/// An interval of φ^E and the plan that is optimal throughout.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// The smallest φ^E of the interval.
    pub from: f64,
    /// The largest φ^E of the interval.
    pub to: f64,
    /// The role of each device, in the order of the problem.
    pub roles: Vec<Role>,
    /// The links of the plan, with their weights.
    pub links: Vec<PlanLink>,
    /// The hand-overs, where the settings ask for them.
    pub handovers: Vec<Handover>,
    /// φ^S Σ S_i + φ^T Σ T_j, the objective at φ^E = 0.
    pub error_bound: f64,
    /// What the objective gains per unit of φ^E: the energy of links and hand-overs in the problem's unit, over
    /// 1 + ε_E.
    pub energy: f64,
    /// The energy of links and hand-overs in joules; 0 with raw costs.
    pub joules: f64,
}

impl Segment {
    /// Returns what the plan costs at this weight of energy.
    pub fn objective(&self, energy_weight: f64) -> f64 {
        self.error_bound + energy_weight * self.energy
    }

    /// Returns the number of devices that are sources in this plan.
    pub fn sources(&self) -> usize {
        self.roles.iter().filter(|&&r| r == Role::Source).count()
    }
}

/// Finds all segments of `range` under the problem's own bound.
///
/// `settings` and `observer` hold for each plan. With hand-overs, which are rarely proven, the segments are the best known too. Once the observer ends a search, no further plan is
/// made and the segments are the best known.
///
/// # Errors
/// The fleet has no plan, whatever the energy weight.
pub fn sweep(
    problem: &Problem,
    range: RangeInclusive<f64>,
    settings: &Settings,
    observer: &mut Observer<'_>,
) -> Result<Sweep, Infeasible> {
    sweep_at_most(usize::MAX, problem, range, settings, observer)
}

/// As [`sweep`], but the fleet is planned so many times at most, and twice at least. Where that is not enough, the plans that were found lie
/// all over the range. Others between them are missing, and the sweep says that it is not proven.
///
/// # Errors
/// As [`sweep`].
pub fn sweep_at_most(
    solves: usize,
    problem: &Problem,
    range: RangeInclusive<f64>,
    settings: &Settings,
    observer: &mut Observer<'_>,
) -> Result<Sweep, Infeasible> {
    let (low, high) = range.into_inner();
    let mut search = Search {
        problem,
        per_weight: problem.with_energy_weight(1.0),
        settings,
        observer,
        solves: 0,
        proven: true,
        largest_gap: 0.0,
        stopped: false,
    };
    let first = search.solve(low)?;
    let last = search.solve(high)?;
    let mut lines = vec![first, last];
    // Breadth first, so that a search ended early has looked everywhere alike.
    let mut open = VecDeque::from([(0, 1)]);
    while let Some((a, b)) = open.pop_front() {
        let Some(at) = intersection(&lines[a], &lines[b]) else {
            continue;
        };
        if !(low < at && at < high) {
            continue;
        }
        if search.stopped || search.solves >= solves {
            search.proven = false;
            break;
        }
        let between = search.solve(at)?;
        let known = lines[a].objective(at).min(lines[b].objective(at));
        if between.objective(at) < known - TOLERANCE * known.abs() {
            lines.push(between);
            open.extend([(a, lines.len() - 1), (lines.len() - 1, b)]);
        }
    }
    Ok(Sweep {
        segments: envelope(lines, low, high),
        solves: search.solves,
        proven: search.proven,
        largest_gap: search.largest_gap,
    })
}

struct Search<'a, 'o> {
    problem: &'a Problem,
    /// The problem at φ^E = 1, where the energy term is what one unit of φ^E costs.
    per_weight: Problem,
    settings: &'a Settings,
    observer: &'a mut Observer<'o>,
    solves: usize,
    proven: bool,
    largest_gap: f64,
    stopped: bool,
}

impl Search<'_, '_> {
    fn solve(&mut self, energy_weight: f64) -> Result<Segment, Infeasible> {
        let problem = self.problem.with_energy_weight(energy_weight);
        let plan = match planner::plan(&problem, self.settings, self.observer) {
            Outcome::Planned(plan) => *plan,
            Outcome::Infeasible(reason) => return Err(reason),
        };
        self.solves += 1;
        self.proven &= plan.status == Status::Optimal;
        self.stopped |= plan.status == Status::Feasible(Stop::Observer);
        self.largest_gap = self.largest_gap.max(plan.gap());
        let terms =
            evaluate(&self.per_weight, plan.bound, &plan.roles, &plan.links, &plan.handovers);
        Ok(Segment {
            from: energy_weight,
            to: energy_weight,
            error_bound: terms.source + terms.target,
            energy: terms.energy,
            joules: plan.joules(self.problem).unwrap_or(0.0),
            roles: plan.roles,
            links: plan.links,
            handovers: plan.handovers,
        })
    }
}

/// Where two lines cross; `None` if they are parallel or one and the same.
fn intersection(a: &Segment, b: &Segment) -> Option<f64> {
    let energy = a.energy - b.energy;
    if energy.abs() <= TOLERANCE * a.energy.abs().max(b.energy.abs()) {
        return None;
    }
    Some((b.error_bound - a.error_bound) / energy)
}

/// The lower envelope of `lines` over `low..=high`, walked from left to right: from where a line
/// is least, the next is the one that crosses it first.
fn envelope(mut lines: Vec<Segment>, low: f64, high: f64) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    let mut at = low;
    // On a tie the flatter line stays least for longer.
    let least = |lines: &[Segment], at: f64| {
        (0..lines.len()).min_by(|&a, &b| {
            let (x, y) = (lines[a].objective(at), lines[b].objective(at));
            let tied = (x - y).abs() <= TOLERANCE * x.abs().max(y.abs());
            let flatter = lines[a].energy.total_cmp(&lines[b].energy);
            if tied { flatter } else { x.total_cmp(&y) }
        })
    };
    let Some(start) = least(&lines, low) else {
        return segments;
    };
    let mut current = lines.swap_remove(start);
    loop {
        lines.retain(|line| line.energy < current.energy);
        let next = (0..lines.len())
            .filter_map(|k| intersection(&current, &lines[k]).map(|x| (x.max(at), k)))
            .filter(|&(x, _)| x < high)
            .min_by(|a, b| {
                a.0.total_cmp(&b.0).then(lines[a.1].energy.total_cmp(&lines[b.1].energy))
            });
        current.from = at;
        current.to = next.map_or(high, |(x, _)| x);
        at = current.to;
        // A plan that is optimal at a single point only is no segment.
        if current.to - current.from > TOLERANCE * current.to.abs() || (low == high) {
            segments.push(current);
        }
        match next {
            Some((_, k)) => current = lines.swap_remove(k),
            None => return close(segments, low, high),
        }
    }
}

/// Stretches the segments over the gaps that dropped points left.
fn close(mut segments: Vec<Segment>, low: f64, high: f64) -> Vec<Segment> {
    let mut from = low;
    for segment in &mut segments {
        segment.from = from;
        from = segment.to;
    }
    if let Some(last) = segments.last_mut() {
        last.to = high;
    }
    segments
}
