//! Who holds an epoch up, as far as its planner can tell.

use std::collections::{BTreeMap, BTreeSet};

use crate::roster::Place;

/// Whom and what the next epoch does without.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Blame {
    /// Devices.
    pub(super) out: BTreeSet<Place>,
    /// Links, from and to.
    pub(super) links: BTreeSet<(Place, Place)>,
}

/// Those that others wait for and that do not themselves wait for anybody. If there is none, those that most wait for; without any
/// complaint, those that have not said that they are done.
///
/// Where a device waits for one that says it is done, one of the two lies, or what was sent did not arrive; nobody else can know. So neither
/// is left out. Only the link between them is not used again, which costs nobody who tells the truth more than one model.
pub(super) fn blame(
    own: Place,
    members: &BTreeSet<Place>,
    missing: &[Place],
    complaints: &BTreeMap<Place, BTreeSet<Place>>,
    done: &BTreeSet<Place>,
) -> Blame {
    let mut named: BTreeMap<Place, usize> = BTreeMap::new();
    let mut links = BTreeSet::new();
    let own_complaint = missing.iter().map(|&place| (own, place));
    let others = complaints.iter().flat_map(|(&by, of)| of.iter().map(move |&place| (by, place)));
    for (by, place) in own_complaint.chain(others).filter(|(_, place)| *place != own) {
        match done.contains(&place) {
            true => drop(links.insert((place, by))),
            false => *named.entry(place).or_default() += 1,
        }
    }
    let waits = |place: &Place| complaints.get(place).is_some_and(|others| !others.is_empty());
    let silent: BTreeSet<Place> = named.keys().copied().filter(|place| !waits(place)).collect();
    let out = match named.values().max() {
        _ if !silent.is_empty() => silent,
        Some(most) => {
            let worst = named.iter().filter(|(_, count)| *count == most);
            worst.map(|(&place, _)| place).collect()
        }
        None if links.is_empty() => {
            members.iter().copied().filter(|place| *place != own && !done.contains(place)).collect()
        }
        None => BTreeSet::new(),
    };
    Blame { out, links }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_a_device_that_is_done_and_one_that_waits_for_it_only_the_link_is_given_up() {
        let places = [0, 1, 2, 3].map(Place::new);
        let [own, first, second, third] = places;
        let (members, done) = (BTreeSet::from(places), BTreeSet::from([own, first]));
        let waits = |by, of: &[Place]| (by, of.iter().copied().collect::<BTreeSet<_>>());
        let complaints = BTreeMap::from([waits(second, &[first])]);
        let found = blame(own, &members, &[], &complaints, &done);
        assert_eq!((found.out, found.links), (BTreeSet::new(), BTreeSet::from([(first, second)])));
        // Somebody else is silent: it is out, and the link is not used either.
        let complaints = BTreeMap::from([waits(second, &[first, third])]);
        let found = blame(own, &members, &[], &complaints, &done);
        assert_eq!(found.out, BTreeSet::from([third]));
        assert_eq!(found.links, BTreeSet::from([(first, second)]));
        // Nobody complains.
        let found = blame(own, &members, &[], &BTreeMap::new(), &done);
        assert_eq!(found.out, BTreeSet::from([second, third]));
    }
}
