//! Where a choice changes, as the crossing of two optimal values.
//!
//! For fixed roles and weights the objective is affine and non-decreasing in any one of ε̂_i,
//! d̂_ij, K_ij. The optimal value among plans that use the measurement, as the least of such
//! functions, is therefore concave and non-decreasing in it, and among plans that do not use it
//! constant. They cross at most once.
//!
//! - *Energy in joules.* A used link costs the same multiple of K_ij in every plan, so the former
//!   value is affine and the crossing a division. The same goes for raw costs, and for d̂_ij under
//!   the paper's bound, where one source serves with weight 1.
//! - *Energy in mean links.* K_ij also changes the mean, hence what every other link costs: see
//!   `energy`.
//! - *Source error.* Newton's method with the slope read off the optimal plan. A tangent of a
//!   concave function lies above it, so after one step every iterate is left of the crossing and
//!   the next one nearer; with a piecewise linear value it ends after finitely many.
//! - *Divergence, pooled.* Newton would crawl where the weight fades to nothing at the crossing.
//!   Instead each step finds where the *present* roles and links lose against the rival, in closed
//!   form, and solves there: every step leaves one set of roles and links behind for good.

use super::{Ask, Flip, Quantity};
use crate::device::Role;
use crate::plan::{Plan, PlanLink, Terms, column_cost, evaluate};
use crate::problem::{EnergyUnit, Link, Measured, Model, Problem};

/// Two values closer than this, relative to the objective, have met.
const MET: f64 = 1e-12;

/// Far more steps than ever needed with proven plans; unproven ones may wander.
const STEPS: usize = 60;

/// Where a cost that is `extra` below its rival and grows by `slope` meets it.
pub(super) fn affine(now: f64, extra: f64, slope: f64) -> Option<f64> {
    (slope > 0.0).then(|| now + extra / slope).filter(|at| at.is_finite())
}

/// Two plans that differ by less than this, relative, cost the same.
const SAME: f64 = 1e-10;

/// What a plan costs at s, one over the mean link energy.
#[derive(Debug, Clone, Copy)]
struct Line {
    fixed: f64,
    slope: f64,
}

/// Where two sets of lines meet, and at what cost.
struct Met {
    scale: f64,
    value: f64,
}

/// Where the lower envelope of `with`, none of which rises, falls to that of `without`, none of
/// which falls. A line of the former is below all of the latter from the last of its crossings on.
fn crossing(with: &[Line], without: &[Line]) -> Met {
    let meet = |u: &Line, w: &Line| match w.slope - u.slope {
        apart if apart > 0.0 => (u.fixed - w.fixed) / apart,
        _ if u.fixed <= w.fixed => f64::NEG_INFINITY,
        _ => f64::INFINITY,
    };
    let last = |u: &Line| without.iter().map(|w| meet(u, w)).fold(f64::NEG_INFINITY, f64::max);
    let scale = with.iter().map(last).fold(f64::INFINITY, f64::min);
    let value = |line: &Line| line.fixed + line.slope * scale;
    Met { scale, value: with.iter().map(value).fold(f64::INFINITY, f64::min) }
}

impl Ask<'_, '_> {
    /// The source error (or raw source cost) at which `device` would take the rival's role.
    pub(super) fn role_flip(&mut self, device: usize, rival: &Plan) -> Option<Flip> {
        let (as_source, as_target) = match self.plan.roles[device] {
            Role::Source => (self.plan, rival),
            Role::Target => (rival, self.plan),
        };
        match self.problem.model() {
            Model::Costs(c) => {
                let now = c.source[device]?;
                let at = now + as_target.objective() - as_source.objective();
                let at = Some(at).filter(|at| *at >= 0.0);
                Some(Flip { quantity: Quantity::SourceCost, now, at })
            }
            Model::Measured(m) => {
                let now = m.devices[device].source_error?;
                let as_source = as_source.clone();
                let at = self.source_error(m, device, as_source, as_target.objective());
                Some(Flip { quantity: Quantity::SourceError, now, at })
            }
        }
    }

    /// Newton's method for ε̂_i on "optimum with i a source = optimum with i a target".
    fn source_error(
        &mut self,
        m: &Measured,
        device: usize,
        mut as_source: Plan,
        as_target: f64,
    ) -> Option<f64> {
        let pinned = self.problem.clone().with_pin(device, Role::Source);
        let mut error = m.devices[device].source_error?;
        for _ in 0..STEPS {
            if self.stopped {
                break;
            }
            let extra = as_target - as_source.objective();
            let sent: f64 =
                as_source.links.iter().filter(|l| l.from == device).map(|l| l.weight).sum();
            let next = affine(error, extra, m.weights.source + m.weights.target * sent)?;
            if extra.abs() <= MET * as_target.abs() {
                return Some(next.max(0.0));
            }
            if next < 0.0 && error == 0.0 {
                return None;
            }
            error = next.max(0.0);
            as_source = self.solve(&pinned.with_source_error(device, error)).ok()?;
        }
        self.proven = false;
        Some(error)
    }

