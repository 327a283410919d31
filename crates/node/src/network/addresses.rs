//! Where other devices may be. Whoever answers must have the device's key, so that a wrong address costs a call and nothing else, and all
//! that are known are called at once.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use iroh::{EndpointAddr, RelayUrl};
use stlf_protocol::roster::{Member, Place};

use super::address_of;

/// The most addresses that one announcement on the local network may have.
const MOST_ANNOUNCED: usize = 4;

/// What is known of where others are.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    /// As the user says.
    given: BTreeMap<Place, SocketAddr>,
    /// As the last connection with each had it, in this run or an earlier one.
    seen: BTreeMap<Place, SocketAddr>,
    /// As each has announced on the local network.
    announced: BTreeMap<Place, Vec<SocketAddr>>,
    /// By which all can be reached that are connected to it.
    relay: Option<RelayUrl>,
}

impl Addresses {
    /// What the user says, and what was seen in an earlier run.
    pub(super) fn new(
        given: BTreeMap<Place, SocketAddr>,
        seen: BTreeMap<Place, SocketAddr>,
        relay: Option<RelayUrl>,
    ) -> Addresses {
        Addresses { given, seen, announced: BTreeMap::new(), relay }
    }

    /// Returns the addresses of a device, each once, those first that are most likely right.
    pub(super) fn of(&self, place: Place, member: &Member) -> Vec<SocketAddr> {
        let announced = self.announced.get(&place).into_iter().flatten();
        let all = self.given.get(&place).into_iter().chain(announced);
        let all = all.chain(self.seen.get(&place)).chain(&member.address);
        let mut once = BTreeSet::new();
        all.copied().filter(|address| once.insert(*address)).collect()
    }

    /// Returns how a device is called; `None` if nothing is known of where it is.
    pub(super) fn endpoint(&self, place: Place, member: &Member) -> Option<EndpointAddr> {
        let at = address_of(member.key, &self.of(place, member))?;
        let at = match &self.relay {
            Some(relay) => at.with_relay_url(relay.clone()),
            None => at,
        };
        (!at.is_empty()).then_some(at)
    }

    /// Notes where a device is, by a connection with it.
    pub(super) fn saw(&mut self, place: Place, address: SocketAddr) {
        self.seen.insert(place, address);
    }

    /// Notes where a device says on the local network that it is; nowhere if it is gone.
    pub(super) fn announced(&mut self, place: Place, mut addresses: Vec<SocketAddr>) {
        addresses.truncate(MOST_ANNOUNCED);
        self.announced.insert(place, addresses);
    }

    /// Returns where the last connection with each device was.
    pub(super) fn seen(&self) -> &BTreeMap<Place, SocketAddr> {
        &self.seen
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use stlf_protocol::{Identity, Roster};

    use super::*;

    #[test]
    fn all_that_is_known_is_called_each_once() {
        let at = |port: u16| SocketAddr::from(([10, 0, 0, 5], port));
        let key = Identity::from_bytes(&[1; 32]).id();
        let roster = Roster::new("harbour", key).with("gate", key).unwrap();
        let place = Place::new(0);
        let unknown = &roster.devices[0].clone();
        let known = &roster.with_address(key, at(1)).unwrap().devices[0];
        let mut addresses = Addresses::new(BTreeMap::from([(place, at(4))]), BTreeMap::new(), None);
        addresses.saw(place, at(2));
        addresses.announced(place, vec![at(3), at(2)]);
        assert_eq!(addresses.of(place, known), [4, 3, 2, 1].map(at));
        // It has another address now, and is gone from the local network.
        addresses.saw(place, at(1));
        addresses.announced(place, Vec::new());
        assert_eq!(addresses.of(place, known), [4, 1].map(at));
        let called = addresses.endpoint(place, known).unwrap();
        assert_eq!(called.ip_addrs().count(), 2);
        assert_eq!(Addresses::default().endpoint(place, unknown), None);
        let relay: RelayUrl = "https://relay.example.org".parse().unwrap();
        let relayed = Addresses { relay: Some(relay), ..Addresses::default() };
        assert_eq!(relayed.endpoint(place, unknown).unwrap().relay_urls().count(), 1);
    }
}
