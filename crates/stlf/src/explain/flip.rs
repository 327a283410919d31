//! Where a choice changes, as the crossing of two optimal values.
//!
//! For fixed roles and weights the objective is affine and non-decreasing in any one of ε̂_i,
//! d̂_ij, K_ij. The optimal value among plans that use the measurement, as the least of such
//! functions, is therefore concave and non-decreasing in it, and among plans that do not use it
//! constant. They cross at most once.
//!
//! - *Energy.* A used link costs the same multiple of K_ij in every plan, so the former value is
//!   affine and the crossing a division. The same goes for raw costs, and for d̂_ij under the
//!   paper's bound, where one source serves with weight 1.
//! - *Source error.* Newton's method with the slope read off the optimal plan. A tangent of a
//!   concave function lies above it, so after one step every iterate is left of the crossing and
//!   the next one nearer; with a piecewise linear value it ends after finitely many.
//! - *Divergence, pooled.* Newton would crawl where the weight fades to nothing at the crossing.
//!   Instead each step finds where the *present* roles and links lose against the rival, in closed
//!   form, and solves there: every step leaves one set of roles and links behind for good.

use super::{Ask, Flip, Quantity};
use crate::device::Role;
use crate::plan::{Plan, PlanLink, column_cost};
use crate::problem::{Link, Measured, Model};

/// Two values closer than this, relative to the objective, have met.
const MET: f64 = 1e-12;

/// Far more steps than ever needed with proven plans; unproven ones may wander.
const STEPS: usize = 60;

/// Where a cost that is `extra` below its rival and grows by `slope` meets it.
pub(super) fn affine(now: f64, extra: f64, slope: f64) -> Option<f64> {
    (slope > 0.0).then(|| now + extra / slope).filter(|at| at.is_finite())
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
        let (bound, _) = column_cost(&problem, problem.bound_kind(), column);
        let raised = bound - m.target_constant_cost(to) + extra;
        let price = m.weights.target * m.bound.pooling_scale();
        let others: f64 = column
            .iter()
            .filter(|l| l.from != link.from)
            .filter_map(|l| m.links.get(l.from, to))
            .map(|l| {
                let room = (raised - m.mixing_cost(l.from, l.divergence)).max(0.0);
                samples(l.from) * room * room
            })
            .sum();
        let rest = (price * price - others).max(0.0);
        let crossing = raised - (rest / samples(link.from)).sqrt();
        let error = m.mixing_cost(link.from, 0.0) / m.weights.target;
        (2.0 * (crossing / m.weights.target - error)).max(link.divergence)
    }
}
