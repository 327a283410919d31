//! A device's own scale as it keeps it from start to start. A scale that was computed anew would change all inputs a little
//! with every row that comes or goes, and a sample could not be known again by its inputs.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::scaling::Unit;

const FORMAT: &str = "stlf-scale/1";

/// The scale of a device's own rows, feature by feature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnScale {
    format: String,
    rows: usize,
    features: Vec<Feature>,
}

/// The scale of one feature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Feature {
    name: String,
    centre: f64,
    deviation: f64,
    limit: f64,
}

/// Where the scale that a device uses comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It is that of the device's rows as they are now: it had none before.
    First,
    /// Earlier rows. So many were added since, or removed if it is negative.
    Kept(isize),
    /// Its rows as they are now, since the one that it had was of other columns.
    OtherColumns,
    /// Its rows as they are now, since the one that it had was of this number of rows, which is at most half of today's or at least
    /// twice as many.
    OtherSize(usize),
}

impl OwnScale {
    /// Returns the scale with the unit of every column, computed from so many rows.
    pub(super) fn new(columns: &[String], units: &[Unit], rows: usize) -> OwnScale {
        let feature = |(name, unit): (&String, &Unit)| {
            let (name, Unit { centre, deviation, limit }) = (name.clone(), *unit);
            Feature { name, centre, deviation, limit }
        };
        let features = columns.iter().zip(units).map(feature).collect();
        OwnScale { format: FORMAT.to_owned(), rows, features }
    }

    /// Reads a scale that was kept in a file; `None` where there is no such file.
    ///
    /// # Errors
    /// A file that cannot be read, or is no scale.
    pub fn read(path: &Path) -> Result<Option<OwnScale>, Error> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::file(path, e)),
        };
        let scale = OwnScale::parse(&bytes).map_err(|message| {
            Error::content(path, format!("this is no scale of features: {message}")).with_hint(
                "restore it from a backup; if you delete it, the device takes a new scale from its rows as they are now, and all its inputs change",
            )
        })?;
        Ok(Some(scale))
    }

    fn parse(bytes: &[u8]) -> Result<OwnScale, String> {
        let scale: OwnScale = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        if scale.format != FORMAT {
            return Err(format!("this is {:?}, not {FORMAT:?}", scale.format));
        }
        match scale.features.iter().find(|f| f.deviation < 0.0 || f.limit <= 0.0) {
            Some(feature) => Err(format!("feature {:?} has no size", feature.name)),
            None => Ok(scale),
        }
    }

    /// The scale that was kept, if it is of the same columns as the one of today's rows and of neither half nor twice as many rows; else
    /// that one.
    pub fn kept_or(kept: Option<OwnScale>, today: OwnScale) -> (OwnScale, Origin) {
        let Some(kept) = kept else { return (today, Origin::First) };
        let (was, is) = (kept.rows, today.rows);
        if !kept.names().eq(today.names()) {
            (today, Origin::OtherColumns)
        } else if is >= 2 * was || was >= 2 * is {
            (today, Origin::OtherSize(was))
        } else {
            (kept, Origin::Kept(is as isize - was as isize))
        }
    }

    /// Returns the number of rows that it was computed from.
    pub fn rows(&self) -> usize {
        self.rows
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.features.iter().map(|feature| feature.name.as_str())
    }

    pub(super) fn units(&self) -> Vec<Unit> {
        let unit = |f: &Feature| Unit { centre: f.centre, deviation: f.deviation, limit: f.limit };
        self.features.iter().map(unit).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scale(columns: &[&str], rows: usize) -> OwnScale {
        let columns: Vec<String> = columns.iter().map(|&name| name.to_owned()).collect();
        let unit = Unit { centre: rows as f64 / 3.0, deviation: 0.1, limit: 10.0 };
        OwnScale::new(&columns, &vec![unit; columns.len()], rows)
    }

    #[test]
    fn a_scale_is_kept_while_the_table_is_much_the_same() {
        let kept = scale(&["x", "y"], 100);
        for rows in [51, 99, 100, 101, 199] {
            let used = OwnScale::kept_or(Some(kept.clone()), scale(&["x", "y"], rows));
            assert_eq!(used, (kept.clone(), Origin::Kept(rows as isize - 100)));
        }
        for rows in [1, 50, 200, 1000] {
            let today = scale(&["x", "y"], rows);
            let used = OwnScale::kept_or(Some(kept.clone()), today.clone());
            assert_eq!(used, (today, Origin::OtherSize(100)));
        }
        for columns in [&["x"][..], &["y", "x"], &["x", "y", "z"]] {
            let today = scale(columns, 101);
            let used = OwnScale::kept_or(Some(kept.clone()), today.clone());
            assert_eq!(used, (today, Origin::OtherColumns), "{columns:?}");
        }
        assert_eq!(OwnScale::kept_or(None, kept.clone()), (kept, Origin::First));
    }

    #[test]
    fn a_file_that_is_no_scale_is_never_a_new_one() {
        let inside = tempfile::tempdir().unwrap();
        let path = inside.path().join("scale.json");
        assert_eq!(OwnScale::read(&path).unwrap(), None);
        let good = scale(&["x", "y"], 100);
        let text = serde_json::to_string(&good).unwrap();
        std::fs::write(&path, &text).unwrap();
        assert_eq!(OwnScale::read(&path).unwrap(), Some(good));
        for bad in [
            "",
            "{}",
            &text[..text.len() - 1],
            &text.replace("scale/1", "scale/2"),
            &text.replace("\"rows\"", "\"lines\""),
            &text.replace("0.1", "-0.1"),
            &text.replace("0.1", "null"),
            &text.replace("0.1", "1e999"),
            &text.replace("10.0", "0.0"),
        ] {
            std::fs::write(&path, bad).unwrap();
            let error = OwnScale::read(&path).unwrap_err();
            assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
            assert!(error.hint().unwrap().starts_with("restore it"), "{bad}");
        }
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(matches!(OwnScale::read(&path), Err(Error::File { .. })));
    }

    proptest! {
        #[test]
        fn a_file_keeps_every_bit(
            (centre, deviation) in (any::<f64>(), any::<f64>().prop_map(f64::abs))
        ) {
            prop_assume!(centre.is_finite() && deviation.is_finite());
            let unit = Unit { centre, deviation, limit: 10.0 };
            let kept = OwnScale::new(&["x".to_owned()], &[unit], 7);
            let read = OwnScale::parse(&serde_json::to_vec_pretty(&kept).unwrap()).unwrap().units();
            prop_assert_eq!(read[0].centre.to_bits(), centre.to_bits());
            prop_assert_eq!(read[0].deviation.to_bits(), deviation.to_bits());
        }
    }
}
