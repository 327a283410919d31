//! What the planner of an epoch knows, which is numbers, and the plan that follows.

mod energies;
#[cfg(test)]
mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use stlf_method::divergence::Settings;
use stlf_planning::Problem;
use stlf_planning::Role;
use stlf_planning::bound::BoundKind;
use stlf_planning::examiner::Examination;
use stlf_planning::plan::{PlanLink, Status, Terms, evaluate};
use stlf_planning::planner::{Infeasible, Outcome};
use stlf_planning::problem::Links;
use stlf_planning::witness::{Claim, Witness};

use self::energies::believable;
use crate::checking::beats_proof;
use crate::device::Refusal;
use crate::divergence_protocol::divergence;
use crate::job::{Sign, Watch};
use crate::roster::{Place, Roster};
use crate::setup::Setup;
use crate::wire::{Link, MOST_REPORTS, Measured, PairReport, Plan, Report, Sending, SignedReport};

/// The planner's desk.
#[derive(Debug, Clone)]
pub(crate) struct Planner {
    /// Ascending.
    members: Vec<Place>,
    settings: Settings,
    reports: BTreeMap<Place, SignedReport>,
    /// Links that are not used, from and to.
    forbidden: BTreeSet<(Place, Place)>,
}

/// How much worse than the best plan one may be that changes less.
pub(crate) const WORTH_NO_CHANGE: f64 = 0.01;

/// What the planner knows once all have reported, and what a plan follows from besides.
#[derive(Debug)]
pub(crate) struct Search {
    pub(crate) epoch: u64,
    /// Whose search it is.
    pub(crate) place: Place,
    pub(crate) desk: Planner,
    pub(crate) roster: Roster,
    pub(crate) setup: Setup,
    /// The plan before, which this one changes as little as it can.
    pub(crate) last: Option<Plan>,
}

/// What sources claim of their models at one target, by their places.
pub(crate) type Claims = BTreeMap<Place, Claim>;

/// What a device learns of a plan from the reports that it follows from.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Grounds {
    /// What sources claim at the device.
    pub(crate) claims: Claims,
    /// What the plan costs, term by term.
    pub(crate) terms: Option<Terms>,
    /// The problem that it solves.
    pub(crate) problem: Option<Arc<Problem>>,
}

/// A plan, and what the device that searched for it knows of it.
pub(crate) type Planned = (Plan, Grounds);

