//! A plan as it is sent: who does what in an epoch, by places in the roster.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use stlf_planning::Role;
use stlf_planning::plan::{self, PlanLink, RingPlace, Way, check_handovers, legs};
use stlf_planning::planner::handover::Forms;

use super::{Malformed, is_share};
use crate::roster::Place;

/// Who does what in an epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The number of the epoch that the plan is for.
    pub epoch: u64,
    /// The devices that train.
    pub sources: Vec<Place>,
    /// The devices that receive.
    pub targets: Vec<Place>,
    /// Sorted by receiver, then sender.
    pub links: Vec<Link>,
    /// Sorted by receiver, who takes one model at most.
    #[serde(default)]
    pub handovers: Vec<Sending>,
    /// Whose models targets get to check others against, sorted by receiver, then sender.
    #[serde(default)]
    pub witnesses: Vec<Sending>,
    /// Whose models devices with labels get to try them, as targets get them; sorted by receiver, then sender.
    #[serde(default)]
    pub examinations: Vec<Sending>,
    /// Links that could not be used, because no usable model came over them, ascending.
    #[serde(default)]
    pub forbidden: Vec<(Place, Place)>,
    /// The objective, which is what the plan costs by the reports that it was made from.
    pub objective: f64,
    /// Whether it is proven that no plan costs less.
    pub optimal: bool,
}

/// A link in use.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// The source that sends its model.
    pub from: Place,
    /// The target that receives it.
    pub to: Place,
    /// The weight α of the model at the target, above 0 and at most 1.
    pub weight: f64,
}

/// A device sends its model to another one: to a source that trains it on, to a target that checks others against it, or to a device with labels that
/// tries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sending {
    /// Whose model it is.
    pub from: Place,
    /// Who gets it.
    pub to: Place,
}

/// A model that one source hands to another, which trains it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leg {
    /// Who hands it over.
    pub from: Place,
    /// The source that trains it on.
    pub to: Place,
    /// The way that it has been on at the first.
    pub sent: Way,
    /// The way that it is on at the second.
    pub taken: Way,
    /// Where the second stands, on the second way round a ring.
    pub ring: Option<RingPlace>,
}

impl Plan {
    /// Returns the bytes that the planner signs.
    pub fn bytes(&self) -> Vec<u8> {
        postcard::to_allocvec(self).unwrap_or_default()
    }

    /// A device's role; none for a device that is not in the plan.
    pub fn role(&self, place: Place) -> Option<Role> {
        let listed = |places: &[Place]| places.contains(&place);
        match (listed(&self.sources), listed(&self.targets)) {
            (true, false) => Some(Role::Source),
            (false, true) => Some(Role::Target),
            _ => None,
        }
    }

