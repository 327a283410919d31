//! The starts of a device, by which its restarts are told from a second device with the same key.

use std::collections::VecDeque;
use std::time::Duration;

/// The most starts that are remembered of a device.
const MOST: usize = 16;

/// The numbers that a device drew at its last starts, the last one at the end.
#[derive(Debug, Default)]
pub(super) struct Starts {
    seen: VecDeque<u64>,
    is_told: bool,
    /// When one came back last after another was there.
    back: Option<Duration>,
}

impl Starts {
    /// Takes the number of a greeting. Returns whether two devices use one key, once: a process never starts twice with the same number, so that
    /// one that comes back after another was there has run all the time.
    pub(super) fn greets(&mut self, start: u64, now: Duration) -> bool {
        let is_last = self.seen.back() == Some(&start);
        let is_back = !is_last && self.seen.contains(&start);
        if !is_last {
            self.seen.retain(|seen| *seen != start);
            self.seen.push_back(start);
        }
        if self.seen.len() > MOST {
            self.seen.pop_front();
        }
        if is_back {
            self.back = Some(now);
        }
        is_back && !std::mem::replace(&mut self.is_told, true)
    }

    /// Returns when it was noticed last that two devices use the key.
    pub(super) fn used_twice(&self) -> Option<Duration> {
        self.back
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_and_new_connections_are_one_device_and_what_comes_back_is_another() {
        let mut starts = Starts::default();
        let at = Duration::from_secs;
        assert!(![1, 1, 2, 2, 3].into_iter().any(|start| starts.greets(start, at(start))));
        assert!(!(100..200).any(|start| starts.greets(start, at(start))));
        assert_eq!(starts.used_twice(), None);
        assert!(starts.seen.len() <= MOST);
        assert!(starts.greets(198, at(300)), "it was followed by another and is there again");
        assert!(!starts.greets(199, at(301)), "it is told once");
        assert!(!starts.greets(199, at(302)));
        assert_eq!(starts.used_twice(), Some(at(301)));
    }
}
