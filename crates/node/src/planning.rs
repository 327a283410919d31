//! What the planner of an epoch knows, which is numbers, and the plan that follows.

use std::collections::BTreeMap;

use stlf::bound::Bound;
use stlf::divergence::Settings;
use stlf::plan::Status;
use stlf::planner::{Outcome, optimum};
use stlf::problem::{ENERGY_EPSILON, Links, Parts, Source};
use stlf::{Problem, Role};

use crate::device::{Refusal, Setup};
use crate::exchange::divergence;
use crate::roster::Roster;
use crate::wire::{Link, Measured, PairReport, Plan, Report};

/// What a signature of a plan is for.
pub(crate) const PLAN: &str = "stlf-plan-message/1";

/// The planner's desk.
#[derive(Debug)]
pub(crate) struct Planner {
    /// Ascending.
    members: Vec<usize>,
    settings: Settings,
    reports: BTreeMap<usize, Report>,
}

impl Planner {
    pub(crate) fn new(members: &[usize], settings: &Settings) -> Planner {
        let settings = settings.clone();
        Planner { members: members.to_vec(), settings, reports: BTreeMap::new() }
    }

    /// Takes a report; what it says about others counts only together with what they say.
    pub(crate) fn hear(&mut self, from: usize, report: &Report) -> Result<(), Refusal> {
        let peers = report.pairs.iter().map(|pair| pair.peer as usize);
        if !peers.eq(self.members.iter().copied().filter(|&m| m != from)) {
            return Err(Refusal::Unfit("a report that is not about this epoch's devices"));
        }
        if !report.pairs.iter().all(|pair| self.can_measure(report, pair.measured)) {
            return Err(Refusal::Unfit("a report that is not of this estimator"));
        }
        match self.reports.get(&from) {
            Some(known) if known != report => Err(Refusal::Twice(from)),
            Some(_) => Ok(()),
            None => {
                self.reports.insert(from, report.clone());
                Ok(())
            }
        }
    }

    /// Whether a device with so many samples can come to this by the estimator.
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

    /// The optimal plan, once all have reported and if there is one.
    pub(crate) fn plan(&self, epoch: u64, roster: &Roster, setup: &Setup) -> Option<Plan> {
        if self.reports.len() < self.members.len() {
            return None;
        }
        let problem = self.problem(roster, setup)?;
        let Outcome::Planned(plan) = optimum(&problem) else { return None };
        let place = |device: usize| self.members[device] as u32;
        Some(Plan {
            epoch,
            sources: plan.with_role(Role::Source).map(place).collect(),
            targets: plan.with_role(Role::Target).map(place).collect(),
            links: plan
                .links
                .iter()
                .map(|link| Link {
                    from: place(link.from),
                    to: place(link.to),
                    weight: link.weight,
                })
                .collect(),
            objective: plan.objective(),
            optimal: plan.status == Status::Optimal,
        })
    }

    fn problem(&self, roster: &Roster, setup: &Setup) -> Option<Problem> {
        let n = self.members.len();
        let device = |&place: &usize| {
            let report = self.reports.get(&place)?;
            Some(stlf::Device {
                name: roster.devices.get(place)?.name.clone(),
                labeled: report.labeled,
                unlabeled: report.unlabeled,
                source_error: report.source_error,
            })
        };
        let mut divergences = vec![0.0; n * n];
        let mut energy = vec![f64::NAN; n * n];
        for i in 0..n {
            for j in (0..n).filter(|&j| j != i) {
                energy[i * n + j] = self.pair(i, j)?.joules.unwrap_or(f64::NAN);
                let sides = [self.pair(i.min(j), i.max(j))?, self.pair(i.max(j), i.min(j))?];
                let said = sides.map(|pair| pair.measured);
                divergences[i * n + j] = divergence(&self.settings, said)?;
            }
        }
        let (kind, complexity) = (setup.bound, setup.preset.complexity());
        Problem::new(Parts {
            devices: self.members.iter().map(device).collect::<Option<_>>()?,
            source: Source::Measured {
                links: Links::from_rows(n, divergences, energy),
                weights: setup.preset.weights(),
                bound: Bound { kind, complexity, ..Bound::default() },
                energy_epsilon: ENERGY_EPSILON,
                energy_unit: setup.preset.energy_unit(),
                disagreement: None,
            },
            pins: vec![None; n],
            forbidden: Vec::new(),
            required: Vec::new(),
        })
        .ok()
    }

    /// What the i-th member says of its pair with the j-th.
    fn pair(&self, i: usize, j: usize) -> Option<PairReport> {
        let report = self.reports.get(&self.members[i])?;
        let peer = self.members[j] as u32;
        let at = report.pairs.binary_search_by_key(&peer, |pair| pair.peer).ok()?;
        Some(report.pairs[at])
    }
}
