//! Why a source takes whose model, and what would make it start from its own.
//!
//! The plan is compared with the best one that the search finds with the same roles and without that hand-over. Both are fixed, so that
//! each costs an affine function of the divergence and, in joules, of the energy of the link in question; in mean links the energy
//! also moves the mean, and the crossing is that of two lines over one denominator.

use super::{Flip, Quantity};
use crate::plan::{Handover, Plan, Terms, evaluate};
use crate::planner::handover::{Forms, Found, Watch, search};
use crate::problem::{EnergyUnit, Link, Measured, Model, Problem};

/// A model that a source trains on.
#[derive(Debug, Clone, PartialEq)]
pub struct TakenModel {
    /// The hand-over over which the source takes the model.
    pub handover: Handover,
    /// How much more the best plan costs that was found without it. The search for hand-overs proves nothing, so it may be less than 0.
    pub extra: f64,
    /// What would make that plan the cheaper one: the divergence and the energy of the link.
    pub flips: Vec<Flip>,
}

/// What there is to say of the model that a source takes, if it takes one. `alone` is the plan without hand-overs: without this one,
/// targets may be better off as there.
pub(super) fn taken_model(
    problem: &Problem,
    plan: &Plan,
    alone: &Plan,
    device: usize,
    watch: &mut Watch<'_>,
) -> Option<TakenModel> {
    let handover = Handover { from: plan.handed_from(device)?, to: device };
    let Model::Measured(m) = problem.model() else { return None };
    let rival = rival(problem, plan, alone, handover, watch)?;
    let extra = rival.terms.total() - plan.objective();
    let link = m.links.get(handover.from, handover.to)?;
    let flips = match extra >= 0.0 {
        true => vec![
            Flip {
                quantity: Quantity::Divergence,
                now: link.divergence,
                at: divergence(problem, plan, &rival, link, device),
            },
            Flip {
                quantity: Quantity::Energy,
                now: link.energy,
                at: energy(m, plan.terms, rival.terms, plan.times(handover))
                    .map(|more| link.energy + more),
            },
        ],
        false => Vec::new(),
    };
    Some(TakenModel { handover, extra, flips })
}

/// The best plan with the same roles that is found without a hand-over.
fn rival(
    problem: &Problem,
    plan: &Plan,
    alone: &Plan,
    without: Handover,
    watch: &mut Watch<'_>,
) -> Option<Found> {
    let links = if alone.roles == plan.roles { &alone.links } else { &plan.links };
    search(problem, &plan.roles, links, Forms::ALL, Some(without), watch)
}

/// A slope below this fraction of the objective is a rounding error.
const FLAT: f64 = 1e-9;

/// The divergence of a link at which the rival is as cheap.
fn divergence(problem: &Problem, plan: &Plan, rival: &Found, link: Link, to: usize) -> Option<f64> {
    let far = problem.with_link(Link { divergence: link.divergence + 1.0, ..link }, to);
    let roles = &plan.roles;
    let cost = |problem: &Problem| {
        let ours = evaluate(problem, plan.bound, roles, &plan.links, &plan.handovers);
        let theirs = evaluate(problem, plan.bound, roles, &rival.links, &rival.handovers);
        theirs.total() - ours.total()
    };
    let (here, there) = (cost(problem), cost(&far));
    let slope = Some(here - there).filter(|slope| *slope > FLAT * plan.objective().abs())?;
    super::flip::affine(link.divergence, here, slope)
}

