//! Who holds an epoch up, as far as its planner can tell.

use std::collections::{BTreeMap, BTreeSet};

use super::Running;
use crate::roster::Place;

/// Whom and what the next epoch does without.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Blame {
    /// Devices.
    pub(super) out: BTreeSet<Place>,
    /// Links, from and to.
    pub(super) links: BTreeSet<(Place, Place)>,
}

impl Running {
    /// Returns those that hold the epoch up, for the planner at `own`, which itself waits for the `missing`. Links that are forbidden already are no reason to wait.
    pub(super) fn blame(
        &self,
        own: Place,
        missing: &[Place],
        forbidden: &BTreeSet<(Place, Place)>,
    ) -> Blame {
        match &self.links {
            None => {
                let out = before_plan(own, missing, &self.complaints, &self.reported);
                Blame { out, links: BTreeSet::new() }
            }
            Some(links) => {
                let waits = self.waits(own, missing, &(links - forbidden));
                after_plan(own, &self.members - &self.done, &self.done, &waits)
            }
        }
    }

    /// Returns who waits for whose model, as links from and to, of which only these are believed. Whoever is done waits for nobody.
    fn waits(
        &self,
        own: Place,
        missing: &[Place],
        links: &BTreeSet<(Place, Place)>,
    ) -> BTreeSet<(Place, Place)> {
        let own_waits = missing.iter().map(|&from| (from, own));
        let others = self.complaints.iter().filter(|(by, _)| !self.done.contains(by));
        let others = others.flat_map(|(&by, of)| of.iter().map(move |&from| (from, by)));
        own_waits.chain(others).filter(|link| links.contains(link)).collect()
    }
}

/// Returns those that others wait for and that do not themselves wait for one of these; if there is none, those that most wait for, and among them those
/// that complain about most.
///
/// Whoever has reported is named only if the planner itself waits for it, or more than one device does: a single one may lie.
fn before_plan(
    own: Place,
    missing: &[Place],
    complaints: &BTreeMap<Place, BTreeSet<Place>>,
    reported: &BTreeSet<Place>,
) -> BTreeSet<Place> {
    let mut named: BTreeMap<Place, usize> = BTreeMap::new();
    let others = complaints.iter().flat_map(|(by, of)| of.iter().filter(move |of| *of != by));
    let all = missing.iter().chain(others).filter(|place| **place != own);
    all.for_each(|place| *named.entry(*place).or_default() += 1);
    let is_hearsay = |place: &Place| reported.contains(place) && !missing.contains(place);
    named.retain(|place, count| *count > 1 || !is_hearsay(place));
    let waits = |place: &Place| {
        let of = complaints.get(place).into_iter().flatten();
        of.filter(|of| *of != place).any(|of| named.contains_key(of))
    };
    let silent: BTreeSet<Place> = named.keys().copied().filter(|place| !waits(place)).collect();
    if !silent.is_empty() {
        return silent;
    }
    let complains = |place| (place, complaints.get(&place).map_or(0, BTreeSet::len));
    most(&most(&named).into_iter().map(complains).collect())
}

/// Returns those that are not done and wait for nobody.
///
/// Where a device waits for one that says it is done, one of the two lies, or what was sent did not arrive; nobody else can know. So neither
/// is left out. Only the link between them is not used again, which costs nobody who tells the truth more than one model. Whoever is in several of
/// these disputes, and in most of all, is left out: the others would all have to lie.
///
/// If there is neither, devices wait for each other in a circle, and the links that it consists of are not used again.
fn after_plan(
    own: Place,
    mut unfinished: BTreeSet<Place>,
    done: &BTreeSet<Place>,
    waits: &BTreeSet<(Place, Place)>,
) -> Blame {
    unfinished.remove(&own);
    let waiting: BTreeSet<Place> = waits.iter().map(|(_, to)| *to).collect();
    let mut links: BTreeSet<(Place, Place)> =
        waits.iter().copied().filter(|(from, _)| done.contains(from)).collect();
    let mut disputes: BTreeMap<Place, usize> = BTreeMap::new();
    let ends = links.iter().flat_map(|&(from, to)| [from, to]).filter(|end| *end != own);
    ends.for_each(|end| *disputes.entry(end).or_default() += 1);
    disputes.retain(|_, count| *count > 1);
    let mut out = most(&disputes);
    links.retain(|(from, to)| !out.contains(from) && !out.contains(to));
    out.extend(unfinished.difference(&waiting));
    if out.is_empty() && links.is_empty() {
        links = circles(waits.clone());
    }
    Blame { out, links }
}

/// Returns those with the highest count.
fn most(counts: &BTreeMap<Place, usize>) -> BTreeSet<Place> {
    let most = counts.values().max();
    counts.iter().filter(|(_, count)| Some(*count) == most).map(|(&place, _)| place).collect()
}

