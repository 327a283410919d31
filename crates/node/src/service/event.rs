//! What a service tells of itself, and the line of JSON that is kept of it.

use std::net::SocketAddr;
use std::path::Path;
use std::time::SystemTime;

use serde::Serialize;
use serde_json::Value;

use crate::network::{self, View};

/// What an observer hears of a service.
#[non_exhaustive]
pub enum Event<'a> {
    /// The roster that was named is older than one that others sent, which is used.
    OldRoster {
        /// The file that was named.
        path: &'a Path,
        /// The version that is used.
        version: u64,
    },
    /// It has trained before, and need not do so again.
    HasTrained {
        /// The device's name.
        device: &'a str,
    },
    /// It begins to train.
    Trains {
        /// The device's name.
        device: &'a str,
        /// On how many labels.
        labels: usize,
    },
    /// Numbers for Prometheus are served here.
    ServesNumbers(SocketAddr),
    /// What happens cannot be kept. It is tried again with every event, and told again once it has worked in between.
    CannotKeep(&'a stlf_data::Error),
    /// Something happened among the devices, or a second went by.
    Network {
        /// How things stand after it.
        view: &'a View<'a>,
        /// What happened.
        event: &'a network::Event,
    },
}

/// Who hears events.
pub type Observer<'o> = dyn FnMut(&Event<'_>) + Send + 'o;

/// Something that happened among the devices, with its time; devices by name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    seconds: f64,
    device: Value,
    epoch: u64,
    event: Value,
}

impl Line {
    /// What was heard just now.
    pub fn new(view: &View<'_>, event: &network::Event) -> Line {
        let name = |place: usize| view.roster.devices.get(place).map(|m| m.name.clone().into());
        let device = name(view.device.place()).unwrap_or_default();
        Line { seconds: now(), device, epoch: view.membership.epoch(), event: named(event, &name) }
    }

    /// The line, without its end.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// An event with names where it has places.
fn named(event: &network::Event, name: &dyn Fn(usize) -> Option<Value>) -> Value {
    use network::Event;
    let mut value = serde_json::to_value(event).unwrap_or_default();
    let places: Vec<&mut Value> = match (event, &mut value) {
        (Event::Came(_) | Event::Lost(_) | Event::LeftOut(_), Value::Object(map)) => {
            map.values_mut().collect()
        }
        (_, Value::Object(map)) => {
            let inner = map.values_mut().filter_map(Value::as_object_mut).flatten();
            inner
                .filter(|(key, _)| ["from", "to"].contains(&key.as_str()))
                .map(|(_, v)| v)
                .collect()
        }
        _ => Vec::new(),
    };
    for place in places {
        if let Some(name) = place.as_u64().and_then(|place| name(place as usize)) {
            *place = name;
        }
    }
    value
}

/// Seconds since 1970.
pub(super) fn now() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_become_names() {
        let name = |place: usize| ["gate", "pier"].get(place).map(|&name| name.into());
        let told = |event: network::Event| named(&event, &name).to_string();
        assert_eq!(told(network::Event::Came(1)), r#"{"came":"pier"}"#);
        assert_eq!(told(network::Event::Lost(7)), r#"{"lost":7}"#);
        assert_eq!(
            told(network::Event::Forbidden { from: 0, to: 1 }),
            r#"{"forbidden":{"from":"gate","to":"pier"}}"#
        );
        assert_eq!(
            told(network::Event::Began { epoch: 1, devices: 1 }),
            r#"{"began":{"devices":1,"epoch":1}}"#
        );
        assert_eq!(told(network::Event::Ended), r#""ended""#);
    }
}
