//! One file from the first mirror that has it, resumably.
//!
//! Bytes are collected in `NAME.part` beside the file. A transfer that was cut or stopped goes on where
//! the part ends, by HTTP's Range, at whatever mirror; the checksum of the whole tells whether the
//! pieces fit. Only a file of the right checksum gets its name, by renaming.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body};

use super::sources::Source;
use super::{Observer, Progress};
use crate::Error;

/// How long to wait for a connection.
const CONNECT: Duration = Duration::from_secs(15);

/// How long a mirror may be silent.
const SILENCE: Duration = Duration::from_secs(30);

/// The number of times a mirror is asked to resume after the connection broke.
const MOST_CUTS: usize = 5;

/// A file whose size is not known may not be larger than this.
const LARGEST: u64 = 1 << 30;

/// How a download ended, if not with an error.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The file is complete and has its name.
    Done,
    /// The observer said stop; the part is kept to resume from.
    Stopped,
}

/// What ends the work with one mirror.
enum Trouble {
    /// The next mirror may do better.
    Mirror(String),
    /// The failure is on this machine, so that no other mirror can help.
    Local(Error),
}

/// What came of one request to a mirror.
enum Received {
    /// The part is as long as the file.
    All {
        resumed: bool,
    },
    /// The connection broke, for this reason.
    Cut(String),
    Stopped,
}

/// A client that obeys the proxies of the environment.
pub(super) fn agent() -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(CONNECT))
        .timeout_recv_response(Some(SILENCE))
        .timeout_per_read(Some(SILENCE))
        .user_agent(concat!("stlf/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

/// Downloads a file into a folder.
pub(super) fn download(
    agent: &Agent,
    source: &Source,
    folder: &Path,
    observer: &mut Observer<'_>,
) -> Result<Outcome, Error> {
    let target = folder.join(&source.file);
    let part = folder.join(format!("{}.part", source.file));
    let mut transfer = Transfer { agent, source, target, part, observer };
    let mut tries = Vec::new();
    for mirror in &source.mirrors {
        let url = format!("{mirror}{}", source.file);
        match transfer.from(&url) {
            Ok(outcome) => return Ok(outcome),
            Err(Trouble::Local(error)) => return Err(error),
            Err(Trouble::Mirror(why)) => tries.push(format!("{url}: {why}")),
        }
    }
    Err(Error::Download { file: source.file.clone(), tries, hint: None })
}

struct Transfer<'a, 'o> {
    agent: &'a Agent,
    source: &'a Source,
    target: PathBuf,
    part: PathBuf,
    observer: &'a mut Observer<'o>,
}

impl Transfer<'_, '_> {
    fn from(&mut self, url: &str) -> Result<Outcome, Trouble> {
        let (mut cuts, mut is_anew) = (0, false);
        loop {
            let start = self.part_length()?;
            match self.receive(url, start)? {
                Received::Stopped => return Ok(Outcome::Stopped),
                Received::Cut(why) => {
                    if self.part_length()? <= start || cuts == MOST_CUTS {
                        return Err(Trouble::Mirror(why));
                    }
                    cuts += 1;
                }
                Received::All { resumed } => {
                    let found = self.local(self.source.checksum.of(&self.part))?;
                    if found == self.source.checksum.expected() {
                        self.local(fs::rename(&self.part, &self.target))?;
                        return Ok(Outcome::Done);
                    }
                    self.local(fs::remove_file(&self.part))?;
                    if !resumed || is_anew {
                        let expected = self.source.checksum.expected();
                        let why = format!("its checksum is {found}, not {expected}");
                        return Err(Trouble::Mirror(why));
                    }
                    // The first piece may be the wrong one.
                    is_anew = true;
                }
            }
        }
    }

    /// Asks for everything from `start` on and appends it to the part.
    fn receive(&mut self, url: &str, start: u64) -> Result<Received, Trouble> {
        if start > 0 && self.source.bytes == Some(start) {
            return Ok(Received::All { resumed: true });
        }
        let mut request = self.agent.get(url);
        if start > 0 {
            request = request.header("Range", format!("bytes={start}-"));
        }
        let response = request.call().map_err(|e| Trouble::Mirror(e.to_string()))?;
        let start = match response.status() {
            StatusCode::OK => 0,
            StatusCode::PARTIAL_CONTENT if begins_at(&response, start) => start,
            StatusCode::PARTIAL_CONTENT => {
                return Err(Trouble::Mirror("it sent a different range than requested".to_owned()));
            }
            StatusCode::RANGE_NOT_SATISFIABLE if start > 0 => {
                return Ok(Received::All { resumed: true });
            }
            status => return Err(Trouble::Mirror(status.to_string())),
        };
        let total = response.body().content_length().map(|rest| start + rest);
        if let (Some(total), Some(bytes)) = (total, self.source.bytes)
            && total != bytes
        {
            return Err(Trouble::Mirror(format!("it has {total} bytes, not {bytes}")));
        }
        let mut part = self.local(open_at(&self.part, start))?;
        self.copy(response.into_body(), &mut part, start, total)
    }

    fn copy(
        &mut self,
        body: Body,
        part: &mut File,
        start: u64,
        total: Option<u64>,
    ) -> Result<Received, Trouble> {
        let most = self.source.bytes.unwrap_or(LARGEST);
        let mut body = body.into_reader();
        let mut buffer = vec![0; 1 << 16];
        let mut done = start;
        loop {
            let progress =
                Progress { file: &self.source.file, done, total: total.or(self.source.bytes) };
            if (self.observer)(&progress) == ControlFlow::Break(()) {
                return Ok(Received::Stopped);
            }
            let read = match body.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(e) => return Ok(Received::Cut(e.to_string())),
            };
            done += read as u64;
            if done > most {
                self.local(fs::remove_file(&self.part))?;
                return Err(Trouble::Mirror(format!("it has more than {most} bytes")));
            }
            self.local(part.write_all(&buffer[..read]))?;
        }
        if total.is_some_and(|total| done < total) {
            return Ok(Received::Cut(format!("the transfer ended after {done} bytes")));
        }
        self.local(part.sync_all())?;
        Ok(Received::All { resumed: start > 0 })
    }

    fn part_length(&self) -> Result<u64, Trouble> {
        match fs::metadata(&self.part) {
            Ok(metadata) => Ok(metadata.len()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(e) => Err(Trouble::Local(Error::file(&self.part, e))),
        }
    }

    fn local<T>(&self, result: io::Result<T>) -> Result<T, Trouble> {
        result.map_err(|e| Trouble::Local(Error::file(&self.part, e)))
    }
}

/// Whether the answer is the range from `start` on.
fn begins_at(response: &Response<Body>, start: u64) -> bool {
    let range = response.headers().get("Content-Range").and_then(|value| value.to_str().ok());
    range.is_some_and(|range| range.trim().starts_with(&format!("bytes {start}-")))
}

/// The part, cut off at `start`, to write on from there.
fn open_at(part: &Path, start: u64) -> io::Result<File> {
    let mut file = OpenOptions::new().create(true).write(true).truncate(false).open(part)?;
    file.set_len(start)?;
    file.seek(io::SeekFrom::Start(start))?;
    Ok(file)
}
