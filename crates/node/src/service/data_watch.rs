//! The table of a device while it takes part: whether it has changed, whether that matters, and the device with the new rows.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use stlf_data::features::Origin;
use stlf_protocol::Device;
use stlf_protocol::device::GoesBy;
use stlf_protocol::shared::SharedSettings;
use tokio::sync::mpsc::Sender;
use tokio::task::spawn_blocking;

use super::making::{Made, Making};
use super::state_dir::training_of;
use super::{Error, Event, Told, locked, publishing};
use crate::data_change::DataChange;
use crate::network::Order;

/// The interval at which the file is looked at. A file that changes from one look to the next is still being written, and is not read.
const EVERY: Duration = Duration::from_secs(1);

/// By which a file is known to have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
}

/// A file, and how it was when it was read.
#[derive(Debug)]
pub(super) struct TableFile {
    path: PathBuf,
    /// None where there is no file.
    read: Option<Stamp>,
    /// How it was at the last look.
    seen: Option<Stamp>,
}

impl TableFile {
    /// A file that is about to be read.
    pub(super) fn new(path: &Path) -> TableFile {
        let read = stamp(path);
        TableFile { path: path.to_owned(), read, seen: read }
    }

    /// Whether it has changed since it was read, and not since the last look. If so, it is about to be read.
    fn has_changed(&mut self) -> bool {
        let now = stamp(&self.path);
        let is_at_rest = std::mem::replace(&mut self.seen, now) == now;
        let has_changed = is_at_rest && now != self.read;
        if has_changed {
            self.read = now;
        }
        has_changed
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let found = std::fs::metadata(path).ok()?;
    Some(Stamp { modified: found.modified().ok(), bytes: found.len() })
}

/// What the device has, which a table that has changed is held against.
struct Known {
    settings: SharedSettings,
    goes_by: GoesBy,
    /// The hash of its data.
    of: String,
}

impl Known {
    fn new(making: &Making, made: &Made) -> Option<Known> {
        let (settings, goes_by) = (made.settings.clone(), made.device.goes_by()?);
        Some(Known { settings, goes_by, of: hash(making, made) })
    }
}

fn hash(making: &Making, made: &Made) -> String {
    training_of(&making.config, &made.own, making.options.learner.as_ref())
}

/// What a look into the table leads to.
enum Look {
    /// It has the rows that the device has.
    Same,
    /// The device goes on with the rows that it has.
    Keeps(DataChange),
    /// The device is to take part with the new rows.
    New(Box<Made>, DataChange),
}

/// Looks after a device's table.
pub(super) struct DataWatch {
    file: TableFile,
    making: Arc<Making>,
    known: Arc<Known>,
    /// Ends a training.
    stop: Arc<AtomicBool>,
}

impl Drop for DataWatch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl DataWatch {
    /// Of a device that takes part with what was made of this file.
    pub(super) fn new(file: TableFile, making: &Arc<Making>, made: &Made) -> Option<DataWatch> {
        let known = Arc::new(Known::new(making, made)?);
        Some(DataWatch { file, making: Arc::clone(making), known, stop: Arc::default() })
    }

    /// Looks at the file again and again; never ends. If a change matters, the device with the new rows trains, its publications are on disk, and
    /// then whoever drives the old one gets it.
    pub(super) async fn run(mut self, told: &Mutex<Told<'_, '_>>, orders: Sender<Order>) {
        loop {
            tokio::time::sleep(EVERY).await;
            // What was read last is not in use yet.
            if locked(told).kept.awaits_data() || !self.file.has_changed() {
                continue;
            }
            let (making, known) = (Arc::clone(&self.making), Arc::clone(&self.known));
            let looked = spawn_blocking(move || look(&making, &known)).await;
            let (made, change) = match looked {
                Ok(Look::Same) => {
                    locked(told).kept.set_change(None);
                    continue;
                }
                Ok(Look::Keeps(change)) => {
                    self.tell(change, told);
                    continue;
                }
                Ok(Look::New(made, change)) => (made, change),
                Err(trouble) => {
                    self.tell(unusable(&trouble), told);
                    continue;
                }
            };
            self.tell(change, told);
            if !made.own.labels.is_empty() {
                let (device, labels) = (self.making.name(), made.own.labels.len());
                (locked(told).observer)(&Event::Trains { device, labels });
            }
            match self.train(made).await.and_then(|made| self.admit(*made, told)) {
                Ok(device) => drop(orders.send(Order::Renew(Box::new(device))).await),
                Err(trouble) => self.tell(unusable(&trouble), told),
            }
        }
    }

