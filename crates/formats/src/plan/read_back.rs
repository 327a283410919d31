//! Reads a plan's file back into a plan.

use std::collections::HashMap;

use stlf_optim::status::Stop;
use stlf_planning::bound::BoundKind;
use stlf_planning::device::Role;
use stlf_planning::diff::Decisions;
use stlf_planning::error::{Error, Range, Reason};
use stlf_planning::number_format::short;
use stlf_planning::plan::{Handover, Plan, PlanLink, Solver, Status, Terms};
use stlf_planning::plan::{check_handovers, evaluate};
use stlf_planning::problem::Problem;

use super::super::document::{Kind, parse, shorten};
use super::super::problem::device;
use super::{PlanFile, PlanStatus, SolverName, StoppedBy};

const KIND: Kind = Kind { format: "stlf-plan/2", earlier: &["stlf-plan/1"], noun: "plan" };

impl PlanFile {
    /// Reads a plan.
    ///
    /// # Errors
    /// Says what is wrong, where, and what to do about it.
    pub fn read(bytes: &[u8]) -> Result<PlanFile, crate::Error> {
        parse(&KIND, || Ok(serde_json::Deserializer::from_slice(bytes)))
    }

    /// Who does what, checked.
    ///
    /// # Errors
    /// Names the field that contradicts another.
    pub fn decisions(&self) -> Result<Decisions, crate::Error> {
        if self.status == PlanStatus::Infeasible {
            let reason = self.reason.as_deref().unwrap_or("no plan exists");
            return Err(Error::other("status", format!("infeasible: {}", shorten(reason)))
                .with_hint("this file holds no plan")
                .into());
        }
        let listed = self.problem.as_ref().and_then(|p| p.devices.as_ref());
        let names: Vec<String> = match listed {
            Some(devices) => devices.iter().map(|d| d.name.clone()).collect(),
            None => self.sources.iter().chain(&self.targets).cloned().collect(),
        };
        let index: HashMap<String, usize> =
            names.iter().enumerate().map(|(i, name)| (name.clone(), i)).collect();
        let roles = self.roles(&names, &index)?;
        let links = self.checked_links(&roles, &index)?;
        Ok(Decisions {
            handovers: self.checked_handovers(&roles, &links, &index)?,
            links,
            roles,
            names,
            terms: self.terms()?,
        })
    }

    fn terms(&self) -> Result<Terms, Error> {
        match self.terms {
            Some(terms) => Ok(terms.into()),
            None => Err(Error::missing("terms", "is missing").with_hint(
                "a device that follows a plan knows its objective alone; the planner's run folder or `stlf plan` has the terms",
            )),
        }
    }

    fn roles(&self, names: &[String], index: &HashMap<String, usize>) -> Result<Vec<Role>, Error> {
        let mut roles: Vec<Option<Role>> = vec![None; names.len()];
        let sources = self.sources.iter().enumerate().map(|(k, n)| ("sources", k, n, Role::Source));
        let targets = self.targets.iter().enumerate().map(|(k, n)| ("targets", k, n, Role::Target));
        for (field, k, name, role) in sources.chain(targets) {
            let at = format!("{field}[{k}]");
            if roles[device(name, &at, index)?].replace(role).is_some() {
                return Err(Error::other(at, format!("{:?} already has a role", shorten(name)))
                    .with_hint("a device is listed once, as a source or as a target"));
            }
        }
        let nameless = roles.iter().position(Option::is_none);
        roles.into_iter().collect::<Option<Vec<Role>>>().ok_or_else(|| {
            let name = nameless.map_or("?", |i| &names[i]);
            Error::missing("sources", format!("{:?} is neither here nor in targets", shorten(name)))
                .with_hint("every device of the problem has a role")
        })
    }

    fn checked_links(
        &self,
        roles: &[Role],
        index: &HashMap<String, usize>,
    ) -> Result<Vec<PlanLink>, Error> {
        let mut links = Vec::with_capacity(self.links.len());
        let mut totals = vec![0.0; roles.len()];
        for (k, entry) in self.links.iter().enumerate() {
            let at = |end: &str| format!("links[{k}].{end}");
            let from = device(&entry.from, &at("from"), index)?;
            let to = device(&entry.to, &at("to"), index)?;
            needs(Role::Source, roles[from], at("from"), &entry.from)?;
            needs(Role::Target, roles[to], at("to"), &entry.to)?;
            // Weights in files may have been rounded.
            if entry.weight > 1.0 + 1e-6 || !Range::ABOVE_ZERO.contains(entry.weight) {
                Range::SHARE_ABOVE_ZERO.check(entry.weight, || at("weight"))?;
            }
            totals[to] += entry.weight;
            links.push(PlanLink { from, to, weight: entry.weight });
        }
        links.sort_unstable_by_key(|l| (l.to, l.from));
        let same = |pair: &[PlanLink]| (pair[0].from, pair[0].to) == (pair[1].from, pair[1].to);
        if links.windows(2).any(same) {
            return Err(Error::other("links", "a link is listed twice"));
        }
        for (k, name) in self.targets.iter().enumerate() {
            let total = index.get(name).map_or(0.0, |&to| totals[to]);
            if (total - 1.0).abs() > 1e-4 {
                let message = format!("the weights of {:?} add up to {total}", shorten(name));
                let reason = Reason::Differs { told: total, computed: 1.0, message };
                return Err(Error::new(format!("targets[{k}]"), reason)
                    .with_hint("the weights of a target's links must add up to 1"));
            }
        }
        Ok(links)
    }

