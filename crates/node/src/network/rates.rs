//! How fast links are, by what went over them anyway.

use std::collections::BTreeMap;
use std::time::Duration;

/// What is known of the links from this device to others.
#[derive(Debug, Default)]
pub(super) struct Rates {
    /// The largest message that arrived at a place, in bytes, and its bits per second. A small one would tell of the delay only.
    largest: BTreeMap<usize, (usize, f64)>,
    /// How many messages to a place are on their way.
    on_the_way: BTreeMap<usize, usize>,
}

impl Rates {
    /// A message sets out.
    pub(super) fn sets_out(&mut self, to: usize) {
        *self.on_the_way.entry(to).or_default() += 1;
    }

    /// A message of so many bytes has arrived after so long, or never will.
    pub(super) fn arrived(&mut self, at: usize, bytes: usize, after: Option<Duration>) {
        let left = self.on_the_way.entry(at).or_default();
        *left = left.saturating_sub(1);
        let Some(after) = after else { return };
        let rate = 8.0 * bytes as f64 / after.as_secs_f64().max(1e-6);
        let known = self.largest.entry(at).or_insert((bytes, rate));
        if bytes >= known.0 {
            *known = (bytes, rate);
        }
    }

    /// Whether all that was sent to a place has arrived.
    pub(super) fn is_known(&self, place: usize) -> bool {
        self.largest.contains_key(&place) && self.on_the_way.get(&place).is_none_or(|&n| n == 0)
    }

    /// Joules of sending a model to each place: the numerator over the rate.
    pub(super) fn joules(&self, joule_bits_per_second: f64) -> BTreeMap<usize, f64> {
        self.largest.iter().map(|(&to, &(_, rate))| (to, joule_bits_per_second / rate)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_message_tells_and_is_waited_for() {
        let mut rates = Rates::default();
        let after = |ms| Some(Duration::from_millis(ms));
        assert!(!rates.is_known(3));
        rates.sets_out(3);
        rates.arrived(3, 10, after(1));
        assert!(rates.is_known(3));
        rates.sets_out(3);
        rates.sets_out(3);
        rates.arrived(3, 10, after(9));
        assert!(!rates.is_known(3), "one is on its way");
        rates.arrived(3, 1_000, after(1_000));
        assert!(rates.is_known(3));
        // 8,000 bits per second; a smaller one changes nothing, nor one that never arrives.
        rates.arrived(3, 999, after(1));
        rates.arrived(3, 2_000, None);
        assert_eq!(rates.joules(16_000.0), BTreeMap::from([(3, 2.0)]));
    }
}
