//! How much a device has told so far by each of its records, in a file beside them. A record that says less went back to an earlier one, such as one from an old backup, or
//! was deleted: by it the device would tell more than it may. If all of the folder went back, nothing here notices.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stlf_data::atomic_folder::Folder;

use super::Error;

const FILE: &str = "told.json";

const FORMAT: &str = "stlf-told/1";

/// Less of what was told than this is rounding.
const ROUNDING: f64 = 1e-6;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToldSoFar {
    format: String,
    /// By the name of a record, what it says of how much was told, which only grows.
    records: BTreeMap<String, f64>,
}

impl Default for ToldSoFar {
    fn default() -> ToldSoFar {
        ToldSoFar { format: FORMAT.to_owned(), records: BTreeMap::new() }
    }
}

fn read(folder: &Folder) -> Result<ToldSoFar, Error> {
    let Some(bytes) = folder.read(FILE)? else { return Ok(ToldSoFar::default()) };
    let bad = |message: String| Error::Ledger { path: folder.file(FILE), message };
    let told: ToldSoFar = serde_json::from_slice(&bytes).map_err(|e| bad(e.to_string()))?;
    match told.format == FORMAT {
        true => Ok(told),
        false => Err(bad(format!("this is {:?}, not {FORMAT:?}", told.format))),
    }
}

/// Checks that a record, which says that so much was told, is not older than what the device has told.
///
/// # Errors
/// It is, or nobody knows how much that was.
pub(super) fn check(folder: &Folder, record: &str, says: f64) -> Result<(), Error> {
    match read(folder)?.records.get(record) {
        Some(&told) if says < told - ROUNDING => {
            Err(Error::OlderRecord { path: folder.file(record), beside: FILE })
        }
        _ => Ok(()),
    }
}

/// Stores how much was told by a record, which is on disk already: if the device is killed in between, less is known than the record says.
pub(super) fn keep(folder: &Folder, record: &str, says: f64) -> Result<(), stlf_data::Error> {
    let mut told = read(folder).unwrap_or_default();
    if told.records.get(record).is_some_and(|&told| told >= says) {
        return Ok(());
    }
    told.records.insert(record.to_owned(), says);
    folder.write_json_durably(FILE, &told)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_went_back_is_noticed() {
        let inside = tempfile::tempdir().unwrap();
        let folder = Folder::open(inside.path()).unwrap();
        assert!(check(&folder, "replies.json", 0.0).is_ok(), "nobody knows of any");
        for says in [0.5, 1.5, 1.25] {
            keep(&folder, "replies.json", says).unwrap();
        }
        keep(&folder, "published.json", 2.0).unwrap();
        assert!(check(&folder, "replies.json", 1.5).is_ok());
        // Killed between both files.
        assert!(check(&folder, "replies.json", 1.75).is_ok());
        let older = check(&folder, "replies.json", 1.25).unwrap_err();
        assert!(older.to_string().contains("replies.json") && older.hint().is_some(), "{older}");
        assert!(check(&folder, "published.json", 0.0).is_err(), "a record that is gone");
        assert!(check(&folder, "verdicts.json", 0.0).is_ok());
        std::fs::write(inside.path().join(FILE), "{").unwrap();
        assert!(matches!(check(&folder, "verdicts.json", 0.0), Err(Error::Ledger { .. })));
    }
}
