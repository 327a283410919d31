//! One run of a learner, from its greeting to its end: requests and what comes of them. Nothing is tried twice here.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::Value;
use stlf_learn::evaluate::Predictions;
use stlf_learn::{Layout, Params};
use stlf_method::learner::{Progress, Watch};

use crate::Error;
use crate::arrays::{self, Samples};
use crate::command::Options;
use crate::message::{Answer, Ask, Described, PROTOCOL, Reply, Request, Welcome};
use crate::process::{Heard, Process};

/// How often it is asked whether to go on while a learner says nothing.
const TICK: Duration = Duration::from_millis(50);

/// How much of a line is quoted.
const QUOTED: usize = 200;

/// The most classes; labels and errors are counted for each.
const MOST_CLASSES: usize = 10_000;

/// A running learner that has been greeted.
#[derive(Debug)]
pub(crate) struct Session {
    process: Process,
    folder: PathBuf,
    next: u64,
    silence: Duration,
    grace: Duration,
    pub(crate) welcome: Welcome,
    pub(crate) layout: Layout,
}

/// A request that was answered with `ok`: what it says, and the line.
struct Done {
    says: Value,
    line: String,
}

impl Session {
    /// Starts a learner in an empty folder, and greets it.
    pub(crate) fn start(options: &Options) -> Result<Session, Error> {
        let folder = emptied(&options.folder)?;
        let process = Process::start(options)?;
        let welcome = Welcome {
            protocol: String::new(),
            name: String::new(),
            classes: Vec::new(),
            model: Default::default(),
        };
        let (silence, grace) = (options.limits.hello, options.limits.grace);
        let layout = Layout::default();
        let mut session = Session { process, folder, next: 0, silence, grace, welcome, layout };
        let ask = Ask::Hello {
            protocol: PROTOCOL.to_owned(),
            folder: session.folder.display().to_string(),
            seed: options.seed,
        };
        let verb = ask.verb();
        let Done { says, line } = session.whole(ask)?;
        let welcome: Welcome = understood(verb, says, &line)?;
        let wrong = |message: String| Error::Line { verb, line: quoted(&line), message };
        if welcome.protocol != PROTOCOL {
            return Err(wrong(format!("expected the protocol {PROTOCOL}")));
        }
        let (classes, name) = (&welcome.classes, &welcome.name);
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err(wrong("expected a name".to_owned()));
        }
        let mut seen = std::collections::BTreeSet::new();
        if classes.is_empty()
            || classes.len() > MOST_CLASSES
            || !classes.iter().all(|c| seen.insert(c))
        {
            let message = format!("expected classes, 1 to {MOST_CLASSES}, each once");
            return Err(wrong(message));
        }
        let tensors = welcome.model.iter().map(|(name, shape)| (name.as_str(), &shape[..]));
        session.layout = Layout::new(tensors).map_err(|e| wrong(format!("model: {e}")))?;
        session.welcome = welcome;
        session.silence = options.limits.silence;
        Ok(session)
    }

    /// Has the learner describe its samples.
    pub(crate) fn describe(&mut self) -> Result<Samples, Error> {
        let to = self.file("samples");
        let ask = Ask::Describe { to: to.clone() };
        let verb = ask.verb();
        let Done { says, line } = self.whole(ask)?;
        let Described { samples } = understood(verb, says, &line)?;
        let classes = self.welcome.classes.len();
        self.taken(&to, &line, |path| arrays::samples(path, samples, classes))
    }

    /// Has it train on these samples, by its own numbers; `None` if `watch` ended it.
    pub(crate) fn train(
        &mut self,
        rows: impl Iterator<Item = usize>,
        start: Option<&Params>,
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Params>, Error> {
        let (rows, to) = (self.put_rows(rows)?, self.file("model"));
        let start = start.map(|start| self.put_model("start", start)).transpose()?;
        let given: Vec<String> =
            [Some(rows.clone()), start.clone()].into_iter().flatten().collect();
        let done = self.call(Ask::Train { rows, start, to: to.clone(), seed }, watch);
        self.remove(&given);
        let Some(Done { line, .. }) = done? else { return Ok(None) };
        let layout = self.layout.clone();
        self.taken(&to, &line, |path| {
            let bytes = arrays::read(path, layout.most_bytes())?;
            Params::from_safetensors(&layout, &bytes).map_err(|e| format!("is no such model: {e}"))
        })
        .map(Some)
    }

    /// Has it predict these samples, by its own numbers, with a model; `None` if `watch` ended it.
    pub(crate) fn predict(
        &mut self,
        model: &Params,
        rows: impl ExactSizeIterator<Item = usize>,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Predictions>, Error> {
        let (samples, to) = (rows.len(), self.file("probabilities"));
        let (rows, model) = (self.put_rows(rows)?, self.put_model("given", model)?);
        let given = [rows.clone(), model.clone()];
        let done = self.call(Ask::Predict { model, rows, to: to.clone() }, watch);
        self.remove(&given);
        let Some(Done { line, .. }) = done? else { return Ok(None) };
        let classes = self.welcome.classes.len();
        self.taken(&to, &line, |path| arrays::probabilities(path, samples, classes)).map(Some)
    }

    /// Asks for something that must not be.
    pub(crate) fn ask_for_nonsense(&mut self) -> Result<(), Error> {
        let rows = self.put_rows(std::iter::empty())?;
        let (model, to) = ("there-is-no-such-file.safetensors".to_owned(), self.file("nothing"));
        let done = self.whole(Ask::Predict { model, rows: rows.clone(), to });
        self.remove(&[rows]);
        done.map(drop)
    }

    /// Tells the learner to end, and waits until it and all that it started have.
    pub(crate) fn stop(mut self) -> std::process::ExitStatus {
        let _ = self.send(Ask::Stop {});
        self.process.stop()
    }

    /// Asks for something that nobody ends.
    fn whole(&mut self, ask: Ask) -> Result<Done, Error> {
        let verb = ask.verb();
        let done = self.call(ask, &mut |_| ControlFlow::Continue(()))?;
        done.ok_or_else(|| Error::Line {
            verb,
            line: "cancelled".to_owned(),
            message: "nobody asked for that".to_owned(),
        })
    }

    /// Asks for something, and hears what comes of it; `None` if `watch` ended it.
    fn call(&mut self, ask: Ask, watch: &mut Watch<'_>) -> Result<Option<Done>, Error> {
        let verb = ask.verb();
        let id = self.send(ask);
        let (mut heard_at, mut progress) = (Instant::now(), Progress::default());
        let mut cancelled_at: Option<Instant> = None;
        loop {
            let line = match self.process.hear(TICK) {
                Heard::Line(line) => line,
                Heard::Ended => {
                    let status = self.process.end();
                    return Err(Error::Ended { verb, status, log: self.process.log() });
                }
                Heard::Nothing => {
                    if cancelled_at.is_some_and(|at| at.elapsed() >= self.grace) {
                        self.process.end();
                        return Ok(None);
                    }
                    if cancelled_at.is_none() && heard_at.elapsed() >= self.silence {
                        self.process.end();
                        let (after, log) = (self.silence, self.process.log());
                        return Err(Error::Silent { verb, after, log });
                    }
                    if cancelled_at.is_none() && watch(progress).is_break() {
                        self.send(Ask::Cancel { request: id });
                        cancelled_at = Some(Instant::now());
                    }
                    continue;
                }
            };
            heard_at = Instant::now();
            let wrong = |message: String| Error::Line { verb, line: quoted(&line), message };
            let reply: Reply = serde_json::from_str(&line)
                .map_err(|e| wrong(format!("expected a message of {PROTOCOL}: {e}")))?;
            // A sign of life that a request left behind.
            if reply.id < id && matches!(reply.answer, Answer::Progress { .. }) {
                continue;
            }
            if reply.id != id {
                return Err(wrong(format!("expected an answer to request {id}")));
            }
            match reply.answer {
                Answer::Ok(says) => match cancelled_at {
                    Some(_) => return Ok(None),
                    None => return Ok(Some(Done { says, line })),
                },
                Answer::Cancelled {} if cancelled_at.is_some() => return Ok(None),
                Answer::Cancelled {} => return Err(wrong("nobody asked for that".to_owned())),
                Answer::Error { .. } if cancelled_at.is_some() => return Ok(None),
                Answer::Error { message } => return Err(Error::Refused { verb, message }),
                Answer::Progress { done, total } => {
                    progress = Progress { done, total };
                    if cancelled_at.is_none() && watch(progress).is_break() {
                        self.send(Ask::Cancel { request: id });
                        cancelled_at = Some(Instant::now());
                    }
                }
            }
        }
    }

    /// Writes a request, and returns its number. Whether it arrives is seen by what comes back.
    fn send(&mut self, ask: Ask) -> u64 {
        let id = self.next;
        self.next += 1;
        let line = serde_json::to_string(&Request { id, ask }).unwrap_or_default() + "\n";
        self.process.write(&line);
        id
    }

    /// The name of a file of the next request.
    fn file(&self, what: &str) -> String {
        format!("{}-{what}.safetensors", self.next)
    }

    fn put_rows(&self, rows: impl Iterator<Item = usize>) -> Result<String, Error> {
        let name = self.file("rows");
        let bytes = arrays::rows_file(rows).map_err(std::io::Error::other);
        self.put(name, bytes)
    }

    fn put_model(&self, what: &str, model: &Params) -> Result<String, Error> {
        let bytes = model.to_safetensors(&self.layout).map_err(std::io::Error::other);
        self.put(self.file(what), bytes)
    }

    fn put(&self, name: String, bytes: std::io::Result<Vec<u8>>) -> Result<String, Error> {
        let path = self.folder.join(&name);
        let written = bytes.and_then(|bytes| std::fs::write(&path, bytes));
        written.map_err(|source| Error::Folder { path, source })?;
        Ok(name)
    }

    fn remove(&self, names: &[String]) {
        // What cannot be removed now goes with the folder.
        names.iter().for_each(|name| drop(std::fs::remove_file(self.folder.join(name))));
    }

    /// Takes a file that the learner wrote.
    fn taken<T>(
        &self,
        file: &str,
        line: &str,
        read: impl FnOnce(&std::path::Path) -> Result<T, String>,
    ) -> Result<T, Error> {
        let taken = read(&self.folder.join(file));
        self.remove(&[file.to_owned()]);
        let (line, file) = (quoted(line), file.to_owned());
        taken.map_err(|message| Error::File { line, file, message })
    }
}

/// Makes an empty folder for nobody else.
fn emptied(path: &std::path::Path) -> Result<PathBuf, Error> {
    let failed = |source| Error::Folder { path: path.to_owned(), source };
    let path = std::path::absolute(path).map_err(failed)?;
    match std::fs::remove_dir_all(&path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(failed(e)),
        _ => {}
    }
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&path).map_err(failed)?;
    Ok(path)
}

/// What an `ok` says, if it says what it must.
fn understood<T: DeserializeOwned>(
    verb: &'static str,
    says: Value,
    line: &str,
) -> Result<T, Error> {
    serde_json::from_value(says).map_err(|e| Error::Line {
        verb,
        line: quoted(line),
        message: e.to_string(),
    })
}

/// A line as it is shown.
fn quoted(line: &str) -> String {
    match line.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