/// Returns what is left of links without those to devices that no link leads on from.
fn circles(mut links: BTreeSet<(Place, Place)>) -> BTreeSet<(Place, Place)> {
    loop {
        let senders: BTreeSet<Place> = links.iter().map(|(from, _)| *from).collect();
        let before = links.len();
        links.retain(|(_, to)| senders.contains(to));
        if links.len() == before {
            return links;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: [Place; 5] =
        [Place::new(0), Place::new(1), Place::new(2), Place::new(3), Place::new(4)];

    fn links(of: &[(usize, usize)]) -> BTreeSet<(Place, Place)> {
        of.iter().map(|&(from, to)| (PLACES[from], PLACES[to])).collect()
    }

    fn places(of: &[usize]) -> BTreeSet<Place> {
        of.iter().map(|&place| PLACES[place]).collect()
    }

    /// Of five devices, of which the first plans and these are not done, who and what is given up.
    fn given_up(
        unfinished: &[usize],
        waits: &[(usize, usize)],
    ) -> (BTreeSet<Place>, BTreeSet<(Place, Place)>) {
        let unfinished = places(unfinished);
        let done = &BTreeSet::from(PLACES) - &unfinished;
        let found = after_plan(PLACES[0], unfinished, &done, &links(waits));
        (found.out, found.links)
    }

    /// The same before there is a plan, where the planner misses some, others have reported, and devices complain.
    fn out_before_plan(
        missing: &[usize],
        reported: &[usize],
        complaints: &[(usize, &[usize])],
    ) -> BTreeSet<Place> {
        let missing: Vec<Place> = missing.iter().map(|&place| PLACES[place]).collect();
        let complaints = complaints.iter().map(|&(by, of)| (PLACES[by], places(of))).collect();
        before_plan(PLACES[0], &missing, &complaints, &places(reported))
    }

    #[test]
    fn before_a_plan_who_waits_for_one_that_did_not_report_is_not_to_blame() {
        assert_eq!(out_before_plan(&[1, 2, 3], &[4], &[(1, &[3]), (2, &[3])]), places(&[3]));
        // The planner misses one that waits for another, which it has heard all of.
        assert_eq!(out_before_plan(&[2], &[], &[(2, &[3])]), places(&[3]));
    }

    #[test]
    fn a_complaint_alone_has_nobody_out_that_has_reported() {
        let all: &[usize] = &[0, 1, 2, 3, 4];
        assert_eq!(out_before_plan(&[4], &[1, 2, 3], &[(4, all)]), places(&[4]));
        // Not all have reported, since they wait for the one that complains.
        let complaints: [(usize, &[usize]); 3] = [(1, &[4]), (2, &[4]), (4, all)];
        assert_eq!(out_before_plan(&[4], &[3], &complaints), places(&[4]));
        // Where it is one against one, whoever complains about more is out.
        assert_eq!(out_before_plan(&[1, 4], &[2, 3], &[(1, &[4]), (4, all)]), places(&[4]));
        // Several do not lie.
        assert_eq!(out_before_plan(&[1, 2], &[3, 4], &[(1, &[4]), (2, &[4])]), places(&[4]));
    }

    #[test]
    fn between_a_device_that_is_done_and_one_that_waits_for_it_only_the_link_is_given_up() {
        assert_eq!(given_up(&[2], &[(1, 2)]), (places(&[]), links(&[(1, 2)])));
        // The planner is believed no more than others that its model has not come.
        assert_eq!(given_up(&[2], &[(0, 2)]), (places(&[]), links(&[(0, 2)])));
        // Somebody else is silent: it is out, and the link is not used either.
        let found = given_up(&[2, 3], &[(1, 2), (3, 2)]);
        assert_eq!(found, (places(&[3]), links(&[(1, 2)])));
        // Nobody complains.
        assert_eq!(given_up(&[2, 3], &[]), (places(&[2, 3]), links(&[])));
    }

    #[test]
    fn who_waits_for_one_that_waits_is_not_to_blame() {
        assert_eq!(given_up(&[1, 2, 3], &[(1, 2), (2, 3)]), (places(&[1]), links(&[])));
        assert_eq!(given_up(&[0, 2, 3], &[(0, 2), (3, 0)]), (places(&[3]), links(&[])));
    }

    #[test]
    fn whoever_is_in_dispute_with_several_that_cannot_all_lie_is_out() {
        // It waits for several that are done, or is done and several wait for it.
        assert_eq!(given_up(&[3], &[(1, 3), (2, 3)]), (places(&[3]), links(&[])));
        assert_eq!(given_up(&[2, 3], &[(1, 2), (1, 3)]), (places(&[1]), links(&[])));
        let others = given_up(&[2, 3, 4], &[(1, 2), (1, 3), (0, 4)]);
        assert_eq!(others, (places(&[1]), links(&[(0, 4)])));
        // The planner knows that itself does not lie.
        assert_eq!(given_up(&[0], &[(1, 0), (2, 0)]), (places(&[]), links(&[(1, 0), (2, 0)])));
    }

    #[test]
    fn of_devices_that_wait_in_a_circle_nobody_is_out() {
        let found = given_up(&[1, 2, 3], &[(1, 2), (2, 1), (2, 3)]);
        assert_eq!(found, (places(&[]), links(&[(1, 2), (2, 1)])));
    }
}
