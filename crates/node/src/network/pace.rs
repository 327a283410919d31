//! How fast messages of a peer are read. What comes faster waits at the peer, because the connection takes no more.

use std::time::Duration;

/// How many messages may come at once.
const BURST: f64 = 2_000.0;

/// How many messages a second are read in the long run. A device has far fewer to say; only the turns of `estimator = "classifier"` are many.
const PER_SECOND: f64 = 200.0;

/// How many messages may be read now.
#[derive(Debug)]
pub(super) struct Pace {
    left: f64,
    last: Duration,
}

impl Pace {
    /// Nothing was read yet.
    pub(super) fn new() -> Pace {
        Pace { left: BURST, last: Duration::ZERO }
    }

    /// Counts a message that is read at this time, and returns how long to wait before the next one.
    pub(super) fn read(&mut self, now: Duration) -> Duration {
        let passed = now.saturating_sub(self.last).as_secs_f64();
        self.left = (self.left + passed * PER_SECOND).min(BURST) - 1.0;
        self.last = now;
        Duration::from_secs_f64((-self.left / PER_SECOND).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_read_at_a_steady_pace() {
        let (mut pace, mut now) = (Pace::new(), Duration::ZERO);
        let messages = 10_000;
        for _ in 0..messages {
            now += pace.read(now);
        }
        let expected = (f64::from(messages) - BURST) / PER_SECOND;
        assert!((now.as_secs_f64() - expected).abs() < 0.1, "{now:?}");
        // Who was silent may say much at once again.
        now += Duration::from_secs(60);
        assert!((0..BURST as usize).all(|_| pace.read(now).is_zero()));
        assert!(!pace.read(now).is_zero());
    }
}
