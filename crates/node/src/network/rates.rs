//! How fast links are, by probes that go over them when two devices meet.

use std::collections::BTreeMap;
use std::time::Duration;

use stlf_protocol::wire::PROBE_BYTES;

/// So many probes go over a link, one after the other. Whatever else a device does makes one slower, never faster, so the fastest counts.
const PROBES: usize = 3;

/// What is known of the link to a device.
#[derive(Debug, Default)]
struct Link {
    /// Bits per second of the fastest message, of those as large as a probe. A small one would tell of the delay only.
    fastest: Option<f64>,
    /// How many messages are on their way.
    on_the_way: usize,
    /// How many probes were sent.
    probes: usize,
}

/// What is known of the links from this device to others.
#[derive(Debug, Default)]
pub(super) struct Rates {
    links: BTreeMap<usize, Link>,
}

impl Rates {
    /// A device has come, maybe over another link than before.
    pub(super) fn came(&mut self, place: usize) {
        let link = self.links.entry(place).or_default();
        (link.fastest, link.probes) = (None, 0);
    }

    /// Whether a probe should set out; it counts as sent. It goes alone, or it would share the link.
    pub(super) fn takes_probe(&mut self, to: usize) -> bool {
        let Some(link) = self.links.get_mut(&to) else { return false };
        let takes = link.on_the_way == 0 && link.probes < PROBES;
        link.probes += usize::from(takes);
        takes
    }

    /// A message sets out.
    pub(super) fn sets_out(&mut self, to: usize) {
        self.links.entry(to).or_default().on_the_way += 1;
    }

    /// A message of so many bytes has arrived after so long, or never will.
    pub(super) fn arrived(&mut self, at: usize, bytes: usize, after: Option<Duration>) {
        let link = self.links.entry(at).or_default();
        link.on_the_way = link.on_the_way.saturating_sub(1);
        let Some(after) = after.filter(|_| bytes >= PROBE_BYTES) else { return };
        let rate = 8.0 * bytes as f64 / after.as_secs_f64().max(1e-6);
        link.fastest = Some(link.fastest.map_or(rate, |fastest| fastest.max(rate)));
    }

    /// Whether all probes to a place have arrived.
    pub(super) fn is_known(&self, place: usize) -> bool {
        let is_done = |link: &Link| link.probes == PROBES && link.on_the_way == 0;
        self.links.get(&place).is_some_and(|link| is_done(link) && link.fastest.is_some())
    }

    /// Joules of sending a model to each place: the numerator over the rate.
    pub(super) fn joules(&self, joule_bits_per_second: f64) -> BTreeMap<usize, f64> {
        let joules =
            |(&to, link): (&usize, &Link)| Some((to, joule_bits_per_second / link.fastest?));
        self.links.iter().filter_map(joules).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_of_three_probes_counts_each_sent_alone() {
        let after = |ms| Some(Duration::from_millis(ms));
        let mut rates = Rates::default();
        assert!(!rates.takes_probe(3), "it has not come");
        rates.came(3);
        for ms in [900, 256, 400] {
            assert!(!rates.is_known(3));
            assert!(rates.takes_probe(3));
            rates.sets_out(3);
            assert!(!rates.takes_probe(3), "one is on its way");
            rates.arrived(3, PROBE_BYTES, after(ms));
        }
        assert!(rates.is_known(3) && !rates.takes_probe(3));
        rates.sets_out(3);
        assert!(!rates.is_known(3), "one is on its way");
        rates.arrived(3, PROBE_BYTES - 1, after(1));
        rates.sets_out(3);
        rates.arrived(3, PROBE_BYTES, None);
        let bits = 8.0 * PROBE_BYTES as f64;
        assert_eq!(rates.joules(bits / 0.256), BTreeMap::from([(3, 1.0)]));
        rates.came(3);
        assert!(!rates.is_known(3) && rates.takes_probe(3), "it came anew");
    }
}
