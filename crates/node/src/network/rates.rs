//! The speed of links, measured by probes when two devices meet.

use std::collections::BTreeMap;
use std::time::Duration;

use stlf_protocol::roster::Place;
use stlf_protocol::wire::PROBE_BYTES;

/// The number of probes that are sent over a link, one after the other. Other work of a device only makes a probe slower, never faster, so
/// the fastest counts.
const PROBES: usize = 3;

/// What was measured of the link to one device.
#[derive(Debug, Default)]
struct Link {
    /// The bits per second of the fastest message among those at least as large as a probe. A small one would only measure the delay.
    fastest: Option<f64>,
    /// The number of messages that were sent and have not arrived yet.
    on_the_way: usize,
    /// The number of probes that were sent.
    probes: usize,
}

/// What was measured of the links from this device to others.
#[derive(Debug, Default)]
pub(super) struct Rates {
    links: BTreeMap<Place, Link>,
}

impl Rates {
    /// Starts measuring anew, because a device has connected, maybe over another link than before.
    pub(super) fn came(&mut self, place: Place) {
        let link = self.links.entry(place).or_default();
        (link.fastest, link.probes) = (None, 0);
    }

    /// Returns whether to send a probe now, and counts it as sent. A probe is sent only while nothing else is on the link.
    pub(super) fn takes_probe(&mut self, to: Place) -> bool {
        let Some(link) = self.links.get_mut(&to) else { return false };
        let takes = link.on_the_way == 0 && link.probes < PROBES;
        link.probes += usize::from(takes);
        takes
    }

    /// Counts a message as sent.
    pub(super) fn sets_out(&mut self, to: Place) {
        self.links.entry(to).or_default().on_the_way += 1;
    }

    /// Notes that a message of so many bytes has arrived after this time, or with `None` that it never will.
    pub(super) fn arrived(&mut self, at: Place, bytes: usize, after: Option<Duration>) {
        let link = self.links.entry(at).or_default();
        link.on_the_way = link.on_the_way.saturating_sub(1);
        let Some(after) = after.filter(|_| bytes >= PROBE_BYTES) else { return };
        let rate = 8.0 * bytes as f64 / after.as_secs_f64().max(1e-6);
        link.fastest = Some(link.fastest.map_or(rate, |fastest| fastest.max(rate)));
    }

    /// Returns whether all probes to the device at a place have arrived.
    pub(super) fn is_known(&self, place: Place) -> bool {
        let is_done = |link: &Link| link.probes == PROBES && link.on_the_way == 0;
        self.links.get(&place).is_some_and(|link| is_done(link) && link.fastest.is_some())
    }

    /// Returns the joules of sending a model to each place: the given number divided by the link's bits per second.
    pub(super) fn joules(&self, joule_bits_per_second: f64) -> BTreeMap<Place, f64> {
        let joules =
            |(&to, link): (&Place, &Link)| Some((to, joule_bits_per_second / link.fastest?));
        self.links.iter().filter_map(joules).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_of_three_probes_counts_each_sent_alone() {
        let after = |ms| Some(Duration::from_millis(ms));
        let (mut rates, place) = (Rates::default(), Place::new(3));
        assert!(!rates.takes_probe(place), "it has not come");
        rates.came(place);
        for ms in [900, 256, 400] {
            assert!(!rates.is_known(place));
            assert!(rates.takes_probe(place));
            rates.sets_out(place);
            assert!(!rates.takes_probe(place), "one is on its way");
            rates.arrived(place, PROBE_BYTES, after(ms));
        }
        assert!(rates.is_known(place) && !rates.takes_probe(place));
        rates.sets_out(place);
        assert!(!rates.is_known(place), "one is on its way");
        rates.arrived(place, PROBE_BYTES - 1, after(1));
        rates.sets_out(place);
        rates.arrived(place, PROBE_BYTES, None);
        let bits = 8.0 * PROBE_BYTES as f64;
        assert_eq!(rates.joules(bits / 0.256), BTreeMap::from([(place, 1.0)]));
        rates.came(place);
        assert!(!rates.is_known(place) && rates.takes_probe(place), "it came anew");
    }
}
