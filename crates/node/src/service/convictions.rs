//! Who has lied as a planner, on disk: a device that is started again does not follow it either.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stlf_data::atomic_folder::Folder;
use stlf_protocol::PeerId;
use stlf_protocol::roster::{Place, Roster};

const FILE: &str = "convicted.json";

/// Planners that have lied, by their keys, each with the second since 1970 in which that was written down.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Convictions {
    since: BTreeMap<PeerId, f64>,
    /// Up to when they are done without, by the clock of the running device, as it was written down last.
    #[serde(skip)]
    known: BTreeMap<Place, Duration>,
}

impl Convictions {
    /// Reads what a folder has. A file that cannot be read counts as lost.
    pub(super) fn read(folder: &Folder) -> Convictions {
        let bytes = folder.read(FILE).ok().flatten();
        let read = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        read.unwrap_or_default()
    }

    /// Returns for how long planners are to be done without from `now` on, if a conviction lasts as long as `most`. Where the clock was set back, it begins anew.
    pub(super) fn rest(
        &mut self,
        roster: &Roster,
        most: Duration,
        now: f64,
    ) -> BTreeMap<Place, Duration> {
        let rest = |since: &f64| match Duration::try_from_secs_f64(now - since) {
            Ok(passed) => most.saturating_sub(passed),
            Err(_) => most,
        };
        let all = self.since.iter();
        self.known =
            all.filter_map(|(&key, since)| Some((roster.place(key)?, rest(since)))).collect();
        self.known.retain(|_, rest| !rest.is_zero());
        self.known.clone()
    }

    /// Writes down who is convicted, if that has changed.
    pub(super) fn keep(
        &mut self,
        folder: &Folder,
        convicted: &BTreeMap<Place, Duration>,
        roster: &Roster,
        now: f64,
    ) -> Result<(), stlf_data::Error> {
        if self.known == *convicted {
            return Ok(());
        }
        let since = convicted.iter().filter_map(|(place, until)| {
            let key = roster.at(*place)?.key;
            let before = self.since.get(&key).filter(|_| self.known.get(place) == Some(until));
            Some((key, before.copied().unwrap_or(now)))
        });
        let next = Convictions { since: since.collect(), known: convicted.clone() };
        folder.write_json_durably(FILE, &next)?;
        *self = next;
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use stlf_protocol::Identity;

    use super::*;

    #[test]
    fn a_conviction_lasts_as_long_with_a_restart_as_without_and_ends() {
        let inside = tempfile::tempdir().unwrap();
        let folder = Folder::open(inside.path()).unwrap();
        let [gate, quay] = [1, 2].map(|k| Identity::from_bytes(&[k; 32]).id());
        let roster = Roster::new("harbour", gate).with("gate", gate).unwrap();
        let roster = roster.with("quay", quay).unwrap();
        let [first, second] = [0, 1].map(Place::new);
        let (seconds, most) = (Duration::from_secs, Duration::from_secs(300));
        let mut kept = Convictions::read(&folder);
        assert_eq!(kept.rest(&roster, most, 1e9), BTreeMap::new());
        kept.keep(&folder, &BTreeMap::from([(first, seconds(307))]), &roster, 1e9).unwrap();
        let rest = |at| Convictions::read(&folder).rest(&roster, most, at);
        assert_eq!(rest(1e9 + 100.0), BTreeMap::from([(first, seconds(200))]));
        assert_eq!(rest(1e9 + 300.0), BTreeMap::new());
        // By a clock that was set back it holds for the whole time, and for no longer.
        assert_eq!(rest(0.0), BTreeMap::from([(first, most)]));
        // After a start another one comes to it; the first has its own time all the same.
        let mut kept = Convictions::read(&folder);
        let mut known = kept.rest(&roster, most, 1e9 + 100.0);
        kept.keep(&folder, &known, &roster, 1e9 + 150.0).unwrap();
        known.insert(second, seconds(370));
        kept.keep(&folder, &known, &roster, 1e9 + 170.0).unwrap();
        let both = BTreeMap::from([(first, seconds(100)), (second, seconds(270))]);
        assert_eq!(rest(1e9 + 200.0), both);
        folder.write(FILE, b"{\"since\": {").unwrap();
        assert_eq!(rest(1e9), BTreeMap::new());
    }
}
