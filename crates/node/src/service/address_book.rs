//! Where other devices were when they were connected last, on disk: a device that is started again calls them there too.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use stlf_data::atomic_folder::Folder;
use stlf_protocol::roster::{Place, Roster};

const FILE: &str = "addresses.json";

/// Addresses by the names of devices, as the file has them.
#[derive(Debug, Default)]
pub(super) struct AddressBook(BTreeMap<String, SocketAddr>);

impl AddressBook {
    /// Reads what a folder has. A file that cannot be read counts as lost.
    pub(super) fn read(folder: &Folder) -> AddressBook {
        let bytes = folder.read(FILE).ok().flatten();
        let read = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        AddressBook(read.unwrap_or_default())
    }

    /// Returns the addresses by the places of this roster.
    pub(super) fn places(&self, roster: &Roster) -> BTreeMap<Place, SocketAddr> {
        let all = roster.with_places();
        all.filter_map(|(place, member)| Some((place, *self.0.get(&member.name)?))).collect()
    }

    /// Writes them, if they have changed.
    pub(super) fn keep(
        &mut self,
        folder: &Folder,
        seen: &BTreeMap<Place, SocketAddr>,
        roster: &Roster,
    ) -> Result<(), stlf_data::Error> {
        let name = |place: &Place| Some(roster.at(*place)?.name.clone());
        let seen = seen.iter().filter_map(|(place, address)| Some((name(place)?, *address)));
        let seen = seen.collect();
        if self.0 != seen {
            folder.write_json(FILE, &seen)?;
            self.0 = seen;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use stlf_protocol::Identity;

    use super::*;

    #[test]
    fn addresses_are_read_back_and_a_broken_file_counts_as_lost() {
        let inside = tempfile::tempdir().unwrap();
        let folder = Folder::open(inside.path()).unwrap();
        let key = Identity::from_bytes(&[1; 32]).id();
        let roster = Roster::new("harbour", key).with("gate", key).unwrap();
        let seen = BTreeMap::from([(Place::new(0), SocketAddr::from(([10, 0, 0, 5], 7000)))]);
        let mut book = AddressBook::read(&folder);
        assert_eq!(book.places(&roster), BTreeMap::new());
        book.keep(&folder, &seen, &roster).unwrap();
        assert_eq!(AddressBook::read(&folder).places(&roster), seen);
        folder.write(FILE, b"{\"gate\": \"10.0").unwrap();
        assert_eq!(AddressBook::read(&folder).places(&roster), BTreeMap::new());
    }
}
