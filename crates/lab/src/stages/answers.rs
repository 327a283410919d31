//! The answers that results are of. Other answers give other results and other students, while models and plans stay.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use stlf_config::fleet::DeviceData;
use stlf_method::known::Known;
use stlf_method::method::Method;

use super::student;
use super::transfer::{Transfer, table};
use super::trust::is_ours;
use crate::Error;

/// The answers that the results of a seed are of; absent where nobody told any.
const TABLE: &str = "answers.csv";

/// A label that somebody told a device of one of its samples.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Answer {
    device: String,
    /// The sample's place in the data set, from 0.
    sample: usize,
    /// The name of the class that the sample is said to be of.
    label: String,
}

impl Transfer<'_> {
    /// Removes what came of other answers than today's, if there is any: the results of methods whose targets learn from answers, and the
    /// students of targets of which somebody has told something else since.
    pub(super) fn forget_other_answers(&self, classes: &[String]) -> Result<(), Error> {
        let seed = &self.run.folder;
        let before: BTreeSet<Answer> = match seed.read_csv::<Answer>(TABLE)? {
            Some(rows) => rows.into_iter().collect(),
            None => BTreeSet::new(),
        };
        let today = self.answers(classes);
        if before == today {
            return Ok(());
        }
        let changed: BTreeSet<&str> =
            before.symmetric_difference(&today).map(|row| row.device.as_str()).collect();
        let results = seed.folder("results")?;
        let with_students = self.run.config.compare.students()?;
        for method in Method::ALL {
            if is_ours(method) || with_students.contains(&method) {
                results.remove_file(&table(method))?;
                student::forget(seed, method, &changed)?;
            }
        }
        seed.write_csv(TABLE, &today.iter().collect::<Vec<_>>())?;
        Ok(())
    }

    /// All answers about samples of this seed's devices.
    fn answers(&self, classes: &[String]) -> BTreeSet<Answer> {
        let of_device = |device: &DeviceData| {
            let row = |&(at, class): &Known| Answer {
                device: device.name.clone(),
                sample: device.places[at],
                label: classes[usize::from(class)].clone(),
            };
            device.answers.iter().map(row).collect::<Vec<_>>()
        };
        self.run.fleet.devices.iter().flat_map(of_device).collect()
    }
}