    /// The links into a device.
    pub fn incoming(&self, place: Place) -> impl Iterator<Item = Link> + '_ {
        self.links.iter().copied().filter(move |link| link.to == place)
    }

    /// Returns whose model a source trains on, if any.
    pub fn handed_from(&self, place: Place) -> Option<Place> {
        let at = self.handovers.binary_search_by_key(&place, |handover| handover.to).ok()?;
        Some(self.handovers[at].from)
    }

    /// Returns whose models a device needs: a target those of its links and witnesses, a source the one that it trains on, an examiner those that it tries.
    pub fn senders(&self, place: Place) -> impl Iterator<Item = Place> + '_ {
        let links = self.incoming(place).map(|link| link.from);
        let others = self.witnesses_of(place).chain(self.handed_from(place));
        links.chain(others).chain(self.examined_by(place))
    }

    /// All links that models go over, from and to.
    pub fn sends(&self) -> BTreeSet<(Place, Place)> {
        let devices = self.sources.iter().chain(&self.targets);
        devices.flat_map(|&to| self.senders(to).map(move |from| (from, to))).collect()
    }

    /// Returns whose models a device tries for the targets of these.
    pub fn examined_by(&self, place: Place) -> impl Iterator<Item = Place> + '_ {
        self.examinations.iter().filter(move |one| one.to == place).map(|one| one.from)
    }

    /// Returns whose models a target gets to check others against.
    pub fn witnesses_of(&self, target: Place) -> impl Iterator<Item = Place> + '_ {
        self.witnesses.iter().filter(move |witness| witness.to == target).map(|w| w.from)
    }

    /// The way on which a device has the model that it sends as a witness: the last that it trains on.
    pub fn way_of_witness(&self, witness: Place) -> Way {
        let again = |leg: &Leg| leg.to == witness && leg.taken == Way::Second;
        if self.legs().iter().any(again) { Way::Second } else { Way::First }
    }

    /// The models that are sent over its hand-overs, each after those that it needs.
    pub fn legs(&self) -> Vec<Leg> {
        let leg = |leg: plan::Leg| Leg {
            from: Place::new(leg.handover.from),
            to: Place::new(leg.handover.to),
            sent: leg.sent,
            taken: leg.taken,
            ring: leg.ring,
        };
        legs(&self.indexed_handovers(), &self.indexed_links()).into_iter().map(leg).collect()
    }

    /// The sources that the model of a source has been at, the source itself last.
    pub fn route(&self, source: Place) -> Vec<Place> {
        let route = plan::route(&self.indexed_handovers(), source.index());
        route.into_iter().map(Place::new).collect()
    }

    /// The sources that a model has been at when it comes over a leg, but for the one that it comes to.
    pub fn been_at(&self, leg: &Leg) -> Vec<Place> {
        let handovers = self.indexed_handovers();
        let is_leg =
            |other: &plan::Leg| (other.handover.to, other.taken) == (leg.to.index(), leg.taken);
        let legs = legs(&handovers, &self.indexed_links());
        let leg = legs.iter().find(|other| is_leg(other));
        let been_at = leg.map(|leg| plan::been_at(&handovers, leg)).unwrap_or_default();
        been_at.into_iter().map(Place::new).collect()
    }

    /// The way on which a source has the model that it sends to targets.
    pub fn way_to_targets(&self, source: Place) -> Way {
        plan::way_to_targets(&self.indexed_handovers(), source.index())
    }

    /// Hand-overs by plain numbers, which are places here.
    fn indexed_handovers(&self) -> Vec<plan::Handover> {
        let indexed = |h: &Sending| plan::Handover { from: h.from.index(), to: h.to.index() };
        self.handovers.iter().map(indexed).collect()
    }

    /// Links by the same.
    fn indexed_links(&self) -> Vec<PlanLink> {
        let indexed = |link: &Link| PlanLink {
            from: link.from.index(),
            to: link.to.index(),
            weight: link.weight,
        };
        self.links.iter().map(indexed).collect()
    }

    /// Returns whether some model goes over more sources than plans have it go, in a chain or round a ring.
    fn hands_on_too_often(&self) -> bool {
        let is_too_long = |handover: &Sending| {
            let (mut at, mut hops) = (handover.from, 1);
            while at != handover.to && hops <= Forms::ALL.ring {
                match self.handed_from(at) {
                    Some(from) => (at, hops) = (from, hops + 1),
                    None => return hops > Forms::ALL.longest,
                }
            }
            !(2..=Forms::ALL.ring).contains(&hops)
        };
        self.handovers.iter().any(is_too_long)
    }

    /// That it is a plan at all, for whatever devices. Order comes first: what is there twice is refused before anything is looked up.
    pub(crate) fn check(&self) -> Result<(), Malformed> {
        let holds = |fine: bool, what| if fine { Ok(()) } else { Err(Malformed::Absurd(what)) };
        let ascending = |places: &[Place]| places.is_sorted_by(|a, b| a < b);
        let by_receiver = |of: &[Sending]| of.is_sorted_by(|a, b| (a.to, a.from) < (b.to, b.from));
        let is_in = |places: &[Place], place: Place| places.binary_search(&place).is_ok();
        let apart = |places: &[Place]| !places.iter().any(|&s| is_in(&self.targets, s));
        holds(
            ascending(&self.sources) && ascending(&self.targets) && apart(&self.sources),
            "a plan's devices are not ascending, or have two roles",
        )?;
        let sorted = self.links.is_sorted_by(|a, b| (a.to, a.from) < (b.to, b.from));
        holds(sorted, "links are not ascending, or one is there twice")?;
        holds(by_receiver(&self.witnesses), "witnesses are not ascending")?;
        holds(by_receiver(&self.examinations), "examinations are not ascending")?;
        holds(self.forbidden.is_sorted_by(|a, b| a < b), "forbidden links are not ascending")?;
        let one_each = self.handovers.is_sorted_by(|a, b| a.to < b.to);
        holds(one_each, "hand-overs are not ascending, or a source is handed two models")?;
        let (is_source, is_target) =
            (|place| is_in(&self.sources, place), |place| is_in(&self.targets, place));
        let between = |link: &Link| is_source(link.from) && is_target(link.to);
        holds(self.links.iter().all(between), "a link is not from a source to a target")?;
        let weighs = |link: &Link| link.weight > 0.0 && is_share(link.weight);
        holds(self.links.iter().all(weighs), "a weight is not above 0 and at most 1")?;
        let columns: Vec<&[Link]> = self.links.chunk_by(|a, b| a.to == b.to).collect();
        let served = columns.iter().map(|column| column[0].to);
        holds(served.eq(self.targets.iter().copied()), "a target has no link")?;
        let sum = |column: &&[Link]| column.iter().map(|link| link.weight).sum::<f64>();
        let is_whole = |column: &&[Link]| (sum(column) - 1.0).abs() < 1e-6;
        holds(columns.iter().all(is_whole), "a target's weights do not sum to one")?;
        let between = |handover: &Sending| is_source(handover.from) && is_source(handover.to);
        holds(self.handovers.iter().all(between), "a hand-over is not between sources")?;
        holds(!self.hands_on_too_often(), "a model is handed on too often")?;
        let followed = check_handovers(&self.indexed_handovers(), &self.indexed_links());
        followed.map_err(|broken| Malformed::Absurd(broken.rule()))?;
        let is_listed = |place: Place| is_source(place) || is_target(place);
        let is_link = |to: Place, from: Place| {
            self.links.binary_search_by_key(&(to, from), |link| (link.to, link.from)).is_ok()
        };
        let is_apart = |&Sending { from, to }: &Sending| {
            is_target(to) && from != to && is_listed(from) && !is_link(to, from)
        };
        holds(self.witnesses.iter().all(is_apart), "a witness is not of a target")?;
        let senders: BTreeSet<Place> = self.links.iter().map(|link| link.from).collect();
        let is_of_sender =
            |one: &Sending| senders.contains(&one.from) && one.from != one.to && is_listed(one.to);
        holds(
            self.examinations.iter().all(is_of_sender),
            "an examiner tries a model that no target gets",
        )?;
        holds(self.objective.is_finite(), "an objective is not a number")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::super::tests::{handover, link, places, plan};
    use super::super::{Envelope, Message, SignedPlan};
    use super::*;

    #[test]
    fn a_model_is_handed_on_as_often_as_plans_may_and_no_more() {
        let row = |hops: usize| {
            let handovers = (0..hops).map(|k| handover(k, k + 1)).collect();
            let (sources, targets) = (places(0..=hops), places([99]));
            let plan = Plan {
                sources,
                targets,
                links: vec![link(hops, 99, 1.0)],
                witnesses: Vec::new(),
                examinations: Vec::new(),
                ..plan()
            };
            let message = Message::Plan(SignedPlan {
                plan: Plan { handovers, ..plan },
                reports: Vec::new(),
                signature: Vec::new(),
            });
            Envelope::read(&Envelope::new(1, message).to_bytes())
        };
        assert!(row(Forms::ALL.longest).is_ok());
        assert!(matches!(row(Forms::ALL.longest + 1), Err(Malformed::Absurd(_))));
    }

    #[test]
    fn a_ring_has_as_many_sources_as_plans_may_and_no_more() {
        let ring = |sources: usize| {
            let before = |k: usize| (k + sources - 1) % sources;
            let handovers = (0..sources).map(|k| handover(before(k), k)).collect();
            let (targets, links) = (places([99]), vec![link(0, 99, 1.0)]);
            let plan = Plan {
                sources: places(0..sources),
                targets,
                links,
                handovers,
                witnesses: Vec::new(),
                examinations: Vec::new(),
                ..plan()
            };
            let message =
                Message::Plan(SignedPlan { plan, reports: Vec::new(), signature: Vec::new() });
            Envelope::read(&Envelope::new(1, message).to_bytes())
        };
        assert!(ring(2).is_ok() && ring(Forms::ALL.ring).is_ok());
        for sources in [1, Forms::ALL.ring + 1, 90] {
            assert!(matches!(ring(sources), Err(Malformed::Absurd(_))), "{sources}");
        }
    }

    #[test]
    fn a_witness_sends_the_model_that_it_trained_on_last() {
        let ring = vec![handover(2, 0), handover(0, 2)];
        let (links, witnesses) = (vec![link(2, 1, 1.0)], vec![handover(0, 1), handover(4, 1)]);
        let plan = Plan { links, handovers: ring, witnesses, ..plan() };
        let way = |witness| plan.way_of_witness(Place::new(witness));
        assert_eq!((way(0), way(4)), (Way::Second, Way::First));
        // As in the simulator, where a model on a ring is the one of the second way for whoever gets it.
        assert_eq!(plan.way_to_targets(Place::new(0)), way(0));
        // Nobody sends the ring's model to a target, so that nobody passes it round.
        let unsent = Plan { links: vec![link(4, 1, 1.0)], ..plan };
        assert_eq!(unsent.way_of_witness(Place::new(0)), Way::First);
    }

    #[test]
    fn a_plan_says_who_needs_whose_model() {
        let plan = plan();
        let senders = |to| plan.senders(Place::new(to)).collect::<Vec<_>>();
        assert_eq!(senders(1), places([0, 2, 4, 5]));
        assert_eq!(plan.way_of_witness(Place::new(5)), Way::First);
        assert_eq!(senders(2), places([5, 0]), "one to train on, one to try");
        assert_eq!(senders(5), places([2]));
        let legs: Vec<_> =
            plan.legs().iter().map(|leg| (leg.from.index(), leg.to.index())).collect();
        assert_eq!(legs, [(5, 2), (2, 4)]);
        assert_eq!(plan.way_to_targets(Place::new(2)), Way::First);
    }
}
