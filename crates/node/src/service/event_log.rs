//! The log of what happened, in the device's folder: a line each, of which only so many bytes are kept.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use stlf_data::atomic_folder::Folder;

/// The file that lines are added to.
const FILE: &str = "events.jsonl";

/// The lines before those.
const BEFORE: &str = "events.1.jsonl";

/// The most bytes of each of the two files.
const MOST_BYTES: u64 = 4 << 20;

/// The log, with the size of its file.
pub(super) struct EventLog {
    file: File,
    path: PathBuf,
    before: PathBuf,
    bytes: u64,
    most: u64,
}

impl EventLog {
    /// Opens the log of a folder, and continues it.
    pub(super) fn open(folder: &Folder) -> Result<EventLog, stlf_data::Error> {
        EventLog::open_with(folder, MOST_BYTES)
    }

    fn open_with(folder: &Folder, most: u64) -> Result<EventLog, stlf_data::Error> {
        let (path, before) = (folder.file(FILE), folder.file(BEFORE));
        let opened = append(&path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (bytes, file) = opened.map_err(|e| failed(&path, e))?;
        Ok(EventLog { file, path, before, bytes, most })
    }

    /// Adds a line. If the file would become too long, it takes the place of the one before, and another one is begun.
    pub(super) fn add(&mut self, line: &str) -> Result<(), stlf_data::Error> {
        let line = format!("{line}\n");
        let added =
            self.make_room(line.len() as u64).and_then(|()| self.file.write_all(line.as_bytes()));
        added.map_err(|e| failed(&self.path, e))?;
        self.bytes += line.len() as u64;
        Ok(())
    }

    fn make_room(&mut self, bytes: u64) -> std::io::Result<()> {
        if self.bytes > 0 && self.bytes + bytes > self.most {
            match std::fs::rename(&self.path, &self.before) {
                // It was moved the last time, and there was no room for another one.
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                moved => moved?,
            }
            (self.file, self.bytes) = (append(&self.path)?, 0);
        }
        Ok(())
    }
}

fn append(path: &std::path::Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn failed(path: &std::path::Path, source: std::io::Error) -> stlf_data::Error {
    stlf_data::Error::File { path: path.to_owned(), source }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_its_last_lines_and_no_more_than_two_files_may_have() {
        let inside = tempfile::tempdir().unwrap();
        let folder = Folder::open(inside.path()).unwrap();
        let line = |k: usize| format!("line {k:03}");
        let most = 100;
        for k in 0..60 {
            // Killed after every line, it goes on.
            EventLog::open_with(&folder, most).unwrap().add(&line(k)).unwrap();
        }
        let read = |name: &str| std::fs::read_to_string(folder.file(name)).unwrap();
        assert!(read(FILE).len() as u64 <= most && read(BEFORE).len() as u64 <= most);
        let all = read(BEFORE) + &read(FILE);
        let lines: Vec<&str> = all.lines().collect();
        let first = 60 - lines.len();
        assert!(lines.len() >= 11, "{all}");
        assert_eq!(lines, (first..60).map(line).collect::<Vec<_>>());
    }

    #[test]
    fn a_log_goes_on_once_there_is_room_for_another_file() {
        let inside = tempfile::tempdir().unwrap();
        let folder = Folder::open(inside.path()).unwrap();
        let mut log = EventLog::open_with(&folder, 10).unwrap();
        log.add("the first").unwrap();
        // The file was moved, and no other one can be made in its place.
        let full = folder.file("full");
        let path = std::mem::replace(&mut log.path, full.join(FILE));
        std::fs::rename(&path, folder.file(BEFORE)).unwrap();
        assert!(log.add("the second").is_err(), "there is no folder of that name");
        std::fs::create_dir(&full).unwrap();
        log.add("the third").unwrap();
        assert_eq!(std::fs::read_to_string(full.join(FILE)).unwrap(), "the third\n");
    }
}
