//! Plans along the weight of energy: what a joule buys.

use rayon::prelude::*;
use stlf_planning::Problem;
use stlf_planning::device::Role;
use stlf_planning::plan::{Plan, Status};
use stlf_planning::planner::{self, Observer, Outcome, Progress};
use stlf_planning::problem::Model;
use stlf_planning::sweep::{Segment, sweep_at_most};

use crate::baselines::Assignment;

use super::transfer::Transfer;
use crate::Error;
use crate::record::FrontierRow;

/// The table of the frontier.
pub const TABLE: &str = "frontier.csv";

/// In a larger fleet so many plans may take minutes, and nobody asked for these.
const MOST_DEVICES: usize = 30;

/// How often the fleet is planned to find the frontier, and again for its plans, at most: so much takes no longer than the rest of a run.
/// A small fleet has fewer plans in all.
const MOST_PLANS: usize = 40;

/// The same where plans have hand-overs, which take longer to find.
const MOST_PLANS_WITH_HANDOVERS: usize = 12;

/// The frontier reaches from the weight that was asked for by this factor to either side.
const REACH: f64 = 1e3;

/// An energy weight for every plan of the frontier, ascending: the problem's own, and the middle of the range of
/// weights for which each other plan is optimal. In a fleet with many plans, weights all over the range. `None` if `observer` ended the search.
pub fn weights(
    problem: &Problem,
    settings: &planner::Settings,
    observer: &mut Observer<'_>,
) -> Option<Vec<f64>> {
    let own = own_weight(problem);
    if problem.len() > MOST_DEVICES || own <= 0.0 {
        return Some(vec![own]);
    }
    let mut ended = false;
    let range = own / REACH..=own * REACH;
    let most = match settings.handovers {
        Some(_) => MOST_PLANS_WITH_HANDOVERS,
        None => MOST_PLANS,
    };
    let found = sweep_at_most(most, problem, range, settings, &mut |progress| {
        let flow = observer(progress);
        ended |= flow.is_break();
        flow
    });
    let segments = found.ok().filter(|_| !ended)?.segments;
    let weight =
        |s: &Segment| if s.from <= own && own <= s.to { own } else { (s.from * s.to).sqrt() };
    let mut weights: Vec<f64> = segments.iter().map(weight).collect();
    // At a breakpoint two plans have the own weight.
    weights.dedup();
    Some(weights)
}

/// φ^E of a problem; 0 with raw costs, which have none.
pub fn own_weight(problem: &Problem) -> f64 {
    match problem.model() {
        Model::Measured(measured) => measured.weights.energy,
        Model::Costs(_) => 0.0,
    }
}

/// The best plan at one energy weight; `None` if `observer` ended the search.
pub fn plan_at(
    problem: &Problem,
    weight: f64,
    settings: &planner::Settings,
    observer: &mut Observer<'_>,
) -> Option<(Problem, Box<Plan>)> {
    let problem = problem.with_energy_weight(weight);
    let mut ended = false;
    let outcome = planner::plan(&problem, settings, &mut |progress| {
        let flow = observer(progress);
        ended |= flow.is_break();
        flow
    });
    match outcome {
        Outcome::Planned(plan) if !ended => Some((problem, plan)),
        _ => None,
    }
}

impl Transfer<'_> {
    /// How accurate and how costly the plans at other energy weights would be. The run's own plan stands among them.
    pub fn frontier(&self, own: &Plan) -> Result<(), Error> {
        let folder = &self.run.folder;
        if folder.read(TABLE)?.is_some() {
            return Ok(());
        }
        let watch = &self.run.watch;
        // All of its plans together may take as long as the run's own; those that do not fit are left out.
        let flow = watch.within(self.run.config.planner.limit().unwrap_or_default());
        let mut observer = |_: &Progress| flow();
        let own_weight = own_weight(self.problem);
        let settings = planner::Settings::default().handing_on(!own.handovers.is_empty());
        let weights = weights(self.problem, &settings, &mut observer);
        let weights = weights.unwrap_or_else(|| vec![own_weight]);
        let row = |&weight: &f64| -> Result<Option<FrontierRow>, Error> {
            watch.check()?;
            if weight == own_weight {
                return Ok(Some(self.frontier_row(own, weight, self.mean_accuracy(own)?)));
            }
            let Some((_, plan)) = plan_at(self.problem, weight, &settings, &mut |_| flow()) else {
                return Ok(None);
            };
            // Every hand-over is a training, and nobody asked for these.
            let accuracy = match plan.handovers.is_empty() {
                true => self.mean_accuracy(&plan)?,
                false => None,
            };
            Ok(Some(self.frontier_row(&plan, weight, accuracy)))
        };
        let rows: Vec<Option<FrontierRow>> =
            weights.par_iter().map(row).collect::<Result<_, Error>>()?;
        watch.check()?;
        let rows: Vec<FrontierRow> = rows.into_iter().flatten().collect();
        Ok(folder.write_csv(TABLE, &rows)?)
    }

    /// Of a plan's targets by the hidden labels, where these are known.
    fn mean_accuracy(&self, plan: &Plan) -> Result<Option<f64>, Error> {
        let assigned = Assignment::from(plan);
        let handed_on = self.after_handovers(&assigned)?;
        let sent = handed_on.as_ref().unwrap_or(self);
        let mut accuracies = Vec::new();
        for target in plan.with_role(Role::Target) {
            let combined = sent.combined(assigned.incoming(target), target)?;
            let truth = self.run.fleet.devices[target].truth.as_ref();
            accuracies.extend(combined.zip(truth).map(|(p, truth)| p.accuracy(truth)));
        }
        let count = accuracies.len() as f64;
        Ok((count > 0.0).then(|| accuracies.iter().sum::<f64>() / count))
    }

    fn frontier_row(&self, plan: &Plan, weight: f64, accuracy: Option<f64>) -> FrontierRow {
        let joules = plan.joules(self.problem);
        let all = plan.all_to_all_joules(self.problem);
        FrontierRow {
            energy_weight: weight,
            proven: plan.status == Status::Optimal,
            error_bound: plan.terms.source + plan.terms.target,
            sources: plan.with_role(Role::Source).count(),
            links: plan.models_sent(),
            joules,
            energy_share: joules.zip(all).filter(|(_, all)| *all > 0.0).map(|(j, all)| j / all),
            accuracy,
        }
    }
}