/// The best plan that is found until `watch` says stop; one that is not proven says so.
pub(crate) fn watched(setup: &Setup, problem: &Problem, watch: &mut Watch<'_>) -> Outcome {
    // Whether to go on is asked again within the search.
    let _ = watch(Sign::Searches(setup.planning));
    setup.plan(problem, &mut |_| watch(Sign::GoesOn))
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoPlan {
    /// This device can be neither source nor target; without it there may be one.
    #[error("the device at place {0} has no labels, and no link to it is left")]
    Without(Place),
    /// Nobody can plan with these numbers.
    #[error("{0}")]
    Because(String),
}

impl NoPlan {
    /// The same sentence as `Display`, with the device's name from the roster instead of its place.
    pub(crate) fn told(&self, roster: &Roster) -> String {
        match self {
            NoPlan::Without(place) => {
                let name = roster.name_of(*place);
                format!("{name} has no labels, and no link to it is left")
            }
            NoPlan::Because(_) => self.to_string(),
        }
    }
}

impl Search {
    /// The plan of this epoch: of the last one's roles, links and hand-overs it keeps what it can keep at no more than a hundredth
    /// above the least cost that was found.
    ///
    /// The planner cannot leave itself out, as it does with others that no link is left to, and if it said that there is no plan, the others would see
    /// that their reports allow one. So it gives those another chance of whom it complained itself.
    pub(crate) fn run(&self, watch: &mut Watch<'_>) -> Result<Planned, NoPlan> {
        match self.run_on(&self.desk, watch) {
            Err(NoPlan::Without(out)) if out == self.place => {
                self.run_on(&self.desk.with_all_into(out), watch)
            }
            planned => planned,
        }
    }

    fn run_on(&self, desk: &Planner, watch: &mut Watch<'_>) -> Result<Planned, NoPlan> {
        let Search { epoch, place, roster, setup, last, .. } = self;
        let members = &desk.members;
        let problem = desk.problem(roster, setup)?;
        let best = match watched(setup, &problem, watch) {
            Outcome::Planned(plan) => *plan,
            Outcome::Infeasible(Infeasible::Unreachable { device, .. }) => {
                return Err(NoPlan::Without(members[device]));
            }
            Outcome::Infeasible(why) => return Err(NoPlan::Because(why.to_string())),
        };
        let most = best.objective() + WORTH_NO_CHANGE * best.objective().abs();
        let kept = last.as_ref().map(|last| desk.keeping(&problem, last, setup, watch));
        let sent = |plan: &stlf_planning::Plan| {
            let is_best = plan.objective() <= best.objective();
            let optimal = is_best && best.status == Status::Optimal;
            let plan = desk.sent(*epoch, plan, optimal);
            desk.with_checks(plan, &problem, setup)
        };
        // What is left of a ring that somebody has gone from may be nothing that a plan can have.
        let has = |plan: &stlf_planning::Plan, &(from, to): &(usize, usize)| {
            plan.incoming(to).iter().any(|link| link.from == from)
        };
        let kept = kept.into_iter().flatten().filter(|plan| {
            let required = problem.required().iter();
            // Hand-overs of settings before may cost less than all that plans may have now.
            let is_one = plan.objective() <= most && !beats_proof(plan.objective(), &best);
            is_one && required.into_iter().all(|link| has(plan, link))
        });
        let kept = kept.map(|plan| sent(&plan)).find(|plan| plan.check().is_ok());
        let plan = kept.unwrap_or_else(|| sent(&best));
        debug_assert_eq!(plan.check(), Ok(()), "a plan that no other device would read");
        let grounds = desk.grounds(&problem, &plan, *place);
        Ok((plan, grounds))
    }
}

impl Planner {
    /// A plan as it is sent.
    fn sent(&self, epoch: u64, plan: &stlf_planning::Plan, optimal: bool) -> Plan {
        let place = |device: usize| self.members[device];
        let link = |link: &PlanLink| Link {
            from: place(link.from),
            to: place(link.to),
            weight: link.weight,
        };
        let handover =
            |h: &stlf_planning::plan::Handover| Sending { from: place(h.from), to: place(h.to) };
        Plan {
            epoch,
            sources: plan.with_role(Role::Source).map(place).collect(),
            targets: plan.with_role(Role::Target).map(place).collect(),
            links: plan.links.iter().map(link).collect(),
            handovers: plan.handovers.iter().map(handover).collect(),
            witnesses: Vec::new(),
            examinations: Vec::new(),
            forbidden: self.forbidden.iter().copied().collect(),
            objective: plan.objective(),
            optimal,
        }
    }

    pub(crate) fn new(
        members: &[Place],
        settings: &Settings,
        forbidden: &BTreeSet<(Place, Place)>,
    ) -> Planner {
        let (members, settings) = (members.to_vec(), settings.clone());
        Planner { members, settings, reports: BTreeMap::new(), forbidden: forbidden.clone() }
    }

    /// The same with all links into one device, whatever it complained of.
    fn with_all_into(&self, device: Place) -> Planner {
        let mut planner = self.clone();
        planner.forbidden.retain(|(_, to)| *to != device);
        planner
    }

    /// A plan with the models that are sent only to be checked: those of witnesses to targets, and those of sources to their examiners.
    pub(crate) fn with_checks(&self, plan: Plan, problem: &Problem, setup: &Setup) -> Plan {
        let (roles, links) = (self.roles(&plan), self.links(&plan));
        let handovers = self.handovers(&plan);
        let (Some(roles), Some(links), Some(handovers)) = (roles, links, handovers) else {
            return plan;
        };
        let sent =
            |from: usize, to: usize| Sending { from: self.members[from], to: self.members[to] };
        let witnesses = problem.witnesses(&roles, &links, setup.liars);
        let examinations = match setup.examiners {
            true => problem.examinations(&links, &handovers, &witnesses),
            false => Vec::new(),
        };
        let witnesses = witnesses.into_iter().map(|Witness { to, from }| sent(from, to)).collect();
        let tries = |Examination { to, from }| sent(from, to);
        let examinations = examinations.into_iter().map(tries).collect();
        Plan { witnesses, examinations, ..plan }
    }

    /// The roles of a plan by the members' indices; none if it does not have all of them.
    pub(crate) fn roles(&self, plan: &Plan) -> Option<Vec<Role>> {
        self.members.iter().map(|&member| plan.role(member)).collect()
    }

    /// The links of a plan by the members' indices; none if one is from or to somebody else.
    pub(crate) fn links(&self, plan: &Plan) -> Option<Vec<PlanLink>> {
        let link = |link: &Link| {
            let (from, to) = (self.index(link.from)?, self.index(link.to)?);
            Some(PlanLink { from, to, weight: link.weight })
        };
        plan.links.iter().map(link).collect()
    }

    /// The hand-overs of a plan by the members' indices; none if one is from or to somebody else.
    fn handovers(&self, plan: &Plan) -> Option<Vec<stlf_planning::plan::Handover>> {
        let handover = |h: &Sending| {
            let (from, to) = (self.index(h.from)?, self.index(h.to)?);
            Some(stlf_planning::plan::Handover { from, to })
        };
        plan.handovers.iter().map(handover).collect()
    }

    /// Returns what a plan costs; nothing if it is not of these devices.
    pub(crate) fn terms(&self, problem: &Problem, plan: &Plan) -> Option<Terms> {
        let (roles, links) = (self.roles(plan)?, self.links(plan)?);
        let handovers = self.handovers(plan)?;
        Some(evaluate(problem, problem.bound_kind(), &roles, &links, &handovers))
    }

    /// Returns what the device at a place learns of a plan: the problem, what the plan costs, and what sources claim of their models there.
    pub(crate) fn grounds(&self, problem: &Problem, plan: &Plan, place: Place) -> Grounds {
        let claim = |(from, &member)| Some((member, problem.claim(from, self.index(place)?)?));
        let claims = self.members.iter().enumerate().filter_map(claim).collect();
        let problem_of_plan = Some(Arc::new(problem.clone()));
        Grounds { claims, terms: self.terms(problem, plan), problem: problem_of_plan }
    }

    /// The reports that a plan carries.
    pub(crate) fn signed_reports(&self) -> Vec<SignedReport> {
        let carried = self.reports.values().filter(|_| self.members.len() <= MOST_REPORTS);
        carried.cloned().collect()
    }

    /// Returns whether this device has reported.
    pub(crate) fn has_heard(&self, place: Place) -> bool {
        self.reports.contains_key(&place)
    }

    /// Returns how many have.
    pub(crate) fn heard(&self) -> usize {
        self.reports.len()
    }

    /// Returns whether all have.
    pub(crate) fn is_complete(&self) -> bool {
        self.heard() == self.members.len()
    }

    /// Takes a report; what it says about others counts only together with what they say.
    pub(crate) fn hear(
        &mut self,
        from: Place,
        signed: &SignedReport,
        unlabeled_as: f64,
    ) -> Result<(), Refusal> {
        let report = &signed.report;
        if !report.is_consistent(unlabeled_as) {
            return Err(Refusal::Unfit("a source error that its samples cannot have"));
        }
        let peers = report.pairs.iter().map(|pair| pair.peer);
        if !peers.eq(self.members.iter().copied().filter(|&m| m != from)) {
            return Err(Refusal::Unfit("a report that is not about this epoch's devices"));
        }
        if !report.pairs.iter().all(|pair| self.can_measure(report, pair.measured)) {
            return Err(Refusal::Unfit("a report that is not of this estimator"));
        }
        match self.reports.get(&from) {
            Some(known) if known.report != *report => Err(Refusal::Twice(from)),
            Some(_) => Ok(()),
            None => {
                self.reports.insert(from, signed.clone());
                Ok(())
            }
        }
    }

    /// Returns whether a device with so many samples can come to this by the estimator.
    fn can_measure(&self, report: &Report, measured: Measured) -> bool {
        let samples = report.labeled.saturating_add(report.unlabeled);
        match (&self.settings, measured) {
            (Settings::Discriminant(_), Measured::Errors(count)) => count.samples <= samples,
            (Settings::Classifier(settings), Measured::Errors(count)) => {
                count.samples <= samples.saturating_mul(settings.repeats as u64)
            }
            (Settings::Sketch(_), Measured::Divergence(_)) => true,
            _ => false,
        }
    }

    /// The best plans that keep the last one's roles and links, and its roles alone.
    fn keeping(
        &self,
        problem: &Problem,
        last: &Plan,
        setup: &Setup,
        watch: &mut Watch<'_>,
    ) -> Vec<stlf_planning::Plan> {
        let pinned = self.members.iter().enumerate().fold(problem.clone(), |problem, (k, &m)| {
            match last.role(m) {
                Some(Role::Source) if !problem.eligible(k) => problem,
                Some(role) => problem.with_pin(k, role),
                None => problem,
            }
        });
        let mut planned = |problem: &Problem| match watched(setup, problem, watch) {
            Outcome::Planned(plan) => Some(*plan),
            Outcome::Infeasible(_) => None,
        };
        let free = planned(&pinned);
        // The last plan may be of settings by which models were handed on, and now are not.
        let may_hand_on =
            setup.planner.handovers.is_some() && problem.bound_kind() == BoundKind::Pooled;
        let linked = match (may_hand_on && !last.handovers.is_empty(), &free) {
            (false, _) => planned(&self.with_links_of(last, pinned)),
            (true, Some(free)) => Some(self.handing_on_as(last, problem, free)),
            (true, None) => None,
        };
        linked.into_iter().chain(free).collect()
    }

    /// The index among the members of the device at a place of the roster, if it takes part.
    pub(crate) fn index(&self, place: Place) -> Option<usize> {
        self.members.binary_search(&place).ok()
    }

    /// The same problem without other links than the last plan's into its targets, which so keep what they had.
    fn with_links_of(&self, last: &Plan, problem: Problem) -> Problem {
        let ends = |link: &Link| Some((self.index(link.from)?, self.index(link.to)?));
        let kept: BTreeSet<(usize, usize)> = last.links.iter().filter_map(ends).collect();
        let targets: BTreeSet<usize> = kept.iter().map(|&(_, to)| to).collect();
        let others = (0..self.members.len())
            .flat_map(|from| targets.iter().map(move |&to| (from, to)))
            .filter(|&(from, to)| from != to && !kept.contains(&(from, to)))
            .filter(|link| !problem.required().contains(link))
            .collect::<Vec<_>>();
        others.into_iter().fold(problem, |problem, (from, to)| problem.without_link(from, to))
    }

    /// The last plan's hand-overs and links in a plan of the same roles: those whose ends are all here, and for other targets the
    /// plan's. What models that were handed on are worth to a target follows from all its divergences, so that no link can be taken out
    /// of the problem instead.
    fn handing_on_as(
        &self,
        last: &Plan,
        problem: &Problem,
        plan: &stlf_planning::Plan,
    ) -> stlf_planning::Plan {
        let source = |place: Place| self.index(place).filter(|&k| plan.roles[k] == Role::Source);
        let handed = |h: &Sending| {
            Some(stlf_planning::plan::Handover { from: source(h.from)?, to: source(h.to)? })
        };
        let handovers: Vec<_> = last.handovers.iter().filter_map(handed).collect();
        let links_of = |to: usize| {
            let before = last.incoming(self.members[to]);
            let kept =
                before.map(|l| Some(PlanLink { from: source(l.from)?, to, weight: l.weight }));
            let kept = kept.collect::<Option<Vec<_>>>().filter(|links| !links.is_empty());
            kept.unwrap_or_else(|| plan.incoming(to).to_vec())
        };
        let links: Vec<PlanLink> = plan.with_role(Role::Target).flat_map(links_of).collect();
        let terms = evaluate(problem, plan.bound, &plan.roles, &links, &handovers);
        stlf_planning::Plan { links, handovers, terms, ..plan.clone() }
    }

    /// The problem of all reports, without what was of no use before.
    pub(crate) fn problem(&self, roster: &Roster, setup: &Setup) -> Result<Problem, NoPlan> {
        let incomplete = || NoPlan::Because("a device has not reported".to_owned());
        let n = self.members.len();
        let device = |&place: &Place| {
            let report = &self.reports.get(&place)?.report;
            Some(stlf_planning::Device {
                name: roster.at(place)?.name.clone(),
                labeled: report.labeled,
                unlabeled: report.unlabeled,
                source_error: report.source_error,
            })
        };
        let mut divergences = vec![0.0; n * n];
        let mut energy = vec![f64::NAN; n * n];
        for i in 0..n {
            for j in (0..n).filter(|&j| j != i) {
                let sides = [self.pair(i.min(j), i.max(j)), self.pair(i.max(j), i.min(j))];
                let [Some(first), Some(second)] = sides else { return Err(incomplete()) };
                let own = if i < j { first } else { second };
                energy[i * n + j] = own.joules.unwrap_or(f64::NAN);
                let said = [first.measured, second.measured];
                divergences[i * n + j] = divergence(&self.settings, said).ok_or_else(incomplete)?;
            }
        }
        let ends = |&(from, to): &(Place, Place)| Some((self.index(from)?, self.index(to)?));
        let forbidden = self.forbidden.iter().filter_map(ends);
        let devices = self.members.iter().map(device).collect::<Option<_>>();
        let links = Links::from_rows(n, divergences, believable(n, &energy));
        let problem = setup.problem(devices.ok_or_else(incomplete)?, links, forbidden.collect());
        let problem = problem.map_err(|e| NoPlan::Because(e.to_string()))?;
        Ok(problem.with_disputes(self.forbidden.iter().filter_map(ends)))
    }

    /// Returns what the i-th member says of its pair with the j-th.
    fn pair(&self, i: usize, j: usize) -> Option<PairReport> {
        let report = &self.reports.get(&self.members[i])?.report;
        let peer = self.members[j];
        let at = report.pairs.binary_search_by_key(&peer, |pair| pair.peer).ok()?;
        Some(report.pairs[at])
    }
}
