//! The models that are sent over hand-overs, in an order in which they can be: who trains what it is handed, and hands what on.
//!
//! Over most hand-overs one model is sent. On a ring of n sources a model goes round twice, from the first source's own model on, and so
//! there are 2n − 1 of them: n − 1 on the first way, and n on the second, which begins with what the last source made on the first.

use serde::{Deserialize, Serialize};

use super::{Handover, PlanLink, is_on_ring, route};

/// How often a model has come to a source: every model comes once, and on a ring it comes again.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// The model comes for the first time, and the source trains it on.
    #[default]
    First,
    /// For the second time; the source keeps the mean of what came and what its training made of it.
    Second,
}

impl Way {
    /// Both ways, in the order in which a model goes them.
    pub const ALL: [Way; 2] = [Way::First, Way::Second];
}

/// Where a source stands on its ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingPlace {
    /// How many sources are before it.
    pub index: usize,
    /// How many sources the ring has.
    pub sources: usize,
}

/// One model that is sent over a hand-over, and trained where it comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leg {
    /// The hand-over, which says who sends the model and who takes it.
    pub handover: Handover,
    /// The way that the model has been on at its sender.
    pub sent: Way,
    /// The way that it is on at its receiver.
    pub taken: Way,
    /// How many legs the model has made before.
    pub before: usize,
    /// Where the receiver stands, on the second way round a ring.
    pub ring: Option<RingPlace>,
}

/// All legs of hand-overs that a plan can have, each after those that it needs.
pub fn legs(handovers: &[Handover], links: &[PlanLink]) -> Vec<Leg> {
    let sends = |source: usize| links.iter().any(|link| link.from == source);
    let mut legs = Vec::new();
    for &handover in handovers {
        if !is_on_ring(handovers, handover.to) {
            let before = route(handovers, handover.from).len() - 1;
            legs.push(Leg { handover, sent: Way::First, taken: Way::First, before, ring: None });
        } else if sends(handover.to) {
            round(&route(handovers, handover.to), &mut legs);
        }
    }
    legs.sort_by_key(|leg| (leg.before, leg.handover.to));
    legs
}

/// The legs of a ring, from its first source to its last.
fn round(ring: &[usize], legs: &mut Vec<Leg>) {
    let (sources, mut before) = (ring.len(), 0);
    let ways = [(Way::First, 1), (Way::Second, 0)];
    for (taken, begins) in ways {
        for index in begins..sources {
            let from = ring[(index + sources - 1) % sources];
            let handover = Handover { from, to: ring[index] };
            let sent = if index == 0 { Way::First } else { taken };
            let place = (taken == Way::Second).then_some(RingPlace { index, sources });
            legs.push(Leg { handover, sent, taken, before, ring: place });
            before += 1;
        }
    }
}

/// The sources that a model has been at when it comes over a leg, but for the one that it comes to. On the first way round a ring it has not
/// been at those that follow.
pub fn been_at(handovers: &[Handover], leg: &Leg) -> Vec<usize> {
    let mut route = route(handovers, leg.handover.from);
    let mut been_at = route.split_off(route.len().saturating_sub(leg.before + 1));
    been_at.retain(|&source| source != leg.handover.to);
    been_at
}

/// The way on which a source has the model that it sends to targets.
pub fn way_to_targets(handovers: &[Handover], source: usize) -> Way {
    if is_on_ring(handovers, source) { Way::Second } else { Way::First }
}

#[cfg(test)]
mod tests {
    use super::super::times;
    use super::*;

    fn handed(from: usize, to: usize) -> Handover {
        Handover { from, to }
    }

    fn link(from: usize, to: usize) -> PlanLink {
        PlanLink { from, to, weight: 1.0 }
    }

    /// That every leg begins with a model that its sender has by then, and that each hand-over has as many as are counted for it.
    fn can_be_walked(handovers: &[Handover], links: &[PlanLink]) {
        let legs = legs(handovers, links);
        for (at, leg) in legs.iter().enumerate() {
            let makes =
                |other: &Leg| (other.handover.to, other.taken) == (leg.handover.from, leg.sent);
            match legs.iter().position(makes) {
                Some(made) => assert!(made < at && legs[made].before + 1 == leg.before, "{leg:?}"),
                None => assert_eq!((leg.sent, leg.before), (Way::First, 0), "{leg:?}"),
            }
        }
        for &handover in handovers {
            let sent = legs.iter().filter(|leg| leg.handover == handover).count();
            assert_eq!(sent, times(handovers, links, handover));
        }
    }

    #[test]
    fn a_tree_has_a_leg_for_every_hand_over() {
        let tree = [handed(4, 0), handed(0, 1), handed(0, 2), handed(2, 3)];
        let links = [link(1, 9), link(3, 9)];
        can_be_walked(&tree, &links);
        let legs = legs(&tree, &links);
        let last = legs.iter().find(|leg| leg.handover == handed(2, 3)).unwrap();
        assert_eq!(been_at(&tree, last), [4, 0, 2]);
        assert!(legs.iter().all(|leg| leg.taken == Way::First && leg.ring.is_none()));
        assert_eq!(legs.iter().map(|leg| leg.before).collect::<Vec<_>>(), [0, 1, 1, 2]);
        assert_eq!(way_to_targets(&tree, 3), Way::First);
    }

    #[test]
    fn a_ring_is_gone_round_twice_from_the_first_to_the_last() {
        // 5 is the last, and 2 the first.
        let ring = [handed(5, 2), handed(2, 3), handed(3, 5)];
        let links = [link(5, 9), link(5, 8), link(1, 7)];
        can_be_walked(&ring, &links);
        let (one, two) = (Way::First, Way::Second);
        let walked: Vec<_> = legs(&ring, &links)
            .iter()
            .map(|leg| (leg.handover.from, leg.sent, leg.handover.to, leg.taken))
            .collect();
        let expected = [(2, one, 3, one), (3, one, 5, one), (5, one, 2, two), (2, two, 3, two)];
        assert_eq!(walked[..4], expected);
        assert_eq!(walked[4..], [(3, two, 5, two)]);
        // On the first way the model has not been at the sources that follow.
        let been: Vec<Vec<usize>> =
            legs(&ring, &links).iter().map(|leg| been_at(&ring, leg)).collect();
        assert_eq!(been, [vec![2], vec![2, 3], vec![3, 5], vec![5, 2], vec![2, 3]]);
        let places = legs(&ring, &links).into_iter().filter_map(|leg| leg.ring);
        assert!(places.eq((0..3).map(|index| RingPlace { index, sources: 3 })));
        assert_eq!((way_to_targets(&ring, 5), way_to_targets(&ring, 1)), (two, one));
    }

    #[test]
    fn two_rings_are_gone_round_side_by_side() {
        let rings = [handed(1, 0), handed(0, 1), handed(4, 2), handed(2, 3), handed(3, 4)];
        let links = [link(0, 9), link(4, 8)];
        can_be_walked(&rings, &links);
        assert_eq!(legs(&rings, &links).len(), 3 + 5);
    }
}
