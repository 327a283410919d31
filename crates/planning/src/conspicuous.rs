//! Devices whose own numbers are too good to be taken on trust, or whose models others had no use for.
//!
//! A source that lies about itself must look better than others to be chosen. What it says can be held against what all others say, before
//! any model is sent: how good others are, and how far two devices can be from each other that it says it is near to. Nobody is left out
//! for that. The targets of such a source get witnesses ([`crate::witness`]).

use crate::problem::{Links, Measured, Model, Problem};

/// A source is conspicuous if its own part of the bound, ε̂ + 6√(ln(2/δ)/(2 D̂)), is below this share of what it is for sources in the median. In the
/// fleets of docs/liars.md, honest ones have half of it or more.
const TOO_GOOD: f64 = 1.0 / 3.0;

/// A source is conspicuous if its distances to two devices add up to less than this share of their distance from each other. In a triangle it cannot be
/// below 1; estimates of honest devices have three quarters or more.
const TOO_NEAR: f64 = 0.5;

/// Only devices that are so far from each other are compared so: the estimate of a small divergence may be 0.
const APART: f64 = 1.0;

/// Devices with fewer samples are not compared so: chance explains that they seem near.
const LEAST_SAMPLES: u64 = 100;

/// The most devices, the nearest ones, among which pairs are looked at.
const MOST_NEAR: usize = 64;

/// So many devices must have had no use for a source's model. One alone may have a bad link, or lie.
const UNUSED_BY: usize = 2;

impl Problem {
    /// Whether each device is conspicuous: its error and samples, or its divergences, are far better than those of others allow, or the links
    /// from it to several devices are forbidden. One device cannot make another one conspicuous by that. It can by refusing a model of the
    /// other, and is conspicuous itself then ([`Problem::with_disputes`]).
    pub fn conspicuous(&self) -> Vec<bool> {
        let Model::Measured(m) = self.model() else { return vec![false; self.len()] };
        let mut terms: Vec<f64> = m.sender.iter().copied().filter(|s| s.is_finite()).collect();
        terms.sort_by(f64::total_cmp);
        let Some(&median) = terms.get(terms.len() / 2) else { return vec![false; self.len()] };
        let is_conspicuous = |device: usize| {
            m.sender[device] < TOO_GOOD * median
                || !m.hands_on(device)
                || m.is_of_no_use_to_several(device)
                || m.is_too_near(device)
        };
        (0..self.len()).map(|d| m.sender[d].is_finite() && is_conspicuous(d)).collect()
    }
}

impl Measured {
    fn is_of_no_use_to_several(&self, device: usize) -> bool {
        self.forbidden.iter().filter(|(link, _)| link.from == device).count() >= UNUSED_BY
    }

    /// Whether a device says that it is near to devices that are far from each other, in pairs that do not all have the same device in them:
    /// then it is not one of these that makes the difference.
    fn is_too_near(&self, device: usize) -> bool {
        let has_enough = |device: &usize| self.devices[*device].samples() >= LEAST_SAMPLES;
        let others = (0..self.devices.len()).filter(has_enough);
        has_enough(&device) && is_too_near(&self.links, device, others)
    }
}

