//! How much divergences count: what devices with labels found, beside what their divergences say.
//!
//! Half a divergence bounds how much more a model errs on another device's data. Between people, months or sensors that bound is far off:
//! a classifier tells their data apart, and still a model of one does well at the other. So where scouts were sent
//! ([`stlf_method::scout`]), their errors at devices with labels say what share of ½ d̂ to count. Targets' labels play no part.

use stlf_config::Config;
use stlf_planning::Problem;
use stlf_planning::bound::BoundKind;

use super::measure::Measured;
use super::{SeedRun, plan};
use crate::Error;
use crate::summary::Spread;

/// The least share: what few labels say is not exact.
const LEAST: f64 = 0.05;

/// What a plan may cost, measuring included, as a part of what all links would.
const BUDGET: f64 = 1.0 / 3.0;

/// The same where devices are apart: a ring of nearly all sources is then the best that there is, and in a small fleet it is more than a third.
const BUDGET_APART: f64 = 1.0;

/// Weights of energy that are tried, as parts of the usual one, which is the first.
const WEIGHTS: [f64; 5] = [1.0, 0.4, 0.2, 0.1, 0.05];

/// What a seed counts, where that was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibrated {
    /// The share of ½ d̂ that plans count.
    pub share: f64,
    /// φ^E, the weight of energy that plans are made with.
    pub energy: f64,
    /// Whether devices are apart, so that the plan may cost as much as all links.
    pub is_apart: bool,
}

/// Whether a run measures the share: for rows of tables, under the pooled bound, unless the configuration has it or all links are used
/// anyway.
pub(crate) fn is_open(config: &Config) -> bool {
    let (data, planner) = (&config.data, &config.planner);
    let is_table = data.features.is_some() && data.images.is_none() && data.window.is_none();
    let is_planned = planner.bound == BoundKind::Pooled && !planner.sends_all();
    is_table && is_planned && planner.calibration.is_none()
}

/// The problem as it is planned, and what it counts, if that was measured: the share of ½ d̂, and the least weight of energy of those tried
/// at which the plan keeps within its budget. Where it does not at the usual weight, or nothing was measured, the problem stays as it is.
///
/// What the bound promises of one more source on a ring is little beside a link at the usual weight. Where it is calibrated, that little is
/// what to expect, and a third of all links is well spent on it. In small fleets a third is soon spent. There plans rely on who is near,
/// and divergences say that best as they are, unless nobody is near.
pub(crate) fn calibrated(
    run: &SeedRun<'_>,
    problem: Problem,
    measured: &Measured,
) -> Result<(Problem, Option<Calibrated>), Error> {
    let found = Found::of(run, measured).filter(|_| is_open(run.config));
    let Some(found) = found else { return Ok((problem, None)) };
    let Some(share) = found.share() else { return Ok((problem, None)) };
    let is_apart = found.is_apart();
    let budget = if is_apart { BUDGET_APART } else { BUDGET };
    let measuring: f64 = measured.cost.iter().map(|row| row.joules).sum();
    let usual = run.setup.weights.energy;
    let tried = if run.config.planner.phi_e.is_some() { &WEIGHTS[..1] } else { &WEIGHTS };
    let (mut kept, mut counted) = (problem, None);
    for part in tried {
        let calibrated = Calibrated { share, energy: part * usual, is_apart };
        let other = kept.with_calibration(share).with_energy_weight(calibrated.energy);
        let plan = plan::planned(&run.setup, &other, &run.watch)?;
        let all = plan.all_to_all_joules(&other).unwrap_or_default();
        let total = plan.joules(&other).map(|joules| joules + measuring);
        if total.is_none_or(|total| total > budget * all) {
            break;
        }
        (kept, counted) = (other, Some(calibrated));
    }
    Ok((kept, counted))
}

/// What was found at devices with labels.
struct Found {
    /// ē + s: the mean error of the others' scouts, and its standard error to be on the safe side.
    error: f64,
    /// d̄, the mean divergence between these devices.
    mean: f64,
    /// The divergence of the nearest other one, for each of them that has any.
    nearest: Vec<f64>,
}

impl Found {
    /// Returns what is found in a seed, if there were scouts.
    fn of(run: &SeedRun<'_>, measured: &Measured) -> Option<Found> {
        let has_labels = |device: usize| !run.fleet.devices[device].labels.is_empty();
        let between = measured.pairs.iter().filter(|&&(i, j, _)| has_labels(i) && has_labels(j));
        let between: Vec<(usize, usize, f64)> = between.copied().collect();
        let divergences: Vec<f64> = between.iter().map(|&(_, _, divergence)| divergence).collect();
        let nearest = |device: usize| {
            let own = between.iter().filter(|&&(i, j, _)| i == device || j == device);
            own.map(|&(_, _, divergence)| divergence).min_by(f64::total_cmp)
        };
        let nearest = (0..run.fleet.len()).filter_map(nearest).collect();
        Some(Found { error: error(&run.scouted)?, mean: Spread::of(&divergences)?.mean, nearest })
    }

    /// (ē + s) / (½ d̄), between [`LEAST`] and 1. Nothing where all divergences are 0.
    fn share(&self) -> Option<f64> {
        let said = 0.5 * self.mean;
        (said > 0.0).then(|| (self.error / said).clamp(LEAST, 1.0))
    }

    /// Whether even the nearest other device is far from the usual one: half its divergence is more than half of what the scouts of all
    /// others together err. Where devices are of a few kinds it is next to nothing.
    fn is_apart(&self) -> bool {
        let mut nearest = self.nearest.clone();
        nearest.sort_by(f64::total_cmp);
        nearest.get(nearest.len() / 2).is_some_and(|&usual| usual > self.error)
    }
}

/// ē + s of accuracies; nothing without any.
fn error(accuracies: &[f64]) -> Option<f64> {
    let errors: Vec<f64> = accuracies.iter().map(|accuracy| 1.0 - accuracy).collect();
    let found = Spread::of(&errors)?;
    Some(found.mean + found.deviation / (found.count as f64).sqrt())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn found(scouted: &[f64], mean: f64, nearest: &[f64]) -> Found {
        Found { error: error(scouted).unwrap(), mean, nearest: nearest.to_vec() }
    }

    #[test]
    fn a_share_is_what_was_found_over_what_divergences_say() {
        // Errors 0.1, 0.2, 0.3: mean 0.2, standard error 0.1/√3.
        let scouted = [0.9, 0.8, 0.7];
        let expected = (0.2 + 0.1 / 3f64.sqrt()) / 0.6;
        assert!((found(&scouted, 1.2, &[]).share().unwrap() - expected).abs() < 1e-12);
        assert_eq!(found(&[0.1, 0.2], 1.2, &[]).share(), Some(1.0), "never more than the bound");
        assert_eq!(found(&[1.0, 1.0], 1.2, &[]).share(), Some(LEAST));
        assert_eq!(found(&scouted, 0.0, &[]).share(), None);
        assert_eq!(error(&[]), None);
    }

    #[test]
    fn devices_are_apart_where_the_usual_one_has_nobody_near() {
        // 0.1 and no more.
        let scouted = [0.9, 0.9, 0.9, 0.9];
        let is_apart = |nearest: &[f64]| found(&scouted, 1.0, nearest).is_apart();
        assert!(is_apart(&[0.3, 0.9, 0.2, 0.05]));
        // Two kinds, one of which has a single device.
        assert!(!is_apart(&[0.0, 0.0, 0.02, 1.4]));
        assert!(!is_apart(&[]));
    }
}
