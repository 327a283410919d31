//! What every device holds at every step: a window over its own stream of rows, which moves on.

use std::sync::Arc;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stlf_data::features::{Scale, Scaler};
use stlf_data::{Class, Dataset, Scaling};

use super::Drifting;
use crate::Error;

/// The rows of a fleet in the order of time, with the scale that every device took from its first window and keeps, as a real device does.
pub(super) struct Windows<'d> {
    data: &'d Dataset,
    window: usize,
    stride: usize,
    devices: Vec<Stream>,
    /// How many steps there are for all.
    pub(super) steps: usize,
}

/// The rows of one device, and how its window moves over them.
struct Stream {
    rows: Vec<usize>,
    /// The index in `rows` of the row at which its first window begins.
    first: usize,
    /// Whether somebody labels its rows.
    labeled: bool,
    /// Whether it keeps its first window for ever.
    stays: bool,
    scaling: Scaling,
}

/// What a device holds at a step.
pub(super) struct Held {
    pub(super) inputs: Arc<[f32]>,
    /// All of them; a device that has none hides these.
    pub(super) classes: Vec<Class>,
    pub(super) batches: Batches,
}

/// The batches that the first, the middle and the last row of a window are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Batches {
    pub(super) first: usize,
    pub(super) middle: usize,
    pub(super) last: usize,
}

impl<'d> Windows<'d> {
    /// Deals the rows of every batch, shuffled, to all devices in turn, and draws who has labels and who is ahead.
    ///
    /// # Errors
    /// Rows without a class, or too few for two steps.
    pub(super) fn new(
        data: &'d Dataset,
        fleet: &Drifting,
        seed: u64,
    ) -> Result<Windows<'d>, Error> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut batches = vec![Vec::new(); data.domains().len()];
        (0..data.len()).for_each(|row| batches[data.domain(row)].push(row));
        let mut rows = vec![Vec::new(); fleet.devices];
        let mut next = 0;
        for batch in &mut batches {
            batch.shuffle(&mut rng);
            for &row in &*batch {
                rows[next % fleet.devices].push(row);
                next += 1;
            }
        }
        let mut order: Vec<usize> = (0..fleet.devices).collect();
        order.shuffle(&mut rng);
        let labeled = &order[..fleet.labeled.min(fleet.devices)];
        let scaler = Scaler::new(data, Scale::Own);
        let stream = |(device, rows): (usize, Vec<usize>)| {
            let first = rng.random_range(0..=fleet.apart);
            let labeled = labeled.contains(&device);
            let begins = rows.get(first..first + fleet.window).unwrap_or_default();
            let scaling = scaler.scaling(begins);
            Stream { rows, first, labeled, stays: labeled && fleet.labels_end, scaling }
        };
        let devices: Vec<Stream> = rows.into_iter().enumerate().map(stream).collect();
        let of = |stream: &Stream| {
            let after = stream.rows.len().checked_sub(stream.first + fleet.window);
            after.map_or(0, |rows| rows / fleet.stride + 1)
        };
        let steps = devices.iter().map(of).min().unwrap_or(0);
        if steps < 2 {
            let message = format!("{} rows are too few for the windows of this fleet", data.len());
            return Err(stlf_planning::Error::other("data", message).into());
        }
        let (window, stride) = (fleet.window, fleet.stride);
        Ok(Windows { data, window, stride, devices, steps })
    }

    /// Returns the number of devices in the fleet.
    pub(super) fn devices(&self) -> usize {
        self.devices.len()
    }

    /// Whether somebody labels the rows of a device.
    pub(super) fn is_labeled(&self, device: usize) -> bool {
        self.devices[device].labeled
    }

    /// Since which step a device has had the rows that it has at this one.
    pub(super) fn since(&self, device: usize, step: usize) -> usize {
        if self.devices[device].stays { 0 } else { step }
    }

    /// What a device holds at a step.
    ///
    /// # Errors
    /// A row without a class.
    pub(super) fn held(&self, device: usize, step: usize) -> Result<Held, Error> {
        let stream = &self.devices[device];
        let from = stream.first + self.stride * self.since(device, step);
        let rows = &stream.rows[from..from + self.window];
        let classes = self.data.labels(rows).ok_or_else(|| {
            stlf_planning::Error::other("data", "a row has no label, so that nothing can be judged")
        })?;
        let batch = |at: usize| self.data.domain(rows[at]);
        let batches =
            Batches { first: batch(0), middle: batch(rows.len() / 2), last: batch(rows.len() - 1) };
        let inputs = stream.scaling.inputs(self.data, rows).into();
        Ok(Held { inputs, classes, batches })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use stlf_data::Shape;
    use stlf_data::dataset::Values;

    use super::*;

    /// A batch of so many rows, whose only feature is its number.
    fn batch(number: usize, rows: usize) -> Dataset {
        let shape = Shape { channels: 1, height: 1, width: 1 };
        let values = Values::Features((0..rows).map(|k| (1_000 * number + k) as f64).collect());
        let labels = (0..rows).map(|k| Some((k % 2) as Class)).collect();
        let classes = ["calm", "storm"].map(str::to_owned).to_vec();
        Dataset::new(format!("b{number}"), shape, values, labels, classes).unwrap()
    }

    fn fleet(labels_end: bool) -> Drifting {
        Drifting {
            name: "small".to_owned(),
            title: "small".to_owned(),
            table: "none".into(),
            time: "batch".to_owned(),
            devices: 3,
            labeled: 1,
            window: 10,
            stride: 4,
            apart: 5,
            labels_end,
        }
    }

    #[test]
    fn windows_move_on_in_time_and_no_row_is_at_two_devices() {
        let data = batch(1, 60).join(batch(2, 45)).unwrap().join(batch(3, 51)).unwrap();
        for labels_end in [false, true] {
            let windows = Windows::new(&data, &fleet(labels_end), 3).unwrap();
            assert_eq!(windows.devices(), 3);
            assert_eq!((0..3).filter(|&d| windows.is_labeled(d)).count(), 1);
            let mut all: Vec<usize> = windows.devices.iter().flat_map(|s| s.rows.clone()).collect();
            all.sort_unstable();
            assert_eq!(all, (0..data.len()).collect::<Vec<_>>());
            for device in 0..3 {
                let held: Vec<Held> =
                    (0..windows.steps).map(|step| windows.held(device, step).unwrap()).collect();
                assert!(held.windows(2).all(|w| w[0].batches <= w[1].batches));
                assert!(held.iter().all(|held| held.classes.len() == 10));
                let stays = labels_end && windows.is_labeled(device);
                assert_eq!(held[0].inputs == held[windows.steps - 1].inputs, stays);
                // What stays in the window has the same inputs as before.
                assert!(stays || held[0].inputs[4..] == held[1].inputs[..6]);
            }
        }
        let few = batch(1, 40);
        assert!(Windows::new(&few, &fleet(false), 3).is_err());
    }
}
