//! Series: a table of readings in the order of time, one row each, cut into windows. Each window is a sample.
//!
//! Windows lie within the rows of one device, in which no reading is missing. Rows of several devices may be mixed. What is left at the end of a
//! stretch and is shorter than a window is not used.

use std::collections::BTreeMap;
use std::path::Path;

use super::Table;
use crate::Error;

/// How a table of readings is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// The readings of a window; at least 1.
    pub length: usize,
    /// The readings from the beginning of a window to that of the next; at least 1.
    pub stride: usize,
}

/// What samples that are windows were cut from: complete enough to cut another table in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// The length and the stride of the windows, in readings.
    pub windows: Windows,
    /// The column of times, where there is one.
    pub time: Option<String>,
    /// The column that names the device, where there is one.
    pub device: Option<String>,
}

/// The place in the table where a window begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beginning {
    /// Its first row in the table, counted from 0.
    pub row: usize,
    /// The time of this row, as it is written there.
    pub time: Option<String>,
}

/// The time of a row as a number, and as it is written.
pub(super) struct Time {
    number: f64,
    text: String,
}

impl Time {
    /// Reads the time of a row; `None` if the text is no time.
    pub(super) fn new(text: &str) -> Option<Time> {
        Some(Time { number: super::time::parse(text)?, text: text.to_owned() })
    }
}

/// A pause between two readings that is longer than the usual one by this factor is a gap.
const GAP: f64 = 1.5;

impl Table {
    /// A table in which every row is a window of this one, channel by channel, and where each begins. They are in the order of their
    /// first rows. The label of a window is the one that at least half of its rows have; of two such, the first.
    ///
    /// # Errors
    /// A device without a window, times that go back, or no window with a label although rows have some.
    pub(super) fn cut(
        mut self,
        windows: Windows,
        path: &Path,
    ) -> Result<(Table, Vec<Beginning>), Error> {
        if windows.length == 0 || windows.stride == 0 {
            return Err(Error::setting("data.window", "window and stride must be at least 1"));
        }
        let mut rows_of = vec![Vec::new(); self.domains.0.len()];
        self.domain_of.iter().enumerate().for_each(|(row, &domain)| rows_of[domain].push(row));
        let mut cut: Vec<(usize, &[usize])> = Vec::new();
        for (domain, rows) in rows_of.iter().enumerate() {
            let stretches = self.stretches(rows, path)?;
            let before = cut.len();
            for stretch in &stretches {
                let windows = stretch.windows(windows.length).step_by(windows.stride);
                cut.extend(windows.map(|rows| (domain, rows)));
            }
            if cut.len() == before {
                let longest = stretches.iter().map(|stretch| stretch.len()).max().unwrap_or(0);
                return Err(self.too_short(domain, longest, stretches.len() > 1, windows, path));
            }
        }
        cut.sort_by_key(|(_, rows)| rows[0]);
        let labels: Vec<_> = cut.iter().map(|(_, rows)| self.label_of(rows)).collect();
        if self.labels.iter().any(Option::is_some) && labels.iter().all(Option::is_none) {
            let message = format!(
                "in no window of {} rows do at least half have one and the same label",
                windows.length
            );
            return Err(Error::content(path, message).with_hint(
                "rows must be in the order of time; is data.window too long, or this another column of labels?",
            ));
        }
        let channels = self.columns.features.len();
        let mut values = Vec::with_capacity(cut.len() * channels * windows.length);
        for (_, rows) in &cut {
            for channel in 0..channels {
                values.extend(rows.iter().map(|row| self.values[row * channels + channel]));
            }
        }
        let beginning = |(_, rows): &(usize, &[usize])| Beginning {
            row: rows[0],
            time: self.times.get(rows[0]).map(|time| time.text.clone()),
        };
        let beginnings = cut.iter().map(beginning).collect();
        let domain_of = cut.iter().map(|(domain, _)| *domain).collect();
        (self.labels, self.domain_of, self.values) = (labels, domain_of, values);
        Ok((self, beginnings))
    }

    /// The rows of one device in stretches without a gap.
    fn stretches<'r>(&self, rows: &'r [usize], path: &Path) -> Result<Vec<&'r [usize]>, Error> {
        if self.times.is_empty() {
            return Ok(vec![rows]);
        }
        let pause = |a: usize, b: usize| self.times[b].number - self.times[a].number;
        let mut pauses: Vec<f64> = rows.windows(2).map(|pair| pause(pair[0], pair[1])).collect();
        if let Some(at) = pauses.iter().position(|&pause| pause < 0.0) {
            let name = self.columns.time_name.as_deref().unwrap_or_default();
            let (before, after) = (rows[at], rows[at + 1]);
            let message = format!(
                "row {}, column {name}: {} is earlier than {} in row {}, of the same device",
                after + self.first_row,
                self.times[after].text,
                self.times[before].text,
                before + self.first_row,
            );
            return Err(Error::content(path, message).with_hint("sort the table by time"));
        }
        pauses.retain(|&pause| pause > 0.0);
        pauses.sort_unstable_by(f64::total_cmp);
        // Several readings may have one time, where times are rounded.
        let usual = pauses.get(pauses.len() / 2).copied().unwrap_or(f64::INFINITY);
        Ok(rows.chunk_by(|&a, &b| pause(a, b) <= GAP * usual).collect())
    }

    /// The label that at least half of these rows have.
    fn label_of(&self, rows: &[usize]) -> Option<usize> {
        let mut found: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        for (at, label) in rows.iter().map(|&row| self.labels[row]).enumerate() {
            let of_label = label.map(|label| found.entry(label).or_insert((at, 0)));
            of_label.into_iter().for_each(|(_, count)| *count += 1);
        }
        let half = found.into_iter().filter(|(_, (_, count))| 2 * count >= rows.len());
        half.min_by_key(|(_, (first, _))| *first).map(|(label, _)| label)
    }

    fn too_short(
        &self,
        domain: usize,
        longest: usize,
        has_gaps: bool,
        windows: Windows,
        path: &Path,
    ) -> Error {
        let name = self.domains.0.iter().find(|(_, number)| **number == domain);
        let who = match (&self.columns.domain_name, name) {
            (Some(column), Some((name, _))) => format!("{column} {name:?} "),
            _ => String::new(),
        };
        let without = if has_gaps { " without a gap" } else { "" };
        let message = format!(
            "{who}has at most {longest} readings{without}, fewer than the {} of a window",
            windows.length
        );
        let error = Error::content(path, message);
        error.with_hint("choose a shorter data.window")
    }
}

#[cfg(test)]
mod tests;