    /// Hand-overs lead from source to source, one to each at most.
    fn checked_handovers(
        &self,
        roles: &[Role],
        links: &[PlanLink],
        index: &HashMap<String, usize>,
    ) -> Result<Vec<Handover>, Error> {
        if self.bound == BoundKind::Paper && !self.handovers.is_empty() {
            let message = "there are no hand-overs under the paper's bound";
            return Err(Error::conflict("handovers", "bound", message));
        }
        let mut handovers = Vec::with_capacity(self.handovers.len());
        for (k, entry) in self.handovers.iter().enumerate() {
            let at = |end: &str| format!("handovers[{k}].{end}");
            let from = device(&entry.from, &at("from"), index)?;
            let to = device(&entry.to, &at("to"), index)?;
            needs(Role::Source, roles[from], at("from"), &entry.from)?;
            needs(Role::Source, roles[to], at("to"), &entry.to)?;
            handovers.push(Handover { from, to });
        }
        handovers.sort_unstable_by_key(|h| h.to);
        if handovers.windows(2).any(|pair| pair[0].to == pair[1].to) {
            return Err(Error::other("handovers", "a source takes two models"));
        }
        check_handovers(&handovers, links)
            .map_err(|broken| Error::new("handovers", broken.into()))?;
        Ok(handovers)
    }

    /// The plan and the problem that it solves.
    ///
    /// # Errors
    /// If the file does not repeat its problem, or contradicts it.
    pub fn restore(&self) -> Result<(Problem, Plan), crate::Error> {
        let decisions = self.decisions()?;
        let Some(problem) = &self.problem else {
            let most = super::MAX_EMBEDDED_LINKS;
            return Err(Error::missing("problem", "is not in this plan")
                .with_hint(format!("plans contain their problem up to {most} links"))
                .into());
        };
        let problem = problem.clone().into_problem(None).map_err(inside)?;
        let links = self.links.iter().enumerate().map(|(k, l)| ("links", k, &l.from, &l.to));
        let handovers = self.handovers.iter().enumerate();
        let handovers = handovers.map(|(k, h)| ("handovers", k, &h.from, &h.to));
        for (field, k, sender, receiver) in links.chain(handovers) {
            let ends = (problem.find(sender), problem.find(receiver));
            let (Some(from), Some(to)) = ends else { continue };
            if problem.link_cost(from, to).is_none() {
                let reason = Reason::NoLink { from: shorten(sender), to: shorten(receiver) };
                return Err(Error::new(format!("{field}[{k}]"), reason).into());
            }
        }
        let plan = Plan {
            roles: decisions.roles,
            links: decisions.links,
            handovers: decisions.handovers,
            terms: decisions.terms,
            lower_bound: self.lower_bound.unwrap_or(f64::NEG_INFINITY),
            status: self.search_status(),
            bound: self.bound,
            solver: Solver {
                name: match self.solver.name {
                    SolverName::Exact => "exact",
                    SolverName::Successive => "successive",
                },
                iterations: self.solver.iterations,
                trace: self.solver.trace.clone(),
                successive: None,
            },
        };
        Ok((problem, plan))
    }

    /// As [`PlanFile::restore`], and that the plan costs what it says under the bound that it says.
    ///
    /// # Errors
    /// Also if the problem makes it another cost: then it is not the one that was planned.
    pub fn restore_checked(&self) -> Result<(Problem, Plan), crate::Error> {
        let (problem, plan) = self.restore()?;
        let problem = problem.with_bound(plan.bound);
        let cost =
            evaluate(&problem, plan.bound, &plan.roles, &plan.links, &plan.handovers).total();
        // Weights in files may have been rounded.
        let room = 1e-6 * cost.abs().max(1.0);
        let told = [Some(plan.objective()), self.objective];
        // Also where the cost is infinite, as with a source that has no labels.
        let differs = |told: &&f64| !(cost.is_finite() && (cost - **told).abs() <= room);
        if let Some(told) = told.iter().flatten().find(differs) {
            let message = format!(
                "this is not a plan for this problem: it says {}, the problem makes it {}",
                short(*told),
                short(cost)
            );
            let reason = Reason::Differs { told: *told, computed: cost, message };
            return Err(Error::new("objective", reason)
                .with_hint("plan again, or name the problem that was planned")
                .into());
        }
        let bound = plan.lower_bound;
        let optimal = plan.status == Status::Optimal;
        if bound > cost + room || optimal && bound < cost - room {
            let side = if bound > cost { "above" } else { "below" };
            let proven = if optimal { "the proven " } else { "the " };
            let message = format!("{} is {side} {proven}objective {}", short(bound), short(cost));
            let reason = Reason::Differs { told: bound, computed: cost, message };
            return Err(Error::new("lower_bound", reason).with_hint("was the file edited?").into());
        }
        Ok((problem, plan))
    }

    fn search_status(&self) -> Status {
        match (self.status, self.solver.stopped_by) {
            (PlanStatus::Optimal, _) => Status::Optimal,
            (_, Some(StoppedBy::Gap)) => Status::Feasible(Stop::GapReached),
            (_, Some(StoppedBy::NodeLimit)) => Status::Feasible(Stop::NodeLimit),
            (_, Some(StoppedBy::TimeLimit | StoppedBy::Interrupt)) => {
                Status::Feasible(Stop::Observer)
            }
            (_, Some(StoppedBy::NoProof) | None) => Status::Feasible(Stop::NoProof),
        }
    }
}

/// Checks that a device has the role that its place in the plan needs.
fn needs(needed: Role, has: Role, field: String, name: &str) -> Result<(), Error> {
    match has == needed {
        true => Ok(()),
        false => Err(Error::new(field, Reason::OtherRole { device: shorten(name), needed })),
    }
}

/// Says that a field belongs to the problem inside the plan.
fn inside(error: crate::Error) -> crate::Error {
    match error {
        crate::Error::Value(value) => value.inside("problem").into(),
        other => other,
    }
}
