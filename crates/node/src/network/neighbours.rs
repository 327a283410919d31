//! The search for devices of the fleet on the local network, by mDNS.
//!
//! A device announces where it listens, on the one network that it listens on, and hears what others announce. Its name there is a hash of
//! the owner's key and its own: those whose roster has it know whom it is, others learn only that some device listens there.

use std::net::{IpAddr, SocketAddr};

use sha2::{Digest, Sha256};
use stlf_protocol::identity::{PeerId, hex};
use stlf_protocol::roster::{Place, Roster};
use swarm_discovery::{Discoverer, DropGuard, IpClass};
use tokio::runtime::Handle;
use tokio::sync::mpsc::Sender;

use super::own_address::reachable;

/// The service under which devices announce themselves: `_stlf._udp.local`.
const SERVICE: &str = "stlf";

/// What the names of devices there are made for.
const PURPOSE: &str = "stlf-mdns/1";

/// The bytes of a name, as text twice as many digits; mDNS has names of up to 63.
const NAME_BYTES: usize = 20;

/// A name that was announced on the local network, with its addresses; none if it is gone.
pub(super) type Announced = (String, Vec<SocketAddr>);

/// Announces this device, which listens here, until the guard is dropped, and passes on what others announce. What comes faster than it is
/// taken is not passed on. Returns `None` where nobody else can be: on an address of this machine alone.
///
/// # Errors
/// Returns the reason why this cannot be done here.
pub(super) fn announce(
    owner: PeerId,
    key: PeerId,
    listens: SocketAddr,
    heard: Sender<Announced>,
) -> Result<Option<DropGuard>, String> {
    let at = reachable(listens, None);
    if at.ip().is_loopback() {
        return Ok(None);
    }
    let own = name(owner, key);
    let hear = {
        let own = own.clone();
        move |name: &str, peer: &swarm_discovery::Peer| {
            let at = peer.addrs().iter().map(|&(ip, port)| SocketAddr::new(ip, port)).collect();
            if name != own {
                // If the loop is busy, the next round brings the same again.
                let _ = heard.try_send((name.to_owned(), at));
            }
        }
    };
    let discoverer = Discoverer::new_interactive(SERVICE.to_owned(), own)
        .with_addrs(at.port(), [at.ip()])
        .with_callback(hear);
    let discoverer = match at.ip() {
        IpAddr::V4(ip) => {
            discoverer.with_ip_class(IpClass::V4Only).with_multicast_interfaces_v4(vec![ip])
        }
        IpAddr::V6(_) => discoverer.with_ip_class(IpClass::V6Only),
    };
    discoverer.spawn(&Handle::current()).map(Some).map_err(|e| e.to_string())
}

/// Returns whose name this is.
pub(super) fn who(roster: &Roster, announced: &str) -> Option<Place> {
    let mut present = roster.with_places().filter(|(_, member)| member.present);
    present.find(|(_, member)| name(roster.owner, member.key) == announced).map(|(place, _)| place)
}

/// Returns the name of a device on the local network.
fn name(owner: PeerId, key: PeerId) -> String {
    let hasher = Sha256::new_with_prefix(PURPOSE);
    let digest = hasher.chain_update(owner.as_bytes()).chain_update(key.as_bytes()).finalize();
    hex(&digest[..NAME_BYTES])
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use stlf_protocol::Identity;

    use super::*;

    #[test]
    fn a_name_tells_the_device_to_those_that_have_its_roster_alone() {
        let id = |n: u8| Identity::from_bytes(&[n; 32]).id();
        let roster = Roster::new("harbour", id(0)).with("gate", id(1)).unwrap();
        let roster = roster.with("yard", id(2)).unwrap();
        let announced = name(id(0), id(2));
        assert_eq!(announced.len(), 2 * NAME_BYTES);
        assert_eq!(who(&roster, &announced), Some(Place::new(1)));
        assert_eq!(who(&roster, &name(id(9), id(2))), None, "of another fleet");
        assert_eq!(who(&roster.without("yard").unwrap(), &announced), None, "it has left");
        assert!(!id(2).to_string().contains(&announced[..8]));
    }
}
