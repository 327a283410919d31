//! The data of a device while it takes part: whether they have changed, whether that matters, and the device with the new samples.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use stlf_data::features::Origin;
use stlf_protocol::Device;
use stlf_protocol::device::GoesBy;
use stlf_protocol::shared::SharedSettings;
use tokio::sync::mpsc::Sender;
use tokio::task::spawn_blocking;

use super::data_files::DataFiles;
use super::making::{Made, Making};
use super::state_dir::training_of;
use super::{Error, Event, Told, locked, publishing, warn};
use crate::data_change::{DataChange, Effect, ReadFrom};
use crate::network::Order;

/// The least time between two looks at the files. What differs from one look to the next is still being written, and is not read.
const EVERY: Duration = Duration::from_secs(1);

/// The time between two looks is so many times that of a look: a folder may have very many pictures.
const RESTS: u32 = 100;

/// What the device has, which data that have changed are held against.
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

/// What reading the data again leads to.
enum Look {
    /// They are those that the device has.
    Same,
    /// The device goes on with the samples that it has.
    Keeps(Effect),
    /// The device is to take part with the new samples.
    New(Box<Made>, Effect),
}

/// Looks after a device's data.
pub(super) struct DataWatch {
    of: ReadFrom,
    files: Arc<Mutex<DataFiles>>,
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
    /// Of a device that takes part with what was made of these files.
    pub(super) fn new(files: DataFiles, making: &Arc<Making>, made: &Made) -> Option<DataWatch> {
        let (of, files) = (files.of, Arc::new(Mutex::new(files)));
        let known = Arc::new(Known::new(making, made)?);
        Some(DataWatch { of, files, making: Arc::clone(making), known, stop: Arc::default() })
    }

    /// Looks at the files again and again; never ends. If a change matters, the device with the new samples trains, its publications are on disk,
    /// and then whoever drives the old one gets it.
    pub(super) async fn run(mut self, told: &Mutex<Told<'_, '_>>, orders: Sender<Order>) {
        let mut pause = EVERY;
        loop {
            tokio::time::sleep(pause).await;
            // What was read last is not in use yet.
            if locked(told).kept.awaits_data() {
                continue;
            }
            let (have_changed, took) = self.have_changed().await;
            pause = EVERY.max(took * RESTS);
            if !have_changed {
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
            let trained = self.train(made).await;
            if let Ok(made) = &trained {
                warn(self.making.name(), &made.device, locked(told).observer);
            }
            match trained.and_then(|made| self.admit(*made, told)) {
                Ok(device) => drop(orders.send(Order::Renew(Box::new(device))).await),
                Err(trouble) => self.tell(unusable(&trouble), told),
            }
        }
    }

    /// Returns whether the files have changed and are at rest, and how long the look took, which holds nothing up.
    async fn have_changed(&self) -> (bool, Duration) {
        let files = Arc::clone(&self.files);
        let looked = spawn_blocking(move || {
            let start = Instant::now();
            let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
            (files.have_changed(), start.elapsed())
        });
        looked.await.unwrap_or_default()
    }

    fn tell(&self, effect: Effect, told: &Mutex<Told<'_, '_>>) {
        let change = DataChange { of: self.of, effect };
        locked(told).hear_of_data(self.making.name(), change);
    }

    /// Has a device train on its new samples, without holding anything up.
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

    /// Counts what the device publishes of its new samples, and keeps that, its scale and its model.
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

fn unusable(trouble: &dyn std::fmt::Display) -> Effect {
    Effect::Unusable { reason: trouble.to_string() }
}

/// Reads the data, and holds them against what the device has.
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
            let change = Effect::Matters { rows, divergence, in_labels, in_scale };
            Look::New(Box::new(made), change)
        }
        false => Look::Keeps(Effect::Slight { rows, divergence }),
    }
}
