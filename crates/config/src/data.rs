//! The section that says where samples come from.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use stlf_data::domains::{Colour, Domain};
use stlf_data::features::{self, Scale, Windows};
use stlf_method::divergence::Embedding;

/// `[data]`: domains of digits, or your own pictures or features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Data {
    /// `mnist`, `usps`, `mnist-m`, `strokes`, `strokes-coarse`, `strokes-textured`.
    pub domains: Vec<String>,
    /// The folder with the files of mnist, usps and mnist-m.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// At most this many samples of each domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<usize>,
    /// Instead of one device for each domain: so many writers of mnist's or mnist-m's digits, each a device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writers: Option<usize>,
    /// Instead of domains: a folder of pictures, `domain/class/*.png`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<PathBuf>,
    /// Pixels per side to which these pictures are resized. Left out: all have one size already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_size: Option<u32>,
    /// Grey or coloured pictures. Left out: of domains coloured if all are, of a folder if one picture is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub colour: Option<Colour>,
    /// Instead of domains: a table of features.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features: Option<PathBuf>,
    /// The column of the table with the labels.
    pub label: String,
    /// The column of the table that names the device. Left out: `device` or `domain`, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Columns of the table that are no features.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// The table has readings in the order of time: so many of a device that follow each other are a sample. Left out: every row is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<usize>,
    /// So many rows after the beginning of a window the next one begins. Left out: where the last one ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stride: Option<usize>,
    /// The column of the table with the times, by which gaps are found, in which no window lies. Left out: `time` or `timestamp`, where there
    /// is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// All classes of the table or of the pictures, where there need not be a label of each: a device of a fleet has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<String>>,
    /// By whose values the features of the table are scaled. Left out: by those of all devices, or by its own where one device has the
    /// whole table, and for windows.
    #[serde(with = "crate::standardise", skip_serializing_if = "Option::is_none")]
    pub standardise: Option<Scale>,
    /// Instead of domains: the devices, whose learners (`training.learner`) have the data.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
    /// A table of labels that somebody gave to samples that `stlf ask` named. Targets learn from them, and plans do not change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<PathBuf>,
}

impl Default for Data {
    fn default() -> Data {
        Data {
            domains: vec!["strokes".to_owned()],
            folder: None,
            samples: None,
            writers: None,
            images: None,
            image_size: None,
            colour: None,
            features: None,
            label: "label".to_owned(),
            device: None,
            ignore: Vec::new(),
            window: None,
            stride: None,
            time: None,
            classes: None,
            standardise: None,
            devices: Vec::new(),
            answers: None,
        }
    }
}

impl Data {
    /// The table of features, where samples are no pictures.
    pub(crate) fn table(&self) -> Option<&PathBuf> {
        self.features.as_ref().filter(|_| self.images.is_none())
    }

    /// Whether no samples are named: each device of a fleet names its own.
    pub(crate) fn is_open(&self) -> bool {
        self.images.is_none() && self.features.is_none() && self.domains.is_empty()
    }

    /// Whether samples are drawn, and not read from files.
    pub(crate) fn is_drawn(&self) -> bool {
        let is_drawn = |name: &String| name.parse().is_ok_and(Domain::is_drawn);
        let is_read = self.images.is_some() || self.features.is_some();
        !is_read && !self.domains.is_empty() && self.domains.iter().all(is_drawn)
    }

    /// Returns the options by which the table of features is read.
    pub(crate) fn table_options(&self) -> features::Options {
        features::Options {
            label: self.label.clone(),
            domain: self.device.clone(),
            ignore: self.ignore.clone(),
            classes: self.classes.clone(),
            windows: self.windows(),
            time: self.time.clone(),
        }
    }

    /// The size of the windows, where samples are windows of a series.
    pub fn windows(&self) -> Option<Windows> {
        let length = self.window?;
        Some(Windows { length, stride: self.stride.unwrap_or(length) })
    }

    /// The largest number of samples that a row of a table lies in: more than 1 where windows overlap.
    pub fn overlap(&self) -> usize {
        self.windows().map_or(1, |windows| windows.length.div_ceil(windows.stride.max(1)).max(1))
    }

    /// Returns what divergences are measured over: windows of a series, or single inputs.
    pub fn embedding(&self) -> Embedding {
        if self.window.is_some() { Embedding::Windows } else { Embedding::Inputs }
    }

    /// By whose values features are scaled, where that is known before the data are: as asked for, and readings of a series by each device's
    /// own, as levels of sensors differ by more than what they measure.
    pub fn scale(&self) -> Option<Scale> {
        self.standardise.or(self.windows().map(|_| Scale::Own))
    }

    /// Which key about windows cannot be used, and why.
    pub(crate) fn misplaced_windows(&self) -> Option<(&'static str, &'static str)> {
        let within = |number: usize| (1..=MOST_READINGS).contains(&number);
        match (self.window, self.stride) {
            (Some(_), _) if self.table().is_none() && !self.is_open() => {
                Some(("window", "is only for a table of readings (data.features)"))
            }
            (Some(window), _) if !within(window) => Some(("window", "is not between 1 and 65536")),
            (_, Some(stride)) if !within(stride) => Some(("stride", "is not between 1 and 65536")),
            (None, Some(_)) => Some(("stride", "is only for windows (data.window)")),
            (None, None) if self.time.is_some() => {
                Some(("time", "is only for windows (data.window)"))
            }
            _ => None,
        }
    }
}

/// The most readings of a window, and from one to the next.
const MOST_READINGS: usize = 1 << 16;