    /// The energy at which the target `to` drops `link`.
    pub(super) fn energy(
        &mut self,
        m: &Measured,
        link: Link,
        to: usize,
        rival: &Plan,
    ) -> Option<f64> {
        let extra = rival.objective() - self.plan.objective();
        let (mean, count) = (m.mean_link.0, m.mean_link.1 as f64);
        if m.energy_unit == EnergyUnit::Joules || m.weights.energy <= 0.0 {
            return affine(link.energy, extra, m.energy_cost(1.0));
        }
        let price = m.energy_cost(1.0) / m.energy_scale();
        if mean <= 0.0 {
            // Nothing costs energy; with any at all this link is the only one that does, and the
            // mean is a part of it whatever it is.
            return (extra < price * count).then_some(link.energy);
        }
        // In s = 1 / mean both optimal values are concave and piecewise linear: without the link a
        // plan costs A + s·B. With it and K = now + count·(1/s − mean), s·K is affine in s as well.
        // The former grows with s and the latter, of which the mean holds all energy, does not, so
        // that they cross once. The crossing of the plans known is met, or a better plan is there.
        let line = |plan: &Plan, at: &Problem, energy: f64| {
            let Terms { source, target, energy: paid } =
                evaluate(at, plan.bound, &plan.roles, &plan.links, &[]);
            let Model::Measured(at) = at.model() else { return None };
            let line = Line { fixed: source + target, slope: paid / at.energy_scale() };
            let uses = plan.incoming(to).iter().any(|l| l.from == link.from);
            let slope = line.slope + price * (link.energy - energy - count * mean);
            let used = Line { fixed: line.fixed + price * count, slope };
            Some(if uses { (Some(used), None) } else { (None, Some(line)) })
        };
        let (mut with, mut without) = (Vec::new(), Vec::new());
        let mut add = |(used, unused): (Option<Line>, Option<Line>)| {
            with.extend(used);
            without.extend(unused);
            crossing(&with, &without)
        };
        add(line(self.plan, self.problem, link.energy)?);
        let mut met = add(line(rival, self.problem, link.energy)?);
        let mut is_far = false;
        let mut energy = link.energy;
        for _ in 0..STEPS {
            if self.stopped {
                break;
            }
            if met.scale <= 0.0 {
                // However dear the link is, at its dearest all other energy costs nothing.
                if is_far {
                    return None;
                }
                is_far = true;
                let other = self.problem.clone().without_link(link.from, to);
                let plan = self.solve(&other.with_energy_weight(0.0)).ok()?;
                met = add(line(&plan, self.problem, link.energy)?);
                continue;
            }
            energy = (link.energy + count * (1.0 / met.scale - mean)).max(link.energy);
            let changed = self.problem.with_link(Link { energy, ..link }, to);
            let plan = self.solve(&changed).ok()?;
            if plan.objective() >= met.value * (1.0 - SAME) {
                return Some(energy);
            }
            met = add(line(&plan, &changed, energy)?);
        }
        self.proven = false;
        Some(energy)
    }

    /// The divergence at which a target drops `link` under the pooled bound.
    pub(super) fn pooled_divergence(
        &mut self,
        m: &Measured,
        link: PlanLink,
        rival: f64,
    ) -> Option<f64> {
        if m.weights.target <= 0.0 {
            return None;
        }
        let mut measured = m.links.get(link.from, link.to)?;
        let mut plan = self.plan.clone();
        for _ in 0..STEPS {
            if self.stopped {
                break;
            }
            let extra = rival - plan.objective();
            let column = plan.incoming(link.to);
            let used = column.iter().any(|l| l.from == link.from);
            if !used {
                return Some(measured.divergence);
            }
            measured.divergence = self.column_crossing(m, column, measured, extra);
            if extra <= MET * rival.abs() {
                return Some(measured.divergence);
            }
            plan = self.solve(&self.problem.with_link(measured, link.to)).ok()?;
        }
        self.proven = false;
        Some(measured.divergence)
    }

    /// The divergence of `link` at which its target's column, with the links it has, costs
    /// `extra` more.
    ///
    /// With c_k = φ^T(ε̂_k + ½d̂_kj) and P = φ^T·6√(ln(2/δ)/2), the best weights over active links
    /// are α_k ∝ D̂_k (λ − c_k)₊, and their cost is the λ with Σ_k D̂_k (λ − c_k)₊² = P²
    /// (stationarity of Σ α_k c_k + P√(Σ α_k²/D̂_k) on the simplex). Raise λ by `extra` and solve
    /// the same equation for c_i.
    fn column_crossing(&self, m: &Measured, column: &[PlanLink], link: Link, extra: f64) -> f64 {
        let to = column[0].to;
        let samples = |device: usize| m.devices[device].samples() as f64;
        // The column as it is at this divergence, which the problem itself does not hold.
        let problem = self.problem.with_link(link, to);
        let (bound, _) = column_cost(&problem, problem.bound_kind(), column, &[]);
        let raised = bound - m.target_constant_cost(to) + extra;
        let price = m.weights.target * m.bound.pooling_scale();
        let others: f64 = column
            .iter()
            .filter(|l| l.from != link.from)
            .filter_map(|l| m.links.get(l.from, to))
            .map(|l| {
                let room = (raised - m.mixing_cost(l.from, to, l.divergence)).max(0.0);
                samples(l.from) * room * room
            })
            .sum();
        let rest = (price * price - others).max(0.0);
        let crossing = raised - (rest / samples(link.from)).sqrt();
        let error = m.devices[link.from].source_error.unwrap_or(f64::INFINITY);
        ((crossing / m.weights.target - error) / m.bound.transfer(1.0)).max(link.divergence)
    }
}
