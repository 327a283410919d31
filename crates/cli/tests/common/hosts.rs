//! Hosts that a test makes: network namespaces at two switches, with a cable between them.

use std::net::SocketAddr;
use std::process::Command;

/// Hosts 1 and up, the first half of them at one switch, the others at the other.
pub(crate) struct Hosts {
    name: String,
    count: usize,
}

/// Asks for a change of the network.
pub(crate) fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split_whitespace()).output();
    let output = output.map_err(|e| format!("ip: {e}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

impl Hosts {
    /// So many, or, with a printed reason, none.
    pub(crate) fn make(test: &str, count: usize) -> Option<Hosts> {
        // Dropped, it takes away what was made until then.
        let hosts = Hosts { name: format!("stlf{}{test}", std::process::id()), count };
        match hosts.connect() {
            Ok(()) => Some(hosts),
            Err(reason) => {
                stlf_testing::skip(format!("no network namespaces: {}", reason.trim()));
                None
            }
        }
    }

    fn connect(&self) -> Result<(), String> {
        let hub = self.hub();
        ip(&format!("netns add {hub}"))?;
        for switch in ["near", "far"] {
            ip(&format!("-n {hub} link add {switch} type bridge"))?;
            ip(&format!("-n {hub} link set {switch} up"))?;
        }
        ip(&format!("-n {hub} link add cable type veth peer name elbac"))?;
        ip(&format!("-n {hub} link set cable master near"))?;
        ip(&format!("-n {hub} link set elbac master far"))?;
        ip(&format!("-n {hub} link set cable up"))?;
        ip(&format!("-n {hub} link set elbac up"))?;
        for k in 1..=self.count {
            let host = self.host(k);
            ip(&format!("netns add {host}"))?;
            ip(&format!("-n {hub} link add port{k} type veth peer name eth0 netns {host}"))?;
            let switch = if k <= self.count / 2 { "near" } else { "far" };
            ip(&format!("-n {hub} link set port{k} master {switch}"))?;
            ip(&format!("-n {hub} link set port{k} up"))?;
            ip(&format!("-n {host} addr add 10.77.0.{k}/24 dev eth0"))?;
            ip(&format!("-n {host} link set eth0 up"))?;
            ip(&format!("-n {host} link set lo up"))?;
        }
        Ok(())
    }

    /// Returns the name of the namespace with the switches.
    pub(crate) fn hub(&self) -> String {
        format!("{}-hub", self.name)
    }

    /// Returns the name of the namespace of a host.
    pub(crate) fn host(&self, k: usize) -> String {
        format!("{}-{k}", self.name)
    }

    /// Returns the addresses at which the devices listen.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        (1..=self.count).map(|k| format!("10.77.0.{k}:7000").parse().unwrap()).collect()
    }

    /// Gives a host another address than it has now: the last part of it.
    pub(crate) fn readdress(&self, k: usize, from: usize, to: usize) {
        let host = self.host(k);
        // With the first address of a network its others go too.
        ip(&format!("-n {host} addr del 10.77.0.{from}/24 dev eth0")).unwrap();
        ip(&format!("-n {host} addr add 10.77.0.{to}/24 dev eth0")).unwrap();
    }

    /// Pulls the cable between the switches, or puts it back.
    pub(crate) fn cut(&self, cut: bool) {
        let state = if cut { "down" } else { "up" };
        ip(&format!("-n {} link set cable {state}", self.hub())).unwrap();
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for k in 1..=self.count {
            let _ = ip(&format!("netns del {}", self.host(k)));
        }
        let _ = ip(&format!("netns del {}", self.hub()));
    }
}