fn is_too_near(links: &Links, device: usize, others: impl Iterator<Item = usize>) -> bool {
    let near = |to: usize| Some((links.get(device, to)?.divergence, to));
    let mut near: Vec<(f64, usize)> = others.filter_map(near).collect();
    near.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    near.truncate(MOST_NEAR);
    let between = |j: usize, k: usize| {
        links.get(j, k).or_else(|| links.get(k, j)).map_or(0.0, |link| link.divergence)
    };
    let pairs = near.iter().enumerate().flat_map(|(at, first)| {
        near[..at].iter().map(move |second| (first.0 + second.0, [first.1, second.1]))
    });
    let mut impossible = pairs.filter(|&(sum, [j, k])| {
        let apart = between(j, k);
        apart >= APART && sum < TOO_NEAR * apart
    });
    let Some((_, [j, k])) = impossible.next() else { return false };
    let mut without = [false; 2];
    impossible.any(|(_, pair)| {
        without = [without[0] || !pair.contains(&j), without[1] || !pair.contains(&k)];
        without == [true; 2]
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::bound::BoundKind;
    use crate::device::Device;
    use crate::plan::{Plan, evaluate};
    use crate::planner::handover::Forms;
    use crate::planner::{self, Outcome, Progress, Settings};
    use crate::problem::{Parts, Preset};

    const SOURCES: usize = 5;

    /// Five devices with labels and three without; the first four and the fifth to the last are of two kinds, which are far from each other.
    fn problem(
        change: impl FnOnce(&mut Vec<Device>, &mut dyn FnMut(usize, usize, f64)),
    ) -> Problem {
        let device = |i: usize| Device {
            name: format!("d{i}"),
            labeled: if i < SOURCES { 900 } else { 0 },
            unlabeled: 100 + 50 * i as u64,
            source_error: (i < SOURCES).then_some(0.1 + 0.02 * i as f64),
        };
        let mut devices: Vec<Device> = (0..8).map(device).collect();
        let mut divergences: Vec<f64> =
            (0..64).map(|k| if (k / 8 < 4) == (k % 8 < 4) { 0.3 } else { 1.9 }).collect();
        change(&mut devices, &mut |i, j, d| {
            (divergences[i * 8 + j], divergences[j * 8 + i]) = (d, d);
        });
        let links = Links::from_rows(8, divergences, vec![1.0; 64]);
        let preset = Preset::Balanced;
        let parts = Parts::measured(devices, links, preset, preset.weights(), BoundKind::Pooled);
        Problem::new(parts).unwrap()
    }

    fn found(problem: &Problem) -> Vec<usize> {
        let conspicuous = problem.conspicuous().into_iter().enumerate();
        conspicuous.filter_map(|(device, is)| is.then_some(device)).collect()
    }

    #[test]
    fn nobody_is_conspicuous_among_honest_devices() {
        assert_eq!(found(&problem(|_, _| {})), [] as [usize; 0]);
        // Not even one with three times the samples of all others and a third of their error.
        let large = problem(|devices, _| {
            (devices[1].labeled, devices[1].source_error) = (3_000, Some(0.03));
        });
        assert_eq!(found(&large), [] as [usize; 0]);
    }

    #[test]
    fn one_that_never_errs_on_fifty_times_the_samples_is_conspicuous() {
        let magnet = problem(|devices, _| {
            (devices[1].labeled, devices[1].source_error) = (50_000, Some(0.0));
        });
        assert_eq!(found(&magnet), [1]);
        // Two of five that do so do not make it usual.
        let magnets = problem(|devices, _| {
            for device in &mut devices[..2] {
                (device.labeled, device.source_error) = (50_000, Some(0.0));
            }
        });
        assert_eq!(found(&magnets), [0, 1]);
    }

    #[test]
    fn one_that_is_near_to_devices_far_from_each_other_is_conspicuous() {
        let near_all = problem(|_, set| (0..8).filter(|&j| j != 2).for_each(|j| set(2, j, 0.1)));
        assert_eq!(found(&near_all), [2]);
        // With few samples everybody seems near.
        let small = problem(|devices, set| {
            (devices[2].labeled, devices[2].unlabeled) = (50, 40);
            (0..8).filter(|&j| j != 2).for_each(|j| set(2, j, 0.1));
        });
        assert_eq!(found(&small), [] as [usize; 0]);
        // One that says it is far from its like makes nobody conspicuous but, perhaps, itself.
        let far =
            problem(|_, set| (0..8).filter(|&j| j != 3 && j != 2).for_each(|j| set(3, j, 2.0)));
        assert_eq!(found(&far), [] as [usize; 0]);
    }

    #[test]
    fn one_whose_models_two_had_no_use_for_is_conspicuous() {
        let once = problem(|_, _| {}).without_link(0, 5);
        assert_eq!(found(&once), [] as [usize; 0]);
        assert_eq!(found(&once.without_link(0, 6)), [0]);
    }

    #[test]
    fn one_that_refuses_what_it_was_handed_and_who_handed_it_on_are_conspicuous() {
        // All are alike and have few labels, so that they hand models on.
        let alike = problem(|devices, set| {
            devices[..SOURCES].iter_mut().for_each(|device| device.labeled = 80);
            (0..8).for_each(|i| (0..i).for_each(|j| set(i, j, 0.1)));
        });
        let disputed = alike.clone().with_disputes([(1, 3), (3, 1), (0, 6)]);
        assert_eq!(found(&disputed), [1, 3]);
        // Who is in dispute with several is the one that is wrong.
        assert_eq!(found(&alike.clone().with_disputes([(1, 3), (1, 4), (2, 1)])), [1]);
        // They hand nothing on any more, and nothing is handed to them.
        let planned = |problem: &Problem| {
            let settings = Settings { handovers: Some(Forms::ALL), ..Settings::default() };
            let mut observer = |_: &Progress| ControlFlow::Continue(());
            match planner::plan(problem, &settings, &mut observer) {
                Outcome::Planned(plan) => *plan,
                Outcome::Infeasible(why) => panic!("{why}"),
            }
        };
        let [before, after] = [&alike, &disputed].map(planned);
        let takes_part =
            |plan: &Plan, device| plan.handovers.iter().any(|h| h.from == device || h.to == device);
        assert!((0..SOURCES).all(|i| takes_part(&before, i)), "{:?}", before.handovers);
        assert!([0, 2, 4].iter().all(|&device| takes_part(&after, device)));
        assert!([1, 3].iter().all(|&device| !takes_part(&after, device)), "{:?}", after.handovers);
        let Plan { bound, roles, links, handovers, .. } = before;
        let as_before = evaluate(&disputed, bound, &roles, &links, &handovers);
        assert_eq!(as_before.total(), f64::INFINITY);
    }
}
