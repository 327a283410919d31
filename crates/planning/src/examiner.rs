//! Examiners: devices with labels that get a source's model only to try it, so that nobody without labels has to take it on trust.
//!
//! A target without labels cannot tell by one model that it is wrong. Somebody with labels can, at the price of one more model for
//! each source that sends to targets, however many these are.

use std::collections::BTreeSet;

use crate::plan::{Handover, PlanLink, is_on_ring, route};
use crate::problem::Problem;
use crate::witness::Witness;

/// A source that claims more errors than that at a device can hardly be found wrong by it.
const TELLING: f64 = 0.5;

/// A source that claims so many errors at a device cannot be found wrong by it: a tenth more is allowed.
const TELLS_NOTHING: f64 = 0.9;

/// A device with labels that tries the model of a source as its targets get it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Examination {
    /// The device with labels that tries the model.
    pub to: usize,
    /// The source whose model the examiner tries.
    pub from: usize,
}

/// What an examiner is chosen by: the least comes first.
type Worth = (bool, bool, f64, usize);

impl Problem {
    /// Who tries which models of a plan with these links, hand-overs and witnesses, sorted by examiner: every source that sends to targets has one
    /// examiner, unless somebody with labels gets the same model anyway, or nobody can tell anything of it. Of those that can tell best, because
    /// the model was trained there or the source claims to err on less than half of the samples there, the examiner is the one to which sending
    /// costs least. Where there are none, it is the one at which the source claims the least errors, if that is not nearly all. Devices that are
    /// conspicuous come last.
    pub fn examinations(
        &self,
        links: &[PlanLink],
        handovers: &[Handover],
        witnesses: &[Witness],
    ) -> Vec<Examination> {
        let senders: BTreeSet<usize> = links.iter().map(|link| link.from).collect();
        let conspicuous = self.conspicuous();
        let has_labels = |device: usize| self.own_claim(device).is_some();
        let is_tried = |from: usize| {
            let linked = links.iter().map(|link| (link.from, link.to));
            let heard = witnesses.iter().map(|witness| (witness.from, witness.to));
            // The model that goes round a ring is another one when it has been round.
            let handed = handovers.iter().filter(|h| !is_on_ring(handovers, h.to));
            let handed = handed.map(|handover| (handover.from, handover.to));
            let mut sent = linked.chain(heard).chain(handed);
            sent.any(|(sender, to)| sender == from && has_labels(to))
        };
        let worth = |from: usize, route: &[usize], to: usize| -> Option<Worth> {
            let error = self.claim(from, to)?.error;
            let trained = route.contains(&to);
            if error >= TELLS_NOTHING && !trained {
                return None;
            }
            let tells = error < TELLING || trained;
            let cost = if tells { self.link_energy(from, to)? } else { error };
            Some((conspicuous[to], !tells, cost, to))
        };
        let examination = |from: usize| {
            let route = route(handovers, from);
            let able = (0..self.len()).filter(|&to| to != from && has_labels(to));
            let best = able.filter_map(|to| worth(from, &route, to)).min_by(|a, b| {
                (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)).then(a.3.cmp(&b.3))
            });
            best.map(|(.., to)| Examination { to, from })
        };
        let untried = senders.into_iter().filter(|&from| !is_tried(from));
        let mut examinations: Vec<Examination> = untried.filter_map(examination).collect();
        examinations.sort_unstable();
        examinations
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::bound::BoundKind;
    use crate::device::Device;
    use crate::problem::{Link, Links, Parts, Preset};

    /// Four devices with labels and two without. The first three are near each other, the fourth is far from all; the third costs least to reach.
    fn problem() -> Problem {
        let device = |i: usize| Device {
            name: format!("d{i}"),
            labeled: if i < 4 { 500 } else { 0 },
            unlabeled: 500,
            source_error: (i < 4).then_some(0.1),
        };
        let far = |i: usize, j: usize| (i == 3) != (j == 3);
        let divergences = (0..36).map(|k| if far(k / 6, k % 6) { 2.0 } else { 0.3 }).collect();
        let energies = (0..36).map(|k| if k % 6 == 2 { 1.0 } else { 2.0 }).collect();
        let links = Links::from_rows(6, divergences, energies);
        let (preset, devices) = (Preset::Balanced, (0..6).map(device).collect());
        let parts = Parts::measured(devices, links, preset, preset.weights(), BoundKind::Pooled);
        Problem::new(parts).unwrap()
    }

    fn link(from: usize, to: usize) -> PlanLink {
        PlanLink { from, to, weight: 1.0 }
    }

    fn examined(problem: &Problem, links: &[PlanLink], handovers: &[Handover]) -> Vec<[usize; 2]> {
        let examinations = problem.examinations(links, handovers, &[]);
        examinations.into_iter().map(|Examination { to, from }| [to, from]).collect()
    }

    #[test]
    fn who_sends_to_many_has_one_examiner_that_is_cheap_and_can_tell() {
        let both = [link(0, 4), link(0, 5)];
        assert_eq!(examined(&problem(), &both, &[]), [[2, 0]]);
        // Not one over whose link no model came, and not a conspicuous one as long as there are others.
        assert_eq!(examined(&problem().without_link(0, 2), &both, &[]), [[1, 0]]);
        let accused = problem().with_disputes([(2, 1), (2, 3)]);
        assert_eq!(examined(&accused, &both, &[]), [[1, 0]]);
        // Of the device that is far from all nobody can tell anything.
        assert_eq!(examined(&problem(), &[link(3, 4)], &[]), [] as [[usize; 2]; 0]);
        // Of one that is not so far, the nearest can tell most.
        let at = |energy: f64, divergence: f64| Link { from: 3, divergence, energy };
        let nearer = problem().with_link(at(9.0, 1.2), 1).with_link(at(1.0, 1.4), 0);
        assert_eq!(examined(&nearer, &[link(3, 4)], &[]), [[1, 3]]);
    }

    #[test]
    fn who_gets_the_model_anyway_and_has_labels_needs_no_help() {
        let problem = problem();
        assert_eq!(examined(&problem, &[link(0, 1), link(0, 4)], &[]), [] as [[usize; 2]; 0]);
        let heard = [Witness { to: 1, from: 0 }];
        assert_eq!(problem.examinations(&[link(0, 4)], &[], &heard), []);
        let on = |from: usize, to: usize| Handover { from, to };
        // The second trains on the model of the first, which goes to a target, too; its own goes nowhere else.
        let row = examined(&problem, &[link(0, 4), link(1, 5)], &[on(0, 1)]);
        assert_eq!(row, [[2, 1]]);
        // Round a ring goes another model than the one that comes of it. Who trained it can tell, near or far.
        let ring = [on(1, 0), on(0, 1)];
        assert_eq!(examined(&problem, &[link(1, 4)], &ring), [[2, 1]]);
        let far = [on(3, 0), on(0, 3)];
        assert_eq!(examined(&problem, &[link(3, 4)], &far), [[0, 3]]);
    }

    #[test]
    fn nobody_tries_where_nobody_else_has_labels() {
        let alone = (0..4).filter(|&to| to != 1).fold(problem(), |p, to| p.without_link(1, to));
        assert_eq!(examined(&alone, &[link(1, 4)], &[]), [] as [[usize; 2]; 0]);
    }
}