    fn tell(&self, change: DataChange, told: &Mutex<Told<'_, '_>>) {
        locked(told).hear_of_data(self.making.name(), change);
    }

    /// Has a device train on its new rows, without holding anything up.
    async fn train(&self, mut made: Box<Made>) -> Result<Box<Made>, Error> {
        let stop = Arc::clone(&self.stop);
        let mut go_on = move || match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let trained = spawn_blocking(move || {
            let trained = made.device.train(&mut go_on);
            (made, trained)
        });
        let (made, trained) = trained.await.map_err(|e| Error::Start(std::io::Error::other(e)))?;
        match trained? {
            true => Ok(made),
            false => Err(Error::StoppedInTraining),
        }
    }

    /// Counts what the device publishes of its new rows, and keeps that, its scale and its model.
    fn admit(&mut self, mut made: Made, told: &Mutex<Told<'_, '_>>) -> Result<Device, Error> {
        let kept = &mut locked(told).kept;
        let publications = publishing::admitted(&self.making.config, &mut made, kept)?;
        if let Some((scale, _)) = &made.own_scale {
            kept.keep_scale(scale)?;
        }
        kept.keep_publications(&publications)?;
        let of = hash(&self.making, &made);
        kept.keep_training_of(&made.device, &of)?;
        if let Some(known) = Known::new(&self.making, &made) {
            self.known = Arc::new(known);
        }
        kept.expect_data(made.own, of);
        Ok(made.device)
    }
}

fn unusable(trouble: &dyn std::fmt::Display) -> DataChange {
    DataChange::Unusable { reason: trouble.to_string() }
}

/// Reads the table, and holds it against what the device has.
fn look(making: &Making, known: &Known) -> Look {
    let made = match making.make(&mut |_| {}) {
        Ok(made) => made,
        Err(trouble) => return Look::Keeps(unusable(&trouble)),
    };
    if let Some(difference) = known.settings.difference(&made.settings) {
        return Look::Keeps(unusable(&difference));
    }
    if hash(making, &made) == known.of {
        return Look::Same;
    }
    let (rows, change) = (made.own.samples(), made.device.change_from(&known.goes_by));
    let divergence = change.in_inputs.divergence.value;
    // All inputs change then.
    let in_scale = matches!(made.own_scale, Some((_, Origin::OtherSize(_))));
    match change.matters() || in_scale {
        true => {
            let in_labels = change.in_labels;
            let change = DataChange::Matters { rows, divergence, in_labels, in_scale };
            Look::New(Box::new(made), change)
        }
        false => Look::Keeps(DataChange::Slight { rows, divergence }),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_again_when_it_has_changed_and_is_at_rest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own.csv");
        std::fs::write(&path, "x\n1\n").unwrap();
        let mut file = TableFile::new(&path);
        assert!(!file.has_changed() && !file.has_changed());
        for text in ["x\n1\n2\n", "x\n1\n2\n3\n"] {
            std::fs::write(&path, text).unwrap();
            assert!(!file.has_changed(), "it may still be written");
        }
        assert!(file.has_changed());
        assert!(!file.has_changed(), "it was read");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(
            [file.has_changed(), file.has_changed(), file.has_changed()],
            [false, true, false]
        );
        std::fs::write(&path, "x\n1\n").unwrap();
        assert_eq!(
            [file.has_changed(), file.has_changed(), file.has_changed()],
            [false, true, false]
        );
    }
}
