//! How fast messages of a peer are read. What comes faster waits at the peer, because the connection takes no more.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use stlf_protocol::identity::PeerId;

/// How many messages may come at once.
const BURST: f64 = 2_000.0;

/// How many messages a second are read in the long run. A device has far fewer to say; only the turns of `estimator = "classifier"` are many.
const PER_SECOND: f64 = 200.0;

/// The paces of all peers that were heard lately, by key: who connects anew, or more than once, is read no faster for it.
#[derive(Debug, Clone)]
pub(super) struct Paces {
    since: Instant,
    of: Arc<Mutex<BTreeMap<PeerId, Pace>>>,
}

impl Paces {
    /// Nobody was heard yet.
    pub(super) fn new() -> Paces {
        Paces { since: Instant::now(), of: Arc::default() }
    }

    /// Returns how long to wait before a message of a peer is read.
    pub(super) fn pause(&self, peer: PeerId) -> Duration {
        self.pause_at(peer, self.since.elapsed())
    }

    /// Counts a message of a peer that was read.
    pub(super) fn read(&self, peer: PeerId) {
        self.read_at(peer, self.since.elapsed());
    }

    fn pause_at(&self, peer: PeerId, now: Duration) -> Duration {
        let paces = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        paces.get(&peer).map_or(Duration::ZERO, |pace| pace.pause(now))
    }

    fn read_at(&self, peer: PeerId, now: Duration) {
        let mut paces = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        if !paces.contains_key(&peer) {
            // Who may say as much as one that was never heard need not be remembered. Strangers are many, and say one message each.
            paces.retain(|_, pace| !pace.is_rested(now));
        }
        paces.entry(peer).or_insert_with(Pace::new).read(now);
    }
}

/// How many messages may be read now.
#[derive(Debug)]
struct Pace {
    left: f64,
    last: Duration,
}

impl Pace {
    /// Nothing was read yet.
    fn new() -> Pace {
        Pace { left: BURST, last: Duration::ZERO }
    }

    fn left(&self, now: Duration) -> f64 {
        let passed = now.saturating_sub(self.last).as_secs_f64();
        (self.left + passed * PER_SECOND).min(BURST)
    }

    /// Counts a message that is read at this time.
    fn read(&mut self, now: Duration) {
        self.left = self.left(now) - 1.0;
        self.last = now;
    }

    /// Returns how long to wait before the next one.
    fn pause(&self, now: Duration) -> Duration {
        Duration::from_secs_f64((-self.left(now) / PER_SECOND).max(0.0))
    }

    fn is_rested(&self, now: Duration) -> bool {
        self.left(now) >= BURST
    }
}

#[cfg(test)]
mod tests {
    use stlf_protocol::Identity;

    use super::*;

    fn peer(of: u8) -> PeerId {
        Identity::from_bytes(&[of; 32]).id()
    }

    /// Reads so many messages, each as soon as it may be; when the last one was.
    fn flood(paces: &Paces, peer: PeerId, messages: usize, mut now: Duration) -> Duration {
        for _ in 0..messages {
            now += paces.pause_at(peer, now);
            paces.read_at(peer, now);
        }
        now
    }

    #[test]
    fn a_flood_is_read_at_a_steady_pace() {
        let (paces, one) = (Paces::new(), peer(1));
        let messages = 10_000;
        let now = flood(&paces, one, messages, Duration::ZERO);
        let expected = (messages as f64 - BURST) / PER_SECOND;
        assert!((now.as_secs_f64() - expected).abs() < 0.1, "{now:?}");
        // Who was silent may say much at once again.
        let later = now + Duration::from_secs(60);
        assert_eq!(flood(&paces, one, BURST as usize, later), later);
        assert!(flood(&paces, one, 2, later) > later);
    }

    #[test]
    fn a_pace_is_that_of_a_key_whatever_it_connects_by_and_others_have_their_own() {
        let (paces, [one, other]) = (Paces::new(), [1, 2].map(peer));
        let now = flood(&paces, one, BURST as usize + 100, Duration::ZERO);
        // Another connection has the same paces.
        let again = paces.clone();
        assert!(flood(&again, one, 101, now) >= now + Duration::from_millis(495));
        assert_eq!(flood(&again, other, 100, now), now);
        // Nobody is remembered for ever.
        flood(&paces, peer(3), 1, now + Duration::from_secs(60));
        assert_eq!(paces.of.lock().unwrap().len(), 1);
    }
}
