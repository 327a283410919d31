//! Where this machine can be reached, which may change.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Returns the address at which others reach who listens here: if that is on every address of the machine, then by the one that it would
/// send from to `towards`, or to the world.
pub(crate) fn reachable(listens: SocketAddr, towards: Option<SocketAddr>) -> SocketAddr {
    if !listens.ip().is_unspecified() {
        return listens;
    }
    let ip = outward(towards).unwrap_or(Ipv4Addr::LOCALHOST.into());
    SocketAddr::new(ip, listens.port())
}

/// Returns where to listen instead, with the same port, if this machine no longer has the address and has another one.
pub(crate) fn moved(listens: SocketAddr, towards: Option<SocketAddr>) -> Option<SocketAddr> {
    if UdpSocket::bind((listens.ip(), 0)).is_ok() {
        return None;
    }
    let ip = outward(towards).or_else(|| outward(None))?;
    // Without a network nobody can be reached, and the old address may come back.
    let is_of_use = !ip.is_loopback() && !ip.is_unspecified() && ip.is_ipv4() == listens.is_ipv4();
    is_of_use.then(|| SocketAddr::new(ip, listens.port()))
}

/// Returns the address of this machine that it would send from.
fn outward(towards: Option<SocketAddr>) -> Option<IpAddr> {
    // Nothing is sent: this address is for documents, and only the system's table of routes is asked.
    let world = SocketAddr::from(([192, 0, 2, 1], 9));
    let towards = towards.unwrap_or(world);
    let any: IpAddr = match towards {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(towards).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_listens_everywhere_is_reached_where_it_sends_from() {
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 7000));
        assert_eq!(reachable(here, None), here);
        let everywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 7000));
        assert_eq!(reachable(everywhere, Some(here)), here);
    }

    #[test]
    fn an_address_of_this_machine_stays_and_loopback_replaces_none() {
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 7000));
        assert_eq!(moved(here, None), None);
        // An address for documents, which no machine has.
        let gone = SocketAddr::from(([192, 0, 2, 7], 7000));
        let elsewhere = moved(gone, Some(here));
        assert!(elsewhere.is_none_or(|at| !at.ip().is_loopback() && at.port() == 7000));
    }
}
