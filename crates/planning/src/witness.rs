//! Witnesses: devices whose models a target gets beside those of its plan, only to check these against them.
//!
//! A target without labels can tell that a source lies only by other models. To withstand f liars among those that it hears, it must hear
//! 2 f + 1 of them, so that the honest ones are more. The f of a target is what its fleet agreed on, or more where sources of its plan are
//! conspicuous ([`Problem::conspicuous`]): as many as these.

use stlf_optim::pooled::best_mixture;

use crate::bound::Bound;
use crate::device::Role;
use crate::plan::{PlanLink, incoming};
use crate::problem::{Model, Problem, is_far};

/// What a source's own numbers say of its model at one target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Claim {
    /// ε̂_i + ½ d̂_ij: by the bound, the share of the target's samples on which its model errs.
    pub error: f64,
    /// D̂_i, the number of its samples.
    pub samples: f64,
    /// d̂_ij, the divergence between the source and the target, from 0 to 2.
    pub divergence: f64,
}

impl Claim {
    /// Of a source that says nothing of itself: its model may err on everything.
    pub const NOTHING: Claim = Claim { error: 1.0, samples: 1.0, divergence: 2.0 };

    /// Whether its source is so far that the divergence tells nothing.
    pub fn is_far(&self) -> bool {
        is_far(self.divergence)
    }
}

/// A device whose model a target gets to check others against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Witness {
    /// The target that gets the model.
    pub to: usize,
    /// The device whose model the target gets.
    pub from: usize,
}

impl Problem {
    /// What a device's own numbers say of its model at a target; nothing without labels, without a link, or with raw costs.
    pub fn claim(&self, from: usize, to: usize) -> Option<Claim> {
        let Model::Measured(m) = &self.model() else { return None };
        let device = &m.devices[from];
        let divergence = m.links.get(from, to)?.divergence;
        let error = device.source_error? + 0.5 * divergence;
        Some(Claim { error, samples: device.samples() as f64, divergence })
    }

    /// What a device's own numbers say of its model on its own samples; nothing without labels, or with raw costs.
    pub fn own_claim(&self, device: usize) -> Option<Claim> {
        let Model::Measured(m) = &self.model() else { return None };
        let device = &m.devices[device];
        Some(Claim {
            error: device.source_error?,
            samples: device.samples() as f64,
            divergence: 0.0,
        })
    }

    /// The witnesses of a plan with these roles and links, sorted by target.
    pub fn witnesses(&self, roles: &[Role], links: &[PlanLink], liars: usize) -> Vec<Witness> {
        let targets = (0..roles.len()).filter(|&device| roles[device] == Role::Target);
        let conspicuous = self.conspicuous();
        let of = |to: usize| self.witnesses_of(to, incoming(links, to), liars, &conspicuous);
        targets.flat_map(|to| of(to).into_iter().map(move |from| Witness { to, from })).collect()
    }

    /// The witnesses of a target with these links, ascending: so many that it hears at least 2 f + 1 models, where so many devices with
    /// labels reach it, and f is the larger of `liars` and the number of its sources that are conspicuous; none where both are 0. First come those
    /// that are not conspicuous, and of these those that claim the smallest error there, whatever their role: all devices with labels have
    /// trained a model.
    pub fn witnesses_of(
        &self,
        to: usize,
        planned: &[PlanLink],
        liars: usize,
        conspicuous: &[bool],
    ) -> Vec<usize> {
        let liars = liars.max(planned.iter().filter(|link| conspicuous[link.from]).count());
        if liars == 0 {
            return Vec::new();
        }
        let is_free = |from: &usize| *from != to && planned.iter().all(|l| l.from != *from);
        let mut others: Vec<(bool, f64, usize)> = (0..self.len())
            .filter(is_free)
            .filter_map(|from| Some((conspicuous[from], self.claim(from, to)?.error, from)))
            .collect();
        others.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        let missing = (2 * liars + 1).saturating_sub(planned.len());
        let mut chosen: Vec<usize> =
            others.into_iter().take(missing).map(|(.., from)| from).collect();
        chosen.sort_unstable();
        chosen
    }
}

