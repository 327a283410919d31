//! What a service tells its observer, and the line of JSON that is kept of each event.

use std::net::SocketAddr;
use std::path::Path;
use std::time::SystemTime;

use serde::Serialize;
use serde_json::Value;
use stlf_data::features::Origin;
use stlf_method::expectation::Guessing;
use stlf_protocol::Place;

use crate::data_change::DataChange;
use crate::network::{self, View};

/// Something that an observer is told about a service.
#[non_exhaustive]
pub enum Event<'a> {
    /// The given roster is older than one that other devices sent, which is used instead.
    OldRoster {
        /// The path of the file with the given roster.
        path: &'a Path,
        /// The version of the roster that is used.
        version: u64,
    },
    /// The device scales its features by rows of its own.
    Scales {
        /// The device's name.
        device: &'a str,
        /// The number of rows that the scale was computed from.
        rows: usize,
        /// When that was, and why.
        origin: Origin,
    },
    /// The device has trained earlier, and need not do so again.
    HasTrained {
        /// The device's name.
        device: &'a str,
    },
    /// The device begins to train.
    Trains {
        /// The device's name.
        device: &'a str,
        /// The number of labels that it trains on.
        labels: usize,
    },
    /// The user's learner cannot train, so that the device takes part as one without labels.
    CannotTrain {
        /// The device's name.
        device: &'a str,
        /// What the learner says.
        reason: &'a str,
    },
    /// The model that the device has trained is no better than guessing on its own labels.
    Guesses {
        /// The device's name.
        device: &'a str,
        /// The labels that the model was tried on, and how many it gets right.
        guessing: Guessing,
    },
    /// Metrics for Prometheus are served on this address.
    ServesNumbers(SocketAddr),
    /// The device's table, or its folder of pictures, has changed while the device takes part.
    Data {
        /// The device's name.
        device: &'a str,
        /// What has become of it.
        change: &'a DataChange,
    },
    /// What one member or strangers caused too often to be told of each time, within a minute: messages that were refused, devices that came and
    /// went, callers that were turned away, and the like.
    Untold {
        /// The number of events that were not told.
        events: u64,
    },
    /// A file cannot be written. This is tried again with every event, and reported again only if it worked in between.
    CannotKeep(&'a stlf_data::Error),
    /// Something happened among the devices, or a second passed.
    Network {
        /// The state of the device after the event.
        view: &'a View<'a>,
        /// The event on the network.
        event: &'a network::Event,
    },
}

/// The function that is called with every event.
pub type Observer<'o> = dyn FnMut(&Event<'_>) + Send + 'o;

/// A line of the log: something that happened among the devices, with its time and with the names of devices.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    seconds: f64,
    device: Value,
    epoch: u64,
    event: Value,
}

impl Line {
    /// Makes a line of an event that happened just now.
    pub fn new(view: &View<'_>, event: &network::Event) -> Line {
        let name = |place: Place| view.roster.at(place).map(|m| m.name.clone().into());
        let device = name(view.device.place()).unwrap_or_default();
        Line { seconds: now(), device, epoch: view.membership.epoch(), event: named(event, &name) }
    }

    /// Makes a line of how many events were not told.
    pub(super) fn untold(view: &View<'_>, events: u64) -> Line {
        let event = serde_json::json!({ "untold": { "events": events } });
        Line { event, ..Line::new(view, &network::Event::Alive) }
    }

    /// Returns the line as JSON, without a line break.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Returns an event as JSON, with names of devices instead of their places in the roster.
fn named(event: &network::Event, name: &dyn Fn(Place) -> Option<Value>) -> Value {
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
        if let Some(name) = place.as_u64().and_then(|index| name(Place::new(index as usize))) {
            *place = name;
        }
    }
    value
}

/// Returns the seconds since 1970.
pub(super) fn now() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_become_names() {
        let name = |place: Place| ["gate", "pier"].get(place.index()).map(|&name| name.into());
        let told = |event: network::Event| named(&event, &name).to_string();
        assert_eq!(told(network::Event::Came(Place::new(1))), r#"{"came":"pier"}"#);
        assert_eq!(told(network::Event::Lost(Place::new(7))), r#"{"lost":7}"#);
        assert_eq!(
            told(network::Event::Forbidden { from: Place::new(0), to: Place::new(1) }),
            r#"{"forbidden":{"from":"gate","to":"pier"}}"#
        );
        assert_eq!(
            told(network::Event::Began { epoch: 1, devices: 1 }),
            r#"{"began":{"devices":1,"epoch":1}}"#
        );
        assert_eq!(told(network::Event::Ended), r#""ended""#);
    }
}
