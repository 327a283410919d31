//! The data behind the means that a device published last, as far as its replies are about them.
//!
//! A device whose data have changed in a few samples publishes its last means again ([`crate::publication_record`]). If it replied to others' means by its data as they
//! are now, two replies could be about data that differ in one sample, and their difference about this sample alone. So it replies by the moments of the data that its
//! means are of, and these are kept on disk for that. They never leave the device.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use stlf_method::divergence::OwnMoments;
use stlf_method::divergence::sketch::{Settings, Sketch};

use crate::identity::hex;
use crate::wire::Means;

const FORMAT: &str = "stlf-published-data/1";

/// What a device keeps of the data behind its means.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedData {
    format: String,
    /// The digest of the means that are published of them.
    means: String,
    /// The names of the samples, as in records.
    samples: BTreeSet<String>,
    /// How many of them [count](stlf_method::divergence::disclosure::independent).
    counted: f64,
    moments: OwnMoments,
}

impl PublishedData {
    /// The data of these samples, of which so many count, behind these means.
    pub(crate) fn new(
        means: &Sketch,
        settings: &Settings,
        samples: BTreeSet<String>,
        counted: f64,
        moments: OwnMoments,
    ) -> PublishedData {
        let means = digest(means, settings);
        PublishedData { format: FORMAT.to_owned(), means, samples, counted, moments }
    }

    /// Reads what was kept.
    ///
    /// # Errors
    /// Says why these bytes are none.
    pub fn read(bytes: &[u8]) -> Result<PublishedData, String> {
        let data: PublishedData = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        match data.format == FORMAT {
            true => Ok(data),
            false => Err(format!("this is {:?}, not {FORMAT:?}", data.format)),
        }
    }

    /// Whether these means are of them.
    pub(crate) fn are_behind(&self, means: &Sketch, settings: &Settings) -> bool {
        self.means == digest(means, settings)
            && self.moments.fit(settings.features)
            && self.counted > 0.0
    }

    /// The names of the samples.
    pub(crate) fn samples(&self) -> &BTreeSet<String> {
        &self.samples
    }

    /// How many of the samples count.
    pub(crate) fn counted(&self) -> f64 {
        self.counted
    }

    /// What a device measures by.
    pub(crate) fn moments(&self) -> &OwnMoments {
        &self.moments
    }
}

fn digest(means: &Sketch, settings: &Settings) -> String {
    hex(&Means::of(means, settings).digest())
}