/// The weights by which models with these claims are mixed best, energies aside: those of the least pooled bound.
pub fn best_weights(claims: &[Claim]) -> Vec<f64> {
    let scale = Bound::default().pooling_scale();
    let part = |claim: &Claim| (claim.error, scale * scale / claim.samples);
    best_mixture(&claims.iter().map(part).collect::<Vec<_>>())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::bound::{BoundKind, Share};
    use crate::device::Device;
    use crate::planner::{Outcome, optimum};
    use crate::problem::{Links, Parts, Preset};

    /// Four devices with labels, at these distances from a target without, the first of which it takes alone.
    fn problem(distances: [f64; 4]) -> Problem {
        problem_with(distances, [500; 4])
    }

    /// Returns the same problem, in which devices have so many labels each.
    fn problem_with(distances: [f64; 4], labels: [u64; 4]) -> Problem {
        let device = |i: usize| Device {
            name: format!("d{i}"),
            labeled: if i < 4 { labels[i] } else { 0 },
            unlabeled: 500,
            source_error: (i < 4).then_some(0.1),
        };
        let at = |i: usize, j: usize| match (i.min(j), i.max(j)) {
            (low, high) if low == high => 0.0,
            (low, 4) => distances[low],
            _ => 1.5,
        };
        let divergences = (0..25).map(|k| at(k / 5, k % 5)).collect();
        let links = Links::from_rows(5, divergences, vec![1.0; 25]);
        let (preset, devices) = (Preset::Balanced, (0..5).map(device).collect());
        let parts = Parts::measured(devices, links, preset, preset.weights(), BoundKind::Pooled);
        Problem::new(parts).unwrap()
    }

    #[test]
    fn a_target_hears_two_more_models_than_twice_the_liars_less_one() {
        let problem = problem([0.0, 1.8, 0.9, 1.2]);
        let Outcome::Planned(plan) = optimum(&problem) else { panic!("no plan") };
        assert_eq!(plan.incoming(4).iter().map(|l| l.from).collect::<Vec<_>>(), [0]);
        let from = |liars: usize| {
            let witnesses = problem.witnesses(&plan.roles, &plan.links, liars);
            assert!(witnesses.iter().all(|w| w.to == 4));
            witnesses.iter().map(|w| w.from).collect::<Vec<_>>()
        };
        assert_eq!(from(0), [] as [usize; 0]);
        assert_eq!(from(1), [2, 3], "the nearest");
        assert_eq!(from(2), [1, 2, 3], "as many as there are");
        assert_eq!(
            problem.claim(2, 4),
            Some(Claim { error: 0.1 + 0.45, samples: 1000.0, divergence: 0.9 })
        );
        assert_eq!(problem.claim(4, 0), None, "without labels");
    }

    #[test]
    fn targets_of_conspicuous_sources_hear_more_whatever_was_agreed_on() {
        // The second has samples beyond all measure, and the target takes its model.
        let problem = problem_with([0.2, 0.0, 0.9, 1.2], [500, 5_000_000, 500, 500]);
        let conspicuous = problem.conspicuous();
        assert_eq!(conspicuous, [false, true, false, false, false]);
        let link = |from: usize| PlanLink { from, to: 4, weight: 1.0 };
        let of =
            |from: usize, liars: usize| problem.witnesses_of(4, &[link(from)], liars, &conspicuous);
        assert_eq!(of(1, 0), [0, 2], "the nearest");
        assert_eq!(of(0, 0), [] as [usize; 0], "the others' targets need none");
        // As a witness it comes last, however good it claims to be.
        assert_eq!((of(0, 1), of(0, 2)), (vec![2, 3], vec![1, 2, 3]));
    }

    #[test]
    fn no_other_weights_have_a_lower_bound() {
        let claims = [(0.2, 500.0), (0.25, 900.0), (0.6, 2000.0)].map(|(error, samples)| Claim {
            error,
            samples,
            ..Claim::NOTHING
        });
        let cost = |weights: &[f64]| {
            let share = |(claim, weight): (&Claim, &f64)| Share {
                weight: *weight,
                source_error: claim.error,
                divergence: 0.0,
                samples: claim.samples,
            };
            let shares: Vec<Share> = claims.iter().zip(weights).map(share).collect();
            Bound::default().pooled_target(&shares, 1000.0)
        };
        let best = best_weights(&claims);
        for a in 0..=20 {
            for b in 0..=20 - a {
                let other = [a, b, 20 - a - b].map(|k| f64::from(k) / 20.0);
                assert!(cost(&best) <= cost(&other) + 1e-12, "{best:?} {other:?}");
            }
        }
    }
}
