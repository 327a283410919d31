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

/// The name of the table with the plans of the frontier.
pub const TABLE: &str = "frontier.csv";

/// In a larger fleet so many plans may take minutes, and nobody asked for these.
const MOST_DEVICES: usize = 30;

/// How often the fleet is planned to find the frontier, and again for its plans, at most: so much takes no longer than the rest of a run.
/// A small fleet has fewer plans in all.
const MOST_PLANS: usize = 40;

/// The most plans where they have hand-overs, which take longer to find.
const MOST_PLANS_WITH_HANDOVERS: usize = 12;

/// The frontier reaches from the weight that was asked for by this factor to either side.
const REACH: f64 = 1e3;

/// An energy weight for every plan of the frontier, ascending: the problem's own, and the middle of the range of
/// weights for which each other plan is optimal. In a fleet with many plans, weights all over the range. `None` if `observer` ended
/// the search.
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

    /// Returns the mean accuracy of a plan's targets by the hidden labels, where these are known.
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::ops::ControlFlow;

    use stlf_planning::Device;
    use stlf_planning::bound::BoundKind;
    use stlf_planning::problem::{Links, Parts, Preset};
    use stlf_planning::sweep::sweep;

    use super::*;

    /// So many devices, half of them with labels, no two alike.
    fn fleet(n: usize) -> Problem {
        let device = |i: usize| Device {
            name: format!("d{i}"),
            labeled: if i < n / 2 { 100 + 10 * i as u64 } else { 0 },
            unlabeled: 100,
            source_error: (i < n / 2).then_some(0.2 + 0.01 * i as f64),
        };
        let square = |least: f64, step: usize| -> Vec<f64> {
            (0..n * n).map(|k| least + (k * step % 101) as f64 / 101.0).collect()
        };
        let links = Links::from_rows(n, square(0.2, 37), square(0.5, 53));
        let devices = (0..n).map(device).collect();
        let (preset, kind) = (Preset::Balanced, BoundKind::default());
        Problem::new(Parts::measured(devices, links, preset, preset.weights(), kind)).unwrap()
    }

    #[test]
    fn a_frontier_has_all_plans_of_a_small_fleet_and_some_of_a_large_one() {
        let settings = planner::Settings::default();
        let go_on = &mut |_: &Progress| ControlFlow::Continue(());
        for (devices, is_small) in [(6, true), (24, false)] {
            let problem = fleet(devices);
            let own = own_weight(&problem);
            let found = weights(&problem, &settings, go_on).unwrap();
            assert!(found.contains(&own) && found.is_sorted(), "{found:?}");
            let all = sweep(&problem, own / REACH..=own * REACH, &settings, go_on).unwrap();
            assert_eq!(all.solves <= MOST_PLANS, is_small, "{} solves", all.solves);
            match is_small {
                true => assert_eq!(found.len(), all.segments.len()),
                false => assert!((MOST_PLANS / 2..=MOST_PLANS).contains(&found.len())),
            }
        }
    }
}
