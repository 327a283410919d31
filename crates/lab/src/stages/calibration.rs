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

/// Weights of energy that are tried, as parts of the usual one, which is the first.
const WEIGHTS: [f64; 5] = [1.0, 0.4, 0.2, 0.1, 0.05];

/// What a seed counts, where that was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibrated {
    /// The share of ½ d̂.
    pub share: f64,
    /// The weight of energy.
    pub energy: f64,
}

/// Whether a run measures the share: for rows of tables, under the pooled bound, unless the configuration has it.
pub(crate) fn is_open(config: &Config) -> bool {
    let (data, planner) = (&config.data, &config.planner);
    let is_table = data.features.is_some() && data.images.is_none() && data.window.is_none();
    is_table && planner.calibration.is_none() && planner.bound == BoundKind::Pooled
}

/// The problem as it is planned, and what it counts, if that was measured: the share of ½ d̂, and the least weight of energy of those tried
/// at which the plan keeps within [`BUDGET`]. Where it does not at the usual weight, or nothing was measured, the problem stays as it is.
///
/// What the bound promises of one more source on a ring is little beside a link at the usual weight. Where it is calibrated, that little is
/// what to expect, and up to a third of all links is well spent on it. In small fleets a third is soon spent. There plans rely on who is
/// near, and divergences say that best as they are.
pub(crate) fn calibrated(
    run: &SeedRun<'_>,
    problem: Problem,
    measured: &Measured,
) -> Result<(Problem, Option<Calibrated>), Error> {
    let found = found(run, measured).filter(|_| is_open(run.config));
    let Some(share) = found else { return Ok((problem, None)) };
    let measuring: f64 = measured.cost.iter().map(|row| row.joules).sum();
    let usual = run.setup.weights.energy;
    let tried = if run.config.planner.phi_e.is_some() { &WEIGHTS[..1] } else { &WEIGHTS };
    let (mut kept, mut counted) = (problem, None);
    for part in tried {
        let calibrated = Calibrated { share, energy: part * usual };
        let other = kept.with_calibration(share).with_energy_weight(calibrated.energy);
        let plan = plan::planned(&run.setup, &other, &run.watch)?;
        let all = plan.all_to_all_joules(&other).unwrap_or_default();
        let total = plan.joules(&other).map(|joules| joules + measuring);
        if total.is_none_or(|total| total > BUDGET * all) {
            break;
        }
        (kept, counted) = (other, Some(calibrated));
    }
    Ok((kept, counted))
}

/// The share that scouts found in a seed, if there were any.
fn found(run: &SeedRun<'_>, measured: &Measured) -> Option<f64> {
    let has_labels = |device: usize| !run.fleet.devices[device].labels.is_empty();
    let between = measured.pairs.iter().filter(|&&(i, j, _)| has_labels(i) && has_labels(j));
    let divergences: Vec<f64> = between.map(|&(_, _, divergence)| divergence).collect();
    share(&run.scouted, &divergences)
}

/// (ē + s) / (½ d̄): the mean error of scouts at devices with labels, and its standard error to be on the safe side, over the mean of
/// what divergences between these devices say. Nothing without scouts, or where all divergences are 0.
fn share(scouted: &[f64], divergences: &[f64]) -> Option<f64> {
    let errors: Vec<f64> = scouted.iter().map(|accuracy| 1.0 - accuracy).collect();
    let found = Spread::of(&errors)?;
    let said = 0.5 * Spread::of(divergences)?.mean;
    let error = found.mean + found.deviation / (found.count as f64).sqrt();
    (said > 0.0).then(|| (error / said).clamp(LEAST, 1.0))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_what_was_found_over_what_divergences_say() {
        // Errors 0.1, 0.2, 0.3: mean 0.2, standard error 0.1/√3.
        let (scouted, divergences) = ([0.9, 0.8, 0.7], [1.0, 1.4]);
        let expected = (0.2 + 0.1 / 3f64.sqrt()) / 0.6;
        assert!((share(&scouted, &divergences).unwrap() - expected).abs() < 1e-12);
        assert_eq!(share(&[0.1, 0.2], &divergences), Some(1.0), "never more than the bound");
        assert_eq!(share(&[1.0, 1.0], &divergences), Some(LEAST));
        assert_eq!(share(&[], &divergences), None);
        assert_eq!(share(&scouted, &[0.0]), None);
    }
}