/// How much more energy of a link that the plan uses so many times and the rival does not makes the rival as cheap.
fn energy(m: &Measured, plan: Terms, rival: Terms, times: usize) -> Option<f64> {
    let price = m.energy_cost(1.0);
    if price <= 0.0 {
        return None;
    }
    let extra = rival.total() - plan.total();
    let slope = match m.energy_unit {
        EnergyUnit::Joules => times as f64 * price,
        // F + P·E/μ, with E + tΔ for the plan and μ + Δ/n for both: they meet where (F' − F)(μ + Δ/n) = P(E + tΔ − E').
        EnergyUnit::MeanLink => {
            let errors = rival.source + rival.target - plan.source - plan.target;
            times as f64 * price - errors / (m.mean_link.0 * m.mean_link.1 as f64)
        }
    };
    (slope > 0.0).then(|| extra / slope).filter(|more| more.is_finite())
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::device::Device;
    use crate::planner::{Outcome, Settings, plan};
    use crate::problem::{ENERGY_EPSILON, Links, Parts, Preset, Source};

    /// Devices of which half have labels, with near divergences: there hand-overs pay.
    fn fleet(unit: EnergyUnit, labeled: usize, seed: u64) -> Problem {
        let n = 2 * labeled;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let devices = (0..n).map(|i| Device {
            name: format!("d{i}"),
            labeled: if i < labeled { rng.random_range(100..2000) } else { 0 },
            unlabeled: 100,
            source_error: (i < labeled).then(|| rng.random_range(0.0..0.2)),
        });
        let devices: Vec<Device> = devices.collect();
        let divergence = (0..n * n).map(|_| rng.random_range(0.0..0.1)).collect();
        let energy = (0..n * n).map(|_| rng.random_range(1.0..2.0)).collect();
        let source = Source::Measured {
            links: Links::from_rows(n, divergence, energy),
            weights: Preset::Balanced.weights(),
            bound: crate::bound::Bound::default(),
            energy_epsilon: ENERGY_EPSILON,
            energy_unit: unit,
            disagreement: None,
        };
        let (pins, forbidden, required) = (vec![None; n], Vec::new(), Vec::new());
        Problem::new(Parts { devices, source, pins, forbidden, required }).unwrap()
    }

    proptest! {
        #[test]
        fn at_a_threshold_the_plan_without_the_hand_over_is_as_cheap(
            unit in prop_oneof![Just(EnergyUnit::MeanLink), Just(EnergyUnit::Joules)],
            labeled in 2..6usize, seed in 0..u64::MAX,
        ) {
            let problem = fleet(unit, labeled, seed);
            let settings = Settings { handovers: Some(Forms::ALL), ..Settings::default() };
            let go_on = &mut |_: &_| ControlFlow::Continue(());
            let mut planned = |settings: &Settings| match plan(&problem, settings, go_on) {
                Outcome::Planned(plan) => plan,
                Outcome::Infeasible(_) => unreachable!(),
            };
            let (plan, alone) = (planned(&settings), planned(&Settings::default()));
            let Model::Measured(m) = problem.model() else { unreachable!() };
            for &handover in &plan.handovers {
                let Handover { from, to } = handover;
                let taken = taken_model(&problem, &plan, &alone, to, &mut || ControlFlow::Continue(())).unwrap();
                let rival = rival(&problem, &plan, &alone, handover, &mut || ControlFlow::Continue(())).unwrap();
                prop_assert!(!rival.handovers.contains(&handover));
                let link = m.links.get(from, to).unwrap();
                for flip in taken.flips {
                    let apart = |value: f64| {
                        let changed = match flip.quantity {
                            Quantity::Energy => Link { energy: value, ..link },
                            _ => Link { divergence: value, ..link },
                        };
                        let changed = problem.with_link(changed, to);
                        let (roles, bound) = (&plan.roles, plan.bound);
                        let with = evaluate(&changed, bound, roles, &plan.links, &plan.handovers);
                        let without = evaluate(&changed, bound, roles, &rival.links, &rival.handovers);
                        without.total() - with.total()
                    };
                    match flip.at {
                        Some(at) => {
                            prop_assert!(apart(at).abs() < 1e-9 * plan.objective(), "{flip:?}");
                            prop_assert!(apart(1.01 * at + 0.01) < 0.0, "{flip:?}");
                        }
                        // However large, the hand-over stays.
                        None if flip.quantity == Quantity::Energy => {
                            prop_assert!(apart(1e6) > 0.0, "{flip:?}");
                        }
                        None => prop_assert!(apart(2.0) > -1e-9, "{flip:?}"),
                    }
                }
            }
        }
    }
}
