//! Requests to a running program, and what comes of each.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::Value;
use stlf_data::words::in_words;
use stlf_method::learner::{Progress, Watch};

use crate::Error;
use crate::command::Limits;
use crate::message::{Answer, Ask, PROTOCOL, Reply, Request};
use crate::process::{Heard, Process};

/// How often it is asked whether to go on while a program says nothing.
const TICK: Duration = Duration::from_millis(50);

/// How often it is looked at how much the learner's folder has.
const LOOK: Duration = Duration::from_millis(500);

/// How long a program has to end that has nothing to lose yet.
const MOMENT: Duration = Duration::from_secs(1);

/// How much of a line is quoted.
const QUOTED: usize = 200;

/// A running program that is asked for one thing after the other.
#[derive(Debug)]
pub(crate) struct Dialogue {
    process: Process,
    next: u64,
    /// How long it may be silent while it works.
    pub(crate) silence: Duration,
    /// How long it may take to give up.
    grace: Duration,
    /// Its folder, and how many bytes that may have.
    folder: PathBuf,
    disk: u64,
}

/// A request that was answered with `ok`.
#[derive(Debug)]
pub(crate) struct Done {
    verb: &'static str,
    says: Value,
    line: String,
}

impl Dialogue {
    /// Begins with a program that has just started.
    pub(crate) fn new(process: Process, folder: &Path, limits: &Limits) -> Dialogue {
        let Limits { hello, grace, disk, .. } = *limits;
        Dialogue { process, next: 0, silence: hello, grace, folder: folder.to_owned(), disk }
    }

    /// Returns the number of the next request.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Asks for something without which the program is of no use: if `watch` ends it, the program ends at once.
    pub(crate) fn whole(&mut self, ask: Ask, watch: &mut Watch<'_>) -> Result<Done, Error> {
        let verb = ask.verb();
        let done = self.ask_within(ask, Duration::ZERO, watch)?;
        done.ok_or(Error::Stopped { verb })
    }

    /// Asks for something, and hears what comes of it; `None` if `watch` ended it.
    pub(crate) fn ask(&mut self, ask: Ask, watch: &mut Watch<'_>) -> Result<Option<Done>, Error> {
        self.ask_within(ask, self.grace, watch)
    }

    /// Asks as [`Dialogue::ask`] does, with another time to give up.
    fn ask_within(
        &mut self,
        ask: Ask,
        grace: Duration,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Done>, Error> {
        let verb = ask.verb();
        let id = self.send(ask);
        let (mut heard_at, mut progress) = (Instant::now(), Progress::default());
        let mut cancelled_at: Option<Instant> = None;
        let mut looked_at = Instant::now();
        loop {
            if looked_at.elapsed() >= LOOK {
                self.look(verb)?;
                looked_at = Instant::now();
            }
            if cancelled_at.is_some_and(|at| at.elapsed() >= grace) {
                self.process.end_within(grace.max(MOMENT.min(self.grace)));
                return Ok(None);
            }
            match self.process.hear(TICK) {
                Heard::Ended => {
                    let status = self.process.end();
                    return Err(Error::Ended { verb, status, log: self.process.log() });
                }
                Heard::Nothing if cancelled_at.is_none() && heard_at.elapsed() >= self.silence => {
                    self.process.end();
                    let (after, log) = (self.silence, self.process.log());
                    return Err(Error::Silent { verb, after, log });
                }
                Heard::Nothing => {}
                Heard::Line(line) => {
                    heard_at = Instant::now();
                    let answer = match answer(verb, id, &line)? {
                        Some(answer) => answer,
                        None => continue,
                    };
                    match (answer, cancelled_at.is_some()) {
                        (Answer::Progress { done, total }, _) => {
                            progress = Progress { done, total }
                        }
                        (_, true) => return Ok(None),
                        (Answer::Ok(says), false) => {
                            self.look(verb)?;
                            return Ok(Some(Done { verb, says, line }));
                        }
                        (Answer::Error { message }, false) => {
                            return Err(Error::Refused { verb, message });
                        }
                        (Answer::Cancelled {}, false) => {
                            return Err(Error::line(verb, &line, "nobody asked for that"));
                        }
                    }
                }
            }
            if cancelled_at.is_none() && watch(progress).is_break() {
                self.send(Ask::Cancel { request: id });
                cancelled_at = Some(Instant::now());
            }
        }
    }

    /// Ends a program that fills its folder, and empties that: the disk is not the learner's alone.
    fn look(&mut self, verb: &'static str) -> Result<(), Error> {
        let (bytes, most) = (bytes_in(&self.folder), self.disk);
        if bytes <= most {
            return Ok(());
        }
        self.process.end();
        // What cannot be removed is told: the folder is named.
        let _ = std::fs::remove_dir_all(&self.folder);
        Err(Error::TooMuch { verb, folder: self.folder.clone(), bytes, most })
    }

    /// Tells the program to end, and waits until it and all that it started have.
    pub(crate) fn stop(mut self) -> ExitStatus {
        self.send(Ask::Stop {});
        self.process.stop()
    }

    /// Writes a request, and returns its number. Whether it arrives is seen by what comes back.
    fn send(&mut self, ask: Ask) -> u64 {
        let id = self.next;
        self.next += 1;
        let line = serde_json::to_string(&Request { id, ask }).unwrap_or_default() + "\n";
        self.process.write(&line);
        id
    }
}

/// How many bytes the files in a folder have, in all. What is removed meanwhile has none.
fn bytes_in(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(about) if about.is_dir() => bytes_in(&entry.path()),
        Ok(about) => about.len(),
        Err(_) => 0,
    };
    entries.map(bytes).sum()
}

/// What a line says of a request; `None` for a sign of life that an earlier one left behind.
fn answer(verb: &'static str, id: u64, line: &str) -> Result<Option<Answer>, Error> {
    let reply: Reply = serde_json::from_str(line).map_err(|e| {
        Error::line(
            verb,
            line,
            format!("expected a message of {PROTOCOL}: {}", in_words(&e.to_string())),
        )
    })?;
    match reply.answer {
        Answer::Progress { .. } if reply.id < id => Ok(None),
        answer if reply.id == id => Ok(Some(answer)),
        _ => Err(Error::line(verb, line, format!("expected an answer to request {id}"))),
    }
}

impl Done {
    /// What it says, if it says what it must.
    pub(crate) fn says<T: DeserializeOwned>(&self) -> Result<T, Error> {
        T::deserialize(&self.says).map_err(|e| self.wrong(in_words(&e.to_string())))
    }

    /// The error that the line says something that cannot be.
    pub(crate) fn wrong(&self, message: impl Into<String>) -> Error {
        Error::line(self.verb, &self.line, message)
    }

    /// The error that a file is not what the line says.
    pub(crate) fn wrong_file(&self, file: &str, message: String) -> Error {
        Error::File { line: quoted(&self.line), file: file.to_owned(), message }
    }
}

/// Returns a line as it is shown to users.
pub(crate) fn quoted(line: &str) -> String {
    match line.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
