//! The section of how real devices find each other.

use serde::{Deserialize, Serialize};

/// `[node]`: how a real device finds the others. Each device may have its own; a simulator has no use for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Node {
    /// Whether devices of the fleet are looked for on the local network.
    pub search: Search,
    /// The address of a relay of the owner's, by which devices reach each other that cannot do so directly. Left out: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relay: Option<String>,
}

/// Where a device looks for those of its fleet whose address it does not know, or that are not there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Search {
    /// On the local network, by mDNS: it also announces itself there.
    #[default]
    Lan,
    /// The device does not look for others.
    None,
}

impl Node {
    pub(crate) fn is_default(&self) -> bool {
        *self == Node::default()
    }

    /// Refuses what cannot be a relay.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Some(relay) = &self.relay else { return Ok(()) };
        let rest = relay.strip_prefix("https://").or_else(|| relay.strip_prefix("http://"));
        let is_host = |rest: &str| !rest.is_empty() && !rest.starts_with('/');
        match rest.is_some_and(is_host) && !relay.contains(char::is_whitespace) {
            true => Ok(()),
            false => {
                Err(format!("{relay:?} is not an address such as \"https://relay.example.org\""))
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn a_relay_is_an_address_and_nothing_is_written_where_nothing_is_set() {
        let with = |change: &str| Config::default().with([change]);
        for relay in ["https://relay.example.org", "http://10.0.0.5:3340"] {
            let config = with(&format!("node.relay={relay}")).unwrap();
            assert_eq!(config.node.relay.as_deref(), Some(relay));
        }
        for relay in ["relay.example.org", "https://", "ftp://relay", "https:///path"] {
            let error = with(&format!("node.relay={relay}")).unwrap_err().to_string();
            assert!(error.contains("node.relay") && error.contains(relay), "{error}");
        }
        assert_eq!(with("node.search=none").unwrap().node.search, Search::None);
        assert!(with("node.search=everywhere").is_err());
        assert!(!Config::default().to_toml().unwrap().contains("[node]"));
    }
}
