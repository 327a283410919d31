//! How much divergences count: what devices with labels found, beside what their divergences say.
//!
//! Half a divergence bounds how much more a model errs on another device's data. Between people, months or sensors that bound is far off:
//! a classifier tells their data apart, and still a model of one does well at the other. So where scouts were sent
//! ([`stlf_method::scout`]), their errors at devices with labels say what share of ½ d̂ to count. Where devices are of a few kinds, the scouts
//! that are near do better than all together; there divergences say whom to take, and count in full. Targets' labels play no part.

use stlf_config::Config;
use stlf_method::scout::of_a_few_at_pretended_targets;
use stlf_planning::Problem;
use stlf_planning::bound::BoundKind;

use super::measure::Measured;
use super::{SeedRun, plan};
use crate::Error;
use crate::scale_choice::{gain, labels};
use crate::summary::Spread;

/// The least share: what few labels say is not exact.
const LEAST: f64 = 0.05;

/// What a plan may cost, measuring included, as a part of what all links would.
const BUDGET: f64 = 1.0 / 3.0;

/// The same where devices are apart: a ring of nearly all sources is then the best that there is, and in a small fleet it is more than a third.
const BUDGET_APART: f64 = 1.0;

/// The part of the others that are near a device.
const NEAR: f64 = 1.0 / 3.0;

/// By how many standard errors those that are near must do better. To take from them alone where all are of use costs much more than the reverse.
const SURELY: f64 = 2.0;

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
    /// By how much the scouts that are near do better than all together, where they do.
    pub near_gain: Option<f64>,
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
        let energy = part * usual;
        let calibrated = Calibrated { share, energy, is_apart, near_gain: found.near_gain() };
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
    /// By how much the mixture of the nearest scouts is better than that of all, if it is.
    near_gain: Option<f64>,
}

impl Found {
    /// Returns what is found in a seed, if there were scouts.
    fn of(run: &SeedRun<'_>, measured: &Measured) -> Option<Found> {
        let error = error(&run.scouted)?;
        let devices = &run.fleet.devices;
        let labeled: Vec<usize> =
            (0..devices.len()).filter(|&device| !devices[device].labels.is_empty()).collect();
        let others: Vec<Vec<(usize, f64)>> =
            labeled.iter().map(|&device| by_divergence(device, &labeled, measured)).collect();
        let divergences: Vec<f64> = others.iter().flatten().map(|&(_, d)| d).collect();
        let nearest = others.iter().filter_map(|others| others.first()).map(|&(_, d)| d).collect();
        let near = |others: &Vec<(usize, f64)>| -> Vec<usize> {
            let some = (NEAR * (labeled.len() - 1) as f64).ceil() as usize;
            others.iter().take(some).map(|&(other, _)| other).collect()
        };
        let near: Vec<Vec<usize>> = others.iter().map(near).collect();
        let classes = run.setup.spec.output().len();
        let width = run.fleet.shape.len();
        let of_near = of_a_few_at_pretended_targets(&labels(&run.fleet), &near, width, classes);
        Some(Found {
            error,
            mean: Spread::of(&divergences)?.mean,
            nearest,
            near_gain: gain(&of_near, &run.scouted, SURELY),
        })
    }

    /// (ē + s) / (½ d̄), between [`LEAST`] and 1; 1 where those that are near do better. Nothing where all divergences are 0.
    fn share(&self) -> Option<f64> {
        let said = 0.5 * self.mean;
        if said > 0.0 && self.near_gain().is_some() {
            return Some(1.0);
        }
        (said > 0.0).then(|| (self.error / said).clamp(LEAST, 1.0))
    }

    /// By how much those that are near do better than all, if somebody is near: the nearest of devices that are apart are better by chance alone.
    fn near_gain(&self) -> Option<f64> {
        self.near_gain.filter(|_| !self.is_apart())
    }

    /// Whether even the nearest other device is far from the usual one: half its divergence is more than half of what the scouts of all
    /// others together err. Where devices are of a few kinds it is next to nothing.
    fn is_apart(&self) -> bool {
        let mut nearest = self.nearest.clone();
        nearest.sort_by(f64::total_cmp);
        nearest.get(nearest.len() / 2).is_some_and(|&usual| usual > self.error)
    }
}

/// The other devices with labels, by their places among these, and their divergences from one; the nearest first.
fn by_divergence(device: usize, labeled: &[usize], measured: &Measured) -> Vec<(usize, f64)> {
    let other = |&(i, j, divergence): &(usize, usize, f64)| {
        let other = if i == device { j } else { i };
        let is_own = i == device || j == device;
        let place = labeled.binary_search(&other).ok().filter(|_| is_own)?;
        Some((place, divergence))
    };
    let mut others: Vec<(usize, f64)> = measured.pairs.iter().filter_map(other).collect();
    others.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    others
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
        let error = error(scouted).unwrap();
        Found { error, mean, nearest: nearest.to_vec(), near_gain: None }
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
    fn divergences_count_in_full_where_those_that_are_near_do_better() {
        let all = found(&[0.9, 0.8, 0.7], 1.2, &[]);
        let near = |nearest: &[f64]| Found {
            near_gain: Some(0.02),
            ..found(&[0.9, 0.8, 0.7], 1.2, nearest)
        };
        assert!(all.share().unwrap() < 0.5);
        assert_eq!(near(&[0.1, 0.0, 0.1]).share(), Some(1.0));
        // Nobody is near.
        assert_eq!(near(&[0.4, 0.5, 0.6]).share(), all.share());
    }

    #[test]
    fn others_are_sorted_by_divergence() {
        let pairs = vec![(0, 1, 0.5), (0, 3, 0.2), (1, 3, 0.9), (2, 3, 0.1), (0, 4, 0.2)];
        let measured = Measured { pairs, are_links: false, cost: Vec::new() };
        // The third has no labels.
        let labeled = [0, 1, 3, 4];
        assert_eq!(by_divergence(0, &labeled, &measured), [(2, 0.2), (3, 0.2), (1, 0.5)]);
        assert_eq!(by_divergence(3, &labeled, &measured), [(0, 0.2), (1, 0.9)]);
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
