//! Instructions to a device from outside: the roster, as a file that may be replaced, and the order to stop.

use std::path::Path;
use std::time::Duration;

use stlf_protocol::SignedRoster;
use stlf_protocol::roster::Invalid;
use tokio::sync::mpsc::Sender;

use super::state_dir::StateDir;
use super::{Error, Event, Observer};
use crate::network::Order;

/// The interval at which the file and the order to stop are checked.
const EVERY: Duration = Duration::from_millis(100);

/// Returns the roster in a file, or the one in the device's folder that other devices sent, if that is newer.
pub(super) fn roster(
    path: &Path,
    folder: &Path,
    observer: &mut Observer<'_>,
) -> Result<SignedRoster, Error> {
    let bytes = std::fs::read(path)
        .map_err(|source| Error::RosterFile { path: path.to_owned(), source })?;
    let named = SignedRoster::read(&bytes)
        .map_err(|source| Error::Roster { path: path.to_owned(), source })?;
    let Some(heard) = StateDir::roster(folder) else { return Ok(named) };
    match heard.replaces(&named) {
        Ok(()) => {
            observer(&Event::OldRoster { path, version: heard.roster().version });
            Ok(heard)
        }
        Err(Invalid::Older { .. }) => Ok(named),
        Err(source) => Err(Error::OtherFleet { path: path.to_owned(), source }),
    }
}

/// Passes on newer rosters as they replace the file, until `stop` says so, and then passes on the order to stop.
pub(super) async fn pass_on(roster: &Path, stop: &dyn Fn() -> bool, orders: Sender<Order>) {
    let changed = || std::fs::metadata(roster).and_then(|m| m.modified()).ok();
    let mut known = changed();
    while !stop() {
        tokio::time::sleep(EVERY).await;
        let now = changed();
        if now != known {
            known = now;
            let read = std::fs::read(roster).ok().and_then(|b| SignedRoster::read(&b).ok());
            if let Some(roster) = read {
                let _ = orders.send(Order::Roster(Box::new(roster))).await;
            }
        }
    }
    let _ = orders.send(Order::Stop).await;
}
